//! `/`: the list of experiments, from what is stored.

use maud::{Markup, html};

use super::layout::{
    Mark, Visitor, badge, counted, moment, number, points, timestamp, with_code, words,
};
use crate::http::parameters::write_cursor;
use crate::service::answer::{Answer, State};
use crate::service::kept::{Group, LeadOver};
use rankduel_store::{ListPlace, ListSize, ListedExperiment};

/// Experiments of a page.
pub(crate) const PAGE: u32 = 100;

pub(crate) struct Row {
    pub listed: ListedExperiment,
    pub answer: Answer,
    pub lead: Option<LeadOver>,
}

/// A page of the list.
pub(crate) struct Shown {
    pub rows: Vec<Row>,
    pub size: ListSize,
    pub more: bool,
    pub is_first: bool,
    /// The experiments that this server cannot read, whatever is stored.
    pub unreadable: Vec<String>,
    pub search: Option<String>,
    pub state: Option<String>,
}

impl Group {
    fn title(self) -> &'static str {
        match self {
            Self::Alarm => "Look into it",
            Self::Decision => "Needs a decision",
            Self::Running => "Going on",
            Self::Finished => "Finished",
        }
    }
}

/// The states that a list can have, the most important ones first.
const STATES: [State; 13] = [
    State::Harm,
    State::Alarm,
    State::OpenLimit,
    State::Doubt,
    State::NotWatched,
    State::Segment,
    State::Result,
    State::Stopped,
    State::Paused,
    State::Waiting,
    State::Leader,
    State::Empty,
    State::Archived,
];

/// The choices of the filter: the words of the badges, each with the states that have them, and an
/// end whatever holds.
fn choices() -> Vec<(&'static str, String)> {
    let mut choices: Vec<(&str, String)> = Vec::new();
    for state in STATES {
        let (_, text) = words(state);
        match choices.iter_mut().find(|(other, _)| *other == text) {
            Some((_, states)) => *states = format!("{states},{}", state.name()),
            None => choices.push((text, state.name())),
        }
    }
    choices.push(("Concluded", "concluded".into()));
    choices
}

/// The place that a cursor names.
pub(crate) fn read_place(key: Vec<u8>) -> Option<ListPlace> {
    let (group, name) = key.split_first()?;
    let name = String::from_utf8(name.to_vec()).ok().filter(|name| !name.contains('\0'))?;
    Some(ListPlace { group: *group, name })
}

impl Shown {
    /// The address of a page of this filter: the first one, or the one after this place.
    fn address(&self, after: Option<(u8, &str)>) -> String {
        let after = after.map(|(group, name)| write_cursor([&[group], name.as_bytes()].concat()));
        let mut query = form_urlencoded::Serializer::for_suffix("/?".to_owned(), 2);
        for (parameter, value) in
            [("search", &self.search), ("state", &self.state), ("after", &after)]
        {
            query.extend_pairs(value.iter().map(|value| (parameter, value)));
        }
        query.finish()
    }

    fn is_filtered(&self) -> bool {
        self.search.is_some() || self.state.is_some()
    }
}

pub(crate) fn page(shown: &Shown, now: i64, visitor: Visitor) -> Markup {
    let total = shown.size.total();
    html! {
        div.title {
            h1 { "Experiments" }
            @if visitor.manages { a.button href="/new-experiment" { "New experiment" } }
        }
        @if total == 0 && shown.is_first && !shown.is_filtered() {
            (none_yet(visitor))
        } @else {
            (filter(shown))
            (summary(shown, total))
        }
        @if !shown.unreadable.is_empty() {
            div.alarm role="alert" {
                h2 { (Mark::No.icon()) " This server cannot read " (shown.unreadable.len()) " of the experiments" }
                p { @for name in &shown.unreadable { a href={ "/experiments/" (name) } { (name) } " " } }
            }
        }
        @for group in Group::ALL {
            @let own: Vec<_> =
                shown.rows.iter().filter(|row| row.listed.place.group == group as u8).collect();
            @if !own.is_empty() { (table(group, &own, now)) }
        }
        @if !shown.is_first || shown.more { (pages(shown, total)) }
    }
}

fn filter(shown: &Shown) -> Markup {
    let search = shown.search.as_deref().unwrap_or_default();
    html! {
        form.filter role="search" method="get" action="/" {
            label {
                "Name or owner "
                input #search name="search" type="search" maxlength="100" value=(search);
            }
            label {
                "State "
                select #state name="state" {
                    option value="" { "All" }
                    @for (text, states) in choices() {
                        option value=(states) selected[shown.state.as_ref() == Some(&states)] { (text) }
                    }
                }
            }
            button type="submit" { "Show" }
            @if shown.is_filtered() { a href="/" { "Show all" } }
        }
    }
}

/// How many experiments there are of each group, over all pages; each leads to its first one.
fn summary(shown: &Shown, total: u64) -> Markup {
    let groups = Group::ALL.into_iter().zip(shown.size.groups).filter(|(_, count)| *count > 0);
    html! {
        p.quiet.groups {
            (counted(total, "experiment", "experiments"))
            @if shown.is_filtered() { " found" }
            @for (group, count) in groups {
                " · "
                @if group == Group::Alarm { (Mark::No.icon()) " " }
                a href=(shown.address(Some((group as u8, "")))) { (group.title()) " " (number(count)) }
            }
        }
    }
}

/// Which part of the list this is.
fn pages(shown: &Shown, total: u64) -> Markup {
    const MOST: u64 = PAGE as u64;
    let (before, rows) = (shown.size.before, shown.rows.len() as u64);
    let page = before.div_ceil(MOST) + 1;
    let behind = total.saturating_sub(before + rows).div_ceil(MOST);
    html! {
        nav.pages aria-label="Pages" {
            @if rows > 0 {
                (number(before + 1)) " to " (number(before + rows)) " of " (number(total)) ", page "
                (number(page)) " of " (number(page + behind))
            }
            @if !shown.is_first { " · " a href=(shown.address(None)) { "First page" } }
            @if let Some(last) = shown.rows.last().filter(|_| shown.more) {
                @let place = &last.listed.place;
                " · " a href=(shown.address(Some((place.group, &place.name)))) { "Next page" }
            }
        }
    }
}

fn none_yet(visitor: Visitor) -> Markup {
    html! {
        section.part {
            h2 { "No experiments yet" }
            p {
                @if visitor.manages { a href="/new-experiment" { "Create one" } } @else { "Create one" }
                " with the rankers that you want to compare, for instance with the API:"
            }
            pre tabindex="0" { code {
                "curl -X POST \"$RANKDUEL/v1/experiments\" -H 'Content-Type: application/json' \\\n"
                "  -d '{\"name\": \"search\", \"rankers\": [\"bm25\", \"neural\"]}'"
            } }
            p { "Then request duels and send feedback. " a href="/docs" { "The API reference" } " has examples." }
        }
    }
}

fn table(group: Group, rows: &[&Row], now: i64) -> Markup {
    html! {
        section.list {
            h2 { (group.title()) }
            table {
                thead { tr {
                    th scope="col" { "Experiment" }
                    th.st scope="col" { "State" }
                    th scope="col" { "Result" }
                    th.ld scope="col" { "Lead over what you run, in points" }
                    th.wn scope="col" { "Since" }
                } }
                tbody { @for Row { listed, answer, lead } in rows { tr {
                    th scope="row" {
                        a href={ "/experiments/" (listed.place.name) } { (listed.place.name) }
                        @if let Some(owner) = listed.owner.as_deref().filter(|it| !it.is_empty()) {
                            " " bdi.owner { (owner) }
                        }
                    }
                    td.st { (badge(answer.state)) }
                    td.result {
                        (with_code(&answer.headline))
                        @for doubt in &answer.doubts { " " span.quiet { (with_code(doubt)) } }
                    }
                    td.ld { @if let Some(lead) = lead { (lead_of(lead)) } }
                    td.wn { (moment(answer.since, now)) span.sr { " " (timestamp(answer.since)) } }
                } } }
            }
        }
    }
}

/// A lead, and what is proven of it.
fn lead_of(lead: &LeadOver) -> Markup {
    let in_points = |thousandths: i64| points(thousandths as f64 / 1000.0);
    html! {
        (in_points(lead.won)) " "
        span.quiet {
            @match (lead.at_least, lead.at_most) {
                (Some(least), Some(most)) => { "(" (in_points(least)) " to " (in_points(most)) ")" }
                (Some(least), None) => { "(at least " (in_points(least)) ")" }
                (None, Some(most)) => { "(at most " (in_points(most)) ")" }
                (None, None) => {}
            }
        }
    }
}
