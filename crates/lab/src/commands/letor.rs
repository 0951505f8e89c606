//! Inputs of `lab estimate`: judged documents and simulated users.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use sha2::{Digest, Sha256};

use super::CommandError;
use interleaving::click_models::{ClickModel, ClickModelSpec, GRADES};
use interleaving::{PlanCache, Spec};
use lab::estimate::Pages;
use lab::letor::DataSet;
use lab::values::count;

/// Bytes of the linear programs whose solutions are cached.
const PLANS_BYTES: usize = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct LetorArguments {
    /// A LETOR file (SVMlight with qid) with lines `grade qid:ID 1:value 2:value … # comment`
    #[arg(long, value_name = "FILE")]
    pub letor: PathBuf,

    /// Click model: perfect, navigational, informational, almost-random, random (each with
    /// stop_on=click or examine), or position-based (eta, attraction)
    #[arg(long, value_name = "USERS", default_value = "navigational")]
    clicks: String,

    /// Number of grades: 2, 3 or 5 [default: the smallest number that fits the file]
    #[arg(long, value_name = "N")]
    grades: Option<usize>,

    /// Only these features, in this order [default: all]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    features: Vec<u32>,

    /// Number of slots of a page
    #[arg(long, value_name = "N", default_value = "10", value_parser = |text: &str| count(text, 1, 1000))]
    length: u64,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

/// The documents and the users.
pub(super) struct Inputs {
    pub data: DataSet,
    /// SHA-256 of the file in hexadecimal digits.
    pub sha256: String,
    pub grades: usize,
    /// The chosen rankers: indices into the features of the data set.
    pub rankers: Vec<usize>,
    /// The click model with its parameters.
    pub users: String,
    click_model: ClickModel,
    pub length: usize,
    seed: u64,
    plans: PlanCache,
}

impl LetorArguments {
    pub fn read(&self) -> Result<Inputs, CommandError> {
        let wrong_clicks =
            |error| CommandError::Usage(format!("--clicks {}: {error}", self.clicks));
        let users = ClickModelSpec::from_text(&self.clicks).map_err(wrong_clicks)?;
        let (data, sha256) = read(&self.letor)?;
        let grades = grades(&self.letor, &data, self.grades)?;
        Ok(Inputs {
            sha256,
            grades,
            rankers: rankers(&data, &self.features)?,
            data,
            users: users.text(),
            click_model: users.for_grades(grades).map_err(wrong_clicks)?,
            length: usize::try_from(self.length).unwrap_or(usize::MAX),
            seed: self.seed,
            plans: PlanCache::new(PLANS_BYTES),
        })
    }
}

impl Inputs {
    /// The pages of an interleaving method.
    pub fn pages(&self, method: Spec) -> Pages<'_> {
        let Self { data, click_model, length, seed, plans, .. } = self;
        let (click_model, length, seed) = (*click_model, *length, *seed);
        Pages { data, method, click_model, length, plans, seed }
    }
}

/// The interleaving method of `--method`.
pub(super) fn method(text: &str) -> Result<Spec, CommandError> {
    Spec::from_text(text).map_err(|error| CommandError::Usage(format!("--method {text}: {error}")))
}

/// The data set of a file, and the SHA-256 of it.
fn read(path: &Path) -> Result<(DataSet, String), CommandError> {
    let wrong =
        |detail: String| CommandError::Usage(format!("--letor {}: {detail}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let data = DataSet::parse(&text).map_err(|error| wrong(error.to_string()))?;
    let digits = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((data, digits))
}

/// The number of grades of the documents: `--grades`, or the smallest number that click models
/// support.
fn grades(path: &Path, data: &DataSet, given: Option<usize>) -> Result<usize, CommandError> {
    let needed = usize::from(data.highest_grade) + 1;
    match given.or_else(|| GRADES.into_iter().find(|&grades| grades >= needed)) {
        Some(grades) if grades >= needed => Ok(grades),
        Some(grades) => Err(CommandError::Usage(format!(
            "--grades {grades}: a document has grade {}, so there are at least {needed}",
            data.highest_grade
        ))),
        None => Err(CommandError::Usage(format!(
            "--letor {}: a document has grade {}; click models support grades 0 to {}",
            path.display(),
            data.highest_grade,
            GRADES[GRADES.len() - 1] - 1
        ))),
    }
}

/// The rankers of `--features`, or all rankers: indices into the features of the data set.
fn rankers(data: &DataSet, features: &[u32]) -> Result<Vec<usize>, CommandError> {
    if features.is_empty() {
        return Ok((0..data.features.len()).collect());
    }
    let wrong = |detail: String| CommandError::Usage(format!("--features: {detail}"));
    let mut rankers = Vec::new();
    for feature in features {
        let Ok(ranker) = data.features.binary_search(feature) else {
            let why = if data.constant.contains(feature) {
                "has the same value for all documents of each query, so it does not rank anything"
            } else {
                "is not in the file"
            };
            return Err(wrong(format!("feature {feature} {why}")));
        };
        if rankers.contains(&ranker) {
            return Err(wrong(format!("feature {feature} is given twice")));
        }
        rankers.push(ranker);
    }
    if rankers.len() < 2 {
        return Err(wrong("a comparison needs two".into()));
    }
    Ok(rankers)
}
