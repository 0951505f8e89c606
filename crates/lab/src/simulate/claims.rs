//! The claims of simulated experiments: how soon they are made, and how often they are wrong.

use rand::{RngExt, SeedableRng};
use serde::Serialize;

use super::calibration::{Trial, is_wrong, median, share_at_most};
use super::progress::Progress;
use comparators::RunSeeds;
use comparators::environment::Environment;
use dueling_bandits::claims::betting::Side;
use dueling_bandits::claims::control::{Claim, ControlClaims, Goal};
use dueling_bandits::claims::guardrails::{Guardrails, Metric, Page};
use dueling_bandits::evidence::TimedAnswer;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, InFlight, PolicyRng, PolicySpec, Selection};

/// Allows for rounding where the truth is exactly at a bound.
const ROUNDING: f64 = 1e-12;
/// Milliseconds between two pages, and within which the values of a page come.
const PAGE_MS: i64 = 1_000;
const VALUES_MS: i64 = 60_000;

/// Experiments with a control, each until the winner's claims are settled.
#[derive(Debug, Clone)]
pub struct ClaimsTrial {
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
    /// After each such number of pages, the ranker with the worst rate against the control becomes
    /// the control. The experiment then lasts until the horizon.
    pub switch_every: Option<u64>,
    /// Claims about segments are made.
    pub segments: Option<Segments>,
    /// Pages fail, and claims are made about that. The experiment then lasts until the horizon.
    pub failures: Option<Failures>,
}

/// Segments of equal size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segments {
    pub count: usize,
    /// The share of its duels that the control wins in the first segment.
    pub control_wins: f64,
}

/// A metric of failing pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failures {
    /// The limit of the share of pages that fail. The control has half of it.
    pub limit: f64,
    /// The share of pages that fail, of each other ranker.
    pub share: f64,
}

/// A claim that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Which ranker is best: the verdict.
    Best,
    /// A ranker is better than the control. Any lower bound can be too high.
    Better,
    /// A ranker is worse. Any upper bound can be too low.
    Worse,
    /// There is a verdict, and the claims about the winner are settled.
    Settled,
    /// The winner loses in a segment.
    Hurt,
    /// The winner loses in none.
    Unhurt,
    /// A ranker does harm.
    Harm,
    /// A ranker is safe.
    Safe,
    /// Preferences have changed.
    Drift,
}

impl Said {
    const ALL: [Self; 9] = [
        Self::Best,
        Self::Better,
        Self::Worse,
        Self::Settled,
        Self::Hurt,
        Self::Unhurt,
        Self::Harm,
        Self::Safe,
        Self::Drift,
    ];
}

/// One claim over all experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimCalibration {
    pub claim: Said,
    /// Number of experiments in which it was made.
    pub made: u64,
    /// Median number of pages until then; `None` if fewer than half have it.
    pub median_pages: Option<u64>,
    /// Number of experiments in which it was wrong at any time.
    pub wrong: u64,
    /// Upper end of the exact 95 % interval (Clopper and Pearson) of this share.
    pub wrong_share_at_most: f64,
}

/// The claims of the experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimsCalibration {
    /// The matrix, as the user named it.
    pub matrix: String,
    /// The policy, as the user wrote it.
    pub policy: String,
    /// Number of experiments, as done.
    pub runs: u64,
    /// Most pages of each.
    pub horizon: u64,
    /// Those that can be made.
    pub claims: Vec<ClaimCalibration>,
    /// Mean share of answers that the verdict left out, over the experiments.
    pub left_out: f64,
}

/// How one experiment ended: when each claim was made, and whether it was ever wrong.
#[derive(Default)]
pub(super) struct Ending {
    made: [Option<u64>; Said::ALL.len()],
    wrong: [bool; Said::ALL.len()],
    pub left_out: f64,
}

impl Ending {
    /// The claim was made by this page.
    fn say(&mut self, said: Said, page: u64) {
        self.made[said as usize].get_or_insert(page);
    }

    /// The same, and whether it is wrong.
    fn say_and_judge(&mut self, said: Said, page: u64, is_wrong: bool) {
        self.say(said, page);
        self.wrong[said as usize] |= is_wrong;
    }

    pub fn has(&self, said: Said) -> bool {
        self.made[said as usize].is_some()
    }

    /// The claims of the run after this page.
    pub fn look(&mut self, page: u64, run: &Run, truth: &Truth<'_>) {
        let winner = run.verdict().winner();
        if let Some(verdict) = run.verdict().verdict().filter(|_| !self.has(Said::Best)) {
            let wrong = |&winner: &u16| {
                is_wrong(truth.matrix, run.verdict().target(), (truth.name)(winner.into()))
            };
            self.say_and_judge(Said::Best, page, verdict.winners.iter().any(wrong));
        }
        if let Some(claims) = run.claims() {
            self.look_at_control(page, claims, truth);
            if winner.is_some_and(|winner| claims.is_settled(winner)) {
                self.say(Said::Settled, page);
            }
        }
        if run.drift().is_some_and(|drift| drift.raised() > 0) {
            let preferences_never_change = true;
            self.say_and_judge(Said::Drift, page, preferences_never_change);
        }
    }

    fn look_at_control(&mut self, page: u64, claims: &ControlClaims, truth: &Truth<'_>) {
        let Some(control) = claims.control() else { return };
        for x in (0..claims.rankers()).filter(|&x| x != control) {
            let win = truth.win(x, control);
            let (low, high) = claims.bounds(x);
            self.wrong[Said::Better as usize] |= low.is_some_and(|low| low > win - ROUNDING);
            self.wrong[Said::Worse as usize] |= high.is_some_and(|high| high < win + ROUNDING);
        }
        for (_, claim, _) in claims.decided() {
            match claim {
                Claim::Better => self.say(Said::Better, page),
                Claim::Worse => self.say(Said::Worse, page),
                Claim::NotWorse => {}
            }
        }
    }
}

/// The true preferences of the rankers of a run.
pub(super) struct Truth<'a> {
    pub matrix: &'a PreferenceMatrix,
    /// Their indices in the matrix.
    pub name: &'a dyn Fn(usize) -> usize,
}

impl Truth<'_> {
    fn win(&self, x: usize, y: usize) -> f64 {
        self.matrix.win_probability((self.name)(x), (self.name)(y))
    }
}

impl ClaimsCalibration {
    /// Over all experiments of a trial; `None` if there are none.
    pub(super) fn of(
        trial: &Trial,
        endings: &[Ending],
        can_be: impl Fn(Said) -> bool,
    ) -> Option<Self> {
        let runs = endings.len() as u64;
        let of_claim = |said: Said| {
            let place = said as usize;
            let wrong = endings.iter().filter(|end| end.wrong[place]).count() as u64;
            ClaimCalibration {
                claim: said,
                made: endings.iter().filter(|end| end.has(said)).count() as u64,
                median_pages: median(endings.iter().filter_map(|end| end.made[place]), runs),
                wrong,
                wrong_share_at_most: share_at_most(wrong, runs),
            }
        };
        (runs > 0).then(|| Self {
            matrix: trial.name.clone(),
            policy: trial.entrant.text.clone(),
            runs,
            horizon: trial.horizon,
            claims: Said::ALL.into_iter().filter(|&said| can_be(said)).map(of_claim).collect(),
            left_out: endings.iter().map(|end| end.left_out).sum::<f64>() / runs as f64,
        })
    }
}

impl ClaimsTrial {
    /// Runs the experiments in the current rayon pool. Returns `None` if it was stopped before the
    /// first experiment had finished.
    pub fn run(&self, progress: &Progress) -> Option<ClaimsCalibration> {
        // what is shown in all segments together
        let mixture = self.segments.map_or_else(
            || self.trial.matrix.clone(),
            |it| self.with_control_winning(it.control_wins, 1.0 / it.count as f64),
        );
        let endings = self.trial.experiments(progress, |seeds| {
            let ending = self.experiment(&mixture, seeds);
            progress.advance(self.trial.horizon);
            Some(ending)
        });
        ClaimsCalibration::of(&self.trial, &endings, |said| match said {
            Said::Hurt | Said::Unhurt => self.segments.is_some(),
            Said::Harm | Said::Safe => self.failures.is_some(),
            _ => true,
        })
    }

    /// The matrix with a share of pages on which the control wins so often.
    fn with_control_winning(&self, wins: f64, share: f64) -> PreferenceMatrix {
        let matrix = &self.trial.matrix;
        let mixed = |i: usize, j: usize| {
            let own = matrix.win_probability(i, j);
            let there = match self.control {
                control if control == i => wins,
                control if control == j => 1.0 - wins,
                _ => own,
            };
            own + share * (there - own)
        };
        PreferenceMatrix::from_pairs(matrix.rankers(), mixed).expect("as many rankers")
    }

    fn experiment(&self, mixture: &PreferenceMatrix, seeds: RunSeeds) -> Ending {
        let rankers = self.trial.matrix.rankers();
        let mut environment =
            Environment::shuffled(&self.trial.matrix, &self.trial.feedback, seeds);
        let names: Vec<usize> = (0..rankers).map(|i| environment.name(i)).collect();
        let truth = Truth { matrix: mixture, name: &|i| names[i] };
        let control = names.iter().position(|&name| name == self.control).unwrap_or_default();
        let policy = self.spec.start(Setup { rankers, seed: seeds.folding });
        let mut run = Run::new(policy, self.trial.target, 0);
        run.look_for_drift();
        run.start_with_segments(self.segments.map_or(0, |it| it.count));
        run.start_with_control(control, self.goal);
        let mut guarded = self.failures.map(|it| Guarded::new(it, self, control, seeds));
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        let (in_flight, ties) = (InFlight::new(), self.trial.feedback.tie_rule);
        let lasts = self.follow_luck || self.switch_every.is_some() || guarded.is_some();
        let mut ending = Ending::default();
        for page in 1..=self.trial.horizon {
            let selection = match self.luckiest(&run) {
                Some(duel) => duel,
                None => run.select(&in_flight, &mut selecting),
            };
            let duel = selection.duel;
            if duel.is_self() {
                run.observe_self_duels(duel.first, 1);
            } else {
                if let Some(guarded) = &mut guarded {
                    guarded.show(page, selection, &mut ending);
                }
                let segment =
                    self.segments.map_or(0, |it| environment.rng.random_range(1..=it.count as u8));
                let first_wins = self.first_wins_in(segment, duel, control);
                if let Some(answer) = environment.answer_with(duel, first_wins) {
                    let outcome = ties.resolve(answer, seeds.folding, run.tally().steps());
                    let at = page as i64 * PAGE_MS;
                    let answer = TimedAnswer {
                        duel,
                        outcome,
                        score: None,
                        issued_at: at,
                        nonce: page.into(),
                        unit: None,
                        segment,
                    };
                    run.observe_timed(&answer, selection.batch, selection.ticket, at);
                    run.catch_up();
                }
            }
            ending.look(page, &run, &truth);
            self.look_at_segments(page, &run, &truth, &mut ending);
            if self.is_over(&run, &ending) && !lasts {
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

    /// How often the first ranker wins a duel of the first segment with the control; `None` for any
    /// other duel.
    fn first_wins_in(&self, segment: u8, duel: Duel, control: usize) -> Option<f64> {
        let Segments { control_wins, .. } = self.segments.filter(|_| segment == 1)?;
        match control {
            _ if duel.first == control => Some(control_wins),
            _ if duel.second == control => Some(1.0 - control_wins),
            _ => None,
        }
    }

    fn is_over(&self, run: &Run, ending: &Ending) -> bool {
        let winner = run.verdict().winner();
        let is_settled = |winner| run.segments().is_none_or(|it| it.is_settled(winner));
        ending.has(Said::Settled) && winner.is_some_and(is_settled)
    }

    fn look_at_segments(&self, page: u64, run: &Run, truth: &Truth<'_>, ending: &mut Ending) {
        let Some(Segments { control_wins: wins, .. }) = self.segments else { return };
        let Some((claims, winner)) = run.segments().and_then(|it| Some((it, it.winner()?))) else {
            return;
        };
        let margin = self.trial.target.margin;
        // how often the winner loses to its rival in a segment
        let loses = |segment: usize| {
            let rival = claims.rival(segment).unwrap_or(winner);
            let names = [rival, winner].map(truth.name);
            match segment {
                0 if names[0] == self.control => wins,
                0 if names[1] == self.control => 1.0 - wins,
                _ => self.trial.matrix.win_probability(names[0], names[1]),
            }
        };
        for segment in claims.hurt_segments() {
            let is_wrong = loses(segment) < 0.5 + margin + ROUNDING;
            ending.say_and_judge(Said::Hurt, page, is_wrong);
        }
        if claims.unhurt_after().is_some() {
            let is_hurt = |segment| loses(segment) > 0.5 + margin - ROUNDING;
            ending.say_and_judge(Said::Unhurt, page, (0..claims.segments()).any(is_hurt));
        }
    }

    /// The duel of an attack that [follows luck](Self::follow_luck); `None` without it.
    fn luckiest(&self, run: &Run) -> Option<Selection> {
        let claims = run.claims().filter(|_| self.follow_luck)?;
        let control = claims.control()?;
        let rivals = (0..run.tally().rankers()).filter(|&x| x != control);
        let evidence = |x: &usize| claims.ln_capital(*x, Claim::Better);
        let best = rivals.max_by(|x, y| evidence(x).total_cmp(&evidence(y)))?;
        Some(Selection::of(best, control))
    }
}

/// Pages that fail.
struct Guarded {
    guardrails: Guardrails,
    limit: f64,
    /// How often the pages of each ranker fail.
    means: Vec<f64>,
    rng: PolicyRng,
}

impl Guarded {
    fn new(
        Failures { limit, share }: Failures,
        trial: &ClaimsTrial,
        control: usize,
        seeds: RunSeeds,
    ) -> Self {
        let rankers = trial.trial.matrix.rankers();
        let metric = Metric {
            cap: 1.0,
            of_page: false,
            higher_is_better: false,
            limit: Some(limit),
            difference: None,
        };
        let error = 1.0 - trial.trial.target.confidence;
        let mut means = vec![share; rankers];
        means[control] = limit / 2.0;
        Self {
            guardrails: Guardrails::new(
                &[metric],
                VALUES_MS,
                error,
                seeds.folding,
                rankers,
                Some(control),
            ),
            limit,
            means,
            rng: PolicyRng::seed_from_u64(seeds.answering ^ 0x6661_696c),
        }
    }

    fn show(&mut self, page: u64, Selection { duel, .. }: Selection, ending: &mut Ending) {
        let mut value = |ranker: usize| [Some(f64::from(self.rng.random_bool(self.means[ranker])))];
        let values = [value(duel.first), value(duel.second)];
        let pair = [duel.first as u16, duel.second as u16];
        let issued_at = page as i64 * PAGE_MS;
        let shown = Page { issued_at, pair, alone: None, unit: None };
        self.guardrails.add(page.into(), shown, values.each_ref().map(|it| &it[..]));
        self.guardrails.complete(issued_at + PAGE_MS);
        let control = self.guardrails.control().unwrap_or_default();
        for decided in self.guardrails.decided() {
            let (mean, limit) = (self.means[decided.ranker], self.limit);
            match decided.side {
                Side::Harm => {
                    ending.say_and_judge(Said::Harm, page, mean < limit + ROUNDING);
                }
                Side::Safe if decided.ranker == control => {}
                Side::Safe => {
                    ending.say_and_judge(Said::Safe, page, mean > limit - ROUNDING);
                }
            }
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
