//! Which answer an experiment has: the order of importance.
//!
//! [`ORDER`] is read from top to bottom: the first state that has something to say is the answer.

use crate::service::answer::{Action, ActionKind, Answer, SeenAlarm, State, WhatNext};
use crate::service::reports::alarms::{self, Alarm, AlarmKind};
use crate::service::reports::claim::ClaimKind;
use crate::service::reports::findings::Findings;
use crate::service::reports::words::{better_by, proven_points};
use rankduel_store::events::Status;

/// An ended experiment that nobody watches is said to be so after this time.
const UNWATCHED_AFTER_MS: i64 = 24 * 3_600_000;
/// An alarm that rests on the traffic of one server stays for this long after a server has seen it:
/// others do not see it, and a restart forgets the traffic.
const ALARM_STAYS_MS: i64 = 15 * 60_000;
/// The time of such an alarm is stored anew after this time.
const ALARM_SEEN_EVERY_MS: i64 = 5 * 60_000;
/// The alarm that a result does not hold any more.
const CHANGED: &str = "changed-preferences";
/// Most names in an enumeration.
const NAMES_MAX: usize = 5;

/// The part of an answer that depends on its state.
struct Said {
    state: State,
    headline: String,
    next: String,
    about: Vec<String>,
    needs_you: bool,
    actions: Vec<Action>,
}

impl Said {
    fn new(state: State, headline: impl Into<String>, next: impl Into<String>) -> Self {
        let (headline, next) = (headline.into(), next.into());
        Self { state, headline, next, about: Vec::new(), needs_you: false, actions: Vec::new() }
    }

    fn about<'a>(mut self, names: impl IntoIterator<Item = &'a String>) -> Self {
        self.about = names.into_iter().cloned().collect();
        self
    }

    fn needs_you(mut self, needs_you: bool) -> Self {
        self.needs_you = needs_you;
        self
    }

    fn actions(mut self, actions: impl Into<Vec<Action>>) -> Self {
        self.actions = actions.into();
        self
    }
}

/// The states, the most important one first.
const ORDER: [fn(&Findings) -> Option<Said>; 13] = [
    refused,
    harm,
    alarm,
    open_limit,
    doubt,
    not_watched,
    segment,
    result,
    stopped,
    paused,
    waiting,
    leader,
    empty,
];

/// The answer to these findings.
pub(crate) fn answer(of: &Findings) -> Answer {
    let said = ORDER.iter().find_map(|state| state(of));
    let mut said = said.unwrap_or_else(|| Said::new(State::Empty, "", ""));
    if of.is_archived {
        let next = "The experiment is archived: it can be read, but not changed.";
        said = Said::new(State::Archived, said.headline, next).about(&said.about);
    }
    let Said { state, headline, next, about, needs_you, actions } = said;
    let began = match state {
        State::Refused => of.refused.map(|(since, _)| since),
        State::Harm => None,
        State::Alarm => match about.first().and_then(|slug| alarms::kind(slug)) {
            Some(kind) if kind.slug == CHANGED => of.changed_at,
            Some(kind) if kind.is_of_log() => None,
            _ => Some(of.now),
        },
        State::NotWatched | State::Stopped => of.ended_at,
        _ => of.decided_at,
    };
    let is_same = |it: &&Answer| it.state == state && it.about == about;
    let since = of.before.as_ref().filter(is_same).map(|before| before.since);
    Answer {
        since: since.or(began).unwrap_or(of.recorded_at),
        state,
        headline,
        about,
        winners: of.winners.clone(),
        status: of.status,
        needs_you,
        doubts: of.doubts.clone(),
        alarms: of.alarms_anywhere(),
        what_next: WhatNext { sentence: next, actions },
    }
}

/// When an alarm that no server sees any more is forgotten.
pub(super) fn fades_at(seen: &SeenAlarm) -> Option<i64> {
    let fades = seen.known().is_some_and(|kind| kind.is_of_one_server() && !kind.is_evidence());
    fades.then_some(seen.seen_at + ALARM_STAYS_MS)
}

/// When an ended experiment is said to be watched by nobody.
pub(super) fn unwatched_at(of: &Findings) -> Option<i64> {
    of.winner().filter(|_| of.has_ended() && of.watch <= 0.0)?;
    Some(of.ended_at? + UNWATCHED_AFTER_MS)
}

impl Findings {
    fn has_ended(&self) -> bool {
        self.status == Status::Concluded
    }

    fn runs(&self) -> bool {
        self.status == Status::Running && !self.is_archived
    }

    fn winner(&self) -> Option<&String> {
        self.winners.first()
    }

    /// The alarms that are on here, and those that another server, or this one before a restart,
    /// has seen and that this one cannot see: evidence for good, others for a while.
    fn alarms_anywhere(&self) -> Vec<SeenAlarm> {
        let before: &[SeenAlarm] = self.before.as_ref().map_or(&[], |before| &before.alarms);
        let is_recent = |at: i64, within: i64| (0..within).contains(&(self.now - at));
        let own = self.alarms.iter().map(|Alarm { kind, detail, .. }| {
            let seen = before.iter().find(|seen| seen.kind == *kind).map(|seen| seen.seen_at);
            let seen_at = seen.filter(|at| is_recent(*at, ALARM_SEEN_EVERY_MS)).unwrap_or(self.now);
            SeenAlarm { kind: (*kind).into(), detail: detail.clone(), seen_at }
        });
        let stays = |seen: &&SeenAlarm| {
            let is_own = self.alarms.iter().any(|alarm| alarm.kind == seen.kind);
            !is_own
                && seen.known().is_some_and(|kind| {
                    let lasts = kind.is_evidence() || is_recent(seen.seen_at, ALARM_STAYS_MS);
                    kind.is_of_one_server() && lasts
                })
        };
        own.chain(before.iter().filter(stays).cloned()).collect()
    }

    /// The end of a headline with the segments in which the winner loses.
    fn but_not_in(&self) -> String {
        match &self.hurt[..] {
            [] => ".".into(),
            hurt => format!(", but not in {}.", list(hurt)),
        }
    }

    /// That a ranker is proven to be better than the control, and by how much.
    fn better(&self) -> Option<String> {
        let control = self.control.as_ref()?;
        let is_better = matches!(control.proven, Some(ClaimKind::Better | ClaimKind::Best));
        let least = proven_points(control.at_least.filter(|_| is_better)? - 0.5);
        let own = &control.control;
        Some(format!("beats `{own}`, which you run now, by at least {least}"))
    }

    /// The actions of an experiment that a person may conclude by this one.
    fn conclude(&self, action: ActionKind, ranker: Option<&String>) -> [Action; 2] {
        let conclude = Action { action, ranker: ranker.cloned() };
        match self.status {
            Status::Running => [conclude, just(ActionKind::Pause)],
            Status::Paused => [conclude, just(ActionKind::Resume)],
            Status::Concluded => [just(ActionKind::Archive), just(ActionKind::Resume)],
        }
    }
}

fn just(action: ActionKind) -> Action {
    Action { action, ranker: None }
}

/// Names as an enumeration.
pub(super) fn list(names: &[String]) -> String {
    let shown = if names.len() > NAMES_MAX { NAMES_MAX - 1 } else { names.len() };
    let mut parts: Vec<_> = names[..shown].iter().map(|name| format!("`{name}`")).collect();
    if shown < names.len() {
        parts.push(format!("{} others", names.len() - shown));
    }
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}

fn refused(of: &Findings) -> Option<Said> {
    let (_, why) = of.refused?;
    let next = "Clients should repeat what was refused until it is taken; then nothing is lost.";
    let headline = format!("The service refuses answers: {why}.");
    Some(Said::new(State::Refused, headline, next).needs_you(true))
}

/// A ranker breaks a limit. One that is gone matters until there is a result among the others.
fn harm(of: &Findings) -> Option<Said> {
    let matters =
        |(ranker, _, is_active): &&(String, String, bool)| match (of.has_ended(), is_active) {
            _ if of.is_archived => false,
            (true, _) => *is_active && of.shown.as_ref() == Some(ranker),
            (false, true) => true,
            (false, false) => of.winners.is_empty(),
        };
    let harms: Vec<_> = of.harms.iter().filter(matters).collect();
    let (ranker, metric, is_active) = harms.first()?;
    let limit = format!("the limit on `{metric}`");
    let headline = match is_active {
        true if of.winners.contains(ranker) => format!("`{ranker}` wins, but it breaks {limit}."),
        true => format!("`{ranker}` breaks {limit}."),
        false => format!("`{ranker}` broke {limit}, and was removed."),
    };
    let of_others = harms.iter().filter(|(other, ..)| other != ranker).count();
    let others = match (harms.len() - 1, of_others) {
        (0, _) => String::new(),
        (1, 0) => " It broke a second limit too.".into(),
        (more, 0) => format!(" It broke {more} other limits too."),
        (1, _) => " Another ranker broke a limit too.".into(),
        (more, _) => format!(" {more} other limits are broken too."),
    };
    let is_paused = if of.status == Status::Paused { " The experiment is paused." } else { "" };
    // without a second rival there would be nobody left to compare with
    let may_retire = *is_active && !of.has_ended() && of.rivals > 1;
    let next = match is_active {
        true if of.has_ended() => {
            "Pages show it now. Repair it, or resume the experiment. \"Is it safe?\" has the metric \
             and its limit."
        }
        true if may_retire => {
            "Repair it, or retire it. \"Is it safe?\" has the metric and its limit."
        }
        true => "Repair it, or stop the experiment. \"Is it safe?\" has the metric and its limit.",
        false => "Nothing to do in the experiment: it goes on with the others. Repair the ranker.",
    };
    let retire = Action { action: ActionKind::Retire, ranker: Some(ranker.clone()) };
    let actions = may_retire.then_some(retire).into_iter();
    let actions = actions.chain(of.conclude(ActionKind::Stop, None)).collect::<Vec<_>>();
    let said = Said::new(State::Harm, format!("{headline}{others}{is_paused}"), next);
    let about = harms.iter().flat_map(|(ranker, metric, _)| [ranker, metric]);
    Some(said.about(about).needs_you(true).actions(actions))
}

/// An alarm; after the end only one that makes the result doubtful.
fn alarm(of: &Findings) -> Option<Said> {
    let alarms = of.alarms_anywhere();
    let is_settled = |kind: &AlarmKind| kind.is_beside_result() && of.winner().is_some();
    let matters =
        |kind: &&AlarmKind| kind.is_about_result() || !(of.has_ended() || is_settled(kind));
    let mut kinds: Vec<_> = alarms.iter().filter_map(SeenAlarm::known).filter(matters).collect();
    kinds.sort_by_key(|kind| !kind.is_about_result());
    let first = *kinds.first().filter(|_| !of.is_archived)?;
    let who = match (of.winner(), of.is_compared && !of.has_ended()) {
        _ if first.is_evidence() => " No lead and no date can be trusted.".into(),
        (Some(winner), _) if first.slug == CHANGED => {
            format!(" `{winner}` won before that: do not ship on this result.")
        }
        (Some(winner), _) => format!(" `{winner}` wins; look at that first."),
        (None, true) => format!(" `{}` leads.", of.leader),
        (None, false) => String::new(),
    };
    let slugs: Vec<_> = kinds.iter().map(|kind| kind.slug.to_owned()).collect();
    let said = Said::new(State::Alarm, format!("{}.{who}", first.title), first.action);
    Some(said.about(&slugs).needs_you(true).actions(of.conclude(ActionKind::Stop, None)))
}

fn open_limit(of: &Findings) -> Option<Said> {
    let winner = of.winner().filter(|_| !of.open_limits.is_empty())?;
    let limits = list(&of.open_limits);
    let (headline, next) = match of.has_ended() {
        false => (
            format!("`{winner}` is the best. Wait for {limits}."),
            "Whether it keeps every limit is still being measured.",
        ),
        true => (
            format!("`{winner}` is the best. That it keeps its limit on {limits} is not proven."),
            "Look at the metric before you make it the default, or resume the experiment.",
        ),
    };
    let said = Said::new(State::OpenLimit, headline, next).needs_you(of.status == Status::Paused);
    let about = std::iter::once(winner).chain(&of.open_limits);
    Some(said.about(about).actions(of.conclude(ActionKind::Stop, None)))
}

fn doubt(of: &Findings) -> Option<Said> {
    let winner = of.winner().filter(|_| !of.has_ended() && !of.doubts.is_empty())?;
    let next = "The experiment does not end by itself. If you know that the doubt does not matter \
                here, conclude it.";
    let said = Said::new(State::Doubt, format!("`{winner}` wins. Look at a doubt first."), next);
    Some(said.about([winner]).needs_you(true).actions(of.conclude(ActionKind::Stop, None)))
}

fn not_watched(of: &Findings) -> Option<Said> {
    unwatched_at(of).filter(|at| *at <= of.now)?;
    let (winner, ended) = (of.winner()?, of.ended_at?);
    let date = jiff::Timestamp::from_millisecond(ended).ok()?.strftime("%-d %b %Y");
    let headline = format!("`{winner}` won. Not watched since {date}: no rankers have met.");
    let next = "Whether it is still true is not known. To find out, start a new experiment, with \
                `watch` above 0.";
    let said = Said::new(State::NotWatched, headline, next).about([winner]);
    Some(said.actions(of.conclude(ActionKind::Stop, None)))
}

fn segment(of: &Findings) -> Option<Said> {
    let is_shown = of.shown.as_ref().is_none_or(|shown| of.winners.contains(shown));
    let said = result(of).filter(|_| is_shown && !of.hurt.is_empty())?;
    let control = of.control.as_ref().map(|control| &control.control);
    let control = control.filter(|control| !of.winners.contains(control));
    let instead = match control {
        Some(control) => format!("keep `{control}`"),
        None => "show another ranker".into(),
    };
    let next = format!("{} In {}, {instead}.", said.next, list(&of.hurt));
    Some(Said { state: State::Segment, next, ..said }.about(&of.hurt))
}

/// The result: something else is shown, it goes on, or how the winner stands to the control.
fn result(of: &Findings) -> Option<Said> {
    let winner = of.winner()?;
    let (best, but) = (list(&of.winners), of.but_not_in());
    let are = if of.winners.len() > 1 { "are" } else { "is" };
    let goes_on = of.runs() && of.concludes;
    let said = |action, ranker: Option<&String>, headline: String, next: &str| {
        let said = Said::new(State::Result, headline, next).about(&of.winners);
        let needs_you = !of.has_ended() && !goes_on;
        Some(said.needs_you(needs_you).actions(of.conclude(action, ranker)))
    };
    if let Some(other) = of.shown.as_ref().filter(|shown| !of.winners.contains(shown)) {
        let headline = format!("The experiment ended on `{other}`, but the result is {best}.");
        let said = said(ActionKind::Stop, None, headline, "Check whether that is what you want.")?;
        return Some(said.about(of.winners.iter().chain([other])));
    }
    // of two rankers, the best one is not known to be better
    let pair = of.control.as_ref().filter(|control| {
        of.rivals == 1 && control.ranker != control.control && of.better().is_none()
    });
    if goes_on && !of.awaits.is_empty() {
        let awaits = of.awaits.join(" and ");
        let headline = match pair {
            Some(control) => format!(
                "`{winner}` is {} `{}`, which you run now{but} The experiment goes on until {awaits}.",
                control.at_worst(of.margin),
                control.control
            ),
            None => {
                format!("{best} {are} the best{but} The experiment goes on until {awaits}.")
            }
        };
        let next = "Nothing to do: the experiment ends by itself then.";
        return said(ActionKind::Stop, None, headline, next);
    }
    let ship = match of.status {
        _ if goes_on => "Nothing to do: the experiment ends in a moment.",
        Status::Concluded => {
            "Make it the default in your search backend, then archive the experiment."
        }
        Status::Running => "Further pages do not change the result.",
        Status::Paused => "It is paused. Further pages would not change the result.",
    };
    let Some(control) = of.control.as_ref() else {
        let headline = match of.winners.len() {
            1 => format!("Ship {best}{but}"),
            _ => format!("Ship any of {best}: they are equally good{but}"),
        };
        return said(ActionKind::Ship, Some(winner), headline, ship);
    };
    let own = &control.control;
    if of.winners.contains(own) {
        let headline = format!("Keep `{own}`, which you run now{but}");
        let next = match of.has_ended() {
            true => "There is nothing to ship: archive the experiment.",
            false => "There is nothing to ship.",
        };
        return said(ActionKind::Keep, Some(own), headline, next);
    }
    if let Some(better) = of.better() {
        let headline = format!("Ship `{winner}`: it {better}{but}");
        return said(ActionKind::Ship, Some(winner), headline, ship);
    }
    let is_open = of.runs() && !control.settled;
    let proof = if is_open { "open" } else { "not proven" };
    let (own, better) = (format!("`{own}`, which you run now"), better_by(of.margin));
    let at_worst = control.at_worst(of.margin);
    let headline = match control.proven {
        Some(ClaimKind::Worse) => {
            format!("{best} {are} the best of all, but `{winner}` loses to {own}{but}")
        }
        None if of.rivals > 1 => {
            format!("{best} {are} the best{but} That `{winner}` is better than {own}, is {proof}.")
        }
        Some(_) | None => {
            format!("`{winner}` is {at_worst} {own}{but} That it is {better} is {proof}.")
        }
    };
    let next = match is_open {
        true => "More pages of the two can prove it.",
        false => "Weigh what speaks for it before you make it the default.",
    };
    let said = said(ActionKind::Stop, None, headline, next)?;
    Some(Said { needs_you: said.needs_you && !is_open, ..said })
}

fn stopped(of: &Findings) -> Option<Said> {
    let shown = of.shown.as_ref().filter(|_| of.has_ended())?;
    let of_shown = of.control.as_ref().filter(|control| control.ranker == *shown);
    let headline = match (of_shown.and_then(|_| of.better()), of.ended_at_limit) {
        (Some(better), _) => {
            format!(
                "The experiment ended on `{shown}`. It {better}; that it is the best is not proven."
            )
        }
        (None, _) if of.has_excluded => format!(
            "The experiment ended on `{shown}`. Without the answers of the excluded units there is no \
             result."
        ),
        (None, true) => format!(
            "The experiment reached its limit of days or answers and ended on `{shown}` without a \
             result."
        ),
        (None, false) if of.waits => {
            format!("The experiment was ended on `{shown}` before its last answers count.")
        }
        (None, false) => format!("The experiment was ended on `{shown}` without a result."),
    };
    let leads = match of.is_compared && of.leader != *shown {
        true => format!("though `{}` leads", of.leader),
        false => "and nothing proves that it is the best".into(),
    };
    let next = format!(
        "Pages show `{shown}` now, {leads}. Weigh what speaks for it before you make it the default, or \
         resume the experiment."
    );
    let said = Said::new(State::Stopped, headline, next).about([shown]);
    Some(said.actions([just(ActionKind::Resume), just(ActionKind::Archive)]))
}

fn paused(of: &Findings) -> Option<Said> {
    let leads = if of.is_compared { format!(" `{}` leads.", of.leader) } else { String::new() };
    let headline = format!("The experiment is paused.{leads}");
    let said = Said::new(State::Paused, headline, "Resume it to learn more.");
    let actions = [just(ActionKind::Resume), just(ActionKind::Stop)];
    (of.status == Status::Paused).then(|| said.actions(actions))
}

fn waiting(of: &Findings) -> Option<Said> {
    let said = leader(of).filter(|_| of.waiting_settle)?;
    let headline = format!("`{}` leads. The answers that wait would settle it.", of.leader);
    Some(Said { state: State::Waiting, headline, ..said })
}

fn leader(of: &Findings) -> Option<Said> {
    let standing = match (of.rivals.saturating_sub(of.open), of.rivals) {
        (0, 1) => "its rival is not ruled out".into(),
        (0, rivals) => format!("none of {rivals} rivals is ruled out"),
        (1, rivals) => format!("1 of {rivals} rivals is ruled out"),
        (out, rivals) => format!("{out} of {rivals} rivals are ruled out"),
    };
    let better = of.control.as_ref().zip(of.better());
    let better = better.map(|(control, better)| format!("`{}` {better}. ", control.ranker));
    let headline = format!("{}`{}` leads: {standing}.", better.unwrap_or_default(), of.leader);
    let next = match of.concludes {
        _ if of.policy_has_ended => {
            "The policy has run all its batches and compares no more. Conclude the experiment, or \
             create one with the default policy."
        }
        true => "Nothing to do: the experiment ends by itself once there is a result.",
        false => "Let it run, and conclude it once there is a result.",
    };
    let said = Said::new(State::Leader, headline, next).about([&of.leader]);
    let said = said.needs_you(of.policy_has_ended);
    (of.is_compared && !of.has_ended()).then(|| said.actions(of.conclude(ActionKind::Stop, None)))
}

fn empty(of: &Findings) -> Option<Said> {
    let of_api = format!("/v1/experiments/{}", of.experiment);
    match of.awaits_orders {
        Some(true) => {
            let next = "Nothing to do: they count once their baskets close.";
            let said = Said::new(State::Empty, "Orders are in, and none counts yet.", next);
            return Some(said.actions(of.conclude(ActionKind::Stop, None)));
        }
        Some(false) if of.rankers_changed => {
            let next = "Nothing to do: orders of people whose first page came since then count once \
                        their baskets close.";
            let headline = "The rankers have changed, and no order since then counts yet.";
            let said = Said::new(State::Empty, headline, next);
            return Some(said.actions(of.conclude(ActionKind::Stop, None)));
        }
        Some(false) => {
            let next = format!(
                "People have clicked. Send what they order to `{of_api}/orders`; it counts once \
                 their baskets close."
            );
            let headline = "No order of what was clicked has come yet.";
            let said = Said::new(State::Empty, headline, next);
            return Some(said.actions([just(ActionKind::Connect), just(ActionKind::Pause)]));
        }
        None => {}
    }
    let said = match of.duels {
        0 if of.has_excluded => Said::new(
            State::Empty,
            "All answers so far are of excluded units.",
            "Nothing to do: the answers of others count.",
        ),
        0 => Said::new(
            State::Empty,
            "No answer has come yet.",
            format!(
                "Ask for pages with `POST {of_api}/next-duel`, show them, and send what was clicked \
                 to `{of_api}/feedback`."
            ),
        ),
        _ => Said::new(
            State::Empty,
            "No page has had a winner yet.",
            "These pages had no click, or as many for both rankers.",
        ),
    };
    Some(said.actions([just(ActionKind::Connect), just(ActionKind::Pause)]))
}
