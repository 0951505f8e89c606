//! A [`Fold`] as bytes, and back.

use sha2::{Digest, Sha256};

use super::Fold;
use super::state::{MAX_POSITION, State};
use super::{orders, values};
use crate::clock;
use crate::experiment_spec::{ExperimentSpec, OnDrift};
use crate::fold::open_pages::ClickedPage;
use dueling_bandits::MIN_RANKERS;
use dueling_bandits::claims::segments::SegmentClaims;
use dueling_bandits::orders::Baskets;
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::{Run, SavedRun};

/// Bytes of the digest at the end of a saved fold. It shows damage: damaged bytes could decode to
/// a state that no log folds to.
const DIGEST_BYTES: usize = 16;

impl Fold {
    /// The state that [`Fold::save`] wrote; `None` if this program cannot read the bytes, or if they
    /// are of another experiment than one whose log ends at this spec, or without units that it
    /// excludes.
    pub fn restore(newest: &ExperimentSpec, seed: u64, bytes: &[u8]) -> Option<Self> {
        let (mut state, run, baskets) = decoded(bytes)?;
        state.is_sound(newest).then_some(())?;
        let spec = &state.spec;
        let rankers = spec.rankers.len();
        let held_out = spec.held_out();
        let setup = Setup { rankers: state.initial_rankers, seed };
        let run = Run::restore((&spec.policy, setup), spec.targets(), spec.roster()?, run)?;
        has_parts_of(&run, &state).then_some(())?;
        if let Some(saved) = state.guardrails.take() {
            let guardrails = values::restored(*saved, &state.spec, seed, rankers)?;
            state.guardrails = Some(Box::new(guardrails));
        }
        state.baskets = match (orders::rules(&state.spec), baskets) {
            (None, None) => None,
            (Some(rules), Some(saved)) => Some(Box::new(saved.restored(rules, rankers)?)),
            _ => return None,
        };
        let mut fold = Self::with(seed, run, state, held_out);
        fold.expect_baskets();
        Some(fold)
    }

    /// Whether bytes are what [`Fold::save`] wrote, for whichever spec.
    pub fn is_readable(bytes: &[u8]) -> bool {
        decoded(bytes).is_some()
    }

    /// The state as bytes, for a snapshot of [`Fold::format`].
    pub fn save(&self) -> Vec<u8> {
        let mut bytes = postcard::to_stdvec(&(&self.state, self.run.saved()))
            .expect("numbers, strings and vectors of them always serialise");
        if let Some(baskets) = &self.state.baskets {
            bytes = postcard::to_extend(baskets, bytes).expect("as the rest");
        }
        let digest = digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }
}

impl State {
    /// Whether a decoded state can be one of the experiment whose newest spec this is.
    /// [`Run::restore`] checks the rest.
    fn is_sound(&self, newest: &ExperimentSpec) -> bool {
        let (spec, methods) = (&self.spec, &self.methods);
        let rankers = spec.rankers.len();
        let is_known =
            |page: &ClickedPage| page.is_sound(rankers) && methods.version(page.method).is_some();
        spec.errors().is_empty()
            && spec.policy == newest.policy
            && newest.rankers.starts_with(&spec.rankers)
            && newest.retired.starts_with(&spec.retired)
            && (MIN_RANKERS..=rankers).contains(&self.initial_rankers)
            && self.lifecycle.error(rankers).is_none()
            && self.counts.is_sound(rankers)
            && self.history.is_sound(rankers)
            && self.heavy_units.is_sound()
            && self.alone.is_some() == (spec.alone > 0.0)
            && self.alone.as_ref().is_none_or(|alone| alone.is_sound())
            && self.guardrails.is_some() != spec.metrics.is_empty()
            && self.position <= MAX_POSITION
            && methods.all().len() == spec.pages.interleaving_version as usize
            && methods.all().last().is_some_and(|newest| newest.method == spec.pages.interleaving)
            && methods.all().iter().all(|version| version.method.validate().is_ok())
            && self.open_pages.pages().values().all(is_known)
            && self.page_counts.is_sound(rankers, methods.all().len())
            && [self.recorded_at, self.batches.opened_at, self.batches.moved_at]
                .into_iter()
                .all(clock::is_a_time)
            && self.batches.posted_whole <= self.batches.posted
            && self.excluded.are_of(newest)
    }
}

/// Whether a decoded run has the claims that the spec asks for.
fn has_parts_of(run: &Run, state: &State) -> bool {
    let spec = &state.spec;
    run.claims().is_some() == spec.control.is_some()
        && run.segments().map_or(0, SegmentClaims::segments) == spec.segments.len()
        && run.drift().is_some() == (spec.drift != OnDrift::Off)
}

/// The parts of a saved fold; `None` if the bytes are damaged or of another layout.
fn decoded(bytes: &[u8]) -> Option<(State, SavedRun, Option<Baskets>)> {
    let (content, found) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    if found != digest(content) {
        return None;
    }
    let ((state, run), rest) = postcard::take_from_bytes(content).ok()?;
    if rest.is_empty() {
        return Some((state, run, None));
    }
    let (baskets, rest) = postcard::take_from_bytes(rest).ok()?;
    rest.is_empty().then_some((state, run, Some(baskets)))
}

fn digest(content: &[u8]) -> [u8; DIGEST_BYTES] {
    std::array::from_fn({
        let whole = Sha256::digest(content);
        move |byte| whole[byte]
    })
}
