//! Which answers the verdict counts, and when: one answer of a unit, in complete cohorts.
//!
//! The evidence of a pair is a supermartingale if each counted answer has the mean of its pair,
//! given everything that was counted before it. Two things break that in production.
//!
//! - *People come back.* Answers of one user depend on each other. Of each unit (a user, a session,
//!   a device) the answer to the duel that was issued first counts, and no other in the whole
//!   experiment. One for each pair would not be enough: the policy selects the next pair after it
//!   has seen the unit's first answer. So an answer that teaches the policy and does not count (it
//!   is late or has no place) makes its unit known as well.
//! - *Winners answer at another speed than losers.* Answers that are counted as they arrive are
//!   then no fair sample. Answers are therefore collected in *cohorts* by the time at which their
//!   duels were issued. A cohort is counted as a whole, once no answer of it can come any more.
//!   Cohorts are counted in the order of issue, so what is counted is always a beginning of the
//!   sequence of issued duels, and no delay decides what belongs to it.
//!
//! Time enters as a number: whoever owns the clock says up to which time of issue cohorts are
//! [complete](Cohorts::complete), and records it. The cohorts are a function of the answers and of
//! these calls; the order in which the answers of one cohort arrive changes nothing.
//!
//! Answers without a unit are counts by pair, and answers with a unit are kept one by one until
//! their cohort is complete. Both are bounded: a cohort keeps the units and the pairs whose hashes
//! are smallest, a few thousand of each. What it leaves out depends neither on who won nor on the
//! order in which answers arrive.
//!
//! # A verdict that starts again
//!
//! Whoever changes the rankers has seen the answers that wait, and the verdict that starts again
//! counts none of them: it counts duels that were issued after the change. Nothing is dropped for
//! that. What waits counts in its turn for the claims that go on, so that no change chooses which
//! answers they count.
//!
//! # What is expected to count
//!
//! A policy that plans for the verdict must know which answers that wait it will count. If answers
//! of one unit wait in several cohorts, only the one in the first of these is *expected* to count.
//! An answer can change what is expected of others: it can be issued before another answer of its
//! unit that arrived sooner, it can take the place of another unit in a full cohort, and it can
//! make its unit known without counting. Such answers are
//! [reported](Added::no_longer_expected). The expectation fails only where the filter of known
//! units takes a new unit for a known one, which is found when the cohort is complete.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Duel;
use crate::evidence::balance::Cell;
use crate::evidence::cohorts::cohort::{
    Cohort, MAP_BYTES, UnitAnswer, UnitPlace, code_of, decoded,
};
use crate::evidence::cohorts::window::Windows;
use crate::evidence::seen_units::SeenUnits;
use crate::rng::mix;

mod admission;
mod cohort;
mod window;

pub use crate::evidence::cohorts::admission::{Added, Admission, Completed, EqualAnswers};
pub use crate::evidence::cohorts::admission::{LeftOut, Reason, TimedAnswer};
pub(crate) use crate::evidence::cohorts::window::Window;

/// The answers that wait, and what was counted of whom.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cohorts {
    /// Answers of duels that were issued before this time come too late.
    complete_until: i64,
    /// By the start of the cohort.
    open: BTreeMap<i64, Cohort>,
    seen: SeenUnits,
    left_out: LeftOut,
    /// Answers that count or wait, those without a winner too: with and without a unit.
    with_unit: u64,
    without_unit: u64,
    /// Duels that were issued in cohorts that the verdict counts, as far as they were
    /// [added](Self::add_duels).
    duels: Cell,
    /// The verdict counts the cohorts from this one on.
    verdict_from: i64,
    windows: Windows,
    /// Where the answers of a unit wait: its mixed hash, and the starts of their cohorts. Follows
    /// from the rest.
    #[serde(skip)]
    places: BTreeSet<(u64, i64)>,
}

impl Cohorts {
    /// Cohorts whose answers come within `window_ms` of the issue. With 0, an answer counts as it
    /// arrives.
    pub fn new(window_ms: i64) -> Self {
        Self { windows: Windows::new(window_ms), ..Self::default() }
    }

    /// Decoded cohorts, complete; `None` if they do not fit this many rankers.
    pub fn restored(self, rankers: usize) -> Option<Self> {
        let is_sound = self.duels.answered <= self.duels.issued
            && self.seen.is_sound()
            && self.windows.is_sound()
            && self.open.values().all(|cohort| cohort.is_sound(rankers));
        is_sound.then_some(())?;
        let place = |(&start, cohort): (&i64, &Cohort)| {
            cohort.units.keys().map(move |&key| (key, start)).collect::<Vec<_>>()
        };
        let places = self.open.iter().flat_map(place).collect();
        Some(Self { places, ..self })
    }

    /// Time within which the answer of a duel that is issued next counts, in milliseconds.
    pub fn window_ms(&self) -> i64 {
        self.windows.newest().ms
    }

    /// The same of a duel that was issued at this time.
    pub fn window_ms_at(&self, issued_at: i64) -> i64 {
        self.windows.at(issued_at).ms
    }

    /// The longest window of a duel that can have answers which are not counted yet.
    pub fn longest_window_ms(&self) -> i64 {
        self.windows.longest_from(self.complete_until)
    }

    /// How many windows there have been.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Duels issued after this time, from the end of a cohort on, have a window of `window_ms`.
    /// Duels issued before keep theirs. No change from or to 0 is possible: answers that count as
    /// they arrive cannot be ordered by their issue any more. Returns whether it was made.
    pub fn change_window(&mut self, window_ms: i64, at: i64) -> bool {
        let is_possible = self.window_ms() > 0 && window_ms > 0;
        if is_possible {
            self.windows.change(window_ms, at, self.complete_until);
        }
        is_possible
    }

    /// Milliseconds of issue that one cohort covers.
    pub fn width_ms(&self) -> i64 {
        self.windows.newest().width_ms()
    }

    /// The start of the cohort of duels issued at this time.
    pub fn start_of_cohort(&self, issued_at: i64) -> i64 {
        self.windows.start_of_cohort(issued_at)
    }

    /// The start of the first cohort whose duels are all issued after this time.
    pub fn next_cohort(&self, at: i64) -> i64 {
        self.windows.end_of_cohort(self.start_of_cohort(at))
    }

    /// The time of issue up to which the windows of all duels have ended now.
    pub fn ended_until(&self, now: i64) -> i64 {
        self.windows.ended_until(now)
    }

    /// When the windows of all duels of the cohort that begins at `start` have ended.
    pub fn window_end_of(&self, start: i64) -> i64 {
        self.windows.end_of(self.windows.end_of_cohort(start))
    }

    /// Every answer of a duel issued before this time has been counted or left out.
    pub fn complete_until(&self) -> i64 {
        self.complete_until
    }

    /// How many answers wait.
    pub fn waiting(&self) -> u64 {
        self.open.values().map(Cohort::answers).sum()
    }

    /// How many answers wait for the verdict, and where the oldest cohort with any begins; `None`
    /// if none does.
    pub fn waiting_for_verdict(&self) -> Option<(u64, i64)> {
        let waiting = self.open.range(self.verdict_from..);
        let (&oldest, _) = waiting.clone().next()?;
        Some((waiting.map(|(_, cohort)| cohort.answers()).sum(), oldest))
    }

    /// The answers that wait and that the verdict is expected to count; equal ones of a pair are
    /// one entry, of whatever segment.
    pub fn expected(&self) -> Vec<EqualAnswers> {
        let mut counts = BTreeMap::new();
        for (_, cohort) in self.open.range(self.verdict_from..) {
            for (answer, count) in cohort.expected() {
                *counts.entry(answer).or_insert(0_u32) += count;
            }
        }
        let answers = |((first, second, code), count): ((u16, u16, u8), u32)| {
            decoded(Duel::new(first.into(), second.into()), code, 0, count)
        };
        counts.into_iter().map(answers).collect()
    }

    /// Estimated bytes in memory: those of the known units, and the answers that wait.
    pub fn bytes(&self) -> usize {
        let place = size_of::<(u64, i64)>() + MAP_BYTES;
        let cohorts = self.open.values().map(Cohort::bytes).sum::<usize>();
        self.seen.bytes() + cohorts + place * self.places.len()
    }

    /// The end of the oldest cohort that has answers.
    pub fn oldest_end(&self) -> Option<i64> {
        self.open.keys().next().map(|&start| self.windows.end_of_cohort(start))
    }

    /// The start of the newest cohort that has answers.
    pub fn newest_start(&self) -> Option<i64> {
        self.open.keys().next_back().copied()
    }

    /// How many answers do not count.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// How many units are known: an answer of each counts, or taught the policy without counting.
    pub fn units(&self) -> u64 {
        self.seen.inserted()
    }

    /// Whether a unit is known, or looks like one that is.
    pub fn knows(&self, unit: u64) -> bool {
        self.seen.contains(unit)
    }

    /// A unit becomes known without an answer: nothing of it that is issued later counts.
    pub fn know(&mut self, unit: u64) {
        self.seen.insert(unit);
    }

    /// The probability that a new unit is taken for a known one.
    pub fn mistake_probability(&self) -> f64 {
        self.seen.mistake_probability()
    }

    /// Answers that counted or wait, those without a winner too: with a unit, and without one.
    pub fn answers(&self) -> (u64, u64) {
        (self.with_unit, self.without_unit)
    }

    /// An answer arrived. One that decides nothing ([`Outcome::Void`](crate::Outcome::Void),
    /// [`Outcome::None`](crate::Outcome::None)) always counts, as a step without evidence.
    pub fn add(&mut self, answer: &TimedAnswer) -> Added {
        let &TimedAnswer { duel, issued_at, unit, .. } = answer;
        let Some(code) = code_of(answer) else {
            return self.admitted(unit.is_some(), Admission::Counted).into();
        };
        if issued_at < self.complete_until {
            return self.leave_out(Reason::Late, unit);
        }
        if self.window_ms() == 0 {
            let admission = match unit {
                Some(unit) if !self.seen.insert(unit) => self.left_out.add(Reason::RepeatedUnit),
                unit => self.admitted(unit.is_some(), Admission::Counted),
            };
            return admission.into();
        }
        if unit.is_some_and(|unit| self.seen.contains(unit)) {
            return self.left_out.add(Reason::RepeatedUnit).into();
        }
        let start = self.start_of_cohort(issued_at);
        if let Some(unit) = unit {
            return self.add_of_unit(start, UnitAnswer::new(unit, answer, code));
        }
        let cohort = self.open.entry(start).or_default();
        let Some(mut displaced) = cohort.count(duel, code, answer.segment) else {
            return self.left_out.add(Reason::Full).into();
        };
        let left_out: u64 = displaced.iter().map(|answers| u64::from(answers.count)).sum();
        self.left_out.full += left_out;
        self.without_unit -= left_out;
        if !self.verdict_counts(start) {
            displaced.clear();
        }
        let admission = self.admitted(false, self.waits(start));
        Added { admission, no_longer_expected: displaced }
    }

    /// Whether the verdict counts the cohort that begins at `start`. The claims count every cohort.
    pub fn verdict_counts(&self, start: i64) -> bool {
        start >= self.verdict_from
    }

    /// The admission of the first answer of its unit in the cohort that begins at `start`.
    fn waits(&self, start: i64) -> Admission {
        match self.verdict_counts(start) {
            true => Admission::Waits,
            false => Admission::WaitsUnexpected,
        }
    }

    /// An answer of a unit that was not counted yet arrived, of the cohort that begins at `start`.
    fn add_of_unit(&mut self, start: i64, answer: UnitAnswer) -> Added {
        let (key, of_verdict) = (mix(answer.unit), self.verdict_counts(start));
        let displaced = match self.open.entry(start).or_default().put(key, answer) {
            UnitPlace::Taken => return self.left_out.add(Reason::RepeatedUnit).into(),
            UnitPlace::Full => return self.leave_out(Reason::Full, Some(answer.unit)),
            UnitPlace::Replaces(other) => {
                self.left_out.add(Reason::RepeatedUnit);
                let no_longer_expected = vec![other.anonymous()];
                return match of_verdict && other.is_expected() {
                    true => Added { admission: Admission::Waits, no_longer_expected },
                    false => Admission::WaitsUnexpected.into(),
                };
            }
            UnitPlace::New { displaced } => displaced,
        };
        let mut added = Added::from(self.waits(start));
        match displaced {
            None => self.with_unit += 1,
            Some(other) => {
                self.left_out.add(Reason::Full);
                self.places.remove(&(mix(other.unit), start));
                let was_expected = of_verdict && other.is_expected();
                let was_expected = was_expected.then(|| other.anonymous());
                added.no_longer_expected.extend(was_expected);
                added.no_longer_expected.extend(self.make_known(other.unit));
            }
        }
        let before = self.places.range((key, i64::MIN)..(key, start)).next();
        if before.is_some() {
            self.stop_expecting(start, key);
            added.admission = Admission::WaitsUnexpected;
        } else {
            let next = self.places.range((key, start)..=(key, i64::MAX)).next().copied();
            let repeat = next.and_then(|(key, start)| self.stop_expecting(start, key));
            added.no_longer_expected.extend(repeat);
        }
        self.places.insert((key, start));
        added
    }

    /// An answer does not count, though the policy has learned from it.
    fn leave_out(&mut self, reason: Reason, unit: Option<u64>) -> Added {
        let no_longer_expected = unit.and_then(|unit| self.make_known(unit)).into_iter().collect();
        Added { admission: self.left_out.add(reason), no_longer_expected }
    }

    /// No answer of this unit counts from here on, not even one that waits. Otherwise an answer
    /// whose duel is open now would count if it arrived sooner, which can depend on who wins it.
    /// Returns the answer that was expected to count until now.
    fn make_known(&mut self, unit: u64) -> Option<EqualAnswers> {
        self.seen.insert(unit);
        let key = mix(unit);
        let &(_, first) = self.places.range((key, i64::MIN)..=(key, i64::MAX)).next()?;
        self.stop_expecting(first, key)
    }

    /// The answer of the unit with this mixed hash in the cohort at `start` is not expected to
    /// count any more. Returns the answer if the verdict was expected to count it.
    fn stop_expecting(&mut self, start: i64, key: u64) -> Option<EqualAnswers> {
        let of_verdict = self.verdict_counts(start);
        let answer = self.open.get_mut(&start)?.units.get_mut(&key)?;
        let was_expected = answer.is_expected();
        answer.set_expected(false);
        (of_verdict && was_expected).then(|| answer.anonymous())
    }

    /// Count duels of the cohorts that are [completed](Self::complete) next, or a sample of them,
    /// answered or not, if the verdict counts all of these cohorts.
    pub fn add_duels(&mut self, duels: Cell) {
        if self.verdict_counts(self.complete_until) {
            self.duels = self.duels.plus(duels);
        }
    }

    /// The share of these duels that were not answered in time; `None` before the first.
    pub fn unanswered(&self) -> Option<f64> {
        let Cell { issued, answered } = self.duels;
        (issued > 0).then(|| (issued - answered) as f64 / issued as f64)
    }

    /// This many answers without a unit were counted without waiting here.
    pub fn counted_elsewhere(&mut self, count: u64) {
        self.without_unit += count;
    }

    fn admitted(&mut self, with_unit: bool, admission: Admission) -> Admission {
        match with_unit {
            true => self.with_unit += 1,
            false => self.without_unit += 1,
        }
        admission
    }

    /// No answer of a duel issued before `until` can come any more. Returns the answers of the
    /// cohorts that end by then, cohort by cohort in the order of issue, each with the time at
    /// which it starts. Later answers of these cohorts are late.
    pub fn complete(&mut self, until: i64) -> Vec<(i64, Vec<Completed>)> {
        let until = self.start_of_cohort(until);
        if until <= self.complete_until {
            return Vec::new();
        }
        self.complete_until = until;
        let later = self.open.split_off(&until);
        let ended = std::mem::replace(&mut self.open, later);
        ended.into_iter().map(|(start, cohort)| (start, self.count(start, cohort))).collect()
    }

    fn count(&mut self, start: i64, mut cohort: Cohort) -> Vec<Completed> {
        let anonymous = cohort.take_pairs().into_iter();
        let expected = self.verdict_counts(start);
        let mut completed: Vec<Completed> =
            anonymous.map(|answers| Completed { answers, counts: true, expected }).collect();
        for (key, answer) in cohort.units {
            self.places.remove(&(key, start));
            let counts = self.seen.insert(answer.unit);
            if !counts {
                self.with_unit -= 1;
                self.left_out.add(Reason::RepeatedUnit);
            }
            let expected = answer.is_expected() && self.verdict_counts(start);
            let answers = answer.anonymous();
            completed.push(Completed { answers, counts, expected });
        }
        completed
    }

    /// The verdict starts again at this time: it counts the cohorts that were issued after it.
    pub fn start_verdict_again(&mut self, at: i64) {
        if self.window_ms() > 0 {
            self.verdict_from = self.next_cohort(at).max(self.complete_until);
            self.duels = Cell::default();
        }
    }
}
