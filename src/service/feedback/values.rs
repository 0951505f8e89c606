//! Values of metrics in feedback, as an event of the log. A value that cannot be read spoils
//! nothing beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tracing::Instrument as _;

use super::clicks::first_half;
use super::content::IgnoredValue;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::units::{NamedAudience, UnitHasher};
use crate::telemetry::export;
use dueling_bandits::claims::guardrails::{Guardrails, PageState};
use rankduel_engine::experiment_spec::{
    ExperimentSpec, FieldError, MetricOf, UniqueKeys, excerpt, pointer_part,
};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::page_values::page_of;
use rankduel_engine::tokens::duel_token::{DuelId, DuelToken};
use rankduel_store::events::{ControlEvent, Event, PageValues};
use rankduel_store::{Appended, LogEntry, NewEvent, Nonce};

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
    /// The first one that no page could have.
    pub mistake: Option<FieldError>,
}

impl ReadValues {
    fn ignore(&mut self, pointer: String, detail: impl Into<String>) {
        if self.ignored.len() < IGNORED_MAX {
            self.ignored.push(IgnoredValue { pointer, detail: detail.into() });
        }
    }

    fn refuse(&mut self, pointer: String, detail: impl Into<String>) {
        let detail = detail.into();
        self.mistake.get_or_insert_with(|| FieldError::new(pointer.as_str(), detail.as_str()));
        self.ignore(pointer, detail);
    }
}

/// Read the `metrics` of an item about a duel, at the time `now` in Unix milliseconds.
pub(super) fn read(
    spec: &ExperimentSpec,
    duel: &DuelToken,
    metrics: &str,
    unit: Option<u64>,
    now: i64,
) -> ReadValues {
    let mut read = ReadValues::default();
    let pointer = || "/metrics".to_owned();
    if spec.metrics.is_empty() {
        read.ignore(pointer(), "the experiment has no metrics");
        return read;
    }
    let Some(mut page) = page_of(spec, duel, unit).filter(|page| page.first != page.second) else {
        let why = match duel.first == duel.second {
            true => "no metric of the experiment is about this page, which shows one ranker",
            false => "no metric of the experiment is about a page that shows two rankers",
        };
        read.ignore(pointer(), why);
        return read;
    };
    if now > duel.issued_at + spec.value_window_ms() {
        read.ignore(pointer(), came_late(spec));
        return ReadValues { is_late: true, ..read };
    }
    let Some(rankers) = members(metrics) else {
        read.refuse(
            pointer(),
            "it must be an object, with each ranker once: values by ranker and metric",
        );
        return read;
    };
    page.values = [vec![None; spec.metrics.len()], vec![None; spec.metrics.len()]];
    for (id, of_ranker) in rankers {
        read_of_ranker(spec, &mut page, &id, of_ranker.get(), &mut read);
    }
    match page.values.iter().flatten().any(Option::is_some) {
        true => read.counted = Some(page),
        false if read.ignored.is_empty() => read.refuse(pointer(), "there is no value"),
        false => {}
    }
    read
}

/// The members of a JSON object, each of them unread. One that cannot be read costs no other.
fn members(json: &str) -> Option<BTreeMap<String, Box<RawValue>>> {
    let UniqueKeys(members) = serde_json::from_str(json).ok()?;
    Some(members.into_iter().collect())
}

fn came_late(spec: &ExperimentSpec) -> String {
    let window = spec.value_window_seconds;
    format!("they came later than `value_window_seconds`, {window}, allows")
}

/// Read the values of the ranker `id` into `page`, and those that do not count into `read`.
fn read_of_ranker(
    spec: &ExperimentSpec,
    page: &mut PageValues,
    id: &str,
    of_ranker: &str,
    read: &mut ReadValues,
) {
    let pointer = format!("/metrics/{}", pointer_part(id));
    let Some(ranker) = spec.ranker_index(id) else {
        let detail = format!("the experiment has no ranker `{}`", excerpt(id));
        return read.refuse(pointer, detail);
    };
    let is_shown =
        |side: &u16| usize::from(*side) == ranker && page.alone.is_none_or(|alone| alone == *side);
    let Some(side) = [page.first, page.second].iter().position(is_shown) else {
        return read.ignore(pointer, format!("ranker `{}` is not on this page", excerpt(id)));
    };
    let Some(of_ranker) = members(of_ranker) else {
        return read.refuse(pointer, "it must be an object: values by metric");
    };
    for (name, value) in of_ranker {
        let pointer = format!("{pointer}/{}", pointer_part(&name));
        let Some(metric) = spec.metric_index(&name) else {
            let known: Vec<_> = spec.metrics.iter().map(|it| it.name.as_str()).collect();
            read.refuse(pointer, format!("the metrics are: {}", known.join(", ")));
            continue;
        };
        // a number that is too large to be read is refused here, and not with the whole request
        let number: Option<f64> = serde_json::from_str(value.get()).ok();
        let number = number.filter(|value| *value >= 0.0 && value.is_finite());
        match (spec.metrics[metric].of, page.alone.is_some(), number) {
            (_, _, None) => {
                let detail = "a value is a number of at least 0; this one is";
                read.refuse(pointer, format!("{detail} {}", excerpt(value.get())));
            }
            (MetricOf::Ranker, true, _) => {
                read.ignore(pointer, "it is of a ranker, and counts on pages of two");
            }
            (MetricOf::Page, false, _) => {
                read.ignore(pointer, "it counts on pages that show one ranker alone");
            }
            (_, _, number) => page.values[side][metric] = number,
        }
    }
}

/// Take the values out of a page for which `known` has a value. Those that differ are ignored.
fn take_known(
    spec: &ExperimentSpec,
    page: &mut PageValues,
    known: impl Fn(usize, usize) -> Option<f64>,
    ignored: &mut Vec<IgnoredValue>,
) {
    let rankers = [page.first, page.second].map(|it| &spec.rankers[usize::from(it)].id);
    for (side, values) in page.values.iter_mut().enumerate() {
        for (metric, value) in values.iter_mut().enumerate() {
            let Some((new, first)) = (*value).zip(known(side, metric)) else { continue };
            if new != first && ignored.len() < IGNORED_MAX {
                let name = &spec.metrics[metric].name;
                let pointer = format!("/metrics/{}/{name}", pointer_part(rankers[side]));
                let detail = "another value came before; the first one counts".into();
                ignored.push(IgnoredValue { pointer, detail });
            }
            *value = None;
        }
    }
}

/// Take the values out of a page that the fold knows, or all of them if the page does not count any
/// more. Returns whether that is because they are late.
fn take_folded(
    spec: &ExperimentSpec,
    held: Option<&Guardrails>,
    page: &mut PageValues,
    ignored: &mut Vec<IgnoredValue>,
) -> bool {
    let state = held.map(|held| held.page(page.duel.as_u128(), page.issued_at));
    let why = match state {
        None | Some(PageState::Unknown) => return false,
        Some(PageState::Open(known)) => {
            take_known(spec, page, |side, metric| known.get(side, metric), ignored);
            return false;
        }
        Some(PageState::Ended) => came_late(spec),
        Some(PageState::LeftOut) => {
            "of the pages that were issued at about this time, only some count".to_owned()
        }
    };
    page.values = Default::default();
    ignored.push(IgnoredValue { pointer: "/metrics".into(), detail: why });
    matches!(state, Some(PageState::Ended))
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
        metrics: &str,
        audience: NamedAudience<'_>,
    ) -> Result<ValuesOfPage, ServiceError> {
        let loaded = self.experiment(name).await?;
        let DuelId { duel, .. } = self.open_duel_id(&loaded, duel_id).await?;
        let unit = duel.audience.or(UnitHasher::of(&loaded).audience(audience)).unit;
        let ReadValues { mut counted, mut ignored, .. } =
            read(&loaded.spec, &duel, metrics, unit, self.now_ms());
        if let Some(page) = &mut counted {
            take_folded(
                &loaded.spec,
                loaded.fold()?.state().guardrails.as_deref(),
                page,
                &mut ignored,
            );
        }
        Ok(ValuesOfPage { counted: counted.map(|page| (loaded, page)), ignored })
    }
}

/// The result for the values of one item.
#[derive(Default)]
pub(super) struct ValuesReceipt {
    /// Log position of those that count now.
    pub recorded: Option<u64>,
    /// Log position of an entry that already had some of them.
    pub repeated: Option<u64>,
    pub ignored: Vec<IgnoredValue>,
    pub is_late: bool,
}

/// Values of a page, the place of their item, and the nonce of their entry.
type Report = (usize, PageValues, Nonce);

/// Record values of pages, each value once. The first report on a page is one entry of the log.
/// Each value that it lacks is another one, with a nonce of its own. So one page has at most one
/// entry, and one for each of its values, whichever server gets them.
pub(super) async fn record(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    mut pages: Vec<PageValues>,
) -> Result<Vec<ValuesReceipt>, ServiceError> {
    let mut receipts: Vec<_> = pages.iter().map(|_| ValuesReceipt::default()).collect();
    if pages.is_empty() {
        return Ok(receipts);
    }
    let duels: Vec<_> = pages.iter().map(|page| page.duel.as_u128()).collect();
    service.engine.log_issued(loaded, &duels).await?;
    let spec = &loaded.spec;
    {
        let fold = loaded.fold()?;
        for (page, receipt) in pages.iter_mut().zip(&mut receipts) {
            receipt.is_late =
                take_folded(spec, fold.state().guardrails.as_deref(), page, &mut receipt.ignored);
        }
    }
    let has_values = |page: &PageValues| page.values.iter().flatten().any(Option::is_some);
    let pages = pages.into_iter().zip(duels).enumerate();
    let reports = pages.filter(|(_, (page, _))| has_values(page));
    let reports = reports.map(|(at, (page, duel))| (at, page, first_report(duel))).collect();
    let later = append(service, loaded, reports, &mut receipts).await?;
    if later.is_empty() {
        return Ok(receipts);
    }
    let firsts: Vec<_> = later.iter().map(|(.., nonce)| *nonce).collect();
    let firsts = service.engine.store.find(loaded.id, &firsts).await?;
    let mut parts = Vec::new();
    for ((at, mut page, _), first) in later.into_iter().zip(firsts) {
        let receipt = &mut receipts[at];
        if let Some(LogEntry { position, event, .. }) = first
            && let Event::Control(ControlEvent::Values { pages: first }) = event
        {
            receipt.repeated = Some(position);
            let known = |side: usize, metric: usize| *first.first()?.values[side].get(metric)?;
            take_known(spec, &mut page, known, &mut receipt.ignored);
        }
        let nonce = |place| value_nonce(page.duel.as_u128(), place);
        parts.extend(single_values(&page).map(|(place, part)| (at, part, nonce(place))));
    }
    // of these, the log has another value
    for (at, mut other, _) in append(service, loaded, parts, &mut receipts).await? {
        take_known(spec, &mut other, |_, _| Some(f64::NAN), &mut receipts[at].ignored);
    }
    Ok(receipts)
}

/// Append values of pages, each under its nonce. Returns those whose nonce the log has with other
/// values.
async fn append(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    reports: Vec<Report>,
    receipts: &mut [ValuesReceipt],
) -> Result<Vec<Report>, ServiceError> {
    let event = |(_, page, nonce): &Report| {
        let event = ControlEvent::Values { pages: vec![page.clone()] };
        NewEvent::new(*nonce, Event::Control(event))
    };
    let events = reports.iter().map(event).collect();
    let append = service.engine.writer.append(loaded, events).instrument(export::append_span());
    let appended = append.await?;
    let mut conflicts = Vec::new();
    for (report, appended) in reports.into_iter().zip(appended) {
        let receipt = &mut receipts[report.0];
        match appended {
            Appended::Recorded(position) => receipt.recorded = Some(position),
            Appended::Duplicate(position) => receipt.repeated = Some(position),
            Appended::Conflict(_) | Appended::TooLate(_) => conflicts.push(report),
            Appended::Archived | Appended::Missing => {
                return Err(ServiceError::not_appended(&loaded.name, appended));
            }
        }
    }
    Ok(conflicts)
}

/// Each value of a page by itself, with the side and the metric that it is of.
fn single_values(page: &PageValues) -> impl Iterator<Item = ([usize; 2], PageValues)> + '_ {
    let all = page.values.iter().enumerate();
    let all = all.flat_map(|(side, values)| {
        let values = values.iter().enumerate();
        values.filter_map(move |(metric, value)| Some((side, metric, (*value)?)))
    });
    all.map(|(side, metric, value)| {
        let mut part = PageValues { values: Default::default(), ..page.clone() };
        part.values[side] = vec![None; metric + 1];
        part.values[side][metric] = Some(value);
        ([side, metric], part)
    })
}

/// The nonce of the first report on a page.
fn first_report(duel: Nonce) -> Nonce {
    nonce_of(duel, &[])
}

/// The nonce of one value of a page that its first report lacks.
fn value_nonce(duel: Nonce, place: [usize; 2]) -> Nonce {
    // there are two sides, and at most eight metrics
    nonce_of(duel, &place.map(|number| number as u8))
}

/// Its highest bit is set, which no random nonce has.
fn nonce_of(duel: Nonce, part: &[u8]) -> Nonce {
    let mut hash = Sha256::new();
    hash.update(b"rankduel values\0");
    hash.update(duel.to_be_bytes());
    hash.update(part);
    first_half(hash) | 1 << 127
}
