//! A whole experiment under each policy: all outcomes, clicks in pieces, posted batch results, a
//! change of the method, roster changes, and a change of the policy.

use dueling_bandits::{Answer, InFlight, PolicySpec, Selection, TieRule, step_rng};
use interleaving::{self, CreditSheet, CreditSlot, Team};
use rankduel::engine::experiment_spec::ExperimentSpec;
use rankduel::engine::experiment_spec::Ranker;
use rankduel::engine::fold::Fold;
use rankduel::engine::page_rules::PageRules;
use rankduel::events::*;
use rankduel::store::*;
use rankduel::tokens::page_payload::sheet_to_text;
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
            (policy.kind().to_string(), digest(&fold.save()), selections(fold.policy()))
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
            (policy.kind().to_string(), digest(&fold.save()), selections(fold.policy()))
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
        kind: "d-ts-plus-soft",
        state: "042d616d922cc2d7",
        selections: "20204220202220200320202004202020202020200420422004204222220020200420204222200024\
                     20044242200004204200404322222220202040022004402420202020040404222004042320044220\
                     2220042042200200200220200442004220220342",
    },
    Pin {
        kind: "d-ts-plus-sharp",
        state: "8a13060613d5779c",
        selections: "00000000000000000300002402000000000000000400030000000020000000000000000220000000\
                     00000000000000000000000200000000000003000000200000000424000402020000000400040003\
                     0003000000000200000020000200000000000020",
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
        kind: "rucb",
        state: "e726da721027a5de",
        selections: "03200320323232323232030303323203323203030332033203322003322003032020200320323203\
                     03033220030332203232033232200303032020202020203232320303032020200332200303320320\
                     2003322003033203320332033203200303323232",
    },
    Pin {
        kind: "rcs",
        state: "24894575703cd5ae",
        selections: "03030303030303030303030303030303030303030303030303030303200303030342030303034203\
                     03030320030303030303030303030303030303030303030303030303030303030303030303030342\
                     0303030303030303030303030303030303030303",
    },
    Pin {
        kind: "rmed1",
        state: "24b12726232fcd70",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "rmed2",
        state: "5a5e16ab7422c502",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "rmed2-fh",
        state: "71ad8dff5835cd4a",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "cw-rmed",
        state: "3486f0451b7a3415",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "ecw-rmed",
        state: "f938a3d84e922933",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "merge-rucb",
        state: "ef0fe2b92adc96e1",
        selections: "10032103323221213221102110322110323210101032213210320310320310100303031003323210\
                     10213221212132212132103221211010210303030303032132211021100303031032031010321003\
                     0321320310103210321021212121211010323221",
    },
    Pin {
        kind: "merge-dts",
        state: "863338a269d9d557",
        selections: "01010101010101020202010230020102010101030301010102030101230101020113120201030102\
                     02030123010203032301020301020203020203010112010102010203120102012301020103010103\
                     0213010203130103020102010302230101020201",
    },
    Pin {
        kind: "scb",
        state: "4cd069b0a9c159bf",
        selections: "13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     1313131313131313131313131313131313131313",
    },
    Pin {
        kind: "sparring",
        state: "f095f941a644bd27",
        selections: "33333333333333333333333333333333333333333333333333333333333333333333333333333333\
                     33333333333333333333333333333333333333333333333333333333333333333333333333333333\
                     3333333333333333333333333333333333333333",
    },
    Pin {
        kind: "winner-stays",
        state: "27cef366498e707f",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "self-sparring",
        state: "7ac1b30e4669e7ec",
        selections: "20000000000000000000000000000000000000000000000000000000100000000000000000100000\
                     00000000010000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "btm",
        state: "423606b804907c32",
        selections: "01330231033132330133030301310200013201000231030302013000033102033330300330010100\
                     03023133020233333231003132330100023330313130310233320002033132330231300200330130\
                     3002013302003100030032023202330200310302",
    },
    Pin {
        kind: "interleaved-filter",
        state: "46375754ca89b554",
        selections: "02020202020202020202020202020202020202020202020202020202020202020202020202020202\
                     02020202020202020202020202020202020202020202020202020202020202020202020202020202\
                     0202020202020202020202020202020202020202",
    },
    Pin {
        kind: "multi-sbm",
        state: "1699d183236fe9dd",
        selections: "20202020202020202020202020202020202020202020202020202020202020202020202020202020\
                     20202020202020202020202020202020202020202020202020202020202020202020202020202020\
                     2020202020202020202020202020202020202020",
    },
    Pin {
        kind: "doubler",
        state: "016446e0c016314f",
        selections: "23033313231303033313232323031313230323232313233323130323331333230303032303332333\
                     23231313231303031303330303132313330303031313033303132333131313033313132323031303\
                     0313231333131323233313131323032333132323",
    },
    Pin {
        kind: "vdb",
        state: "ba1634c960d077b0",
        selections: "00000000000000000000000000000000000000000000000001000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
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
    Pin {
        kind: "pbr",
        state: "2d2db9766f74a17e",
        selections: "01020102231303030113012323021313230223232302010123130323010201010203030102010101\
                     01230213231303020203010302020113010302030213030103130101130202020102022323031302\
                     0213230201130223010113131323032301132323",
    },
    Pin {
        kind: "rank-el",
        state: "71797da63e9411a3",
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
        kind: "d-ts-plus-soft",
        state: "c32fc10581449a73",
        selections: "00240000000000000200200002000000000002200030000000200030000000020000000202000000\
                     00000002000000200000000200000020000200020002000020000024000002020000000200000024\
                     0000000200000200000230000200000020000002",
    },
    Pin {
        kind: "d-ts-plus-sharp",
        state: "17c2a6dab31bbfd0",
        selections: "00240000000000000200200002000000000002200000000000200030000000020000000202000000\
                     00000002000000200000000200000020000200020002000020000024000002020000000200000024\
                     0000000200000200000230000200000020000002",
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
        kind: "rucb",
        state: "3ddf41f9e86556cf",
        selections: "02200220303030303030020202303002303002020230023002302002302002022020200220303002\
                     02023020020230203030023030200202022020202020203030300202022020200230200202300220\
                     2002302002023002300230023002200202303030",
    },
    Pin {
        kind: "rcs",
        state: "e71df22f9133e000",
        selections: "43020202020202430202024302200202200202020243020202020220204302024320430202020202\
                     02200243020202022002200202020202430202020202020243020202020202432043020202200243\
                     0202020202020202020202022002430202432002",
    },
    Pin {
        kind: "rmed1",
        state: "aea3d8b7c1c32ea0",
        selections: "01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     0101010101010101010101010101010101010101",
    },
    Pin {
        kind: "rmed2",
        state: "7cc333497af095a9",
        selections: "01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     0101010101010101010101010101010101010101",
    },
    Pin {
        kind: "rmed2-fh",
        state: "2adf14d38a8ed355",
        selections: "01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     0101010101010101010101010101010101010101",
    },
    Pin {
        kind: "cw-rmed",
        state: "cdaf9a3f9c94fb63",
        selections: "10101010101010101010101010101010101010101010101010101010101010101010101010101010\
                     10101010101010101010101010101010101010101010101010101010101010101010101010101010\
                     1010101010101010101010101010101010101010",
    },
    Pin {
        kind: "ecw-rmed",
        state: "a73a8f37db1813d9",
        selections: "10101010101010101010101010101010101010101010101010101010101010101010101010101010\
                     10101010101010101010101010101010101010101010101010101010101010101010101010101010\
                     1010101010101010101010101010101010101010",
    },
    Pin {
        kind: "merge-rucb",
        state: "a1046c6399f75af9",
        selections: "13012101313121213121132113312113313113131331213113310113310113130101011301313113\
                     13213121212131212131133121211313210101010101012131211321130101011331011313311301\
                     0121310113133113311321212121211313313121",
    },
    Pin {
        kind: "merge-dts",
        state: "9a506ca1d6255484",
        selections: "03032302031012120303032303230312231013131003030312130313030313030312030303230313\
                     03230331030303132303030332020303230313030312020323101213030312132021032013121203\
                     0303030303130303020302130303130313131210",
    },
    Pin {
        kind: "scb",
        state: "8abac71d666a6d35",
        selections: "23232323232323232323232323232323232323232323232323232323232323232323232323232323\
                     23232323232323232323232323232323232323232323232323232323232323232323232323232323\
                     2323232323232323232323232323232323232323",
    },
    Pin {
        kind: "sparring",
        state: "a83cac8b7a50ad03",
        selections: "00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     00000000000000000000000000000000000000000000000000000000000000000000000000000000\
                     0000000000000000000000000000000000000000",
    },
    Pin {
        kind: "winner-stays",
        state: "89c214472aa9d29d",
        selections: "01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     0101010101010101010101010101010101010101",
    },
    Pin {
        kind: "self-sparring",
        state: "2fb7276cee244e81",
        selections: "10000100000000001110001000011200200000000000112010010000000010010001001101210000\
                     00100010121101010000200010000100000100000200001001000000010100000001001000000000\
                     0000002001020000002000011110001000000011",
    },
    Pin {
        kind: "btm",
        state: "9ff4d998c78af35e",
        selections: "20212321222223232223202320222320222220202022232220222120222120202121212021222220\
                     20232223232322232322202223232020232121212121212322232023202121212022212020222021\
                     2123222120202220222023232323232020222223",
    },
    Pin {
        kind: "interleaved-filter",
        state: "01d06ef2d0bbf652",
        selections: "01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     01010101010101010101010101010101010101010101010101010101010101010101010101010101\
                     0101010101010101010101010101010101010101",
    },
    Pin {
        kind: "multi-sbm",
        state: "0468f2df185e220f",
        selections: "31313131313131313131313131313131313131313131313131313131313131313131313131313131\
                     31313131313131313131313131313131313131313131313131313131313131313131313131313131\
                     3131313131313131313131313131313131313131",
    },
    Pin {
        kind: "doubler",
        state: "2f1b383be47f7b43",
        selections: "31013111211101013111312121012121210121212111313121210121311131310101013101313131\
                     31211111212101011101310101113121310101011111013101113131211111013111112121012101\
                     0121211131211131313111211121012131112121",
    },
    Pin {
        kind: "vdb",
        state: "5c0336c5eee0962c",
        selections: "30003000300000003000300000000000300000300000303000000030300030300000003000303030\
                     30300000300000000000300000003000300000000000003000003030000000003000003030000000\
                     0000000030000030303000000000003030003030",
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
    Pin {
        kind: "pbr",
        state: "af1ad9c506a8e13a",
        selections: "13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     1313131313131313131313131313131313131313",
    },
    Pin {
        kind: "rank-el",
        state: "b9f54624474a149f",
        selections: "13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     13131313131313131313131313131313131313131313131313131313131313131313131313131313\
                     1313131313131313131313131313131313131313",
    },
];
