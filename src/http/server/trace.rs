//! W3C Trace Context: the trace that a request belongs to.

use axum::http::{HeaderMap, HeaderName};

/// The header with the trace context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The valid `traceparent` header of a request (W3C Trace Context, section 3.2). One that is
/// malformed or repeated is ignored: it means that the caller's tracing is broken, not its request.
pub fn traceparent(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next()?.to_str().ok()?;
    (values.next().is_none() && is_valid(value)).then_some(value)
}

/// The trace id of a valid header: 32 hexadecimal digits.
pub fn trace_id(traceparent: &str) -> &str {
    &traceparent[3..35]
}

/// `VERSION-TRACE_ID-PARENT_ID-FLAGS` in lower-case hexadecimal. Ids of only zeros are invalid, and
/// so is version `ff`. Version `00` has exactly these parts; a later version may have more, after
/// another dash.
fn is_valid(value: &str) -> bool {
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let id = |text: &str, digits: usize| hex(text, digits) && text.bytes().any(|byte| byte != b'0');
    let mut parts = value.splitn(5, '-');
    let [version, trace, parent, flags] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    hex(version, 2)
        && version != "ff"
        && id(trace, 32)
        && id(parent, 16)
        && hex(flags, 2)
        && (version != "00" || parts.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_accepted_or_rejected_as_in_the_standard() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let valid = [
            format!("00-{trace}-00f067aa0ba902b7-01"),
            format!("00-{trace}-00f067aa0ba902b7-00"),
            format!("cc-{trace}-00f067aa0ba902b7-01"),
            format!("cc-{trace}-00f067aa0ba902b7-01-what-the-future-brings"),
        ];
        for header in valid {
            assert!(is_valid(&header) && trace_id(&header) == trace, "{header:?}");
        }
        let invalid = [
            String::new(),
            "00".to_owned(),
            format!("00-{trace}-00f067aa0ba902b7"),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            format!("00-{trace}-00f067aa0ba902b7-01-"),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("0-{trace}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{trace}-0000000000000000-01"),
            format!("00-{trace}-00f067aa0ba902b7-1"),
            format!("00-{trace}-00f067aa0ba902b-01"),
            format!("00-{trace}0-00f067aa0ba902b7-01"),
            format!("00_{trace}_00f067aa0ba902b7_01"),
            format!(" 00-{trace}-00f067aa0ba902b7-01"),
        ];
        for header in invalid {
            assert!(!is_valid(&header), "{header:?}");
        }
    }
}
