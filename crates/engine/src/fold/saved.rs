//! A [`Fold`] as bytes, and back.

use sha2::{Digest, Sha256};

use super::Fold;
use super::methods::{MethodVersion, method_of};
use super::state::{MAX_POSITION, State, policy_text};
use super::values;
use crate::clock;
use crate::experiment_spec::{ExperimentSpec, OnDrift};
use crate::fold::open_pages::ClickedPage;
use crate::page_rules::MAX_METHOD_VERSIONS;
use dueling_bandits::Roster;
use dueling_bandits::claims::segments::SegmentClaims;
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::{Run, SavedRun};

/// Bytes of the digest at the end of a saved fold. It shows damage: damaged bytes could decode to
/// a state that no log folds to.
const DIGEST_BYTES: usize = 16;

impl Fold {
    /// The state that [`Fold::save`] wrote; `None` if this program cannot read the bytes, or if they
    /// are of another spec: with another policy, or without exclusions that came later.
    pub fn restore(spec: &ExperimentSpec, seed: u64, bytes: &[u8]) -> Option<Self> {
        let (mut state, run) = decoded(bytes)?;
        state.is_sound(spec).then_some(())?;
        let rankers = state.counts.appearances().len();
        let mut roster = Roster::new(rankers);
        let held_out = spec.held_out();
        for ranker in state.retired.iter().map(|&ranker| ranker.into()).chain(held_out) {
            roster.retire(ranker).ok()?;
        }
        let setup = Setup { rankers: spec.initial_rankers(), seed };
        let run = Run::restore((&spec.policy, setup), spec.targets(), roster, run)?;
        has_parts_of(&run, spec, &state).then_some(())?;
        if let Some(saved) = state.guardrails.take() {
            let guardrails = values::restored(*saved, spec, seed, rankers)?;
            state.guardrails = Some(Box::new(guardrails));
        }
        Some(Self::with(spec, seed, run, state, held_out))
    }

    /// Whether bytes are what [`Fold::save`] wrote, for whichever spec.
    pub fn is_readable(bytes: &[u8]) -> bool {
        decoded(bytes).is_some()
    }

    /// The state as bytes, for a snapshot of [`Fold::format`].
    pub fn save(&self) -> Vec<u8> {
        let mut bytes = postcard::to_stdvec(&(&self.state, self.run.saved()))
            .expect("numbers, strings and vectors of them always serialise");
        let digest = digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }
}

impl State {
    /// Whether a decoded state can be one of this experiment. [`Run::restore`] checks the rest.
    fn is_sound(&self, spec: &ExperimentSpec) -> bool {
        let rankers = self.counts.appearances().len();
        let methods = &self.methods;
        let is_known = |page: &ClickedPage| {
            page.is_sound(rankers) && method_of(methods, page.method).is_some()
        };
        let first = MethodVersion { since: 0, method: spec.pages.interleaving };
        // the roster may have changed after the state was saved
        (spec.initial_rankers()..=spec.rankers.len()).contains(&rankers)
            && spec.roster_changes.retired.starts_with(&self.retired)
            && self.controls_seen <= spec.former_controls.len()
            && self.counts.is_sound(rankers)
            && self.history.is_sound(rankers)
            && self.heavy_units.is_sound()
            && self.alone.is_some() == (spec.alone > 0.0)
            && self.alone.as_ref().is_none_or(|alone| alone.is_sound())
            && self.guardrails.is_some() != spec.metrics.is_empty()
            && self.position <= MAX_POSITION
            && self.settings_changes_seen <= spec.settings_changes
            && methods.len() <= MAX_METHOD_VERSIONS as usize
            && methods.first() == Some(&first)
            && methods.iter().all(|version| version.method.validate().is_ok())
            && self.open_pages.pages().values().all(is_known)
            && self.page_counts.is_sound(rankers, methods.len())
            && [self.recorded_at, self.batches.opened_at, self.batches.moved_at]
                .into_iter()
                .all(clock::is_a_time)
            && self.batches.posted_whole <= self.batches.posted
            && self.policy_text == policy_text(&spec.policy)
            && self.excluded.are_of(spec)
    }
}

/// Whether a decoded run has the claims that the spec asks for.
fn has_parts_of(run: &Run, spec: &ExperimentSpec, state: &State) -> bool {
    let has_control = spec.first_control().is_some() || state.controls_seen > 0;
    run.claims().is_some() == has_control
        && run.segments().map_or(0, SegmentClaims::segments) == spec.segments.len()
        && run.drift().is_some() == (spec.drift != OnDrift::Off)
}

/// The parts of a saved fold; `None` if the bytes are damaged or of another layout.
fn decoded(bytes: &[u8]) -> Option<(State, SavedRun)> {
    let (content, found) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    if found != digest(content) {
        return None;
    }
    match postcard::take_from_bytes(content) {
        Ok((saved, [])) => Some(saved),
        _ => None,
    }
}

fn digest(content: &[u8]) -> [u8; DIGEST_BYTES] {
    std::array::from_fn({
        let whole = Sha256::digest(content);
        move |byte| whole[byte]
    })
}
