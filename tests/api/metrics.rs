//! The contents of `/metrics`; alerts and dashboards use only metrics that exist.

use std::collections::{BTreeMap, BTreeSet};

use rankduel::http::ShellSettings;
use serde_json::{Value, json};

use crate::support::client::{Client, assert_has, eventually, steady};
use crate::support::server::Api;
use crate::support::service::Server;
use crate::support::{Kind, TestDatabase};

on_sqlite! {
    metrics_of_an_experiment_match_its_feedback
}

on_both_databases! {
    an_archived_experiment_has_no_metrics
}

const ALERTS: &str = include_str!("../../deploy/prometheus/alerts.yml");
const BOARD: &str = include_str!("../../deploy/grafana/rankduel.json");
const RUNBOOK: &str = include_str!("../../docs/operations.md");

type Labels = BTreeMap<String, String>;
/// Samples by metric name, each with its labels and value.
type Samples = BTreeMap<String, Vec<(Labels, f64)>>;

fn samples(text: &str) -> Samples {
    let mut samples = Samples::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.trim_end_matches('}').split("\",").filter(|label| !label.is_empty());
        let labels = labels
            .map(|label| {
                let (name, value) = label.split_once("=\"").expect("a label");
                (name.to_owned(), value.trim_end_matches('"').to_owned())
            })
            .collect();
        samples
            .entry(name.to_owned())
            .or_default()
            .push((labels, value.parse().expect("a number")));
    }
    samples
}

async fn metrics(client: &Client) -> Samples {
    let answer = client.get("/metrics").await;
    assert_eq!(answer.status, 200);
    samples(&answer.text())
}

/// As Prometheus asks for them.
async fn open_metrics(client: &Client) -> String {
    let accept = [("accept", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5")];
    client.send("GET", "/metrics", &accept, Vec::new()).await.text()
}

/// A server whose metrics have values of every kind.
async fn busy() -> (Api, Client) {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let client = Client::new(&api.server.url(""));
    client.create(&steady("search", &["a", "b", "c"])).await;
    let duel = client.pair("search").await;
    client.answer("search", &duel, "left").await;
    let decided = json!({
        "name": "decided", "rankers": ["a", "b"], "policy": {"kind": "uniform"},
        "conclude_at": "never", "answer_window_seconds": 0,
    });
    client.create(&decided).await;
    for _ in 0..30 {
        let duel = client.pair("decided").await;
        client.wins("decided", &duel, "a").await;
    }
    for _ in 0..60 {
        let orphan = json!({"duel_id": "nonsense", "outcome": "left"});
        assert_eq!(client.feedback("search", &orphan).await.status, 422);
    }
    (api, client)
}

/// The metrics in a PromQL expression, each with the labels that the expression uses.
fn asked(expression: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut asked = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find("rankduel_") {
        let end = rest[at..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(rest.len(), |end| at + end);
        let name = rest[at..end].to_owned();
        rest = &rest[end..];
        let mut labels = BTreeSet::new();
        if let Some(selector) = rest.strip_prefix('{') {
            // A label value may contain braces, as a route does.
            let mut quoted = false;
            let mut matcher = String::new();
            for c in selector.chars() {
                match c {
                    '"' => quoted = !quoted,
                    '}' if !quoted => break,
                    _ if quoted => {}
                    ',' | '=' | '~' | '!' => {
                        if c == '=' {
                            labels.insert(std::mem::take(&mut matcher).trim().to_owned());
                        }
                        matcher.clear();
                    }
                    c => matcher.push(c),
                }
            }
        }
        asked.push((name, labels));
    }
    // `by (…)` applies to every metric of the expression.
    let grouped: BTreeSet<String> = expression
        .split("by (")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .flat_map(|(labels, _)| labels.split(',').map(|label| label.trim().to_owned()))
        .filter(|label| !["instance", "le"].contains(&&**label))
        .collect();
    for (_, labels) in &mut asked {
        labels.extend(grouped.iter().cloned());
    }
    asked
}

fn expressions() -> Vec<String> {
    let alerts: Value = yaml_serde::from_str(ALERTS).expect("YAML");
    let rules = alerts["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"));
    let text = |rule: &Value, key: &str| {
        rule[key].as_str().unwrap_or_else(|| panic!("no {key}: {rule}")).to_owned()
    };
    let mut expressions: Vec<String> = rules
        .map(|rule| {
            let texts = ["summary", "description"].map(|key| text(&rule["annotations"], key));
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", text(rule, "alert"));
            text(rule, "expr")
        })
        .collect();
    assert_eq!(expressions.len(), ALERTS.matches("- alert:").count());
    let board: Value = serde_json::from_str(BOARD).expect("JSON");
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            expressions.push(target["expr"].as_str().expect("an expression").to_owned());
        }
    }
    for variable in board["templating"]["list"].as_array().expect("variables") {
        expressions.extend(variable["query"]["query"].as_str().map(str::to_owned));
    }
    expressions
}

#[tokio::test]
async fn alerts_and_dashboards_use_existing_metrics() {
    let (_api, client) = busy().await;
    client.measures("rankduel_experiment_alarm{").await;
    let there = metrics(&client).await;
    let expressions = expressions();
    let mut names = 0;
    for expression in &expressions {
        let asked = asked(expression);
        assert!(
            !asked.is_empty() || expression.starts_with("up"),
            "{expression} uses none of our metrics"
        );
        for (name, labels) in asked {
            names += 1;
            // claims about a segment or a metric have these; the tests of such claims read them
            let is_there = |label: &String| {
                name != "rankduel_claim_decided" || !["segment", "metric"].contains(&&**label)
            };
            let series = there
                .get(&name)
                .unwrap_or_else(|| panic!("there is no metric {name}: {expression}"));
            for label in labels.into_iter().filter(is_there) {
                let has = series.iter().any(|(own, _)| own.contains_key(&label));
                assert!(has, "{name} has no label {label}: {expression}");
            }
        }
        assert_eq!(
            expression.matches('(').count(),
            expression.matches(')').count(),
            "{expression}"
        );
    }
    assert!(names > 25, "only {names} names were found: does the test read the files?");
}

#[test]
fn every_alert_and_every_alarm_is_in_the_runbook() {
    let alerts = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let alarms = rankduel::service::reports::alarms::KINDS.iter().map(|kind| kind.slug);
    for name in alerts.chain(alarms) {
        assert!(
            RUNBOOK.contains(&format!("| `{name}` |")),
            "docs/operations.md does not mention {name}"
        );
    }
}

#[tokio::test]
async fn names_follow_conventions_and_labels_are_bounded() {
    let (_api, client) = busy().await;
    let text = open_metrics(&client).await;
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a type");
        assert!(name.starts_with("rankduel_") || name.starts_with("process_"), "{name}");
        assert!(!name.ends_with("_ms") && !name.contains("millisecond"), "{name} has no base unit");
        assert_eq!(
            text.contains(&format!("\n{name}_total")),
            kind == "counter" && text.contains(&format!("\n{name}")),
            "{name} {kind}"
        );
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help text");
    }
    for (name, series) in samples(&text) {
        for (labels, _) in series {
            for (label, value) in labels {
                // at most 256 rankers of each experiment, and ten claims
                let bounded =
                    ["method", "route", "status", "state", "kind", "estimate", "le", "version"];
                let of_experiments = ["experiment", "claim", "ranker"];
                let is_bounded = bounded.iter().chain(&of_experiments).any(|it| **it == label);
                assert!(is_bounded, "{name} has a label {label}={value}");
            }
        }
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn every_metric_is_in_the_runbook() {
    let (_api, client) = busy().await;
    for line in open_metrics(&client).await.lines() {
        let Some(name) = line.strip_prefix("# TYPE ").and_then(|it| it.split(' ').next()) else {
            continue;
        };
        let name = name.strip_prefix("rankduel_").unwrap_or(name);
        assert!(RUNBOOK.contains(&format!("`{name}`")), "docs/operations.md lacks {name}");
    }
}

/// The format of Prometheus before OpenMetrics, in which the type of a counter has the name of its
/// samples.
#[tokio::test]
async fn the_older_text_format_is_served_to_those_who_ask_for_it() {
    let (_api, client) = busy().await;
    let plain = async |accept: &str| {
        let accept = [("accept", accept)];
        let answer = client.send("GET", "/metrics", &accept, Vec::new()).await;
        let kind = answer.header("content-type").expect("a type").to_owned();
        (kind.starts_with("text/plain; version=0.0.4"), answer.text())
    };
    for accept in ["*/*", "text/html,*/*;q=0.8"] {
        assert!(plain(accept).await.0, "{accept}");
    }
    let (is_plain, text) = plain("text/plain").await;
    assert!(is_plain && !text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    for part in [
        "# HELP rankduel_duels_total Issued duels.\n# TYPE rankduel_duels_total counter\n",
        "# TYPE rankduel_build_info gauge\n",
        "# TYPE rankduel_commit_events histogram\n",
        "# TYPE process_open_fds gauge\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let of_prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5";
    let (is_plain, text) = plain(of_prometheus).await;
    assert!(!is_plain && text.ends_with("# EOF\n"));
}

/// Of 201 experiments the last one by name has an alarm; then one is archived.
#[tokio::test]
async fn experiments_with_an_alarm_come_first_and_archived_ones_have_no_series() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let client = Client::new(&api.server.url(""));
    for number in 0..201 {
        client.create(&steady(&format!("x{number:03}"), &["a", "b"])).await;
    }
    let cut = "rankduel_experiments_without_series ";
    let text = client.get("/metrics").await.text();
    assert!(text.contains(&format!("{cut}1\n")) && !text.contains("\"x200\""), "the last");
    for _ in 0..60 {
        let orphan = json!({"duel_id": "nonsense", "outcome": "left"});
        assert_eq!(client.feedback("x200", &orphan).await.status, 422);
    }
    client.measures("rankduel_experiment_alarm{experiment=\"x200\",kind=\"invalid").await;
    client.patch("x000", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    let archived = client.send("DELETE", "/v1/experiments/x000", &[], Vec::new()).await;
    assert_eq!(archived.status, 204);
    let text = client.get("/metrics").await.text();
    assert!(text.contains(&format!("{cut}0\n")) && !text.contains("\"x000\""), "archived");
    assert!(text.contains("experiment_status{experiment=\"x199\",status=\"running\"} 1"));
}

async fn metrics_of_an_experiment_match_its_feedback(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    server.create(&steady("search", &["a", "b", "c"])).await;
    let mut duels = Vec::new();
    for _ in 0..7 {
        duels.push(server.pair("search").await);
    }
    server.clock.advance_ms(3000);
    for duel in &duels[..4] {
        server.answer("search", duel, "left").await;
    }
    let body =
        |duel: &Value, outcome: &str| json!({"duel_id": duel["duel_id"], "outcome": outcome});
    assert_eq!(
        server.feedback("search", &body(&duels[0], "left")).await.json(200)["status"],
        "duplicate"
    );
    assert_eq!(server.feedback("search", &body(&duels[1], "right")).await.status, 409);
    assert_eq!(
        server.feedback("search", &json!({"duel_id": "x", "outcome": "left"})).await.status,
        422
    );
    server.clock.advance_ms(2 * 3600 * 1000);
    assert_eq!(server.feedback("search", &body(&duels[4], "left")).await.status, 410);

    let traffic = server.report("search", "traffic").await;
    assert_eq!(
        traffic["feedback"],
        json!({
            "recorded": 4, "duplicate": 1, "conflict": 1, "expired": 1, "ignored": 0, "late": 0,
            "invalid": 1,
        })
    );
    assert_has(&traffic, json!({"pairs": 7, "in_flight": 0, "unanswered": 3}));
    assert_eq!(
        traffic["delay"],
        json!({"answers": 4, "p50_seconds": 5.0, "p90_seconds": 5.0, "p99_seconds": 5.0})
    );
    assert_has(&traffic["sides"], json!({"left": 4, "left_share": 1.0}));
    assert_eq!(traffic["answers"]["answered_share"], json!(4.0 / 7.0));
    assert_eq!(traffic["alarms"], json!([]));

    let there = metrics(&server).await;
    let value = |name: &str, label: Option<(&str, &str)>| {
        let series = there.get(name).unwrap_or_else(|| panic!("no {name}"));
        let of_search = |labels: &Labels| {
            labels.get("experiment").is_none_or(|name| name == "search")
                && label
                    .is_none_or(|(name, value)| labels.get(name).is_some_and(|own| own == value))
        };
        series.iter().filter(|(labels, _)| of_search(labels)).map(|(_, value)| value).sum::<f64>()
    };
    for (status, count) in [
        ("recorded", 4.0),
        ("duplicate", 1.0),
        ("conflict", 1.0),
        ("expired", 1.0),
        ("invalid", 1.0),
    ] {
        assert_eq!(
            value("rankduel_experiment_feedback_total", Some(("status", status))),
            count,
            "{status}"
        );
        assert_eq!(value("rankduel_feedback_total", Some(("status", status))), count, "{status}");
    }
    assert_eq!(value("rankduel_experiment_duels_total", None), 7.0);
    assert_eq!(value("rankduel_experiment_unanswered_duels_total", None), 3.0);
    assert_eq!(value("rankduel_feedback_delay_seconds_count", None), 4.0);
    assert_eq!(value("rankduel_feedback_delay_seconds_sum", None), 12.0);
    assert!(there["rankduel_experiment_last_feedback_timestamp_seconds"][0].1 > 1.79e9);
}

async fn an_archived_experiment_has_no_metrics(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    for name in ["search", "shop"] {
        first.create(&steady(name, &["a", "b"])).await;
        for server in [&first, &second] {
            let duel = server.pair(name).await;
            server.answer(name, &duel, "left").await;
        }
    }
    first.patch("search", &json!({"status": "concluded"})).await.json(200);
    for server in [&first, &second] {
        server.measures("rankduel_experiment_duels_total{experiment=\"search\"} 1").await;
    }
    let archived = first.send("DELETE", "/v1/experiments/search", &[], Vec::new()).await;
    assert_eq!(archived.status, 204);
    for server in [&first, &second] {
        let text = eventually("the end of the series", async || {
            let text = server.get("/metrics").await.text();
            (!text.contains("experiment=\"search\"")).then_some(text)
        })
        .await;
        assert!(text.contains("experiment=\"shop\""), "{text}");
        // also after somebody has read it
        assert!(server.experiment("search").await["archived_at"].is_string());
        let text = server.get("/metrics").await.text();
        assert!(!text.contains("experiment=\"search\""), "{text}");
    }
}

#[tokio::test]
async fn an_alarm_is_reported_in_the_api_and_in_the_metrics() {
    let (_api, client) = busy().await;
    let traffic = client.report("search", "traffic").await;
    let alarm = &traffic["alarms"][0];
    assert_eq!(alarm["kind"], "invalid-feedback");
    assert!(alarm["cause"].as_str().is_some_and(|text| text.len() > 20), "{alarm}");
    client.measures("rankduel_experiment_alarm{").await;
    let there = metrics(&client).await;
    let on: Vec<_> =
        there["rankduel_experiment_alarm"].iter().filter(|(_, value)| *value == 1.0).collect();
    assert_eq!(on.len(), 1);
    assert_eq!((&*on[0].0["experiment"], &*on[0].0["kind"]), ("search", "invalid-feedback"));
}
