//! Specs of methods, and the errors of invalid ones.

use interleaving::{DepthPolicy, Method, Spec};
use serde_json::json;

#[track_caller]
fn refused(text: &str, parameter: &str, expected: &str) {
    let error = Spec::from_text(text).expect_err(text);
    assert_eq!(error.parameter, parameter, "{error}");
    assert!(error.detail.contains(expected), "{text}: {error}");
}

#[test]
fn every_kind_is_read_with_its_defaults_and_written_back() {
    for (kind, _) in Method::KINDS {
        let spec = Spec::from_text(kind).expect(kind);
        assert_eq!(spec.method.kind(), kind);
        assert_eq!(spec.depth_policy, DepthPolicy::Max);
        let written = serde_json::to_value(spec).expect("JSON");
        assert_eq!(serde_json::from_value::<Spec>(written).expect(kind), spec);
    }
    assert_eq!(
        Spec::default(),
        Spec::from_text("team-draft:shared=collapse,depth_policy=max").unwrap()
    );
    let written = serde_json::to_value(Spec::from_text("probabilistic").unwrap()).unwrap();
    let expected = json!({"kind": "probabilistic", "tau": 3.0, "credit": "more-clicks", "verdict": "score",
        "depth_policy": "max"});
    assert_eq!(written, expected);
    // The defaults of methods whose outcome is fair as it is are not written.
    let written = serde_json::to_value(Spec::from_text("balanced").unwrap()).unwrap();
    assert_eq!(written, json!({"kind": "balanced", "depth_policy": "max"}));
}

#[test]
fn click_weights_are_read_from_text_and_written_back() {
    let text = r#"optimized:depth=3,click_weights={"positions":[1,2,3,4,5,6,7,8,9,10],"lowest":5}"#;
    let spec = Spec::from_text(text).unwrap();
    let weights = spec.click_weights.expect("weights");
    assert_eq!(weights.positions, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!((weights.highest, weights.lowest, weights.only), (0, 5, 0));
    assert_eq!(weights.largest(), 15);
    let written = serde_json::to_value(spec).unwrap();
    assert_eq!(serde_json::from_value::<Spec>(written).unwrap(), spec);
}

#[test]
fn an_error_names_the_invalid_parameter() {
    refused("team-drat", "kind", "choose one of: team-draft, balanced, probabilistic, optimized");
    refused("team-draft:shared=all", "shared", "credit-all");
    refused("team-draft:tau=3", "tau", "it takes: shared, verdict, depth_policy");
    refused("balanced:shared=collapse", "shared", "it takes: credit, verdict, depth_policy");
    refused("balanced:verdict=score", "verdict", "choose `credit` debiased");
    refused("probabilistic:verdict=coin", "verdict", "score");
    refused(r#"balanced:click_weights={"only":1}"#, "click_weights", "`credit` debiased");
    refused(r#"probabilistic:click_weights={"only":1}"#, "click_weights", "expected-clicks");
    refused(r#"team-draft:click_weights={"only":101}"#, "click_weights", "`only`");
    refused(r#"team-draft:click_weights={"lats":1}"#, "click_weights", "lats");
    refused(
        r#"team-draft:click_weights={"positions":[0,0,0,0,0,0,0,0,0,0]}"#,
        "click_weights",
        "more than 0",
    );
    refused("probabilistic:tau=0", "tau", "above 0 and at most 10");
    refused("probabilistic:tau=11", "tau", "above 0 and at most 10");
    refused("probabilistic:tau=high", "tau", "expected f64");
    refused("optimized:depth=11", "depth", "1 to 10");
    refused("optimized:depth=0", "depth", "1 to 10");
    refused("optimized:max_lists=4096", "max_lists", "1 to 1024");
    refused("optimized:credit", "", "name=value");
    refused("optimized:depth=3,depth=4", "depth", "twice");
    refused("balanced:depth_policy=long", "depth_policy", "uncut");
    assert!(
        Spec::from_json(json!({}).as_object().unwrap().clone())
            .unwrap_err()
            .detail
            .contains("missing")
    );
    assert!(Spec::from_json(json!({"kind": 3}).as_object().unwrap().clone()).is_err());
}
