//! Entries of a log as a service writes them, for tests of folds.

use dueling_bandits::{Answer, Selection};
use interleaving::{CreditSheet, CreditSlot, Team};
use rankduel_engine::experiment_spec::{Exclusion, ExperimentSpec, Patch, Ranker};
use rankduel_engine::fold::Fold;
use rankduel_engine::tokens::page_payload::sheet_to_text;
use rankduel_store::events::*;
use rankduel_store::*;
use uuid::Uuid;

pub const CREATED_AT: i64 = 1_790_000_000_000;
pub const SEED: u64 = 0xfeed;

/// The answer of a selected duel, issued at once, without a unit.
pub fn outcome(selection: Selection, answer: Answer) -> OutcomeEvent {
    OutcomeEvent {
        first: selection.duel.first as u16,
        second: selection.duel.second as u16,
        first_left: true,
        answer,
        batch: selection.batch,
        ticket: selection.ticket,
        chosen_at: 0,
        issued_at: CREATED_AT,
        unit: None,
        segment: None,
    }
}

/// Clicks on some slots of the page of a selected duel, without a unit.
pub fn clicks(
    selection: Selection,
    duel: Nonce,
    method: u32,
    sheet: String,
    mut on: Vec<u16>,
) -> ClicksEvent {
    on.sort_unstable();
    on.dedup();
    ClicksEvent {
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
        sheet: Some(sheet),
        clicks: on.into_iter().map(|slot| (slot, 1)).collect(),
    }
}

/// The sheet of a page whose slots are of these teams; slots of both are not competitive.
pub fn sheet(teams: impl Iterator<Item = Team>) -> String {
    let slot = |(place, team): (u32, Team)| CreditSlot {
        ranks: [place + 1, (place ^ 1) + 1],
        competitive: team != Team::Both,
        team: Some(team),
    };
    let slots = (0..).zip(teams).map(slot).collect();
    sheet_to_text(&CreditSheet { depths: [10, 10], informative: true, fell_back: false, slots })
}

/// An entry, a second after the one before it.
pub fn entry(position: u64, nonce: Option<Nonce>, event: Event) -> LogEntry {
    let recorded_at = CREATED_AT + 1000 * position as i64;
    LogEntry { position, nonce: nonce.unwrap_or(position.into()), recorded_at, event }
}

/// Entries of these events, numbered from 2: the first entry is the creation.
pub fn entries(events: impl IntoIterator<Item = Event>) -> Vec<LogEntry> {
    (2..).zip(events).map(|(position, event)| entry(position, None, event)).collect()
}

/// The state after the entry that creates the experiment.
pub fn started(spec: &ExperimentSpec) -> Fold {
    let json = serde_json::to_value(spec).expect("JSON");
    let event = Event::Control(ControlEvent::Created { spec: json });
    let first = LogEntry { position: 1, nonce: CREATION, recorded_at: CREATED_AT, event };
    Fold::created(Some(&first), spec, SEED, CREATED_AT).expect("a valid spec")
}

/// The experiment is paused.
pub fn paused() -> Event {
    changed(&Patch { status: Some(Status::Paused), ..Patch::default() })
}

/// Somebody makes this change.
pub fn changed(patch: &Patch) -> Event {
    Event::Control(ControlEvent::Changed { patch: patch.to_json(), by: "anyone".into() })
}

/// One more ranker takes part.
pub fn enlists(id: &str) -> Patch {
    let ranker = Ranker { id: id.into(), description: None };
    Patch { enlist: Some(ranker), ..Patch::default() }
}

/// A ranker takes no part any more.
pub fn retires(id: &str) -> Patch {
    Patch { retire: Some(id.into()), ..Patch::default() }
}

/// A unit is excluded.
pub fn excludes(unit: u64) -> Patch {
    let reason = "a machine".into();
    let exclusion = Exclusion { units: Vec::new(), hashes: vec![UnitHash(unit)], reason };
    Patch { exclude: Some(exclusion), ..Patch::default() }
}

/// Other pages are made by this method.
pub fn interleaves_by(method: &str) -> Patch {
    let method = interleaving::Spec::from_text(method).expect("a method");
    let method = serde_json::to_value(method).expect("JSON");
    Patch { interleaving: method.as_object().cloned(), ..Patch::default() }
}

/// A fold after further entries.
pub fn fold_all<'a>(mut fold: Fold, log: impl IntoIterator<Item = &'a LogEntry>) -> Fold {
    for entry in log {
        fold.apply(entry).expect("an entry that follows");
    }
    fold
}

/// An experiment, and the fold of its log up to a position.
pub async fn folded(store: &SharedStore, name: &str, until: u32) -> (ExperimentRecord, Fold) {
    let record = store.experiment(name).await.expect("a store").expect("an experiment");
    let spec = ExperimentSpec::read(&record.spec).expect("a spec");
    let log = store.read(record.id, 0, until).await.expect("the log");
    let created = Fold::created(log.first(), &spec, record.seed, record.created_at);
    let fold = fold_all(created.expect("the creation"), &log[1..]);
    (record, fold)
}

/// The state of a fold as the store keeps it.
pub fn snapshot(record: &ExperimentRecord, fold: &Fold, created_at: i64) -> Snapshot {
    let (experiment, position) = (record.id, fold.state().position);
    Snapshot { experiment, position, format: fold.format(), state: fold.save(), created_at }
}
