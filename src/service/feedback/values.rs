//! Values of metrics in feedback, as an event of the log. A value that cannot be read spoils
//! nothing beside it.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::content::IgnoredValue;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::units::{NamedAudience, UnitHasher};
use rankduel_engine::experiment_spec::{ExperimentSpec, MetricOf, excerpt, pointer_part};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::page_values::page_of;
use rankduel_engine::tokens::duel_token::{DuelId, DuelToken};
use rankduel_store::events::{ControlEvent, Event, PageValues};
use rankduel_store::{NewEvent, Nonce};

/// Most values that a result names as ignored.
const IGNORED_MAX: usize = 8;

/// The values of one item.
#[derive(Default)]
pub(super) struct ReadValues {
    /// Those that count, if there are any.
    pub counted: Option<PageValues>,
    pub ignored: Vec<IgnoredValue>,
    /// Whether all were ignored because they came too late.
    pub is_late: bool,
}

/// Read the `metrics` of an item about a duel, at the time `now` in Unix milliseconds.
pub(super) fn read(
    spec: &ExperimentSpec,
    duel: &DuelToken,
    metrics: &Value,
    unit: Option<u64>,
    now: i64,
) -> ReadValues {
    let all_ignored = |detail: &str| {
        let ignored = vec![IgnoredValue { pointer: "/metrics".into(), detail: detail.into() }];
        ReadValues { ignored, ..ReadValues::default() }
    };
    if spec.metrics.is_empty() {
        return all_ignored("the experiment has no metrics");
    }
    let Some(mut page) = page_of(spec, duel, unit) else {
        return all_ignored(match duel.first == duel.second {
            true => "no metric of the experiment is about a page that shows one ranker",
            false => "no metric of the experiment is about a page that shows two rankers",
        });
    };
    if now > duel.issued_at + spec.value_window_ms() {
        let window = spec.value_window_seconds;
        let detail = format!("they came later than `value_window_seconds`, {window}, allows");
        return ReadValues { is_late: true, ..all_ignored(&detail) };
    }
    let Some(rankers) = metrics.as_object() else {
        return all_ignored("it must be an object: values by ranker and metric");
    };
    page.values = [vec![None; spec.metrics.len()], vec![None; spec.metrics.len()]];
    let mut ignored = Vec::new();
    for (id, of_ranker) in rankers {
        read_of_ranker(spec, &mut page, id, of_ranker, &mut ignored);
    }
    let any = page.values.iter().flatten().any(Option::is_some);
    ReadValues { counted: any.then_some(page), ignored, is_late: false }
}

/// Read the values of the ranker `id` into `page`, and those that do not count into `ignored`.
fn read_of_ranker(
    spec: &ExperimentSpec,
    page: &mut PageValues,
    id: &str,
    of_ranker: &Value,
    ignored: &mut Vec<IgnoredValue>,
) {
    let pointer = format!("/metrics/{}", pointer_part(id));
    let ranker = spec.ranker_index(id);
    let is_shown = |side: &u16| {
        Some(usize::from(*side)) == ranker && page.alone.is_none_or(|alone| alone == *side)
    };
    let Some(side) = [page.first, page.second].iter().position(is_shown) else {
        let detail = format!("ranker `{}` is not on this page", excerpt(id));
        return ignore(ignored, pointer, detail);
    };
    let Some(of_ranker) = of_ranker.as_object() else {
        return ignore(ignored, pointer, "it must be an object: values by metric".into());
    };
    for (name, value) in of_ranker {
        match value_of(spec, page.alone.is_some(), name, value) {
            Ok((metric, number)) => page.values[side][metric] = Some(number),
            Err(detail) => {
                let pointer = format!("{pointer}/{}", pointer_part(name));
                ignore(ignored, pointer, detail);
            }
        }
    }
}

fn ignore(ignored: &mut Vec<IgnoredValue>, pointer: String, detail: String) {
    if ignored.len() < IGNORED_MAX {
        ignored.push(IgnoredValue { pointer, detail });
    }
}

/// The index of a metric and its value, or why it does not count. `is_alone` says whether the page
/// shows one ranker alone.
fn value_of(
    spec: &ExperimentSpec,
    is_alone: bool,
    name: &str,
    value: &Value,
) -> Result<(usize, f64), String> {
    let Some(metric) = spec.metric_index(name) else {
        let known: Vec<_> = spec.metrics.iter().map(|it| it.name.as_str()).collect();
        return Err(format!("the metrics are: {}", known.join(", ")));
    };
    let number = value.as_f64().filter(|value| *value >= 0.0 && value.is_finite());
    let number = number.ok_or("a value is a number of at least 0")?;
    match (spec.metrics[metric].of, is_alone) {
        (MetricOf::Ranker, true) => Err("it is of a ranker, and counts on pages of two".into()),
        (MetricOf::Page, false) => Err("it counts on pages that show one ranker alone".into()),
        _ => Ok((metric, number)),
    }
}

/// The values in a request to make a page.
#[derive(Default)]
pub struct ValuesOfPage {
    /// Those that count, with the experiment that issued the page.
    pub counted: Option<(Arc<LoadedExperiment>, PageValues)>,
    pub ignored: Vec<IgnoredValue>,
}

impl Service {
    /// Read the values that come with a request to make a page, as those in feedback.
    pub async fn read_values(
        &self,
        name: &str,
        duel_id: &str,
        metrics: &Value,
        audience: NamedAudience<'_>,
    ) -> Result<ValuesOfPage, ServiceError> {
        let loaded = self.experiment(name).await?;
        let (loaded, DuelId { duel, .. }) = self.open_duel_id(loaded, duel_id).await?;
        let unit = duel.audience.or(UnitHasher::of(&loaded).audience(audience)).unit;
        let ReadValues { counted, ignored, .. } =
            read(&loaded.spec, &duel, metrics, unit, self.now_ms());
        Ok(ValuesOfPage { counted: counted.map(|page| (loaded, page)), ignored })
    }
}

/// The event for values. Its nonce is a hash of them, so that a repeat has the same nonce. Its
/// highest bit is set, which no random nonce has.
pub(super) fn event(page: PageValues) -> NewEvent {
    let mut hash = Sha256::new();
    hash.update(b"rankduel values\0");
    hash.update(page.duel.as_bytes());
    hash.update(page.unit.map_or([0; 9], |unit| {
        let mut bytes = [1; 9];
        bytes[1..].copy_from_slice(&unit.to_be_bytes());
        bytes
    }));
    for value in page.values.iter().flatten() {
        // no value is negative
        hash.update(value.unwrap_or(-1.0).to_be_bytes());
    }
    let hash: [u8; 32] = hash.finalize().into();
    let nonce = Nonce::from_be_bytes(std::array::from_fn(|index| hash[index])) | 1 << 127;
    NewEvent::new(nonce, Event::Control(ControlEvent::Values { pages: vec![page] }))
}
