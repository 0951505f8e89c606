//! The capital that follows the leader, written from `docs/verdict-rule.md`, "The capital that
//! follows the leader".
//!
//! Each stake is kept with what the capital had grown to when it was made.

use std::collections::BTreeMap;

use super::field::Field;

/// `e[x][y]` is `ln E(x≻y)`.
type Evidence<'a> = &'a [Vec<f64>];

/// What is staked against every rival.
#[derive(Debug, Clone)]
pub struct Refuters {
    leader: Option<usize>,
    rivals: Vec<Rival>,
    stakes: u32,
    waiting: f64,
    next_at: u64,
}

#[derive(Debug, Clone)]
struct Rival {
    /// The refuters so far, each with its evidence when it was chosen. The last one is in charge.
    refuters: Vec<(Option<usize>, f64)>,
    /// `ln` of what the evidence of all but the last grew by, and that of witnesses until they were
    /// refuters.
    gained: f64,
    /// `1 - w + w E` of each witness when it became one, by ranker.
    witnesses: BTreeMap<usize, f64>,
    /// Size of each stake, and `ln` of the growth before it.
    stakes: Vec<(f64, f64)>,
}

impl Rival {
    fn refuter(&self) -> Option<usize> {
        self.refuters.last().and_then(|&(refuter, _)| refuter)
    }

    fn growth(&self, e: Evidence, j: usize) -> f64 {
        let now = match self.refuters.last() {
            Some(&(Some(x), since)) => e[x][j] - since,
            _ => 0.0,
        };
        self.gained + now + self.of_witnesses(e, j)
    }

    fn of_witnesses(&self, e: Evidence, j: usize) -> f64 {
        let grown = self.witnesses.iter().map(|(&x, since)| insured(e, x, j) / since);
        libm::log(grown.product())
    }
}

/// `1 - w + w E(x≻j)`.
fn insured(e: Evidence, x: usize, j: usize) -> f64 {
    let w = (1.0 / (e.len() - 1) as f64).min(0.5);
    1.0 - w + w * libm::exp(e[x][j].min(40.0))
}

impl Refuters {
    pub fn new(rankers: usize) -> Self {
        let rival = Rival {
            refuters: vec![(None, 0.0)],
            gained: 0.0,
            witnesses: BTreeMap::new(),
            stakes: vec![(0.3, 0.0)],
        };
        Self {
            leader: None,
            rivals: vec![rival; rankers],
            stakes: 1,
            waiting: 0.7,
            next_at: rankers as u64,
        }
    }

    /// Choose anew if so many comparisons are enough.
    pub fn follow(&mut self, field: &Field, comparisons: u64) {
        if comparisons < self.next_at {
            return;
        }
        let (k, e) = (field.rankers, &field.evidence);
        self.next_at = comparisons + (comparisons / 20).max(k as u64 / 2).max(1);
        let leader = self.leading(field);
        self.leader = Some(leader);
        for j in 0..k {
            let refuter = self.choice(field, leader, j);
            let rival = &mut self.rivals[j];
            if refuter != rival.refuter() {
                let witnesses = rival.of_witnesses(e, j);
                rival.gained = rival.growth(e, j) - witnesses;
                rival.refuters.push((refuter, refuter.map_or(0.0, |x| e[x][j])));
            }
            if let Some(x) = refuter
                && let Some(since) = rival.witnesses.remove(&x)
            {
                rival.gained += libm::log(insured(e, x, j) / since);
            }
            for x in (0..k).filter(|&x| x != j && refuter != Some(x)) {
                if field.wins[x][j] > field.wins[j][x] && e[x][j] >= 0.5 {
                    rival.witnesses.entry(x).or_insert_with(|| insured(e, x, j));
                }
            }
        }
        // at 5 K comparisons, 10 K, 20 K, …
        while self.stakes < 24 && comparisons >= 5 * k as u64 * 2_u64.pow(self.stakes - 1) {
            self.stakes += 1;
            self.waiting /= 2.0;
            for j in 0..k {
                let grown = self.rivals[j].growth(e, j).max(-40.0);
                self.rivals[j].stakes.push((self.waiting, grown));
            }
        }
    }

    /// `X(j)`.
    pub fn capital(&self, e: Evidence, j: usize) -> f64 {
        let rival = &self.rivals[j];
        let growth = rival.growth(e, j).min(40.0);
        let staked = rival.stakes.iter().map(|&(stake, before)| stake * libm::exp(growth - before));
        self.waiting + staked.sum::<f64>()
    }

    /// What `E(x≻j)` is multiplied with in `X(j)`, as if `x` was chosen now.
    pub fn multiplier(&self, e: Evidence, x: usize, j: usize) -> f64 {
        let rival = &self.rivals[j];
        let without = match rival.refuters.last() {
            Some(&(Some(refuter), since)) if refuter == x => {
                rival.gained - since + rival.of_witnesses(e, j)
            }
            _ => rival.growth(e, j) - e[x][j],
        };
        let staked: f64 =
            rival.stakes.iter().map(|&(stake, before)| stake * libm::exp(-before)).sum();
        staked * libm::exp(without.clamp(-40.0, 40.0))
    }

    /// Who won more than half against most others, an even pair counting half.
    fn leading(&self, field: &Field) -> usize {
        let halves = |x: usize| -> usize {
            let others = (0..field.rankers).filter(|&y| y != x);
            others
                .map(|y| match field.wins[x][y].total_cmp(&field.wins[y][x]) {
                    std::cmp::Ordering::Greater => 2,
                    std::cmp::Ordering::Equal => 1,
                    std::cmp::Ordering::Less => 0,
                })
                .sum()
        };
        let most = (0..field.rankers).map(halves).max().unwrap_or(0);
        match self.leader {
            Some(leader) if halves(leader) == most => leader,
            _ => (0..field.rankers).find(|&x| halves(x) == most).unwrap_or(0),
        }
    }

    /// The leader if it is not behind `j`, unless the refuter so far has half a nat more. Else the
    /// refuter so far if it is not behind, else the ranker with the most evidence of those ahead.
    fn choice(&self, field: &Field, leader: usize, j: usize) -> Option<usize> {
        let (wins, e) = (&field.wins, &field.evidence);
        let before = self.rivals[j].refuter().filter(|&x| wins[x][j] >= wins[j][x]);
        if leader != j && wins[leader][j] >= wins[j][leader] {
            let has_more = |&x: &usize| e[x][j] > e[leader][j] + 0.5;
            return before.filter(has_more).or(Some(leader));
        }
        let mut best = None;
        for x in (0..field.rankers).filter(|&x| x != j && wins[x][j] > wins[j][x]) {
            if best.is_none_or(|best: usize| e[x][j] > e[best][j]) {
                best = Some(x);
            }
        }
        before.or(best)
    }
}
