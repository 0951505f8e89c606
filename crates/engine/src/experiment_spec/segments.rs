//! The declared segments of an experiment.

use super::field_error::FieldError;
use super::spec::ExperimentSpec;
use dueling_bandits::claims::segments::SEGMENTS_MAX;

/// The name of what is not declared.
pub const OTHER: &str = "other";

/// The errors of the segments of a spec.
pub(super) fn segment_errors(spec: &ExperimentSpec) -> Vec<FieldError> {
    let segments = &spec.segments;
    let mut errors = Vec::new();
    if segments.len() > SEGMENTS_MAX {
        let detail = format!(
            "an experiment has at most {SEGMENTS_MAX} `segments`; this one has {}: leave out the \
             smallest, which then count as `{OTHER}`",
            segments.len()
        );
        return vec![FieldError::new("/segments", detail)];
    }
    for (index, segment) in segments.iter().enumerate() {
        let pointer = format!("/segments/{index}");
        if let Some(earlier) = segments[..index].iter().position(|it| it == segment) {
            let detail = format!(
                "segment `{segment}` is listed twice; it is also at index {earlier}: leave one out"
            );
            errors.push(FieldError::new(&pointer, detail));
        }
        if segment.as_str() == OTHER {
            let detail = format!("`{OTHER}` is what all other labels count as: leave it out");
            errors.push(FieldError::new(&pointer, detail));
        }
    }
    let waits = spec.conclude_at.is_some_and(|at| at.segments);
    if segments.is_empty() && waits {
        let detail = "`segments` of `conclude_at` is true, and there is nothing to wait for: \
                      declare `segments`, or leave it out";
        errors.push(FieldError::new("/conclude_at/segments", detail));
    }
    errors
}
