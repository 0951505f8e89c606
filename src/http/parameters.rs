//! Parameters that several resources have: pages and filters of a list, and units.
//!
//! A cursor is opaque to callers: it is the base64 of the last row's key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;

use super::problem::{ApiResult, Problem};
use crate::service::answer::State;
use crate::service::units::unit_error;
use rankduel_store::ListFilter;
use rankduel_store::events::Status;

/// The default of `limit`.
const LIMIT_DEFAULT: u32 = 50;
/// The maximum of `limit`.
const LIMIT_MAX: u32 = 500;

/// The parameter `limit`.
pub(crate) fn read_limit(limit: Option<u32>) -> ApiResult<u32> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if (1..=LIMIT_MAX).contains(&limit) {
        return Ok(limit);
    }
    let detail = format!("`limit` is {limit}; it must be 1 to {LIMIT_MAX}");
    Err(Problem::invalid(&detail).query("limit", detail))
}

/// The cursor of the page after the row with this key.
pub(crate) fn write_cursor(key: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The parameter `cursor`; `read` reads the key of the row.
pub(crate) fn read_cursor<T>(
    cursor: &str,
    read: impl FnOnce(Vec<u8>) -> Option<T>,
) -> ApiResult<T> {
    URL_SAFE_NO_PAD.decode(cursor).ok().and_then(read).ok_or_else(|| {
        let detail = "`cursor` is not from this list; use `next` of the previous page";
        Problem::invalid(detail).query("cursor", detail)
    })
}

/// Most characters of the parameter `search`.
const SEARCH_MAX: usize = 100;

/// The parameters `search` and `state` of a list of experiments.
pub(crate) fn read_filter(search: Option<&str>, state: Option<&str>) -> ApiResult<ListFilter> {
    let refused = |name, detail: String| Err(Problem::invalid(&detail).query(name, detail));
    // no name or owner has a blank at an end
    let search = search.map(str::trim);
    if let Some(search) = search {
        let length = search.chars().count();
        if length > SEARCH_MAX {
            let detail = format!("`search` has {length} characters; it may have {SEARCH_MAX}");
            return refused("search", detail);
        }
        if search.contains('\0') {
            return refused("search", "`search` has a NUL, which no name has".into());
        }
    }
    let mut states = Vec::new();
    for name in state.into_iter().flat_map(|names| names.split(',')) {
        let read: Result<State, ValueError> = State::deserialize(name.into_deserializer());
        let status: Result<Status, ValueError> = Status::deserialize(name.into_deserializer());
        match read.map(drop).or_else(|error| status.map(drop).map_err(|_| error)) {
            Ok(()) => states.push(name.to_owned()),
            Err(error) => return refused("state", format!("`state`: {error}")),
        }
    }
    let (search, states) = (search.map(str::to_owned), state.map(|_| states));
    Ok(ListFilter { search, states, ..ListFilter::default() })
}

/// Refuse an id that cannot be a unit.
pub(super) fn check_unit(unit: Option<&str>) -> ApiResult<()> {
    let Some(detail) = unit.and_then(unit_error) else { return Ok(()) };
    Err(Problem::invalid_at("request", "/unit", detail))
}
