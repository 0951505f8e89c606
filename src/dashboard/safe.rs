//! Is it safe? The metrics of each ranker, and their limits.

use maud::{Markup, html};

use super::layout::{Mark, Tile, number, of_experiments, part, table};
use super::view::View;
use crate::service::reports::claim::{Claim, ClaimKind, ClaimState, LimitOf};
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
    let heads = ["Ranker", "Metric", "Result", "Mean", "Allowed", "Pages", "Missing"];
    let is_first = |pair: &&[Claim]| {
        pair[0].ranker.as_ref() == Some(&view.verdict.leader)
            || pair.iter().any(|claim| is_decided(claim, ClaimKind::Harm))
    };
    let (first, others): (Vec<_>, Vec<_>) = claims.chunk_by(is_pair).partition(is_first);
    let rows = |of: &[&[Claim]]| html! { @for pair in of { (row(view, pair)) } };
    let content = html! {
        p {
            "Each metric has a limit of its mean, or of how much worse it is than that of the control. Every page counts, clicked or not, and a missing value counts as the worst one for either claim. A ranker within the limit is said to do harm in at most "
            (of_experiments(error)) " experiments, if it is within the limit at all times: when load comes in waves, a mean over the year is not enough, and only the comparison with the control is safe."
        }
        (table("Metrics", &heads, &rows(&first)))
        @if !others.is_empty() { details #safe-others {
            summary { "The other rankers" }
            (table("Metrics of the other rankers", &heads, &rows(&others)))
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

fn row(view: &View, pair: &[Claim]) -> Markup {
    let Some((ranker, metric)) =
        pair.first().and_then(|claim| claim.ranker.as_ref().zip(claim.metric.as_ref()))
    else {
        return Markup::default();
    };
    let of = view.loaded.spec.metrics.iter().find(|of| of.name == metric.name);
    let is_higher = of.is_some_and(|of| of.better == Better::Higher);
    let decided = |kind| pair.iter().any(|claim| is_decided(claim, kind));
    let (mark, result) = match (decided(ClaimKind::Harm), decided(ClaimKind::Safe)) {
        _ if metric.uneven => (Mark::Wait, "not to be trusted: units are not split evenly"),
        (true, _) => (Mark::No, "does harm"),
        (false, true) => (Mark::Yes, "safe"),
        (false, false) if metric.too_many_missing => (Mark::Wait, "values are missing"),
        (false, false) if view.has_ended() => (Mark::None, "not proven"),
        (false, false) => (Mark::Wait, "still open"),
    };
    html! {
        tr {
            td { (view.short(ranker)) }
            td {
                code { (metric.name) }
                @match metric.of {
                    LimitOf::Value => {},
                    LimitOf::Difference => " against the control",
                    LimitOf::Pages => " against the control, on pages of one alone",
                }
            }
            td {
                (mark.icon()) " " (result)
                @if let Some(cut) = metric.cut { ", with differences cut at ±" (quantity(cut)) }
            }
            td { @match metric.mean { Some(mean) => (now(metric.of, mean)), None => "no page" } }
            td { (allowed(metric.of, metric.limit, is_higher)) }
            td { (number(metric.pages)) }
            td { (quantity(100.0 * metric.missing_share)) " %" }
        }
    }
}
