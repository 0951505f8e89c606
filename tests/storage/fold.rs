//! Invariants of `state = fold(log)`, for every kind of policy.

use std::sync::Arc;

use crate::events::{
    self, CREATED_AT, SEED, changed, enlists, entries, entry, fold_all, interleaves_by, paused,
    retires,
};
use crate::pins::pin::every_policy;
use crate::support::{Kind, fresh_database};
use dueling_bandits::{
    Answer, BatchPair, InFlight, PolicyRng, PolicySpec, Selection, TieRule, step_rng,
};
use interleaving::Team;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use rankduel_engine::experiment_spec::{ExperimentSpec, Patch};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::{LoadedExperiment, Process};
use rankduel_engine::metrics::Metrics;
use rankduel_store::events::*;
use rankduel_store::*;
use serde_json::json;
use tokio::sync::mpsc;

const PROCESS: Process = Process { id: 1, since_ms: 0 };

/// Every kind with its defaults, and a small horizon where one is required.
fn policies() -> Vec<PolicySpec> {
    every_policy(200)
}

fn experiment(policy: PolicySpec, rankers: usize, ties: TieRule) -> ExperimentSpec {
    let rankers: Vec<_> = (0..rankers).map(|i| json!({"id": format!("ranker-{i}")})).collect();
    serde_json::from_value(json!({
        "rankers": rankers, "policy": policy, "ties": ties, "duel_ttl_seconds": 60, "seed": SEED,
        "watch": 0.02,
    }))
    .expect("a spec")
}

fn start(spec: &ExperimentSpec) -> Fold {
    events::started(spec)
}

/// One step in the life of an experiment.
#[derive(Debug, Clone)]
enum Step {
    /// A duel is selected. Its answer arrives `later` steps later, or never if the script ends
    /// before.
    Duel { answer: Answer, first_left: bool, later: usize },
    /// An answer about a pair that the policy did not select, as older versions or other states may
    /// have written it.
    Stray { pair: (Index, Index), answer: Answer },
    /// Self-duels are written.
    SelfDuels { ranker: Index, count: u64 },
    /// The results of the open batch are posted, if one is open; `wins` decides the pairs.
    Batch { wins: Vec<Index> },
    /// The experiment is paused.
    Paused,
    /// A duel with a page: pieces of clicks, one per step, and then the event that settles it,
    /// unless the script ends before.
    Page { pieces: Vec<Vec<Index>>, deeper: bool, end: End },
    /// The method changes.
    Method { kind: Index },
    /// A ranker is added, if the policy supports it.
    Comes,
    /// A ranker is retired, if the policy supports it and enough rankers are left.
    Goes { ranker: Index },
}

/// How a duel with pieces of clicks is settled.
#[derive(Debug, Clone)]
enum End {
    /// By its last piece.
    Clicks(Vec<Index>),
    /// By its settling time.
    Time,
    /// By a posted outcome.
    Outcome(Answer),
    /// Never.
    Open,
}

fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => Just(Answer::First),
        3 => Just(Answer::Second),
        1 => Just(Answer::Tie),
        1 => Just(Answer::None),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (answers(), any::<bool>(), 0..6usize)
            .prop_map(|(answer, first_left, later)| Step::Duel { answer, first_left, later }),
        2 => (any::<(Index, Index)>(), answers()).prop_map(|(pair, answer)| Step::Stray { pair, answer }),
        2 => (any::<Index>(), 1..50u64).prop_map(|(ranker, count)| Step::SelfDuels { ranker, count }),
        1 => vec(any::<Index>(), 1..5).prop_map(|wins| Step::Batch { wins }),
        1 => Just(Step::Paused),
        6 => (vec(vec(any::<Index>(), 0..4), 0..4), any::<bool>(), ends())
            .prop_map(|(pieces, deeper, end)| Step::Page { pieces, deeper, end }),
        1 => any::<Index>().prop_map(|kind| Step::Method { kind }),
        1 => Just(Step::Comes),
        1 => any::<Index>().prop_map(|ranker| Step::Goes { ranker }),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => vec(any::<Index>(), 0..4).prop_map(End::Clicks),
        4 => Just(End::Time),
        1 => answers().prop_map(End::Outcome),
        1 => Just(End::Open),
    ]
}

/// Slots of the page, and of a deeper page.
const SLOTS: [u16; 2] = [6, 10];

fn sheet(slots: u16) -> String {
    let teams =
        (0..slots).map(|place| [Team::Left, Team::Right, Team::Both][usize::from(place) % 5 % 3]);
    events::sheet(teams)
}

fn clicks(selection: Selection, duel: Nonce, method: usize, slots: u16, on: &[Index]) -> Event {
    let on = on.iter().map(|place| place.index(slots.into()) as u16).collect();
    let event = events::clicks(selection, duel, method as u32, sheet(slots), on);
    Event::Control(ControlEvent::Clicks(Box::new(event)))
}

const METHODS: [&str; 4] =
    ["team-draft", "probabilistic:verdict=drawn", "probabilistic", "optimized"];

fn scripts() -> impl Strategy<Value = Vec<Step>> {
    vec(steps(), 0..120)
}

fn tie_rules() -> impl Strategy<Value = TieRule> {
    prop_oneof![Just(TieRule::Skip), Just(TieRule::Half), Just(TieRule::Coin)]
}

/// The log that a service writes while it follows the script. Roster changes are also applied to
/// the spec.
fn log_of(spec: &ExperimentSpec, script: &[Step]) -> Vec<LogEntry> {
    let fixed = spec.policy.description().fixed_rankers.is_some();
    let mut fold = start(spec);
    let mut rng: PolicyRng = step_rng(7, 7);
    let mut log: Vec<LogEntry> = Vec::new();
    let mut waiting: Vec<(usize, Option<Nonce>, Event)> = Vec::new();
    let write_under = |fold: &mut Fold, log: &mut Vec<LogEntry>, nonce: Option<Nonce>, event| {
        let entry = entry(log.len() as u64 + 2, nonce, event);
        fold.apply(&entry).expect("an entry that follows");
        log.push(entry);
    };
    let write =
        |fold: &mut Fold, log: &mut Vec<LogEntry>, event| write_under(fold, log, None, event);
    for (now, step) in script.iter().enumerate() {
        let k = fold.run().roster().rankers();
        match step {
            Step::Comes if !fixed => {
                write(&mut fold, &mut log, changed(&enlists(&format!("ranker-{k}"))));
            }
            Step::Goes { ranker } if !fixed && fold.run().roster().active().len() > 2 => {
                let ranker =
                    fold.run().roster().active()[ranker.index(fold.run().roster().active().len())];
                let id = fold.state().spec.rankers[ranker].id.clone();
                write(&mut fold, &mut log, changed(&retires(&id)));
            }
            Step::Comes | Step::Goes { .. } => {}
            Step::Page { pieces, deeper, end } => {
                let selection = fold.run().policy().select(&InFlight::new(), &mut rng);
                let (duel, method) = ((1 << 100) + now as Nonce, fold.state().methods.all().len());
                for (turn, on) in pieces.iter().enumerate() {
                    let slots = SLOTS[usize::from(*deeper && turn % 2 == 1)];
                    waiting.push((now + turn, None, clicks(selection, duel, method, slots, on)));
                }
                let event = match end {
                    End::Clicks(on) => clicks(selection, duel, method, SLOTS[0], on),
                    End::Outcome(answer) => outcome(selection, *answer, true, 0),
                    End::Time if !pieces.is_empty() => Event::Control(ControlEvent::Settled {}),
                    End::Time | End::Open => continue,
                };
                waiting.push((now + pieces.len(), Some(duel), event));
            }
            Step::Method { kind } => {
                write(&mut fold, &mut log, changed(&interleaves_by(METHODS[kind.index(4)])));
            }
            Step::Duel { answer, first_left, later } => {
                let selection = fold.run().policy().select(&InFlight::new(), &mut rng);
                let event = outcome(selection, *answer, *first_left, fold.state().position);
                waiting.push((now + later, None, event));
            }
            Step::Stray { pair, answer } => {
                let selection = Selection::of(pair.0.index(k), pair.1.index(k));
                write(&mut fold, &mut log, outcome(selection, *answer, true, 0));
            }
            Step::SelfDuels { ranker, count } => {
                let counts = vec![(ranker.index(k) as u16, *count)];
                write(
                    &mut fold,
                    &mut log,
                    Event::Control(ControlEvent::SelfDuels { counts, alone: Vec::new() }),
                );
            }
            Step::Batch { wins } => {
                if let Some(batch) = fold.run().policy().batch() {
                    let results = results(&fold.run().policy().batch_pairs(), wins);
                    write(
                        &mut fold,
                        &mut log,
                        Event::Control(ControlEvent::BatchResults { batch, part: None, results }),
                    );
                }
            }
            Step::Paused => write(&mut fold, &mut log, paused()),
        }
        let due: Vec<_> = waiting.extract_if(.., |(at, _, _)| *at <= now).collect();
        for (_, nonce, event) in due {
            write_under(&mut fold, &mut log, nonce, event);
        }
    }
    log
}

fn outcome(selection: Selection, answer: Answer, first_left: bool, chosen_at: u64) -> Event {
    Event::Outcome(OutcomeEvent { first_left, chosen_at, ..events::outcome(selection, answer) })
}

/// Results for all open comparisons of a batch, each with a winner.
fn results(pairs: &[BatchPair], wins: &[Index]) -> Vec<PairResult> {
    pairs
        .iter()
        .filter(|pair| pair.answered < pair.needed)
        .zip(wins.iter().cycle())
        .map(|(pair, share)| {
            let open = pair.needed - pair.answered;
            let first_wins = share.index(open as usize + 1) as u32;
            PairResult {
                first: pair.duel.first as u16,
                second: pair.duel.second as u16,
                first_wins,
                second_wins: open - first_wins,
                ties: 0,
            }
        })
        .collect()
}

/// Check that two folds are in the same state.
fn assert_same(one: &Fold, other: &Fold, what: &str) {
    assert_eq!(one.save(), other.save(), "{what}");
    assert_eq!(one.state().batches.opened_at, other.state().batches.opened_at, "{what}");
    assert_same_policy(one, other, what);
}

/// Check that two folds are in the same state, except for the times of events.
fn assert_same_policy(one: &Fold, other: &Fold, what: &str) {
    assert_eq!(one.run().policy().save(), other.run().policy().save(), "{what}");
    assert_eq!(one.run().policy().champion(), other.run().policy().champion(), "{what}");
    assert_eq!(one.run().policy().batch_pairs(), other.run().policy().batch_pairs(), "{what}");
    // A selection also reads data that is not saved.
    for number in 0..10 {
        let selected =
            |fold: &Fold| fold.run().policy().select(&InFlight::new(), &mut step_rng(9, number));
        assert_eq!(selected(one), selected(other), "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_give_the_same_state_however_the_log_is_split(
        script in scripts(), sizes in vec(0..40usize, 1..8), rankers in 2..6usize, ties in tie_rules(),
    ) {
        for policy in policies() {
            let spec = experiment(policy, rankers, ties);
            let log = log_of(&spec, &script);
            let (mut one_by_one, mut in_pages) = (start(&spec), start(&spec));
            let mut rest = &log[..];
            // a chunk may be empty, but not every one
            for size in sizes.iter().copied().chain([1]).cycle() {
                let page;
                (page, rest) = rest.split_at(size.min(rest.len()));
                in_pages
                    .apply_chunk(|folding| page.iter().try_for_each(|entry| folding.apply(entry).map(drop)))
                    .expect("entries that follow");
                one_by_one = fold_all(one_by_one, page);
                assert_same(&in_pages, &one_by_one, spec.policy.kind());
                let newest = &one_by_one.state().spec;
                let restored = Fold::restore(newest, SEED, &one_by_one.save()).expect("a saved state");
                assert_same(&in_pages, &restored, spec.policy.kind());
                if rest.is_empty() {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_chunk_is_folded_up_to_its_first_invalid_entry(
        script in scripts(), place in any::<Index>(), rankers in 2..6usize, ties in tie_rules(),
    ) {
        for policy in policies() {
            let spec = experiment(policy, rankers, ties);
            let mut log = log_of(&spec, &script);
            let place = place.index(log.len() + 1);
            let position = place as u64 + 1;
            let event = outcome(Selection::of(0, spec.rankers.len()), Answer::First, true, 0);
            log.insert(place, LogEntry { position, nonce: 0, recorded_at: CREATED_AT, event });
            let mut fold = start(&spec);
            let refused = fold.apply_chunk(|folding| log.iter().try_for_each(|entry| folding.apply(entry).map(drop)));
            prop_assert_eq!(refused.expect_err("no such ranker").position, position);
            assert_same(&fold, &fold_all(start(&spec), &log[..place]), spec.policy.kind());
        }
    }

    #[test]
    fn a_snapshot_and_the_rest_of_the_log_give_the_same_state_at_every_cut(
        script in scripts(), rankers in 2..6usize, ties in tie_rules(),
    ) {
        for policy in policies() {
            let spec = experiment(policy, rankers, ties);
            let log = log_of(&spec, &script);
            let whole = fold_all(start(&spec), &log);
            let mut before = start(&spec);
            for cut in 0..=log.len() {
                let restored = Fold::restore(&whole.state().spec, SEED, &before.save()).expect("a saved state");
                assert_same(&restored, &before, spec.policy.kind());
                // The whole rest of the log from some cuts, and one step from all of them.
                if cut % 7 == 0 || cut == log.len() {
                    assert_same(&fold_all(restored, &log[cut..]), &whole, spec.policy.kind());
                }
                if let Some(next) = log.get(cut) {
                    let restored = Fold::restore(&whole.state().spec, SEED, &before.save()).expect("a saved state");
                    before.apply(next).expect("an entry that follows");
                    assert_same(&fold_all(restored, [next]), &before, spec.policy.kind());
                }
            }
        }
    }

    /// Counts are sums: the raw counts do not depend on the order of the answers. Nor do the win
    /// counts and scores, unless a coin that depends on the step decides ties. For policies whose
    /// state consists only of such sums, the whole state does not depend on it.
    #[test]
    fn the_order_of_answers_changes_no_count(
        script in scripts(), order in vec(any::<u32>(), 200), rankers in 2..6usize,
        ties in prop_oneof![Just(TieRule::Skip), Just(TieRule::Half)],
    ) {
        for policy in policies() {
            let spec = experiment(policy, rankers, ties);
            let same_rankers: Vec<_> =
                script.iter().filter(|step| !matches!(step, Step::Comes | Step::Goes { .. })).cloned().collect();
            let outcomes: Vec<_> = log_of(&spec, &same_rankers)
                .into_iter()
                .filter(|entry| matches!(entry.event, Event::Outcome(_)))
                .map(|entry| entry.event)
                .collect();
            let mut shuffled: Vec<_> = order.iter().zip(&outcomes).collect();
            shuffled.sort_by_key(|(key, _)| **key);
            let whole = fold_all(start(&spec), &entries(outcomes.iter().cloned()));
            let other = fold_all(start(&spec), &entries(shuffled.into_iter().map(|(_, event)| event.clone())));
            let kind = spec.policy.kind();
            prop_assert_eq!(&whole.state().counts, &other.state().counts, "{}", kind);
            prop_assert_eq!(whole.run().policy().tally(), other.run().policy().tally(), "{}", kind);
            if STATE_IS_THE_COUNTS.contains(&kind) {
                assert_same_policy(&whole, &other, kind);
            }
        }
    }

    #[test]
    fn an_invalid_entry_is_refused_and_changes_nothing(
        script in scripts(), rankers in 2..6usize, step in 2..1000u64, beyond in 0..1000u16,
    ) {
        for policy in policies() {
            let spec = experiment(policy, rankers, TieRule::Half);
            let log = log_of(&spec, &script);
            let mut fold = fold_all(start(&spec), &log);
            let before = fold.save();
            let next = fold.state().position + 1;
            let rankers = fold.state().spec.rankers.len() as u16;
            let outside = rankers + beyond;
            let selection = |first: u16, second: u16| Selection::of(first.into(), second.into());
            let pair = |first, second| PairResult { first, second, first_wins: 1, second_wins: 0, ties: 0 };
            let of_batch = |results| Event::Control(ControlEvent::BatchResults { batch: 1, part: None, results });
            let good = outcome(selection(0, 1), Answer::First, true, 0);
            for (what, position, event) in [
                ("a gap", fold.state().position + step, good.clone()),
                ("a repeat", fold.state().position, good.clone()),
                ("the past", fold.state().position.saturating_sub(step), good),
                ("first out of range", next, outcome(selection(outside, 0), Answer::First, true, 0)),
                ("second out of range", next, outcome(selection(0, outside), Answer::None, true, 0)),
                ("a self-duel out of range", next, outcome(selection(outside, outside), Answer::First, true, 0)),
                ("self-duels out of range", next, Event::Control(ControlEvent::SelfDuels {
                    counts: vec![(0, 3), (outside, 1)],
                    alone: Vec::new(),
                })),
                ("a unit alone that sees duels", next, Event::Control(ControlEvent::SelfDuels {
                    counts: Vec::new(),
                    alone: vec![UnitHash(7)],
                })),
                ("a result out of range", next, of_batch(vec![pair(0, 1), pair(1, outside)])),
                ("a result against itself", next, of_batch(vec![pair(0, 1), pair(1, 1)])),
                ("clicks of a ranker out of range", next, clicks(selection(outside, 0), 7, 1, 6, &[])),
                ("clicks under no method", next, clicks(selection(0, 1), 7, 0, 6, &[])),
                ("clicks under a future method", next, clicks(selection(0, 1), 7, 1000, 6, &[])),
                ("clicks on an invalid sheet", next, spoilt(|event| event.sheet = Some("?".into()))),
                ("clicks below the page", next, spoilt(|event| event.clicks.push((6, 1)))),
                ("clicks of weight zero", next, spoilt(|event| event.clicks.push((0, 0)))),
                ("clicks of excessive weight", next, spoilt(|event| event.clicks.push((0, 101)))),
                ("an unknown ranker retired", next, changed(&retires("nobody"))),
                ("an unknown control", next, changed(&Patch {
                    control: Some("nobody".into()), ..Patch::default()
                })),
                ("a conclusion on nobody", next, changed(&Patch {
                    status: Some(Status::Concluded), ..Patch::default()
                })),
                ("a change of nothing known", next, Event::Control(ControlEvent::Changed {
                    patch: json!({"colour": "red"}), by: "anyone".into(),
                })),
                ("another creation", next, Event::Control(ControlEvent::Created {
                    spec: serde_json::to_value(&fold.state().spec).expect("JSON"),
                })),
            ] {
                let entry = LogEntry { position, nonce: 1, recorded_at: CREATED_AT, event };
                let refused = fold.apply(&entry).expect_err(what);
                prop_assert_eq!(refused.position, position, "{}", what);
                prop_assert_eq!(&fold.save(), &before, "{}: {}", spec.policy.kind(), what);
            }
        }
    }

    #[test]
    fn bytes_that_are_not_a_snapshot_are_refused(bytes in vec(any::<u8>(), 0..300), rankers in 2..6usize) {
        for policy in policies() {
            let spec = experiment(policy, rankers, TieRule::Skip);
            prop_assert!(Fold::restore(&spec, SEED, &bytes).is_none(), "{}", spec.policy.kind());
        }
    }

    #[test]
    fn a_damaged_snapshot_is_refused(
        script in scripts(), place in any::<Index>(), flip in 1..=255u8, rankers in 2..6usize,
    ) {
        for policy in policies() {
            let spec = experiment(policy, rankers, TieRule::Skip);
            let log = log_of(&spec, &script);
            let fold = fold_all(start(&spec), &log);
            let (newest, saved) = (&fold.state().spec, fold.save());
            let kind = spec.policy.kind();
            let place = place.index(saved.len());
            let mut damaged = saved.clone();
            damaged[place] ^= flip;
            prop_assert!(Fold::restore(newest, SEED, &damaged).is_none(), "{}: byte {} changed", kind, place);
            prop_assert!(Fold::restore(newest, SEED, &saved[..place]).is_none(), "{}: cut at {}", kind, place);
            prop_assert!(Fold::restore(newest, SEED, &[&saved[..], &[flip]].concat()).is_none(), "{}: longer", kind);
        }
    }
}

/// A piece of clicks with one error.
fn spoilt(spoil: impl FnOnce(&mut ClicksEvent)) -> Event {
    let Event::Control(ControlEvent::Clicks(mut event)) = clicks(Selection::of(0, 1), 7, 1, 6, &[])
    else {
        panic!("clicks")
    };
    spoil(&mut event);
    Event::Control(ControlEvent::Clicks(event))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The outcome does not depend on which event settles the duel, which clicks that event
    /// carries, or the order and repetition of pieces.
    #[test]
    fn pieces_in_any_order_and_number_give_the_same_state(
        pieces in vec(vec(any::<Index>(), 0..4), 1..6), order in vec(any::<u32>(), 6), kind in any::<Index>(),
        again in any::<Index>(),
    ) {
        let mut spec = experiment(PolicySpec::from_text("d-ts-plus").expect("a policy"), 3, TieRule::Coin);
        spec.pages.interleaving = interleaving::Spec::from_text(METHODS[kind.index(4)]).expect("a method");
        let (duel, selection) = (1 << 100, Selection::of(2, 1));
        let piece = |on: &[Index]| clicks(selection, duel, 1, SLOTS[0], on);
        let play = |events: Vec<(Nonce, Event)>| {
            let mut fold = start(&spec);
            for (position, (nonce, event)) in (2..).zip(events) {
                let entry = LogEntry { position, nonce, recorded_at: CREATED_AT, event };
                fold.apply(&entry).expect("an entry that follows");
            }
            prop_assert!(fold.state().open_pages.pages().is_empty());
            Ok((fold.state().counts.clone(), fold.state().page_counts.clone()))
        };
        // All clicks in one piece.
        let all: Vec<Index> = pieces.concat();
        let whole = play(vec![(duel, piece(&all))])?;
        // In several pieces, settled by time.
        let mut shuffled: Vec<_> = order.iter().zip(&pieces).collect();
        shuffled.sort_by_key(|(key, _)| **key);
        let mut events: Vec<_> = (1..).zip(shuffled).map(|(nonce, (_, on))| (nonce, piece(on))).collect();
        events.push((99, piece(&pieces[again.index(pieces.len())])));
        let settled = Event::Control(ControlEvent::Settled {});
        prop_assert_eq!(&play([&events[..], &[(duel, settled)]].concat())?, &whole);
        // In several pieces, settled by the last one.
        let (_, last) = events.pop().expect("a piece");
        prop_assert_eq!(&play([&events[..], &[(duel, last)]].concat())?, &whole);
    }
}

/// The policies whose state consists only of sums over the answers.
const STATE_IS_THE_COUNTS: &[&str] = &["uniform", "d-ts", "d-ts-plus"];

#[test]
fn a_snapshot_of_another_experiment_is_refused() {
    let spec = |rankers, policy| {
        experiment(PolicySpec::from_text(policy).expect("a policy"), rankers, TieRule::Skip)
    };
    let saved = start(&spec(4, "uniform")).save();
    assert!(Fold::restore(&spec(4, "uniform"), SEED, &saved).is_some());
    assert!(Fold::restore(&spec(3, "uniform"), SEED, &saved).is_none(), "of three rankers");
    assert!(Fold::restore(&spec(4, "scb"), SEED, &saved).is_none(), "of another policy");
}

/// A new experiment in the store and in memory.
async fn created(
    store: &dyn Store,
    name: &str,
    spec: &ExperimentSpec,
) -> (ExperimentRecord, Arc<LoadedExperiment>) {
    let new = NewExperiment {
        id: entropy::experiment_id().expect("randomness"),
        name: name.into(),
        spec: spec.to_text(),
        seed: SEED,
        created_at: CREATED_AT,
        audit: None,
    };
    let Ok(Created::New(record)) = store.create_experiment(&new).await else {
        panic!("a new name")
    };
    let (metrics, (due, _)) = (Metrics::new(), mpsc::unbounded_channel());
    let loaded =
        LoadedExperiment::open(store, record.clone(), PROCESS, &metrics, due, 0, None).await;
    (record, loaded.expect("an experiment without a log"))
}

/// A chunk of the log that is repeated, or overlaps the folded part, counts once.
#[tokio::test]
async fn repeated_entries_count_once() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    for policy in policies() {
        let spec = experiment(policy, 4, TieRule::Half);
        let kind = spec.policy.kind();
        let (record, loaded) = created(&*store, kind, &spec).await;
        let script = vec![Step::Duel { answer: Answer::First, first_left: true, later: 2 }; 60];
        let log = log_of(&spec, &script);
        assert_eq!(log.len(), 58, "the last two answers are missing");
        let whole = fold_all(start(&spec), &log);

        // Every event three times: within a call, in the next call, and at the end.
        let events: Vec<_> = log
            .iter()
            .map(|entry| (record.id, NewEvent::new(entry.nonce, entry.event.clone())))
            .collect();
        for (index, pair) in events.chunks(2).enumerate() {
            let now = log[2 * index].recorded_at;
            store.append(&[pair, pair].concat(), now).await.expect("an append");
            store.append(pair, now).await.expect("an append");
        }
        store.append(&events, CREATED_AT).await.expect("an append");
        let kept = store.read(record.id, 0, 1000).await.expect("the log");
        assert_eq!(kept.len(), log.len() + 1, "{kind}");

        for start in (0..kept.len()).step_by(5) {
            let end = (start + 9).min(kept.len());
            assert!(
                loaded.absorb(&kept[start.saturating_sub(4)..end]).expect("they fold"),
                "{kind}"
            );
            assert!(loaded.absorb(&kept[..start]).expect("already folded"), "{kind}");
        }
        assert!(!loaded.absorb(&kept_after_a_gap(&kept)).expect("no error"), "{kind}: a gap");
        loaded.catch_up(&*store).await.expect("nothing is left");
        let fold = loaded.fold().expect("it is whole");
        assert_eq!(fold.state().counts, whole.state().counts, "{kind}");
        assert_eq!(fold.run().policy().save(), whole.run().policy().save(), "{kind}");
    }
}

/// Large chunks are folded on a blocking thread. A caller that gives up leaves nothing half done.
#[tokio::test]
async fn a_cancelled_catch_up_can_be_repeated() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let spec = experiment(PolicySpec::from_text("d-ts").expect("a policy"), 4, TieRule::Half);
    let (record, loaded) = created(&*store, "long", &spec).await;
    let outcome = |number: usize| {
        let answer = if number.is_multiple_of(3) { Answer::Second } else { Answer::First };
        outcome(Selection::of(number % 4, (number + 1) % 4), answer, true, 0)
    };
    let log = entries((0..6000).map(outcome));
    let events: Vec<_> = log
        .iter()
        .map(|entry| (record.id, NewEvent::new(entry.nonce, entry.event.clone())))
        .collect();
    store.append(&events, CREATED_AT).await.expect("an append");
    for milliseconds in [1, 4, 8, 12, 16, 24, 32] {
        let limit = std::time::Duration::from_millis(milliseconds);
        let _ = tokio::time::timeout(limit, loaded.catch_up(&*store)).await;
    }
    loaded.catch_up(&*store).await.expect("the log");
    assert!(!loaded.is_broken());
    let whole = fold_all(start(&spec), &log);
    let fold = loaded.fold().expect("a fold");
    assert_eq!(fold.state().position, 6001);
    assert_eq!(fold.state().counts, whole.state().counts);
    assert_eq!(fold.run().policy().save(), whole.run().policy().save());
}

/// An entry after a gap.
fn kept_after_a_gap(kept: &[LogEntry]) -> Vec<LogEntry> {
    let last = kept.last().expect("a log").clone();
    vec![LogEntry { position: last.position + 2, nonce: last.nonce + 2, ..last }]
}

#[test]
fn the_last_two_rankers_cannot_be_retired() {
    let spec = experiment(PolicySpec::from_text("uniform").expect("a policy"), 3, TieRule::Half);
    let goes = |position, ranker| entry(position, None, changed(&retires(ranker)));
    let mut fold = fold_all(start(&spec), &[goes(2, "ranker-0")]);
    let before = fold.save();
    assert!(
        fold.apply(&goes(3, "ranker-1")).expect_err("two are left").detail.contains("fewer than 2")
    );
    assert_eq!(fold.save(), before);
    let gone = spec.patched(&retires("ranker-0")).expect("valid");
    assert_eq!(
        Fold::restore(&gone, SEED, &before).expect("a state").run().roster().active(),
        [1, 2]
    );
    // A snapshot with another history than the spec.
    assert!(Fold::restore(&spec, SEED, &before).is_none());
    let other = spec.patched(&retires("ranker-1")).expect("valid");
    assert!(Fold::restore(&other, SEED, &before).is_none());
}

#[test]
fn each_comparison_of_a_batch_counts_once_for_the_claims() {
    let mut batches = 0;
    for policy in policies() {
        for (ties, of_ties) in [(TieRule::Skip, 0.0), (TieRule::Half, 2.0), (TieRule::Coin, 2.0)] {
            let mut spec = experiment(policy.clone(), 2, ties);
            spec.control = Some("ranker-0".into());
            let mut fold = start(&spec);
            let Some(batch) = fold.run().policy().batch() else { continue };
            let result = PairResult { first: 1, second: 0, first_wins: 7, second_wins: 3, ties: 2 };
            let event = ControlEvent::BatchResults { batch, part: None, results: vec![result] };
            let log = entries([Event::Control(event)]);
            fold.apply(&log[0]).expect("it folds");
            let claims = fold.run().claims().expect("a control");
            let answers: f64 = claims.wins_and_losses(1).iter().sum();
            assert_eq!(answers, 10.0 + of_ties, "{} with {ties:?}", spec.policy.kind());
            assert_eq!(fold.run().drift().expect("drift").answers() as f64, answers);
            batches += 1;
        }
    }
    assert!(batches > 0);
}
