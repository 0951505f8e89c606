//! CCB against a plain transcription of its algorithm.

use rand::RngExt;
use rankduel::policy::{Chance, Duel, InFlight, Outcome, Policy, PolicySpec, Tally, fold_chance};

use super::support::{
    A, C, D, Plain, answer, assert_same_distribution, chance, feed, frequencies, selections, start,
};

const SEED: u64 = 5;

/// The state of `algorithms.md` §3 and its steps, with every bound from scratch.
#[derive(Debug, Clone)]
struct Transcription {
    plain: Plain,
    seed: u64,
    contenders: Vec<bool>,
    beaten_by: Vec<Vec<usize>>,
    most_losses: usize,
    /// Resets by 4A, by 4B, removals, sets dropped, sets thinned.
    happened: [u32; 5],
}

impl Transcription {
    fn new(plain: Plain, seed: u64) -> Self {
        let k = plain.wins.len();
        Self {
            contenders: vec![true; k],
            beaten_by: vec![Vec::new(); k],
            most_losses: k,
            plain,
            seed,
            happened: [0; 5],
        }
    }

    fn reset(&mut self) {
        *self = Self { happened: self.happened, ..Self::new(self.plain.clone(), self.seed) };
    }

    fn upper_score(&self, i: usize) -> usize {
        self.plain.active().iter().filter(|&&j| j != i && self.plain.upper(i, j) >= 0.5).count()
    }

    fn lower_score(&self, i: usize) -> usize {
        self.plain.active().iter().filter(|&&j| j != i && self.plain.lower(i, j) >= 0.5).count()
    }

    fn candidates(&self) -> Vec<usize> {
        Plain::best(&self.plain.active(), |i| self.upper_score(i))
    }

    fn step_4(&mut self) {
        let k = self.plain.wins.len();
        // A
        let disproven = (0..k).any(|i| self.beaten_by[i].iter().any(|&j| self.plain.lower(i, j) > 0.5));
        if disproven {
            self.happened[0] += 1;
            self.reset();
        }
        // B
        for i in 0..k {
            if self.contenders[i] && (0..k).any(|j| self.upper_score(i) < self.lower_score(j)) {
                self.happened[2] += 1;
                self.contenders[i] = false;
                if self.beaten_by[i].len() != self.most_losses + 1 {
                    self.beaten_by[i] = (0..k).filter(|&j| self.plain.upper(i, j) < 0.5).collect();
                }
            }
        }
        if !self.contenders.contains(&true) {
            self.happened[1] += 1;
            self.reset();
        }
        // C
        let mut chance = fold_chance(self.seed, self.plain.steps);
        for i in self.candidates() {
            if self.upper_score(i) != self.lower_score(i) {
                continue;
            }
            self.contenders[i] = true;
            self.beaten_by[i].clear();
            self.most_losses = k - 1 - self.upper_score(i);
            let wanted = self.most_losses + 1;
            for j in (0..k).filter(|&j| j != i) {
                let size = self.beaten_by[j].len();
                if size < wanted {
                    self.happened[3] += u32::from(size > 0);
                    self.beaten_by[j].clear();
                } else if size > wanted {
                    self.happened[4] += 1;
                    let set = &mut self.beaten_by[j];
                    for kept in 0..wanted {
                        let other = chance.random_range(kept..size);
                        set.swap(kept, other);
                    }
                    set.truncate(wanted);
                    set.sort_unstable();
                }
            }
        }
    }

    /// Steps 5-8.
    fn select(&self, chance: &mut Chance) -> Duel {
        let plain = &self.plain;
        let arms = plain.active();
        let k = arms.len();
        let mut open = Vec::new();
        for i in 0..k {
            for &j in &self.beaten_by[i] {
                if plain.lower(i, j) <= 0.5 && 0.5 <= plain.upper(i, j) {
                    open.push(Duel::new(i, j));
                }
            }
        }
        if chance.random_bool(0.25) && !open.is_empty() {
            return open[chance.random_range(0..open.len())];
        }
        let mut candidates = self.candidates();
        let both: Vec<_> = candidates.iter().copied().filter(|&i| self.contenders[i]).collect();
        if !both.is_empty() && chance.random_bool(2.0 / 3.0) {
            candidates = both;
        }
        let c = candidates[chance.random_range(0..candidates.len())];
        let legal = |set: &[usize]| -> Vec<usize> {
            set.iter().copied().filter(|&j| plain.lower(j, c) <= 0.5).collect()
        };
        let mut opponents = if chance.random_bool(0.5) { legal(&self.beaten_by[c]) } else { legal(&arms) };
        if opponents.is_empty() {
            opponents = legal(&arms);
        }
        let mut best = Plain::best(&opponents, |j| plain.upper(j, c));
        if best.len() > 1 {
            best.retain(|&d| d != c);
        }
        Duel::new(c, best[chance.random_range(0..best.len())])
    }

    fn assert_is_state_of(&self, policy: &dyn Policy) {
        // tally, retired rankers, B, B^i, L_C
        type Saved = (Tally, Vec<u16>, Vec<bool>, Vec<Vec<u16>>, usize);
        let (tally, _, contenders, beaten_by, most_losses): Saved =
            postcard::from_bytes(&policy.save()).unwrap();
        let beaten_by: Vec<Vec<usize>> =
            beaten_by.iter().map(|set| set.iter().map(|&j| usize::from(j)).collect()).collect();
        assert_eq!(tally.steps(), self.plain.steps);
        assert_eq!(contenders, self.contenders, "B at step {}", self.plain.steps);
        assert_eq!(beaten_by, self.beaten_by, "B^i at step {}", self.plain.steps);
        assert_eq!(most_losses, self.most_losses, "L_C at step {}", self.plain.steps);
    }
}

/// Fold `steps` lumps of duels, half of the policy's own choice and half at random, into both; compare at each step. The
/// preferences change every `lasting` steps, so that what was believed is disproven.
fn fold_both(k: usize, steps: usize, lasting: usize, seed: u64) -> (Box<dyn Policy>, Transcription) {
    let mut policy = start("ccb", k, SEED);
    let mut plain = Transcription::new(Plain::new(k, 0.51), SEED);
    let mut chance = chance(seed);
    let mut matrix = Vec::new();
    for step in 0..steps {
        if step % lasting == 0 {
            matrix = random_matrix(k, &mut chance);
        }
        let duel = if chance.random_bool(0.5) {
            policy.select(&InFlight::new(), &mut chance).duel
        } else {
            Duel::new(chance.random_range(0..k), chance.random_range(0..k))
        };
        // comparisons come in lumps, or little would ever be decided
        let (count, outcome) = match chance.random_range(0..10) {
            _ if duel.is_self() => (chance.random_range(1..60), Outcome::None),
            0 => (1, Outcome::Half),
            1 => (1, Outcome::None),
            _ if chance.random_bool(matrix[duel.first][duel.second]) => {
                (chance.random_range(1..9), Outcome::First)
            }
            _ => (chance.random_range(1..9), Outcome::Second),
        };
        for _ in 0..count {
            plain.plain.record(duel, outcome);
            plain.step_4();
            if !duel.is_self() {
                policy.observe(&answer(duel.first, duel.second, outcome));
                plain.assert_is_state_of(policy.as_ref());
            }
        }
        if duel.is_self() {
            policy.observe_self_duels(duel.first, count);
            plain.assert_is_state_of(policy.as_ref());
        }
    }
    (policy, plain)
}

fn random_matrix(k: usize, chance: &mut Chance) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.5; k]; k];
    for (i, j) in (0..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
        matrix[i][j] = [0.05, 0.3, 0.45, 0.55, 0.7, 0.95][chance.random_range(0..6)];
        matrix[j][i] = 1.0 - matrix[i][j];
    }
    matrix
}

/// Lumps of duels: winner, loser, wins.
type Script = &'static [(usize, usize, u32)];

/// Rankers and logs that lead to what random logs seldom meet.
const SCRIPTS: &[(usize, Script)] = &[
    // 0 beats all; once 1 has beaten it in turn, 0, 1 and 2 lose once each and sets of one are too small
    (4, &[(2, 1, 20), (2, 3, 20), (1, 3, 20), (0, 1, 20), (0, 2, 20), (0, 3, 20), (1, 0, 60), (3, 0, 60)]),
    // 0 is the only contender; where trimming has left it out of the sets of 1 and 3, both beat it in turn, and then
    // 1, which is no contender, overtakes it
    (
        5,
        &[
            (2, 1, 20),
            (1, 3, 20),
            (0, 1, 20),
            (0, 2, 20),
            (0, 3, 20),
            (0, 4, 20),
            (1, 0, 60),
            (3, 0, 60),
            (1, 4, 20),
        ],
    ),
];

#[test]
fn the_fold_is_the_plain_transcription() {
    let mut happened = [0; 5];
    for seed in 0..8 {
        let (_, plain) = fold_both(3 + seed as usize % 3, 400, 80, seed);
        (0..5).for_each(|n| happened[n] += plain.happened[n]);
    }
    for seed in 0..8 {
        for (k, script) in SCRIPTS {
            let mut policy = start("ccb", *k, seed);
            let mut plain = Transcription::new(Plain::new(*k, 0.51), seed);
            for &(winner, loser, count) in *script {
                for _ in 0..count {
                    policy.observe(&answer(winner, loser, Outcome::First));
                    plain.plain.record(Duel::new(winner, loser), Outcome::First);
                    plain.step_4();
                    plain.assert_is_state_of(policy.as_ref());
                }
            }
            (0..5).for_each(|n| happened[n] += plain.happened[n]);
        }
    }
    assert!(happened.iter().all(|&count| count > 0), "an untested case: {happened:?}");
}

#[test]
fn selects_like_the_plain_transcription() {
    const DRAWS: usize = 8_000;
    for seed in 0..6 {
        let k = 3 + seed as usize % 4;
        let (policy, plain) = fold_both(k, 20 * (seed as usize + 1), 400, 300 + seed);
        let mut chance = chance(31);
        let expected = frequencies(k, DRAWS, || plain.select(&mut chance));
        let found = selections(policy.as_ref(), DRAWS, 32);
        assert_same_distribution(&expected, &found, &format!("matrix {seed}"));
    }
}

#[test]
fn worked_matrices() {
    // A: every pair is undecided, so all are candidates and contenders; the challengers are RUCB's
    let (counts, self_duels) = A;
    let mut policy = start("ccb", 4, SEED);
    feed(policy.as_mut(), counts, self_duels);
    let found = selections(policy.as_ref(), 4_000, 41);
    for (c, d) in [(0, 3), (1, 3), (2, 0), (3, 2)] {
        let count = f64::from(found[c * 4 + d]);
        assert!((count - 1_000.0).abs() < 4.75 * 750_f64.sqrt(), "({c}, {d}) {count} times");
    }
    // C: 2 is the only optimistic winner and its bounds leave nobody, so it duels itself
    let (counts, self_duels) = C;
    let mut policy = start("ccb", 4, SEED);
    feed(policy.as_mut(), counts, self_duels);
    let found = selections(policy.as_ref(), 1_000, 42);
    assert!(found[2 * 4 + 2] > 0);
    assert!((0..4).filter(|&c| c != 2).all(|c| found[2 * 4 + c] == 0), "{found:?}");
    assert_eq!(policy.champion(), 2);
    let (counts, self_duels) = D;
    let mut policy = start("ccb", 4, SEED);
    feed(policy.as_mut(), counts, self_duels);
    assert_eq!(policy.champion(), 2);
}

#[test]
fn duels_in_flight_count_in_the_challenger_s_radius() {
    let (counts, self_duels) = A;
    let mut policy = start("ccb", 4, SEED);
    feed(policy.as_mut(), counts, self_duels);
    let challengers = |in_flight: &InFlight| {
        let mut chance = chance(43);
        let duels = (0..200).map(|_| policy.select(in_flight, &mut chance).duel);
        let mut seen: Vec<_> = duels.filter(|duel| duel.first == 0).map(|duel| duel.second).collect();
        seen.dedup();
        seen
    };
    let mut in_flight = InFlight::new();
    assert_eq!(challengers(&in_flight), [3]);
    // u[3][0] = 1/2 + sqrt(2.088116 / (8 + pending)) falls below u[1][0] = 0.667145 at 67 in flight
    in_flight.add(0, 3, 66);
    assert_eq!(challengers(&in_flight), [3]);
    in_flight.add(3, 0, 1);
    assert_eq!(challengers(&in_flight), [1]);
}

#[test]
fn alpha_is_above_one_half() {
    for kind in ["d-ts", "d-ts-plus", "ccb"] {
        for (alpha, valid) in
            [("0.5", false), ("-1", false), ("0.500001", true), ("2", true), ("1e999", false)]
        {
            let spec = PolicySpec::from_text(&format!("{kind}:alpha={alpha}"));
            let result = spec.and_then(|spec| spec.validate(4));
            assert_eq!(result.is_ok(), valid, "{kind} with alpha {alpha}: {result:?}");
        }
    }
}
