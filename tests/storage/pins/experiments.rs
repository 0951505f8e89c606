//! A whole experiment under each policy: all outcomes, clicks in pieces, posted batch results, a
//! change of the method, roster changes, and a change of the policy.

use dueling_bandits::{Answer, InFlight, Policy, PolicySpec, Selection, Setup, TieRule, step_rng};
use interleaving::{self, CreditSheet, CreditSlot, Team};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::experiment_spec::Ranker;
use rankduel_engine::fold::Fold;
use rankduel_engine::page_rules::PageRules;
use rankduel_engine::tokens::page_payload::sheet_to_text;
use rankduel_store::events::*;
use rankduel_store::*;
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
    ExperimentSpec {
        rankers: (0..RANKERS).map(ranker).collect(),
        policy,
        ties: TieRule::Coin,
        duel_ttl_seconds: 60,
        answer_window_seconds: 0,
        seed: Some(SEED),
        conclude_at: None,
        former_policies: Vec::new(),
        roster_changes: Default::default(),
        exclusions: Vec::new(),
        pages: PageRules {
            // the default when the pins were made
            interleaving: interleaving::Spec::from_text("team-draft:depth_policy=min")
                .expect("a method"),
            ..PageRules::default()
        },
    }
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
            writing.write(None, Event::Control(ControlEvent::RankerRetired { ranker: 1 }));
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
            writing.write(None, Event::Control(ControlEvent::SelfDuels { counts }));
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
                Event::Control(ControlEvent::SelfDuels { counts }) => {
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

/// A copy of the policy of a fold.
fn policy_of(fold: &Fold, spec: &PolicySpec) -> Box<dyn Policy> {
    let (setup, policy) = (Setup { rankers: RANKERS, seed: SEED }, fold.policy());
    spec.restore(setup, policy.format(), &policy.save()).expect("its own state")
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
        state: "a2c303733e77e270",
        selections: "42034222302000004222433432003033320032333420424034300433402243442204044204404043\
                     42332022343200242002440002224233440304022223024000204343342223024420243333003223\
                     0334302444342044404322322032033444223030",
    },
    Pin {
        kind: "d-ts",
        state: "e13eb38b5b75d258",
        selections: "20200000000000040220202302040000200002200430002200200000000000020000040200000000\
                     42004202200000200000000200000020200200020002220020002020000402020400040400040420\
                     0000000200000200000230220200000020040043",
    },
    Pin {
        kind: "d-ts-plus",
        state: "fc8ebf6cd1f3c6d9",
        selections: "20204220202220200320202004202020202020200420422004204222220020200420204222200024\
                     20044242200004204200404322222220202040022004402420202020040404222004042320044220\
                     2220042042200200200220200442004220220342",
    },
    Pin {
        kind: "d-ts-verdict",
        state: "2a7fd536d108c30c",
        selections: "02040202040202020204040202030203020204020202040202040404040202020302020304040204\
                     02020202020402020202020202020202020404020203020404020402030402040204020402040202\
                     0202020202020204020204020404040204040402",
    },
    Pin {
        kind: "ccb",
        state: "01d448b8af4baa05",
        selections: "20342040400340343434404003402034034003342003344034400340340340343440403420030303\
                     34400334342040344003034040344040204003202034202040200320340320402020032020400320\
                     3420343420030303340340402034342003403420",
    },
    Pin {
        kind: "scb",
        state: "4cd069b0a9c159bf",
        selections: "13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     1313131313131313131313131313131313131313",
    },
    Pin {
        kind: "pcomp",
        state: "74b407758e0fed17",
        selections: "11111111111111111111111111111111111111111111111111111111111111111111111111111111\
                     11111111111111111111111111111111111111111111111111111111111111111111111111111111\
                     1111111111111111111111111111111111111111",
    },
    Pin {
        kind: "scomp",
        state: "248d85587d3bc188",
        selections: "22222222222222222222222222222222222222222222222222222222222222222222222222222222\
                     22222222222222222222222222222222222222222222222222222222222222222222222222222222\
                     2222222222222222222222222222222222222222",
    },
    Pin {
        kind: "scomp2",
        state: "227abad76e5a3edd",
        selections: "33333333333333333333333333333333333333333333333333333333333333333333333333333333\
                     33333333333333333333333333333333333333333333333333333333333333333333333333333333\
                     3333333333333333333333333333333333333333",
    },
    Pin {
        kind: "savage",
        state: "fccb12cab8bedc8b",
        selections: "01020102231303030113012323021313230223232302010123130323010201010203030102010101\
                     01230213231303020203010302020113010302030213030103130101130202020102022323031302\
                     0213230201130223010113131323032301132323",
    },
];

const AFTER_A_POLICY_CHANGE: &[Pin] = &[
    Pin {
        kind: "uniform",
        state: "d4b9f8bd0edc5853",
        selections: "42034222302000004222433432003033320032333420424034300433402243442204044204404043\
                     42332022343200242002440002224233440304022223024000204343342223024420243333003223\
                     0334302444342044404322322032033444223030",
    },
    Pin {
        kind: "d-ts",
        state: "8c0bfaf94e4a57b4",
        selections: "20000000000000000220200002000000000002200020000000200000000000020000000222000000\
                     00002002000000200000000200000020000200020002000020002024000002020000000200000024\
                     0000000200000200000230000200000000000023",
    },
    Pin {
        kind: "d-ts-plus",
        state: "37753669eb59d9d7",
        selections: "20000000000000000200200002000000000002200030000000200030000000020000000222000000\
                     00002002000000200000000200000020000200020002000002002024000002020000000200000024\
                     0000000200000200000230000200000000000023",
    },
    Pin {
        kind: "d-ts-verdict",
        state: "a8732ecdda29af24",
        selections: "02020202020202020203020202030203020202020202020203020202020202020302020302020202\
                     02020202020202020202030202020202020202020202020202020202020202020202020202020202\
                     0202020202020202020202020202020202020202",
    },
    Pin {
        kind: "ccb",
        state: "484100e87fe354c6",
        selections: "20302002300220303030303002022030022002302002303030300202300220303020303020020202\
                     30200230302030302002020220303002203002202030202030200220300220302020022020300220\
                     3020303020020202300230202030302002023020",
    },
    Pin {
        kind: "scb",
        state: "8abac71d666a6d35",
        selections: "23232323232323232323232323232323232323232323232323232323232323232323232323232323\
                     23232323232323232323232323232323232323232323232323232323232323232323232323232323\
                     2323232323232323232323232323232323232323",
    },
    Pin {
        kind: "pcomp",
        state: "6941eb0103f884b0",
        selections: "13011301131201011312131212011212130112131212131312120113131213130101011301131313\
                     13131212131201010101130101011312130101011212011301121313121212011312011313011201\
                     0112121213121213131312121212011313121313",
    },
    Pin {
        kind: "scomp",
        state: "7140cdcda99e8227",
        selections: "13011301131201011312131212011212130112131212131312120113131213130101011301131313\
                     13131212131201010101130101011312130101011212011301121313121212011312011313011201\
                     0112121213121213131312121212011313121313",
    },
    Pin {
        kind: "scomp2",
        state: "7bd0889c6f37d238",
        selections: "01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     0101010101010101010101010101010101010101",
    },
    Pin {
        kind: "savage",
        state: "1c715c4546bdf31f",
        selections: "13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     1313131313131313131313131313131313131313",
    },
];
