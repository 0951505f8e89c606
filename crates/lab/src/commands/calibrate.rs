//! `lab calibrate`: compares the service's estimates and verdicts with the truth.

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;

use super::CommandError;
use super::calibrate_claims::{ClaimsArguments, claims_table};
use super::output::{Format, percent};
use super::workers::Workers;
use comparators::Spec;
use dueling_bandits::PolicySpec;
use dueling_bandits::evidence::Target;
use dueling_bandits::preference::PreferenceMatrix;
use lab::simulate::calibration::{Calibration, Trial};
use lab::simulate::claims::ClaimsTrial;
use lab::simulate::production::{Production, ProductionTrial};
use lab::simulate::{Drift, Entrant, Feedback, Progress};
use lab::values::{between, count, probability};

/// Compare the estimates and verdicts of the service with the truth, in simulated experiments
///
/// Each policy runs many experiments on each known preference matrix. The code of the service
/// estimates the regret at some steps, and gives a verdict at the first step at which it is
/// certain. The report has the share of 95 % intervals that include the true regret, and the number
/// of wrong verdicts. The same seed gives the same numbers on any number of threads.
///
/// With --drift the preferences change during an experiment. A verdict then counts as `wrong` if
/// its ranker is no Copeland winner at that step, and as `never right` if it was none at any step
/// before either. Regret is priced at the preferences of each step.
///
/// With --units, --machine, --delay-first, --delay-second, --loss-first or --answer-window, each
/// experiment runs in time, and the report has the claims. With --control it has them too. Of each
/// claim it says how often and how soon it was made, and in how many experiments it was ever wrong:
/// `better` is wrong if any lower bound was too high, `worse` if any upper bound was too low. An
/// experiment ends at its verdict, and with a control once the claims about the winner and those
/// about segments are decided or out of reach; with an attack or --failures at the horizon.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A policy: KIND or KIND:name=value,name=value; can be repeated
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    policies: Vec<String>,

    /// A preference matrix, as in `lab simulate`: a CSV file or a built-in name; can be
    /// repeated
    #[arg(long, value_name = "MATRIX", required = true)]
    preferences: Vec<String>,

    /// Number of steps of each experiment; the form 1e5 is accepted
    #[arg(long, value_name = "STEPS", default_value = "10000", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    horizon: u64,

    /// A step at which regret is estimated; can be repeated [default: a hundredth of the horizon, a
    /// tenth, and the horizon]
    #[arg(long = "look", value_name = "STEP", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    looks: Vec<u64>,

    /// Number of experiments of each policy on each matrix
    #[arg(long, value_name = "N", default_value = "200", value_parser = |text: &str| count(text, 1, 1_000_000))]
    runs: u64,

    /// Confidence of the verdict
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = confidence)]
    confidence: f64,

    /// Margin of the verdict: pairs within it may count for either ranker
    #[arg(long, value_name = "M", default_value = "0", value_parser = margin)]
    margin: f64,

    /// The preferences move from --preferences to this matrix, which has as many rankers: a CSV
    /// file or a built-in name
    #[arg(long, value_name = "MATRIX", requires = "verdicts_only")]
    drift: Option<String>,

    /// The preferences stay until step FROM, then move linearly until step TO; they jump if both
    /// are the same [default: the whole experiment]
    #[arg(long, value_name = "FROM..TO", requires = "drift", value_parser = steps)]
    drift_over: Option<(u64, u64)>,

    #[command(flatten)]
    production: Production,

    #[command(flatten)]
    claims: ClaimsArguments,

    /// Report verdicts and true regret only: no estimates and no forecasts, which take most of the
    /// time
    #[arg(long, conflicts_with = "looks")]
    verdicts_only: bool,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Probability that a page with clicks is a tie, which does not count
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability)]
    ties: f64,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

// The ranges of an experiment of the service.
fn confidence(text: &str) -> Result<f64, String> {
    between(text, 0.5, 0.9999)
}

fn margin(text: &str) -> Result<f64, String> {
    between(text, 0.0, 0.2)
}

/// `FROM..TO`, in steps.
fn steps(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or("it must have the form FROM..TO")?;
    let step = |text| count(text, 0, 1_000_000_000);
    match (step(from)?, step(to)?) {
        (from, to) if from <= to => Ok((from, to)),
        _ => Err("FROM must not be after TO".into()),
    }
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let trials = arguments.trials()?;
    let steps = trials.iter().fold(0_u64, |steps, trial| steps.saturating_add(trial.total_steps()));
    if arguments.production.is_given() {
        let of_trial = |trial: Trial| {
            let spec = served(&trial, "these conditions are")?;
            let production = arguments.production.clone();
            let control = arguments.claims.control(&trial)?;
            Ok(ProductionTrial { trial, spec, production, control })
        };
        let trials = trials.into_iter().map(of_trial).collect::<Result<Vec<_>, CommandError>>()?;
        return arguments.report(steps, &trials, ProductionTrial::run, claims_table);
    }
    if arguments.claims.any() {
        let of_trial = |trial: Trial| {
            let spec = served(&trial, "a control is")?;
            arguments.claims.trial(trial, spec)
        };
        let trials = trials.into_iter().map(of_trial).collect::<Result<Vec<_>, CommandError>>()?;
        return arguments.report(steps, &trials, ClaimsTrial::run, claims_table);
    }
    arguments.report(steps, &trials, Trial::run, |found| table(found, arguments.drift.is_some()))
}

/// The policy of a trial, which is for the policies that the service serves.
fn served(trial: &Trial, what: &str) -> Result<PolicySpec, CommandError> {
    trial.entrant.spec.served().cloned().ok_or_else(|| {
        let policy = &trial.entrant.text;
        let detail = format!("{what} for the policies that the service serves");
        CommandError::Usage(format!("--policy {policy}: {detail}"))
    })
}

impl Arguments {
    /// Runs the trials, and writes what was found to standard output.
    fn report<T: Sync, R: Serialize + Send>(
        &self,
        steps: u64,
        trials: &[T],
        run: impl Fn(&T, &Progress) -> Option<R> + Send + Sync,
        table: impl FnOnce(&[R]) -> String,
    ) -> Result<(), CommandError> {
        let workers = Workers::start(self.threads)?;
        let found: Vec<R> = workers.work(steps, |progress| {
            trials.iter().filter_map(|trial| run(trial, progress)).collect()
        });
        if found.is_empty() {
            return Err(anyhow!(
                "interrupted before any experiment was finished; there is nothing to report"
            )
            .into());
        }
        Ok(self.format.print(&found, || table(&found))?)
    }

    fn trials(&self) -> Result<Vec<Trial>, CommandError> {
        let mut looks = match self.looks.is_empty() {
            _ if self.verdicts_only => Vec::new(),
            true => vec![(self.horizon / 100).max(1), (self.horizon / 10).max(1), self.horizon],
            false => self.looks.clone(),
        };
        looks.sort_unstable();
        looks.dedup();
        if let Some(late) = looks.iter().find(|look| **look > self.horizon) {
            return Err(CommandError::Usage(format!(
                "--look {late}: the experiments have {} steps (--horizon)",
                self.horizon
            )));
        }
        let mut trials = Vec::new();
        for name in &self.preferences {
            let matrix = PreferenceMatrix::load(name)
                .map_err(|error| CommandError::Usage(format!("--preferences {name}: {error}")))?;
            let drift = self.drift(name, &matrix)?;
            for text in &self.policies {
                let wrong = |error| CommandError::Usage(format!("--policy {text}: {error}"));
                let fallbacks = [
                    ("horizon", self.horizon.into()),
                    ("confidence", self.confidence.into()),
                    ("margin", self.margin.into()),
                ];
                let spec = Spec::from_text_with(text, &fallbacks)
                    .map_err(|error| wrong(error.to_string()))?;
                spec.validate(matrix.rankers()).map_err(|error| wrong(error.to_string()))?;
                let own = match &spec {
                    Spec::Served(policy) => serde_json::to_value(policy).unwrap_or_default(),
                    Spec::Comparator(_) | Spec::Own(_) => serde_json::Value::Null,
                };
                let own = |name: &str| own.get(name).and_then(serde_json::Value::as_f64);
                // A policy that works towards a verdict of its own is judged by that verdict.
                let target = Target {
                    confidence: own("confidence").unwrap_or(self.confidence),
                    margin: own("margin").unwrap_or(self.margin),
                };
                trials.push(Trial {
                    name: name.clone(),
                    matrix: matrix.clone(),
                    drift: drift.clone(),
                    entrant: Entrant { text: text.clone(), spec },
                    horizon: self.horizon,
                    looks: looks.clone(),
                    runs: self.runs,
                    seed: self.seed,
                    target,
                    feedback: Feedback { ties: self.ties, ..Feedback::default() },
                });
            }
        }
        Ok(trials)
    }

    /// How the preferences of the matrix with this name drift.
    fn drift(&self, name: &str, matrix: &PreferenceMatrix) -> Result<Option<Drift>, CommandError> {
        let Some(to) = &self.drift else { return Ok(None) };
        let wrong = |detail: String| CommandError::Usage(format!("--drift {to}: {detail}"));
        let end = PreferenceMatrix::load(to).map_err(|error| wrong(error.to_string()))?;
        let (own, other) = (end.rankers(), matrix.rankers());
        if own != other {
            return Err(wrong(format!("it has {own} rankers, and `{name}` has {other}")));
        }
        let (first, last) = self.drift_over.unwrap_or((0, self.horizon));
        Ok(Some(Drift::new(end, first, last)))
    }
}

fn table(found: &[Calibration], drifts: bool) -> String {
    let mut text = String::new();
    if found.iter().any(|found| !found.regret.is_empty()) {
        text += &regret_table(found);
        text.push('\n');
    }
    text + &verdict_table(found, drifts)
}

fn regret_table(found: &[Calibration]) -> String {
    let mut text = String::from(
        "| matrix | policy | step | true regret | plug-in | posterior mean | length of 95 % interval | holds the truth | too low | \
         Condorcet: truth, mean, holds it |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    for found in found {
        for look in &found.regret {
            let condorcet = match look.condorcet {
                Some([truth, mean, coverage, share]) if share > 0.999 => {
                    format!("{truth:.1}, {mean:.1}, {}", percent(coverage))
                }
                Some([truth, mean, coverage, share]) => {
                    format!(
                        "{truth:.1}, {mean:.1}, {} (in {} of the runs)",
                        percent(coverage),
                        percent(share)
                    )
                }
                None => "–".into(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} | {condorcet} |",
                found.matrix,
                found.policy,
                look.step,
                look.truth,
                look.plug_in,
                look.posterior,
                look.length,
                percent(look.coverage),
                percent(look.below)
            );
        }
    }
    text
}

fn verdict_table(found: &[Calibration], drifts: bool) -> String {
    let also = |column: &'static str| if drifts { column } else { "" };
    let mut text = format!(
        "| matrix | policy | experiments | decided | median steps | p90 | wrong | wrong at most |{} regret at verdict | regret at \
         horizon | p90 | p99 | max | took / forecast | within the range | before it | least duels | least regret |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: \
         |{} ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        also(" never right |"),
        also(" ---: |")
    );
    for found in found {
        let (verdict, total) = (&found.verdict, &found.total_regret);
        let known = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let _ = writeln!(
            text,
            "| {} | {} | {} of {} steps | {} | {} | {} | {} | {} |{} {} | {:.0} ± {:.0} | {:.0} | {:.0} | {:.0} | {} | {} | {} | {} | {} |",
            found.matrix,
            found.policy,
            found.runs,
            found.horizon,
            verdict.decided,
            known(verdict.median_steps.map(|steps| steps.to_string())),
            known(verdict.p90_steps.map(|steps| steps.to_string())),
            verdict.wrong,
            percent(verdict.wrong_share_at_most),
            if drifts { format!(" {} |", verdict.never_right) } else { String::new() },
            known(verdict.regret_at_verdict.map(|regret| format!("{regret:.0}"))),
            total.mean,
            total.standard_error,
            total.p90,
            total.p99,
            total.max,
            known(
                verdict.forecast_ratio.map(|(ratio, looks)| format!("{ratio:.2} ({looks} looks)"))
            ),
            known(verdict.forecast_within.map(percent)),
            known(verdict.forecast_below.map(percent)),
            known(verdict.information_bound.map(|least| format!("{:.0}", least.duels))),
            known(verdict.information_bound.map(|least| format!("{:.0}", least.regret))),
        );
    }
    text
}
