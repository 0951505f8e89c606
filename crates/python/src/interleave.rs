//! Interleaving of two rankings, and credit for clicks.

use std::collections::BTreeMap;

use interleaving::{
    Click, CreditSheet, DuelCoins, InvalidClick, Pin, Request, Spec, Team, Uncached,
};
use pyo3::prelude::*;

use crate::{guarded, value_error};

/// One shown result.
#[pyclass(frozen, get_all, module = "dueling_bandits")]
#[derive(Clone)]
pub struct Slot {
    /// The document.
    document: String,
    /// Its position, from 0 on the first page.
    position: usize,
    /// The side that contributed it, "left", "right" or "both"; None for a pinned document.
    team: Option<&'static str>,
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
    fn __repr__(&self) -> String {
        format!("<Slot {}: {:?} of {}>", self.position, self.document, self.team.unwrap_or("none"))
    }
}

/// The credit that the clicks on a page earned.
#[pyclass(frozen, get_all, module = "dueling_bandits")]
#[derive(Clone)]
pub struct Credit {
    /// "left", "right", "tie", or None for a page without a signal.
    outcome: Option<&'static str>,
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
    fn __repr__(&self) -> String {
        format!("<Credit: {}, {} to {}>", self.outcome.unwrap_or("none"), self.left, self.right)
    }
}

/// One page of two interleaved rankings.
#[pyclass(frozen, module = "dueling_bandits")]
pub struct Page {
    spec: Spec,
    seed: [u8; 32],
    sheet: CreditSheet,
    /// All slots from position 0 on, those of earlier pages too.
    shown: Vec<Slot>,
    offset: usize,
}

/// A click: a position or a document.
#[derive(FromPyObject)]
enum ClickArgument {
    Position(usize),
    Document(String),
}

/// A seed: a number or 32 bytes.
#[derive(FromPyObject)]
pub enum Seed {
    /// The first eight of the bytes, in little-endian order.
    Number(u64),
    /// All of them.
    Bytes([u8; 32]),
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
    fn credit(&self, clicks: Vec<ClickArgument>) -> PyResult<Credit> {
        let position = |document: &str| {
            let found = self.shown.iter().position(|slot| slot.document == document);
            let unknown = || InvalidClick::Document(document.chars().take(100).collect());
            found.ok_or_else(|| value_error(unknown()))
        };
        let clicks = clicks.iter().map(|click| match click {
            ClickArgument::Position(position) => Ok(Click::at(*position)),
            ClickArgument::Document(document) => position(document).map(Click::at),
        });
        let clicks = clicks.collect::<PyResult<Vec<_>>>()?;
        let mut coins = DuelCoins::crediting(self.seed);
        let credit =
            guarded(|| interleaving::credit(&self.spec, &self.sheet, &clicks, &mut coins))?
                .map_err(value_error)?;
        Ok(Credit {
            outcome: match credit.outcome {
                interleaving::Outcome::Left => Some("left"),
                interleaving::Outcome::Right => Some("right"),
                interleaving::Outcome::Tie => Some("tie"),
                interleaving::Outcome::None => None,
            },
            share: credit.share.value(),
            left: credit.left,
            right: credit.right,
            creditable: credit.creditable,
            ignored: credit.ignored,
        })
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

/// Interleave two rankings, best first, and return one page of the result.
///
/// `method` is KIND or KIND:name=value,name=value with the kind team-draft, balanced, probabilistic
/// or optimized. `seed` is a number or 32 bytes, different for each duel; the same seed gives the
/// same list for every page. `offset` is the number of results before this page, and `pinned` maps
/// positions to documents that are shown there and earn no credit.
#[pyfunction]
#[pyo3(
    signature = (method, left, right, length = 10, seed = Seed::Number(0), *, offset = 0, pinned = None),
    text_signature = "(method, left, right, length=10, seed=0, *, offset=0, pinned=None)"
)]
pub fn interleave(
    method: &str,
    left: Vec<String>,
    right: Vec<String>,
    length: usize,
    seed: Seed,
    offset: usize,
    pinned: Option<BTreeMap<usize, String>>,
) -> PyResult<Page> {
    let spec = Spec::from_text(method).map_err(value_error)?;
    let seed = match seed {
        Seed::Bytes(bytes) => bytes,
        Seed::Number(number) => {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            bytes
        }
    };
    let pins = pinned.unwrap_or_default().into_iter();
    let pinned: Vec<_> = pins.map(|(position, document)| Pin { document, position }).collect();
    let request = Request { left: &left, right: &right, offset, length, pinned: &pinned };
    let mut coins = DuelCoins::drafting(seed);
    let page = guarded(|| interleaving::interleave(&spec, &request, &mut coins, &Uncached))?
        .map_err(value_error)?;
    let shown = page.shown().iter().map(|slot| Slot {
        document: slot.document.to_owned(),
        position: slot.position,
        team: slot.team.map(|team| match team {
            Team::Left => "left",
            Team::Right => "right",
            Team::Both => "both",
        }),
        competitive: slot.competitive,
        pinned: slot.pinned,
        rank_left: slot.rank_left,
        rank_right: slot.rank_right,
    });
    Ok(Page { spec, seed, sheet: page.sheet.clone(), shown: shown.collect(), offset })
}
