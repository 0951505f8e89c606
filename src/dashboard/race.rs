//! The race to the verdict: the evidence of the leader against each rival, over time.

use maud::{Markup, html};

use super::layout::quantity;
use super::plot::{Axis, Line, Plot};
use super::scale::Decades;
use super::view::View;
use dueling_bandits::evidence::race::RANKERS_MAX;

/// Rivals with a line of their own: those with the least evidence against them.
const LINES_MAX: usize = 6;
const CLASSES: [&str; LINES_MAX] = ["c2", "c3", "c4", "c5", "c6", "c7"];

/// The rivals of the leader at present, the one with the least evidence against it first, with
/// that evidence. Several winners are not rivals of one another.
fn rivals(view: &View) -> Vec<(usize, f64)> {
    let rows = view.verdict.rankers.iter().enumerate().filter(|(_, row)| !row.certain);
    let mut rivals: Vec<_> =
        rows.filter_map(|(index, row)| Some((index, row.evidence_against?))).collect();
    rivals.sort_by(|one, other| one.1.total_cmp(&other.1));
    rivals
}

fn plot(view: &View) -> Plot<'static> {
    let needed = view.verdict.evidence_needed;
    let decades = Decades::beyond(needed);
    let steps = view.regret.plug_in.steps as f64;
    let mut now = rivals(view);
    now.truncate(LINES_MAX);
    let mut lines: Vec<Line> = now
        .iter()
        .zip(CLASSES)
        .map(|(&(rival, evidence), class)| {
            let at = |rivals: &[(u16, f32)]| {
                let own = rivals.iter().find(|(index, _)| usize::from(*index) == rival);
                own.map(|&(_, ln)| decades.height(ln.into()))
            };
            let earlier = view
                .race
                .iter()
                .filter(|point| (point.steps as f64) < steps)
                .filter_map(|point| Some((point.steps as f64, at(&point.rivals)?)));
            let points = earlier.chain([(steps, decades.height(evidence.ln()))]).collect();
            Line { label: view.ids[rival].clone(), class, points }
        })
        .collect();
    let end = decades.height(needed.ln());
    lines.push(Line {
        label: format!("the verdict, at {}", quantity(needed)),
        class: "needed",
        points: vec![(0.0, end), (steps, end)],
    });
    let leader = &view.verdict.leader;
    let weakest = now.first().map(|&(rival, evidence)| (&view.ids[rival], quantity(evidence)));
    let summary = match &weakest {
        Some((rival, evidence)) => format!(
            "Evidence for {leader} against each rival over time; the least is {evidence} against {rival}, of {} needed.",
            quantity(needed)
        ),
        None => "Evidence over time.".into(),
    };
    Plot {
        name: "race",
        summary,
        x_label: "pages shown",
        y_label: "evidence",
        lines,
        bands: Vec::new(),
        y_axis: Axis::Logarithmic(decades),
    }
}

/// The section.
pub(crate) fn section(view: &View) -> Markup {
    let (plot, rivals) = (plot(view), rivals(view));
    let (leader, needed) = (&view.verdict.leader, view.verdict.evidence_needed);
    let weakest = rivals.first().map(|&(rival, evidence)| (&view.ids[rival], quantity(evidence)));
    html! {
        section aria-labelledby="race-title" {
            h2 #race-title { "Race to the verdict" }
            @if view.active().len() > RANKERS_MAX {
                p { "The race is drawn for up to " (RANKERS_MAX) " rankers." }
            } @else { @match (plot.render(), &weakest) {
                (Some(plot), Some((rival, evidence))) => {
                    p {
                        "A line for each rival of " code { (leader) } ": the evidence that the rival is not the better ranker. "
                        @if view.verdict.winners.is_empty() {
                            "The verdict comes when all lines have reached " b { (quantity(needed)) } ". The lowest is "
                        } @else {
                            "The verdict came when all lines had reached " b { (quantity(needed)) }
                            ", and stays if later duels lower a line. The lowest is now "
                        }
                        code #weakest { (rival) } " at " b { (evidence) } "."
                    }
                    (plot)
                    p.quiet {
                        "Evidence of 10 means: if that rival were the better one, results like these would come up at most once in "
                        "10 experiments, however often you look. Evidence of 1 or less says nothing against the rival."
                        @if rivals.len() > LINES_MAX { " The page follows the " (LINES_MAX) " rivals with the least evidence." }
                    }
                }
                _ => { p { @if view.verdict.winners.is_empty() { "Not enough data yet." } @else { "No rival is left." } } }
            } }
        }
    }
}
