//! Requirements for every policy. The module `resume` covers saving and restoring.

use dueling_bandits::{InFlight, Outcome, PolicySpec, Setup};
use rand::RngExt;
use serde_json::{Value, json};

use super::arena::{fold, rng};
use crate::pins::every_policy;

const SETUP: Setup = Setup { rankers: 6, seed: 77 };

#[test]
fn counted_self_duels_are_self_duels_one_by_one() {
    for spec in every_policy(20_000) {
        let (mut counted, mut single) = (spec.start(SETUP), spec.start(SETUP));
        let mut rng = rng(8);
        for _ in 0..400 {
            let selection = counted.select(&InFlight::new(), &mut rng);
            let lower = selection.duel.first < selection.duel.second;
            let outcome = match rng.random_range(0..20) {
                0 => Outcome::None,
                1 => Outcome::Void,
                2 => Outcome::Half,
                n if lower == (n < 17) => Outcome::First,
                _ => Outcome::Second,
            };
            fold(&mut *counted, selection, outcome);
            fold(&mut *single, selection, outcome);
            counted.observe_self_duels(1, 17);
            (0..17).for_each(|_| single.observe_self_duels(1, 1));
            assert_eq!(counted.save(), single.save(), "{}", spec.kind());
        }
    }
}

#[test]
fn a_ranker_that_always_wins_is_recommended() {
    for spec in every_policy(5_000) {
        let (mut policy, mut rng) = (spec.start(SETUP), rng(11));
        for _ in 0..3_000 {
            let selection = policy.select(&InFlight::new(), &mut rng);
            let lower = selection.duel.first < selection.duel.second;
            fold(&mut *policy, selection, if lower { Outcome::First } else { Outcome::Second });
        }
        assert_eq!(policy.champion(), 0, "{}", spec.kind());
    }
}

#[test]
fn every_kind_describes_itself() {
    for spec in every_policy(5_000) {
        let (kind, description) = (spec.kind(), spec.description());
        assert_eq!(spec.validate(6), Ok(()), "{kind}");
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
