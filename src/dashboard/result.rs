//! `/experiments/{name}`: the answer, its tiles, and a section for each.

use maud::{Markup, html};

use super::answer::say;
use super::chart::{Figure, links};
use super::dots::{Dots, Row, measured};
use super::forecast::{DAY_MS, When};
use super::layout::{
    self, Mark, Tab, Tile, bar, capitalized, counted, day, halves, hour, margin_points, moment,
    name, number, part, percent, points, spoken, timestamp, with_code,
};
use super::view::View;
use super::{basis, orders, race, safe, still, whom};
use crate::service::answer::State;
use crate::service::reports::claim::ClaimKind;
use crate::service::reports::claims::ControlView;
use crate::service::reports::verdict_pairs::Effect;

const RIVALS_MAX: usize = 16;

pub(crate) fn page(view: &View) -> Markup {
    html! {
        (head(view, Tab::Result))
        (card(view))
        @if view.has_compared() && !view.is_over() { (part("when", "When will we know?", &race::figure(view))) }
        @if view.has_compared() { (lead_section(view)) }
        (orders::section(view))
        @if view.pages > 0 { (safe::section(view)) }
        @if view.has_compared() { (whom::section(view)) (still::section(view)) }
        @if has_cost(view) { (cost_section(view)) }
        div.folds {
            (basis::section(view))
            (glossary(view))
        }
    }
}

pub(crate) fn head(view: &View, tab: Tab) -> Markup {
    layout::head(&view.record.name, &view.answer, &meta(view), tab, view.visitor)
}

/// The line below the name.
fn meta(view: &View) -> Markup {
    let gone = view.order.len() - view.active().len() - usize::from(view.twin.is_some());
    let days = (view.now - view.record.created_at) / DAY_MS;
    let spec = &view.loaded.spec;
    let (takes_part, alone) = (percent(spec.coverage), percent(spec.alone));
    html! {
        @if !spec.description.is_empty() { bdi { (spec.description) } br; }
        (counted(view.active().len() as u64, "ranker", "rankers"))
        @if gone > 0 { ", " (gone) " retired" }
        ". Since " (day(view.record.created_at, view.now))
        @if days > 0 { ", " (counted(days as u64, "day", "days")) }
        ". "
        @match &view.verdict.orders {
            Some(orders) => {
                (number(orders.units)) @if orders.units == 1 { " person" } @else { " people" } " clicked, "
                (number(orders.ordered)) " of them ordered it, "
            }
            None => { (counted(view.pages, "page", "pages")) ", " }
        }
        span #answers { (number(view.verdict.rests_on.answers)) }
        @if view.verdict.rests_on.answers == 1 { "\u{a0}answer counts" } @else { "\u{a0}answers count" }
        @if let Some(waiting) = view.waiting() {
            " and " (number(waiting.answers)) @if waiting.answers == 1 { " waits" } @else { " wait" }
        }
        "."
        @if spec.coverage < 1.0 { " " (takes_part) " of the units take part." }
        @if spec.alone > 0.0 {
            " Of " @if spec.coverage < 1.0 { "these" } @else { "the units" } ", " (alone)
            " are shown one ranker alone."
        }
        @if !spec.owner.is_empty() { " Ask " bdi { (spec.owner) } "." }
        span.asof { " As of " (timestamp(view.now)) "." }
        @if view.fold.roster_changes > 0 { " The rankers have changed: for the best ranker, only pages since then count." }
    }
}

fn card(view: &View) -> Markup {
    html! {
        section.answer.(layout::words(view.answer.state).0.class()) aria-labelledby="say" {
            div.say { (say(view)) }
            @let tiles = tiles(view);
            @if !tiles.is_empty() { dl.tiles { @for tile in tiles {
                div {
                    dt { a href={ "#" (tile.section) } { (tile.question) } }
                    dd {
                        p.a { (tile.mark.icon()) span { (tile.answer) } }
                        p.b { (tile.more) }
                    }
                }
            } } }
            @if view.has_compared() { (not_asked(view)) }
        }
    }
}

/// The questions that the experiment was not asked.
fn not_asked(view: &View) -> Markup {
    let spec = &view.loaded.spec;
    let missing = [
        (spec.metrics.is_empty(), "no metric has a limit, so nothing says that a ranker is safe"),
        (
            spec.segments.is_empty(),
            "no segments are declared, so nothing says for whom it is better",
        ),
        (spec.decide_by.is_some(), "where orders decide, no page has a cost"),
    ];
    let missing: Vec<_> = missing.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect();
    html! { @if !missing.is_empty() { p.small.quiet #not-asked { "Not asked: " (missing.join("; ")) "." } } }
}

/// The tiles that have something to say. A claim that comes later brings its own.
fn tiles(view: &View) -> Vec<Tile> {
    let mut tiles = Vec::new();
    if view.has_compared() {
        tiles.push(better_tile(view));
        tiles.extend(view.verdict.control.as_ref().map(|control| control_tile(view, control)));
        tiles.extend(safe::tile(view));
        tiles.extend(whom::tile(view));
        tiles.extend(view.verdict.drift.as_ref().map(|drift| still::tile(view, drift)));
        tiles.push(time_tile(view));
    }
    if has_cost(view) {
        tiles.push(cost_tile(view));
    }
    if !view.is_over() && tiles.len() > 2 {
        // without a result, the first question is when it comes
        let at = tiles.len() - 2;
        tiles[..=at].rotate_right(1);
    }
    tiles
}

fn better_tile(view: &View) -> Tile {
    if view.is_untrusted() {
        return Tile::untrusted(("Is it better?", "much"));
    }
    let open = view.open_rivals();
    let rivals = view.active().len() - 1;
    let answer = match (view.is_decided(), view.has_ended()) {
        (true, _) if view.verdict.winners.len() > 1 => {
            (Mark::Yes, html! { (view.verdict.winners.len()) " are equally good" })
        }
        (true, _) if view.has_changed() => (Mark::No, html! { "It was, before the change" }),
        (true, _) if view.answer.state == State::Doubt => (Mark::Wait, html! { "In doubt" }),
        (true, _) if rivals == 1 => match view.verdict.effects.first() {
            Some(effect) if effect.low < 0.5 => (
                Mark::Yes,
                html! { "Not worse by more than " (margin_points(view.verdict.margin)) },
            ),
            _ => (Mark::Yes, html! { "Yes" }),
        },
        (true, _) => (Mark::Yes, html! { "The best of " (rivals + 1) }),
        (false, true) => (Mark::None, html! { "Not proven" }),
        (false, false) => (Mark::Wait, html! { "Not known yet" }),
    };
    let more = match (view.is_decided(), open.first(), view.verdict.effects.first()) {
        (true, _, Some(only)) if rivals == 1 => html! {
            "Over " (view.short(&only.rival))
            @if let Some(rate) = measured(only) { ": " (points(rate - 0.5)) " measured" }
            @if only.low < 0.5 { ". That it is better is not proven" }
        },
        (true, _, Some(closest)) => html! {
            "Closest: " (view.short(&closest.rival))
            @if let Some(rate) = measured(closest) {
                ", " (points(rate - 0.5)) " measured"
                @if rate < 0.5 && closest.low < 0.5 { ". " (view.short(&closest.rival)) " may win that pair, but it does not beat more of the others" }
            }
        },
        (false, Some(closest), _) => html! {
            (view.short(&view.verdict.leader)) " over " (view.short(&closest.rival)) ": "
            @match measured(closest) {
                Some(rate) => { (points(rate - 0.5)) " measured" }
                None => "too few answers",
            }
        },
        _ => Markup::default(),
    };
    Tile::new(("Is it better?", "much"), answer, more)
}

fn control_tile(view: &View, control: &ControlView) -> Tile {
    let question = ("Better than today's?", "much");
    if view.is_untrusted() {
        return Tile::untrusted(question);
    }
    if control.ranker == control.control {
        let is_todays = (Mark::None, html! { "It is today's" });
        return Tile::new(question, is_todays, with_code(&control.sentence));
    }
    let (mark, answer) = match (control.proven, control.settled || view.has_ended()) {
        _ if view.has_changed() => (Mark::No, "It was, before the change"),
        (Some(ClaimKind::Better), _) => (Mark::Yes, "Yes"),
        (Some(ClaimKind::Worse), _) => (Mark::No, "No, it is worse"),
        (Some(_), _) => (Mark::Yes, "It is not worse"),
        (None, true) => (Mark::None, "Not proven"),
        (None, false) => (Mark::Wait, "Not known yet"),
    };
    let says = control.sentence.strip_prefix(&format!("`{}`", control.ranker)).unwrap_or_default();
    let effect = view.verdict.effects.iter().find(|effect| effect.rival == control.control);
    // pages before it was the control count for the verdict alone, whose number stands below
    let is_of_all = effect.is_none_or(|effect| effect.win_rate == control.win_rate);
    let says = match is_of_all || control.proven.is_some() {
        true => says,
        false => ": that it is better is not proven.",
    };
    let is_leader = control.ranker == view.verdict.leader;
    let has_few =
        is_leader && control.proven.is_none() && effect.is_none_or(|it| measured(it).is_none());
    let to_go = control.duels_to_go.filter(|_| view.is_decided() && view.runs());
    let date = to_go
        .and_then(|duels| view.fold.pace.after(duels))
        .filter(|_| control.proven != Some(ClaimKind::Better));
    let more = html! {
        @if has_few { "Too few answers of " (view.short(&control.ranker)) " and " (view.short(&control.control)) }
        @else { (view.short(&control.ranker)) (with_code(says)) }
        @if let Some(at) = date { " That can be known about " (moment(at, view.now)) "." }
    };
    Tile::new(question, (mark, html! { (answer) }), more)
}

fn time_tile(view: &View) -> Tile {
    if view.is_untrusted() {
        return Tile::untrusted(("When will we know?", "when"));
    }
    let waiting = view.waiting().filter(|_| view.has_ended() && !view.is_decided());
    if let Some(waiting) = waiting {
        let answer = html! { (hour(waiting.next_count_ms, view.now)) };
        return Tile::new(
            ("When will we know?", "cost"),
            (Mark::Wait, answer),
            html! { "at the earliest" },
        );
    }
    if view.is_over() {
        let answer = match (view.is_decided(), view.decided_at()) {
            (true, Some(at)) if view.has_changed() => {
                (Mark::None, html! { (moment(at, view.now)) ", before the change" })
            }
            (true, Some(at)) => (Mark::Yes, html! { (moment(at, view.now)) }),
            (true, None) => (Mark::Yes, html! { "It is known" }),
            (false, _) => (Mark::None, html! { "It was never known" }),
        };
        let more = html! {
            @if let Some(duels) = view.verdict.decided_after_duels {
                "That it is the best: after " (counted(duels, "answer", "answers"))
            }
            @if view.awaits_control() { ". The comparison with what you run now is open" }
        };
        return Tile::new(("When did we know?", "cost"), answer, more);
    }
    let (answer, more) = match (view.when(), view.waiting()) {
        (When::Waits, Some(waiting)) => {
            (html! { (hour(waiting.next_count_ms, view.now)) }, html! { "at the earliest" })
        }
        (When::About(at, high), _) => (
            html! { "About " (moment(at, view.now)) },
            html! { @match high {
                Some(high) => { "9 of 10 forecasts: by " (moment(high, view.now)) }
                None => { "It can take much longer" }
            } },
        ),
        (When::Far, _) => {
            (html! { "Not in 90 days" }, html! { "The lead is too small, or too few pages come" })
        }
        (When::Unknown(why), _) if view.runs() => {
            (html! { "No date yet" }, with_code(&capitalized(&why)))
        }
        (When::Unknown(_) | When::Waits, _) => {
            (html! { "No date yet" }, html! { @if !view.runs() { "The experiment is paused" } })
        }
    };
    Tile::new(("When will we know?", "when"), (Mark::Wait, answer), more)
}

/// Pages that showed another ranking than that of the winners or the leader, up to the end of the
/// experiment. Two half pages count as one.
struct OtherPages {
    shown: f64,
    /// All pages up to then.
    pages: u64,
    /// How many there would be in an even split; `None` if the rankers have changed.
    even: Option<f64>,
}

fn others(view: &View) -> OtherPages {
    let best: Vec<usize> = match view.is_decided() {
        true => (0..view.ids.len()).filter(|&i| view.verdict.rankers[i].certain).collect(),
        false => vec![view.leader()],
    };
    let counts = match (view.has_ended(), &view.fold.shown_before_status[..]) {
        (true, before @ [_, ..]) => before,
        _ => view.fold.counts.appearances(),
    };
    let own: u64 = best.iter().filter_map(|&i| counts.get(i)).sum();
    let pages = counts.iter().sum::<u64>() / 2;
    let even = pages as f64 * (1.0 - best.len() as f64 / view.active().len() as f64);
    let even = (view.fold.roster_changes == 0).then_some(even.max(0.0));
    OtherPages { shown: pages as f64 - own as f64 / 2.0, pages, even }
}

/// Where orders decide, pages without an order are not counted.
fn has_cost(view: &View) -> bool {
    view.has_compared() && view.verdict.orders.is_none()
}

fn cost_question(view: &View) -> &'static str {
    if view.is_over() { "What did it cost?" } else { "What does it cost?" }
}

fn cost_tile(view: &View) -> Tile {
    let OtherPages { shown, pages, .. } = others(view);
    let answer = html! { (halves(shown)) "\u{a0}" @if shown == 1.0 { "page" } @else { "pages" } };
    let more = html! {
        "of " (number(pages)) " showed another ranking"
        @if view.has_ended() { ", up to the end" }
    };
    Tile::new((cost_question(view), "cost"), (Mark::None, answer), more)
}

fn lead_section(view: &View) -> Markup {
    let (verdict, leader) = (&view.verdict, &view.verdict.leader);
    let control = verdict.control.as_ref().map(|control| &control.control);
    let is_control = |effect: &&Effect| Some(&effect.rival) == control;
    let known = verdict.effects.iter().filter(|it| !is_control(it) && measured(it).is_some());
    let of_control = verdict.effects.iter().find(is_control);
    let shown: Vec<&Effect> = of_control.into_iter().chain(known).take(RIVALS_MAX).collect();
    let unknown = verdict.effects.iter().filter(|it| !is_control(it) && measured(it).is_none());
    let unknown = unknown.count();
    let certain = |id: &str| verdict.winners.iter().any(|winner| winner == id);
    let is_left = |effect: &Effect| effect.ruled_out && effect.low < 0.5 - verdict.margin - 1e-9;
    let rows = shown.iter().map(|&effect| {
        let interval @ (low, _) = view.interval(effect);
        let (mark, result) = match (certain(&effect.rival), effect.ruled_out) {
            _ if view.has_changed() => (Mark::None, html! { "before the change: " (if effect.ruled_out { "ruled out" } else { "open" }) }),
            (true, _) => (Mark::Yes, html! { "equally good" }),
            (_, true) if low > 0.5 => (Mark::Yes, html! { "beaten" }),
            (_, true) if is_left(effect) => (Mark::Yes, html! { "beats fewer others" }),
            (_, true) => (Mark::Yes, html! { "ruled out" }),
            _ if low > 0.5 => (Mark::Wait, html! { "beaten, not ruled out" }),
            (_, false) if view.has_ended() => (Mark::None, html! { "not ruled out" }),
            (_, false) => (Mark::Wait, html! { "still open" }),
        };
        Row {
            head: html! { (name(&effect.rival)) @if is_control(&effect) { br; span.quiet.small { "you run it now" } } },
            strong: false,
            mark,
            measured: effect.win_rate,
            interval,
            result,
        }
    });
    let dots = Dots {
        caption: &format!("Lead of {} over each other ranker, in points", spoken(leader)),
        first: html! { (view.short(leader)) " against" },
        sides: [html! { "rival" }, html! { (view.short(leader)) " is better" }],
        margin: Some(verdict.margin),
        rows: rows.collect(),
    };
    let example = shown.iter().find_map(|effect| Some((effect, measured(effect)?)));
    let content = html! {
        @if view.is_untrusted() { p { strong { "These numbers cannot be trusted: see the alarm." } } }
        p {
            "The dot shows the measured lead, the bar where the true lead lies. Right of zero, " (name(leader)) " is better."
            @if verdict.margin > 0.0 {
                " A lead of up to " (margin_points(verdict.margin)) " counts as a tie: a rival is ruled out once its bar lies right of the dashed line, or once it loses to more of the other rankers."
            }
        }
        @if !shown.is_empty() { (dots.render()) (links(&view.record.name, Figure::Lead)) }
        p.note {
            @if unknown > 0 { (counted(unknown as u64, "rival has", "rivals have")) " too few answers with " (name(leader)) " for a number. " }
            @if shown.len() + unknown < verdict.effects.len() { "The " (shown.len()) " rivals with the smallest lead are shown. " }
            dfn { "Points" }
            @match &verdict.orders {
                None => ": of 100 pages that settle between two rankers, how many more than 50 the first one wins.",
                Some(_) => ": of 100 parts of the credit for what people order, how many more than 50 the first one has.",
            }
            @if let Some((effect, rate)) = example {
                " " (points(rate - 0.5)) " means that " (name(leader)) " has " (format!("{:.1}", 100.0 * rate))
                " of them and " (name(&effect.rival)) " " (format!("{:.1}", 100.0 * (1.0 - rate))) "."
            }
            @if !view.is_untrusted() {
                " The left end of each bar comes from the proof itself. Each right end alone is wrong in at most "
                (view.error()) " experiments."
            }
            @if shown.iter().any(|effect| is_left(effect)) {
                " A rival that cannot be the best although its bar reaches left of the line loses to others."
            }
            @if view.is_decided() && example.is_some() {
                " A measured lead is too large on average, because the result came when the counts looked best."
            }
        }
    };
    part("much", "By how much?", &content)
}

fn cost_section(view: &View) -> Markup {
    let OtherPages { shown, pages, even } = others(view);
    let since = view.pages.saturating_sub(pages);
    let several = view.verdict.winners.len() > 1;
    let row = |label: &str, count: f64| {
        let share = count / pages.max(1) as f64;
        html! { span { (label) } span.num { (halves(count)) " (" (percent(share)) ")" } (bar(share)) }
    };
    let content = html! {
        p {
            b #others { (halves(shown)) } " of " (counted(pages, "page", "pages")) " showed another ranking than "
            @if several { "those of the winners" } @else { (name(&view.verdict.leader)) @if !view.is_over() { ", the leader" } }
            "; two half pages count as one."
            @if let Some(even) = even { " An even split would have shown " (halves(even)) "." }
            @if since > 0 { " After the end there were " (counted(since, "page", "pages")) " more." }
            @if view.loaded.spec.alone > 0.0 || view.loaded.spec.coverage < 1.0 {
                " Pages of units that see one ranker alone, or do not take part, are not among these."
            }
        }
        @if let Some(even) = even { div.bars { (row("This experiment", shown)) (row("An even split", even)) } }
    };
    part("cost", cost_question(view), &content)
}

fn glossary(view: &View) -> Markup {
    html! {
        details #words {
            summary { "What the words mean" }
            dl.words {
                dt { "Ranker" } dd { "One way to order search results." }
                dt { "Mixed page" } dd { "A page that interleaves the results of two rankers. The one whose results get more clicks wins it." }
                dt { "Answer" } dd { "What a searcher clicked on a mixed page. Only the first answer of each person counts, where your backend names people." }
                @if view.loaded.spec.decide_by.is_some() {
                    dt { "Basket" } dd { "What a person who clicked has ordered within the window. It counts as one answer, when it closes, for the ranker that brought what was clicked and ordered." }
                }
                dt { "Best" } dd { "Beats the most other rankers (the Copeland winner)." }
                dt { "Beaten, ruled out, beats fewer others" } dd { "Beaten: the leader is better than it; with three or more rankers it may still beat more of the others. Ruled out: it is not better than the leader by more than the margin. Beats fewer others: it may win against the leader, but it loses to more of the others." }
                dt { "Wrong in at most " (view.error()) } dd { "If you ran so many experiments and read each one as often as you like, no more of them would ever show you a false result." }
                dt { "Evidence" } dd { "100 means: if the claim were false, luck alone would reach 100 at most once in 100 experiments." }
            }
        }
    }
}
