//! The figures of the papers, as data: which policies, on which matrix, for how long.
//!
//! To add a policy to a figure, add a line to its list of [`Line`]s; to add a figure, add an entry
//! to [`FIGURES`]. What the entries mean is in [`regret`] (curves of regret), [`spread`] (its
//! standard deviation), [`delay`] (its growth with late feedback) and [`winners`] (notions of
//! winner among random subsets).

pub mod delay;
pub mod regret;
pub mod spread;
pub mod winners;

use super::plot::Scale;
use dueling_bandits::preference::{LoadError, PreferenceMatrix, RegretKind};

/// A figure of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// What it is called on the command line and in file names.
    pub name: &'static str,
    /// What it shows.
    pub caption: &'static str,
    /// Paper and number.
    pub source: &'static str,
    /// Where its numbers come from.
    pub content: Content,
}

/// Where a figure's numbers come from.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// Curves of cumulative regret.
    Regret(regret::RegretFigure),
    /// Standard deviation of the regret at the horizon.
    Spread(regret::RegretFigure),
    /// Regret at the horizon against what makes feedback late.
    Delay(delay::Late, regret::RegretFigure),
    /// How often a random subset of rankers has a Condorcet winner.
    CondorcetSubsets(MatrixSource),
    /// How often the notions of winner overlap, over random subsets of rankers.
    WinnerOverlap(MatrixSource),
}

/// A policy in a figure.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// As on the command line.
    pub policy: &'static str,
    /// Whether each point is a run of its own with that horizon, as the papers do for policies that
    /// explore first and then exploit; it is drawn as a marker.
    pub each_horizon: bool,
}

const fn curve(policy: &'static str) -> Line {
    Line { policy, each_horizon: false }
}

const fn at_each_horizon(policy: &'static str) -> Line {
    Line { policy, each_horizon: true }
}

/// A matrix that may be given, and what stands in for it.
#[derive(Debug, Clone, Copy)]
pub struct MatrixSource {
    /// File name in the folder of data; `None` where a built-in matrix is the paper's own.
    pub file: Option<&'static str>,
    /// Built-in matrix that is used without the file.
    pub built_in: &'static str,
    /// Built-in matrix of fewer rankers for the reduced size.
    pub reduced: Option<&'static str>,
}

/// Horizon and number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Steps of a run.
    pub horizon: u64,
    /// Runs of each policy; for winners, subsets of each size.
    pub runs: u64,
}

/// A matrix that was found for a figure.
#[derive(Debug, Clone)]
pub struct Found {
    /// What it is called.
    pub name: String,
    /// The matrix.
    pub matrix: PreferenceMatrix,
    /// The matrix of the paper that it stands in for.
    pub stands_in_for: Option<Absent>,
}

/// A matrix of a paper that was not used, and how it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// A file that was not given.
    File(&'static str),
    /// A built-in one that is for the full size.
    Large(&'static str),
}

impl std::fmt::Display for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Absent::File(file) => write!(f, "{file}; give the file with --data"),
            Absent::Large(name) => write!(f, "`{name}`, which --full takes"),
        }
    }
}

impl Found {
    /// What it is called in a title: a file without its ending.
    pub fn title(&self) -> &str {
        self.name.strip_suffix(".csv").unwrap_or(&self.name)
    }
}

impl MatrixSource {
    /// The matrix: the file in the folder `data` where there is one, else the built-in one.
    pub fn find(&self, data: Option<&str>, full: bool) -> Result<Found, LoadError> {
        if let (Some(folder), Some(file)) = (data, self.file) {
            let path = format!("{}/{file}", folder.trim_end_matches('/'));
            let matrix = PreferenceMatrix::load(&path)?;
            return Ok(Found { name: file.into(), matrix, stands_in_for: None });
        }
        let (name, stands_in_for) = match self.reduced {
            Some(smaller) if !full => (smaller, Some(Absent::Large(self.built_in))),
            _ => (self.built_in, self.file.map(Absent::File)),
        };
        let matrix = PreferenceMatrix::load(name)?;
        Ok(Found { name: name.into(), matrix, stands_in_for })
    }
}

/// Five rankers of the MSLR data without a Condorcet winner.
const MSLR_5_CYCLE: MatrixSource = MatrixSource {
    file: Some("mslr_informational_5_non_condorcet.csv"),
    built_in: "cycle:5:1",
    reduced: None,
};
/// Five rankers of the MSLR data with one.
const MSLR_5: MatrixSource = MatrixSource {
    file: Some("mslr_informational_5_condorcet.csv"),
    built_in: "arxiv-6",
    reduced: None,
};
/// All 136 rankers of the MSLR data.
const MSLR_136: MatrixSource = MatrixSource {
    file: Some("mslr_informational_136.csv"),
    built_in: "cycle:136:1",
    reduced: None,
};
const CYCLE_500: MatrixSource =
    MatrixSource { file: None, built_in: "cycle:500:1", reduced: Some("cycle:50:1") };
const ARXIV_6: MatrixSource = MatrixSource { file: None, built_in: "arxiv-6", reduced: None };
const SUSHI_16: MatrixSource =
    MatrixSource { file: Some("sushi_16.csv"), built_in: "sst:16:1", reduced: None };
const BTL_100: MatrixSource =
    MatrixSource { file: Some("syn_btl_100.csv"), built_in: "btl:100:1", reduced: None };
const HARD_100: MatrixSource =
    MatrixSource { file: Some("syn_hard_100.csv"), built_in: "hard:100:1", reduced: None };

/// Who takes part. Legends list them by regret, colours go by the order here.
mod lines {
    use super::{Line, at_each_horizon, curve};

    pub const COPELAND_CYCLE: &[Line] = &[
        curve("ccb:alpha=0.51"),
        curve("scb"),
        curve("rucb:alpha=0.51"),
        at_each_horizon("savage"),
        at_each_horizon("pbr"),
        at_each_horizon("rank-el"),
    ];
    pub const COPELAND_LARGE: &[Line] = &[curve("ccb:alpha=0.51"), curve("scb")];
    pub const COPELAND_CONDORCET: &[Line] = &[curve("ccb:alpha=0.51"), curve("rucb:alpha=0.51")];
    pub const THOMPSON: &[Line] = &[
        curve("d-ts:alpha=0.51"),
        curve("d-ts-plus:alpha=0.51"),
        curve("ecw-rmed"),
        curve("rmed1"),
        curve("rcs:alpha=0.51"),
        curve("ccb:alpha=0.51"),
        curve("rucb:alpha=0.51"),
        curve("scb"),
        curve("sparring"),
        at_each_horizon("savage"),
        at_each_horizon("btm:gamma=1.3"),
    ];
    pub const SPREAD: &[Line] =
        &[curve("ecw-rmed"), curve("d-ts:alpha=0.51"), curve("d-ts-plus:alpha=0.51")];
    pub const DELAY: &[Line] = &[
        curve("d-ts:alpha=0.51"),
        curve("d-ts-plus:alpha=0.51"),
        curve("ecw-rmed"),
        curve("rmed1"),
        curve("ccb:alpha=0.51"),
        curve("rucb:alpha=0.51"),
    ];
    pub const LATE: &[Line] = &[
        curve("d-ts:alpha=0.51"),
        curve("d-ts-plus:alpha=0.51"),
        curve("ccb:alpha=0.51"),
        curve("rucb:alpha=0.51"),
        curve("rcs:alpha=0.51"),
        curve("rmed1"),
        curve("ecw-rmed"),
        curve("merge-rucb"),
        curve("scb"),
        curve("sparring"),
        curve("self-sparring"),
        curve("uniform"),
    ];
    pub const BATCHED: &[Line] = &[
        curve("pcomp:elimination=kl-published"),
        curve("scomp:elimination=kl-published"),
        curve("scomp2:elimination=kl-published"),
        curve("rmed1"),
        curve("rucb:alpha=0.51"),
        // the tight radius of the library that the paper measured with
        curve("btm:gamma=1.3,kappa=1"),
    ];
    pub const BATCHES: &[Line] = &[
        curve("scomp2:elimination=kl-published,batches=2"),
        curve("scomp2:elimination=kl-published,batches=8"),
        curve("scomp2:elimination=kl-published,batches=16"),
        curve("rmed1"),
    ];
    pub const SAVAGE: &[Line] = &[
        curve("uniform"),
        curve("ccb:alpha=0.51"),
        at_each_horizon("savage:winner=copeland"),
        at_each_horizon("savage:winner=condorcet"),
        at_each_horizon("savage:winner=borda"),
        at_each_horizon("btm"),
        at_each_horizon("interleaved-filter"),
    ];
}

const COPELAND_PAPER: &str =
    "Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015";
const THOMPSON_PAPER: &str = "Wu and Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016";
const BATCHED_PAPER: &str = "Agarwal, Ghuge and Nagarajan, Batched Dueling Bandits, ICML 2022";
const SERVICE: &str = "No paper: what a service does to a policy";
const SAVAGE_PAPER: &str =
    "Urvoy, Clérot, Féraud and Naamane, Generic Exploration and K-armed Voting Bandits, ICML 2013";

/// Copeland regret over logarithmic time.
const fn copeland(
    lines: &'static [Line],
    matrix: MatrixSource,
    reduced: Size,
    full: Size,
    y_scale: Scale,
) -> regret::RegretFigure {
    regret::RegretFigure {
        lines,
        matrix,
        regret: RegretKind::Copeland,
        reduced,
        full,
        x_scale: Scale::Log,
        y_scale,
    }
}

/// Condorcet regret over linear time, 10⁵ steps and 10 runs, as the batched paper has it
/// throughout.
const fn batched(lines: &'static [Line], matrix: MatrixSource) -> Content {
    let size = Size { horizon: 100_000, runs: 10 };
    Content::Regret(regret::RegretFigure {
        lines,
        matrix,
        regret: RegretKind::Condorcet,
        reduced: size,
        full: size,
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
    })
}

const fn size(horizon: u64, runs: u64) -> Size {
    Size { horizon, runs }
}

/// Every figure, in the order of the papers.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "copeland-1",
        caption: "5 rankers without a Condorcet winner",
        source: COPELAND_PAPER,
        content: Content::Regret(copeland(
            lines::COPELAND_CYCLE,
            MSLR_5_CYCLE,
            size(10_000_000, 4),
            size(100_000_000, 100),
            Scale::Log,
        )),
    },
    Figure {
        name: "copeland-2",
        caption: "many rankers, three Copeland winners in a cycle",
        source: COPELAND_PAPER,
        content: Content::Regret(copeland(
            lines::COPELAND_LARGE,
            CYCLE_500,
            size(3_000_000, 4),
            size(1_000_000_000, 10),
            Scale::Linear,
        )),
    },
    Figure {
        name: "copeland-3",
        caption: "rankers with a Condorcet winner",
        source: COPELAND_PAPER,
        content: Content::Regret(copeland(
            lines::COPELAND_CONDORCET,
            MSLR_5,
            size(100_000, 10),
            size(10_000_000, 100),
            Scale::Linear,
        )),
    },
    Figure {
        name: "copeland-4",
        caption: "how often a random subset of rankers has a Condorcet winner",
        source: COPELAND_PAPER,
        content: Content::CondorcetSubsets(MSLR_136),
    },
    Figure {
        name: "copeland-table-1",
        caption: "how often the notions of winner overlap",
        source: COPELAND_PAPER,
        content: Content::WinnerOverlap(MSLR_136),
    },
    Figure {
        name: "thompson-1a",
        caption: "rankers with a Condorcet winner",
        source: THOMPSON_PAPER,
        content: Content::Regret(copeland(
            lines::THOMPSON,
            MSLR_5,
            size(100_000, 20),
            size(1_000_000, 500),
            Scale::Log,
        )),
    },
    Figure {
        name: "thompson-1b",
        caption: "5 rankers without a Condorcet winner",
        source: THOMPSON_PAPER,
        content: Content::Regret(copeland(
            lines::THOMPSON,
            MSLR_5_CYCLE,
            size(1_000_000, 8),
            size(1_000_000, 500),
            Scale::Log,
        )),
    },
    Figure {
        name: "thompson-2a",
        caption: "standard deviation of regret, with a Condorcet winner",
        source: THOMPSON_PAPER,
        content: Content::Spread(copeland(
            lines::SPREAD,
            MSLR_5,
            size(100_000, 30),
            size(1_000_000, 500),
            Scale::Linear,
        )),
    },
    Figure {
        name: "thompson-2b",
        caption: "standard deviation of regret, without a Condorcet winner",
        source: THOMPSON_PAPER,
        content: Content::Spread(copeland(
            lines::SPREAD,
            MSLR_5_CYCLE,
            size(1_000_000, 12),
            size(1_000_000, 500),
            Scale::Linear,
        )),
    },
    Figure {
        name: "thompson-delay",
        caption: "regret when feedback is delivered in batches",
        source: THOMPSON_PAPER,
        content: Content::Delay(
            delay::Late::InBatches,
            copeland(lines::DELAY, MSLR_5, size(30_000, 20), size(1_000_000, 500), Scale::Log),
        ),
    },
    Figure {
        name: "late-in-flight",
        caption: "regret by the number of duels in flight",
        source: SERVICE,
        content: Content::Delay(
            delay::Late::InFlight,
            copeland(lines::LATE, ARXIV_6, size(30_000, 20), size(1_000_000, 100), Scale::Log),
        ),
    },
    Figure {
        name: "late-replicas",
        caption: "regret by the number of servers",
        source: SERVICE,
        content: Content::Delay(
            delay::Late::Replicas,
            copeland(lines::LATE, ARXIV_6, size(30_000, 20), size(1_000_000, 100), Scale::Log),
        ),
    },
    Figure {
        name: "batched-1a",
        caption: "six rankers of arXiv",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, ARXIV_6),
    },
    Figure {
        name: "batched-1b",
        caption: "16 kinds of sushi",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, SUSHI_16),
    },
    Figure {
        name: "batched-1c",
        caption: "Bradley-Terry-Luce (SYN-BTL)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, BTL_100),
    },
    Figure {
        name: "batched-1d",
        caption: "one winner, all others tied (SYN-CD)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, HARD_100),
    },
    Figure {
        name: "batched-2a",
        caption: "number of batches, six rankers of arXiv",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, ARXIV_6),
    },
    Figure {
        name: "batched-2b",
        caption: "number of batches, 16 kinds of sushi",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, SUSHI_16),
    },
    Figure {
        name: "batched-2c",
        caption: "number of batches, Bradley-Terry-Luce (SYN-BTL)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, BTL_100),
    },
    Figure {
        name: "batched-2d",
        caption: "number of batches, one winner, all others tied (SYN-CD)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, HARD_100),
    },
    Figure {
        name: "savage",
        caption: "exploring first against exploring all along, with a Condorcet winner",
        source: SAVAGE_PAPER,
        content: Content::Regret(copeland(
            lines::SAVAGE,
            ARXIV_6,
            size(100_000, 10),
            size(10_000_000, 100),
            Scale::Log,
        )),
    },
];
