//! Alarms on the traffic of an experiment, with the likely cause and the action to take.
//!
//! Each alarm is a rule on counts in memory; none reads the log. `docs/operations.md` describes
//! each.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::alarm_kinds::{
    BATCH_STUCK, CONFLICTS, DRAFTS, DRIFT, HARM, INVALID, LATE, NO_CLICKS, NO_CREDIT, NO_FEEDBACK,
    REPEATS, SAME_RANKINGS, SEGMENT_HURT, SIDES, UNANSWERED, UNEVEN, UNEVEN_ARMS,
};
use crate::service::reports::drift::changed;
use crate::service::reports::traffic::TrafficSummary;
use dueling_bandits::claims::alone::SPLIT_ERROR;
use dueling_bandits::claims::drift;
use dueling_bandits::evidence::balance::{Cell, Kind, Worst, coin_evidence};

pub use crate::service::reports::alarm_kinds::{AlarmKind, KINDS};
pub use crate::service::reports::silent_pages::SilentPages;

/// Fewest pieces of feedback, or duels, for a rule on a share.
const ENOUGH: u64 = 50;
/// Added where answers are all that is known of a duel.
const CLICKS_ONLY: &str = " If pages without a click are not reported, it is enough that one ranker gets fewer clicks: make \
                           pages with `interleave`, or report `none` for pages without a click.";
/// Share of pages that teach nothing, from which on its causes are named, and the least share of
/// all pages that a cause has.
const SILENT_PERCENT: f64 = 80.0;
const CAUSE_PERCENT: f64 = 10.0;
/// Evidence that raises an alarm about the whole log. Without a defect, each of these checks ever
/// reaches it in at most one of a thousand experiments, however often it is looked at. There are
/// three: the sides of wins, the sides of pages and the canary.
pub(super) const LOG_EVIDENCE: f64 = 1000.0;
/// Evidence that raises an alarm about what this server has issued since it loaded the experiment.
/// There are two such checks, so together they are wrong once in a thousand times that a server
/// loads an experiment. All alarms of one experiment together are then false in at most 5 % of
/// healthy experiments that are loaded up to 47 times.
pub const SERVER_EVIDENCE: f64 = 2000.0;

/// An alarm that is on; docs/operations.md has a section on each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Alarm {
    #[schema(example = "late-feedback")]
    pub kind: &'static str,
    pub title: &'static str,
    /// The numbers that raised it.
    pub detail: String,
    pub cause: &'static str,
    pub action: &'static str,
}

impl AlarmKind {
    fn because(self, detail: String) -> Alarm {
        Alarm { kind: self.slug, title: self.title, detail, cause: self.cause, action: self.action }
    }
}

/// The data that the rules use.
#[derive(Debug, Clone)]
pub struct Signs {
    /// Traffic through this process.
    pub traffic: TrafficSummary,
    /// Answers of the whole log by side of the page: left won, right won, tie, no click.
    pub shown: [u64; 4],
    /// Those without a winner or a tie, by cause.
    pub silent: SilentPages,
    /// Whether duels are issued.
    pub running: bool,
    /// Time to live of a duel, in milliseconds.
    pub ttl_ms: i64,
    /// Unix milliseconds.
    pub now_ms: i64,
    /// Unix milliseconds at which the open batch opened or was last answered, if there is one that
    /// is not complete.
    pub batch_since_ms: Option<i64>,
    /// The segments in which the winner loses, in words, if there are any.
    pub hurt: Option<String>,
    /// The newest change of preferences, until there is a verdict on what is true since then.
    pub drift: Option<drift::Alarm>,
    /// The active rankers that do harm, in sentences.
    pub harms: Vec<String>,
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Which duels lack answers or pages, and what they are compared with.
fn compared(worst: &Worst, by_page: bool, name: &dyn Fn(u16) -> String) -> String {
    let done = if by_page { "interleaved here" } else { "answered" };
    let (one, other) = (name(worst.pair.0), name(worst.pair.1));
    let answered = |cell: Cell| percent(cell.answered, cell.issued);
    let (own, others) = (answered(worst.cell), answered(worst.others));
    match worst.kind {
        Kind::Pairs => {
            format!("`{one}` with `{other}`: {own:.1} % {done}, all other pairs {others:.1} %.")
        }
        Kind::Sides => format!(
            "`{one}` left of `{other}`: {own:.1} % {done}, `{other}` left of `{one}` {others:.1} %."
        ),
    }
}

/// The alarms that are on. `name` is the id of the ranker with an index.
pub fn alarms(signs: &Signs, name: &dyn Fn(u16) -> String) -> Vec<Alarm> {
    let Signs { traffic, .. } = signs;
    let (counts, feedback) = (&traffic.counts, traffic.feedback());
    let total: u64 = counts.feedback.iter().sum();
    let mut alarms = Vec::new();
    let mut raise = |on: bool, kind: AlarmKind, detail: &dyn Fn() -> String| {
        if on {
            alarms.push(kind.because(detail()));
        }
    };
    raise(signs.running && counts.pairs >= 2 * ENOUGH && total == 0, NO_FEEDBACK, &|| {
        format!("{} duels were issued here, and no feedback has arrived.", counts.pairs)
    });
    let share =
        |part: u64, whole: u64, at_least: f64| whole >= ENOUGH && percent(part, whole) >= at_least;
    let in_time_or_not = feedback.recorded + feedback.expired;
    raise(share(feedback.expired, in_time_or_not, 5.0), LATE, &|| {
        format!(
            "{:.0} % of {in_time_or_not} answers arrived too late.",
            percent(feedback.expired, in_time_or_not)
        )
    });
    raise(share(feedback.invalid, total, 5.0), INVALID, &|| {
        format!(
            "{:.0} % of {total} pieces of feedback were refused.",
            percent(feedback.invalid, total)
        )
    });
    raise(share(feedback.conflict, total, 2.0), CONFLICTS, &|| {
        format!(
            "{:.0} % of {total} pieces of feedback contradict an earlier one.",
            percent(feedback.conflict, total)
        )
    });
    raise(share(feedback.duplicate, total, 50.0), REPEATS, &|| {
        format!(
            "{:.0} % of {total} pieces of feedback are repeats.",
            percent(feedback.duplicate, total)
        )
    });
    let ended = &counts.ended;
    if let Some(answered) = traffic.answered_share() {
        let out = ended.total.issued;
        raise(total > 0 && out >= 2 * ENOUGH && answered < 0.5, UNANSWERED, &|| {
            format!("{:.0} % of {out} duels expired without an answer.", 100.0 * (1.0 - answered))
        });
    }
    if let Some(worst) = &ended.worst {
        raise(ended.evidence >= SERVER_EVIDENCE, UNEVEN, &|| {
            format!(
                "{} Shares this uneven come up in at most one of {:.0} experiments in which no pair matters.{}",
                compared(worst, ended.by_page, name),
                ended.evidence.min(1e15),
                if ended.by_page { "" } else { CLICKS_ONLY }
            )
        });
    }
    let [left, right, ..] = signs.shown;
    raise(coin_evidence(left, right) >= LOG_EVIDENCE, SIDES, &|| {
        format!("Left won {:.1} % of {} decided pages.", percent(left, left + right), left + right)
    });
    let drafts = counts.drafts;
    raise(coin_evidence(drafts.lower, drafts.higher) >= SERVER_EVIDENCE, DRAFTS, &|| {
        let pages = drafts.lower + drafts.higher;
        format!(
            "The ranker that is listed first drafted first on {:.1} % of {pages} pages.",
            percent(drafts.lower, pages)
        )
    });
    let (pages, silent) = (signs.shown.iter().sum::<u64>(), signs.silent);
    let mostly_silent = share(silent.total(), pages, SILENT_PERCENT);
    for (kind, count, what) in [
        (NO_CLICKS, silent.no_click, "got no click"),
        (NO_CREDIT, silent.no_credit, "got clicks, but none that earns credit"),
        (SAME_RANKINGS, silent.same_rankings, "were made of two equal rankings"),
    ] {
        raise(mostly_silent && share(count, pages, CAUSE_PERCENT), kind, &|| {
            format!(
                "{:.0} % of {pages} pages {what}. {:.0} % of all pages teach nothing.",
                percent(count, pages),
                percent(silent.total(), pages)
            )
        });
    }
    if let Some(hurt) = &signs.hurt {
        raise(true, SEGMENT_HURT, &|| hurt.clone());
    }
    if let Some(alarm) = &signs.drift {
        raise(true, DRIFT, &|| changed(alarm, name));
    }
    for (split, what) in traffic.alone.iter().flatten().zip(["got a page alone", "answered one"]) {
        raise(split.uneven_since().is_some(), UNEVEN_ARMS, &|| {
            let [leader, control] = split.units();
            format!(
                "Of {} units that {what}, {leader} are to see the leader and {control} the control. \
                 Shares this uneven come up in at most one of {:.0} experiments without a defect.",
                leader + control,
                1.0 / SPLIT_ERROR
            )
        });
    }
    raise(!signs.harms.is_empty(), HARM, &|| signs.harms.join(" "));
    if let Some(since) = signs.batch_since_ms {
        let stuck = signs.now_ms - since;
        raise(
            signs.running && counts.pairs > 0 && stuck > 5 * signs.ttl_ms.max(60_000),
            BATCH_STUCK,
            &|| format!("No duel was answered for {} minutes.", stuck / 60_000),
        );
    }
    alarms
}
