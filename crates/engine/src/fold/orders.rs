//! Baskets in the fold: links, orders and cancellations, in an experiment that orders decide.

use super::apply::check_issued;
use super::{Fold, State};
use crate::clock;
use crate::experiment_spec::ExperimentSpec;
use crate::tokens::duel_token::DuelToken;
use dueling_bandits::claims::alone::Arm;
use dueling_bandits::evidence::EqualAnswers;
use dueling_bandits::orders::{
    Alone, Baskets, By, Changed, Home, Line, Order, Page, Placed, Rules,
};
use dueling_bandits::{Answer, Duel, Outcome};
use rankduel_store::audience::Segment;
use rankduel_store::events::{ControlEvent, UnitHash};
use rankduel_store::hashes::DocumentHash;
use rankduel_store::order_events::{HomeRow, LinksEvent, OrderEvent};

const NOT_BY_ORDERS: &str = "orders do not decide this experiment";

/// The rules of an experiment that orders decide.
pub(super) fn rules(spec: &ExperimentSpec) -> Option<Rules> {
    let decide_by = spec.decide_by.as_ref()?;
    let by = decide_by.money_cap().map_or(By::Orders, |cap| By::Money { cap });
    let arrival_ms = i64::from(decide_by.arrival_seconds()) * 1000;
    Some(Rules { window_ms: decide_by.window_ms(), arrival_ms, by })
}

/// The baskets before the first entry; `None` where clicks decide.
pub(super) fn start(spec: &ExperimentSpec, seed: u64) -> Option<Box<Baskets>> {
    let baskets = |rules| Box::new(Baskets::new(rules, seed, spec.rankers.len()));
    rules(spec).map(baskets)
}

impl State {
    /// The number of a segment, from 1; 0 if it is not declared.
    pub(super) fn place_of_segment(&self, segment: Option<Segment>) -> u8 {
        let place = |segment| self.spec.segments.iter().position(|&own| own == segment);
        segment.and_then(place).map_or(0, |place| place as u8 + 1)
    }
}

impl Fold {
    /// Fold an event of orders.
    pub(super) fn apply_orders(&mut self, event: &ControlEvent, at: i64) -> Result<(), String> {
        match event {
            ControlEvent::Links(links) => self.link(links),
            ControlEvent::Order(order) => self.order(order),
            ControlEvent::OrderCancelled { order: UnitHash(order) } => {
                let changed = self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?.cancel(*order, at);
                self.follow_basket(&changed);
                Ok(())
            }
            ControlEvent::Homes { units } => self.choose_homes(units),
            _ => Ok(()),
        }
    }

    fn link(&mut self, event: &LinksEvent) -> Result<(), String> {
        let &LinksEvent { first, second, ticket, issued_at, unit: UnitHash(unit), .. } = event;
        self.state.check_pair(first, second)?;
        check_issued(issued_at)?;
        if self.state.methods.version(event.method).is_none() {
            return Err(format!("there is no version {} of the method", event.method));
        }
        let duel = event.duel.as_u128();
        self.state.add_answered(duel, [first, second], ticket, issued_at, Some(unit));
        if self.state.excluded.has(Some(unit)) || self.state.arm_of(Some(unit)).is_some() {
            return Ok(());
        }
        let segment = self.state.place_of_segment(event.segment);
        let page = Page { duel: Duel::new(first.into(), second.into()), issued_at, segment };
        let documents = event.links.iter().map(|&(DocumentHash(name), credit)| (name, credit));
        let documents: Vec<_> = documents.collect();
        let is_known = self.run.cohorts().knows(unit);
        let baskets = self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?;
        let changed = baskets.link(unit, &page, &documents, is_known);
        self.follow_basket(&changed);
        match DuelToken::home_ticket(ticket) {
            // the entry with its home is lost if a server was killed
            Some(ticket) => {
                let home = (UnitHash(unit), first, second, ticket, event.chosen_at, issued_at);
                self.choose_homes(&[home])
            }
            None => Ok(()),
        }
    }

    fn choose_homes(&mut self, units: &[HomeRow]) -> Result<(), String> {
        for &(_, first, second, _, _, at) in units {
            self.state.check_ranker(first)?;
            self.state.check_ranker(second)?;
            check_issued(at)?;
        }
        for &(UnitHash(unit), first, second, ticket, chosen_at, at) in units {
            let baskets = self.state.baskets.as_ref().ok_or(NOT_BY_ORDERS)?;
            let is_excluded = self.state.excluded.has(Some(unit));
            if !baskets.has_homes() || self.run.cohorts().knows(unit) || is_excluded {
                continue;
            }
            let ticket = if self.state.excluded.counted_at(chosen_at) { 0 } else { ticket };
            let pair = (first.min(second), first.max(second));
            let baskets = self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?;
            let changed = baskets.choose_home(unit, Home { pair, at, ticket, chosen_at });
            self.follow_basket(&changed);
        }
        Ok(())
    }

    fn order(&mut self, event: &OrderEvent) -> Result<(), String> {
        let &OrderEvent { order: UnitHash(order), unit: UnitHash(unit), at, .. } = event;
        let is_line = |&(_, value, quantity): &(DocumentHash, f64, u32)| {
            value >= 0.0 && value.is_finite() && (1..=u32::from(u16::MAX)).contains(&quantity)
        };
        if !clock::is_a_time(at) || event.lines.is_empty() || !event.lines.iter().all(is_line) {
            return Err("it is no order".into());
        }
        if self.state.excluded.has(Some(unit)) {
            self.state.excluded.answered();
            return Ok(());
        }
        let line = |&(DocumentHash(document), value, quantity): &(DocumentHash, f64, u32)| Line {
            document,
            value,
            quantity: quantity as u16,
        };
        let order = Order { order, at, lines: event.lines.iter().map(line).collect() };
        let saw_one = self.state.arm_of(Some(unit)).is_some()
            && self.state.alone.as_ref().is_some_and(|alone| alone.has_issued(unit));
        let is_known = saw_one || self.run.cohorts().knows(unit);
        let baskets = self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?;
        if let Placed::Recorded(changed) = baskets.order(unit, order, is_known) {
            self.follow_basket(&changed);
        }
        Ok(())
    }

    /// A basket has changed. The first credit of a unit is an answer.
    fn follow_basket(&mut self, changed: &Changed) {
        if let Some(credited) = &changed.credited {
            let answer = match credited.outcome {
                Outcome::First => Answer::First,
                Outcome::Second => Answer::Second,
                _ => Answer::Tie,
            };
            self.state.counts.add(credited.duel, answer, 1);
            self.state.history.compared(credited.duel, 1);
        }
        self.run.follow(changed);
        if changed.halved {
            self.expect_baskets();
        }
    }

    /// The verdict is expected to count the open baskets.
    pub(super) fn expect_baskets(&mut self) {
        if let Some(baskets) = &self.state.baskets {
            self.run.expect(baskets);
        }
    }

    /// Units of these arms got a page of the leader or of the control alone.
    pub(super) fn alone_before_orders(&mut self, arms: &[(u64, Arm)], at: i64) {
        let winner = self.run.verdict().winner();
        let leader = winner.unwrap_or_else(|| self.run.policy().champion());
        let leader = self.state.lifecycle.winner.map_or(leader, usize::from);
        let State { baskets, spec, excluded, .. } = &mut self.state;
        let Some((baskets, control)) = baskets.as_mut().zip(spec.control_index()) else { return };
        let mut halved = false;
        for &(unit, arm) in arms.iter().filter(|(unit, _)| !excluded.has(Some(*unit))) {
            halved |= baskets.alone(unit, Alone::of(arm, leader, control, at));
        }
        if halved {
            self.expect_baskets();
        }
    }

    /// No answer of a duel issued before this time can come any more, which was found `at` a time.
    pub(super) fn complete(&mut self, issued_before: i64, at: i64) {
        match &mut self.state.baskets {
            None => self.run.complete(issued_before, at),
            Some(baskets) => drop(self.run.close_baskets(baskets, issued_before, at)),
        }
    }

    /// The answers that wait and that the verdict is expected to count; of baskets, with the orders
    /// so far.
    pub fn expected(&self) -> Vec<EqualAnswers> {
        let cohorts = self.run.cohorts();
        match &self.state.baskets {
            None => cohorts.expected(),
            Some(baskets) => {
                let counts = |at: i64| cohorts.verdict_counts(cohorts.start_of_cohort(at));
                let expected = baskets.expected().filter(|&(at, _)| counts(at));
                expected.map(|(_, answer)| answer).collect()
            }
        }
    }

    /// Whether a basket waits to be counted.
    pub fn has_open_baskets(&self) -> bool {
        self.state.baskets.as_ref().is_some_and(|baskets| baskets.oldest().is_some())
    }

    /// The end of the oldest cohort that has an answer or a basket.
    pub fn oldest_cohort_end(&self) -> Option<i64> {
        let (cohorts, baskets) = (self.run.cohorts(), self.state.baskets.as_ref());
        let of_basket = baskets.and_then(|baskets| baskets.oldest());
        let of_basket = of_basket.map(|issued_at| cohorts.next_cohort(issued_at));
        cohorts.oldest_end().into_iter().chain(of_basket).min()
    }

    /// Whether the first page of this unit decides its pair: it has no home, and can count.
    pub(crate) fn may_choose_home(&self, unit: u64) -> bool {
        self.state.baskets.as_ref().is_some_and(|baskets| {
            baskets.has_homes()
                && baskets.home(unit).is_none()
                && !self.run.cohorts().knows(unit)
                && !self.state.excluded.has(Some(unit))
        })
    }

    /// The pair of every page of this unit, or its one ranker; `None` without a home, and once its
    /// basket has closed.
    pub(crate) fn home(&self, unit: u64) -> Option<&Home> {
        self.state.baskets.as_ref()?.home(unit)
    }

    /// Whether the order with this hash is held: it has come and has not counted.
    pub fn holds_order(&self, order: u64) -> bool {
        self.state.baskets.as_ref().is_some_and(|baskets| baskets.holds(order))
    }
}
