//! `rankduel policies`: every kind and its parameters.

use std::collections::BTreeSet;

use dueling_bandits::PolicySpec;
use serde_json::Value;

use super::rankduel;

#[test]
fn every_kind_is_listed_with_its_parameters() {
    let output = rankduel(&["policies", "--format", "json"]);
    assert!(output.status.success());
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = String::from_utf8(rankduel(&["policies"]).stdout).unwrap();
    assert_eq!(list.len(), PolicySpec::KINDS.len());
    for (listed, (kind, description)) in list.iter().zip(PolicySpec::KINDS) {
        assert_eq!(listed["kind"], *kind);
        assert_eq!(listed["summary"], description.summary);
        assert_eq!(listed["assumes"], description.assumes);
        assert_eq!(listed["fixed_rankers"].as_str(), description.fixed_rankers, "{kind}");
        assert!(
            text.contains(&format!("{kind}\n  {}\n", description.summary)),
            "{kind} in:\n{text}"
        );
        let parameters = listed["parameters"].as_array().unwrap();
        assert_eq!(parameters.len(), description.parameters.len());
        for (listed, parameter) in parameters.iter().zip(description.parameters) {
            assert_eq!(listed["name"], parameter.name);
            assert_eq!(listed["default"].as_str(), parameter.default);
            assert!(text.contains(parameter.meaning), "{} of {kind}", parameter.name);
        }
    }
}

#[test]
fn the_list_says_which_kinds_allow_roster_changes() {
    let text = |kind: &str| String::from_utf8(rankduel(&["policies", kind]).stdout).unwrap();
    assert!(
        text("d-ts-plus").contains("  rankers: can be added and retired during an experiment\n"),
        "{}",
        text("d-ts-plus")
    );
    assert!(text("scb").contains("  rankers: fixed: its rounds"), "{}", text("scb"));
    let open =
        PolicySpec::KINDS.iter().filter(|(_, description)| description.fixed_rankers.is_none());
    let open: Vec<_> = open.map(|(kind, _)| *kind).collect();
    assert_eq!(open, ["uniform", "d-ts", "d-ts-plus", "d-ts-verdict", "ccb",]);
}

#[test]
fn kinds_can_be_chosen() {
    let output = rankduel(&["policies", "uniform", "--format", "json"]);
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["kind"], "uniform");
    let unknown = rankduel(&["policies", "bogus"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr)
            .contains("there is no policy `bogus`; choose one of: uniform")
    );
}

#[test]
fn the_fuzz_dictionary_has_every_kind_and_parameter() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/policy.dict");
    let dictionary = std::fs::read_to_string(path).unwrap();
    let words = |end: &'static str| {
        let words = dictionary.lines().filter_map(move |line| {
            line.strip_prefix('"')?.strip_suffix(end).filter(|word| !word.contains('"'))
        });
        words.collect::<BTreeSet<_>>()
    };
    let kinds: BTreeSet<_> = PolicySpec::KINDS.iter().map(|(kind, _)| *kind).collect();
    let parameters: BTreeSet<_> = PolicySpec::KINDS
        .iter()
        .flat_map(|(_, description)| description.parameters.iter().map(|parameter| parameter.name))
        .collect();
    assert_eq!(words(":\""), kinds);
    assert_eq!(words("=\""), parameters);
}
