//! Is it still true? The lead over time, and whether preferences have changed.

use maud::{Markup, html};

use super::chart::{Chart, Figure, Line, Times, links};
use super::forecast::DAY_MS;
use super::layout::{Mark, Tile, counted, day, name, part, percent, points, spoken, with_code};
use super::view::View;
use crate::service::reports::drift::DriftClaim;
use dueling_bandits::claims::drift::{BLOCK, Stretch};

/// The tile of the page.
pub(crate) fn tile(view: &View, drift: &DriftClaim) -> Tile {
    let has_changed = view.answer.alarms.iter().any(|alarm| alarm.kind == "changed-preferences");
    // only a winner of the verdict is watched after the end
    let is_watched = view.loaded.spec.watch > 0.0 && view.is_decided();
    let is_unwatched = view.has_ended() && !is_watched;
    // a score counts by a coin there, which no other number of the page does
    let has_scores = view.loaded.spec.decide_by.is_some();
    // the policy shows the winner alone
    let is_settled = view.is_decided() && view.runs() && !view.fold.compares;
    let (mark, answer) = match (drift.alarms_total, has_changed) {
        (0, _) if is_settled => (Mark::None, "Not watched since the result"),
        _ if is_unwatched && !has_changed => (Mark::None, "Not watched since the end"),
        (0, _) if view.record.archived_at.is_some() => (Mark::None, "Not watched any more"),
        (0, _) if drift.answers < 2 * BLOCK => (Mark::None, "Too few answers to tell"),
        (0, _) => (Mark::Yes, "No change found"),
        (_, true) => (Mark::No, "Preferences changed"),
        (_, false) => (Mark::None, "It started again"),
    };
    let more = html! {
        @if drift.alarms_total > 0 { (with_code(&drift.sentence)) }
        @else if is_settled {
            "No rankers meet any more."
            @if view.loaded.spec.watch > 0.0 {
                @if view.verdict.concludes_by_itself { " Once it has ended, " } @else { " Conclude it: then, " }
                (percent(view.loaded.spec.watch)) " of the pages look for changes"
            }
        }
        @else if !is_unwatched && drift.answers > 0 && !has_scores { "In " (counted(drift.answers, "answer with a winner", "answers with a winner")) }
    };
    Tile::new(("Is it still true?", "still"), (mark, html! { (answer) }), more)
}

/// Most parts of a time that is shorter than two days.
const PARTS_MAX: i64 = 24;
/// A part with fewer answers is shown with the next one.
const FEW: f64 = 20.0;
/// Possible distances between two labels, in points.
const STEPS: [f64; 5] = [2.0, 5.0, 10.0, 20.0, 50.0];
/// Most such distances.
const STEPS_MAX: f64 = 6.0;

/// The lead of one ranker over another in a part of the time.
pub(crate) struct Lead {
    /// Unix milliseconds.
    pub since: i64,
    pub until: i64,
    pub answers: f64,
    /// Share of the duels that it won, and the ends of the bar.
    pub won: f64,
    pub low: f64,
    pub high: f64,
}

impl Lead {
    /// The bar has 95 % by Agresti and Coull, "Approximate is better than exact for interval
    /// estimation of binomial proportions" (1998): it is no claim.
    fn of(since: i64, until: i64, answers: f64, wins: f64) -> Self {
        let all = answers + 4.0;
        let middle = (wins + 2.0) / all;
        let wide = 2.0 * (middle * (1.0 - middle) / all).sqrt();
        let [low, high] = [middle - wide, middle + wide].map(|end| end.clamp(0.0, 1.0));
        Self { since, until, answers, won: wins / answers, low, high }
    }
}

/// The ranker that the leader is compared with: the control, or the closest rival.
pub(crate) fn rival(view: &View) -> Option<&str> {
    let verdict = &view.verdict;
    let control = verdict.control.as_ref().map(|control| &control.control);
    let closest = verdict.effects.first().map(|effect| &effect.rival);
    Some(control.filter(|control| **control != verdict.leader).or(closest)?.as_str())
}

/// The lead by day, or by shorter parts in the first two days.
pub(crate) fn leads(view: &View) -> Vec<Lead> {
    let index = |id: &str| view.loaded.spec.ranker_index(id);
    let drift = view.fold.drift.as_ref().zip(rival(view).and_then(index));
    let Some((drift, rival)) = drift else { return Vec::new() };
    let stretches = drift.stretches(view.leader(), rival);
    let restarted = drift.alarms().last().map(|alarm| alarm.at);
    let start = restarted.unwrap_or(view.record.created_at);
    let is_unwatched = view.has_ended() && view.loaded.spec.watch <= 0.0;
    let end = view.decided_at().filter(|_| is_unwatched).unwrap_or(view.now);
    by_part(&stretches, start, end.max(start + 1))
}

fn by_part(stretches: &[Stretch], start: i64, end: i64) -> Vec<Lead> {
    let part = if end - start < 2 * DAY_MS { ((end - start) / PARTS_MAX).max(1) } else { DAY_MS };
    let mut leads: Vec<Lead> = Vec::new();
    let (mut since, mut answers, mut wins) = (start, 0.0, 0.0);
    for (nth, stretch) in stretches.iter().enumerate() {
        answers += stretch.rate.answers;
        wins += stretch.rate.wins * stretch.rate.answers;
        let until = stretch.until.unwrap_or(end).clamp(since, end);
        let next = stretches.get(nth + 1).map(|next| next.until.unwrap_or(end));
        let is_whole = next.is_none_or(|next| next.div_euclid(part) > until.div_euclid(part));
        if answers >= FEW && is_whole {
            leads.push(Lead::of(since, until, answers, wins));
            (since, answers, wins) = (until, 0.0, 0.0);
        }
    }
    // the newest few are shown with those before
    if let Some(last) = leads.pop_if(|_| answers > 0.0) {
        let wins = last.won * last.answers + wins;
        leads.push(Lead::of(last.since, end, last.answers + answers, wins));
    }
    leads
}

/// The section of the page; nothing without a watch, and before there is a picture.
pub(crate) fn section(view: &View) -> Markup {
    let Some((drift, rival)) = view.verdict.drift.as_ref().zip(rival(view)) else {
        return Markup::default();
    };
    let leader = &view.verdict.leader;
    let content = html! {
        // before any alarm, the tile says what is known
        @if drift.alarms_total > 0 { p { (with_code(&drift.sentence)) } }
        @if let Some(chart) = chart(view) {
            figure {
                figcaption.small.quiet {
                    "The lead of " (name(leader)) " over " (name(rival)) " in points"
                    @if !drift.alarms.is_empty() { ", since the change was found" }
                    ". The area is a rough range of 95 %, and no proof."
                }
                (chart.render())
                (links(&view.record.name, Figure::Days))
            }
            (changes(view))
        } @else { p.note { "Too early for a picture of the lead by day." } }
    };
    part("still", "Is it still true?", &content)
}

/// Which changes the dotted lines mark.
fn changes(view: &View) -> Markup {
    html! {
        @if !view.changes.is_empty() {
            p.note {
                "Dotted lines mark changes of the experiment: "
                @for (nth, change) in view.changes.iter().rev().enumerate() {
                    @if nth > 0 { "; " }
                    (day(change.at, view.now)) ", " (change.what)
                }
                "."
            }
        }
    }
}

/// The picture; `None` before there are two parts.
pub(crate) fn chart(view: &View) -> Option<Chart> {
    let leads = leads(view);
    let (first, last) = (leads.first()?, leads.last()?);
    let times = Times { start: first.since, end: last.until };
    if leads.len() < 2 || times.end <= times.start {
        return None;
    }
    let in_points = |share: f64| 100.0 * (share - 0.5);
    let low = leads.iter().map(|lead| in_points(lead.low)).fold(-2.0, f64::min);
    let high = leads.iter().map(|lead| in_points(lead.high)).fold(2.0, f64::max);
    let fits = |step: &f64| (high / step).ceil() - (low / step).floor() <= STEPS_MAX;
    let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
    let (bottom, top) = ((low / step).floor() * step, (high / step).ceil() * step);
    let height = |points: f64| (points - bottom) / (top - bottom);
    let middle = |lead: &Lead| times.place(lead.since + (lead.until - lead.since) / 2);
    let labels = (0..=((top - bottom) / step).round() as usize).map(|tick| {
        let at = bottom + tick as f64 * step;
        let text = if at == 0.0 { "0".to_owned() } else { points(at / 100.0).replace(".0", "") };
        (height(at), text)
    });
    let area = leads
        .iter()
        .map(|lead| (middle(lead), height(in_points(lead.low)), height(in_points(lead.high))));
    Some(Chart {
        summary: format!(
            "The lead of {} over {} by time: {} points in the first part, {} in the last of {}.",
            spoken(&view.verdict.leader),
            spoken(rival(view)?),
            points(first.won - 0.5),
            points(last.won - 0.5),
            leads.len()
        ),
        lines: vec![Line {
            label: view.labels[view.leader()].clone(),
            colour: 1,
            points: leads.iter().map(|it| (middle(it), height(in_points(it.won)))).collect(),
            preview: Vec::new(),
        }],
        x_ticks: times.ticks(view.now),
        y_ticks: labels.collect(),
        level: Some((height(0.0), "even".to_owned())),
        band: area.collect(),
        changes: times.of_changes(&view.changes),
        ..Chart::default()
    })
}
