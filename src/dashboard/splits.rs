//! Segments that are experiments of their own.

use maud::{Markup, html};

use rankduel_engine::experiment_spec::ExperimentSpec;

/// Where an experiment comes from and which of its segments have left it, in sentences.
pub(crate) fn sentences(spec: &ExperimentSpec) -> Markup {
    html! {
        @if let Some(from) = &spec.split_from {
            " It was the segment " bdi { (from.segment) } " of " (link(&from.experiment)) "."
        }
        @for split in &spec.splits {
            " The segment " bdi { (split.segment) } " is an experiment of its own: " (link(&split.experiment)) "."
        }
    }
}

fn link(experiment: &str) -> Markup {
    html! { a href={ "/experiments/" (experiment) } { (experiment) } }
}
