//! Each policy alone: observations of every kind, batches, self-duels, roster changes.

use dueling_bandits::parameters::Setup;
use dueling_bandits::{
    Answer, Duel, InFlight, Observation, Outcome, PairCounts, Policy, PolicySpec, TieRule, step_rng,
};

use super::pin::{Pin, assert_pinned, digest, every_policy, selections};
use super::script::Script;

pub const SETUP: Setup = Setup { rankers: 5, seed: 0x5eed };
const STEPS: u64 = 900;

/// The policy after the script.
pub fn played(spec: &PolicySpec) -> Box<dyn Policy> {
    let mut policy = spec.start(SETUP);
    let fixed = spec.description().fixed_rankers.is_some();
    let mut script = Script::new(1);
    for step in 0..STEPS {
        let rankers = policy.tally().rankers();
        if !fixed && step == 300 {
            policy.enlist().expect("capacity for one more ranker");
        }
        if !fixed && step == 500 {
            policy.retire(3).expect("other rankers remain");
        }
        match script.below(20) {
            0 => policy.observe_self_duels(script.below(rankers), 1 + script.below(9) as u64),
            1 => {
                // a pair that no selection returned, with an arbitrary ticket and batch
                let first = script.below(rankers);
                let second = (first + 1 + script.below(rankers - 1)) % rankers;
                let duel = Duel::new(first, second);
                observe(&mut *policy, duel, Outcome::First, Some(1), 12_345);
            }
            2 => counted_elsewhere(&mut *policy, &mut script),
            _ => {
                let selection = policy.select(&InFlight::new(), &mut step_rng(3, step));
                let duel = selection.duel;
                if duel.is_self() {
                    policy.observe_self_duels(duel.first, 1);
                    continue;
                }
                let outcome = match script.below(20) {
                    0 => Outcome::None,
                    1 => Outcome::Void,
                    2 => Outcome::Half,
                    _ if script.first_wins(duel.first, duel.second) => Outcome::First,
                    _ => Outcome::Second,
                };
                observe(&mut *policy, duel, outcome, selection.batch, selection.ticket);
            }
        }
    }
    policy
}

fn observe(policy: &mut dyn Policy, duel: Duel, outcome: Outcome, batch: Option<u32>, ticket: u64) {
    policy.observe(&Observation { duel, outcome, batch, ticket });
}

/// Fold counts of some pairs of the open batch, or of any pairs.
fn counted_elsewhere(policy: &mut dyn Policy, script: &mut Script) {
    let pairs = policy.batch_pairs();
    let duel =
        if pairs.is_empty() { Duel::new(0, 1) } else { pairs[script.below(pairs.len())].duel };
    let counts = PairCounts {
        duel,
        first_wins: script.below(4) as u32,
        second_wins: script.below(4) as u32,
        ties: script.below(2) as u32,
    };
    let batch = policy.batch();
    policy.observe_counts(&counts, batch, &mut |step| TieRule::Coin.resolve(Answer::Tie, 9, step));
}

#[test]
fn every_policy_folds_and_selects_as_pinned() {
    let found: Vec<_> = every_policy(2000)
        .iter()
        .map(|spec| {
            let policy = played(spec);
            (spec.kind().to_string(), digest(&policy.save()), selections(policy))
        })
        .collect();
    assert_pinned(PINS, &found);
}

const PINS: &[Pin] = &[
    Pin {
        kind: "uniform",
        state: "0a87ad90787b63fe",
        selections: "52125111402000015121544542102024411142444511515045200542501252551205055215505052\
                     51441021452101151001550011115224550215011124025000205252241212125510154444002214\
                     1425401455241044505421222041024454214040",
    },
    Pin {
        kind: "d-ts",
        state: "519891bed8fc5f9b",
        selections: "10000000001000000000000010040000101100000000000014000000000000000000000000100010\
                     00000005000100000000000000010500000000100000000000000401001402010000000400040100\
                     0005000100000000000104100000000500000000",
    },
    Pin {
        kind: "d-ts-plus",
        state: "8ee95c19869b6f9c",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000010500010\
                     00000005000000000000000000010000000000000000000000000020000002010000000400040100\
                     0005000100000200000004000000000000000015",
    },
    Pin {
        kind: "d-ts-verdict",
        state: "d32a490d66607196",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000010500010\
                     00000005000000000000000000010000000000000000000000000020000002010000000400040100\
                     0005000100000200000004000000000000000015",
    },
    Pin {
        kind: "ccb",
        state: "de8cfddeba4feb64",
        selections: "10505040410141202020404001401020014002505050214021505040210240212142415010500250\
                     21415021211050214101015040214041105201105021101041100210210210411010021010540210\
                     2110212110020202210241411021211002412110",
    },
    Pin {
        kind: "scb",
        state: "9fce697225c6e11d",
        selections: "30400214243040021424304002142430400214243040021424304002142430400214243040021424\
                     30400214243040021424304002142430400214243040021424304002142430400214243040021424\
                     3040021424304002142430400214243040021424",
    },
    Pin {
        kind: "pcomp",
        state: "aadd2b00163386ee",
        selections: "24033404141201013412241414031313140314141404343414130223340434340301022403342434\
                     24230412231301030301340203032413340203010412023402122434130404033404041423011303\
                     0313140434130423243412131214012334121414",
    },
    Pin {
        kind: "scomp",
        state: "5f77aacd77b0993e",
        selections: "23202412141310102413241414201314142014141412242414132023241224242010102420242324\
                     24141212231310201210241020202413241020101213102410122424131212202412121423101320\
                     2013141224131223232413131214102324121414",
    },
    Pin {
        kind: "scomp2",
        state: "edf624dee6defa87",
        selections: "12121212121212121212121212121212121212121212121212121212121212121212121212121212\
                     12121212121212121212121212121212121212121212121212121212121212121212121212121212\
                     1212121212121212121212121212121212121212",
    },
    Pin {
        kind: "savage",
        state: "c57bc2d164cc65c1",
        selections: "02122404032312140234240323021404123413230212031424341304233412031304241402231234\
                     03041413240202131223040314342404132434122303021402232434030413141204130324122334\
                     0214243403230204131214020424143403121323",
    },
];
