//! `state = fold(observe, initial(spec, seed), log)`: the one way from an experiment's log to its state.
//!
//! Pure: the same log gives the same state on every replica and after every crash.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::counts::Counts;
use super::spec::ExperimentSpec;
use crate::evidence::History;
use crate::policy::spec::Setup;
use crate::policy::{Answer, Duel, Observation, PairCounts, Policy, TieRule};
use crate::store::{Event, LogEntry, OtherEvent, OutcomeEvent, PairResult};

/// Layout of a saved fold, apart from the policy's own; the two together make a snapshot's `format`.
const FORMAT: u32 = 2;

/// Bytes of the digest at the end of a saved fold: a damaged one must not be taken for a state that nobody folded.
const DIGEST_BYTES: usize = 16;

/// An experiment's state at a log position.
#[derive(Debug)]
pub struct Fold {
    position: u64,
    kind: &'static str,
    ties: TieRule,
    seed: u64,
    policy: Box<dyn Policy>,
    counts: Counts,
    history: History,
    /// Whether the service has concluded the experiment by itself, and why.
    concluded_by_itself: Option<String>,
    /// Unix milliseconds at which the newest entry was recorded.
    recorded_at: i64,
    /// Unix milliseconds at which the open batch opened: when the entry that closed the one before was recorded.
    batch_opened_at: i64,
}

/// A log entry that cannot be folded: the log is not one that this program wrote for this experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("log entry {position}: {detail}")]
pub struct FoldError {
    /// Position of the entry.
    pub position: u64,
    /// What is wrong with it.
    pub detail: String,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    position: u64,
    kind: String,
    policy: Vec<u8>,
    counts: Counts,
    history: History,
    concluded_by_itself: Option<String>,
    recorded_at: i64,
    batch_opened_at: i64,
}

impl Fold {
    /// The state before the first log entry.
    pub fn start(spec: &ExperimentSpec, seed: u64, created_at: i64) -> Self {
        let rankers = spec.rankers.len();
        Self {
            position: 0,
            kind: spec.policy.kind(),
            ties: spec.ties,
            seed,
            policy: spec.policy.start(Setup { rankers, seed }),
            counts: Counts::new(rankers),
            history: History::new(rankers),
            concluded_by_itself: None,
            recorded_at: created_at,
            batch_opened_at: created_at,
        }
    }

    /// The state as [`Fold::save`] left it; `None` when the bytes are not what this program can read.
    pub fn restore(spec: &ExperimentSpec, seed: u64, bytes: &[u8]) -> Option<Self> {
        let (content, found) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
        if found != digest(content) {
            return None;
        }
        let saved: Saved = postcard::from_bytes(content).ok()?;
        let rankers = spec.rankers.len();
        let sound = saved.counts.is_sound(rankers) && saved.history.is_sound(rankers);
        if saved.kind != spec.policy.kind() || !sound {
            return None;
        }
        let setup = Setup { rankers, seed };
        let format = spec.policy.start(setup).format();
        Some(Self {
            position: saved.position,
            kind: spec.policy.kind(),
            ties: spec.ties,
            seed,
            policy: spec.policy.restore(setup, format, &saved.policy)?,
            counts: saved.counts,
            history: saved.history,
            concluded_by_itself: saved.concluded_by_itself,
            recorded_at: saved.recorded_at,
            batch_opened_at: saved.batch_opened_at,
        })
    }

    /// The state as bytes, for a snapshot of [`Fold::format`].
    pub fn save(&self) -> Vec<u8> {
        let saved = Saved {
            position: self.position,
            kind: self.kind.into(),
            policy: self.policy.save(),
            counts: self.counts.clone(),
            history: self.history.clone(),
            concluded_by_itself: self.concluded_by_itself.clone(),
            recorded_at: self.recorded_at,
            batch_opened_at: self.batch_opened_at,
        };
        let mut bytes =
            postcard::to_stdvec(&saved).expect("numbers, strings and vectors of them always serialise");
        let digest = digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }

    /// Number of the layout that [`Fold::save`] writes.
    pub fn format(&self) -> u32 {
        FORMAT << 16 | self.policy.format()
    }

    /// Position of the last entry that was folded.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The policy at this position.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// What happened up to this position.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The counts over time.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Unix milliseconds at which the newest entry was recorded; of the creation before the first.
    pub fn recorded_at(&self) -> i64 {
        self.recorded_at
    }

    /// Why the service has concluded the experiment by itself; `None` when it has not.
    pub fn concluded_by_itself(&self) -> Option<&str> {
        self.concluded_by_itself.as_deref()
    }

    /// Unix milliseconds at which the open batch opened.
    pub fn batch_opened_at(&self) -> i64 {
        self.batch_opened_at
    }

    /// Fold the next entry. On an error nothing has changed.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), FoldError> {
        self.apply_page(|page| page.apply(entry))
    }

    /// Fold as many entries as `fold` applies. What only a selection needs is computed once, after them.
    pub fn apply_page<T>(&mut self, fold: impl FnOnce(&mut Page<'_>) -> T) -> T {
        let result = fold(&mut Page(self));
        self.policy.settle();
        result
    }

    fn apply_unsettled(&mut self, entry: &LogEntry) -> Result<(), FoldError> {
        let refuse = |detail: String| FoldError { position: entry.position, detail };
        if entry.position != self.position + 1 {
            return Err(refuse(format!("it cannot follow position {}", self.position)));
        }
        let batch_before = self.policy.batch();
        match &entry.event {
            Event::Outcome(outcome) => self.apply_outcome(outcome).map_err(refuse)?,
            Event::Other(OtherEvent::SelfDuels { counts }) => {
                for &(ranker, _) in counts {
                    self.check_ranker(ranker).map_err(refuse)?;
                }
                for &(ranker, count) in counts {
                    self.counts.record_self_duels(ranker.into(), count);
                    self.history.shown_alone(ranker.into(), count);
                    self.policy.observe_self_duels(ranker.into(), count);
                }
            }
            Event::Other(OtherEvent::BatchResults { batch, results }) => {
                for result in results {
                    self.check_pair(result.first, result.second).map_err(refuse)?;
                }
                for result in results {
                    self.apply_result(*batch, result);
                }
            }
            Event::Other(OtherEvent::Status { reason, .. }) => {
                if reason.is_some() {
                    self.concluded_by_itself.clone_from(reason);
                }
            }
        }
        if self.policy.batch() != batch_before {
            self.batch_opened_at = entry.recorded_at;
        }
        self.position = entry.position;
        self.recorded_at = entry.recorded_at;
        self.history.counted(entry.position, entry.recorded_at);
        Ok(())
    }

    fn apply_outcome(&mut self, outcome: &OutcomeEvent) -> Result<(), String> {
        self.check_ranker(outcome.first)?;
        self.check_ranker(outcome.second)?;
        let duel = Duel::new(outcome.first.into(), outcome.second.into());
        if duel.is_self() {
            // its step was counted when it was handed out; its answer says nothing
            return Ok(());
        }
        self.counts.record(duel, outcome.answer, outcome.first_left);
        self.history.compared(duel, 1);
        let observation = Observation {
            duel,
            outcome: self.ties.resolve(outcome.answer, self.seed, self.policy.tally().steps()),
            batch: outcome.batch,
            ticket: outcome.ticket,
        };
        self.policy.observe_unsettled(&observation);
        Ok(())
    }

    fn apply_result(&mut self, batch: u32, result: &PairResult) {
        let duel = Duel::new(result.first.into(), result.second.into());
        self.counts.add(duel, Answer::First, result.first_wins);
        self.counts.add(duel, Answer::Second, result.second_wins);
        self.counts.add(duel, Answer::Tie, result.ties);
        let answers = [result.first_wins, result.second_wins, result.ties];
        self.history.compared(duel, answers.into_iter().map(u64::from).sum());
        let counts = PairCounts {
            duel,
            first_wins: result.first_wins,
            second_wins: result.second_wins,
            ties: result.ties,
        };
        let (ties, seed) = (self.ties, self.seed);
        self.policy.observe_counts(&counts, Some(batch), &mut |step| ties.resolve(Answer::Tie, seed, step));
    }

    fn check_ranker(&self, ranker: u16) -> Result<(), String> {
        let rankers = self.policy.tally().rankers();
        if usize::from(ranker) < rankers {
            Ok(())
        } else {
            Err(format!("ranker {ranker} is out of range: the experiment has {rankers}"))
        }
    }

    fn check_pair(&self, first: u16, second: u16) -> Result<(), String> {
        self.check_ranker(first)?;
        self.check_ranker(second)?;
        if first == second { Err(format!("ranker {first} is paired with itself")) } else { Ok(()) }
    }
}

/// A [`Fold`] while entries are applied to it; no policy selects from it meanwhile.
#[derive(Debug)]
pub struct Page<'a>(&'a mut Fold);

impl Page<'_> {
    /// Fold the next entry. On an error nothing has changed.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), FoldError> {
        self.0.apply_unsettled(entry)
    }

    /// Position of the last entry that was folded.
    pub fn position(&self) -> u64 {
        self.0.position
    }

    /// Number of the open batch, for a policy that runs in batches.
    pub fn batch(&self) -> Option<u32> {
        self.0.policy.batch()
    }
}

fn digest(content: &[u8]) -> [u8; DIGEST_BYTES] {
    std::array::from_fn({
        let whole = Sha256::digest(content);
        move |byte| whole[byte]
    })
}
