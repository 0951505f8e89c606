//! Claims against a control: how soon they are decided, and how often they are wrong.

use rand::SeedableRng;
use serde::Serialize;

use super::calibration::{Trial, is_wrong, median, share_at_most};
use super::environment::Environment;
use super::progress::Progress;
use comparators::RunSeeds;
use dueling_bandits::claims::control::{Claim, ControlClaims, Goal};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{InFlight, Observation, Policy, PolicyRng, PolicySpec, Selection};

/// Experiments with a control, each until the winner's claims are settled.
#[derive(Debug, Clone)]
pub struct ControlTrial {
    /// The experiments. The looks, the drift and the forecasts do not matter.
    pub trial: Trial,
    /// The policy of the trial, which the service serves.
    pub spec: PolicySpec,
    /// Index of the control in the matrix.
    pub control: usize,
    /// The claim that is proven first.
    pub goal: Goal,
    /// Each page shows the control and the ranker with the most evidence of being better. The
    /// experiment then lasts until the horizon.
    pub follow_luck: bool,
    /// Every so many pages, the ranker with the worst rate against the control becomes the control.
    /// The experiment then lasts until the horizon.
    pub switch_every: Option<u64>,
}

/// The claims of the experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlCalibration {
    /// The matrix, as the user named it.
    pub matrix: String,
    /// The policy, as the user wrote it.
    pub policy: String,
    /// Index of the control in the matrix.
    pub control: usize,
    /// The claim that was proven first.
    pub goal: Goal,
    /// Number of experiments, as done.
    pub runs: u64,
    /// Most pages of each.
    pub horizon: u64,
    /// Median number of pages to the verdict; `None` if fewer than half have one.
    pub median_best: Option<u64>,
    /// Median number of pages until a ranker is proven better than the control.
    pub median_better: Option<u64>,
    /// Median number of pages until the verdict is there and the winner's claims are settled.
    pub median_both: Option<u64>,
    /// Number of verdicts for a ranker that is not a Copeland winner.
    pub wrong_verdicts: u64,
    /// Number of experiments with a wrong bound of `P(x≻c)`, for any ranker at any time: too high,
    /// and too low.
    pub wrong_claims: [u64; 2],
    /// Upper ends of the exact 95 % intervals of these shares.
    pub wrong_share_at_most: [f64; 2],
}

#[derive(Default)]
struct Ending {
    best: Option<u64>,
    better: Option<u64>,
    both: Option<u64>,
    wrong_verdict: bool,
    wrong_claims: [bool; 2],
}

impl ControlTrial {
    /// Runs the experiments in the current rayon pool. Returns `None` if it was stopped before the
    /// first experiment had finished.
    pub fn run(&self, progress: &Progress) -> Option<ControlCalibration> {
        let endings = self.trial.experiments(progress, |seeds| {
            let ending = self.experiment(seeds);
            progress.advance(self.trial.horizon);
            Some(ending)
        });
        (!endings.is_empty()).then(|| self.report(&endings))
    }

    fn report(&self, endings: &[Ending]) -> ControlCalibration {
        let runs = endings.len() as u64;
        let median = |of: fn(&Ending) -> Option<u64>| median(endings.iter().filter_map(of), runs);
        let wrong_claims =
            [0, 1].map(|side| endings.iter().filter(|end| end.wrong_claims[side]).count() as u64);
        ControlCalibration {
            matrix: self.trial.name.clone(),
            policy: self.trial.entrant.text.clone(),
            control: self.control,
            goal: self.goal,
            runs,
            horizon: self.trial.horizon,
            median_best: median(|end| end.best),
            median_better: median(|end| end.better),
            median_both: median(|end| end.both),
            wrong_verdicts: endings.iter().filter(|end| end.wrong_verdict).count() as u64,
            wrong_claims,
            wrong_share_at_most: wrong_claims.map(|wrong| share_at_most(wrong, runs)),
        }
    }

    fn experiment(&self, seeds: RunSeeds) -> Ending {
        let rankers = self.trial.matrix.rankers();
        let mut environment =
            Environment::new(&self.trial.matrix, &self.trial.feedback, true, seeds);
        let policy = self.spec.start(Setup { rankers, seed: seeds.folding });
        let mut run = Run::new(policy, self.trial.target, 0);
        let control = (0..rankers).find(|&i| environment.name(i) == self.control);
        run.start_with_control(control.unwrap_or_default(), self.goal);
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        let (in_flight, ties) = (InFlight::new(), self.trial.feedback.tie_rule);
        let lasts = self.follow_luck || self.switch_every.is_some();
        let mut ending = Ending::default();
        for page in 1..=self.trial.horizon {
            let selection = match self.luckiest(&run) {
                Some(duel) => duel,
                None => run.select(&in_flight, &mut selecting),
            };
            let duel = selection.duel;
            if duel.is_self() {
                run.observe_self_duels(duel.first, 1);
            } else if let Some(answer) = environment.answer(duel) {
                let outcome = ties.resolve(answer, seeds.folding, run.tally().steps());
                let (batch, ticket) = (selection.batch, selection.ticket);
                run.observe(&Observation { duel, outcome, batch, ticket });
            }
            self.look(page, &run, &environment, &mut ending);
            if ending.both.is_some() && !lasts {
                break;
            }
            if self.switch_every.is_some_and(|every| page % every == 0)
                && let Some(worst) = run.claims().and_then(worst)
            {
                run.change_control(worst, self.goal, 0);
            }
        }
        ending
    }

    fn luckiest(&self, run: &Run) -> Option<Selection> {
        let claims = run.claims().filter(|_| self.follow_luck)?;
        let control = claims.control()?;
        let rivals = (0..run.tally().rankers()).filter(|&x| x != control);
        let evidence = |x: &usize| claims.ln_capital(*x, Claim::Better);
        let best = rivals.max_by(|x, y| evidence(x).total_cmp(&evidence(y)))?;
        Some(Selection::of(best, control))
    }

    fn look(&self, page: u64, run: &Run, environment: &Environment<'_>, ending: &mut Ending) {
        let Some(claims) = run.claims() else { return };
        let matrix = &self.trial.matrix;
        if let Some(control) = claims.control() {
            for x in (0..matrix.rankers()).filter(|&x| x != control) {
                let truth = matrix.win_probability(environment.name(x), environment.name(control));
                let (low, high) = claims.bounds(x);
                ending.wrong_claims[0] |= low.is_some_and(|low| low > truth - 1e-12);
                ending.wrong_claims[1] |= high.is_some_and(|high| high < truth + 1e-12);
            }
        }
        if ending.better.is_none() && claims.is_improved() {
            ending.better = Some(page);
        }
        let Some(verdict) = run.verdict().verdict() else { return };
        if ending.best.is_none() {
            ending.best = Some(page);
            let wrong = |&winner: &u16| {
                is_wrong(matrix, self.trial.target, environment.name(winner.into()))
            };
            ending.wrong_verdict = verdict.winners.iter().any(wrong);
        }
        if ending.both.is_none() && claims.is_settled(verdict.winner()) {
            ending.both = Some(page);
        }
    }
}

/// The ranker with the worst rate against the control.
fn worst(claims: &ControlClaims) -> Option<usize> {
    let control = claims.control()?;
    let rate = |x: usize| claims.win_rate(x).unwrap_or(0.5);
    let mut rivals = (0..claims.rankers()).filter(|&x| x != control);
    let first = rivals.next()?;
    Some(rivals.fold(first, |worst, x| if rate(x) < rate(worst) { x } else { worst }))
}
