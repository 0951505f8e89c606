//! Interleaving of two rankings, and credit for clicks.

use interleaving::{
    Click, CreditSheet, DuelCoins, InvalidClick, Pin, Request, Spec, Team, Uncached,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, count, items, refused, text, texts, whole};
use crate::saved::{Reduced, Saved, saved_as_it_is};
use crate::{guarded, value_error};

/// One shown result.
#[pyclass(frozen, eq, get_all, module = "dueling_bandits")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// The document.
    document: String,
    /// Its position, from 0 on the first page.
    position: usize,
    /// The side that contributed it, "left", "right" or "both"; None for a pinned document.
    team: Option<String>,
    /// Whether a click on it can earn credit.
    competitive: bool,
    /// Whether it is pinned.
    pinned: bool,
    /// Its rank in the left ranking, from 1; None where it is missing.
    rank_left: Option<u32>,
    /// Its rank in the right ranking, from 1; None where it is missing.
    rank_right: Option<u32>,
}

#[pymethods]
impl Slot {
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Slot {}: {:?} of {}>",
            self.position,
            self.document,
            self.team.as_deref().unwrap_or("none")
        )
    }
}

/// The credit that the clicks on a page earned.
#[pyclass(frozen, eq, get_all, module = "dueling_bandits")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Credit {
    /// "left", "right", "tie", or None for a page without a signal.
    outcome: Option<String>,
    /// The left side's part of the page, from 0 to 1; 0.5 without a signal.
    share: f64,
    /// The credit of the left side, in the unit of the method.
    left: f64,
    /// The credit of the right side.
    right: f64,
    /// The number of clicked documents that could earn credit.
    creditable: usize,
    /// The number of clicked documents that could not.
    ignored: usize,
}

#[pymethods]
impl Credit {
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Credit: {}, {} to {}>",
            self.outcome.as_deref().unwrap_or("none"),
            self.left,
            self.right
        )
    }
}

/// One page of two interleaved rankings.
#[pyclass(frozen, eq, module = "dueling_bandits")]
#[derive(PartialEq)]
pub struct Page {
    method: String,
    spec: Spec,
    seed: [u8; 32],
    sheet: CreditSheet,
    /// All slots from position 0 on, those of earlier pages too.
    shown: Vec<Slot>,
    offset: usize,
}

#[pymethods]
impl Page {
    /// The documents of the page in the order shown.
    #[getter]
    fn documents(&self) -> Vec<String> {
        self.page().iter().map(|slot| slot.document.clone()).collect()
    }

    /// The slots of the page.
    #[getter]
    fn slots(&self) -> Vec<Slot> {
        self.page().to_vec()
    }

    /// Whether clicks can decide the duel.
    #[getter]
    fn is_informative(&self) -> bool {
        self.sheet.informative
    }

    /// The credit for these clicks: positions or documents, of this page or the pages before it.
    /// Their order and repeats do not matter.
    fn credit(&self, clicks: &Bound<'_, PyAny>) -> PyResult<Credit> {
        let wrong = |error| value_error(format!("`clicks`: {error}"));
        let wanted = "a list of positions and documents";
        let click = |item: &Bound<'_, PyAny>| match item.extract::<String>() {
            Ok(document) => {
                let found = self.shown.iter().position(|slot| slot.document == document);
                let unknown = || InvalidClick::Document(document.chars().take(100).collect());
                found.ok_or_else(|| wrong(unknown())).map(Click::at)
            }
            Err(_) => count("clicks", item, usize::MAX)
                .map(Click::at)
                .map_err(|_| refused("clicks", clicks, wanted)),
        };
        let given = items("clicks", clicks, wanted)?;
        let given = given.iter().map(click).collect::<PyResult<Vec<_>>>()?;
        let mut coins = DuelCoins::crediting(self.seed);
        let credit = guarded(|| interleaving::credit(&self.spec, &self.sheet, &given, &mut coins))?
            .map_err(wrong)?;
        Ok(Credit {
            outcome: match credit.outcome {
                interleaving::Outcome::Left => Some("left".into()),
                interleaving::Outcome::Right => Some("right".into()),
                interleaving::Outcome::Tie => Some("tie".into()),
                interleaving::Outcome::None => None,
            },
            share: credit.share.value(),
            left: credit.left,
            right: credit.right,
            creditable: credit.creditable,
            ignored: credit.ignored,
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

    fn __len__(&self) -> usize {
        self.page().len()
    }

    fn __repr__(&self) -> String {
        format!("<Page of {} documents>", self.page().len())
    }
}

impl Page {
    fn page(&self) -> &[Slot] {
        self.shown.get(self.offset..).unwrap_or_default()
    }
}

saved_as_it_is!(Credit, Slot);

impl Saved for Page {
    const CLASS: &'static str = "Page";
    type State = (String, [u8; 32], CreditSheet, Vec<Slot>, usize);

    fn state(&self) -> Self::State {
        (self.method.clone(), self.seed, self.sheet.clone(), self.shown.clone(), self.offset)
    }

    fn of_state((method, seed, sheet, shown, offset): Self::State) -> Option<Self> {
        let spec = Spec::from_text(&method).ok()?;
        Some(Self { method, spec, seed, sheet, shown, offset })
    }
}

/// A seed: a number, which is the first eight of the bytes in little-endian order, or 32 bytes.
fn seed_of(seed: &Bound<'_, PyAny>) -> PyResult<[u8; 32]> {
    if let Ok(bytes) = seed.cast::<PyBytes>() {
        return bytes.as_bytes().try_into().map_err(|_| refused("seed", seed, "32 bytes"));
    }
    let wanted = "a whole number from 0 to 18446744073709551615, or 32 bytes";
    let number = whole("seed", seed, 0..=u64::MAX).map_err(|_| refused("seed", seed, wanted))?;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Ok(bytes)
}

/// The pins of a dictionary of positions and documents.
fn pins_of(pinned: &Bound<'_, PyAny>) -> PyResult<Vec<Pin<String>>> {
    let wrong = || refused("pinned", pinned, "a dictionary of positions and documents");
    let read = |(position, document): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let position = count("pinned", &position, usize::MAX).map_err(|_| wrong())?;
        let document = text("pinned", &document).map_err(|_| wrong())?;
        Ok(Pin { document, position })
    };
    let mut pins = pinned
        .cast::<PyDict>()
        .map_err(|_| wrong())?
        .iter()
        .map(read)
        .collect::<PyResult<Vec<_>>>()?;
    pins.sort_by_key(|pin| pin.position);
    Ok(pins)
}

/// Interleave two rankings, best first, and return one page of the result.
///
/// `method` is KIND or KIND:name=value,name=value with the kind team-draft, balanced, probabilistic
/// or optimized. `seed` is a number or 32 bytes, different for each duel; the same seed gives the
/// same list for every page. `offset` is the number of results before this page, and `pinned` maps
/// positions to documents that are shown there and earn no credit.
#[pyfunction]
#[pyo3(
    signature = (
        method, left, right, length = Argument::Default(10), seed = Argument::Default([0; 32]), *,
        offset = Argument::Default(0), pinned = None
    ),
    text_signature = "(method, left, right, length=10, seed=0, *, offset=0, pinned=None)"
)]
pub fn interleave<'py>(
    method: &Bound<'py, PyAny>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    length: Argument<'py, usize>,
    seed: Argument<'py, [u8; 32]>,
    offset: Argument<'py, usize>,
    pinned: Option<&Bound<'py, PyAny>>,
) -> PyResult<Page> {
    let method = text("method", method)?;
    let wrong_method = |error| value_error(format!("`method`: {error}"));
    let spec = Spec::from_text(&method).map_err(wrong_method)?;
    let (left, right) = (texts("left", left)?, texts("right", right)?);
    let length = length.read(|length| count("length", length, usize::MAX))?;
    let offset = offset.read(|offset| count("offset", offset, usize::MAX))?;
    let seed = seed.read(seed_of)?;
    let pinned = pinned.map(pins_of).transpose()?.unwrap_or_default();
    let request = Request { left: &left, right: &right, offset, length, pinned: &pinned };
    let mut coins = DuelCoins::drafting(seed);
    let page = guarded(|| interleaving::interleave(&spec, &request, &mut coins, &Uncached))?
        .map_err(value_error)?;
    let shown = page.shown().iter().map(|slot| Slot {
        document: slot.document.to_owned(),
        position: slot.position,
        team: slot.team.map(|team| match team {
            Team::Left => "left".into(),
            Team::Right => "right".into(),
            Team::Both => "both".into(),
        }),
        competitive: slot.competitive,
        pinned: slot.pinned,
        rank_left: slot.rank_left,
        rank_right: slot.rank_right,
    });
    Ok(Page { method, spec, seed, sheet: page.sheet.clone(), shown: shown.collect(), offset })
}
