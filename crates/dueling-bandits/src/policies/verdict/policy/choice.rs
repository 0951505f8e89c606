//! The choice of the next duel.

use rand::RngExt;

use super::guard::TRUST;
use super::{Deciding, FEW};
use crate::evidence::Verdict;
use crate::evidence::outlooks::Outlook;
use crate::evidence::plan::Awaited;
use crate::{InFlight, Policy, PolicyRng, Selection};

/// Expected number of uniformly random pairs from step `t` to step `2t`, over `ln 2`. They make
/// every pair met again and again, so that no wrong majority lasts.
const UNIFORM_PAIRS: f64 = 3.0;
/// A proof gets all pages while it takes no more than so many steps, those so far included.
const PATIENCE: f64 = 7e4;
/// Afterwards it gets the more pages, the more steps there were: the explorer would have cost
/// regret on them for nothing (the ski rental problem). But not for ever, so that a hopeless proof
/// costs regret that grows only with the logarithm of time.
const MOST_PATIENCE: f64 = 3e6;
const LEAST_PATIENCE: f64 = 0.05;
/// Share of pages that wait while all that the plan lacks is in flight.
const WAITING: f64 = 0.5;
/// Share of exploration after the verdict.
const EXPLORING: f64 = 0.001;
/// Share of the explorer's duels that come from the records of the rankers, where these agree with
/// the pairs: where at least the second share of clear pairs does. Where at most the first share
/// does, all come from D-TS+.
const BY_RECORDS: f64 = 0.9;
const AGREEMENT: (f64, f64) = (0.75, 0.92);
/// A ranker is behind in a pair if the lead of the other one, squared, is so many times the
/// comparisons.
const BEHIND: f64 = 4.0;

impl Deciding {
    pub(super) fn choose(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if let Some(verdict) = self.tracker.verdict() {
            return self.guarding(verdict, in_flight, rng);
        }
        let steps = self.tally().steps() as f64;
        let active = self.active();
        if rng.random::<f64>() * (steps + 1.0) < UNIFORM_PAIRS && active.len() > 1 {
            let first = rng.random_range(0..active.len());
            let second = rng.random_range(0..active.len() - 1);
            return Selection::of(active[first], active[second + usize::from(second >= first)]);
        }
        let explored = self.explore(in_flight, rng);
        if !explored.duel.is_self() && rng.random::<f64>() >= self.urgency {
            return explored;
        }
        let patience = self.patience(steps);
        if patience < 1.0 && rng.random::<f64>() >= patience {
            return explored;
        }
        self.proving(explored, in_flight, rng)
    }

    /// A duel for exploration: by the records of the rankers or by D-TS+.
    fn explore(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let (none, all) = AGREEMENT;
        let trust = ((self.agreement - none) / (all - none)).clamp(0.0, 1.0);
        if self.is_planning() && rng.random::<f64>() < BY_RECORDS * trust {
            let first = self.records.sampled_best(self.active(), rng);
            if !self.cannot_lead(first) {
                return Selection::of(first, self.records.sampled_best(self.active(), rng));
            }
        }
        self.explorer.select(in_flight, rng)
    }

    /// Whether the ranker is behind in so many pairs that its score cannot reach that of the leader
    /// of the plan.
    fn cannot_lead(&self, x: usize) -> bool {
        let Some(leader) = self.plan.leader().filter(|&leader| leader != x) else { return false };
        let (tally, active) = (self.tally(), self.active());
        let is_behind = |&&y: &&usize| {
            let (won, lost) = (tally.wins(x, y), tally.wins(y, x));
            let lead = lost - won;
            y != x && lead > 0.0 && lead * lead >= BEHIND * (won + lost)
        };
        let losses = active.iter().filter(is_behind).count();
        active.len() - 1 - losses < self.scores[leader] as usize
    }

    /// The duels in flight, and the share of their answers that is expected to count. Answers of
    /// people who come back and pages without a click do not.
    fn awaited<'a>(&self, in_flight: &'a InFlight) -> Awaited<'a> {
        let answers = self.tracker.comparisons();
        let counting = if answers > 0 { (self.counted / answers as f64).min(1.0) } else { 1.0 };
        Awaited { in_flight, counting }
    }

    /// The probability with which a duel goes to the proof. A proof that takes too long gets fewer
    /// duels, but never none, so that it ends. 0 without a plan.
    fn patience(&self, steps: f64) -> f64 {
        if self.plan.leader().is_none() {
            return 0.0;
        }
        let many = self.active().len() as f64 / FEW as f64;
        let share = match self.tracker.target().margin > 0.0 {
            // every proof ends in reasonable time, with many rankers in more
            true => many.max(1.0).sqrt().sqrt(),
            false => many.recip().min(1.0),
        };
        let patience = steps.clamp(PATIENCE, MOST_PATIENCE) * share;
        let ratio = patience / (steps + self.plan.missing());
        if ratio < 1.0 { ratio.powi(3).max(LEAST_PATIENCE * ratio) } else { 1.0 }
    }

    /// The duel for the proof, where the explorer would have selected `explored`.
    fn proving(&self, explored: Selection, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let first = explored.duel.first;
        if self.plan.leader() != Some(first) {
            // the explorer doubts the leader: let the two meet, or leave it to the explorer
            let rival = self.plan.against(first, self.awaited(in_flight));
            if let Some((winner, loser)) = rival.filter(|_| !explored.duel.is_self()) {
                return Selection::of(winner, loser);
            }
            // an explorer that knows more than what counts, and is sure, teaches nothing by itself
            let is_sure = explored.duel.is_self() && self.tracker.leaves_out();
            // among many rankers the explorer seldom proposes the leader first
            let is_doubt =
                self.active().len() <= FEW && !self.plan.needs_losses() && !self.cannot_lead(first);
            if is_doubt && !is_sure {
                return explored;
            }
        }
        match self.plan.draw(self.awaited(in_flight), rng.random()) {
            Some((winner, loser)) => Selection::of(winner, loser),
            None if !self.plan.is_complete() => self.waiting(first, rng),
            None if explored.duel.is_self() => self.checking(explored),
            None => explored,
        }
    }

    /// The plan lacks nothing, and the verdict may only need its next check, which comes after a
    /// few more comparisons. An explorer that is sure of its leader would make none.
    fn checking(&self, explored: Selection) -> Selection {
        let leader = self.plan.leader().unwrap_or(explored.duel.first);
        match self.nearest_rival(leader) {
            Some(rival) => Selection::of(leader, rival),
            None => explored,
        }
    }

    /// All that the plan lacks is in flight. Show one ranker alone, but not always: some of these
    /// duels may never be answered.
    fn waiting(&self, first: usize, rng: &mut PolicyRng) -> Selection {
        if rng.random::<f64>() < WAITING {
            return Selection::of(first, first);
        }
        match self.plan.draw(self.awaited(&InFlight::new()), rng.random()) {
            Some((winner, loser)) => Selection::of(winner, loser),
            None => Selection::of(first, first),
        }
    }

    /// The winner alone, but for a few duels that correct a wrong verdict: those of the explorer,
    /// and those that the [guard](super::guard) asks for. A wrong winner loses its lead by them.
    /// Once it has lost it, the explorer goes on.
    fn guarding(&self, verdict: &Verdict, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let winner = verdict.winner();
        if self.stands(winner) && rng.random::<f64>() >= EXPLORING {
            let since = self.tally().steps() - verdict.steps;
            let rival = self.guard.rival(since, |rival| in_flight.of(winner, rival));
            let rival = rival.or_else(|| self.doubted(winner, since, rng));
            return Selection::of(winner, rival.unwrap_or(winner));
        }
        self.explorer.select(in_flight, rng)
    }

    /// With a margin, a winner within it of a better ranker is right, and would cost regret for
    /// ever. So in time it also meets the rival over which it leads with the least certainty, if it
    /// would not be the best one without that lead: with the probability that it has none. O(K).
    fn doubted(&self, winner: usize, since: u64, rng: &mut PolicyRng) -> Option<usize> {
        if self.tracker.target().margin == 0.0 || since as f64 <= TRUST {
            return None;
        }
        let rivals = self.active().iter().copied().filter(|&y| y != winner);
        let highest = rivals.clone().map(|y| self.scores[y]).max()?;
        let (tally, score) = (self.tally(), self.scores[winner]);
        let uncertain = rivals.filter_map(|y| {
            let (won, lost) = (tally.wins(winner, y), tally.wins(y, winner));
            let is_decisive = highest.max(self.scores[y] + 1) > score - u32::from(won > lost);
            let certainty = (won - lost) / (won + lost).max(1.0).sqrt();
            (won >= lost && is_decisive).then_some((certainty, y, won, lost))
        });
        let (_, rival, won, lost) = uncertain.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let doubt = Outlook::of(lost, won, 0.5).probability();
        (rng.random::<f64>() < doubt).then_some(rival)
    }

    /// The ranker over which `winner` leads with the least evidence. O(K).
    fn nearest_rival(&self, winner: usize) -> Option<usize> {
        let (tally, active) = (self.tally(), self.active());
        let evidence = self.tracker.evidence(tally, active);
        let place = active.binary_search(&winner).ok()?;
        let beaten = (0..active.len())
            .filter(|&y| y != place && evidence.wins(place, y) > evidence.wins(y, place));
        let nearest =
            beaten.min_by(|&x, &y| evidence.ln(place, x).total_cmp(&evidence.ln(place, y)));
        nearest.map(|y| active[y])
    }
}
