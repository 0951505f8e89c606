//! A [`Fold`] as bytes, and back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Fold;
use super::methods::{MethodVersion, method_of};
use super::state::{MAX_POSITION, policy_text};
use crate::clock;
use crate::experiment_spec::ExperimentSpec;
use crate::fold::counts::Counts;
use crate::fold::excluded::ExcludedUnits;
use crate::fold::open_pages::{ClickedPage, OpenPages};
use crate::fold::page_counts::PageCounts;
use crate::page_rules::MAX_METHOD_VERSIONS;
use dueling_bandits::Roster;
use dueling_bandits::evidence::{HeavyUnits, History};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::{Run, SavedRun};
use rankduel_store::Nonce;

/// Bytes of the digest at the end of a saved fold. It shows damage: damaged bytes could decode to
/// a state that no log folds to.
const DIGEST_BYTES: usize = 16;

#[derive(Serialize, Deserialize)]
struct Saved {
    position: u64,
    policy_text: String,
    policy_changes_seen: usize,
    policy_since: u64,
    rankers: usize,
    retired: Vec<u16>,
    counts: Counts,
    history: History,
    concluded_by_itself: Option<String>,
    recorded_at: i64,
    batch_opened_at: i64,
    /// Each version after the first: position of its entry, and the method as JSON.
    methods: Vec<(u64, String)>,
    open_pages: BTreeMap<Nonce, ClickedPage>,
    page_counts: PageCounts,
    heavy_units: HeavyUnits,
    excluded: ExcludedUnits,
}

impl Fold {
    /// The state that [`Fold::save`] wrote; `None` if this program cannot read the bytes.
    pub fn restore(spec: &ExperimentSpec, seed: u64, bytes: &[u8]) -> Option<Self> {
        let (content, found) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        if found != digest(content) {
            return None;
        }
        let decoded = postcard::take_from_bytes::<(Saved, SavedRun)>(content).ok()?;
        let ((saved, run), []) = decoded else { return None };
        let (rankers, initial_rankers) = (saved.rankers, spec.initial_rankers());
        // the roster may have changed after it was saved
        let known = (initial_rankers..=spec.rankers.len()).contains(&rankers)
            && spec.roster_changes.retired.starts_with(&saved.retired);
        let sound = known
            && saved.counts.is_sound(rankers)
            && saved.history.is_sound(rankers)
            && saved.heavy_units.is_sound()
            && saved.position <= MAX_POSITION
            && saved.methods.len() < MAX_METHOD_VERSIONS as usize
            && [saved.recorded_at, saved.batch_opened_at].into_iter().all(clock::is_a_time);
        if saved.policy_text != policy_text(&spec.policy)
            || saved.policy_changes_seen != spec.former_policies.len()
            || !saved.excluded.are_of(spec)
            || !sound
        {
            return None;
        }
        let mut methods = vec![MethodVersion { since: 0, method: spec.pages.interleaving }];
        for (since, method) in &saved.methods {
            let method: interleaving::Spec = serde_json::from_str(method).ok()?;
            method.validate().ok()?;
            methods.push(MethodVersion { since: *since, method });
        }
        let known = |page: &ClickedPage| {
            page.is_sound(rankers) && method_of(&methods, page.method).is_some()
        };
        if !saved.open_pages.values().all(known)
            || !saved.page_counts.is_sound(rankers, methods.len())
        {
            return None;
        }
        let setup = Setup { rankers: initial_rankers, seed };
        let mut roster = Roster::new(rankers);
        let held_out = spec.held_out();
        for ranker in saved.retired.iter().map(|&ranker| ranker.into()).chain(held_out) {
            roster.retire(ranker).ok()?;
        }
        let (target, window) = (spec.verdict_target(), spec.answer_window_ms());
        let run = Run::restore((&spec.policy, setup), (target, window), roster, run)?;
        Some(Self {
            position: saved.position,
            policy_text: saved.policy_text,
            ties: spec.ties,
            seed,
            run,
            counts: saved.counts,
            history: saved.history,
            heavy_units: saved.heavy_units,
            concluded_by_itself: saved.concluded_by_itself,
            recorded_at: saved.recorded_at,
            batch_opened_at: saved.batch_opened_at,
            methods,
            open_pages: OpenPages::of(saved.open_pages),
            page_counts: saved.page_counts,
            foreign_log: false,
            policy_changes: spec.former_policies.len(),
            policy_changes_seen: saved.policy_changes_seen,
            policy_since: saved.policy_since,
            excluded: saved.excluded,
            initial_rankers,
            retired: saved.retired,
            held_out,
        })
    }

    /// The state as bytes, for a snapshot of [`Fold::format`].
    pub fn save(&self) -> Vec<u8> {
        let saved = Saved {
            position: self.position,
            policy_text: self.policy_text.clone(),
            policy_changes_seen: self.policy_changes_seen,
            policy_since: self.policy_since,
            rankers: self.roster().rankers(),
            retired: self.retired.clone(),
            counts: self.counts.clone(),
            history: self.history.clone(),
            concluded_by_itself: self.concluded_by_itself.clone(),
            recorded_at: self.recorded_at,
            batch_opened_at: self.batch_opened_at,
            methods: self
                .methods
                .iter()
                .skip(1)
                .map(|version| {
                    let method = serde_json::to_string(&version.method);
                    (version.since, method.expect("names and numbers always serialise"))
                })
                .collect(),
            open_pages: self.open_pages.pages().clone(),
            page_counts: self.page_counts.clone(),
            heavy_units: self.heavy_units.clone(),
            excluded: self.excluded.clone(),
        };
        let mut bytes = postcard::to_stdvec(&(saved, self.run.copy().into_saved()))
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
