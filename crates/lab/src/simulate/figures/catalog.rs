//! The list of all figures.

use super::delay::Late;
use super::matrix_source::MatrixSource;
use super::regret::{Line, RegretFigure, Size};
use crate::simulate::plot::Scale;
use crate::simulate::tournament::Drawn;
use dueling_bandits::preference::RegretKind;

/// A figure of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The name on the command line and in file names.
    pub name: &'static str,
    /// The caption.
    pub caption: &'static str,
    /// The paper.
    pub source: &'static str,
    /// The content.
    pub content: Content,
}

/// The content of a figure.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// Curves of cumulative regret.
    Regret(RegretFigure),
    /// Standard deviation of the regret at the horizon.
    Spread(RegretFigure),
    /// Regret at the horizon against delay of feedback.
    Delay(Late, RegretFigure),
    /// How often a random subset of rankers has a Condorcet winner.
    CondorcetSubsets(MatrixSource),
    /// How often the notions of a winner overlap, over random subsets of rankers.
    WinnerOverlap(MatrixSource),
    /// The number of Copeland winners of random subsets, and their losses.
    CopelandSizes(MatrixSource),
    /// How much the bound on the regret gains by `Δ` instead of `Δ_min`, over random subsets.
    GapAdvantage(MatrixSource),
    /// The bounds on the regret of CCB and SCB beside the measured regret. Each policy is `scb` or
    /// `ccb:alpha=…`.
    Bounds(RegretFigure),
}

const fn curve(policy: &'static str) -> Line {
    Line { policy, each_horizon: false }
}

const fn at_each_horizon(policy: &'static str) -> Line {
    Line { policy, each_horizon: true }
}

/// Five rankers of the MSLR data without a Condorcet winner.
const MSLR_5_CYCLE: MatrixSource = MatrixSource {
    file: Some("mslr_informational_5_non_condorcet.csv"),
    built_in: "cycle:5:1",
    reduced: None,
    drawn: None,
};
/// Five rankers of the MSLR data with a Condorcet winner.
const MSLR_5: MatrixSource = MatrixSource {
    file: Some("mslr_informational_5_condorcet.csv"),
    built_in: "arxiv-6",
    reduced: None,
    drawn: None,
};
/// All 136 rankers of the MSLR data.
const MSLR_136: MatrixSource = MatrixSource {
    file: Some("mslr_informational_136.csv"),
    built_in: "cycle:136:1",
    reduced: None,
    drawn: None,
};
const CYCLE_500: MatrixSource =
    MatrixSource { file: None, built_in: "cycle:500:1", reduced: Some("cycle:50:1"), drawn: None };
const ARXIV_6: MatrixSource =
    MatrixSource { file: None, built_in: "arxiv-6", reduced: None, drawn: None };
const SUSHI_16: MatrixSource =
    MatrixSource { file: Some("sushi_16.csv"), built_in: "sst:16:1", reduced: None, drawn: None };
const BTL_100: MatrixSource = MatrixSource {
    file: Some("syn_btl_100.csv"),
    built_in: "btl:100:1",
    reduced: None,
    drawn: None,
};
/// The gap is drawn for each run, as in the paper.
const HARD_100: MatrixSource = MatrixSource {
    file: None,
    built_in: "hard:100:1",
    reduced: None,
    drawn: Some(Drawn::OneWinner),
};

/// The policies of each figure. Their order decides the colours; legends are in the order of
/// regret.
mod lines {
    use super::super::regret::Line;
    use super::{at_each_horizon, curve};

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
    pub const COPELAND_BOUNDS: &[Line] =
        &[curve("ccb:alpha=0.51"), curve("ccb:alpha=1.01"), curve("scb")];
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
        // As in the library that the paper used: a tight radius, and no ranker meets itself.
        curve("btm:gamma=1.3,kappa=1,self_pairs=false"),
    ];
    /// The number of batches of the other figures comes first, so that it looks as it does there.
    pub const BATCHES: &[Line] = &[
        curve("scomp2:elimination=kl-published,batches=16"),
        curve("scomp2:elimination=kl-published,batches=8"),
        curve("scomp2:elimination=kl-published,batches=2"),
        curve("rmed1"),
    ];
    pub const BATCHES_OF_OTHERS: &[Line] = &[
        curve("pcomp:elimination=kl-published,batches=16"),
        curve("pcomp:elimination=kl-published,batches=8"),
        curve("pcomp:elimination=kl-published,batches=2"),
        curve("scomp:elimination=kl-published,batches=16"),
        curve("scomp:elimination=kl-published,batches=8"),
        curve("scomp:elimination=kl-published,batches=2"),
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
const SERVICE: &str = "No paper: the effect of a service on a policy";
const SAVAGE_PAPER: &str =
    "Urvoy, Clérot, Féraud and Naamane, Generic Exploration and K-armed Voting Bandits, ICML 2013";

/// Copeland regret over logarithmic time.
const fn copeland(
    lines: &'static [Line],
    matrix: MatrixSource,
    reduced: Size,
    full: Size,
    y_scale: Scale,
) -> RegretFigure {
    RegretFigure {
        lines,
        matrix,
        regret: RegretKind::Copeland,
        reduced,
        full,
        x_scale: Scale::Log,
        y_scale,
        frame: None,
    }
}

/// The same in a frame that ends at this multiple of the regret of this policy.
const fn framed(figure: RegretFigure, policy: &'static str, multiple: f64) -> RegretFigure {
    RegretFigure { frame: Some((policy, multiple)), ..figure }
}

/// Condorcet regret over linear time, with 10⁵ steps and 10 runs, as in all figures of the paper on
/// batches.
const fn batched(lines: &'static [Line], matrix: MatrixSource) -> Content {
    let size = Size { horizon: 100_000, runs: 10 };
    Content::Regret(RegretFigure {
        lines,
        matrix,
        regret: RegretKind::Condorcet,
        reduced: size,
        full: size,
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        frame: None,
    })
}

const fn size(horizon: u64, runs: u64) -> Size {
    Size { horizon, runs }
}

/// Every figure, grouped by paper.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "copeland-1",
        caption: "5 rankers without a Condorcet winner",
        source: COPELAND_PAPER,
        content: Content::Regret(framed(
            copeland(
                lines::COPELAND_CYCLE,
                MSLR_5_CYCLE,
                size(10_000_000, 4),
                size(100_000_000, 100),
                Scale::Linear,
            ),
            "ccb:alpha=0.51",
            5.0,
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
        name: "copeland-5",
        caption: "Copeland winners of random subsets, and their losses",
        source: COPELAND_PAPER,
        content: Content::CopelandSizes(MSLR_136),
    },
    Figure {
        name: "copeland-6",
        caption: "what the bound gains by its gap",
        source: COPELAND_PAPER,
        content: Content::GapAdvantage(MSLR_136),
    },
    Figure {
        name: "copeland-bounds",
        caption: "Theorems 11 and 13 beside measured regret, 5 rankers without a Condorcet winner",
        source: COPELAND_PAPER,
        content: Content::Bounds(copeland(
            lines::COPELAND_BOUNDS,
            MSLR_5_CYCLE,
            size(1_000_000, 4),
            size(100_000_000, 100),
            Scale::Log,
        )),
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
        content: Content::Regret(framed(
            copeland(
                lines::THOMPSON,
                MSLR_5,
                size(100_000, 20),
                size(1_000_000, 500),
                Scale::Linear,
            ),
            "rucb:alpha=0.51",
            1.5,
        )),
    },
    Figure {
        name: "thompson-1b",
        caption: "5 rankers without a Condorcet winner",
        source: THOMPSON_PAPER,
        content: Content::Regret(framed(
            copeland(
                lines::THOMPSON,
                MSLR_5_CYCLE,
                size(1_000_000, 8),
                size(10_000_000, 500),
                Scale::Linear,
            ),
            "ccb:alpha=0.51",
            1.2,
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
            Late::InBatches,
            copeland(lines::DELAY, MSLR_5, size(30_000, 20), size(1_000_000, 500), Scale::Log),
        ),
    },
    Figure {
        name: "late-in-flight",
        caption: "regret by the number of duels in flight",
        source: SERVICE,
        content: Content::Delay(
            Late::InFlight,
            copeland(lines::LATE, ARXIV_6, size(30_000, 20), size(1_000_000, 100), Scale::Log),
        ),
    },
    Figure {
        name: "late-replicas",
        caption: "regret by the number of servers",
        source: SERVICE,
        content: Content::Delay(
            Late::Replicas,
            copeland(lines::LATE, ARXIV_6, size(30_000, 20), size(1_000_000, 100), Scale::Log),
        ),
    },
    Figure {
        name: "batched-1a",
        caption: "batched policies, six rankers of arXiv",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, ARXIV_6),
    },
    Figure {
        name: "batched-1b",
        caption: "batched policies, 16 kinds of sushi",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, SUSHI_16),
    },
    Figure {
        name: "batched-1c",
        caption: "batched policies, Bradley-Terry-Luce (SYN-BTL)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, BTL_100),
    },
    Figure {
        name: "batched-1d",
        caption: "batched policies, one winner, all others tied (SYN-CD)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHED, HARD_100),
    },
    Figure {
        name: "batched-2a",
        caption: "number of batches of SCOMP2, six rankers of arXiv",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, ARXIV_6),
    },
    Figure {
        name: "batched-2b",
        caption: "number of batches of SCOMP2, 16 kinds of sushi",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, SUSHI_16),
    },
    Figure {
        name: "batched-2c",
        caption: "number of batches of SCOMP2, Bradley-Terry-Luce (SYN-BTL)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, BTL_100),
    },
    Figure {
        name: "batched-2d",
        caption: "number of batches of SCOMP2, one winner, all others tied (SYN-CD)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES, HARD_100),
    },
    Figure {
        name: "batched-3a",
        caption: "number of batches of PCOMP and SCOMP, six rankers of arXiv",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES_OF_OTHERS, ARXIV_6),
    },
    Figure {
        name: "batched-3b",
        caption: "number of batches of PCOMP and SCOMP, 16 kinds of sushi",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES_OF_OTHERS, SUSHI_16),
    },
    Figure {
        name: "batched-3c",
        caption: "number of batches of PCOMP and SCOMP, Bradley-Terry-Luce (SYN-BTL)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES_OF_OTHERS, BTL_100),
    },
    Figure {
        name: "batched-3d",
        caption: "number of batches of PCOMP and SCOMP, one winner, all others tied (SYN-CD)",
        source: BATCHED_PAPER,
        content: batched(lines::BATCHES_OF_OTHERS, HARD_100),
    },
    Figure {
        name: "savage",
        caption: "exploring first against exploring throughout, with a Condorcet winner",
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
