//! The answer of a page: what to do, in a headline, a paragraph, one error and the buttons.

use maud::{Markup, html};

use super::layout::{
    Mark, counted, hour, margin_points, moment, name, names, of_experiments, with_code,
};
use super::view::{Pace, View};
use crate::service::reports::verdict::{DuelsToGo, Verdict};
use rankduel_store::events::Status;

/// A forecast that is further away is no date.
const FAR_DAYS: i64 = 90;
const DAY_MS: i64 = 86_400_000;

/// The answer.
pub(crate) struct Say {
    pub mark: Mark,
    /// The state, in a few words.
    pub state: Markup,
    pub headline: Markup,
    pub paragraph: Markup,
    pub error: Markup,
    /// The next step.
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
pub(crate) fn say(view: &View) -> Say {
    let mut say = match (view.is_decided(), view.has_ended()) {
        (true, _) => result(view),
        (false, true) => stopped(view),
        (false, false) if !view.has_compared() => empty(view),
        (false, false) => open(view),
    };
    say.error = html! {
        (say.error)
        @for doubt in &view.verdict.rests_on.doubts { " " strong { (with_code(doubt)) } }
    };
    if view.record.archived_at.is_some() {
        say.advice = html! { "The experiment is archived: it can be read, but not changed." };
    }
    say
}

/// The changes that lead on: their paths and titles, the likely one first.
pub(crate) fn buttons(view: &View) -> Vec<(&'static str, Markup)> {
    let pause = ("pause", html! { "Pause…" });
    let resume = ("resume", html! { "Resume…" });
    let ship = ("conclude", html! { "Ship " (view.short(&view.verdict.leader)) "…" });
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

/// The error of a result.
fn error(view: &View) -> String {
    of_experiments(1.0 - view.verdict.confidence)
}

/// Nothing was learned yet.
fn empty(view: &View) -> Say {
    let (duels, issued, name) = (view.verdict.duels, view.traffic.pairs, &view.record.name);
    Say {
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
fn open(view: &View) -> Say {
    let (leader, when) = (&view.verdict.leader, view.when());
    let waits = matches!(when, When::Waits) && view.waiting().is_some();
    Say {
        mark: if waits { Mark::Wait } else { Mark::Run },
        state: html! { @if waits { "Waiting for answers" } @else { "No result yet" } },
        headline: html! {
            (name(leader)) " leads. "
            @match (&when, view.waiting()) {
                (When::Waits, Some(waiting)) => {
                    (counted(waiting.answers, "answer is", "answers are")) " in and wait; they would settle it."
                }
                _ if !view.runs() => { "The experiment is paused." }
                (When::About(at, _), _) => { "We will know about " (moment(*at, view.now)) "." }
                (When::Far, _) => { "A lead this small takes more than " (FAR_DAYS) " days to show." }
                (When::Waits | When::Unknown(_), _) => { "It is too early for a date." }
            }
        },
        paragraph: html! {
            (standing(view))
            @if let Some(waiting) = view.waiting() {
                " " (counted(waiting.answers, "answer is", "answers are")) " in and "
                @if waiting.answers == 1 { "waits" } @else { "wait" }
                ", because other pages of that time can still get theirs; "
                @if waits { "the result can come at " } @else { "the first of them count at " }
                (hour(waiting.next_count_ms, view.now)) "."
            }
            @if !view.runs() { " Resume it to learn more." }
        },
        error: html! {
            @if waits { "A result will be wrong in at most " (error(view)) " experiments. Answers that wait are no result yet." }
            @else { "Rivals are ruled out by mistake in at most " (error(view)) " experiments." }
        },
        advice: html! {
            @if !view.runs() {}
            @else if view.verdict.concludes_by_itself { b { "Nothing to do. " } "The experiment ends by itself once there is a result." }
            @else { b { "Let it run. " } "Conclude it once there is a result." }
        },
    }
}

/// How many rivals are ruled out, and which are not.
fn standing(view: &View) -> Markup {
    let (open, out) = (view.rivals(false), view.rivals(true).len());
    let rivals = view.active().len() - 1;
    let ids: Vec<&str> = open.iter().map(|effect| effect.rival.as_str()).collect();
    html! {
        @match (rivals, out) {
            (1, _) => { (names(&ids)) " is not ruled out yet." }
            (_, 0) => { "None of the " (rivals) " rivals is ruled out yet: " (names(&ids)) " can still win." }
            (_, out) => {
                (out) " of " (rivals) " rivals " @if out == 1 { "is" } @else { "are" } " ruled out. "
                @if let [one] = ids[..] { "One can still win: " (name(one)) "." }
                @else { (ids.len()) " can still win: " (names(&ids)) "; " (name(ids[0])) " is closest." }
            }
        }
    }
}

/// The claim of the verdict.
fn claim(view: &View) -> Markup {
    let (verdict, rankers) = (&view.verdict, view.active().len());
    let winners: Vec<&str> = verdict.winners.iter().map(String::as_str).collect();
    let tie = html! {
        @if verdict.margin > 0.0 { ", if a lead of up to " (margin_points(verdict.margin)) " counts as a tie" }
        "."
    };
    html! {
        @if winners.len() > 1 {
            (names(&winners)) " are equally good: no other ranker beats more of the others than they do" (tie) " Choose any of them."
        } @else if rankers == 2 || verdict.condorcet {
            (name(&verdict.leader))
            @if rankers == 2 { " beats " @for effect in &verdict.effects { (name(&effect.rival)) } }
            @else { " beats each of the " (rankers - 1) " others" }
            @if verdict.margin > 0.0 { ", or is at most " (margin_points(verdict.margin)) " behind" }
            "."
        } @else {
            (name(&verdict.leader)) " is the best of " (rankers) " rankers: no other beats more of the others" (tie)
        }
    }
}

/// There is a result.
fn result(view: &View) -> Say {
    let (verdict, leader) = (&view.verdict, &view.verdict.leader);
    let concluded = verdict.concluded.as_ref().and_then(|done| done.winner.as_ref());
    let other = concluded.filter(|shown| !verdict.winners.contains(shown));
    let doubted = !verdict.rests_on.doubts.is_empty() && !view.has_ended();
    let until = view.loaded.spec.conclude_at.and_then(|at| at.min_days);
    let until = until.map(|days| view.record.created_at + (days * DAY_MS as f64) as i64);
    let until = until.filter(|at| verdict.concludes_by_itself && *at > view.now && view.runs());
    let both = verdict.condorcet && view.active().len() > 2 && verdict.winners.len() == 1;
    let twice = of_experiments((2.0 * (1.0 - verdict.confidence)).min(1.0));
    let winners: Vec<&str> = verdict.winners.iter().map(String::as_str).collect();
    Say {
        mark: if doubted {
            Mark::No
        } else if other.is_some() {
            Mark::Wait
        } else {
            Mark::Yes
        },
        state: html! { "Result" @if let Some(at) = view.decided_at() { " of " (moment(at, view.now)) } },
        headline: html! {
            @if let Some(shown) = other { "Every page shows " (name(shown)) ", but the result is " (name(leader)) "." }
            @else if doubted { (name(leader)) " wins. Look at a doubt before you ship it." }
            @else if let Some(shown) = concluded { "Ship " (name(shown)) "." }
            @else if winners.len() > 1 { "Ship any of them: " (names(&winners)) "." }
            @else if let Some(at) = until { (name(leader)) " is the best. It runs until " (moment(at, view.now)) "." }
            @else { "Ship " (name(leader)) "." }
        },
        paragraph: html! {
            (claim(view))
            @if let Some(shown) = other { " Somebody concluded the experiment on " (name(shown)) " nevertheless." }
        },
        error: html! {
            "This result is wrong in at most " (error(view)) " experiments"
            @if both { "; counting that the winner beats each of the others, in at most " (twice) }
            "."
            @if let Some(remark) = verdict.rests_on.remark { " " (with_code(remark)) }
        },
        advice: html! {
            @if other.is_some() { "Check whether that is what you want." }
            @else if let Some(shown) = concluded { "Every page shows " (name(shown)) ". Make it the default in your search backend, then archive the experiment." }
            @else if doubted { "If you know that the doubt does not matter here, ship it." }
            @else if until.is_some() { b { "Nothing to do. " } "It ends by itself after its least number of days." }
            @else if view.runs() && verdict.concludes_by_itself { b { "Nothing to do. " } "The experiment ends by itself in a moment." }
            @else { "Further pages do not change the result." }
        },
    }
}

/// The experiment has ended without a result.
fn stopped(view: &View) -> Say {
    let verdict = &view.verdict;
    let concluded = verdict.concluded.as_ref();
    let shown = concluded.and_then(|done| done.winner.as_ref()).unwrap_or(&verdict.leader);
    let by_itself = concluded.is_some_and(|done| done.automatic);
    let (out, rivals) = (view.rivals(true).len(), view.active().len() - 1);
    Say {
        mark: Mark::None,
        state: html! { "Ended without a result" },
        headline: html! { "Every page shows " (name(shown)) ", without a proof." },
        paragraph: html! {
            @if by_itself { "The experiment came to a limit and ended on its leader. " }
            @else { "Somebody concluded it on " (name(shown)) ". " }
            @if verdict.rests_on.excluded_units > 0 { "Without the answers of the excluded units, the " } @else { "The " }
            "evidence is not enough for a result"
            @if view.has_compared() {
                ": " (out) " of " (counted(rivals as u64, "rival", "rivals")) " of " (name(&verdict.leader)) " "
                @if out == 1 { "is" } @else { "are" } " ruled out"
            }
            "."
        },
        error: html! { "A result would have been wrong in at most " (error(view)) " experiments." },
        advice: html! { "Weigh what speaks for " (name(shown)) " before you make it the default, or resume the experiment." },
    }
}
