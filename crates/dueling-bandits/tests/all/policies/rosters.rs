//! Rankers that are added or retired while an experiment runs.

use dueling_bandits::{InFlight, MAX_RANKERS, Outcome, PolicySpec, RosterError};
use serde_json::json;

use super::support::{answer, feed, rng, start};

/// The kinds whose rankers can change, by their descriptions.
fn kinds() -> impl Iterator<Item = &'static str> {
    let changing = PolicySpec::KINDS.iter().filter(|(_, about)| about.fixed_rankers.is_none());
    changing.map(|&(kind, _)| kind)
}

#[test]
fn a_policy_can_change_its_rankers_unless_its_description_says_why_not() {
    for (kind, about) in PolicySpec::KINDS {
        let spec = PolicySpec::from_text_with(kind, &[("horizon", json!(2000))]).expect(kind);
        let mut policy = spec.start(dueling_bandits::parameters::Setup { rankers: 4, seed: 1 });
        let fixed = about.fixed_rankers.is_some();
        if !fixed {
            assert_eq!((policy.enlist(), policy.retire(1)), (Ok(()), Ok(())), "{kind}");
        } else {
            assert_eq!(policy.enlist(), Err(RosterError::FixedRankers), "{kind}");
            assert_eq!(policy.retire(1), Err(RosterError::FixedRankers), "{kind}");
        }
    }
}

#[test]
fn a_retired_ranker_is_neither_selected_nor_recommended() {
    for kind in kinds() {
        let mut policy = start(kind, 4, 1);
        // ranker 1 beats all others, and is retired
        feed(policy.as_mut(), &[&[0, 0, 9, 9], &[20, 0, 20, 20], &[1, 0, 0, 9], &[1, 0, 1, 0]], 0);
        assert_eq!(policy.champion(), 1, "{kind}");
        policy.retire(1).unwrap();
        policy.retire(1).unwrap();
        assert_eq!(policy.champion(), 0, "{kind}");
        let (mut rng, idle) = (rng(2), InFlight::new());
        for step in 0..600 {
            let duel = policy.select(&idle, &mut rng).duel;
            assert!(duel.first != 1 && duel.second != 1, "{kind} selects {duel:?}");
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                let outcome = if step % 3 == 0 { Outcome::Second } else { Outcome::First };
                policy.observe(&answer(duel.first, duel.second, outcome));
            }
            // a late outcome still counts in the tally
            if step == 300 {
                let before = policy.tally().wins(1, 2);
                policy.observe(&answer(1, 2, Outcome::First));
                assert_eq!(policy.tally().wins(1, 2), before + 1.0);
            }
        }
    }
}

#[test]
fn an_added_ranker_is_selected() {
    for kind in kinds() {
        let mut policy = start(kind, 2, 1);
        feed(policy.as_mut(), &[&[0, 30], &[2, 0]], 10);
        policy.enlist().unwrap();
        assert_eq!(policy.tally().rankers(), 3);
        assert_eq!(policy.tally().wins(0, 1), 30.0);
        let (mut rng, idle) = (rng(3), InFlight::new());
        for _ in 0..400 {
            let duel = policy.select(&idle, &mut rng).duel;
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
                continue;
            }
            // the added ranker beats both initial ones
            let outcome = if duel.first == 2 || duel.second != 2 && duel.first == 0 {
                Outcome::First
            } else {
                Outcome::Second
            };
            policy.observe(&answer(duel.first, duel.second, outcome));
        }
        assert_eq!(policy.champion(), 2, "{kind}");
    }
}

#[test]
fn the_last_ranker_stays() {
    for kind in kinds() {
        let mut policy = start(kind, 3, 1);
        policy.retire(0).unwrap();
        policy.retire(2).unwrap();
        let duel = policy.select(&InFlight::new(), &mut rng(4)).duel;
        assert_eq!((duel.first, duel.second), (1, 1), "{kind}");
        let reason = policy.retire(1).unwrap_err().to_string();
        assert!(reason.contains("only one left"), "{kind}: {reason}");
        assert!(policy.retire(3).unwrap_err().to_string().contains("no ranker 3"), "{kind}");
        policy.enlist().unwrap();
        policy.retire(1).unwrap();
        let duel = policy.select(&InFlight::new(), &mut rng(4)).duel;
        assert_eq!((duel.first, duel.second), (3, 3), "{kind}");
    }
}

#[test]
fn the_number_of_rankers_is_limited() {
    for kind in kinds() {
        let mut policy = start(kind, MAX_RANKERS, 1);
        assert!(
            policy.enlist().unwrap_err().to_string().contains("1024 rankers already"),
            "{kind}"
        );
    }
}
