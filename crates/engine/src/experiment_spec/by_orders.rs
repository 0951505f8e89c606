//! The rules of a spec that orders decide.

use dueling_bandits::PolicySpec;

use super::decide_by::{EVENT_WEIGHTS, SETTLE_AFTER, method_error};
use super::field_error::FieldError;
use super::page_rules::PageRules;
use super::spec::ExperimentSpec;

/// The errors of `decide_by`, and of settings beside it that cannot go with it.
pub(super) fn errors(spec: &ExperimentSpec) -> Vec<FieldError> {
    let Some(decide_by) = &spec.decide_by else { return Vec::new() };
    let mut errors = Vec::new();
    decide_by.add_errors(&mut errors);
    let mut push = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    let window = decide_by.answer_window_seconds();
    if spec.answer_window_seconds != window {
        push(
            "/answer_window_seconds",
            format!(
                "`answer_window_seconds` is {}; it follows from `decide_by`, window and arrival, \
                 as {window}: leave it out",
                spec.answer_window_seconds
            ),
        );
    }
    if spec.pages.settle_after_seconds.is_some() {
        push("/settle_after_seconds", SETTLE_AFTER.into());
    }
    if spec.pages.event_weights != PageRules::default().event_weights {
        push("/event_weights", EVENT_WEIGHTS.into());
    }
    if spec.pages.canary.is_some() {
        push(
            "/canary",
            "a canary compares clicks, and here orders decide: leave it out, or try it in an \
             experiment without `decide_by`"
                .into(),
        );
    }
    let is_batched =
        matches!(spec.policy, PolicySpec::Pcomp(_) | PolicySpec::Scomp(_) | PolicySpec::Scomp2(_));
    if is_batched {
        push(
            "/policy/kind",
            format!(
                "policy `{}` waits for an answer to each duel of a batch, and most pages have no \
                 order: choose `d-ts-verdict`",
                spec.policy.kind()
            ),
        );
    }
    errors.extend(method_error(&spec.pages.interleaving));
    errors
}
