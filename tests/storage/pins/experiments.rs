//! A whole experiment under each policy: all outcomes, clicks in pieces, posted batch results, a
//! change of the method, roster changes, and a change of the policy.

use dueling_bandits::run::Run;
use dueling_bandits::{Answer, InFlight, Policy, PolicySpec, Selection, Setup, step_rng};
use interleaving::{self, CreditSheet, CreditSlot, Team};
use rankduel_engine::experiment_spec::{ExperimentSpec, Ranker};
use rankduel_engine::fold::Fold;
use rankduel_engine::tokens::page_payload::sheet_to_text;
use rankduel_store::events::*;
use rankduel_store::*;
use serde_json::json;
use uuid::Uuid;

use super::pin::{Pin, assert_pinned, digest, every_policy, selections};
use super::script::Script;

pub const SEED: u64 = 0xfeed;
const CREATED_AT: i64 = 1_790_000_000_000;
const STEPS: u64 = 400;
const RANKERS: usize = 4;
const SLOTS: u16 = 6;

/// The experiment after its log: its spec with all roster and policy changes, and its state.
pub struct Played {
    pub spec: ExperimentSpec,
    pub log: Vec<LogEntry>,
    pub fold: Fold,
}

fn ranker(number: usize) -> Ranker {
    Ranker { id: format!("ranker-{number}"), description: None }
}

fn experiment(policy: PolicySpec) -> ExperimentSpec {
    let rankers: Vec<_> = (0..RANKERS).map(ranker).collect();
    serde_json::from_value(json!({
        "rankers": rankers, "policy": policy, "ties": "coin", "duel_ttl_seconds": 60, "seed": SEED,
        "watch": 0.02,
        // the default when the pins were made
        "pages": {"interleaving": {"kind": "team-draft", "depth_policy": "min"}},
    }))
    .expect("a spec")
}

fn sheet() -> String {
    let slot = |place: u16| CreditSlot {
        ranks: [u32::from(place) + 1, u32::from(place ^ 1) + 1],
        team: Some([Team::Left, Team::Right, Team::Both][usize::from(place) % 3]),
        competitive: place % 3 < 2,
    };
    let slots = (0..SLOTS).map(slot).collect();
    sheet_to_text(&CreditSheet { depths: [10, 10], informative: true, fell_back: false, slots })
}

fn clicks(selection: Selection, duel: Nonce, method: u32, script: &mut Script) -> Event {
    let mut clicks: Vec<_> =
        (0..script.below(3)).map(|_| (script.below(SLOTS.into()) as u16, 1)).collect();
    clicks.sort_unstable();
    clicks.dedup();
    Event::Control(ControlEvent::Clicks(Box::new(ClicksEvent {
        duel: Uuid::from_u128(duel),
        first: selection.duel.first as u16,
        second: selection.duel.second as u16,
        first_left: duel.is_multiple_of(2),
        batch: selection.batch,
        ticket: selection.ticket,
        chosen_at: 0,
        issued_at: CREATED_AT + (duel % 1000) as i64,
        unit: None,
        segment: None,
        method,
        sheet: Some(sheet()),
        clicks,
    })))
}

/// Writes a log and folds it.
struct Writing {
    fold: Fold,
    log: Vec<LogEntry>,
}

impl Writing {
    fn write(&mut self, nonce: Option<Nonce>, event: Event) {
        let position = self.log.len() as u64 + 1;
        let recorded_at = CREATED_AT + 1000 * position as i64;
        let entry =
            LogEntry { position, nonce: nonce.unwrap_or(position.into()), recorded_at, event };
        self.fold.apply(&entry).expect("an entry that follows");
        self.log.push(entry);
    }
}

/// The experiment after the script, with `policy` from the first entry on.
pub fn played(policy: &PolicySpec) -> Played {
    let mut spec = experiment(policy.clone());
    let fixed = policy.description().fixed_rankers.is_some();
    let mut script = Script::new(2);
    let mut writing = Writing { fold: Fold::start(&spec, SEED, CREATED_AT), log: Vec::new() };
    for step in 0..STEPS {
        let rankers = writing.fold.roster().rankers();
        if step == 100 && !fixed {
            spec = spec.with_enlisted(ranker(rankers));
            let event = ControlEvent::RankerEnlisted {
                ranker: rankers as u16,
                id: format!("ranker-{rankers}"),
            };
            writing.write(None, Event::Control(event));
        }
        if step == 200 && !fixed {
            spec = spec.with_retired(1);
            writing.write(
                None,
                Event::Control(ControlEvent::RankerRetired { ranker: 1, reason: None }),
            );
        }
        if step == 150 {
            let method =
                interleaving::Spec::from_text("probabilistic:verdict=drawn,depth_policy=min")
                    .expect("a method");
            writing.write(None, Event::Control(ControlEvent::Interleaving { version: 2, method }));
        }
        if step == 250 {
            let event = ControlEvent::Status {
                status: Status::Paused,
                winner: None,
                archived: false,
                reason: None,
            };
            writing.write(None, Event::Control(event));
        }
        next(&mut writing, step, &mut script);
    }
    Played { spec, log: writing.log, fold: writing.fold }
}

fn next(writing: &mut Writing, step: u64, script: &mut Script) {
    let selection = writing.fold.policy().select(&InFlight::new(), &mut step_rng(7, step));
    let duel = (1 << 100) + Nonce::from(step);
    let method = writing.fold.methods().len() as u32;
    match script.below(12) {
        0 => {
            let ranker = script.below(writing.fold.roster().rankers()) as u16;
            let counts = vec![(ranker, 1 + script.below(9) as u64)];
            writing
                .write(None, Event::Control(ControlEvent::SelfDuels { counts, alone: Vec::new() }));
        }
        1 => {
            let pieces = script.below(3);
            for _ in 0..pieces {
                let event = clicks(selection, duel, method, script);
                writing.write(None, event);
            }
            match script.below(3) {
                0 => {
                    let event = clicks(selection, duel, method, script);
                    writing.write(Some(duel), event);
                }
                1 if pieces > 0 => {
                    writing.write(Some(duel), Event::Control(ControlEvent::Settled {}))
                }
                _ => {}
            }
        }
        2 => {
            let Some(batch) = writing.fold.policy().batch() else { return };
            let pairs = writing.fold.policy().batch_pairs();
            let open = pairs.iter().filter(|pair| pair.answered < pair.needed);
            let results = open
                .map(|pair| {
                    let needed = pair.needed - pair.answered;
                    let first_wins = script.below(needed as usize + 1) as u32;
                    PairResult {
                        first: pair.duel.first as u16,
                        second: pair.duel.second as u16,
                        first_wins,
                        second_wins: needed - first_wins,
                        ties: script.below(2) as u32,
                    }
                })
                .collect();
            writing.write(None, Event::Control(ControlEvent::BatchResults { batch, results }));
        }
        _ => {
            let (first, second) = (selection.duel.first, selection.duel.second);
            let answer = match script.below(12) {
                0 => Answer::None,
                1 => Answer::Tie,
                _ if script.first_wins(first, second) => Answer::First,
                _ => Answer::Second,
            };
            let chosen_at = writing.fold.position();
            writing.write(
                None,
                Event::Outcome(OutcomeEvent {
                    first: first as u16,
                    second: second as u16,
                    first_left: step.is_multiple_of(2),
                    answer,
                    batch: selection.batch,
                    ticket: selection.ticket,
                    chosen_at,
                    issued_at: CREATED_AT,
                    unit: None,
                    segment: None,
                }),
            );
        }
    }
}

/// The log of a uniform policy that is then replaced by `policy`, which folds the same log from
/// its start.
pub fn after_a_policy_change(policy: &PolicySpec) -> (ExperimentSpec, Fold) {
    let before = PolicySpec::from_text("uniform").expect("a policy");
    let Played { mut spec, mut log, .. } = played(&before);
    if policy.description().fixed_rankers.is_some() {
        // Remove the roster changes from the log.
        log.retain(|entry| {
            let mentions = |ranker: u16| usize::from(ranker) >= RANKERS;
            match &entry.event {
                Event::Outcome(outcome) => !mentions(outcome.first) && !mentions(outcome.second),
                Event::Control(ControlEvent::SelfDuels { counts, .. }) => {
                    !counts.iter().any(|(ranker, _)| mentions(*ranker))
                }
                Event::Control(ControlEvent::Interleaving { .. } | ControlEvent::Status { .. }) => {
                    true
                }
                Event::Control(_) => false,
            }
        });
        spec = experiment(before.clone());
    }
    spec = ExperimentSpec { policy: policy.clone(), former_policies: vec![before], ..spec };
    let event = Event::Control(ControlEvent::Policy { policy: policy.clone() });
    log.push(LogEntry { position: 0, nonce: 1 << 90, recorded_at: CREATED_AT, event });
    let mut fold = Fold::start(&spec, SEED, CREATED_AT);
    for (position, entry) in (1..).zip(log) {
        fold.apply(&LogEntry { position, ..entry }).expect("an entry that follows");
    }
    (spec, fold)
}

/// A copy of the policy of a fold, which goes on with its verdict.
fn policy_of(fold: &Fold, spec: &PolicySpec) -> Box<dyn Policy> {
    let (setup, policy) = (Setup { rankers: RANKERS, seed: SEED }, fold.policy());
    let policy = spec.restore(setup, policy.format(), &policy.save()).expect("its own state");
    Box::new(Run::going_on(policy, fold.roster().clone(), fold.verdict().clone()))
}

#[test]
fn every_experiment_folds_and_selects_as_pinned() {
    let found: Vec<_> = every_policy(500)
        .iter()
        .map(|policy| {
            let Played { spec, log, fold } = played(policy);
            let again = log.iter().fold(Fold::start(&spec, SEED, CREATED_AT), |mut fold, entry| {
                fold.apply(entry).expect("an entry that follows");
                fold
            });
            assert_eq!(
                again.save(),
                fold.save(),
                "{}: with all its rankers in the spec",
                policy.kind()
            );
            (policy.kind().to_string(), digest(&fold.save()), selections(policy_of(&fold, policy)))
        })
        .collect();
    assert_pinned(PINS, &found);
}

#[test]
fn every_policy_takes_over_as_pinned() {
    let found: Vec<_> = every_policy(500)
        .iter()
        .map(|policy| {
            let (_, fold) = after_a_policy_change(policy);
            (policy.kind().to_string(), digest(&fold.save()), selections(policy_of(&fold, policy)))
        })
        .collect();
    assert_pinned(AFTER_A_POLICY_CHANGE, &found);
}

const PINS: &[Pin] = &[
    Pin {
        kind: "uniform",
        state: "c5f76618e67a594b",
        selections: "42034222302000004222433432003033320032333420424034300433402243442204044204404043\
                     42332022343200242002440002224233440304022223024000204343342223024420243333003223\
                     0334302444342044404322322032033444223030",
    },
    Pin {
        kind: "d-ts",
        state: "428fe608b0d58333",
        selections: "20200000000000040220202302040000200002200430000000200000000000000000040200000000\
                     00002202000000000000000200000020200000000000220000000420000402020400000400040420\
                     0000000000000200000030200030000000040043",
    },
    Pin {
        kind: "d-ts-plus",
        state: "cb5cf7945816929e",
        selections: "20204220202220200320202004202020202020200400422004204230220020200420204222200020\
                     20044042200004202000424320200404002003030400424204204220040404002004040404042220\
                     2003000000000200200004420442000420040420",
    },
    Pin {
        kind: "d-ts-verdict",
        state: "e77c57279316193f",
        selections: "03030303030302020303030303040303030403030303030303030403030303030402020302030303\
                     03030202030204020202030202020302030202040202020302020303030202020302020303040302\
                     0203030303030303030303030303040303030303",
    },
    Pin {
        kind: "ccb",
        state: "6d96ca03aa000d31",
        selections: "20342040400340323232424203422032034203322003324232420342320342323240423220030303\
                     32420332322042324203034240324042204203202032202040200320320320402020032020400320\
                     3220323220030303320340402032322003403220",
    },
    Pin {
        kind: "scb",
        state: "5c156f6ad1b3c491",
        selections: "13233001132330011323300113233001132330011323300113233001132330011323300113233001\
                     13233001132330011323300113233001132330011323300113233001132330011323300113233001\
                     1323300113233001132330011323300113233001",
    },
    Pin {
        kind: "pcomp",
        state: "bbc9119b48edde29",
        selections: "11111111111111111111111111111111111111111111111111111111111111111111111111111111\
                     11111111111111111111111111111111111111111111111111111111111111111111111111111111\
                     1111111111111111111111111111111111111111",
    },
    Pin {
        kind: "scomp",
        state: "cbf74d266538b1c7",
        selections: "22222222222222222222222222222222222222222222222222222222222222222222222222222222\
                     22222222222222222222222222222222222222222222222222222222222222222222222222222222\
                     2222222222222222222222222222222222222222",
    },
    Pin {
        kind: "scomp2",
        state: "d04d28fdfc92eab9",
        selections: "33333333333333333333333333333333333333333333333333333333333333333333333333333333\
                     33333333333333333333333333333333333333333333333333333333333333333333333333333333\
                     3333333333333333333333333333333333333333",
    },
    Pin {
        kind: "savage",
        state: "42af7c6d6b6e4c02",
        selections: "01121323021302010312230113231203020323120102130312011302231312012303020000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
];

const AFTER_A_POLICY_CHANGE: &[Pin] = &[
    Pin {
        kind: "uniform",
        state: "0e5fa342ca4abde3",
        selections: "42034222302000004222433432003033320032333420424034300433402243442204044204404043\
                     42332022343200242002440002224233440304022223024000204343342223024420243333003223\
                     0334302444342044404322322032033444223030",
    },
    Pin {
        kind: "d-ts",
        state: "a5d896cc389fa938",
        selections: "20000000000200000220200002000000000002200020300000200000230000020000000222000000\
                     00002002000000200000000200000020000200020000000020000024000002020000000000000020\
                     0000000000000200000030000200000000000020",
    },
    Pin {
        kind: "d-ts-plus",
        state: "018e1d71a190cbb4",
        selections: "20000000000200000200200002000000000002200030000000200030000000000000000222000000\
                     00002002000000000000003000000020000000000000000000000024000002020000000000000020\
                     0000000000000200000033000000000000000020",
    },
    Pin {
        kind: "d-ts-verdict",
        state: "ef5bb56d28a9fe07",
        selections: "02020202020203030202020202020202020302020202020202020302020202020204030203020202\
                     02020303020304030303020303030203020303040303020302030303030303030303030303040303\
                     0203030303030303030303030303020303030303",
    },
    Pin {
        kind: "ccb",
        state: "475ff2074d48326e",
        selections: "20302002300224303030303002022430022002302402303030300202300220303024303024020202\
                     02240224202002202002020224200202200202202020202020200220020220022020022020020420\
                     0420200420020204040420202020202004042020",
    },
    Pin {
        kind: "scb",
        state: "50c368c02fe743eb",
        selections: "23300113233001132330011323300113233001132330011323300113233001132330011323300113\
                     23300113233001132330011323300113233001132330011323300113233001132330011323300113\
                     2330011323300113233001132330011323300113",
    },
    Pin {
        kind: "pcomp",
        state: "60648d8ceca922df",
        selections: "13011301131201011312131212011212130112131212131312130101010123230201012302232323\
                     23130303131201020201230102022312230102010303012301032323120303022303021313011202\
                     0212120323120313232303120312011323031313",
    },
    Pin {
        kind: "scomp",
        state: "cfca829a8ea99566",
        selections: "13011301131201011312131212011212130112131212131312130101010113130201011302131313\
                     13120203120301020201130102021303130102010203011301031313030202021302021212010302\
                     0203120213030212131303030312011213031212",
    },
    Pin {
        kind: "scomp2",
        state: "4c2e74b954669676",
        selections: "01010101010101010101030202010202030102030202030302020103030203030101010301010101\
                     01010101010101010101010101010101010101010101010301020303020202010302010303010201\
                     0102020203020203030302020202010303020303",
    },
    Pin {
        kind: "savage",
        state: "c6f7de745b682daf",
        selections: "13131213121313121312131213121301121201130113120113121213011312010113120112130201\
                     12131202011313120201130112020301130212120201031313030102120213120301031213010201\
                     2313030212130201032312010302122313120201",
    },
];
