//! The claim that preferences have changed, for people.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::words::grouped;
use dueling_bandits::claims::drift::{self, Drift, ERROR, Rate, WITHIN};
use rankduel_engine::clock::rfc3339;

/// Evidence beyond this is reported as this.
const MOST_EVIDENCE: f64 = 1e15;

/// Whether the preferences have changed while the experiment ran. An alarm changes nothing in the
/// verdict, unless `drift` of the experiment is `restart`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DriftClaim {
    #[schema(
        example = "`neural` won 45.1 % of 2,310 duels with `bm25` until about 2026-03-02, and 61.9 % of 420 since then: preferences have changed."
    )]
    pub sentence: String,
    /// Share of experiments in which any of the alarms is false.
    #[schema(example = 0.05)]
    pub error: f64,
    /// Mean preferences that differ by at most so much count as unchanged.
    #[schema(example = 0.02)]
    pub within: f64,
    /// Answers that count since the start or the newest alarm.
    pub answers: u64,
    /// The evidence in them that a preference has changed.
    pub evidence: f64,
    /// The evidence that raises the next alarm.
    #[schema(example = 40.0)]
    pub evidence_needed: f64,
    /// The newest alarms, at most 32, the oldest first.
    pub alarms: Vec<Change>,
    pub alarms_total: u32,
}

/// A preference that has changed. The pair was selected because its change is the largest, so the
/// difference between `before` and `after` is overstated on average.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Change {
    #[schema(format = DateTime)]
    pub found_at: String,
    /// The probable time of the change.
    #[schema(format = DateTime)]
    pub since: String,
    /// The pair that changed most clearly. Other pairs may have changed too.
    #[schema(example = json!(["neural", "bm25"]))]
    pub pair: [String; 2],
    /// Result of the pair before the change, back to the start or the previous alarm.
    pub before: WinRate,
    /// Result of the pair after the change.
    pub after: WinRate,
}

/// The result of a pair in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct WinRate {
    /// Share of the answers that the first ranker of `pair` won. A tie is half a win.
    pub win_rate: f64,
    pub answers: f64,
}

impl From<Rate> for WinRate {
    fn from(Rate { wins, answers }: Rate) -> Self {
        Self { win_rate: wins, answers }
    }
}

impl DriftClaim {
    /// The claim of rankers with these ids.
    pub(super) fn of(drift: &Drift, id: &impl Fn(usize) -> String) -> Self {
        let change = |alarm: &drift::Alarm| Change {
            found_at: rfc3339(alarm.at),
            since: rfc3339(alarm.since),
            pair: [id(alarm.pair.0.into()), id(alarm.pair.1.into())],
            before: alarm.before.into(),
            after: alarm.after.into(),
        };
        let sentence = drift.alarms().last().map_or_else(
            || "No change of preferences was found.".to_owned(),
            |alarm| changed(alarm, &|ranker| id(ranker.into())),
        );
        Self {
            sentence,
            error: ERROR,
            within: WITHIN,
            answers: drift.answers(),
            evidence: drift.evidence().min(MOST_EVIDENCE),
            evidence_needed: 1.0 / drift.error(),
            alarms: drift.alarms().iter().map(change).collect(),
            alarms_total: drift.raised(),
        }
    }
}

pub(super) fn changed(alarm: &drift::Alarm, id: &dyn Fn(u16) -> String) -> String {
    let rates = [alarm.before, alarm.after];
    let [before, after] = rates.map(|rate| format!("{:.1} %", 100.0 * rate.wins));
    let [until, since] = rates.map(|rate| grouped(rate.answers.round() as u64, ','));
    let day = rfc3339(alarm.since);
    let restarted = if alarm.restarted { " The verdict has started again." } else { "" };
    format!(
        "`{}` won {before} of {until} duels with `{}` until about {}, and {after} of {since} since \
         then: preferences have changed.{restarted}",
        id(alarm.pair.0),
        id(alarm.pair.1),
        day.split('T').next().unwrap_or(&day)
    )
}
