//! Requirements for every policy. The module `resume` covers saving and restoring.

use dueling_bandits::parameters::Setup;
use dueling_bandits::{InFlight, Observation, Outcome, Policy, PolicySpec, Selection};
use rand::RngExt;
use serde_json::{Map, Value, json};

use super::support::rng;

const RANKERS: usize = 6;
const SEED: u64 = 77;
const STEPS: usize = 400;

/// Values of required parameters, by name; all other parameters keep their defaults.
fn needed(name: &str) -> Value {
    match name {
        "horizon" => json!(5_000),
        other => panic!("no value for the required parameter `{other}`"),
    }
}

fn specs() -> impl Iterator<Item = PolicySpec> {
    PolicySpec::KINDS.iter().map(|(kind, description)| {
        let required =
            description.parameters.iter().filter(|parameter| parameter.default.is_none());
        let parameters: Map<_, _> = required
            .map(|parameter| (parameter.name.to_string(), needed(parameter.name)))
            .collect();
        let spec = PolicySpec::from_parameters(kind, parameters).expect(kind);
        spec.validate(RANKERS).expect(kind);
        spec
    })
}

fn setup() -> Setup {
    Setup { rankers: RANKERS, seed: SEED }
}

/// Lower indices win 4 times in 5; some pages are tied or without a click.
fn outcome(selection: Selection, rng: &mut dueling_bandits::PolicyRng) -> Outcome {
    match rng.random_range(0..20) {
        0 => Outcome::None,
        1 => Outcome::Void,
        2 => Outcome::Half,
        n => {
            let lower_wins = n < 17;
            if (selection.duel.first < selection.duel.second) == lower_wins {
                Outcome::First
            } else {
                Outcome::Second
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Folded {
    Duel(Observation),
    SelfDuels(usize, u64),
}

fn fold(policy: &mut dyn Policy, event: Folded) {
    match event {
        Folded::Duel(observation) => policy.observe(&observation),
        Folded::SelfDuels(ranker, count) => policy.observe_self_duels(ranker, count),
    }
}

/// Run a policy on its own selections and return the observations.
fn run(policy: &mut dyn Policy, steps: usize, seed: u64) -> Vec<Folded> {
    let (mut rng, idle) = (rng(seed), InFlight::new());
    let events = (0..steps).map(|_| {
        let selection = policy.select(&idle, &mut rng);
        let Selection { duel, batch, ticket } = selection;
        assert!(duel.first < RANKERS && duel.second < RANKERS, "{duel:?}");
        let event = if duel.is_self() {
            Folded::SelfDuels(duel.first, 1)
        } else {
            let outcome = outcome(selection, &mut rng);
            Folded::Duel(Observation { duel, outcome, batch, ticket })
        };
        let before = policy.tally().steps();
        fold(policy, event);
        assert_eq!(policy.tally().steps(), before + 1);
        event
    });
    events.collect()
}

#[test]
fn counted_self_duels_are_self_duels_one_by_one() {
    for spec in specs() {
        let mut counted = spec.start(setup());
        let mut single = spec.start(setup());
        for event in run(spec.start(setup()).as_mut(), STEPS, 8) {
            fold(counted.as_mut(), event);
            fold(single.as_mut(), event);
            counted.observe_self_duels(1, 17);
            (0..17).for_each(|_| single.observe_self_duels(1, 1));
            assert_eq!(counted.save(), single.save(), "{}", spec.kind());
        }
    }
}

#[test]
fn a_ranker_that_always_wins_is_recommended() {
    for spec in specs() {
        let mut policy = spec.start(setup());
        let mut rng = rng(11);
        for _ in 0..3_000 {
            let Selection { duel, batch, ticket } = policy.select(&InFlight::new(), &mut rng);
            let outcome = if duel.first < duel.second { Outcome::First } else { Outcome::Second };
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                policy.observe(&Observation { duel, outcome, batch, ticket });
            }
        }
        assert_eq!(policy.champion(), 0, "{}", spec.kind());
    }
}

#[test]
fn every_kind_describes_itself() {
    for spec in specs() {
        let (kind, description) = (spec.kind(), spec.description());
        assert!(!description.summary.is_empty() && !description.source.is_empty(), "{kind}");
        assert!(!description.assumes.is_empty(), "{kind}");
        // the serialized spec has exactly the documented parameters, and deserializes to the same
        // spec
        let Value::Object(mut object) = serde_json::to_value(&spec).unwrap() else {
            panic!("{kind}")
        };
        assert_eq!(object.remove("kind"), Some(json!(kind)));
        for name in object.keys() {
            let documented = description.parameters.iter().any(|parameter| parameter.name == name);
            assert!(documented, "{kind}: `{name}` is not documented");
        }
        assert_eq!(PolicySpec::from_parameters(kind, object), Ok(spec));
    }
}
