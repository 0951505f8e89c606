//! Everything that a new experiment will have, in words.

use maud::{Markup, html};

use super::super::layout::{fact, name, seconds, with_code};
use super::overview::{answer_window, concludes};
use super::{methods, policies};
use dueling_bandits::TieRule;
use dueling_bandits::claims::control::Goal;
use rankduel_engine::experiment_spec::{
    Better, DecideBy, Errors, ExperimentSpec, Metric, MetricOf, OnDrift, OnHarm,
};

/// The settings of an experiment that starts at `from`, in Unix milliseconds.
pub(super) fn facts(spec: &ExperimentSpec, from: i64) -> Markup {
    html! {
        dl.facts {
            @if !spec.description.is_empty() { (fact("Description", &html! { bdi { (spec.description) } })) }
            @if !spec.owner.is_empty() { (fact("Owner", &html! { bdi { (spec.owner) } })) }
            (fact("Rankers", &rankers(spec)))
            (fact("Control", &control(spec)))
            @if let Some(orders) = &spec.decide_by {
                (fact("Decided by", &decides(orders)))
                @if spec.rankers.len() > 2 {
                    (fact("Each unit sees", &html! { "the two rankers of its first page: every request needs its unit" }))
                }
            }
            (fact("Takes part", &html! { (exact(spec.coverage)) " of the units" }))
            @if spec.alone > 0.0 { (fact("Sees one ranker alone", &html! { (exact(spec.alone)) " of the units" })) }
            (fact("Concludes", &concludes(spec, from)))
            @if let Some(division) = spec.errors { (fact("Errors", &html! { (errors(division)) })) }
            @if !spec.segments.is_empty() { (fact("Segments", &html! { ul { @for it in &spec.segments { li { bdi { (it) } } } } })) }
            @if !spec.metrics.is_empty() { (fact("Metrics", &html! {
                ul { @for it in &spec.metrics { li { (with_code(&metric(it))) } } }
                "Values count that come within " (seconds(spec.value_window_seconds.into())) "."
            })) }
            (fact("Changed preferences", &html! { (drift(spec)) }))
            @if let Some([one, other]) = &spec.pages.canary { (fact("Canary", &html! {
                (name(one)) " and " (name(other)) " on " (exact(spec.pages.canary_share)) " of the pages"
            })) }
            (fact("Policy", &policies::described(&spec.policy)))
            (fact("Interleaving", &methods::described(&spec.pages.interleaving)))
            (fact("A tie counts", &html! { (ties(spec.ties)) }))
            (fact("A duel expires after", &html! { (seconds(spec.duel_ttl_seconds.into())) }))
            (fact("Answer window", &answer_window(spec)))
            @if spec.decide_by.is_none() {
                (fact("Clicks settle after", &html! { (seconds(spec.settle_after_seconds().into())) }))
            }
        }
    }
}

/// A share as it was read, in percent.
pub(super) fn exact(share: f64) -> String {
    let percent = format!("{:.4}", 100.0 * share);
    format!("{}\u{a0}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

fn rankers(spec: &ExperimentSpec) -> Markup {
    html! { ul { @for ranker in &spec.rankers { li {
        (name(&ranker.id))
        @if let Some(description) = &ranker.description { ": " bdi { (description) } }
    } } } }
}

fn control(spec: &ExperimentSpec) -> Markup {
    let Some(control) = &spec.control else {
        return html! { "none: nothing is said about today's ranker" };
    };
    html! {
        (name(control)) ", "
        @match spec.goal {
            Goal::Best => "beside the search for the best ranker",
            Goal::Improve => "which is to be improved on first",
        }
    }
}

fn decides(by: &DecideBy) -> Markup {
    html! {
        @match by.money_cap() {
            Some(cap) => { "the money of each " bdi { (by.event) } ", up to " (cap) " a unit" }
            None => { bdi { (by.event) } }
        }
        " within " (seconds(by.window_seconds.into())) " of a unit's first clicked page; sent within "
        (seconds(by.arrival_seconds().into()))
    }
}

fn errors(division: Errors) -> String {
    let parts = [
        ("best ranker", division.best),
        ("control", division.control),
        ("segments", division.segments),
        ("metrics", division.metrics),
    ];
    let parts = parts.into_iter().filter_map(|(of, part)| Some(format!("{of} {}", exact(part?))));
    format!("{}; the others share the rest", parts.collect::<Vec<_>>().join(", "))
}

fn metric(metric: &Metric) -> String {
    let Metric { name, of, better, cap, limit, difference, on_harm } = metric;
    let of = match of {
        MetricOf::Ranker => "of a ranker",
        MetricOf::Page => "of a page that shows one ranker alone",
    };
    let (better, worse) = match better {
        Better::Lower => ("lower", "above"),
        Better::Higher => ("higher", "below"),
    };
    let limits = [
        limit.map(|limit| format!("its mean is {worse} {limit}")),
        difference
            .map(|difference| format!("it is worse than the control by more than {difference}")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    let then = match on_harm {
        OnHarm::Retire => "the ranker is retired",
        OnHarm::Pause => "the experiment is paused",
        OnHarm::Tell => "an alarm tells",
    };
    format!("`{name}` {of}, 0 to {cap}, {better} is better: if {}, {then}", limits.join(" or if "))
}

fn drift(spec: &ExperimentSpec) -> String {
    let what = match spec.drift {
        OnDrift::Off => return "nobody looks for them".into(),
        OnDrift::Tell => "an alarm tells",
        OnDrift::Restart => "an alarm tells, and the verdict starts again",
    };
    format!("{what}; {} of the pages after the conclusion look for them", exact(spec.watch))
}

fn ties(ties: TieRule) -> &'static str {
    match ties {
        TieRule::Skip => "nothing",
        TieRule::Half => "half a win for both",
        TieRule::Coin => "a win for one of them, by a coin",
    }
}
