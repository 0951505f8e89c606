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

/// Read `metrics` of an item about a duel.
pub(super) fn read(
    spec: &ExperimentSpec,
    duel: &DuelToken,
    metrics: &Value,
    unit: Option<u64>,
    now: i64,
) -> ReadValues {
    let all_ignored = |detail: String, is_late| {
        let ignored = vec![IgnoredValue { pointer: "/metrics".into(), detail }];
        ReadValues { counted: None, ignored, is_late }
    };
    if spec.metrics.is_empty() {
        return all_ignored("the experiment has no metrics".into(), false);
    }
    let Some(mut page) = page_of(spec, duel, unit) else {
        let detail = match duel.first == duel.second {
            true => "no metric of the experiment is about a page that shows one ranker",
            false => "no metric of the experiment is about a page that shows two rankers",
        };
        return all_ignored(detail.into(), false);
    };
    if now > duel.issued_at + spec.value_window_ms() {
        let window = spec.value_window_seconds;
        let detail = format!("they came later than `value_window_seconds`, {window}, allows");
        return all_ignored(detail, true);
    }
    let Some(rankers) = metrics.as_object() else {
        let detail = "it must be an object: values by ranker and metric";
        return all_ignored(detail.into(), false);
    };
    page.values = [(); 2].map(|()| vec![None; spec.metrics.len()]);
    let (mut ignored, mut any) = (Vec::new(), false);
    let mut ignore = |pointer: String, detail: String| {
        if ignored.len() < IGNORED_MAX {
            ignored.push(IgnoredValue { pointer, detail });
        }
    };
    for (id, of_ranker) in rankers {
        let pointer = format!("/metrics/{}", pointer_part(id));
        let ranker = spec.ranker_index(id);
        let is_shown = |side: &u16| {
            Some(usize::from(*side)) == ranker && page.alone.is_none_or(|alone| alone == *side)
        };
        let Some(side) = [page.first, page.second].iter().position(is_shown) else {
            ignore(pointer, format!("ranker `{}` is not on this page", excerpt(id)));
            continue;
        };
        let Some(of_ranker) = of_ranker.as_object() else {
            ignore(pointer, "it must be an object: values by metric".into());
            continue;
        };
        for (name, value) in of_ranker {
            let pointer = format!("{pointer}/{}", pointer_part(name));
            match value_of(spec, page.alone.is_some(), name, value) {
                Ok((metric, number)) => {
                    page.values[side][metric] = Some(number);
                    any = true;
                }
                Err(detail) => ignore(pointer, detail),
            }
        }
    }
    ReadValues { counted: any.then_some(page), ignored, is_late: false }
}

/// The number of a metric and its value, on a page that shows one ranker alone or two.
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

/// Values of a page, with the experiment that issued it.
pub type IssuedValues = (Arc<LoadedExperiment>, PageValues);

impl Service {
    /// Values of a page that is made, as in feedback: those that count, with the experiment that
    /// issued the page, and those that do not.
    pub async fn read_values(
        &self,
        name: &str,
        duel_id: &str,
        metrics: &Value,
        audience: NamedAudience<'_>,
    ) -> Result<(Option<IssuedValues>, Vec<IgnoredValue>), ServiceError> {
        let loaded = self.experiment(name).await?;
        let (loaded, DuelId { duel, .. }) = self.open_duel_id(loaded, duel_id).await?;
        let unit = duel.audience.or(UnitHasher::of(&loaded).audience(audience)).unit;
        let ReadValues { counted, ignored, .. } =
            read(&loaded.spec, &duel, metrics, unit, self.now_ms());
        Ok((counted.map(|page| (loaded, page)), ignored))
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
