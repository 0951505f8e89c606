//! The claims about segments, for people.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::claim::{Claim, ClaimKind, exact_share, in_reach};
use crate::service::reports::words::{points, proven_points};
use dueling_bandits::claims::ladder::Progress;
use dueling_bandits::claims::segments::SegmentClaims;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::audience::Segment;

/// The claims about segments: in which of them the winner loses.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SegmentsView {
    /// The winner; `null` before there is one, and nothing is claimed then.
    pub ranker: Option<String>,
    /// The declared segments in which the winner is proven to lose to its rival there: the control,
    /// or without one the ranker that did best against the winner.
    #[schema(value_type = Vec<String>, example = json!(["desktop"]))]
    pub hurt: Vec<Segment>,
    /// Whether it is proven that the winner loses by more than the margin in no declared segment.
    pub unhurt: bool,
    /// The segments about which more pages may still prove something.
    #[schema(value_type = Vec<String>, example = json!(["mobile"]))]
    pub open: Vec<Segment>,
    /// The segments with fewer than `least_pages` pages of the winner and its rival.
    #[schema(value_type = Vec<String>)]
    pub too_few: Vec<Segment>,
    /// The smallest number of such pages that can prove anything, if the winner loses them all.
    #[schema(example = 17)]
    pub least_pages: u64,
    #[schema(
        example = "In `desktop`, `neural` is at least 6 points behind `bm25`. Segments of fewer than 17 pages cannot be judged yet: `mobile`. Pages count from the result on."
    )]
    pub sentence: String,
    /// The share that the winner is proven to win at most, with the segment and the rival.
    #[serde(skip)]
    pub at_most: Vec<(Segment, String, f64)>,
    /// The part of `sentence` about `hurt`.
    #[serde(skip)]
    lost: String,
}

impl SegmentsView {
    /// The view of an experiment; `None` without declared segments.
    pub(super) fn of(loaded: &LoadedExperiment, fold: &Fold) -> Option<Self> {
        let held = fold.run().segments()?;
        let (names, id) = (&loaded.spec.segments, |it: usize| loaded.spec.rankers[it].id.as_str());
        let ranker = held.winner().map(|winner| id(winner).to_owned());
        let named = |is: &dyn Fn(usize) -> bool| {
            let places = (0..names.len()).filter(|&place| ranker.is_some() && is(place));
            places.map(|place| names[place]).collect::<Vec<_>>()
        };
        let pages = |place: usize| held.wins_and_losses(place).iter().sum::<f64>();
        let least_pages = held.least_pages();
        let mut view = Self {
            hurt: named(&|place| matches!(held.hurt(place), Progress::Decided { .. })),
            unhurt: held.unhurt_after().is_some(),
            open: named(&|place| matches!(held.hurt(place), Progress::Open { .. })),
            too_few: named(&|place| pages(place) < least_pages as f64),
            least_pages,
            ranker,
            at_most: Vec::new(),
            sentence: String::new(),
            lost: String::new(),
        };
        let lost = held.hurt_segments().map(|place| {
            format!(
                "In `{}`, `{}` is at least {} behind `{}`.",
                names[place],
                view.ranker.as_deref().unwrap_or_default(),
                proven_points(0.5 - held.at_most(place).unwrap_or(0.5)),
                held.rival(place).map_or("", id),
            )
        });
        view.at_most = held
            .hurt_segments()
            .filter_map(|place| {
                Some((names[place], id(held.rival(place)?).to_owned(), held.at_most(place)?))
            })
            .collect();
        view.lost = lost.collect::<Vec<_>>().join(" ");
        view.sentence = view.sentence(loaded, fold.state().lifecycle.is_concluded());
        Some(view)
    }

    fn sentence(&self, loaded: &LoadedExperiment, has_ended: bool) -> String {
        let margin = loaded.spec.verdict_target().margin;
        let (counted, count) = match loaded.spec.decide_by {
            Some(_) => ("people who order", "They"),
            None => ("pages", "Pages"),
        };
        let Some(ranker) = &self.ranker else {
            let when = if has_ended { "only if" } else { "once" };
            return format!("Segments are judged {when} there is a winner.");
        };
        let yet = if has_ended { "" } else { " yet" };
        let few = (!self.too_few.is_empty()).then(|| {
            format!(
                "Segments of fewer than {} {counted} since the result cannot be judged{yet}: {}. \
                 {count} of before are only shown.",
                self.least_pages,
                list(&self.too_few)
            )
        });
        let known = match (self.hurt.is_empty(), self.unhurt) {
            (false, _) => Some(self.lost.clone()),
            (true, true) => Some(format!(
                "`{ranker}` loses by more than {} in none of the declared segments.",
                points(margin)
            )),
            (true, false) if few.is_none() => {
                Some(format!("No segment is proven to be worse off with `{ranker}`."))
            }
            (true, false) => None,
        };
        known.into_iter().chain(few).collect::<Vec<_>>().join(" ")
    }
}

fn list(segments: &[Segment]) -> String {
    segments.iter().map(|segment| format!("`{segment}`")).collect::<Vec<_>>().join(", ")
}

/// The claims: `hurt` of each declared segment, then `unhurt`.
pub(super) fn segment_claims(
    loaded: &LoadedExperiment,
    held: &SegmentClaims,
    margin: f64,
) -> Vec<Claim> {
    let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
    let new =
        |claim, error| Claim { ranker: held.winner().map(id), ..Claim::new(claim, margin, error) };
    let hurt = loaded.spec.segments.iter().enumerate().map(|(place, &segment)| {
        let (progress, [wins, losses]) = (held.hurt(place), held.wins_and_losses(place));
        let win_rate = (wins + losses > 0.0).then(|| wins / (wins + losses));
        Claim {
            control: held.rival(place).map(id),
            segment: Some(segment),
            win_rate,
            bound: held.at_most(place).map(exact_share),
            lead_in_reach: win_rate
                .filter(|_| progress == Progress::OutOfReach)
                .map(|rate| in_reach(0.5 - rate)),
            ..new(ClaimKind::Hurt, held.hurt_error()).with_progress(progress)
        }
    });
    let unhurt = new(ClaimKind::Unhurt, held.unhurt_error()).decided(held.unhurt_after());
    hurt.chain([unhurt]).collect()
}
