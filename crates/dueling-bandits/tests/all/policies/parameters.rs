//! The described parameters of every kind are those that are read.

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::{Description, Parameter, Values};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A value for every parameter of a kind that must be given: all are horizons.
fn required(description: &Description) -> Map<String, Value> {
    let required = description.parameters.iter().filter(|parameter| parameter.default.is_none());
    required.map(|parameter| (parameter.name.to_string(), json!(5_000))).collect()
}

/// The spec of a kind with one parameter set, and defaults otherwise.
fn with(
    kind: &str,
    description: &Description,
    name: &str,
    value: Value,
) -> Result<PolicySpec, String> {
    let mut parameters = required(description);
    parameters.insert(name.to_string(), value);
    PolicySpec::from_parameters(kind, parameters).map_err(|error| error.to_string())
}

fn each() -> impl Iterator<Item = (&'static str, &'static Description, &'static Parameter)> {
    PolicySpec::KINDS.iter().flat_map(|&(kind, description)| {
        description.parameters.iter().map(move |parameter| (kind, description, parameter))
    })
}

#[test]
fn described_values_are_read_and_others_refused() {
    for (kind, description, parameter) in each() {
        let (good, bad) = match parameter.values {
            Values::Number => (vec![json!(0.5), json!(3)], vec![json!("0.5"), json!(true)]),
            Values::Integer => (vec![json!(0), json!(7)], vec![json!(0.5), json!(-1), json!("7")]),
            Values::Boolean => (vec![json!(true), json!(false)], vec![json!(1), json!("true")]),
            Values::OneOf(names) => {
                (names.iter().map(|name| json!(name)).collect(), vec![json!("no-such"), json!(1)])
            }
        };
        let read = |value: &Value| with(kind, description, parameter.name, value.clone());
        for value in good {
            let spec = read(&value);
            assert!(spec.is_ok(), "{kind}:{}={value}: {spec:?}", parameter.name);
        }
        for value in bad {
            let spec = read(&value);
            assert!(spec.is_err(), "{kind}:{}={value}: {spec:?}", parameter.name);
        }
    }
}

#[test]
fn a_name_of_a_parameter_is_its_own_value() {
    for (kind, description, parameter) in each() {
        let Values::OneOf(names) = parameter.values else { continue };
        for name in names {
            let spec = with(kind, description, parameter.name, json!(name)).expect(kind);
            let written = serde_json::to_value(&spec).expect(kind);
            assert_eq!(written[parameter.name], *name, "{kind}:{}", parameter.name);
        }
    }
}

#[test]
fn a_described_default_equals_leaving_the_parameter_out() {
    for (kind, description, parameter) in each() {
        let Some(default) = parameter.default else { continue };
        let value = match parameter.values {
            Values::OneOf(names) if names.contains(&default) => json!(default),
            _ => match serde_json::from_str(default) {
                Ok(value) => value,
                Err(_) => continue, // it follows from other parameters
            },
        };
        let left_out = PolicySpec::from_parameters(kind, required(description)).expect(kind);
        let given = with(kind, description, parameter.name, value);
        assert_eq!(given.as_ref(), Ok(&left_out), "{kind}: default of {}", parameter.name);
    }
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    for (text, parameter) in [
        ("pcomp", "horizon"),
        ("pcomp:horizon=5", "horizon"),
        ("pcomp:horizon=2000000001", "horizon"),
        ("scomp:horizon=1000,batches=0", "batches"),
        ("scomp2:horizon=1000,batches=1001", "batches"),
        ("scomp:horizon=1000,seed_exponent=1.5", "seed_exponent"),
        ("scomp2:horizon=1000,elimination=chernoff", "elimination"),
        ("pcomp:horizon=1000,estimates=some", "estimates"),
        ("pcomp:horizon=1000,seed_exponent=0.5", "seed_exponent"),
        ("savage:horizon=3", "horizon"),
        ("savage:horizon=2000000001", "horizon"),
        ("savage:delta=0", "delta"),
        ("savage:delta=1", "delta"),
        ("savage:winner=random-walk", "winner"),
        ("savage:epsilon=6", "epsilon"),
        ("savage:winner=borda,epsilon=1", "epsilon"),
        ("scb:resolution=-0.1", "resolution"),
        ("scb:resolution=0.5", "resolution"),
        ("ccb:alpha=0.5", "alpha"),
        ("d-ts:alpha=-1", "alpha"),
        ("d-ts-plus:alpha=0.5", "alpha"),
        ("ccb:alpha=1e999", "alpha"),
    ] {
        let checked = PolicySpec::from_text(text).and_then(|spec| spec.validate(6));
        assert_eq!(checked.expect_err(text).parameter, parameter, "{text}");
    }
    for text in [
        "pcomp:horizon=6,batches=6,elimination=kl-published,estimates=fresh",
        "scomp:horizon=2000000000",
        "ccb:alpha=0.500001",
        "d-ts:alpha=2",
    ] {
        let checked = PolicySpec::from_text(text).and_then(|spec| spec.validate(6));
        assert_eq!(checked, Ok(()), "{text}");
    }
}

proptest! {
    /// A server keeps specs as JSON, and reads them again when it starts.
    #[test]
    fn a_number_is_the_same_after_json(
        alpha in prop_oneof![Just(8.888_888_888_888_891e62), Just(0.1 + 0.2), 0.5..2.0, any::<f64>()],
    ) {
        prop_assume!(alpha.is_finite());
        let (kind, description, _) = each().find(|(kind, ..)| *kind == "ccb").expect("ccb");
        let spec = with(kind, description, "alpha", json!(alpha)).expect("a spec");
        let text = serde_json::to_string(&spec).expect("JSON");
        let again: PolicySpec = serde_json::from_str(&text).expect("the same spec");
        prop_assert_eq!(again, spec, "{}", text);
    }
}
