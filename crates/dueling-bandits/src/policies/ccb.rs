//! CCB, Copeland Confidence Bound (Zoghi, Karnin, Whiteson, de Rijke, "Copeland Dueling Bandits",
//! NIPS 2015, Algorithm 1). Step numbers are those of `algorithms.md` §3.
//!
//! Steps 4A-4C maintain hypotheses and happen in the fold; steps 5-8 only select. A step of the
//! fold is O(K), except when the hypotheses start over, which is O(K²) and rare.
//!
//! Theorem 11 is about a policy that knows every earlier outcome, after `C(δ)` steps, which `α` near
//! 1/2 puts out of reach; the bound on the expected regret requires `α > 1`. Duels in flight narrow
//! the bounds of step 8 without evidence: a heuristic outside the theorem.

use rand::RngExt;

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::alpha::{ALPHA, DEFAULT_ALPHA, require_alpha};
use crate::policies::bounds::Bounds;
use crate::policies::choose;
use crate::saved_state::{load_state, save_state};
use crate::{
    Bandit, Duel, InFlight, Observation, Policy, PolicyRng, RosterError, Selection, Tally, step_rng,
};

/// Parameters of CCB.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ccb {
    /// Width of the confidence bounds; above 0.5.
    pub alpha: f64,
}

impl Default for Ccb {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA }
    }
}

impl PolicyParameters for Ccb {
    const DESCRIPTION: Description = Description {
        summary: "Copeland confidence bound: optimistic duels that look for the few rankers that \
                  could beat a Copeland winner; for a few dozen rankers.",
        source: "Zoghi, Karnin, Whiteson & de Rijke, Copeland Dueling Bandits, NIPS 2015, \
                 Algorithm 1",
        assumes: "no two rankers are exactly even",
        parameters: &[ALPHA],
        fixed_rankers: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Hypotheses::new(Bounds::new(setup.rankers, self.alpha), setup.seed))
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        Some(Box::new(Hypotheses::from_saved(load_state(state)?, setup, self.alpha)?))
    }
}

#[derive(Debug)]
struct Hypotheses {
    bounds: Bounds,
    seed: u64,
    /// `B`: the rankers that may be a Copeland winner.
    contenders: Vec<bool>,
    /// `B^i`: the rankers that are believed to beat `i`, ascending.
    beaten_by: Vec<Vec<u16>>,
    /// `L̄_C`: the estimated largest number of losses of a Copeland winner; `K` before the first
    /// estimate.
    most_losses: usize,
    /// Whether the newest revision changed nothing. Another revision then changes nothing either
    /// while all bounds stay on the same sides of 1/2. Derived from the other fields.
    is_settled: bool,
    /// The undecided pairs `(i, j)` with `j ∈ B^i` (step 5), ascending. Derived from the other
    /// fields.
    open: Vec<(u16, u16)>,
}

/// The saved state: tally, retired rankers, `B`, `B^i`, `L̄_C`.
type Saved = (Tally, Vec<u16>, Vec<bool>, Vec<Vec<u16>>, usize);

impl Hypotheses {
    fn new(bounds: Bounds, seed: u64) -> Self {
        let mut state = Self {
            bounds,
            seed,
            contenders: Vec::new(),
            beaten_by: Vec::new(),
            most_losses: 0,
            is_settled: false,
            open: Vec::new(),
        };
        state.start_over();
        state
    }

    fn from_saved(saved: Saved, setup: Setup, alpha: f64) -> Option<Self> {
        let (tally, retired, contenders, beaten_by, most_losses) = saved;
        let k = tally.rankers();
        let bounds = Bounds::from_parts(tally, &retired, alpha)?;
        let of_rankers = |set: &Vec<u16>| {
            set.windows(2).all(|pair| pair[0] < pair[1])
                && set
                    .iter()
                    .all(|&j| usize::from(j) < k && bounds.roster().is_active(usize::from(j)))
        };
        let fits = k >= setup.rankers
            && contenders.len() == k
            && (0..k).any(|i| contenders[i] && bounds.roster().is_active(i))
            && beaten_by.len() == k
            && beaten_by.iter().all(of_rankers)
            && most_losses <= k;
        fits.then_some(())?;
        let new = Self::new(bounds, setup.seed);
        let mut state = Self { contenders, beaten_by, most_losses, ..new };
        state.open = (0..k)
            .flat_map(|i| state.beaten_by[i].iter().map(move |&j| (i as u16, j)))
            .filter(|&(i, j)| !state.bounds.is_decided(usize::from(i), usize::from(j)))
            .collect();
        Some(state)
    }

    /// "Reset `B`, `L̄_C` and all `B^k`".
    fn start_over(&mut self) {
        let k = self.bounds.tally().rankers();
        self.contenders.clear();
        self.contenders.extend((0..k).map(|i| self.bounds.roster().is_active(i)));
        self.beaten_by.resize(k, Vec::new());
        self.beaten_by.iter_mut().for_each(Vec::clear);
        self.most_losses = self.bounds.active().len();
        self.is_settled = false;
        self.open.clear();
    }

    fn is_believed_to_beat(&self, j: usize, i: usize) -> bool {
        self.beaten_by[i].binary_search(&(j as u16)).is_ok()
    }

    /// Steps 4A-4C with the current bounds. Returns whether any hypothesis changed.
    fn revise(&mut self, played: Option<Duel>) -> bool {
        if self.is_settled && !self.bounds.moved() {
            return false;
        }
        self.follow_decisions(played);
        let disproven = played.is_some_and(|duel| self.is_disproven(duel));
        if disproven {
            self.start_over(); // 4A
        }
        let removed = self.remove_losers();
        let added = self.add_winners();
        self.is_settled = !(disproven || removed || added);
        !self.is_settled
    }

    /// 4A: `l[i][j] > 1/2` for some `j ∈ B^i`. Only a comparison of the pair itself can cause this.
    fn is_disproven(&self, Duel { first: i, second: j }: Duel) -> bool {
        (self.bounds.beats(i, j) && self.is_believed_to_beat(j, i))
            || (self.bounds.beats(j, i) && self.is_believed_to_beat(i, j))
    }

    /// 4B: remove contenders that certainly have fewer wins than another ranker.
    fn remove_losers(&mut self) -> bool {
        let active = self.bounds.active();
        let most_wins = active.iter().map(|&j| self.bounds.certain_wins(j)).max().unwrap_or(0);
        let mut removed = false;
        let mut left = false;
        for n in 0..active.len() {
            let i = self.bounds.active()[n];
            if !self.contenders[i] {
                continue;
            }
            if self.bounds.possible_wins(i) >= most_wins {
                left = true;
                continue;
            }
            removed = true;
            self.contenders[i] = false;
            if self.beaten_by[i].len() != self.most_losses + 1 {
                let bounds = &self.bounds;
                let beaters =
                    bounds.active().iter().filter(|&&j| bounds.beats(j, i)).map(|&j| j as u16);
                self.beaten_by[i].clear();
                self.beaten_by[i].extend(beaters);
                self.open.retain(|pair| usize::from(pair.0) != i); // all of them are decided
            }
        }
        if !left {
            self.start_over();
        }
        removed || !left
    }

    /// 4C: candidates whose score is known become contenders. Their number of losses becomes
    /// `L̄_C`.
    fn add_winners(&mut self) -> bool {
        let least = self.bounds.least_losses();
        let mut changed = false;
        let mut trimmed = false;
        for n in 0..self.bounds.active().len() {
            let i = self.bounds.active()[n];
            let is_candidate = self.bounds.certain_losses(i) == least;
            if !is_candidate || self.bounds.possible_wins(i) != self.bounds.certain_wins(i) {
                continue;
            }
            changed |=
                !self.contenders[i] || !self.beaten_by[i].is_empty() || self.most_losses != least;
            self.contenders[i] = true;
            self.clear_beaters(i);
            self.most_losses = least; // K - 1 - upper_i
            // all such candidates have the same losses: after the first trim, the others would
            // change nothing
            if !trimmed {
                trimmed = true;
                changed |= self.trim_beaters(i);
            }
        }
        changed
    }

    /// The end of 4C, for each `j ≠ i`: empty a `B^j` that is too small; remove random members from
    /// one that is too large.
    fn trim_beaters(&mut self, i: usize) -> bool {
        let wanted = self.most_losses + 1;
        let mut rng = step_rng(self.seed, self.bounds.tally().steps());
        let mut changed = false;
        for j in (0..self.beaten_by.len()).filter(|&j| j != i) {
            let size = self.beaten_by[j].len();
            if size == 0 || size == wanted {
                continue;
            }
            changed = true;
            if size < wanted {
                self.clear_beaters(j);
                continue;
            }
            let set = &mut self.beaten_by[j];
            for kept in 0..wanted {
                let other = rng.random_range(kept..size);
                set.swap(kept, other);
            }
            set.truncate(wanted);
            set.sort_unstable();
            let set = &self.beaten_by[j];
            self.open.retain(|&(owner, member)| {
                usize::from(owner) != j || set.binary_search(&member).is_ok()
            });
        }
        changed
    }

    fn clear_beaters(&mut self, i: usize) {
        if !self.beaten_by[i].is_empty() {
            self.beaten_by[i].clear();
            self.open.retain(|pair| usize::from(pair.0) != i);
        }
    }

    /// Update `open` for the pairs that the newest step decided or released.
    fn follow_decisions(&mut self, played: Option<Duel>) {
        if let Some(duel) = played {
            self.follow_pair(duel.first, duel.second);
        }
        for n in 0..self.bounds.released().len() {
            let (i, j) = self.bounds.released()[n];
            self.follow_pair(i, j);
        }
    }

    fn follow_pair(&mut self, i: usize, j: usize) {
        for (i, j) in [(i, j), (j, i)] {
            let belongs = !self.bounds.is_decided(i, j) && self.is_believed_to_beat(j, i);
            let pair = (i as u16, j as u16);
            match (self.open.binary_search(&pair), belongs) {
                (Ok(at), false) => {
                    self.open.remove(at);
                }
                (Err(at), true) => self.open.insert(at, pair),
                (Ok(_), true) | (Err(_), false) => {}
            }
        }
    }

    /// Steps 6 and 7.
    fn first_candidate(&self, rng: &mut PolicyRng) -> usize {
        let least = self.bounds.least_losses();
        let optimistic = || {
            self.bounds.active().iter().copied().filter(|&i| self.bounds.certain_losses(i) == least)
        };
        let contenders = || optimistic().filter(|&i| self.contenders[i]);
        let chosen = if contenders().next().is_some() && rng.random_ratio(2, 3) {
            choose::uniform(contenders(), rng)
        } else {
            choose::uniform(optimistic(), rng)
        };
        chosen.unwrap_or(self.bounds.active()[0])
    }

    /// Step 8.
    fn opponent(&self, c: usize, in_flight: &InFlight, rng: &mut PolicyRng) -> usize {
        if rng.random::<bool>() {
            let beaters = self.beaten_by[c].iter().map(|&j| usize::from(j));
            let beaters = beaters.filter(|&j| !self.bounds.beats(j, c));
            if let Some(d) = self.bounds.challenger_among(beaters, c, in_flight, rng) {
                return d;
            }
        }
        let all = self.bounds.active().iter().copied().filter(|&j| !self.bounds.beats(j, c));
        self.bounds.challenger_among(all, c, in_flight, rng).unwrap_or(c)
    }
}

impl Bandit for Hypotheses {
    fn tally(&self) -> &Tally {
        self.bounds.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        // step 5
        if rng.random_ratio(1, 4) && !self.open.is_empty() {
            let (c, d) = self.open[rng.random_range(0..self.open.len())];
            return Selection::of(usize::from(c), usize::from(d));
        }
        let c = self.first_candidate(rng);
        Selection::of(c, self.opponent(c, in_flight, rng))
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        self.revise((!duel.is_self()).then_some(duel));
    }

    /// Each self-duel is one step. Once a self-duel changes no hypothesis, the following ones
    /// change none either: without comparisons bounds only widen, and wider bounds never give a new
    /// reason for a change.
    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        for done in 1..=count {
            self.bounds.skip(1);
            if !self.revise(None) {
                if done < count {
                    self.bounds.skip(count - done);
                    self.follow_decisions(None);
                    self.is_settled &= !self.bounds.moved();
                }
                return;
            }
        }
    }

    fn champion(&self) -> usize {
        self.tally().copeland_leader_among(self.bounds.active())
    }
}

impl Policy for Hypotheses {
    /// A new ranker changes how many losses a Copeland winner has. The hypotheses therefore start
    /// over. (The paper has no such event.)
    fn enlist(&mut self) -> Result<(), RosterError> {
        self.bounds.enlist()?;
        self.start_over();
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        if self.bounds.retire(ranker)? {
            self.start_over();
        }
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        let (tally, retired) = self.bounds.parts();
        save_state(&(tally, retired, &self.contenders, &self.beaten_by, self.most_losses))
    }
}
