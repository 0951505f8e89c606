//! How an entry of the log changes the state.

use super::{Fold, State};
use crate::clock;
use crate::experiment_spec::ExperimentSpec;
use crate::fold::open_pages::{ClickedPage, sheet_of};
use crate::lifecycle::Lifecycle;
use dueling_bandits::evidence::balance::Cell;
use dueling_bandits::evidence::{EqualAnswers, Score, TimedAnswer};
use dueling_bandits::tally::MAX_STEPS;
use dueling_bandits::{Answer, Bandit, Duel, Observation, Outcome, PairCounts, TieRule};
use rankduel_store::events::{ClicksEvent, ControlEvent, Event, OutcomeEvent, PairResult};
use rankduel_store::{LogEntry, Nonce};
use serde::Deserialize as _;

/// Most ties of one entry that a coin decides: a twentieth of a second of work.
pub const COIN_TIES_MAX: u64 = 1_000_000;

/// A log entry that cannot be folded: this program did not write this log for this experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("log entry {position}: {detail}")]
pub struct FoldError {
    /// Position of the entry.
    pub position: u64,
    /// The problem.
    pub detail: String,
}

/// A [`Fold`] while a chunk of the log is applied to it. No policy selects from it until the chunk
/// ends.
#[derive(Debug)]
pub struct Chunk<'a>(&'a mut Fold);

impl Chunk<'_> {
    /// Fold the next entry and return the duel that it answered. On an error nothing has changed.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<Option<OutcomeEvent>, FoldError> {
        self.0.apply_entry(entry)
    }

    /// Position of the newest folded entry.
    pub fn position(&self) -> u64 {
        self.0.state.position
    }

    /// The version of the record after the entries so far.
    pub fn version(&self) -> u64 {
        self.0.state.version
    }

    /// The status, the winner and the archive after the entries so far.
    pub fn lifecycle(&self) -> Lifecycle {
        self.0.state.lifecycle
    }
}

impl Fold {
    /// Fold the next entry. On an error nothing has changed.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), FoldError> {
        self.apply_chunk(|chunk| chunk.apply(entry)).map(drop)
    }

    /// Fold the entries that `fold` applies. Values that only a selection needs are computed once,
    /// at the end.
    pub fn apply_chunk<T>(&mut self, fold: impl FnOnce(&mut Chunk<'_>) -> T) -> T {
        let result = fold(&mut Chunk(self));
        self.run.catch_up();
        result
    }

    fn apply_entry(&mut self, entry: &LogEntry) -> Result<Option<OutcomeEvent>, FoldError> {
        let refuse = |detail: String| FoldError { position: entry.position, detail };
        if entry.position != self.state.position + 1 {
            return Err(refuse(format!("it cannot follow position {}", self.state.position)));
        }
        if !clock::is_a_time(entry.recorded_at) {
            return Err(refuse(format!("it was recorded at {}", entry.recorded_at)));
        }
        let mut answered = None;
        if !self.state.sets_aside(entry) {
            self.check_steps(&entry.event).map_err(refuse)?;
            let before = self.batch_state();
            answered = self.apply_event(entry).map_err(refuse)?;
            let after = self.batch_state();
            if after != before {
                self.state.batches.moved_at = entry.recorded_at;
            }
            if after.0 != before.0 {
                self.state.batches.opened_at = entry.recorded_at;
            }
        }
        self.state.position = entry.position;
        self.state.recorded_at = entry.recorded_at;
        self.state.history.counted(entry.position, entry.recorded_at);
        Ok(answered)
    }

    /// The number of the open batch, and how many of its comparisons are answered.
    fn batch_state(&self) -> (Option<u32>, u64) {
        let batches = self.run.policy().batches();
        batches.map_or((None, 0), |it| (it.number(), it.progress().answered))
    }

    /// Fold the event of an entry, and return the duel that it answered. Until the entry is folded,
    /// `self.state` has the position and the time of the entry before it.
    fn apply_event(&mut self, entry: &LogEntry) -> Result<Option<OutcomeEvent>, String> {
        match &entry.event {
            Event::Outcome(outcome) => {
                self.apply_outcome(entry.nonce, outcome, None)?;
                // a reported outcome replaces the clicks
                self.state.open_pages.take(entry.nonce);
                Ok(Some(*outcome))
            }
            Event::Control(ControlEvent::Clicks(clicks)) => self.apply_clicks(entry.nonce, clicks),
            Event::Control(ControlEvent::Settled {}) => {
                let page = self.state.open_pages.pages().get(&entry.nonce).cloned();
                let page = page.ok_or("it settles nothing")?;
                self.settle(entry.nonce, &page).map(Some)
            }
            Event::Control(event) => self.apply_control(entry, event).map(|()| None),
        }
    }

    /// Fold an event that answers no duel.
    fn apply_control(&mut self, entry: &LogEntry, event: &ControlEvent) -> Result<(), String> {
        let &LogEntry { position, recorded_at, .. } = entry;
        match event {
            ControlEvent::Created { spec } => {
                let own = ExperimentSpec::deserialize(spec).map_err(|error| error.to_string())?;
                if position != 1 || own != self.state.spec {
                    return Err("it creates another experiment".into());
                }
            }
            ControlEvent::Changed { patch, .. } => self.change(patch, position, recorded_at)?,
            ControlEvent::SelfDuels { counts, alone } => {
                let arms = self.state.arms_of(alone)?;
                for &(ranker, _) in counts {
                    self.state.check_ranker(ranker)?;
                }
                for &(ranker, count) in counts {
                    self.state.counts.record_self_duels(ranker.into(), count);
                    self.state.history.shown_alone(ranker.into(), count);
                    // the pages of a concluded experiment are no selections of its policy
                    if !self.state.lifecycle.is_concluded() {
                        self.run.observe_self_duels(ranker.into(), count);
                    }
                }
                self.state.shown_alone(&arms, position);
                self.alone_before_orders(&arms, recorded_at);
                self.state.complete_alone(self.run.cohorts(), recorded_at);
            }
            ControlEvent::BatchResults { batch, part, results } => {
                self.apply_results(*batch, results)?;
                let posts = &mut self.state.batches;
                posts.posted = posts.posted.max(*batch);
                if part.is_none() {
                    posts.posted_whole = posts.posted_whole.max(*batch);
                }
            }
            ControlEvent::CohortsComplete { issued_before, issued, answered } => {
                check_issued(*issued_before)?;
                if answered > issued || *issued > MAX_STEPS {
                    return Err(format!("it says that {answered} of {issued} were answered"));
                }
                self.run.add_duels(Cell { issued: *issued, answered: *answered });
                self.complete(*issued_before, recorded_at);
                self.state.complete_alone(self.run.cohorts(), recorded_at);
            }
            ControlEvent::Values { pages } => self.state.add_values(pages)?,
            ControlEvent::ValuesComplete { issued_before } => {
                check_issued(*issued_before)?;
                if let Some(guardrails) = &mut self.state.guardrails {
                    guardrails.complete(*issued_before);
                }
            }
            ControlEvent::Links(_)
            | ControlEvent::Order(_)
            | ControlEvent::OrderCancelled { .. }
            | ControlEvent::Homes { .. } => {
                self.apply_orders(event, recorded_at)?;
            }
            ControlEvent::Clicks(_) | ControlEvent::Settled {} => {}
        }
        Ok(())
    }

    /// Clicks under the nonce of the duel settle it; clicks under another nonce are kept.
    fn apply_clicks(
        &mut self,
        nonce: Nonce,
        event: &ClicksEvent,
    ) -> Result<Option<OutcomeEvent>, String> {
        self.state.check_ranker(event.first)?;
        self.state.check_ranker(event.second)?;
        check_issued(event.issued_at)?;
        if self.state.methods.version(event.method).is_none() {
            return Err(format!("there is no version {} of the method", event.method));
        }
        let duel = event.duel.as_u128();
        let before = self.state.open_pages.pages().get(&duel);
        let sheet = sheet_of(event, before)?;
        if nonce != duel {
            let &ClicksEvent { first, second, ticket, issued_at, unit, .. } = event;
            self.state.add_answered(duel, [first, second], ticket, issued_at, unit);
            self.state.open_pages.add(duel, event, sheet);
            return Ok(None);
        }
        match ClickedPage::with(before.cloned(), event, sheet) {
            Some(page) => self.settle(duel, &page).map(Some),
            None => Ok(None),
        }
    }

    /// Settle a duel: turn the clicks on its page into its outcome.
    fn settle(&mut self, nonce: Nonce, page: &ClickedPage) -> Result<OutcomeEvent, String> {
        let method = self.state.methods.version(page.method).ok_or("its method is unknown")?;
        let credit = page.credit(&method, self.seed, nonce)?;
        let outcome = page.answered(credit.outcome);
        // where ties count, the mean of an outcome is the score already
        let skips_ties = self.state.spec.ties == TieRule::Skip;
        let score = page.score(&method, &credit, self.seed, nonce).filter(|_| skips_ties);
        self.apply_outcome(nonce, &outcome, score)?;
        let counts =
            !self.state.excluded.has(outcome.unit) && self.state.arm_of(outcome.unit).is_none();
        if outcome.first != outcome.second && counts {
            self.state.page_counts.record(page.method, &outcome, &page.sheet, &credit);
        }
        self.state.open_pages.take(nonce);
        Ok(outcome)
    }

    /// Count the answer of a duel. With a `score`, the verdict counts that instead of the outcome.
    fn apply_outcome(
        &mut self,
        nonce: Nonce,
        outcome: &OutcomeEvent,
        score: Option<Score>,
    ) -> Result<(), String> {
        let &OutcomeEvent { first, second, unit, segment, issued_at, .. } = outcome;
        self.state.check_ranker(first)?;
        self.state.check_ranker(second)?;
        check_issued(issued_at)?;
        self.state.add_answered(nonce, [first, second], outcome.ticket, issued_at, unit);
        let duel = Duel::new(first.into(), second.into());
        if duel.is_self() {
            // its step was counted when it was issued; its answer teaches nothing
            self.state.answered_alone(self.run.cohorts(), unit, issued_at);
            return Ok(());
        }
        if self.state.excluded.has(unit) {
            self.state.excluded.answered();
            return Ok(());
        }
        if self.state.arm_of(unit).is_some() {
            // the unit sees one ranker alone, and such a page can change what it prefers
            return Ok(());
        }
        if let Some(unit) = unit {
            self.state.heavy_units.answered(unit, left_won(outcome));
        }
        if let Some(twin) = self.held_out.filter(|&it| duel.first == it || duel.second == it) {
            // a canary: both sides show the same ranker
            let ranker = if duel.first == twin { duel.second } else { duel.first };
            let (answer, rankers) = (outcome.answer, [ranker, twin]);
            self.state.counts.record_canary(duel, answer, outcome.first_left, rankers);
            self.state.history.shown_alone(ranker, 1);
            return Ok(());
        }
        self.state.counts.record(duel, outcome.answer, outcome.first_left);
        self.state.history.compared(duel, 1);
        let (batch, ticket) = match self.state.excluded.counted_at(outcome.chosen_at) {
            true => (Some(Observation::OPEN_BATCH), 0),
            false => (outcome.batch, outcome.ticket),
        };
        let resolved = self.state.spec.ties.resolve(
            outcome.answer,
            self.seed,
            self.run.policy().tally().steps(),
        );
        let segment = self.state.place_of_segment(segment);
        let answer =
            TimedAnswer { duel, outcome: resolved, score, issued_at, nonce, unit, segment };
        self.run.observe_timed(&answer, batch, ticket, self.state.recorded_at);
        Ok(())
    }

    /// Fold the results of a batch that were counted elsewhere.
    fn apply_results(&mut self, batch: u32, results: &[PairResult]) -> Result<(), String> {
        for result in results {
            self.state.check_pair(result.first, result.second)?;
        }
        self.state.check_ties(results)?;
        for result in results {
            self.apply_result(batch, result);
        }
        let comparisons = results.iter().flat_map(counts_of).map(u64::from).sum();
        self.run.compared(comparisons, self.state.recorded_at);
        Ok(())
    }

    fn apply_result(&mut self, batch: u32, result: &PairResult) {
        let duel = Duel::new(result.first.into(), result.second.into());
        self.state.counts.add(duel, Answer::First, result.first_wins);
        self.state.counts.add(duel, Answer::Second, result.second_wins);
        self.state.counts.add(duel, Answer::Tie, result.ties);
        self.state.history.compared(duel, counts_of(result).into_iter().map(u64::from).sum());
        let (ties, seed) = (self.state.spec.ties, self.seed);
        let is_of_another = self.state.excluded.counted_at(self.state.position);
        let batch = Some(if is_of_another { Observation::OPEN_BATCH } else { batch });
        // ties that all count the same way are folded as one run, not one by one
        let constant = ties.constant();
        let counts = PairCounts {
            duel,
            first_wins: result.first_wins,
            second_wins: result.second_wins,
            ties: if constant.is_some() { 0 } else { result.ties },
        };
        let policy = self.run.policy_mut();
        let mut drawn = [0; 2];
        policy.observe_counts(&counts, batch, &mut |step| {
            let outcome = ties.resolve(Answer::Tie, seed, step);
            drawn[usize::from(outcome == Outcome::Second)] += 1;
            outcome
        });
        if let Some(outcome) = constant {
            let observation = Observation { duel, outcome, batch, ticket: 0 };
            policy.observe_run(&observation, result.ties);
            self.run.count_for_claims(&EqualAnswers::by_outcome(duel, outcome, result.ties));
        }
        let wins = [result.first_wins, result.second_wins];
        for (outcome, nth) in [(Outcome::First, 0), (Outcome::Second, 1)] {
            let count = wins[nth].saturating_add(drawn[nth]);
            self.run.count_for_claims(&EqualAnswers::by_outcome(duel, outcome, count));
        }
    }

    /// An experiment has at most [`MAX_STEPS`] time-steps.
    fn check_steps(&self, event: &Event) -> Result<(), String> {
        let steps = match event {
            Event::Outcome(_) => 1,
            Event::Control(ControlEvent::SelfDuels { counts, .. }) => {
                counts.iter().fold(0, |steps: u64, &(_, count)| steps.saturating_add(count))
            }
            Event::Control(ControlEvent::BatchResults { results, .. }) => {
                results.iter().flat_map(counts_of).map(u64::from).sum()
            }
            Event::Control(_) => 0,
        };
        let before = self.run.policy().tally().steps().max(self.state.history.steps());
        match before.saturating_add(steps) > MAX_STEPS {
            true => Err(format!("it counts {steps} steps, more than an experiment can have")),
            false => Ok(()),
        }
    }
}

impl State {
    /// Whether this answer rests on entries that the log has lost: the clicks of its page, or the
    /// change that introduced its ranker or its method. It was acknowledged and cannot be
    /// understood any more; the log goes on without it.
    pub fn sets_aside(&self, entry: &LogEntry) -> bool {
        let has_page = |duel| self.open_pages.pages().contains_key(&duel);
        let has =
            |first: u16, second: u16| usize::from(first.max(second)) < self.spec.rankers.len();
        // a duel is recorded after the position at which it was selected, unless entries were lost
        match &entry.event {
            Event::Control(ControlEvent::Settled {}) => !has_page(entry.nonce),
            Event::Control(ControlEvent::Clicks(clicks)) => {
                let is_known = has(clicks.first, clicks.second)
                    && self.methods.version(clicks.method).is_some();
                clicks.chosen_at >= entry.position && !is_known
                    || clicks.sheet.is_none() && !has_page(clicks.duel.as_u128())
            }
            Event::Control(ControlEvent::Links(links)) => {
                let is_known =
                    has(links.first, links.second) && self.methods.version(links.method).is_some();
                links.chosen_at >= entry.position && !is_known
            }
            Event::Control(ControlEvent::Homes { units }) => {
                units.iter().any(|it| it.4 >= entry.position && !has(it.1, it.2))
            }
            Event::Outcome(outcome) => {
                outcome.chosen_at >= entry.position && !has(outcome.first, outcome.second)
            }
            Event::Control(_) => false,
        }
    }

    /// Refuse more ties for a coin to decide than [`COIN_TIES_MAX`]: each takes a draw.
    fn check_ties(&self, results: &[PairResult]) -> Result<(), String> {
        match ties_of(results) {
            ties if self.spec.ties.constant().is_none() && ties > COIN_TIES_MAX => Err(format!(
                "it has {ties} ties for a coin to decide; at most {COIN_TIES_MAX} at a time"
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn check_ranker(&self, ranker: u16) -> Result<(), String> {
        let rankers = self.spec.rankers.len();
        if usize::from(ranker) < rankers {
            Ok(())
        } else {
            Err(format!("ranker {ranker} is out of range: the experiment has {rankers} rankers"))
        }
    }

    pub(super) fn check_pair(&self, first: u16, second: u16) -> Result<(), String> {
        self.check_ranker(first)?;
        self.check_ranker(second)?;
        if first == second { Err(format!("ranker {first} is paired with itself")) } else { Ok(()) }
    }
}

fn counts_of(result: &PairResult) -> [u32; 3] {
    [result.first_wins, result.second_wins, result.ties]
}

/// Ties of all results.
pub fn ties_of(results: &[PairResult]) -> u64 {
    results.iter().map(|result| u64::from(result.ties)).sum()
}

/// Whether the left side won; `None` if neither did.
fn left_won(outcome: &OutcomeEvent) -> Option<bool> {
    match outcome.answer {
        Answer::First => Some(outcome.first_left),
        Answer::Second => Some(!outcome.first_left),
        Answer::Tie | Answer::None => None,
    }
}

pub(super) fn check_issued(issued_at: i64) -> Result<(), String> {
    if clock::is_a_time(issued_at) { Ok(()) } else { Err(format!("it was issued at {issued_at}")) }
}
