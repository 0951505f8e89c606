//! `state = fold(observe, initial(spec, seed), log)`: the one way from an experiment's log to its
//! state.
//!
//! Pure: the same log gives the same state on every replica and after every crash.

pub mod counts;
pub mod open_pages;
pub mod page_counts;
mod saved;

use crate::engine::experiment_spec::{ExperimentSpec, RosterChanges};
use crate::engine::fold::counts::Counts;
use crate::engine::fold::open_pages::{ClickedPage, OpenPages};
use crate::engine::fold::page_counts::PageCounts;
use crate::store::{ClicksEvent, ControlEvent, Event, LogEntry, Nonce, OutcomeEvent, PairResult};
use dueling_bandits::evidence::History;
use dueling_bandits::parameters::Setup;
use dueling_bandits::{
    Answer, Duel, MIN_RANKERS, Observation, PairCounts, Policy, PolicySpec, Roster, TieRule,
};
use interleaving;

/// Layout of a saved fold, apart from the policy's own; the two together make a snapshot's
/// `format`.
const FORMAT: u32 = 5;

/// An experiment's state at a log position.
#[derive(Debug)]
pub struct Fold {
    position: u64,
    /// The policy as JSON.
    policy_text: String,
    ties: TieRule,
    seed: u64,
    policy: Box<dyn Policy>,
    counts: Counts,
    history: History,
    /// Whether the service has concluded the experiment by itself, and why.
    concluded_by_itself: Option<String>,
    /// Unix milliseconds at which the newest entry was recorded.
    recorded_at: i64,
    /// Unix milliseconds at which the open batch opened: when the entry that closed the one before
    /// was recorded.
    batch_opened_at: i64,
    /// Version 1 first.
    methods: Vec<MethodVersion>,
    open_pages: OpenPages,
    page_counts: PageCounts,
    /// Whether the log was made by another policy altogether.
    anothers_log: bool,
    /// Changes of the policy that the log must have before its own policy chooses.
    policy_changes: usize,
    /// Those that were folded.
    policy_changes_seen: usize,
    /// Position of the newest of them; 0 before the first.
    policy_since: u64,
    /// How many rankers the experiment was created with.
    initial_rankers: usize,
    roster: Roster,
    /// The retired, in the order in which they were.
    retired: Vec<u16>,
}

/// How rankings are interleaved, from a position of the log on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MethodVersion {
    /// Position of the entry that says so; 0 for what the experiment was created with.
    pub since: u64,
    /// The method.
    pub method: interleaving::Spec,
}

/// A duel that an entry has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// First ranker of the ordered pair.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// The batch it was selected in.
    pub batch: Option<u32>,
    /// Unix milliseconds at which it was handed out.
    pub issued_at: i64,
}

/// A log entry that cannot be folded: the log is not one that this program wrote for this
/// experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("log entry {position}: {detail}")]
pub struct FoldError {
    /// Position of the entry.
    pub position: u64,
    /// What is wrong with it.
    pub detail: String,
}

impl Fold {
    /// The state before the first log entry.
    pub fn start(spec: &ExperimentSpec, seed: u64, created_at: i64) -> Self {
        let rankers = spec.initial_rankers();
        Self {
            position: 0,
            policy_text: text_of(&spec.policy),
            ties: spec.ties,
            seed,
            policy: spec.policy.start(Setup { rankers, seed }),
            counts: Counts::new(rankers),
            history: History::new(rankers),
            concluded_by_itself: None,
            recorded_at: created_at,
            batch_opened_at: created_at,
            methods: vec![MethodVersion { since: 0, method: spec.pages.interleaving }],
            open_pages: OpenPages::default(),
            page_counts: PageCounts::default(),
            anothers_log: false,
            policy_changes: spec.former_policies.len(),
            policy_changes_seen: 0,
            policy_since: 0,
            initial_rankers: rankers,
            roster: Roster::new(rankers),
            retired: Vec::new(),
        }
    }

    /// As [`Fold::start`], for a log that was made by another policy.
    pub fn start_with_anothers_log(spec: &ExperimentSpec, seed: u64, created_at: i64) -> Self {
        Self { anothers_log: true, ..Self::start(spec, seed, created_at) }
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

    /// How rankings are interleaved, version 1 first.
    pub fn methods(&self) -> &[MethodVersion] {
        &self.methods
    }

    /// Version and method for a duel that was selected at a log position.
    pub fn method_at(&self, chosen_at: u64) -> (u32, interleaving::Spec) {
        let version = self.methods.partition_point(|version| version.since <= chosen_at).max(1);
        (version as u32, self.methods[version - 1].method)
    }

    /// The method of this version.
    pub fn method(&self, version: u32) -> Option<interleaving::Spec> {
        method_of(&self.methods, version)
    }

    /// Duels that have pieces and are not settled.
    pub fn open_pages(&self) -> &OpenPages {
        &self.open_pages
    }

    /// What settled pages came to.
    pub fn page_counts(&self) -> &PageCounts {
        &self.page_counts
    }

    /// Who takes part.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// How many rankers the experiment was created with.
    pub fn initial_rankers(&self) -> usize {
        self.initial_rankers
    }

    /// Who has come and gone since.
    pub fn roster_changes(&self) -> RosterChanges {
        let enlisted = (self.roster.rankers() - self.initial_rankers) as u16; // of at most 1024
        RosterChanges { enlisted, retired: self.retired.clone() }
    }

    /// Fold the next entry. On an error nothing has changed.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), FoldError> {
        self.apply_page(|page| page.apply(entry))
    }

    /// Fold as many entries as `fold` applies. What only a selection needs is computed once, after
    /// them.
    pub fn apply_page<T>(&mut self, fold: impl FnOnce(&mut Page<'_>) -> T) -> T {
        let result = fold(&mut Page(self));
        self.policy.catch_up();
        result
    }

    fn apply_unsettled(&mut self, entry: &LogEntry) -> Result<Option<Answered>, FoldError> {
        let refuse = |detail: String| FoldError { position: entry.position, detail };
        if entry.position != self.position + 1 {
            return Err(refuse(format!("it cannot follow position {}", self.position)));
        }
        let batch_before = self.policy.batch();
        let mut answered = None;
        match &entry.event {
            Event::Outcome(outcome) => {
                answered = Some(self.apply_outcome(outcome).map_err(refuse)?);
                // who says what it came to has the last word
                self.open_pages.take(entry.nonce);
            }
            Event::Control(ControlEvent::Clicks(clicks)) => {
                answered = self.apply_clicks(entry.nonce, clicks).map_err(refuse)?;
            }
            Event::Control(ControlEvent::Settled {}) => {
                let page = self.open_pages.pages().get(&entry.nonce).cloned();
                let page = page.ok_or_else(|| refuse("it settles a duel without clicks".into()))?;
                answered = Some(self.apply_page_of(entry.nonce, &page).map_err(refuse)?);
            }
            Event::Control(ControlEvent::Interleaving { version, method }) => {
                let next = self.methods.len() as u32 + 1;
                if *version != next {
                    return Err(refuse(format!(
                        "it is version {version} of the method, and {next} comes next"
                    )));
                }
                self.methods.push(MethodVersion { since: entry.position, method: *method });
            }
            Event::Control(ControlEvent::Policy { .. }) => {
                self.policy_changes_seen += 1;
                self.policy_since = entry.position;
            }
            Event::Control(ControlEvent::RankerEnlisted { ranker, .. }) => {
                self.enlist(*ranker).map_err(refuse)?;
            }
            Event::Control(ControlEvent::RankerRetired { ranker }) => {
                self.retire(*ranker).map_err(refuse)?
            }
            Event::Control(ControlEvent::SelfDuels { counts }) => {
                for &(ranker, _) in counts {
                    self.check_ranker(ranker).map_err(refuse)?;
                }
                for &(ranker, count) in counts {
                    self.counts.record_self_duels(ranker.into(), count);
                    self.history.shown_alone(ranker.into(), count);
                    self.policy.observe_self_duels(ranker.into(), count);
                }
            }
            Event::Control(ControlEvent::BatchResults { batch, results }) => {
                for result in results {
                    self.check_pair(result.first, result.second).map_err(refuse)?;
                }
                for result in results {
                    self.apply_result(*batch, result);
                }
            }
            Event::Control(ControlEvent::Status { reason, .. }) => {
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
        Ok(answered)
    }

    fn enlist(&mut self, ranker: u16) -> Result<(), String> {
        let next = self.roster.rankers();
        if usize::from(ranker) != next {
            return Err(format!("it enlists ranker {ranker}, and {next} comes next"));
        }
        let mut roster = self.roster.clone();
        roster.enlist().map_err(|why| why.to_string())?;
        self.policy.enlist().map_err(|why| why.to_string())?;
        self.roster = roster;
        self.counts.enlist();
        self.history.enlist();
        Ok(())
    }

    fn retire(&mut self, ranker: u16) -> Result<(), String> {
        self.check_ranker(ranker)?;
        if !self.roster.is_active(ranker.into()) {
            return Err(format!("ranker {ranker} is retired already"));
        }
        if self.roster.active().len() <= MIN_RANKERS {
            return Err(format!("without ranker {ranker} fewer than {MIN_RANKERS} would be left"));
        }
        self.policy.retire(ranker.into()).map_err(|why| why.to_string())?;
        self.roster.retire(ranker.into()).map_err(|why| why.to_string())?;
        self.retired.push(ranker);
        Ok(())
    }

    /// Clicks under the duel's own nonce settle it.
    fn apply_clicks(
        &mut self,
        nonce: Nonce,
        event: &ClicksEvent,
    ) -> Result<Option<Answered>, String> {
        self.check_ranker(event.first)?;
        self.check_ranker(event.second)?;
        if self.method(event.method).is_none() {
            return Err(format!("there is no version {} of the method", event.method));
        }
        let piece = ClickedPage::read(event)?;
        let duel = event.duel.as_u128();
        if nonce != duel {
            self.open_pages.add(duel, piece);
            return Ok(None);
        }
        let page = match self.open_pages.pages().get(&duel) {
            Some(before) => {
                let mut page = before.clone();
                page.add(piece);
                page
            }
            None => piece,
        };
        self.apply_page_of(duel, &page).map(Some)
    }

    /// Settle a duel on what was clicked on its page.
    fn apply_page_of(&mut self, nonce: Nonce, page: &ClickedPage) -> Result<Answered, String> {
        let method = self.method(page.method).ok_or("its method is not known")?;
        let credit = page.credit(&method, self.seed, nonce)?;
        let outcome = page.answered(credit.verdict);
        let answered = self.apply_outcome(&outcome)?;
        if outcome.first != outcome.second {
            self.page_counts.record(page.method, &outcome, &page.sheet, &credit);
        }
        self.open_pages.take(nonce);
        Ok(answered)
    }

    fn apply_outcome(&mut self, outcome: &OutcomeEvent) -> Result<Answered, String> {
        self.check_ranker(outcome.first)?;
        self.check_ranker(outcome.second)?;
        let OutcomeEvent { first, second, batch, issued_at, .. } = *outcome;
        let answered = Answered { first, second, batch, issued_at };
        let duel = Duel::new(first.into(), second.into());
        if duel.is_self() {
            // its step was counted when it was handed out; its answer says nothing
            return Ok(answered);
        }
        let anothers = self.is_anothers(outcome.chosen_at);
        self.counts.record(duel, outcome.answer, outcome.first_left);
        self.history.compared(duel, 1);
        let observation = Observation {
            duel,
            outcome: self.ties.resolve(outcome.answer, self.seed, self.policy.tally().steps()),
            batch: if anothers { self.policy.batch() } else { outcome.batch },
            ticket: if anothers { 0 } else { outcome.ticket },
        };
        self.policy.observe_deferred(&observation);
        Ok(answered)
    }

    /// Whether what was selected at this position was selected by another policy. What that one
    /// noted of its selections means nothing to this one, and each comparison answers the open
    /// batch if that needs it.
    fn is_anothers(&self, chosen_at: u64) -> bool {
        self.anothers_log
            || self.policy_changes_seen < self.policy_changes
            || chosen_at < self.policy_since
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
        let batch = if self.is_anothers(self.position) { self.policy.batch() } else { Some(batch) };
        self.policy
            .observe_counts(&counts, batch, &mut |step| ties.resolve(Answer::Tie, seed, step));
    }

    fn check_ranker(&self, ranker: u16) -> Result<(), String> {
        let rankers = self.roster.rankers();
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
        self.answer(entry).map(drop)
    }

    /// Fold the next entry; the duel that it answers. On an error nothing has changed.
    pub fn answer(&mut self, entry: &LogEntry) -> Result<Option<Answered>, FoldError> {
        self.0.apply_unsettled(entry)
    }

    /// Position of the last entry that was folded.
    pub fn position(&self) -> u64 {
        self.0.position
    }

    /// Changes of the policy that the log has had so far.
    pub fn policy_changes_seen(&self) -> usize {
        self.0.policy_changes_seen
    }

    /// Who has come and gone so far: how many changes.
    pub fn roster_changes_seen(&self) -> usize {
        self.0.roster.rankers() - self.0.initial_rankers + self.0.retired.len()
    }

    /// Number of the open batch, for a policy that runs in batches.
    pub fn batch(&self) -> Option<u32> {
        self.0.policy.batch()
    }
}

fn method_of(methods: &[MethodVersion], version: u32) -> Option<interleaving::Spec> {
    let index = (version as usize).checked_sub(1)?;
    methods.get(index).map(|version| version.method)
}

fn text_of(policy: &PolicySpec) -> String {
    serde_json::to_string(policy).expect("numbers and names always serialise")
}
