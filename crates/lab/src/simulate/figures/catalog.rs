//! The list of all figures.

use super::delay::Late;
use super::matrix_source::MatrixSource;
use super::regret::{Line, RegretFigure, Size};
use crate::simulate::tournament::Drawn;
use dueling_bandits::preference::RegretKind;

/// A figure of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The name on the command line and in file names.
    pub name: &'static str,
    pub caption: &'static str,
    pub source: &'static str,
    pub content: Content,
}

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
    /// How much the bound on the regret gains by `Δ` instead of `Δ_min`, over random subsets.
    GapAdvantage(MatrixSource),
}

impl Content {
    /// The policies with their matrix, or else the matrix whose subsets are drawn.
    pub fn inputs(&self) -> Result<&RegretFigure, &MatrixSource> {
        match self {
            Self::Regret(f) | Self::Spread(f) | Self::Delay(_, f) => Ok(f),
            Self::CondorcetSubsets(of) | Self::WinnerOverlap(of) | Self::GapAdvantage(of) => {
                Err(of)
            }
        }
    }
}

const fn curve(policy: &'static str) -> Line {
    Line { policy, each_horizon: false }
}

const fn at_each_horizon(policy: &'static str) -> Line {
    Line { policy, each_horizon: true }
}

/// A matrix in a file, and the built-in matrix that stands in for it.
const fn file(file: &'static str, built_in: &'static str) -> MatrixSource {
    MatrixSource { file: Some(file), built_in, reduced: None, drawn: None }
}

const fn built_in(name: &'static str) -> MatrixSource {
    MatrixSource { file: None, built_in: name, reduced: None, drawn: None }
}

/// Five rankers of the MSLR data without a Condorcet winner.
const MSLR_5_CYCLE: MatrixSource = file("mslr_informational_5_non_condorcet.csv", "cycle:5:1");
/// Five rankers of the MSLR data with a Condorcet winner.
const MSLR_5: MatrixSource = file("mslr_informational_5_condorcet.csv", "arxiv-6");
/// All 136 rankers of the MSLR data.
const MSLR_136: MatrixSource = file("mslr_informational_136.csv", "cycle:136:1");
const CYCLE_500: MatrixSource =
    MatrixSource { reduced: Some("cycle:50:1"), ..built_in("cycle:500:1") };
const ARXIV_6: MatrixSource = built_in("arxiv-6");
const SUSHI_16: MatrixSource = file("sushi_16.csv", "sst:16:1");
const BTL_100: MatrixSource = file("syn_btl_100.csv", "btl:100:1");
/// The gap is drawn for each run, as in the paper.
const HARD_100: MatrixSource =
    MatrixSource { drawn: Some(Drawn::OneWinner), ..built_in("hard:100:1") };

/// The policies of each figure.
#[rustfmt::skip] // tables
mod lines {
    use super::super::regret::Line;
    use super::{at_each_horizon, curve};

    pub const COPELAND_CYCLE: &[Line] = &[curve("ccb:alpha=0.51"), curve("scb"),
        curve("rucb:alpha=0.51"), at_each_horizon("savage"), at_each_horizon("pbr"),
        at_each_horizon("rank-el")];
    pub const COPELAND_LARGE: &[Line] = &[curve("ccb:alpha=0.51"), curve("scb")];
    pub const COPELAND_CONDORCET: &[Line] = &[curve("ccb:alpha=0.51"), curve("rucb:alpha=0.51")];
    pub const THOMPSON: &[Line] = &[curve("d-ts:alpha=0.51"), curve("d-ts-plus:alpha=0.51"),
        curve("ecw-rmed"), curve("rmed1"), curve("rcs:alpha=0.51"), curve("ccb:alpha=0.51"),
        curve("rucb:alpha=0.51"), curve("scb"), curve("sparring"), at_each_horizon("savage"),
        at_each_horizon("btm:gamma=1.3")];
    pub const SPREAD: &[Line] = &[curve("ecw-rmed"), curve("d-ts:alpha=0.51"),
        curve("d-ts-plus:alpha=0.51")];
    pub const DELAY: &[Line] = &[curve("d-ts:alpha=0.51"), curve("d-ts-plus:alpha=0.51"),
        curve("ecw-rmed"), curve("rmed1"), curve("ccb:alpha=0.51"), curve("rucb:alpha=0.51")];
    pub const LATE: &[Line] = &[curve("d-ts:alpha=0.51"), curve("d-ts-plus:alpha=0.51"),
        curve("ccb:alpha=0.51"), curve("rucb:alpha=0.51"), curve("rcs:alpha=0.51"), curve("rmed1"),
        curve("ecw-rmed"), curve("merge-rucb"), curve("scb"), curve("sparring"),
        curve("self-sparring"), curve("uniform")];
    pub const BATCHED: &[Line] = &[
        curve("pcomp:elimination=kl-published"),
        curve("scomp:elimination=kl-published"),
        curve("scomp2:elimination=kl-published"),
        curve("rmed1"),
        curve("rucb:alpha=0.51"),
        // As in the library that the paper used: a tight radius, and no ranker meets itself.
        curve("btm:gamma=1.3,kappa=1,self_pairs=false"),
    ];
    pub const BATCHES: &[Line] = &[curve("scomp2:elimination=kl-published,batches=16"),
        curve("scomp2:elimination=kl-published,batches=8"),
        curve("scomp2:elimination=kl-published,batches=2"), curve("rmed1")];
    pub const BATCHES_OF_OTHERS: &[Line] = &[curve("pcomp:elimination=kl-published,batches=16"),
        curve("pcomp:elimination=kl-published,batches=8"),
        curve("pcomp:elimination=kl-published,batches=2"),
        curve("scomp:elimination=kl-published,batches=16"),
        curve("scomp:elimination=kl-published,batches=8"),
        curve("scomp:elimination=kl-published,batches=2"), curve("rmed1")];
    pub const SAVAGE: &[Line] = &[curve("uniform"), curve("ccb:alpha=0.51"),
        at_each_horizon("savage:winner=copeland"), at_each_horizon("savage:winner=condorcet"),
        at_each_horizon("savage:winner=borda"), at_each_horizon("btm"),
        at_each_horizon("interleaved-filter")];
}

const COPELAND_PAPER: &str =
    "Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015";
const THOMPSON_PAPER: &str = "Wu and Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016";
const BATCHED_PAPER: &str = "Agarwal, Ghuge and Nagarajan, Batched Dueling Bandits, ICML 2022";
const SERVICE: &str = "No paper: the effect of a service on a policy";
const SAVAGE_PAPER: &str =
    "Urvoy, Clérot, Féraud and Naamane, Generic Exploration and K-armed Voting Bandits, ICML 2013";

/// Copeland regret of this number of steps and of runs.
const fn copeland(
    lines: &'static [Line],
    matrix: MatrixSource,
    reduced: (u64, u64),
    full: (u64, u64),
) -> RegretFigure {
    RegretFigure {
        lines,
        matrix,
        regret: RegretKind::Copeland,
        reduced: Size { horizon: reduced.0, runs: reduced.1 },
        full: Size { horizon: full.0, runs: full.1 },
    }
}

/// Condorcet regret of 10⁵ steps and 10 runs, as in all figures of the paper on batches.
const fn batched(lines: &'static [Line], matrix: MatrixSource) -> Content {
    let size = Size { horizon: 100_000, runs: 10 };
    Content::Regret(RegretFigure {
        lines,
        matrix,
        regret: RegretKind::Condorcet,
        reduced: size,
        full: size,
    })
}

const fn figure(
    source: &'static str,
    name: &'static str,
    caption: &'static str,
    content: Content,
) -> Figure {
    Figure { name, caption, source, content }
}

/// Every figure, grouped by paper.
#[rustfmt::skip] // a table
pub const FIGURES: &[Figure] = &[
    figure(COPELAND_PAPER, "copeland-1", "5 rankers without a Condorcet winner",
        Content::Regret(copeland(lines::COPELAND_CYCLE, MSLR_5_CYCLE,
            (10_000_000, 4), (100_000_000, 100)))),
    figure(COPELAND_PAPER, "copeland-2", "many rankers, three Copeland winners in a cycle",
        Content::Regret(copeland(lines::COPELAND_LARGE, CYCLE_500,
            (3_000_000, 4), (1_000_000_000, 10)))),
    figure(COPELAND_PAPER, "copeland-3", "rankers with a Condorcet winner",
        Content::Regret(copeland(lines::COPELAND_CONDORCET, MSLR_5,
            (100_000, 10), (10_000_000, 100)))),
    figure(COPELAND_PAPER, "copeland-4",
        "how often a random subset of rankers has a Condorcet winner",
        Content::CondorcetSubsets(MSLR_136)),
    figure(COPELAND_PAPER, "copeland-6", "what the bound gains by its gap",
        Content::GapAdvantage(MSLR_136)),
    figure(COPELAND_PAPER, "copeland-table-1", "how often the notions of winner overlap",
        Content::WinnerOverlap(MSLR_136)),
    figure(THOMPSON_PAPER, "thompson-1a", "rankers with a Condorcet winner",
        Content::Regret(copeland(lines::THOMPSON, MSLR_5, (100_000, 20), (1_000_000, 500)))),
    figure(THOMPSON_PAPER, "thompson-1b", "5 rankers without a Condorcet winner",
        Content::Regret(copeland(lines::THOMPSON, MSLR_5_CYCLE,
            (1_000_000, 8), (10_000_000, 500)))),
    figure(THOMPSON_PAPER, "thompson-2a", "standard deviation of regret, with a Condorcet winner",
        Content::Spread(copeland(lines::SPREAD, MSLR_5, (100_000, 30), (1_000_000, 500)))),
    figure(THOMPSON_PAPER, "thompson-2b",
        "standard deviation of regret, without a Condorcet winner",
        Content::Spread(copeland(lines::SPREAD, MSLR_5_CYCLE, (1_000_000, 12), (1_000_000, 500)))),
    figure(THOMPSON_PAPER, "thompson-delay", "regret when feedback is delivered in batches",
        Content::Delay(Late::InBatches,
            copeland(lines::DELAY, MSLR_5, (30_000, 20), (1_000_000, 500)))),
    figure(SERVICE, "late-in-flight", "regret by the number of duels in flight",
        Content::Delay(Late::InFlight,
            copeland(lines::LATE, ARXIV_6, (30_000, 20), (1_000_000, 100)))),
    figure(SERVICE, "late-replicas", "regret by the number of servers",
        Content::Delay(Late::Replicas,
            copeland(lines::LATE, ARXIV_6, (30_000, 20), (1_000_000, 100)))),
    figure(BATCHED_PAPER, "batched-1a", "batched policies, six rankers of arXiv",
        batched(lines::BATCHED, ARXIV_6)),
    figure(BATCHED_PAPER, "batched-1b", "batched policies, 16 kinds of sushi",
        batched(lines::BATCHED, SUSHI_16)),
    figure(BATCHED_PAPER, "batched-1c", "batched policies, Bradley-Terry-Luce (SYN-BTL)",
        batched(lines::BATCHED, BTL_100)),
    figure(BATCHED_PAPER, "batched-1d", "batched policies, one winner, all others tied (SYN-CD)",
        batched(lines::BATCHED, HARD_100)),
    figure(BATCHED_PAPER, "batched-2a", "number of batches of SCOMP2, six rankers of arXiv",
        batched(lines::BATCHES, ARXIV_6)),
    figure(BATCHED_PAPER, "batched-2b", "number of batches of SCOMP2, 16 kinds of sushi",
        batched(lines::BATCHES, SUSHI_16)),
    figure(BATCHED_PAPER, "batched-2c", "number of batches of SCOMP2, Bradley-Terry-Luce (SYN-BTL)",
        batched(lines::BATCHES, BTL_100)),
    figure(BATCHED_PAPER, "batched-2d",
        "number of batches of SCOMP2, one winner, all others tied (SYN-CD)",
        batched(lines::BATCHES, HARD_100)),
    figure(BATCHED_PAPER, "batched-3a",
        "number of batches of PCOMP and SCOMP, six rankers of arXiv",
        batched(lines::BATCHES_OF_OTHERS, ARXIV_6)),
    figure(BATCHED_PAPER, "batched-3b", "number of batches of PCOMP and SCOMP, 16 kinds of sushi",
        batched(lines::BATCHES_OF_OTHERS, SUSHI_16)),
    figure(BATCHED_PAPER, "batched-3c",
        "number of batches of PCOMP and SCOMP, Bradley-Terry-Luce (SYN-BTL)",
        batched(lines::BATCHES_OF_OTHERS, BTL_100)),
    figure(BATCHED_PAPER, "batched-3d",
        "number of batches of PCOMP and SCOMP, one winner, all others tied (SYN-CD)",
        batched(lines::BATCHES_OF_OTHERS, HARD_100)),
    figure(SAVAGE_PAPER, "savage",
        "exploring first against exploring throughout, with a Condorcet winner",
        Content::Regret(copeland(lines::SAVAGE, ARXIV_6, (100_000, 10), (10_000_000, 100)))),
];
