//! Is it safe? The metrics of each ranker, and their limits.

use maud::{Markup, html};

use super::layout::{Mark, Tile, counted, of_experiments, part};
use super::view::View;
use crate::service::reports::claim::{Claim, ClaimKind, ClaimState, ClaimedMetric, LimitOf};
use crate::service::reports::guardrails::quantity;
use rankduel_engine::experiment_spec::{Better, Errors};

fn is_decided(claim: &Claim, kind: ClaimKind) -> bool {
    claim.claim == kind && claim.state == ClaimState::Decided
}

/// How many limits the leader has, and how many of them it is proven to be within.
fn limits(view: &View) -> (usize, usize) {
    let leader = view.verdict.leader.as_str();
    let limits = view.fold.guardrails.iter().filter(|claim| claim.claim == ClaimKind::Safe);
    let limits = limits.filter(|claim| claim.ranker.as_deref() == Some(leader));
    let is_trusted = |claim: &Claim| claim.metric.as_ref().is_some_and(|it| !it.uneven);
    let hold = |claim: &&Claim| is_decided(claim, ClaimKind::Safe) && is_trusted(claim);
    (limits.clone().count(), limits.filter(hold).count())
}

fn is_active(view: &View, id: &str) -> bool {
    view.active().iter().any(|&ranker| view.ids[ranker] == id)
}

/// The tile of the page; `None` without metrics.
pub(crate) fn tile(view: &View) -> Option<Tile> {
    let claims = &view.fold.guardrails;
    let leader = view.verdict.leader.as_str();
    let harmful = claims.iter().filter(|claim| is_decided(claim, ClaimKind::Harm));
    let mut harmful = harmful.filter_map(|claim| claim.ranker.as_deref());
    let does_harm = harmful.clone().any(|ranker| ranker == leader);
    claims.first()?;
    // the values of pages whose answers are missing are missing too
    if view.is_untrusted() && !does_harm {
        return Some(Tile::untrusted(("Is it safe?", "safe")));
    }
    let (limits, hold) = limits(view);
    let (mark, answer) = match (does_harm, hold == limits) {
        _ if limits == 0 => (Mark::None, html! { "It is today's" }),
        (true, _) => (Mark::No, html! { "No, it does harm" }),
        (false, true) => (Mark::Yes, html! { "Yes, within every limit" }),
        (false, false) if view.has_ended() => (Mark::None, html! { "Not proven" }),
        (false, false) => (Mark::Wait, html! { "Not known yet" }),
    };
    let proven = view.short(leader);
    let more = html! {
        @if limits > 0 && !does_harm {
            @match (limits, hold) {
                (1, 0) => { "That " (proven) " is within its limit is not settled." }
                (_, 0) => { "That " (proven) " is within its " (limits) " limits is not settled." }
                (1, 1) => { (proven) " is within its limit." }
                _ if hold == limits => { (proven) " is within its " (limits) " limits." }
                _ if hold + 1 == limits => { (proven) " is within " (hold) " of its " (limits) " limits; the other is not settled." }
                _ => { (proven) " is within " (hold) " of its " (limits) " limits; the others are not settled." }
            }
        }
        @if does_harm { (proven) " breaks a limit." }
        @if let Some(first) = harmful.find(|ranker| *ranker != leader) {
            " " (view.short(first)) " does harm" @if !is_active(view, first) { ", and was removed" } "."
        }
    };
    Some(Tile::new(("Is it safe?", "safe"), (mark, answer), more))
}

/// The section of the page; nothing without metrics.
pub(crate) fn section(view: &View) -> Markup {
    let claims = &view.fold.guardrails;
    let spec = &view.loaded.spec;
    let error = Errors::of_metrics(spec.errors, spec.conclude_at);
    if claims.is_empty() {
        return Markup::default();
    }
    let is_first = |pair: &&[Claim]| {
        pair[0].ranker.as_ref() == Some(&view.verdict.leader)
            || pair.iter().any(|claim| is_decided(claim, ClaimKind::Harm))
    };
    let (first, others): (Vec<_>, Vec<_>) = claims.chunk_by(is_pair).partition(is_first);
    let content = html! {
        p {
            "Each metric has a limit of its mean, or of how much worse it is than that of the control. Every answered page counts, with clicks or without, and a missing value counts as the worst one for either claim. A ranker within the limit is said to do harm in at most "
            (of_experiments(error)) " experiments, if it is within the limit at all times: when load comes in waves, a mean over the year is not enough, and only the comparison with the control is safe. A bar is where a mean lies, with the same error at either end."
        }
        (Limits::of(view, &first).render("Metrics"))
        @if !others.is_empty() { details #safe-others {
            summary { "The other rankers" }
            (Limits::of(view, &others).render("Metrics of the other rankers"))
        } }
    };
    part("safe", "Is it safe?", &content)
}

/// Harm and safe of one ranker and limit.
fn is_pair(one: &Claim, other: &Claim) -> bool {
    one.claim == ClaimKind::Harm && other.claim == ClaimKind::Safe && one.ranker == other.ranker
}

/// The mean of a value, or by how much it is worse than that of the control.
fn now(of: LimitOf, mean: f64) -> String {
    match of {
        LimitOf::Value => quantity(mean).replace('-', "−"),
        _ if mean < 0.0 => format!("{} better", quantity(-mean)),
        _ => format!("{} worse", quantity(mean)),
    }
}

/// The limit in words.
fn allowed(of: LimitOf, limit: f64, is_higher: bool) -> String {
    let limit = quantity(limit).replace('-', "−");
    match (of, is_higher) {
        (LimitOf::Value, true) => format!("at least {limit}"),
        (LimitOf::Value, false) => format!("at most {limit}"),
        _ => format!("at most {limit} worse"),
    }
}

/// The claims of one ranker and limit, and what they prove.
struct Row<'a> {
    view: &'a View,
    ranker: &'a str,
    metric: &'a ClaimedMetric,
    is_higher: bool,
    /// The value that the mean is proven to be worse than, and the one it is better than.
    bounds: [Option<f64>; 2],
    mark: Mark,
    result: &'static str,
}

impl<'a> Row<'a> {
    fn of(view: &'a View, pair: &'a [Claim]) -> Option<Self> {
        let harm = pair.first()?;
        let (ranker, metric) = harm.ranker.as_ref().zip(harm.metric.as_ref())?;
        let bound = |claim: &Claim| claim.metric.as_ref().and_then(|metric| metric.bound);
        let of = view.loaded.spec.metrics.iter().find(|of| of.name == metric.name);
        let decided = |kind| pair.iter().any(|claim| is_decided(claim, kind));
        let (mark, result) = match (decided(ClaimKind::Harm), decided(ClaimKind::Safe)) {
            _ if metric.uneven => (Mark::Wait, "not to be trusted: units are not split evenly"),
            (true, _) => (Mark::No, "does harm"),
            (false, true) => (Mark::Yes, "safe"),
            (false, false) if metric.too_many_missing => (Mark::Wait, "values are missing"),
            (false, false) if view.has_ended() => (Mark::None, "not proven"),
            (false, false) => (Mark::Wait, "still open"),
        };
        Some(Self {
            view,
            ranker,
            metric,
            is_higher: of.is_some_and(|of| of.better == Better::Higher),
            bounds: [bound(harm), pair.get(1).and_then(bound)],
            mark,
            result,
        })
    }

    /// A value on the axis: the better side is left, and the limit is at 0, one limit from "the
    /// same as the control" or from the value 0. A limit of 0 has the largest bound in its place.
    fn place(&self, value: f64) -> f64 {
        let ClaimedMetric { limit, mean, .. } = *self.metric;
        let known = self.bounds.into_iter().flatten().chain(mean);
        let size = match limit {
            0.0 => known.map(f64::abs).fold(f64::MIN_POSITIVE, f64::max),
            limit => limit,
        };
        let over = (value - limit) / size;
        if self.metric.of == LimitOf::Value && self.is_higher { -over } else { over }
    }

    /// The places of the bounds; the ends of the axis where nothing is proven.
    fn ends(&self) -> [f64; 2] {
        let [worse, better] = self.bounds.map(|bound| bound.map(|it| self.place(it)));
        let ends = [worse.unwrap_or(AXIS[0]), better.unwrap_or(AXIS[1])];
        ends.map(|end| end.clamp(AXIS[0], AXIS[1]))
    }

    fn picture(&self) -> Markup {
        let class = match self.mark {
            Mark::Yes => "safe",
            Mark::No => "harm",
            Mark::Wait | Mark::Run => "wait",
            Mark::None => "other",
        };
        let [left, right] = self.ends().map(percent);
        let limit = percent(0.0);
        html! {
            svg aria-hidden="true" {
                line.limit x1=(limit) x2=(limit) y1="0" y2="100%" {}
                @if self.bounds.iter().any(Option::is_some) {
                    line.wh.(class) x1=(left) x2=(right) y1="50%" y2="50%" {}
                    @if let Some(mean) = self.metric.mean {
                        @let at = self.place(mean);
                        @if (AXIS[0]..=AXIS[1]).contains(&at) {
                            circle.pt.(class) cx=(percent(at)) cy="50%" r="6" {}
                        }
                    }
                }
            }
        }
    }

    /// Where the mean lies, in words.
    fn between(&self) -> String {
        let of = self.metric.of;
        let [worse, better] = self.bounds.map(|bound| bound.map(|it| now(of, it)));
        match (of, self.is_higher, worse, better) {
            (LimitOf::Value, false, Some(low), Some(high))
            | (LimitOf::Value, true, Some(high), Some(low)) => format!("{low} to {high}"),
            (LimitOf::Value, false, Some(low), None) | (LimitOf::Value, true, None, Some(low)) => {
                format!("at least {low}")
            }
            (LimitOf::Value, false, None, Some(high))
            | (LimitOf::Value, true, Some(high), None) => format!("at most {high}"),
            (_, _, Some(worse), Some(better)) => format!("{worse} to {better}"),
            (_, _, Some(worse), None) => format!("at best {worse}"),
            (_, _, None, Some(better)) => format!("at worst {better}"),
            (_, _, None, None) => "nothing proven".to_owned(),
        }
    }

    fn render(&self) -> Markup {
        let metric = self.metric;
        html! {
            tr role="row" {
                th scope="row" role="rowheader" {
                    (self.view.short(self.ranker)) " " code { (metric.name) } br;
                    span.quiet.small {
                        @match metric.of {
                            LimitOf::Value => {},
                            LimitOf::Difference => "against the control, ",
                            LimitOf::Pages => "against the control, on pages of one alone, ",
                        }
                        (counted(metric.pages, "page", "pages"))
                        @if metric.missing_share > 0.0 {
                            ", " (quantity(100.0 * metric.missing_share)) " % without a value"
                        }
                    }
                }
                td.c role="cell" { (self.picture()) }
                td.v.n role="cell" {
                    @match metric.mean { Some(mean) => (now(metric.of, mean)), None => "–" }
                }
                td.w.n role="cell" { (self.between()) }
                td.z role="cell" {
                    (self.mark.icon()) (self.result)
                    @if let Some(cut) = metric.cut { ", with differences cut at ±" (quantity(cut)) }
                    br; span.quiet.small { "allowed: " (allowed(metric.of, metric.limit, self.is_higher)) }
                }
            }
        }
    }
}

/// The ends of the axis, in limits beyond the limit.
const AXIS: [f64; 2] = [-2.0, 2.0];

fn percent(place: f64) -> String {
    format!("{:.2}%", 4.0 + 91.0 * (place - AXIS[0]) / (AXIS[1] - AXIS[0]))
}

/// A table of limits, with a picture of each.
struct Limits<'a>(Vec<Row<'a>>);

impl<'a> Limits<'a> {
    fn of(view: &'a View, pairs: &[&'a [Claim]]) -> Self {
        Self(pairs.iter().filter_map(|pair| Row::of(view, pair)).collect())
    }

    fn render(&self, caption: &str) -> Markup {
        html! {
            table.dots.limits role="table" {
                caption.sr { (caption) }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "Ranker and metric" }
                    th.c scope="col" role="columnheader" {
                        span.sr { "Picture" }
                        span.sides aria-hidden="true" { span { "← better" } span { "worse →" } }
                        svg aria-hidden="true" {
                            text x=(percent(0.0)) y="36" text-anchor="middle" { "limit" }
                        }
                    }
                    th.v.n scope="col" role="columnheader" { "Mean" }
                    th.w.n scope="col" role="columnheader" { "Lies between" }
                    th.z scope="col" role="columnheader" { "Result" }
                } }
                tbody role="rowgroup" { @for row in &self.0 { (row.render()) } }
            }
        }
    }
}
