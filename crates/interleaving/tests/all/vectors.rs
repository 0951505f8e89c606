//! Every vector of `conformance/interleaving.json`, checked against the code that serves pages.

use std::collections::BTreeMap;

use num_rational::Ratio;
use serde::Deserialize;

use interleaving::methods::optimized::Instance;
use interleaving::{
    Click, CreditSheet, Draft, Drafted, Lists, Method, Note, Outcome, Pin, Request, Share, Spec,
    Team, Uncached, credit, interleave,
};

use super::exact::{every_branch, name};

const FILE: &str = include_str!("../../../../conformance/interleaving.json");

/// The method of a vector, which leaves out the defaults of the vectors.
fn method<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
    let mut method = serde_json::Map::deserialize(deserializer)?;
    method.entry("depth_policy").or_insert_with(|| "min".into());
    if ["probabilistic", "optimized"].iter().any(|kind| method["kind"] == *kind) {
        method.entry("verdict").or_insert_with(|| "sign".into());
    }
    Spec::from_json(method).map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    #[serde(rename = "$schema")]
    _schema: String,
    #[serde(rename = "version")]
    _version: String,
    drafts: Vec<DraftCase>,
    credits: Vec<CreditCase>,
    shares: Vec<CreditCase>,
    searchers: Vec<SearcherCase>,
    infeasible: Vec<InfeasibleCase>,
    sensitivities: Vec<SensitivityCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PinCase {
    document: String,
    position: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DraftCase {
    id: String,
    #[serde(rename = "about")]
    _about: String,
    #[serde(deserialize_with = "method")]
    method: Spec,
    left: Vec<String>,
    right: Vec<String>,
    length: usize,
    #[serde(default)]
    pinned: Vec<PinCase>,
    pages: Vec<PageCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageCase {
    probability: Fraction,
    documents: Vec<String>,
    teams: Option<Vec<Option<Team>>>,
    competitive: Vec<bool>,
    informative: bool,
}

/// A shown page and the clicks on it.
#[derive(Deserialize)]
struct CreditCase {
    id: String,
    #[serde(deserialize_with = "method")]
    method: Spec,
    left: Vec<String>,
    right: Vec<String>,
    #[serde(rename = "length")]
    _length: usize,
    #[serde(default)]
    pinned: Vec<PinCase>,
    documents: Vec<String>,
    teams: Option<Vec<Option<Team>>>,
    competitive: Vec<bool>,
    clicks: Vec<ClickCase>,
    #[serde(flatten)]
    expected: Expected,
}

/// The credit of the two sides, or the share.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Expected {
    Credit { outcome: Outcome, left_credit: Fraction, right_credit: Fraction },
    Share { share: Fraction },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClickCase {
    position: usize,
    weight: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearcherCase {
    id: String,
    #[serde(rename = "about")]
    _about: String,
    #[serde(deserialize_with = "method")]
    method: Spec,
    left: Vec<String>,
    right: Vec<String>,
    length: usize,
    searcher: Searcher,
    outcomes: BTreeMap<String, Fraction>,
    mean_score: Fraction,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Searcher {
    Named(String),
    Clicks { clicks: Vec<String> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InfeasibleCase {
    id: String,
    #[serde(rename = "about")]
    _about: String,
    #[serde(deserialize_with = "method")]
    method: Spec,
    left: Vec<String>,
    right: Vec<String>,
    length: usize,
    allowed: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SensitivityCase {
    id: String,
    #[serde(rename = "about")]
    _about: String,
    #[serde(deserialize_with = "method")]
    method: Spec,
    left: Vec<String>,
    right: Vec<String>,
    #[serde(rename = "length")]
    _length: usize,
    allowed: usize,
    sensitivity: f64,
}

/// `"3/7"` or `"1"`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Fraction {
    text: String,
    value: f64,
}

impl TryFrom<String> for Fraction {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let (above, below) = text.split_once('/').unwrap_or((&text, "1"));
        let number =
            |digits: &str| digits.parse::<f64>().map_err(|error| format!("{text}: {error}"));
        let value = number(above)? / number(below)?;
        Ok(Self { text, value })
    }
}

impl Fraction {
    fn exact(&self) -> Ratio<i64> {
        self.text.parse().expect("a fraction of small numbers")
    }
}

fn vectors() -> Vectors {
    serde_json::from_str(FILE).expect("the conformance file matches its schema")
}

fn pins(cases: &[PinCase]) -> Vec<Pin<String>> {
    cases.iter().map(|pin| Pin { document: pin.document.clone(), position: pin.position }).collect()
}

#[track_caller]
fn near(found: f64, wanted: &Fraction, tolerance: f64, id: &str) {
    assert!((found - wanted.value).abs() <= tolerance, "{id}: {found}, not {}", wanted.text);
}

/// Whether the method uses fair coins only, so that its probabilities are exact.
fn is_exact(spec: &Spec) -> bool {
    matches!(spec.method, Method::TeamDraft(_) | Method::Balanced(_))
}

#[test]
fn the_file_is_up_to_date_with_its_generator() {
    let output = std::process::Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/generate.py"))
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout) == FILE, "run conformance/generate.py again");
}

#[test]
fn pages_have_the_expected_distribution() {
    for case in vectors().drafts {
        let pinned = pins(&case.pinned);
        let request = Request {
            left: &case.left,
            right: &case.right,
            offset: 0,
            length: case.length,
            pinned: &pinned,
        };
        let mut found: BTreeMap<String, (Ratio<i64>, f64)> = BTreeMap::new();
        let with_teams = case.pages.iter().any(|page| page.teams.is_some());
        let key = |documents: &[String],
                   teams: &[Option<Team>],
                   competitive: &[bool],
                   informative: bool| {
            let teams = with_teams.then_some(teams);
            format!("{documents:?} {teams:?} {competitive:?} {informative}")
        };
        for (page, probability) in every_branch(|coins| {
            interleave(&case.method, &request, coins, &Uncached).expect(&case.id)
        }) {
            let documents: Vec<String> =
                page.slots.iter().map(|slot| slot.document.to_string()).collect();
            let teams: Vec<Option<Team>> = page.slots.iter().map(|slot| slot.team).collect();
            let competitive: Vec<bool> = page.slots.iter().map(|slot| slot.competitive).collect();
            let entry = found
                .entry(key(&documents, &teams, &competitive, page.is_informative()))
                .or_insert((Ratio::from_integer(0), 0.0));
            entry.0 += probability.exact;
            entry.1 += probability.value();
        }
        assert_eq!(found.len(), case.pages.len(), "{}: {found:#?}", case.id);
        for page in &case.pages {
            let teams = page.teams.clone().unwrap_or_default();
            let key = key(&page.documents, &teams, &page.competitive, page.informative);
            let (exact, rounded) =
                found.get(&key).unwrap_or_else(|| panic!("{}: no {key} in {found:#?}", case.id));
            if is_exact(&case.method) {
                assert_eq!(*exact, page.probability.exact(), "{}: {key}", case.id);
            } else {
                near(*rounded, &page.probability, 1e-9, &case.id);
            }
        }
    }
}

#[test]
fn clicks_have_the_expected_credit() {
    for case in vectors().credits {
        let (sheet, clicks) = (sheet(&case), clicks(&case.clicks));
        let mut once =
            every_branch(|coins| credit(&case.method, &sheet, &clicks, coins).expect(&case.id));
        assert_eq!(once.len(), 1, "{}: crediting tossed a coin", case.id);
        let (found, _) = once.remove(0);
        let Expected::Credit { outcome, left_credit, right_credit } = case.expected else {
            panic!("{}: no credit", case.id)
        };
        let id = format!("{} {:?} clicked {:?}", case.id, case.documents, clicks);
        assert_eq!(found.outcome, outcome, "{id}");
        near(found.left, &left_credit, 1e-12, &id);
        near(found.right, &right_credit, 1e-12, &id);
    }
}

#[test]
fn clicks_have_the_expected_share() {
    for case in vectors().shares {
        let (sheet, clicks) = (sheet(&case), clicks(&case.clicks));
        let id = format!("{} {:?} clicked {:?}", case.id, case.documents, clicks);
        let Expected::Share { share } = &case.expected else { panic!("{}: no share", case.id) };
        let mut mean = 0.0;
        for (earned, probability) in
            every_branch(|coins| credit(&case.method, &sheet, &clicks, coins).expect(&case.id))
        {
            // Half of the last digit.
            near(earned.share.value(), share, 0.5001 / f64::from(Share::ONE), &id);
            mean += probability.value() * Share::of_outcome(earned.outcome).value();
        }
        // The outcome is drawn with this mean.
        near(mean, share, 1e-7, &id);
    }
}

#[test]
fn searchers_have_the_expected_outcomes() {
    for case in vectors().searchers {
        let request = Request {
            left: &case.left,
            right: &case.right,
            offset: 0,
            length: case.length,
            pinned: &[],
        };
        let mut outcomes: BTreeMap<&str, f64> = BTreeMap::new();
        let mut mean = 0.0;
        for (page, probability) in every_branch(|coins| {
            interleave(&case.method, &request, coins, &Uncached).expect(&case.id)
        }) {
            let patterns: Vec<Vec<Click>> = match &case.searcher {
                Searcher::Named(name) => {
                    assert_eq!(name, "one-random-position");
                    (0..page.slots.len()).map(|position| vec![Click::at(position)]).collect()
                }
                Searcher::Clicks { clicks } => {
                    vec![
                        clicks
                            .iter()
                            .filter_map(|document| page.position_of(document).ok())
                            .map(Click::at)
                            .collect(),
                    ]
                }
            };
            for clicks in &patterns {
                for (found, drawn) in every_branch(|coins| {
                    credit(&case.method, &page.sheet, clicks, coins).expect(&case.id)
                }) {
                    let share = probability.value() * drawn.value() / patterns.len() as f64;
                    *outcomes.entry(name(found.outcome)).or_default() += share;
                    mean += share * found.score();
                }
            }
        }
        // An outcome that is drawn from a share has its rounding.
        let is_drawn = serde_json::to_value(case.method).expect("JSON")["verdict"] == "score";
        let tolerance = if is_drawn { 1e-7 } else { 1e-9 };
        for (outcome, wanted) in &case.outcomes {
            let found = outcomes.get(outcome.as_str()).copied().unwrap_or(0.0);
            near(found, wanted, tolerance, &format!("{}: {outcome}", case.id));
        }
        near(mean, &case.mean_score, 1e-9, &case.id);
    }
}

#[test]
fn without_an_unbiased_distribution_the_least_biased_one_is_used() {
    for case in vectors().infeasible {
        let InfeasibleCase { id, method: spec, left, right, length, allowed, .. } = case;
        let request = Request { left: &left, right: &right, offset: 0, length, pinned: &[] };
        let ways = every_branch(|coins| interleave(&spec, &request, coins, &Uncached).expect(&id));
        let mut mean = vec![0.0; length];
        let mut bias = 0.0;
        for (page, probability) in ways {
            let documents: Vec<&str> = page.slots.iter().map(|slot| slot.document).collect();
            assert!(allowed.iter().any(|list| *list == documents), "{documents:?}");
            let Some(Note::Relaxed { bias: reported }) = page.note else {
                panic!("{:?}", page.note)
            };
            bias = reported;
            for (position, mean) in mean.iter_mut().enumerate() {
                let clicks = [Click::at(position)];
                let earned =
                    &every_branch(|coins| credit(&spec, &page.sheet, &clicks, coins).unwrap())[0].0;
                *mean += probability.value() * earned.score();
            }
        }
        let largest = mean.iter().fold(0.0, |most, mean| f64::max(most, mean.abs()));
        assert!((largest - bias).abs() < 1e-9, "{mean:?}, but the note has {bias}");
        // The documents a, b, c have credit 1, -1, -1. If the lists abc, bac, bca have the
        // probabilities p, q, r, the mean credits of the positions are 2p-1, 2q-1, 2r-1.
        assert!((bias - 1.0 / 3.0).abs() < 1e-6, "{bias}");
    }
}

#[test]
fn plans_have_the_largest_sensitivity() {
    for case in vectors().sensitivities {
        let Method::Optimized(parameters) = case.method.method else { panic!("{}", case.id) };
        let numbers = numbers(&[&case.left, &case.right]);
        let [left, right] = [&case.left, &case.right]
            .map(|list| list.iter().map(|id| numbers[id.as_str()]).collect::<Vec<u32>>());
        let (instance, _) = Instance::of(&left, &right, parameters);
        let plan = instance.solve().expect(&case.id);
        assert!(
            (plan.sensitivity - case.sensitivity).abs() < 1e-9,
            "{}: {}",
            case.id,
            plan.sensitivity
        );
        assert!(plan.lists.len() <= case.allowed, "{}", case.id);
        assert_eq!(
            instance.allowed_lists().map(|lists| lists.len()),
            Some(case.allowed),
            "{}",
            case.id
        );
    }
}

fn sheet(page: &CreditCase) -> CreditSheet {
    let pinned: Vec<&str> = page.pinned.iter().map(|pin| pin.document.as_str()).collect();
    let numbers = numbers(&[&page.left, &page.right, &page.documents]);
    let lists = lists(&page.method, &page.left, &page.right, &numbers, &pinned);
    // Without teams there are no pins.
    let without = || vec![Some(Team::Left); page.documents.len()];
    let teams = page.teams.clone().unwrap_or_else(without);
    let drafted: Vec<Drafted> = page
        .documents
        .iter()
        .zip(&teams)
        .zip(&page.competitive)
        .filter_map(|((id, team), &competitive)| {
            Some(Drafted { document: numbers[id.as_str()], team: (*team)?, competitive })
        })
        .collect();
    let mut sheet = CreditSheet::of(&page.method, &lists, &Draft::of(drafted));
    for (position, team) in teams.iter().enumerate() {
        if team.is_none() {
            let pinned = interleaving::CreditSlot { ranks: [0; 2], team: None, competitive: false };
            sheet.slots.insert(position, pinned);
        }
    }
    sheet
}

fn clicks(cases: &[ClickCase]) -> Vec<Click> {
    cases.iter().map(|click| Click { position: click.position, weight: click.weight }).collect()
}

fn numbers<'a>(lists: &[&'a Vec<String>]) -> BTreeMap<&'a str, u32> {
    let mut numbers = BTreeMap::new();
    for id in lists.iter().copied().flatten() {
        let next = numbers.len() as u32;
        numbers.entry(id.as_str()).or_insert(next);
    }
    numbers
}

fn lists(
    spec: &Spec,
    left: &[String],
    right: &[String],
    numbers: &BTreeMap<&str, u32>,
    pinned: &[&str],
) -> Lists {
    let [left, right] = [left, right].map(|list| {
        list.iter()
            .filter(|id| !pinned.contains(&id.as_str()))
            .map(|id| numbers[id.as_str()])
            .collect::<Vec<u32>>()
    });
    Lists::new(&left, &right, numbers.len(), spec.depth_policy)
}
