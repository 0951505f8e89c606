//! Baskets in the fold: links, orders and cancellations, in an experiment that orders decide.

use super::apply::check_issued;
use super::{Fold, State};
use crate::clock;
use crate::experiment_spec::ExperimentSpec;
use dueling_bandits::claims::alone::Arm;
use dueling_bandits::evidence::EqualAnswers;
use dueling_bandits::orders::{Alone, Baskets, By, Credited, Line, Order, Page, Placed, Rules};
use dueling_bandits::{Answer, Duel, Outcome};
use rankduel_store::audience::Segment;
use rankduel_store::events::{ControlEvent, UnitHash};
use rankduel_store::hashes::DocumentHash;
use rankduel_store::order_events::{LinksEvent, OrderEvent};

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
                self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?.cancel(*order, at);
                Ok(())
            }
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
        if !self.counts_unit(unit) || self.state.arm_of(Some(unit)).is_some() {
            return Ok(());
        }
        let segment = self.state.place_of_segment(event.segment);
        let page = Page { duel: Duel::new(first.into(), second.into()), issued_at, segment };
        let documents = event.links.iter().map(|&(DocumentHash(name), credit)| (name, credit));
        let documents: Vec<_> = documents.collect();
        let is_known = self.run.cohorts().knows(unit);
        let baskets = self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?;
        if let Some(credited) = baskets.link(unit, &page, &documents, is_known) {
            self.learn(&credited);
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
        if !self.counts_unit(unit) {
            return Ok(());
        }
        let line = |&(DocumentHash(document), value, quantity): &(DocumentHash, f64, u32)| Line {
            document,
            value,
            quantity: quantity as u16,
        };
        let order = Order { order, at, lines: event.lines.iter().map(line).collect() };
        let is_known = self.run.cohorts().knows(unit);
        let baskets = self.state.baskets.as_mut().ok_or(NOT_BY_ORDERS)?;
        if let Placed::Recorded(Some(credited)) = baskets.order(unit, order, is_known) {
            self.learn(&credited);
        }
        Ok(())
    }

    /// Whether a unit is not excluded. What an excluded one does is noted.
    fn counts_unit(&mut self, unit: u64) -> bool {
        let counts = !self.state.excluded.has(Some(unit));
        if !counts {
            self.state.excluded.answered();
        }
        counts
    }

    /// A unit has its first credit: it is an answer, from which the policy learns.
    fn learn(&mut self, credited: &Credited) {
        let answer = match credited.outcome {
            Outcome::First => Answer::First,
            Outcome::Second => Answer::Second,
            _ => Answer::Tie,
        };
        self.state.counts.add(credited.duel, answer, 1);
        self.state.history.compared(credited.duel, 1);
        self.run.learn(credited);
    }

    /// Units of these arms got a page of the leader or of the control alone.
    pub(super) fn alone_before_orders(&mut self, arms: &[(u64, Arm)], at: i64) {
        let winner = self.run.verdict().winner();
        let leader = winner.unwrap_or_else(|| self.run.policy().champion());
        let leader = self.state.lifecycle.winner.map_or(leader, usize::from);
        let State { baskets, spec, excluded, .. } = &mut self.state;
        let Some((baskets, control)) = baskets.as_mut().zip(spec.control_index()) else { return };
        for &(unit, arm) in arms.iter().filter(|(unit, _)| !excluded.has(Some(*unit))) {
            baskets.alone(unit, Alone::of(arm, leader, control, at));
        }
    }

    /// No answer of a duel issued before this time can come any more.
    pub(super) fn complete(&mut self, issued_before: i64) {
        let at = self.state.recorded_at;
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
                baskets.expected(|at| cohorts.verdict_counts(cohorts.start_of_cohort(at)))
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

    /// Whether the order with this hash is held: it has come and has not counted.
    pub fn holds_order(&self, order: u64) -> bool {
        self.state.baskets.as_ref().is_some_and(|baskets| baskets.holds(order))
    }
}
