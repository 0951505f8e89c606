//! What a method can be asked for, and how a wrong one is refused.

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
        assert_eq!(spec.depth_policy, DepthPolicy::Min);
        let written = serde_json::to_value(spec).expect("JSON");
        assert_eq!(serde_json::from_value::<Spec>(written).expect(kind), spec);
    }
    assert_eq!(
        Spec::default(),
        Spec::from_text("team-draft:shared=collapse,depth_policy=min").unwrap()
    );
    let written = serde_json::to_value(Spec::from_text("probabilistic").unwrap()).unwrap();
    let expected = json!({"kind": "probabilistic", "tau": 3.0, "credit": "more-clicks", "verdict": "sign",
        "depth_policy": "min"});
    assert_eq!(written, expected);
}

#[test]
fn what_is_wrong_is_named() {
    refused("team-drat", "kind", "choose one of: team-draft, balanced, probabilistic, optimized");
    refused("team-draft:shared=all", "shared", "credit-all");
    refused("team-draft:tau=3", "tau", "it takes: shared, depth_policy");
    refused("balanced:shared=collapse", "shared", "it takes: depth_policy");
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
