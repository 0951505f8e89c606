//! A duel and its feedback can be matched in the log.

use serde_json::{Value, json};

use crate::support::client::{Client, JSON, assert_has, steady};
use crate::support::server::{Process, outcome, rankduel};
use crate::support::{Kind, fresh_database};

const DUELS_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const FEEDBACKS_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn traceparent(trace: &str) -> String {
    format!("00-{trace}-00f067aa0ba902b7-01")
}

/// The log lines of requests of this route, in order.
fn lines<'a>(log: &'a [Value], route: &str) -> Vec<&'a Value> {
    let path = format!("/v1/experiments/{{name}}/{route}");
    log.iter()
        .filter(|line| line["target"] == "rankduel::access" && line["route"] == path.as_str())
        .collect()
}

#[tokio::test]
async fn feedback_and_its_duel_share_a_number_in_the_log() {
    let database = fresh_database(Kind::Sqlite).await;
    let mut command = rankduel(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.args(["--database-url", &database.url, "--log", "info,rankduel::duels=debug"]);
    let process = Process::start(command);
    let client = Client::new(&process.url);
    client.create(&steady("search", &["a", "b"])).await;

    // The duel has one trace, its feedback another.
    let duel = client
        .send(
            "POST",
            "/v1/experiments/search/next-duel",
            &[("traceparent", &traceparent(DUELS_TRACE))],
            vec![],
        )
        .await
        .json(200);
    let send = async |route: &str, body: Value| {
        let path = format!("/v1/experiments/search/{route}");
        let headers = [JSON, ("traceparent", &*traceparent(FEEDBACKS_TRACE))];
        client.send("POST", &path, &headers, body.to_string().into_bytes()).await
    };
    // The page gives the same duel another `duel_id`.
    let rankings =
        json!({"duel_id": duel["duel_id"], "left": ["1", "2"], "right": ["2", "1"], "length": 2});
    let page = send("interleave", rankings).await.json(200);
    send("feedback", json!({"duel_id": page["duel_id"], "clicks": [0]})).await.json(200);
    send("feedback", json!({"duel_id": duel["duel_id"], "outcome": "none"})).await;
    // Two duels in one request, one of them twice, and one invalid item.
    let more = [client.next_duel("search").await, client.next_duel("search").await];
    let answer = |duel: &Value| json!({"duel_id": duel["duel_id"], "outcome": "left"});
    let many = [
        answer(&more[0]),
        answer(&more[1]),
        answer(&more[0]),
        json!({"duel_id": "AAAA", "outcome": "left"}),
    ];
    send("feedback", json!({"feedback": many})).await.json(200);
    send("feedback", json!({"duel_id": "AAAA", "outcome": "left"})).await;
    process.signal("TERM");
    let (_, log) = process.wait();
    let log: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();

    let issued = lines(&log, "next-duel");
    let number = issued[0]["duel"].as_str().expect("a duel");
    assert_eq!(issued[0]["trace_id"], DUELS_TRACE);
    assert_eq!(number.len(), 32, "{number}");
    let feedback = lines(&log, "feedback");
    for line in [&lines(&log, "interleave")[0], &feedback[0], &feedback[1]] {
        assert_has(line, json!({"duel": number, "trace_id": FEEDBACKS_TRACE}));
    }
    assert_eq!(feedback[1]["status"], 409, "refused feedback names its duel too");
    // A refused request says why, and of which experiment.
    for (line, kind) in [(feedback[1], "feedback-conflict"), (feedback[3], "invalid-duel")] {
        assert_eq!(line["experiment"], "search", "{line}");
        assert!(line["type"].as_str().is_some_and(|uri| uri.ends_with(kind)), "{line}");
    }
    assert_eq!((feedback[0].get("type"), feedback[0].get("experiment")), (None, None));
    // A request with several duels logs their number, and a line for each.
    assert_eq!((feedback[2].get("duel"), &feedback[2]["duels"]), (None, &json!(2)));
    let each: Vec<_> = log.iter().filter(|line| line["target"] == "rankduel::duels").collect();
    let numbers: Vec<_> = each.iter().map(|line| &line["duel"]).collect();
    assert_eq!(numbers, [&issued[1]["duel"], &issued[2]["duel"]]);
    assert!(each.iter().all(|line| line["request_id"] == feedback[2]["request_id"]));
    assert!(each.iter().all(|line| line["trace_id"] == FEEDBACKS_TRACE));
    // An unsigned id names no duel.
    assert_eq!((feedback[3].get("duel"), feedback[3].get("duels")), (None, None));

    // The exported log has the same number.
    let (code, exported, error) =
        outcome(rankduel(&["export", "search", "--database-url", &database.url]));
    assert_eq!(code, Some(0), "{error}");
    assert!(exported.contains(number), "{number}: {exported}");
}

/// A build without the feature logs this once, and serves.
#[cfg(not(feature = "otel"))]
#[tokio::test]
async fn a_build_without_the_export_logs_so() {
    let database = fresh_database(Kind::Sqlite).await;
    let warnings = async |variable: Option<&str>| {
        let mut command =
            rankduel(&["serve", "--listen", "127.0.0.1:0", "--database-url", &database.url]);
        command.envs(variable.map(|name| (name, "http://127.0.0.1:4318")));
        let process = Process::start(command);
        assert_eq!(Client::new(&process.url).get("/readyz").await.status, 200);
        let log = process.stop();
        log.lines().filter(|line| line.contains("no spans are exported")).count()
    };
    assert_eq!(warnings(None).await, 0);
    assert_eq!(warnings(Some("OTEL_EXPORTER_OTLP_ENDPOINT")).await, 1);
    assert_eq!(warnings(Some("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")).await, 1);
}
