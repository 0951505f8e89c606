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
use dueling_bandits::claims::guardrails::Guardrails;
use dueling_bandits::claims::segments::SegmentClaims;
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::{Run, SavedRun};

/// Bytes of the digest at the end of a saved fold. It shows damage: damaged bytes could decode to
/// a state that no log folds to.
const DIGEST_BYTES: usize = 16;

impl Fold {
    /// The state that [`Fold::save`] wrote; `None` if this program cannot read the bytes.
    pub fn restore(spec: &ExperimentSpec, seed: u64, bytes: &[u8]) -> Option<Self> {
        let (content, found) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        if found != digest(content) {
            return None;
        }
        let ((mut state, run), []) =
            postcard::take_from_bytes::<(State, SavedRun)>(content).ok()?
        else {
            return None;
        };
        let (rankers, initial_rankers) = (state.counts.appearances().len(), spec.initial_rankers());
        // the roster may have changed after it was saved
        let known = (initial_rankers..=spec.rankers.len()).contains(&rankers)
            && spec.roster_changes.retired.starts_with(&state.retired)
            && state.controls_seen <= spec.former_controls.len();
        let methods = &state.methods;
        let is_known = |page: &ClickedPage| {
            page.is_sound(rankers) && method_of(methods, page.method).is_some()
        };
        let first = MethodVersion { since: 0, method: spec.pages.interleaving };
        let sound = known
            && state.counts.is_sound(rankers)
            && state.history.is_sound(rankers)
            && state.heavy_units.is_sound()
            && state.alone.is_some() == (spec.alone > 0.0)
            && state.alone.as_ref().is_none_or(|alone| alone.is_sound())
            && state.position <= MAX_POSITION
            && state.settings_changes_seen <= spec.settings_changes
            && methods.len() <= MAX_METHOD_VERSIONS as usize
            && methods.first() == Some(&first)
            && methods.iter().all(|version| version.method.validate().is_ok())
            && state.open_pages.pages().values().all(is_known)
            && state.page_counts.is_sound(rankers, methods.len())
            && [state.recorded_at, state.batch_opened_at].into_iter().all(clock::is_a_time);
        if !sound
            || state.policy_text != policy_text(&spec.policy)
            || state.policy_changes_seen != spec.former_policies.len()
            || !state.excluded.are_of(spec)
        {
            return None;
        }
        let setup = Setup { rankers: initial_rankers, seed };
        let mut roster = Roster::new(rankers);
        let held_out = spec.held_out();
        for ranker in state.retired.iter().map(|&ranker| ranker.into()).chain(held_out) {
            roster.retire(ranker).ok()?;
        }
        let run = Run::restore((&spec.policy, setup), spec.targets(), roster, run)?;
        let has_control = spec.first_control().is_some() || state.controls_seen > 0;
        (run.claims().is_some() == has_control).then_some(())?;
        (run.segments().map_or(0, |it| it.segments()) == spec.segments.len()).then_some(())?;
        let splits = run.segments().map_or(0, SegmentClaims::splits);
        (splits <= spec.splits.len()).then_some(())?;
        (run.drift().is_some() == (spec.drift != OnDrift::Off)).then_some(())?;
        let guardrails =
            state.guardrails.take().map(|it| values::restored(*it, spec, seed, rankers));
        if let Some(guardrails) = guardrails {
            state.guardrails = Some(Box::new(guardrails?));
        }
        (state.guardrails.is_some() != spec.metrics.is_empty()).then_some(())?;
        let known = run.cohorts().units_seen_elsewhere().is_some();
        (!known || spec.split_from.is_some()).then_some(())?;
        let fold = Self::with(spec, seed, run, state, held_out);
        let is_shown = |it: &Guardrails| it.units_seen_elsewhere().is_some() == known;
        fold.guardrails().is_none_or(is_shown).then_some(fold)
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

fn digest(content: &[u8]) -> [u8; DIGEST_BYTES] {
    std::array::from_fn({
        let whole = Sha256::digest(content);
        move |byte| whole[byte]
    })
}
