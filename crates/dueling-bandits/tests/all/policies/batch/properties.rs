//! Properties that hold for all outcomes, in any order, late or missing.

use dueling_bandits::{
    BatchPair, Duel, InFlight, Observation, Outcome, PairCounts, Policy, PolicyRng, Selection,
};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::super::arena::start;
use super::{ELIMINATIONS, KINDS, answer_batch, arms, needed};

#[derive(Debug, Clone)]
struct Case {
    text: String,
    kind: &'static str,
    rankers: usize,
    horizon: u64,
    batches: u32,
    seed: u64,
}

impl Case {
    fn start(&self) -> Box<dyn Policy> {
        start(&self.text, self.rankers, self.seed)
    }

    /// "At most B rounds", "at most B + 1" and "at most 2B + 1".
    fn most_batches(&self) -> u32 {
        match self.kind {
            "pcomp" => self.batches,
            "scomp" => self.batches + 1,
            _ => 2 * self.batches + 1,
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let kind = prop::sample::select(KINDS.to_vec());
    let elimination = prop::sample::select(ELIMINATIONS.to_vec());
    let estimates = prop::sample::select(vec!["all", "fresh"]);
    (kind, elimination, estimates, 2..9usize, 0..1500u64, 1..8u32, any::<u64>()).prop_map(
        |(kind, elimination, estimates, rankers, extra, batches, seed)| {
            let horizon = rankers as u64 + extra;
            let batches = batches.min(rankers as u32);
            let text = format!(
                "{kind}:horizon={horizon},batches={batches},elimination={elimination},estimates={estimates}"
            );
            Case { text, kind, rankers, horizon, batches, seed }
        },
    )
}

/// Whether the pairs of a batch contain every remaining ranker. r(1) of SCOMP2
/// contains only the seeds, and the cut of the last batch may omit rankers. `asked` includes the
/// batch itself.
fn names_all(case: &Case, pairs: &[BatchPair], asked: u64) -> bool {
    let from_one =
        pairs.len() > 1 && pairs.iter().all(|pair| pair.duel.first == pairs[0].duel.first);
    asked < case.horizon && (case.kind != "scomp2" || from_one)
}

const OUTCOMES: [Outcome; 5] =
    [Outcome::First, Outcome::Second, Outcome::Half, Outcome::Void, Outcome::None];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// For all outcomes, late, lost, tied or without a click: all batches finish within the horizon
    /// and within the bound on their number, and a removed ranker never returns.
    #[test]
    fn batches_finish_within_the_horizon(case in cases(), half in any::<bool>(), delay in 1..200usize) {
        let mut policy = case.start();
        let mut rng = PolicyRng::seed_from_u64(case.seed);
        let strength: Vec<f64> = (0..case.rankers).map(|_| rng.random::<f64>()).collect();
        let mut on_their_way: Vec<Selection> = Vec::new();
        let mut in_flight = InFlight::new();
        let mut asked = 0;
        let mut batch = None;
        let mut still_in: Vec<usize> = (0..case.rankers).collect();
        for _ in 0..60_000 {
            if policy.batch() != batch {
                prop_assert!(policy.batch().is_none_or(|number| number == batch.unwrap_or(0) + 1));
                let Some(number) = policy.batch() else { break };
                batch = Some(number);
                in_flight.clear();
                let pairs = policy.batch_pairs();
                asked += needed(&pairs);
                let named = arms(&pairs);
                prop_assert!(named.iter().all(|arm| still_in.contains(arm)), "batch {number}: {named:?}");
                if names_all(&case, &pairs, asked) {
                    still_in = named;
                }
            }
            let selection = policy.select(&in_flight, &mut rng);
            if selection.batch.is_some() {
                in_flight.add(selection.duel.first, selection.duel.second, 1);
                on_their_way.push(selection);
            } else {
                prop_assert_eq!(selection.duel, Duel::new(policy.champion(), policy.champion()));
            }
            if on_their_way.len() >= delay || selection.batch.is_none() {
                let at = rng.random_range(0..on_their_way.len());
                let Selection { duel, batch, ticket } = on_their_way.swap_remove(at);
                if batch == policy.batch() {
                    in_flight.remove(duel.first, duel.second, 1);
                }
                let wins = rng.random::<f64>() < 0.5 + (strength[duel.first] - strength[duel.second]) / 2.0;
                let outcome = match rng.random_range(0..10) {
                    0 => continue, // lost: it expires and is issued again
                    1 => Outcome::None,
                    2 if half => Outcome::Half,
                    2 => Outcome::Void,
                    _ if wins => Outcome::First,
                    _ => Outcome::Second,
                };
                policy.observe(&Observation { duel, outcome, batch, ticket });
            }
        }
        prop_assert!(policy.batch().is_none(), "batch {:?} never finished", policy.batch());
        prop_assert!(asked <= case.horizon, "{asked} comparisons requested");
        prop_assert!(batch.unwrap_or(0) <= case.most_batches(), "{batch:?} batches");
        prop_assert!(still_in.contains(&policy.champion()));
    }

    /// Without a cycle, the whole horizon is used unless one ranker remains.
    #[test]
    fn even_rankers_are_compared_to_the_horizon(case in cases()) {
        let mut policy = case.start();
        while policy.batch().is_some() {
            let batch = policy.batch();
            for pair in policy.batch_pairs() {
                let counts = PairCounts { duel: pair.duel, first_wins: 0, second_wins: 0, ties: pair.needed };
                policy.observe_counts(&counts, batch, &mut |_| Outcome::Half);
            }
        }
        prop_assert_eq!(policy.tally().steps(), case.horizon);
    }

    /// With outcomes in proportion to their probabilities (rounded in favour of the stronger
    /// ranker), the best ranker of a chain of strengths is never removed.
    #[test]
    fn exact_feedback_never_removes_the_condorcet_winner(case in cases(), raw in prop::collection::vec(0u32..400, 9)) {
        let mut strength: Vec<u32> = raw[..case.rankers].to_vec();
        let winner = (case.seed % case.rankers as u64) as usize;
        strength[winner] = 500;
        let mut policy = case.start();
        let mut asked = 0;
        while policy.batch().is_some() {
            let pairs = policy.batch_pairs();
            asked += needed(&pairs);
            if names_all(&case, &pairs, asked) {
                prop_assert!(arms(&pairs).contains(&winner));
            }
            answer_batch(policy.as_mut(), |pair| {
                let (i, j) = (strength[pair.duel.first], strength[pair.duel.second]);
                let share = |edge: u32| (u64::from(pair.needed) * u64::from(500 + edge)).div_ceil(1000) as u32;
                if i >= j { share(i - j) } else { pair.needed - share(j - i) }
            });
        }
        let champion = policy.champion();
        let one_is_left = asked < case.horizon;
        prop_assert!(champion == winner || !one_is_left, "{champion} remains, expected {winner}");
        if (0..case.rankers).all(|j| j == winner || policy.tally().leads(winner, j)) {
            prop_assert_eq!(champion, winner);
        }
    }

    /// The state does not depend on the order of the outcomes of a batch.
    #[test]
    fn the_order_within_a_batch_does_not_matter(case in cases(), shuffle in any::<u64>()) {
        let mut rng = PolicyRng::seed_from_u64(shuffle);
        let (mut one, mut other) = (case.start(), case.start());
        for _ in 0..4 {
            let Some(batch) = one.batch() else { break };
            let mut answers: Vec<Observation> = Vec::new();
            for pair in one.batch_pairs() {
                for _ in 0..pair.needed {
                    let outcome = match rng.random_range(0..8) {
                        0 => Outcome::Half,
                        1 => Outcome::Void,
                        2 => Outcome::Second,
                        _ => Outcome::First,
                    };
                    answers.push(Observation { duel: pair.duel, outcome, batch: Some(batch), ticket: 0 });
                }
            }
            answers.iter().for_each(|answer| one.observe(answer));
            answers.shuffle(&mut rng);
            answers.iter().for_each(|answer| other.observe(answer));
            prop_assert_eq!(one.save(), other.save());
        }
    }

    /// Counts have the same effect as their comparisons one by one, wherever a batch ends among
    /// them.
    #[test]
    fn counts_equal_one_by_one(
        case in cases(),
        posts in prop::collection::vec((any::<u32>(), any::<bool>(), 0..60u32, 0..60u32, 0..20u32), 0..30),
        tie in prop::collection::vec(prop::sample::select(OUTCOMES.to_vec()), 1..4),
    ) {
        let (mut counted, mut single) = (case.start(), case.start());
        for (number, is_late, first_wins, second_wins, ties) in posts {
            // usually a pair of the open batch, in either order
            let pairs = counted.batch_pairs();
            let pair = pairs.get(number as usize % (pairs.len() + 1));
            let Duel { first, second } = pair.map_or(Duel::new(0, 1), |pair| pair.duel);
            let duel = if number % 2 == 0 { Duel::new(first, second) } else { Duel::new(second, first) };
            let batch = counted.batch().map(|batch| batch - u32::from(is_late && number % 5 == 0));
            let mut tie = |at: u64| tie[at as usize % tie.len()];
            counted.observe_counts(&PairCounts { duel, first_wins, second_wins, ties }, batch, &mut tie);
            let wins = std::iter::repeat_n(Outcome::First, first_wins as usize);
            let losses = std::iter::repeat_n(Outcome::Second, second_wins as usize);
            for outcome in wins.chain(losses) {
                single.observe(&Observation { duel, outcome, batch, ticket: 0 });
            }
            for _ in 0..ties {
                let outcome = tie(single.tally().steps());
                single.observe(&Observation { duel, outcome, batch, ticket: 0 });
            }
            prop_assert_eq!(counted.save(), single.save());
            prop_assert_eq!(counted.champion(), single.champion());
        }
    }
}
