//! The frame of every page of the dashboard, small parts, and the formatting of numbers.

use maud::{DOCTYPE, Markup, html};

use crate::service::answer::{Answer, State};
use crate::service::reports::words::grouped;

/// The permissions of the reader of a page.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visitor {
    /// Whether the reader has a session, and can log out.
    pub session: bool,
    /// Whether the reader may change experiments.
    pub manages: bool,
    /// Whether the reader may read and change what concerns all experiments.
    pub manages_all: bool,
}

/// The colour and the icon of a state. Its words always stand beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Proven.
    Yes,
    /// Open.
    Wait,
    /// Harm, or something that somebody has to look at.
    No,
    /// Running.
    Run,
    /// No claim.
    None,
}

impl Mark {
    pub fn class(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Wait => "wait",
            Self::No => "no",
            Self::Run => "run",
            Self::None => "none",
        }
    }

    pub fn icon(self) -> Markup {
        let (class, icon) = (self.class(), if self == Self::Run { "wait" } else { self.class() });
        html! { svg.i.(class) aria-hidden="true" { use href={ "#i-" (icon) } {} } }
    }
}

/// The icons, which [`Mark::icon`] uses.
fn icons() -> Markup {
    html! {
        svg.defs aria-hidden="true" {
            symbol #i-yes viewBox="0 0 16 16" { circle cx="8" cy="8" r="6.6" {} path d="M5 8.3l2.1 2.1L11.2 6" {} }
            symbol #i-wait viewBox="0 0 16 16" { circle cx="8" cy="8" r="6.6" {} path d="M8 4.4V8l2.4 1.6" {} }
            symbol #i-no viewBox="0 0 16 16" { path d="M8 1.8L14.8 14H1.2z" {} path d="M8 6.3v3.4M8 11.8v.1" {} }
            symbol #i-none viewBox="0 0 16 16" { circle cx="8" cy="8" r="2.8" {} }
        }
    }
}

/// Whether a script updates a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Updates {
    Never,
    ByScript,
}

/// A whole page.
pub(crate) fn page(title: &str, visitor: Visitor, updates: Updates, main: &Markup) -> Markup {
    let is_updated = updates == Updates::ByScript;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/dashboard.css";
                @if is_updated { script src="/dashboard.js" defer {} }
                title { (title) " · rankduel" }
            }
            body {
                (icons())
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    nav aria-label="Main" {
                        a.home href="/" { "rankduel" }
                        a href="/" { "Experiments" }
                        @if visitor.manages_all {
                            a href="/keys" { "Keys" }
                            a href="/audit" { "Audit log" }
                        }
                        a href="/docs" { "API" }
                        @if visitor.session {
                            form method="post" action="/logout" { button.quiet type="submit" { "Log out" } }
                        }
                    }
                    @if is_updated {
                        // The script fills and shows this. Without scripts the page does not
                        // change.
                        p.updates #updates hidden {
                            span #updated role="status" {}
                            button.quiet #pause type="button" aria-pressed="false" { "Pause updates" }
                        }
                    }
                }
                main #main tabindex="-1" { (main) }
            }
        }
    }
}

/// An integer with thin spaces between groups of three digits.
pub(crate) fn number(number: u64) -> String {
    grouped(number, '\u{202f}')
}

/// A number that is not a count, with few digits.
pub(crate) fn quantity(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => {
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{}", number(size.round() as u64))
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        0.0 => "0".into(),
        _ => format!("{value:.2}"),
    }
}

pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 0.05 {
        return "<\u{202f}0.1\u{202f}%".into();
    }
    if (99.95..100.0).contains(&percent) {
        return ">\u{202f}99.9\u{202f}%".into();
    }
    if (percent < 1.0 && percent > 0.0) || (percent > 99.0 && percent < 100.0) {
        format!("{percent:.1}\u{202f}%")
    } else {
        format!("{}\u{202f}%", percent.round())
    }
}

/// A difference of shares in points, with its sign.
pub(crate) fn points(share: f64) -> String {
    let tenths = (1000.0 * share).round() / 10.0;
    let sign = if tenths < 0.0 { "−" } else { "+" };
    format!("{sign}{:.1}", tenths.abs())
}

/// An interval of shares as one of points, rounded outwards: it claims no more than the proof.
pub(crate) fn points_between((low, high): (f64, f64)) -> String {
    let [low, high] =
        [(1000.0 * (low - 0.5) + 1e-9).floor(), (1000.0 * (high - 0.5) - 1e-9).ceil()];
    format!("{} to {}", points(low / 1000.0), points(high / 1000.0))
}

pub(crate) fn margin_points(margin: f64) -> String {
    let points = format!("{:.3}", 100.0 * margin);
    let points = points.trim_end_matches('0').trim_end_matches('.');
    format!("{points}\u{a0}point{}", if points == "1" { "" } else { "s" })
}

/// A share of experiments: `5 of 100`.
pub(crate) fn of_experiments(share: f64) -> String {
    let of = [100.0, 1e3, 1e4, 1e5, 1e6].into_iter().find(|of| share * of > 1.0 - 1e-9);
    let of = of.unwrap_or(1e6);
    let count = format!("{:.2}", share * of);
    format!(
        "{}\u{a0}of\u{a0}{}",
        count.trim_end_matches('0').trim_end_matches('.'),
        number(of as u64)
    )
}

/// A count with its noun.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{}\u{a0}{}", number(count), if count == 1 { one } else { many })
}

/// Longest name that never breaks, in characters.
const UNBROKEN: usize = 18;

/// The name of a ranker. Its direction cannot turn the text around it.
pub(crate) fn name(id: &str) -> Markup {
    html! { bdi.r.nb[id.chars().count() <= UNBROKEN] { (id) } }
}

/// The name of a ranker in an attribute, isolated in the same way.
pub(crate) fn spoken(id: &str) -> String {
    format!("\u{2068}{id}\u{2069}")
}

/// An enumeration: the first four, and how many others.
pub(crate) fn enumerated(items: &[Markup]) -> Markup {
    let (shown, rest) = items.split_at(if items.len() <= 5 { items.len() } else { 4 });
    html! {
        @for (index, item) in shown.iter().enumerate() {
            @if index > 0 { @if rest.is_empty() && index + 1 == shown.len() { " and " } @else { ", " } }
            (item)
        }
        @if !rest.is_empty() { " and " (rest.len()) " others" }
    }
}

/// Short names for pictures. A name of up to 18 characters stays as it is. A longer one is
/// shortened to its first part that no other name contains, or else to its end.
pub(crate) fn labels(ids: &[String]) -> Vec<String> {
    let short = |id: &String| {
        if id.chars().count() <= UNBROKEN {
            return id.clone();
        }
        let starts: Vec<usize> = std::iter::once(0)
            .chain(id.match_indices(['-', '_', '.', '/', ' ']).map(|(at, mark)| at + mark.len()))
            .collect();
        let ends = starts.iter().skip(1).map(|&start| start - 1).chain([id.len()]);
        let ends: Vec<usize> = ends.collect();
        let parts = (0..starts.len())
            .flat_map(|parts| (0..starts.len() - parts).map(move |first| (first, first + parts)));
        let parts = parts.filter_map(|(first, last)| id.get(*starts.get(first)?..*ends.get(last)?));
        let fits = |part: &&str| (4..=UNBROKEN).contains(&part.chars().count());
        let is_own = |part: &&str| ids.iter().filter(|other| other.contains(part)).count() == 1;
        let found = parts.filter(fits).find(is_own).map(str::to_owned);
        let tail = || id.chars().skip(id.chars().count() - UNBROKEN + 1).collect::<String>();
        found.unwrap_or_else(|| format!("…{}", tail()))
    };
    ids.iter().map(short).collect()
}

/// A time in this format of `strftime`.
pub(super) fn formatted(unix_ms: i64, format: &str) -> String {
    jiff::Timestamp::from_millisecond(unix_ms)
        .map_or_else(|_| unix_ms.to_string(), |time| time.strftime(format).to_string())
}

/// A day, such as `Mon 30 Nov`; with its year if that is not the year of `now`.
pub(crate) fn day(unix_ms: i64, now_ms: i64) -> String {
    let is_near = formatted(unix_ms, "%Y") == formatted(now_ms, "%Y");
    formatted(unix_ms, if is_near { "%a\u{a0}%-d\u{a0}%b" } else { "%a\u{a0}%-d\u{a0}%b\u{a0}%Y" })
}

/// A time of a day: `10:26 UTC`, with the day if it is another one.
pub(crate) fn hour(unix_ms: i64, now_ms: i64) -> String {
    let time = formatted(unix_ms, "%H:%M\u{a0}UTC");
    match (day(unix_ms, now_ms), day(now_ms, now_ms)) {
        (day, today) if day == today => time,
        (day, _) => format!("{time} on {day}"),
    }
}

/// A day, or a time that is less than 20 hours away.
pub(crate) fn moment(unix_ms: i64, now_ms: i64) -> String {
    match (unix_ms - now_ms).abs() {
        near if near < 20 * 3_600_000 => hour(unix_ms, now_ms),
        _ => day(unix_ms, now_ms),
    }
}

/// A number of days, which may be a part of one.
pub(crate) fn days(days: f64) -> String {
    format!("{days}\u{a0}{}", if days == 1.0 { "day" } else { "days" })
}

/// A duration in the unit that fits its size.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0}\u{a0}ms", s * 1000.0),
        s if s < 120.0 => format!("{s:.0}\u{a0}s"),
        s if s < 7200.0 => format!("{:.0}\u{a0}min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0}\u{a0}h", s / 3600.0),
        s => format!("{}\u{a0}days", (s / 8640.0).round() / 10.0),
    }
}

/// A time, to the second.
pub(crate) fn timestamp(unix_ms: i64) -> Markup {
    let text = rankduel_engine::clock::rfc3339(unix_ms - unix_ms.rem_euclid(1000));
    let people = text.split(['.', 'Z']).next().unwrap_or_default().replace('T', " ");
    html! { time datetime=(text) { (people) " UTC" } }
}

/// A share as a picture. The number stands beside it.
pub(crate) fn bar(share: f64) -> Markup {
    html! {
        svg.share aria-hidden="true" {
            rect.rest width="100%" height="100%" rx="3" {}
            rect.bar width=(format!("{:.1}%", 100.0 * share)) height="100%" rx="3" {}
        }
    }
}

/// A section of a page, with its title.
pub(crate) fn part(id: &str, title: &str, content: &Markup) -> Markup {
    html! {
        section.part #(id) aria-labelledby={ (id) "-h" } { h2 #{ (id) "-h" } { (title) } (content) }
    }
}

/// A table that scrolls inside the page, with a name for screen readers.
pub(crate) fn table(label: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll role="group" aria-label=(label) tabindex="0" { table {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody { (rows) }
        } }
    }
}

/// The colour and the words of a state.
pub(crate) fn words(state: State) -> (Mark, &'static str) {
    match state {
        State::Refused => (Mark::No, "Refused"),
        State::Harm | State::Alarm => (Mark::No, "Look into it"),
        State::OpenLimit => (Mark::Wait, "Decided, limit open"),
        State::Doubt => (Mark::Wait, "Decided, in doubt"),
        State::NotWatched => (Mark::None, "Decided, not watched"),
        State::Segment | State::Result => (Mark::Yes, "Decided"),
        State::Stopped => (Mark::None, "Stopped"),
        State::Paused => (Mark::None, "Paused"),
        State::Waiting => (Mark::Wait, "Waiting"),
        State::Leader => (Mark::Run, "Running"),
        State::Empty => (Mark::Run, "No result yet"),
        State::Archived => (Mark::None, "Archived"),
    }
}

/// The state of an experiment as a badge.
pub(crate) fn badge(state: State) -> Markup {
    let (mark, text) = words(state);
    html! {
        span.badge.(mark.class()) {
            @if matches!(mark, Mark::Yes | Mark::No) { (mark.icon()) }
            (text)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Result,
    Evidence,
    Traffic,
    Manage,
}

/// The head of every page of an experiment: its name and state, the pages, and the alarms.
pub(crate) fn head(
    experiment: &str,
    answer: &Answer,
    meta: &Markup,
    tab: Tab,
    visitor: Visitor,
) -> Markup {
    let pages = [
        (Tab::Result, "Result", ""),
        (Tab::Evidence, "Evidence", "/evidence"),
        (Tab::Traffic, "Traffic", "/traffic"),
        (Tab::Manage, "Manage", "/manage"),
    ];
    html! {
        div.title { h1 { (experiment) } (badge(answer.state)) }
        p.meta { (meta) }
        nav.tabs aria-label=(experiment) {
            @for (own, title, path) in pages {
                @if own != Tab::Manage || visitor.manages {
                    a href={ "/experiments/" (experiment) (path) } aria-current=[(own == tab).then_some("page")] { (title) }
                }
            }
            @if visitor.manages { a href={ "/audit?experiment=" (experiment) } { "History" } }
        }
        @if matches!(answer.state, State::Refused | State::Harm) {
            div.alarm role="alert" { h2 { (Mark::No.icon()) " " (with_code(&answer.headline)) } p { (answer.what_next.sentence) } }
        }
        @for (alarm, kind) in answer.alarms.iter().filter_map(|alarm| Some((alarm, alarm.known()?))) {
            div.alarm role="alert" {
                h2 { (Mark::No.icon()) " " (kind.title) }
                p { (with_code(&alarm.detail)) }
                p { b { "Likely cause: " } (with_code(kind.cause)) }
                p { b { "What to do: " } (with_code(kind.action)) }
            }
        }
    }
}

pub(crate) fn fact(label: &str, value: &Markup) -> Markup {
    html! { div { dt { (label) } dd { (value) } } }
}

/// An error or a reason as a sentence.
pub(crate) fn capitalized(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// Text in which every second piece between backticks is code.
pub(crate) fn with_code(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (tied(piece)) }
        }
    }
}

/// Text in which no line ends after a number, and with the pages' mark between thousands.
fn tied(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let are_digits = |part: &[char]| part.iter().all(char::is_ascii_digit);
    let tie = |(at, &letter): (usize, &char)| {
        let follows = at > 0 && letters[at - 1].is_ascii_digit();
        let next = letters.get(at + 1..at + 4).is_some_and(are_digits);
        match letter {
            ' ' if follows => '\u{a0}',
            ',' if follows && next => '\u{202f}',
            letter => letter,
        }
    };
    letters.iter().enumerate().map(tie).collect()
}

/// A tile: a question, and its answer in a few words.
pub(crate) struct Tile {
    pub question: &'static str,
    pub section: &'static str,
    pub mark: Mark,
    pub answer: Markup,
    pub more: Markup,
}

impl Tile {
    /// The tile of a question with its section, and of an answer with its mark.
    pub fn new(
        (question, section): (&'static str, &'static str),
        (mark, answer): (Mark, Markup),
        more: Markup,
    ) -> Self {
        Self { question, section, mark, answer, more }
    }

    /// The tile of a question to which no number of the experiment can be trusted to be an answer.
    pub fn untrusted(question: (&'static str, &'static str)) -> Self {
        Self::new(question, (Mark::No, html! { "Cannot be said" }), html! { "See the alarm" })
    }
}

/// A number of pages, some of which count half.
pub(crate) fn halves(pages: f64) -> String {
    if pages < 100.0 && pages.fract() != 0.0 {
        return format!("{pages:.1}");
    }
    number(pages.round() as u64)
}
