//! The data of an experiment's page, from the reports of the service.

use std::collections::HashSet;
use std::sync::Arc;

use crate::service::Service;
use crate::service::batches::{BatchPart, OpenBatch, batch};
use crate::service::conclusion::days_since;
use crate::service::error::ServiceError;
use crate::service::reports::alarms::Alarm;
use crate::service::reports::regret::{RegretReport, regret};
use crate::service::reports::single_flight::Computed;
use crate::service::reports::standings::{Standings, StandingsInput, standings_of};
use crate::service::reports::statistics::{Statistics, StatisticsInput, page_statistics};
use crate::service::reports::traffic::{TrafficSummary, traffic};
use crate::service::reports::verdict::{Verdict, verdict};
use dueling_bandits::Tally;
use dueling_bandits::evidence::history::Checkpoint;
use dueling_bandits::evidence::{Counted, RacePoint, Sequences};
use rankduel_engine::fold::counts::{Counts, PairTotals};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;

/// Maximum number of deciding pairs that are marked: many marks would be useless.
const MARKED_MAX: usize = 10;

/// The current data of an experiment.
pub(crate) struct View {
    pub loaded: Arc<LoadedExperiment>,
    pub record: ExperimentRecord,
    pub standings: Standings,
    pub verdict: Arc<Computed<Verdict>>,
    pub regret: Arc<Computed<RegretReport>>,
    /// Counts over time.
    pub checkpoints: Vec<Checkpoint>,
    pub traffic: TrafficSummary,
    /// Results of interleaved pages.
    pub statistics: Statistics,
    pub alarms: Vec<Alarm>,
    /// The open batch, for a policy that runs in batches.
    pub batch: Option<OpenBatch>,
    /// Ids of the rankers, in the experiment's order.
    pub ids: Vec<String>,
    /// Indices of the rankers, best first, retired rankers last.
    pub order: Vec<usize>,
    /// Number of active rankers, which are the first of `order`.
    active: usize,
    /// The selected ranker.
    pub chosen: usize,
    /// The pairs most likely to change the winner, at most ten, in both orders.
    pub deciding: HashSet<(usize, usize)>,
    /// The evidence for the leader over time.
    pub race: Vec<RacePoint>,
    /// Days since the experiment was created.
    pub days: f64,
    /// The intervals of pairs.
    sequences: Sequences,
    /// Raw counts.
    counts: Arc<Counts>,
    /// Counts by the experiment's tie rule, of the answers that count for the verdict or wait.
    tally: Tally,
    /// The second id of a canary, which takes no part in the tournament.
    pub twin: Option<usize>,
}

/// The reports that a page shows, which others share.
pub(crate) struct Parts {
    verdict: Arc<Computed<Verdict>>,
    regret: Arc<Computed<RegretReport>>,
    traffic: TrafficSummary,
    alarms: Vec<Alarm>,
    batch: Option<OpenBatch>,
    days: f64,
}

impl Parts {
    pub async fn of(
        service: &Service,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<Self, ServiceError> {
        let target = loaded.spec.verdict_target();
        let (verdict, regret, (traffic, alarms)) = tokio::try_join!(
            verdict(&service.reports, loaded, target),
            regret(&service.reports, loaded),
            traffic(service, loaded)
        )?;
        let in_batches = loaded.fold()?.policy().batches().is_some();
        let batch = if in_batches {
            Some(batch(service, &loaded.name, BatchPart::NONE).await?)
        } else {
            None
        };
        let days = days_since(loaded.record().created_at, service.now_ms());
        Ok(Self { verdict, regret, traffic, alarms, batch, days })
    }
}

/// The part of the fold that a page needs.
pub(crate) struct Copied {
    standings: StandingsInput,
    statistics: StatisticsInput,
    initial_rankers: usize,
    checkpoints: Vec<Checkpoint>,
    race: Vec<RacePoint>,
    /// The answers that are expected to count, if any are left out.
    expected: Option<Counted>,
}

impl Copied {
    pub fn of(loaded: &LoadedExperiment) -> Result<Self, ServiceError> {
        let fold = loaded.fold()?;
        let standings = StandingsInput::of(&fold);
        let counted = fold.verdict().counted();
        Ok(Self {
            statistics: StatisticsInput::of(&fold, Arc::clone(&standings.counts)),
            standings,
            initial_rankers: fold.initial_rankers(),
            checkpoints: fold.history().checkpoints(),
            race: fold.race().points().to_vec(),
            // since the rankers changed it leaves out all earlier answers, which the page shows
            expected: (counted.leaves_out() && fold.roster_changes().is_none())
                .then(|| counted.with_waiting(&fold.cohorts().expected())),
        })
    }
}

/// The counts of a pair.
pub(crate) struct Pairing {
    /// By the experiment's tie rule.
    pub rate: f64,
    /// Number of comparisons behind the rate.
    pub plays: f64,
    pub wins: u64,
    pub losses: u64,
    pub ties: u64,
    /// Whether the pair can change the winner.
    pub deciding: bool,
}

impl View {
    /// The data of a page. `chosen` is the id of the selected ranker; the best one by default.
    pub fn new(
        loaded: Arc<LoadedExperiment>,
        parts: Parts,
        copied: Copied,
        chosen: Option<&str>,
    ) -> Self {
        let Parts { verdict, regret, traffic, alarms, batch, days } = parts;
        let Copied { standings: input, checkpoints, initial_rankers, race, expected, .. } = copied;
        let standings = standings_of(&loaded, &input);
        let statistics = page_statistics(&loaded, &copied.statistics);
        let rankers = input.tally.rankers();
        let confidence = loaded.spec.verdict_target().confidence;
        let sequences = Sequences::new(initial_rankers, rankers, confidence);
        let ids: Vec<String> = loaded.spec.rankers.iter().map(|ranker| ranker.id.clone()).collect();
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by(|&i, &j| {
            let rank = |of: usize| {
                let (verdict, standing) = (&verdict.rankers[of], &standings.rankers[of]);
                (verdict.copeland_probability, standing.copeland_score, standing.borda_score)
            };
            rank(j).partial_cmp(&rank(i)).unwrap_or(std::cmp::Ordering::Equal)
        });
        // The sort is stable, so it keeps the order within each group.
        let twin = loaded.spec.held_out();
        order.sort_by_key(|&i| (loaded.spec.is_retired(i) || twin == Some(i), twin == Some(i)));
        let active = loaded.spec.roster().map_or(ids.len(), |roster| roster.active().len());
        let index = |id: &str| ids.iter().position(|own| own == id);
        let deciding: HashSet<(usize, usize)> = verdict
            .deciding_pairs
            .iter()
            .take(MARKED_MAX)
            .filter_map(|pair| Some((index(&pair.left)?, index(&pair.right)?)))
            .flat_map(|(i, j)| [(i, j), (j, i)])
            .collect();
        let chosen = chosen.and_then(|id| ids.iter().position(|own| own == id)).unwrap_or(order[0]);
        let record = loaded.record();
        // repeated answers of one unit would make the intervals too narrow
        let tally = match expected {
            Some(expected) => expected.of(&input.tally),
            None => input.tally,
        };
        Self {
            days,
            loaded,
            record,
            standings,
            regret,
            traffic,
            statistics,
            alarms,
            batch,
            ids,
            order,
            active,
            chosen,
            deciding,
            race,
            sequences,
            verdict,
            checkpoints,
            counts: input.counts,
            tally,
            twin,
        }
    }

    /// The counts of `i` against `j`; `None` if they have not been compared.
    pub fn pairing(&self, i: usize, j: usize) -> Option<Pairing> {
        if i == j {
            return None;
        }
        let (rate, plays) = (self.tally.mean(i, j)?, self.tally.plays(i, j));
        let PairTotals { wins, losses, ties, .. } = self.counts.pair(i, j);
        Some(Pairing { rate, plays, wins, losses, ties, deciding: self.deciding.contains(&(i, j)) })
    }

    /// The interval of the rate at which `i` wins against `j`. All intervals together hold at all
    /// times, at the verdict's confidence.
    pub fn interval(&self, i: usize, j: usize) -> (f64, f64) {
        self.sequences.of(i, j).interval(self.tally.wins(i, j), self.tally.wins(j, i))
    }

    /// The active rankers, best first.
    pub fn active(&self) -> &[usize] {
        &self.order[..self.active]
    }

    /// The retired rankers.
    pub fn retired(&self) -> &[usize] {
        &self.order[self.active..self.order.len() - usize::from(self.twin.is_some())]
    }

    pub fn is_retired(&self, i: usize) -> bool {
        self.loaded.spec.is_retired(i)
    }
}
