//! The claims about metrics, for people: which rankers do harm, and which are safe.

use crate::service::reports::claim::{Claim, ClaimKind, ClaimedMetric, LimitOf};
use crate::service::reports::words::grouped;
use dueling_bandits::claims::alone::AlonePages;
use dueling_bandits::claims::betting::Side;
use dueling_bandits::claims::guardrails::{self, Guardrails, Kind};
use rankduel_engine::experiment_spec::{Better, MetricOf, OnHarm};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// A ranker that does harm.
#[derive(Debug, Clone, PartialEq)]
pub struct Harm {
    pub ranker: usize,
    pub is_active: bool,
    pub on_harm: OnHarm,
    /// Name of the metric, and the kind of its limit.
    pub metric: (String, Kind),
    /// The claim with its numbers.
    pub sentence: String,
}

impl Harm {
    /// A text that distinguishes this harm from the others of its experiment.
    pub fn key(&self) -> String {
        format!("harm:{}:{}:{}", self.ranker, self.metric.0, self.metric.1.name())
    }
}

/// The harm that is proven, also of retired rankers.
pub fn harms(loaded: &LoadedExperiment, fold: &Fold) -> Vec<Harm> {
    let Some(held) = fold.state().guardrails.as_deref() else { return Vec::new() };
    let is_harm =
        |claim: &guardrails::Claim| claim.side == Side::Harm && claim.decided_after.is_some();
    let harm = |claim: guardrails::Claim| {
        let metric = &loaded.spec.metrics[claim.metric];
        Harm {
            ranker: claim.ranker,
            is_active: fold.run().roster().is_active(claim.ranker),
            on_harm: metric.on_harm,
            metric: (metric.name.clone(), claim.kind),
            sentence: sentence(loaded, held, &claim),
        }
    };
    held.claims().filter(is_harm).map(harm).collect()
}

/// Fewest pages that an alarm about missing values is about.
const ENOUGH_PAGES: u64 = 20;

fn missing_share(claim: &guardrails::Claim) -> f64 {
    claim.missing as f64 / claim.pages.max(1) as f64
}

/// Whether the missing values can break the limit by themselves.
fn too_many_missing(claim: &guardrails::Claim) -> bool {
    claim.pages >= ENOUGH_PAGES && missing_share(claim) > claim.missing_bearable
}

/// The limits of active rankers that missing values can break by themselves, in sentences.
pub fn silences(loaded: &LoadedExperiment, fold: &Fold) -> Vec<String> {
    let claims = fold.state().guardrails.as_deref().into_iter().flat_map(Guardrails::claims);
    let of_limits = claims.filter(|claim| claim.side == Side::Safe);
    let silent = of_limits
        .filter(|claim| fold.run().roster().is_active(claim.ranker) && too_many_missing(claim));
    let sentence = |claim: guardrails::Claim| {
        let spec = &loaded.spec;
        let (ranker, metric) = (&spec.rankers[claim.ranker].id, &spec.metrics[claim.metric]);
        let control = match claim.kind {
            Kind::Limit => "",
            Kind::Difference => " or of the control",
        };
        format!(
            "`{}` of `{ranker}`{control} is missing on {} % of {} pages; {} % can break its limit.",
            metric.name,
            quantity(100.0 * missing_share(&claim)),
            grouped(claim.pages, ','),
            quantity(100.0 * claim.missing_bearable),
        )
    };
    silent.map(sentence).collect()
}

fn sentence(loaded: &LoadedExperiment, held: &Guardrails, claim: &guardrails::Claim) -> String {
    let spec = &loaded.spec;
    let (ranker, metric) = (&spec.rankers[claim.ranker].id, &spec.metrics[claim.metric]);
    let (name, mean) = (&metric.name, quantity(claim.mean.unwrap_or_default()));
    let pages = grouped(claim.pages - claim.missing, ',');
    let cut = claim
        .cut
        .map_or_else(String::new, |cut| format!(", with differences cut at ±{}", quantity(cut)));
    let limit = quantity(limit_of(metric, claim.kind));
    let worse = if metric.better == Better::Higher { "below" } else { "above" };
    match claim.kind {
        Kind::Limit => format!(
            "`{name}` of `{ranker}` is {worse} {limit}: {mean} on average of {pages} pages."
        ),
        Kind::Difference => {
            let control = held.control().map_or("", |control| &spec.rankers[control].id);
            let alone = if metric.of == MetricOf::Page { " of one of them alone" } else { "" };
            format!(
                "`{name}` of `{ranker}` is {worse} that of `{control}` by more than {limit}: by \
                 {mean} on average of {pages} pages{alone}{cut}."
            )
        }
    }
}

fn limit_of(metric: &rankduel_engine::experiment_spec::Metric, kind: Kind) -> f64 {
    match kind {
        Kind::Limit => metric.limit.unwrap_or_default(),
        Kind::Difference => metric.difference.unwrap_or_default(),
    }
}

/// At most three significant digits or all before the point, and at most eight decimals.
pub(crate) fn quantity(value: f64) -> String {
    let digits = (2.0 - value.abs().max(1e-6).log10().floor()).clamp(0.0, 8.0) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The claims of active rankers, and the decided ones of others.
pub fn claims(loaded: &LoadedExperiment, fold: &Fold) -> Vec<Claim> {
    let Some(held) = fold.state().guardrails.as_deref() else { return Vec::new() };
    let is_listed = |claim: &guardrails::Claim| {
        fold.run().roster().is_active(claim.ranker) || claim.decided_after.is_some()
    };
    let is_uneven = fold.state().alone.as_deref().is_some_and(AlonePages::is_uneven);
    let of = |claim| claim_of(loaded, held, &claim, is_uneven);
    held.claims().filter(is_listed).map(of).collect()
}

fn claim_of(
    loaded: &LoadedExperiment,
    held: &Guardrails,
    claim: &guardrails::Claim,
    is_uneven: bool,
) -> Claim {
    let spec = &loaded.spec;
    let metric = &spec.metrics[claim.metric];
    let control = held.control().filter(|_| claim.kind == Kind::Difference);
    let kind = match claim.side {
        Side::Harm => ClaimKind::Harm,
        Side::Safe => ClaimKind::Safe,
    };
    Claim {
        ranker: Some(spec.rankers[claim.ranker].id.clone()),
        control: control.map(|control| spec.rankers[control].id.clone()),
        metric: Some(ClaimedMetric {
            name: metric.name.clone(),
            of: match (claim.kind, metric.of) {
                (Kind::Limit, _) => LimitOf::Value,
                (Kind::Difference, MetricOf::Ranker) => LimitOf::Difference,
                (Kind::Difference, MetricOf::Page) => LimitOf::Pages,
            },
            limit: limit_of(metric, claim.kind),
            mean: claim.mean,
            bound: held.bound(claim),
            cut: claim.cut,
            pages: claim.pages,
            missing_share: missing_share(claim),
            too_many_missing: too_many_missing(claim),
            uneven: metric.of == MetricOf::Page && is_uneven,
        }),
        ..Claim::new(kind, 0.0, claim.error).decided(claim.decided_after)
    }
}
