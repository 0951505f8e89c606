//! The estimated effect at the verdict, against the true one.

use dueling_bandits::evidence::Target;
use dueling_bandits::evidence::effect::corrected_win_rate;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, InFlight, Outcome, PolicySpec, Setup, Tally, step_rng};
use rand::RngExt;

const TARGET: Target = Target { confidence: 0.95, margin: 0.01 };

/// Means over experiments, each at its verdict and over all rivals of its winner.
#[derive(Debug, Default)]
struct Means {
    verdicts: f64,
    truth: f64,
    counted: f64,
    corrected: f64,
}

fn at_the_verdict(matrix: &PreferenceMatrix, policy: &str, runs: u64) -> Means {
    let spec = PolicySpec::from_text_with(policy, &[]).expect("a policy");
    let (rankers, evidence) = (matrix.rankers(), LeadEvidence::over(TARGET.margin));
    let mut means = Means::default();
    for run in 0..runs {
        let mut policy = Run::new(spec.start(Setup { rankers, seed: run }), TARGET, 0);
        let mut rng = step_rng(run, 3);
        let winner = (0..50_000).find_map(|_| {
            let selection = policy.select(&InFlight::new(), &mut rng);
            let (first, second) = (selection.duel.first, selection.duel.second);
            if first == second {
                policy.observe_self_duels(first, 1);
                return None;
            }
            let first_wins = rng.random_bool(matrix.win_probability(first, second));
            let outcome = if first_wins { Outcome::First } else { Outcome::Second };
            policy.observe(&selection.observed(outcome));
            policy.verdict().verdict().map(|verdict| verdict.winner())
        });
        let Some(winner) = winner else { continue };
        let tally: &Tally = policy.tally();
        let rivals: Vec<usize> =
            (0..rankers).filter(|&i| i != winner && tally.half_plays(i, winner) > 0).collect();
        let mean = |of: &dyn Fn(usize) -> f64| {
            rivals.iter().map(|&rival| of(rival)).sum::<f64>() / rivals.len() as f64
        };
        means.verdicts += 1.0;
        means.truth += mean(&|rival| matrix.win_probability(winner, rival));
        means.counted += mean(&|rival| tally.mean(winner, rival).expect("they met"));
        means.corrected += mean(&|rival| {
            let (wins, losses) = (tally.wins(winner, rival), tally.wins(rival, winner));
            corrected_win_rate(&evidence, wins, losses).expect("they met")
        });
    }
    for sum in [&mut means.truth, &mut means.counted, &mut means.corrected] {
        *sum /= means.verdicts;
    }
    means
}

/// The standard error of a mean is 0.002 at most.
#[test]
fn the_corrected_win_rate_is_nearer_to_the_truth_than_the_counted_one() {
    for lead in [0.02, 0.05, 0.1, 0.2, 0.3] {
        let matrix = PreferenceMatrix::named(&format!("hard:2:1:{lead}")).unwrap().unwrap();
        let means = at_the_verdict(&matrix, "uniform", 2000);
        println!("two rankers, {lead}: {means:?}");
        let (counted, corrected) = (means.counted - means.truth, means.corrected - means.truth);
        assert!(counted > 0.012, "{lead}: {means:?}");
        assert!(corrected.abs() < 0.6 * counted, "{lead}: {means:?}");
    }
    for name in ["arxiv-6", "arithmetic-8"] {
        let matrix = PreferenceMatrix::named(name).unwrap().unwrap();
        let means = at_the_verdict(&matrix, "d-ts-verdict:margin=0.01", 300);
        println!("{name}: {means:?}");
        let (counted, corrected) = (means.counted - means.truth, means.corrected - means.truth);
        assert!(corrected.abs() < counted.abs(), "{name}: {means:?}");
    }
}

#[test]
fn a_correction_never_changes_sides() {
    let evidence = LeadEvidence::over(0.01);
    assert_eq!(corrected_win_rate(&evidence, 0.0, 0.0), None);
    for (wins, losses) in [(1.0, 0.0), (5.0, 5.0), (7.5, 6.5), (900.0, 20.0), (40_000.0, 39_000.0)]
    {
        let rate = corrected_win_rate(&evidence, wins, losses).expect("they met");
        assert!((0.5..=wins / (wins + losses)).contains(&rate), "{wins} : {losses} is {rate}");
        // a pair that speaks against the winner did not select it
        let lost = corrected_win_rate(&evidence, losses, wins).expect("they met");
        assert!(wins == losses || lost == losses / (wins + losses), "{losses} : {wins} is {lost}");
    }
}
