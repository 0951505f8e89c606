//! Is it safe? The metrics of each ranker, and their limits.

use maud::{Markup, html};

use super::layout::{Mark, name, number, of_experiments, part, table};
use super::result::Tile;
use super::view::View;
use crate::service::reports::claims::{Claim, ClaimKind, ClaimState};
use crate::service::reports::guardrails::{LimitOf, quantity};
use rankduel_engine::experiment_spec::Errors;

/// Whether a claim of this kind is decided.
fn is(claim: &Claim, kind: ClaimKind) -> bool {
    claim.claim == kind && claim.state == ClaimState::Decided
}

/// Whether the leader is proven to be above the limit of a metric.
pub(crate) fn leader_does_harm(view: &View) -> bool {
    let leader = view.verdict.leader.as_str();
    let mut claims = view.fold.guardrails.iter();
    claims.any(|claim| is(claim, ClaimKind::Harm) && claim.ranker.as_deref() == Some(leader))
}

/// The tile of the page; `None` without metrics.
pub(crate) fn tile(view: &View) -> Option<Tile> {
    let claims = &view.fold.guardrails;
    let leader = view.verdict.leader.as_str();
    let of_leader = || claims.iter().filter(|claim| claim.ranker.as_deref() == Some(leader));
    let mut harmful: Vec<&str> = Vec::new();
    for claim in claims.iter().filter(|claim| is(claim, ClaimKind::Harm)) {
        let ranker = claim.ranker.as_deref().unwrap_or_default();
        if !harmful.contains(&ranker) {
            harmful.push(ranker);
        }
    }
    claims.first()?;
    let mut safe = of_leader().filter(|claim| claim.claim == ClaimKind::Safe).peekable();
    let is_trusted = |claim: &Claim| claim.metric.as_ref().is_some_and(|it| !it.uneven);
    let is_safe =
        safe.peek().is_some() && safe.all(|claim| is(claim, ClaimKind::Safe) && is_trusted(claim));
    let (mark, answer) = match (leader_does_harm(view), is_safe) {
        (true, _) => (Mark::No, html! { "No, it does harm" }),
        (false, true) => (Mark::Yes, html! { "Yes, within every limit" }),
        (false, false) if view.has_ended() => (Mark::None, html! { "Not proven" }),
        (false, false) => (Mark::Wait, html! { "Not known yet" }),
    };
    let more = html! {
        (view.short(leader)) "."
        @if let Some(first) = harmful.iter().find(|ranker| **ranker != leader) {
            " " (view.short(first)) " does harm."
        }
    };
    Some(Tile { question: "Is it safe?", section: "safe", mark, answer, more })
}

/// The section of the page; nothing without metrics.
pub(crate) fn section(view: &View) -> Markup {
    let claims = &view.fold.guardrails;
    let spec = &view.loaded.spec;
    let error = Errors::of_metrics(spec.errors, spec.conclude_at);
    if claims.is_empty() {
        return Markup::default();
    }
    let rows = html! { @for pair in claims.chunk_by(is_pair) { (row(view, pair)) } };
    let content = html! {
        p {
            "Each metric has a limit of its mean, or of how much worse it is than that of the control. Every page counts, clicked or not, and a missing value counts as the worst. A ranker within the limit is said to do harm in at most "
            (of_experiments(error)) " experiments."
        }
        (table("Metrics", &["Ranker", "Metric", "Result", "Mean", "Limit", "Pages"], &rows))
    };
    part("safe", "Is it safe?", &content)
}

/// Harm and safe of one ranker and limit.
fn is_pair(one: &Claim, other: &Claim) -> bool {
    one.claim == ClaimKind::Harm && other.claim == ClaimKind::Safe && one.ranker == other.ranker
}

fn row(view: &View, pair: &[Claim]) -> Markup {
    let Some((ranker, metric)) =
        pair.first().and_then(|claim| claim.ranker.as_ref().zip(claim.metric.as_ref()))
    else {
        return Markup::default();
    };
    let decided = |kind| pair.iter().any(|claim| is(claim, kind));
    let (mark, result) = match (decided(ClaimKind::Harm), decided(ClaimKind::Safe)) {
        _ if metric.uneven => (Mark::Wait, "not to be trusted: units are not split evenly"),
        (true, _) => (Mark::No, "does harm"),
        (false, true) => (Mark::Yes, "safe"),
        (false, false) if view.has_ended() => (Mark::None, "not proven"),
        (false, false) => (Mark::Wait, "still open"),
    };
    html! {
        tr {
            td { (name(ranker)) }
            td {
                code { (metric.name) }
                @match metric.of {
                    LimitOf::Value => {},
                    LimitOf::Difference => " worse than the control",
                    LimitOf::Pages => " worse than the control, on pages of one alone",
                }
            }
            td { (mark.icon()) " " (result) }
            td { @match metric.mean { Some(mean) => (quantity(mean)), None => "no page" } }
            td { (quantity(metric.limit)) }
            td { (number(metric.pages)) }
        }
    }
}
