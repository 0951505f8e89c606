//! The data of an experiment's page, from the reports of the service.

use std::collections::HashSet;
use std::sync::Arc;

use crate::engine::loaded::LoadedExperiment;
use crate::service::Service;
use crate::service::batches::OpenBatch;
use crate::service::conclusion::days_since;
use crate::service::error::ServiceError;
use crate::service::reports::alarms::Alarm;
use crate::service::reports::regret::RegretReport;
use crate::service::reports::standings::Standings;
use crate::service::reports::statistics::Statistics;
use crate::service::reports::traffic::TrafficSummary;
use crate::service::reports::verdict::Verdict;
use crate::store::ExperimentRecord;
use dueling_bandits::Tally;
use dueling_bandits::evidence::history::Checkpoint;
use dueling_bandits::evidence::{RacePoint, Sequences};
use dueling_bandits::pairs::pair_index;

/// Maximum number of deciding pairs that are marked: many marks would be useless.
const MARKED_MAX: usize = 10;

/// The current data of an experiment.
pub(crate) struct View {
    pub loaded: Arc<LoadedExperiment>,
    pub record: ExperimentRecord,
    pub standings: Standings,
    pub verdict: Arc<Verdict>,
    pub regret: Arc<RegretReport>,
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
    /// Recent comparisons of each pair per page; triangular.
    recent: Vec<f64>,
    /// The evidence for the leader over time.
    pub race: Vec<RacePoint>,
    /// Days since the experiment was created.
    pub days: f64,
    /// The intervals of pairs.
    sequences: Sequences,
    /// Counts by the experiment's tie rule.
    tally: Tally,
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
    /// The current data. `chosen` is the id of the selected ranker; the best one by default.
    pub async fn of(
        service: &Service,
        loaded: Arc<LoadedExperiment>,
        chosen: Option<&str>,
    ) -> Result<Self, ServiceError> {
        let target = loaded.spec.verdict_target();
        let (verdict, regret) =
            tokio::try_join!(service.verdict(&loaded, target), service.regret_report(&loaded))?;
        let standings = loaded.standings()?;
        let statistics = loaded.page_statistics()?;
        let (tally, sequences, checkpoints, recent, race, in_batches) = {
            let fold = loaded.fold()?;
            let (policy, history) = (fold.policy(), fold.history());
            let rankers = policy.tally().rankers();
            let sequences = Sequences::new(fold.initial_rankers(), rankers, target.confidence);
            let recent =
                (1..rankers).flat_map(|i| (0..i).map(move |j| history.rate(i, j))).collect();
            let race = fold.race().points().to_vec();
            (
                policy.tally().clone(),
                sequences,
                history.checkpoints(),
                recent,
                race,
                policy.batches().is_some(),
            )
        };
        let batch = if in_batches { Some(service.batch(&loaded.name).await?) } else { None };
        let (traffic, alarms) = service.traffic(&loaded)?;
        let ids: Vec<String> = loaded.spec.rankers.iter().map(|ranker| ranker.id.clone()).collect();
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by(|&i, &j| {
            let rank = |of: usize| {
                let (verdict, standing) = (&verdict.rankers[of], &standings.rankers[of]);
                (verdict.copeland_probability, standing.copeland_score, standing.borda_score)
            };
            rank(j).partial_cmp(&rank(i)).unwrap_or(std::cmp::Ordering::Equal)
        });
        // The sort is stable, so it keeps the order within both groups.
        order.sort_by_key(|&i| loaded.spec.is_retired(i));
        let active = ids.len() - loaded.spec.roster_changes.retired.len();
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
        let days = days_since(record.created_at, service.now_ms());
        Ok(Self {
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
            recent,
            race,
            sequences,
            verdict,
            checkpoints,
            tally,
        })
    }

    /// The counts of `i` against `j`; `None` if they have not been compared.
    pub fn pairing(&self, i: usize, j: usize) -> Option<Pairing> {
        if i == j {
            return None;
        }
        let (rate, plays) = (self.tally.mean(i, j)?, self.tally.plays(i, j));
        let (wins, losses) = (self.standings.wins[i][j], self.standings.wins[j][i]);
        let ties = self.standings.ties[i][j];
        Some(Pairing { rate, plays, wins, losses, ties, deciding: self.deciding.contains(&(i, j)) })
    }

    /// The interval of the rate at which `i` wins against `j`. All intervals together hold at all
    /// times, at the verdict's confidence.
    pub fn interval(&self, i: usize, j: usize) -> (f64, f64) {
        self.sequences.of(i, j).interval(self.tally.wins(i, j), self.tally.wins(j, i))
    }

    /// Number of duels of a pair with a win or a tie.
    pub fn duels_with_result(&self, i: usize, j: usize) -> u64 {
        let Standings { wins, ties, .. } = &self.standings;
        wins[i][j] + wins[j][i] + ties[i][j]
    }

    /// Recent comparisons of two different rankers per page.
    pub fn recent_rate(&self, i: usize, j: usize) -> f64 {
        self.recent[pair_index(i, j)]
    }

    /// The active rankers, best first.
    pub fn active(&self) -> &[usize] {
        &self.order[..self.active]
    }

    /// The retired rankers.
    pub fn retired(&self) -> &[usize] {
        &self.order[self.active..]
    }

    pub fn is_retired(&self, i: usize) -> bool {
        self.loaded.spec.is_retired(i)
    }

    /// Number of pairs of active rankers that have been compared.
    pub fn pairs_compared(&self) -> usize {
        let active = self.active();
        active
            .iter()
            .map(|&i| active.iter().filter(|&&j| j < i && self.tally.mean(i, j).is_some()).count())
            .sum()
    }
}
