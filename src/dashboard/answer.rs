//! The answer of a page: what to do, in a headline, a paragraph, one error and the buttons.

use maud::{Markup, html};

use super::layout::{
    Mark, capitalized, counted, enumerated, hour, moment, name, names, number, of_experiments,
    percent, with_code,
};
use super::view::{DAY_MS, Pace, View};
use super::{safe, whom};
use crate::service::reports::claims::{ClaimKind, ControlView};
use crate::service::reports::verdict::{DuelsToGo, Verdict};
use rankduel_engine::experiment_spec::{ConcludeAt, ExperimentSpec};
use rankduel_store::events::Status;

/// A forecast that is further away is no date.
const FAR_DAYS: i64 = 90;

pub(crate) struct Answer {
    pub mark: Mark,
    /// The state, in a few words.
    pub state: Markup,
    pub headline: Markup,
    pub paragraph: Markup,
    pub error: Markup,
    pub advice: Markup,
}

/// When the result is expected.
pub(crate) enum When {
    /// The answers that wait are enough.
    Waits,
    /// About this time, in Unix milliseconds, and no later than the other one in nine of ten
    /// forecasts.
    About(i64, Option<i64>),
    /// Too far away to say.
    Far,
    /// Why there is no forecast.
    Unknown(String),
}

impl When {
    pub fn of(verdict: &Verdict, pace: Pace) -> Self {
        let late = |at: i64| at - pace.now > FAR_DAYS * DAY_MS;
        match &verdict.duels_to_go {
            Some(DuelsToGo { estimate: 0, .. }) => Self::Waits,
            Some(DuelsToGo { estimate, high, .. }) => match pace.after(*estimate) {
                None => Self::Unknown("no pages come at present".into()),
                Some(at) if late(at) => Self::Far,
                Some(at) => {
                    let high = high.and_then(|high| pace.after(high));
                    Self::About(at, high.filter(|at| !late(*at)))
                }
            },
            None => Self::Unknown(verdict.duels_to_go_reason.clone().unwrap_or_default()),
        }
    }
}

/// The answer of this page.
pub(crate) fn answer(view: &View) -> Answer {
    let mut answer = match (view.is_decided(), view.has_ended()) {
        (true, _) => result(view),
        (false, true) => stopped(view),
        (false, false) if !view.has_compared() => empty(view),
        (false, false) => open(view),
    };
    answer.error = html! {
        (answer.error)
        @for doubt in &view.verdict.rests_on.doubts { " " strong { (with_code(doubt)) } }
    };
    if view.record.archived_at.is_some() {
        answer.advice = html! { "The experiment is archived: it can be read, but not changed." };
    }
    answer
}

/// The changes that lead on: their paths and titles, the likely one first.
pub(crate) fn buttons(view: &View) -> Vec<(&'static str, Markup)> {
    let pause = ("pause", html! { "Pause…" });
    let resume = ("resume", html! { "Resume…" });
    let verb = if runs_today(view) { "Keep " } else { "Ship " };
    let ship = ("conclude", html! { (verb) (view.short(&view.verdict.leader)) "…" });
    match (view.record.archived_at, view.is_decided(), view.record.status) {
        _ if !view.visitor.manages => Vec::new(),
        (Some(_), ..) => Vec::new(),
        (_, true, Status::Concluded) => vec![("archive", html! { "Archive…" }), resume],
        (_, false, Status::Concluded) => vec![resume, ("archive", html! { "Archive…" })],
        (_, true, Status::Running) => vec![ship, pause],
        (_, true, Status::Paused) => vec![ship, resume],
        (_, false, Status::Running) if !view.has_compared() => vec![pause],
        (_, false, Status::Running) => vec![("conclude", html! { "Stop…" }), pause],
        (_, false, Status::Paused) => vec![resume, ("conclude", html! { "Stop…" })],
    }
}

/// Whether the leader is what people see today.
fn runs_today(view: &View) -> bool {
    view.verdict.control.as_ref().is_some_and(|control| control.control == view.verdict.leader)
}

/// How many pages of a concluded experiment show its winner.
pub(super) fn shows(spec: &ExperimentSpec) -> Markup {
    html! {
        @if spec.watch > 0.0 { (percent(1.0 - spec.watch)) " of the pages show only " } @else { "Every page shows " }
    }
}

/// The winner against the control. `None` without a control.
fn against_control(view: &View) -> Option<AgainstControl> {
    let control = view.verdict.control.as_ref().filter(|_| view.verdict.winners.len() == 1)?;
    let (leader, own) = (name(&control.ranker), name(&control.control));
    let waits = view.runs() && view.loaded.spec.conclude_at.is_some_and(|at| at.control);
    Some(match control.proven {
        _ if runs_today(view) => AgainstControl {
            mark: Mark::Yes,
            headline: html! { "Keep " (leader) ", which you run now." },
            advice: Some(html! { "There is nothing to ship." }),
        },
        Some(ClaimKind::Better | ClaimKind::Best) => {
            let sentence = control.sentence.trim_end_matches('.');
            AgainstControl {
                mark: Mark::Yes,
                headline: html! { (with_code(sentence)) ": ship it" (whom::but_not_in(view)) },
                advice: None,
            }
        }
        Some(ClaimKind::Worse) => AgainstControl {
            mark: Mark::Wait,
            headline: html! { (leader) " beats the most rankers, but it loses to " (own) ", which you run now." },
            advice: Some(html! { "Do not ship it before you know why." }),
        },
        _ if control.settled || view.has_ended() => AgainstControl {
            mark: Mark::Yes,
            headline: html! { (leader) " is the best. That it is better than what you run is not proven." },
            advice: None,
        },
        _ => AgainstControl {
            mark: if waits { Mark::Wait } else { Mark::Yes },
            headline: html! { (leader) " is the best. Whether it is better than what you run is open." },
            advice: waits.then(|| html! {
                b { "Nothing to do. " } "It meets " (own) " until that is known, or out of reach."
            }),
        },
    })
}

/// The parts of an answer that depend on the winner against the control.
struct AgainstControl {
    mark: Mark,
    headline: Markup,
    /// Advice for the reader, if it is other than without a control.
    advice: Option<Markup>,
}

fn empty(view: &View) -> Answer {
    let (duels, issued) = (view.verdict.duels, view.traffic.counts.pairs);
    let name = &view.record.name;
    Answer {
        mark: Mark::None,
        state: html! { @if duels == 0 { "No answers yet" } @else { "No result yet" } },
        headline: html! {
            @if duels > 0 { "No page has had a winner yet." }
            @else if issued > 0 { (counted(issued, "page was", "pages were")) " shown. No answer has arrived yet." }
            @else { "Your backend has not asked for a page yet." }
        },
        paragraph: html! {
            @if duels > 0 {
                (counted(duels, "answer is", "answers are")) " in, and none prefers a ranker: these pages had no click, or as many for both."
            } @else {
                "Ask for pages with " code { "POST /v1/experiments/" (name) "/next-duel" }
                ", show them, and send what was clicked to " code { "/v1/experiments/" (name) "/feedback" } "."
            }
        },
        error: Markup::default(),
        advice: html! { a href="/docs" { "How to connect" } },
    }
}

/// There is no result yet.
fn open(view: &View) -> Answer {
    let (leader, when) = (&view.verdict.leader, view.when());
    let waits = matches!(when, When::Waits) && view.waiting().is_some();
    let proven = proven_better(view);
    let waiting_answers = view.waiting().map(|waiting| match waiting.answers {
        1 => "1\u{a0}answer is in and waits".to_owned(),
        answers => format!("{}\u{a0}answers are in and wait", number(answers)),
    });
    Answer {
        mark: if waits { Mark::Wait } else { Mark::Run },
        state: html! { @if waits { "Waiting for answers" } @else { "No result yet" } },
        headline: html! {
            @if let Some(control) = proven { (with_code(&control.sentence)) " " }
            (name(leader)) " leads. "
            @match (&when, view.waiting()) {
                (When::Waits, Some(_)) => { (waiting_answers.as_deref().unwrap_or_default()) "; they would settle it." }
                _ if !view.runs() => { "The experiment is paused." }
                (When::About(at, _), _) => { "We will know about " (moment(*at, view.now)) "." }
                (When::Far, _) => { "A lead this small takes more than " (FAR_DAYS) " days to show." }
                (When::Waits | When::Unknown(_), _) => { "There is no date yet." }
            }
        },
        paragraph: html! {
            (standing(view))
            @if let Some(waiting) = view.waiting() {
                " " (waiting_answers.as_deref().unwrap_or_default()) ", because other pages of that time can still get theirs; "
                @if waits { "the result can come at " } @else { "the first of them count at " }
                (hour(waiting.next_count_ms, view.now)) "."
            }
            @if !view.runs() { " Resume it to learn more." }
        },
        error: html! {
            @if waits { "A result will be wrong in at most " (view.error()) " experiments. Answers that wait are no result yet." }
            @else { "Rivals are ruled out by mistake in at most " (view.error()) " experiments." }
            (error_of_better(view))
        },
        advice: html! {
            @if !view.runs() {}
            @else if view.verdict.concludes_by_itself { b { "Nothing to do. " } "The experiment ends by itself once there is a result" (limits(view)) "." }
            @else { b { "Let it run. " } "Conclude it once there is a result." }
        },
    }
}

/// The ranker that is proven to be better than the control.
fn proven_better(view: &View) -> Option<&ControlView> {
    view.verdict.control.as_ref().filter(|control| control.proven == Some(ClaimKind::Better))
}

fn error_of_better(view: &View) -> Markup {
    let error = proven_better(view).map(|_| of_experiments(view.fold.control_error));
    html! { @if let Some(error) = error { " That a ranker is better than what you run now is wrong in at most " (error) "." } }
}

/// The end of "once there is a result": what it waits for besides, and the limits without a result.
fn limits(view: &View) -> Markup {
    let at = view.loaded.spec.conclude_at.unwrap_or_default();
    let ConcludeAt { min_days, max_days: days, max_duels: duels, .. } = at;
    let control = at.control && view.verdict.control.is_some();
    html! {
        @if control { ", also against what you run" }
        @if let Some(days) = min_days { ", after " (days) "\u{a0}days at the earliest" }
        @if let Some(days) = days { ", or after " (days) "\u{a0}days" }
        @if let Some(duels) = duels { ", or after " (counted(duels, "answer", "answers")) }
    }
}

/// How many rivals are ruled out.
pub(super) fn ruled_out(out: usize, rivals: usize) -> String {
    match (out, rivals) {
        (0, 1) => "its rival is not ruled out".into(),
        (0, _) => format!("none of {rivals} rivals is ruled out"),
        (1, _) => format!("1 of {rivals} rivals is ruled out"),
        _ => format!("{out} of {rivals} rivals are ruled out"),
    }
}

/// How many rivals are ruled out, and which are not.
fn standing(view: &View) -> Markup {
    let open: Vec<_> = view.open_rivals().iter().map(|of| view.short(&of.rival)).collect();
    html! {
        (capitalized(&view.ruled_out()))
        @match &open[..] {
            [closest, _, ..] => { " " (open.len()) " can still win: " (enumerated(&open)) "; " (closest) " is closest." }
            [one] => { " " (one) " can still win." }
            [] => {}
        }
    }
}

fn result(view: &View) -> Answer {
    let (verdict, leader) = (&view.verdict, &view.verdict.leader);
    let concluded = verdict.concluded.as_ref().and_then(|done| done.winner.as_ref());
    let other = concluded.filter(|shown| !verdict.winners.contains(shown));
    let doubted = !verdict.rests_on.doubts.is_empty() && !view.has_ended();
    let control = against_control(view).filter(|_| other.is_none() && !doubted);
    let until = view.loaded.spec.conclude_at.and_then(|at| at.min_days);
    let until = until.map(|days| view.record.created_at + (days * DAY_MS as f64) as i64);
    let until = until.filter(|at| verdict.concludes_by_itself && *at > view.now && view.runs());
    let both = verdict.condorcet && view.active().len() > 2 && verdict.winners.len() == 1;
    let twice = of_experiments((2.0 * (1.0 - verdict.confidence)).min(1.0));
    let harms = safe::leader_does_harm(view);
    let proven = verdict.control.as_ref().and_then(|control| control.proven);
    let with_control = of_experiments(1.0 - verdict.confidence + view.fold.control_error);
    let winners: Vec<&str> = verdict.winners.iter().map(String::as_str).collect();
    Answer {
        mark: match &control {
            _ if doubted || harms || view.has_changed() => Mark::No,
            _ if other.is_some() || until.is_some() => Mark::Wait,
            Some(AgainstControl { mark, .. }) => *mark,
            None => Mark::Yes,
        },
        state: html! { "Result" @if let Some(at) = view.decided_at() { " of " (moment(at, view.now)) } },
        headline: html! {
            @if let Some(shown) = other { (shows(&view.loaded.spec)) (name(shown)) ", but the result is " (name(leader)) "." }
            @else if view.has_changed() { (name(leader)) " won, but preferences have changed: the result may be out of date." }
            @else if doubted { (name(leader)) " wins. Look at a doubt before you ship it." }
            @else if harms { (name(leader)) " wins, but it does harm. Look at that before you ship it." }
            @else if let Some(at) = until {
                (names(&winners)) @if winners.len() > 1 { " are" } @else { " is" } " the best. The experiment runs until " (moment(at, view.now)) "."
            }
            @else if let Some(AgainstControl { headline, .. }) = &control { (headline) }
            @else if let Some(shown) = concluded { "Ship " (name(shown)) (whom::but_not_in(view)) }
            @else if winners.len() > 1 { "Ship any of them: " (names(&winners)) "." }
            @else { "Ship " (name(leader)) (whom::but_not_in(view)) }
        },
        paragraph: html! {
            (with_code(&verdict.claim))
            @if !harms && !safe::holds_all(view) { " That it is within every limit is not proven." }
            @if let Some(shown) = other { " Somebody concluded the experiment on " (name(shown)) " nevertheless." }
        },
        error: html! {
            "This result is wrong in at most " (view.error()) " experiments"
            @if both { "; counting that the winner beats each of the others, in at most " (twice) }
            @if proven == Some(ClaimKind::Better) { "; counting the comparison with what you run now, in at most " (with_control) }
            "."
            @if let Some(remark) = verdict.rests_on.remark { " " (with_code(remark)) }
        },
        advice: html! {
            @if other.is_some() { "Check whether that is what you want." }
            @else if view.has_changed() { "Look for what has changed, and start a new experiment." }
            @else if harms { "Repair it, or ship another ranker. \"Is it safe?\" has the metric and its limit." }
            @else if until.is_some() { b { "Nothing to do. " } "It ends by itself after its least number of days." }
            @else if let Some(AgainstControl { advice: Some(advice), .. }) = &control { (advice) }
            @else if let Some(shown) = concluded { (shows(&view.loaded.spec)) (name(shown)) ". Make it the default in your search backend, then archive the experiment." }
            @else if doubted { "If you know that the doubt does not matter here, ship it." }
            @else if view.runs() && verdict.concludes_by_itself { b { "Nothing to do. " } "The experiment ends by itself in a moment." }
            @else { "Further pages do not change the result." }
        },
    }
}

/// The experiment has ended without a result.
fn stopped(view: &View) -> Answer {
    let verdict = &view.verdict;
    let concluded = verdict.concluded.as_ref();
    let shown = concluded.and_then(|done| done.winner.as_ref()).unwrap_or(&verdict.leader);
    let by_itself = concluded.is_some_and(|done| done.automatic);
    let better = proven_better(view).filter(|control| control.ranker == *shown);
    Answer {
        mark: Mark::None,
        state: html! { "Ended without a result" },
        headline: html! {
            @if let Some(control) = better { (with_code(&control.sentence)) " " }
            (shows(&view.loaded.spec)) (name(shown))
            @if better.is_some() { ". That it is the best is not proven." } @else { ", without a proof." }
        },
        paragraph: html! {
            @if by_itself { "The experiment came to a limit and ended on its leader. " }
            @else { "Somebody concluded it on " (name(shown)) ". " }
            @if verdict.rests_on.excluded_units > 0 { "Without the answers of the excluded units, the " } @else { "The " }
            "evidence is not enough for a result"
            @if view.has_compared() { ": " (name(&verdict.leader)) " led, and " (view.ruled_out()) }
            "."
        },
        error: html! {
            "A result would have been wrong in at most " (view.error()) " experiments."
            (error_of_better(view))
        },
        advice: html! { "Weigh what speaks for " (name(shown)) " before you make it the default, or resume the experiment." },
    }
}
