//! The claims of an experiment: the verdict, those against the control, those about segments and
//! metrics, and drift.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::claim::{Claim, ClaimKind, exact_share, in_reach, to_go};
use crate::service::reports::guardrails;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::segment_claims::segment_claims;
use crate::service::reports::single_flight::{Computed, newest};
use crate::service::reports::words::{ahead, better_by, grouped, points, proven_points};
use dueling_bandits::claims::control::{Claim as Kind, ControlClaims, Goal, Progress};
use dueling_bandits::claims::drift::{ERROR as DRIFT_ERROR, WITHIN};
use dueling_bandits::evidence::Verdict;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// All claims of an experiment, decided or not.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Claims {
    pub experiment: String,
    pub position: u64,
    /// Id of the control; `null` without one, and after it was retired.
    pub control: Option<String>,
    /// The control that was named last, while answers to duels issued before still count for the
    /// earlier one; `null` otherwise.
    pub next_control: Option<String>,
    pub goal: Goal,
    pub errors: ClaimErrors,
    /// In this order: `best`, three claims for each active ranker beside the control, `hurt` of each
    /// declared segment and `unhurt`, `harm` and `safe` for each ranker and limit of a metric,
    /// `drift`.
    pub claims: Vec<Claim>,
}

/// The largest shares of experiments in which claims are wrong, however often and whenever you read
/// them. A claim that is not made has 0.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ClaimErrors {
    /// A wrong ranker is `best`.
    #[schema(example = 0.05)]
    pub best: f64,
    /// A wrong ranker is `better` or `not_worse`, or wins less than its `bound`.
    #[schema(example = 0.04)]
    pub better: f64,
    /// A wrong ranker is `worse`, or wins more than its `bound`.
    #[schema(example = 0.01)]
    pub worse: f64,
    /// A wrong segment is `hurt`.
    #[schema(example = 0.04)]
    pub hurt: f64,
    /// The winner is wrongly `unhurt`.
    #[schema(example = 0.01)]
    pub unhurt: f64,
    /// A change of preferences is false.
    #[schema(example = 0.05)]
    pub drift: f64,
    /// A ranker that does no `harm` is said to, for all rankers and metrics together.
    #[schema(example = 0.0)]
    pub harm: f64,
    /// A ranker that is not `safe` is said to be, for all rankers and metrics together.
    #[schema(example = 0.0)]
    pub safe: f64,
    /// Any of these is wrong: their sum.
    #[schema(example = 0.1)]
    pub any: f64,
}

/// The winner against the control. Before there is a winner: the ranker that is proven to win most
/// against the control, or else the leader.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ControlView {
    pub control: String,
    pub ranker: String,
    /// The strongest proven claim about the ranker; `null` if there is none.
    pub proven: Option<ClaimKind>,
    /// Whether more duels of the ranker and the control would decide nothing.
    pub settled: bool,
    /// Share of their duels that the ranker won; `null` before the first one.
    #[schema(example = 0.59)]
    pub win_rate: Option<f64>,
    /// The ranker is proven to win more than this share; `null` if nothing is.
    #[schema(example = 0.53)]
    pub at_least: Option<f64>,
    /// The ranker is proven to win less than this share; `null` if nothing is.
    pub at_most: Option<f64>,
    /// Estimated number of further duels of the two until the ranker is proven better; `null` if it
    /// is, or there is no estimate.
    pub duels_to_go: Option<u64>,
    /// The error of the claim that the ranker is better.
    #[serde(skip)]
    pub error: f64,
    #[schema(example = "`neural` is better than what you run now by at least 3.2 points.")]
    pub sentence: String,
}

/// The claims at the current log position or later.
pub async fn claims(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<Claims>>, ServiceError> {
    // a claim takes microseconds, so all are computed where the fold is read
    let read = Arc::clone(loaded);
    newest(reports, loaded, (), move |fold| claims_of(&read, fold), |_, claims| claims).await
}

pub fn claims_of(loaded: &LoadedExperiment, fold: &Fold) -> Claims {
    let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
    let best = best(loaded, fold);
    let held = fold.run().claims();
    let takes_part = |&control: &usize| fold.run().roster().is_active(control);
    let control = held.and_then(ControlClaims::control).filter(takes_part);
    let of_control = held.zip(control).into_iter().flat_map(|(held, control)| {
        let rivals = fold.run().roster().active().iter().filter(move |&&ranker| ranker != control);
        rivals.flat_map(move |&ranker| {
            Kind::ALL.map(|kind| claim_of(loaded, fold, held, (ranker, control), kind))
        })
    });
    let error = |kind| held.map_or(0.0, |held| exact_share(held.error(kind)));
    let (better, worse) = (error(Kind::Better), error(Kind::Worse));
    let (segments, drift) = (fold.run().segments(), fold.run().drift());
    let (hurt, unhurt) = segments
        .map_or((0.0, 0.0), |it| (exact_share(it.hurt_error()), exact_share(it.unhurt_error())));
    let drift_error = drift.map_or(0.0, |_| DRIFT_ERROR);
    let guarded =
        fold.state().guardrails.as_deref().map_or(0.0, |guarded| exact_share(guarded.error()));
    let margin = fold.run().verdict().target().margin;
    let of_segments = segments.map(|it| segment_claims(loaded, it, margin));
    let of_drift = drift.map(|drift| {
        let newest = drift.alarms().last().map(|alarm| alarm.answers);
        Claim::new(ClaimKind::Drift, WITHIN, DRIFT_ERROR).decided(newest)
    });
    Claims {
        experiment: loaded.name.clone(),
        position: fold.state().position,
        control: control.map(id),
        next_control: fold.run().next_control().map(id),
        goal: loaded.spec.goal,
        errors: ClaimErrors {
            best: best.error,
            better,
            worse,
            hurt,
            unhurt,
            harm: guarded,
            safe: guarded,
            drift: drift_error,
            any: exact_share(
                best.error + better + worse + hurt + unhurt + 2.0 * guarded + drift_error,
            ),
        },
        claims: std::iter::once(best)
            .chain(of_control)
            .chain(of_segments.into_iter().flatten())
            .chain(guardrails::claims(loaded, fold))
            .chain(of_drift)
            .collect(),
    }
}

fn best(loaded: &LoadedExperiment, fold: &Fold) -> Claim {
    let (verdict, target) = (fold.run().verdict().verdict(), fold.run().verdict().target());
    let winner = verdict.map(|verdict| loaded.spec.rankers[verdict.winner()].id.clone());
    Claim {
        ranker: winner,
        ..Claim::new(ClaimKind::Best, target.margin, 1.0 - target.confidence)
            .decided(verdict.map(|verdict| verdict.comparisons))
    }
}

fn claim_of(
    loaded: &LoadedExperiment,
    fold: &Fold,
    held: &ControlClaims,
    (ranker, control): (usize, usize),
    kind: Kind,
) -> Claim {
    let (progress, win_rate) = (held.progress(ranker, kind), held.win_rate(ranker));
    let (at_least, at_most) = held.bounds(ranker);
    let lead = match kind {
        Kind::Better | Kind::NotWorse => win_rate.map(|rate| rate - 0.5),
        Kind::Worse => win_rate.map(|rate| 0.5 - rate),
    };
    let margin = fold.run().verdict().target().margin;
    Claim {
        ranker: Some(loaded.spec.rankers[ranker].id.clone()),
        control: Some(loaded.spec.rankers[control].id.clone()),
        win_rate,
        bound: if kind == Kind::Worse { at_most.map(exact_share) } else { at_least },
        lead_in_reach: lead.filter(|_| progress == Progress::OutOfReach).map(in_reach),
        ..Claim::new(kind.into(), margin, held.error(kind)).with_progress(progress)
    }
}

impl ControlView {
    /// The view of the winner. Before the verdict, it is of the ranker that is proven to win most
    /// against the control, or else of `leader`. `None` without a control. `has_ended` says whether
    /// the experiment is concluded.
    pub(super) fn of(
        loaded: &LoadedExperiment,
        held: &ControlClaims,
        verdict: Option<&Verdict>,
        leader: usize,
        has_ended: bool,
    ) -> Option<Self> {
        let control = held.control()?;
        let bound = |&ranker: &usize| held.bounds(ranker).0.unwrap_or(0.0);
        let proven = (0..loaded.spec.rankers.len()).filter(|&ranker| {
            let is_better = matches!(held.progress(ranker, Kind::Better), Progress::Decided { .. });
            is_better && !loaded.spec.is_retired(ranker)
        });
        let furthest = proven.max_by(|one, other| bound(one).total_cmp(&bound(other)));
        let ranker = verdict.map(Verdict::winner).or(furthest).unwrap_or(leader);
        let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
        let decided =
            |kind: &Kind| matches!(held.progress(ranker, *kind), Progress::Decided { .. });
        let (at_least, at_most) = held.bounds(ranker);
        let mut view = Self {
            control: id(control),
            ranker: id(ranker),
            proven: Kind::ALL.into_iter().find(decided).map(ClaimKind::from),
            settled: held.is_settled(ranker),
            win_rate: held.win_rate(ranker),
            at_least,
            at_most: at_most.map(exact_share),
            duels_to_go: to_go(held.progress(ranker, Kind::Better)),
            error: held.error(Kind::Better),
            sentence: String::new(),
        };
        view.sentence = match ranker == control {
            true if verdict.is_some() => format!("`{}`, which you run now, is best.", view.control),
            true => format!("`{}`, which you run now, leads.", view.control),
            false => view.sentence(loaded, has_ended),
        };
        Some(view)
    }

    /// The least that is proven of it beside the control: it may be ahead, by less than the margin.
    pub fn at_worst(&self, margin: f64) -> String {
        let ahead = self.at_least.map(|least| least - 0.5).filter(|lead| *lead >= 0.001);
        match ahead {
            Some(lead) => format!("at least {} ahead of", proven_points(lead)),
            None => format!("at most {} behind", points(margin)),
        }
    }

    fn sentence(&self, loaded: &LoadedExperiment, has_ended: bool) -> String {
        let margin = loaded.spec.verdict_target().margin;
        let what = match loaded.spec.decide_by {
            Some(_) => "people who order",
            None => "of their duels",
        };
        let Self { ranker, control, at_least, at_most, .. } = self;
        let Some(rate) = self.win_rate else {
            return format!("`{ranker}` has not met `{control}`, which you run now.");
        };
        let is_ahead = format!("`{ranker}` {} what you run now", ahead(rate));
        match (self.proven, at_least, at_most) {
            // the answers since have turned against what was proven
            (Some(ClaimKind::Better), Some(least), _) if rate < *least => format!(
                "`{ranker}` was better than what you run now by at least {}; over all answers, it {} \
                 what you run now.",
                proven_points(least - 0.5),
                ahead(rate)
            ),
            (Some(ClaimKind::Better), Some(least), _) => format!(
                "`{ranker}` is better than what you run now by at least {}.",
                proven_points(least - 0.5)
            ),
            (Some(ClaimKind::Worse), _, Some(most)) => {
                format!("{is_ahead}, at least {}: it is worse.", proven_points(0.5 - most))
            }
            (Some(_), ..) => format!(
                "{is_ahead}, proven to be {} it; that it is {} is not proven.",
                self.at_worst(margin),
                better_by(margin)
            ),
            (None, ..) if self.settled => {
                format!("{is_ahead}. That it is better or worse is out of reach.")
            }
            (None, ..) if has_ended => {
                format!("{is_ahead}. That it is better or worse is not proven.")
            }
            (None, ..) => match self.duels_to_go {
                Some(duels) => format!(
                    "{is_ahead}; that it is {} is not proven yet, which takes about {} more {what}.",
                    better_by(margin),
                    grouped(duels, ',')
                ),
                None => format!("{is_ahead}; that it is better is not proven yet."),
            },
        }
    }
}
