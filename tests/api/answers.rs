//! One answer: badge, list, page, `/verdict`, webhook and metrics of every pair of parts say the
//! same, in every state.

use std::collections::HashMap;
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

use super::webhook::{Got, notify, receive};
use crate::support::TestDatabase;
use crate::support::client::{Answer, Client, eventually, with};
use crate::support::service::{START_MS, Server, Settings};

on_sqlite! {
    every_pair_of_parts_has_one_answer
    an_alarm_of_one_server_outlives_it
    a_service_that_refuses_answers_says_so
    an_experiment_that_nobody_watches_is_said_to_be_so
}

on_both_databases! {
    two_servers_keep_one_answer
}

/// Duels of each experiment; more where a claim takes longer.
const DUELS: usize = 90;
const MORE_DUELS: [(&str, usize); 2] = [("drift-drift", 700), ("segments-segments", 600)];

/// The parts of an experiment, each with the settings that make it say something.
fn parts() -> Vec<(&'static str, Value)> {
    let limit =
        |limit, on_harm| json!([{"name": "failed", "cap": 1, "limit": limit, "on_harm": on_harm}]);
    vec![
        ("control", json!({"control": "c"})),
        ("segments", json!({"segments": ["mobile", "desktop"]})),
        ("drift", json!({"drift": "tell"})),
        ("guardrails", json!({"metrics": limit(0.02, "tell"), "value_window_seconds": 60})),
        ("pausing", json!({"metrics": limit(0.2, "pause"), "value_window_seconds": 60})),
        ("alone", json!({"control": "c", "coverage": 0.8, "alone": 0.2})),
        ("canary", json!({"rankers": ["a", "b", "c", "twin"], "canary": ["b", "twin"]})),
        ("batches", json!({"policy": {"kind": "pcomp", "horizon": 20_000}})),
        ("clicks", json!({"interleaving": {"kind": "team-draft"}})),
        ("refused", json!({})),
        ("waits", json!({"answer_window_seconds": 600, "duel_ttl_seconds": 600})),
        (
            "orders",
            json!({
                "rankers": ["b", "c"], "answer_window_seconds": 60,
                "decide_by": {"event": "order", "window_seconds": 60, "arrival_seconds": 0},
            }),
        ),
    ]
}

fn text(answer: &Answer) -> String {
    let html = answer.text();
    let main = html.split_once("<main").map_or(&*html, |(_, main)| main);
    plain(main)
}

/// The text of HTML, with names as the API writes them, in backticks.
fn plain(html: &str) -> String {
    let html = html.replace("<code>", "`").replace("</code>", "`");
    let pieces = html.split('<').map(|it| it.split_once('>').map_or(it, |(_, text)| text));
    let text = pieces.collect::<String>().replace(['\u{202f}', '\u{a0}'], " ");
    text.replace("&gt;", ">").replace("&quot;", "\"").replace("&lt;", "<")
}

/// The first element after `start` that begins so, up to its end.
fn element<'a>(html: &'a str, begins: &str, ends: &str) -> &'a str {
    let (_, rest) = html.split_once(begins).unwrap_or_else(|| panic!("no {begins}: {html}"));
    rest.split(ends).next().expect("a part")
}

fn badge(state: &str) -> &'static str {
    match state {
        "harm" | "alarm" => "Look into it",
        "open-limit" => "Decided, limit open",
        "doubt" => "Decided, in doubt",
        "not-watched" => "Decided, not watched",
        "segment" | "result" => "Decided",
        "stopped" => "Stopped",
        "paused" => "Paused",
        "waiting" => "Waiting",
        "leader" => "Running",
        "empty" => "No result yet",
        "archived" => "Archived",
        other => panic!("{other}"),
    }
}

/// Answer duels: the first ranker in the alphabet wins, on the desktop the last one. Later on,
/// where drift is looked for, all is turned around.
async fn play(server: &Server, name: &str, parts: [&str; 2]) {
    let has = |part| parts.contains(&part);
    let more = MORE_DUELS.iter().find(|(of, _)| *of == name);
    let duels = more.map_or(DUELS, |(_, duels)| *duels);
    for _ in 0..if has("refused") { 60 } else { 0 } {
        let body = json!({"duel_id": "nobody's", "outcome": "left"});
        server.post(&format!("/v1/experiments/{name}/feedback"), &body).await;
    }
    for number in 0..duels {
        let is_desktop = number % 5 == 0;
        let body = json!({
            "segment": if is_desktop { "desktop" } else { "mobile" }, "unit": format!("u{number}"),
        });
        let duel = server.post(&format!("/v1/experiments/{name}/next-duel"), &body).await.json(200);
        let [left, right] = ["left", "right"].map(|side| duel[side].as_str().expect("an id"));
        let turned = (has("drift") && number > duels / 2) || (has("segments") && is_desktop);
        let left_wins = (left < right) != turned;
        let mut body = json!({"duel_id": duel["duel_id"]});
        let mut bought = None;
        if (has("clicks") || has("orders")) && left != right {
            let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
            let page = json!({"duel_id": duel["duel_id"], "left": of(left), "right": of(right), "length": 4});
            let path = format!("/v1/experiments/{name}/interleave");
            let page = server.post(&path, &page).await.json(200);
            let winner = if left_wins { left } else { right };
            let is_own =
                |slot: &Value| slot["document"].as_str().is_some_and(|id| id.starts_with(winner));
            let slot = page["slots"].as_array().and_then(|slots| slots.iter().position(is_own));
            let slot = slot.unwrap_or(0);
            body = json!({"duel_id": page["duel_id"], "clicks": [slot]});
            bought = Some(page["slots"][slot]["document"].clone()).filter(|_| has("orders"));
        } else {
            body["outcome"] = json!(if left == right {
                "none"
            } else if left_wins {
                "left"
            } else {
                "right"
            });
        }
        if has("guardrails") || has("pausing") {
            let value = |id: &str| json!({"failed": u8::from(id == "b" && has("pausing"))});
            body["metrics"] = json!({left: value(left), right: value(right)});
        }
        if duel["duel_id"] != "" {
            server.post(&format!("/v1/experiments/{name}/feedback"), &body).await;
        }
        if let Some(document) = bought {
            let order = json!({
                "order_id": format!("o{number}"), "unit": format!("u{number}"),
                "at": rankduel_engine::clock::rfc3339(START_MS), "lines": [{"document": document}],
            });
            let path = format!("/v1/experiments/{name}/orders");
            server.post(&path, &json!({"orders": [order]})).await.json(200);
        }
    }
}

/// The words of everybody about each experiment, once the stored answers are those of the state.
struct Said {
    /// The rows of the list by name.
    rows: HashMap<String, (String, String)>,
    metrics: String,
    state: &'static str,
}

impl Said {
    async fn by(server: &Client, state: &'static str) -> Self {
        let list = server.get("/").await.text();
        let rows = list.split("<tr>").filter_map(|row| {
            let name = row.split("href=\"/experiments/").nth(1)?.split('"').next()?;
            let badge = plain(element(row, "<span class=\"badge", "</span>"));
            let headline = plain(element(row, "<td class=\"result\"", "</td>"));
            Some((name.to_owned(), (badge, headline)))
        });
        let rows = rows.collect();
        Self { rows, metrics: server.get("/metrics").await.text(), state }
    }

    /// Check one experiment, whose answer this is.
    async fn check(&self, server: &Client, name: &str, answer: &Value) {
        let at = format!("{name}, {}", self.state);
        let [state, headline] = ["state", "headline"].map(|it| answer[it].as_str().expect("text"));
        let verdict = server.verdict(name).await;
        let said = |it: &Value| (it["state"].clone(), it["headline"].clone(), it["about"].clone());
        assert_eq!(said(&verdict["answer"]), said(answer), "{at}");
        let sentence = verdict["sentence"].as_str().expect("a sentence");
        assert!(sentence.starts_with(headline), "{at}: {sentence}");

        let page = server.get(&format!("/experiments/{name}")).await;
        assert_eq!(page.status, 200, "{at}: {}", page.text());
        let html = page.text();
        let shown = plain(element(&html, "<span class=\"badge", "</span>"));
        assert!(shown.ends_with(badge(state)), "{at}: {shown}");
        let title = plain(element(&html, "<h2 id=\"say\">", "</h2>"));
        assert!(title.starts_with(headline), "{at}: {title}, {headline}");
        if state == "archived" {
            assert!(!self.rows.contains_key(name), "{at}");
        } else {
            let (shown, row) = &self.rows[name];
            assert!(shown.ends_with(badge(state)), "{at}: {shown}");
            assert!(row.contains(headline), "{at}: {row}, {headline}");
        }
        let line = format!("rankduel_experiment_state{{experiment=\"{name}\",state=\"");
        let gauges: Vec<_> = self.metrics.lines().filter(|it| it.starts_with(&line)).collect();
        // archived experiments have no series
        let expected = (state != "archived").then(|| format!("{line}{state}\"}} 1"));
        assert_eq!(gauges, Vec::from_iter(expected.as_deref()), "{at}");

        // what is proposed is proven
        let claims = server.report(name, "claims").await;
        let text = text(&page);
        let ships = headline.starts_with("Ship ") || text.contains("Ship a…");
        let winner = &verdict["winners"][0];
        let claims = claims["claims"].as_array().expect("claims").iter();
        let of_winner = claims.filter(|it| it["ranker"] == *winner);
        let is_open =
            |kind| of_winner.clone().any(|it| it["claim"] == kind && it["state"] != "decided");
        if ships {
            assert_eq!(verdict["state"], "decided", "{at}");
            assert!(!is_open("safe") && !is_open("better"), "{at}: {headline}");
            assert_eq!(answer["doubts"], json!([]), "{at}");
            assert!(!headline.contains("not proven"), "{at}: {headline}");
        }
        if let Some(hurt) = verdict["segments"]["hurt"][0].as_str().filter(|_| ships) {
            assert!(headline.contains(&format!("not in `{hurt}`")), "{at}: {headline}");
        }
    }
}

/// The answer that is stored, once it is what the server finds.
async fn settled(server: &Client, name: &str, wanted: &str) -> Value {
    eventually(name, async || {
        let experiment = server.experiment(name).await;
        let found = server.verdict(name).await["answer"].clone();
        let is_same = ["state", "headline", "about", "doubts"]
            .iter()
            .all(|member| experiment["answer"][member] == found[member]);
        let is_there = match wanted {
            "archived" => found["state"] == "archived",
            wanted => experiment["status"] == wanted,
        };
        (is_same && is_there && !found.is_null()).then_some(found)
    })
    .await
}

/// The newest notice of each experiment.
fn collect(got: &Receiver<Got>, notices: &mut HashMap<String, Value>) {
    while let Ok(notice) = got.try_recv() {
        let body = notice.json();
        assert_eq!(body["event"], "answer");
        notices.insert(body["experiment"].as_str().expect("a name").to_owned(), body);
    }
}

async fn every_pair_of_parts_has_one_answer(database: TestDatabase) {
    let (url, got) = receive(&["204 No Content"]);
    let server = Server::with(database.store().await, Settings::quick()).await;
    notify(&server, &url);
    let (parts, mut names) = (parts(), Vec::new());
    for (first, (one, of_one)) in parts.iter().enumerate() {
        for (other, of_other) in &parts[first..] {
            let name = format!("{one}-{other}");
            let mut body = with(
                json!({
                    "name": name, "rankers": ["a", "b", "c"], "seed": 7, "answer_window_seconds": 0,
                    "conclude_at": "never", "watch": 0.0, "policy": {"kind": "uniform"},
                }),
                of_one.clone(),
            );
            body = with(body, of_other.clone());
            let created = server.post("/v1/experiments", &body).await;
            if created.status == 201 {
                play(&server, &name, [one, other]).await;
                names.push(name);
            }
        }
    }
    assert!(names.len() > 45, "{names:?}");
    server.clock.advance_ms(120_000);

    for name in names.iter().filter(|it| it.contains("guardrails") || it.contains("pausing")) {
        // the values of all pages, and what they prove
        eventually(name, async || {
            let claims = server.report(name, "claims").await["claims"].clone();
            let of_harm = claims.as_array().expect("claims").iter();
            let mut of_harm = of_harm.filter(|claim| claim["claim"] == "harm");
            let is_there = match name.contains("pausing") {
                true => of_harm.any(|claim| claim["state"] == "decided"),
                false => of_harm.all(|claim| claim["metric"]["pages"] != 0),
            };
            is_there.then_some(())
        })
        .await;
    }

    let mut notices = HashMap::new();
    let mut states: Vec<String> = Vec::new();
    let mut seen = HashMap::new();
    for (status, change) in [
        ("running", None),
        ("paused", Some(json!({"status": "paused"}))),
        ("concluded", Some(json!({"status": "concluded"}))),
        ("archived", None),
    ] {
        for name in &names {
            if let Some(change) = &change {
                server.patch(name, change).await.json(200);
            } else if status == "archived" {
                let path = format!("/v1/experiments/{name}");
                assert_eq!(server.send("DELETE", &path, &[], Vec::new()).await.status, 204);
            }
        }
        let mut answers = Vec::new();
        for name in &names {
            // a guardrail may have paused it before
            let is = server.experiment(name).await["status"].as_str().expect("a status").to_owned();
            let wanted = if status == "archived" { "archived" } else { &is };
            answers.push(settled(&server, name, wanted).await);
        }
        let said = Said::by(&server, status).await;
        for (name, answer) in names.iter().zip(&answers) {
            said.check(&server, name, answer).await;
            states.push(answer["state"].as_str().expect("a state").to_owned());
        }
        // one that has loaded nothing knows the same, and finds the same
        let restarted = Server::with(database.connect().await, Settings::quick()).await;
        restarted.clock.advance_ms(120_000);
        let list = Said::by(&restarted, "restarted").await.rows;
        assert_eq!(list, said.rows, "{status}");
        for (name, answer) in names.iter().zip(&answers).step_by(7) {
            let found = &restarted.verdict(name).await["answer"];
            assert_eq!(found["headline"], answer["headline"], "{name} {status}, restarted");
            assert_eq!((&found["state"], &found["since"]), (&answer["state"], &answer["since"]));
        }
        restarted.stop().await;
        let news = ["harm", "alarm", "open-limit", "doubt", "segment", "result", "stopped"];
        for (name, answer) in names.iter().zip(&answers) {
            if !news.iter().any(|state| answer["state"] == *state) {
                continue;
            }
            let notice = eventually("the notice", async || {
                collect(&got, &mut notices);
                let notice = notices.get(name)?;
                (notice["status"] == status || status == "running").then(|| notice.clone())
            })
            .await;
            let told = &notice["answer"];
            assert_eq!(
                (&told["state"], &told["about"]),
                (&answer["state"], &answer["about"]),
                "{name}"
            );
        }
        seen.insert(status, answers);
    }
    for state in
        ["harm", "alarm", "open-limit", "segment", "result", "stopped", "leader", "archived"]
    {
        assert!(states.iter().any(|found| found == state), "no {state}: {states:?}");
    }
}

async fn two_servers_keep_one_answer(database: TestDatabase) {
    let first = Server::with(database.store().await, Settings::quick()).await;
    let second = Server::with(database.connect().await, Settings::quick()).await;
    let body = json!({
        "name": "search", "rankers": ["a", "b"], "seed": 7, "answer_window_seconds": 0,
        "conclude_at": "never", "policy": {"kind": "uniform"},
    });
    first.create(&body).await;
    second.experiment("search").await;
    for number in 0..120 {
        let server = if number % 2 == 0 { &first } else { &second };
        let duel = server.pair("search").await;
        server.first_wins("search", &duel).await;
    }
    let here = settled(&first, "search", "running").await;
    let there = settled(&second, "search", "running").await;
    assert_eq!((&here["state"], &here["headline"]), (&json!("result"), &json!("Ship `a`.")));
    assert_eq!(here, there, "also since when");
    let [stored] = &database.texts("select answer from experiment".to_owned()).await[..] else {
        panic!("one experiment")
    };
    let stored: Value = serde_json::from_str(stored.as_deref().expect("an answer")).expect("JSON");
    assert_eq!(stored["answer"], here);
    let row = first.list(10).await[0][0].clone();
    assert_eq!((&row["answer"], &row["version"]), (&here, &json!(1)), "no change of the record");
}

async fn an_alarm_of_one_server_outlives_it(database: TestDatabase) {
    let body = json!({
        "name": "search", "rankers": ["a", "b"], "answer_window_seconds": 0,
        "conclude_at": "never",
    });
    let first = Server::with(database.store().await, Settings::quick()).await;
    first.create(&body).await;
    for _ in 0..60 {
        first.feedback("search", &json!({"duel_id": "nobody's", "outcome": "left"})).await;
    }
    let kinds = |answer: &Value| -> Vec<Value> {
        let alarms = answer["alarms"].as_array().expect("alarms").iter();
        alarms.map(|alarm| alarm["kind"].clone()).collect()
    };
    first.clock.advance_ms(20_000);
    let answer = eventually("the alarm", async || {
        let answer = first.experiment("search").await["answer"].clone();
        (answer["state"] == "alarm").then_some(answer)
    })
    .await;
    assert_eq!(kinds(&answer), [json!("invalid-feedback")]);
    first.stop().await;
    // another one has not seen the feedback
    let second = Server::with(database.connect().await, Settings::quick()).await;
    second.clock.advance_ms(30_000);
    let found = second.verdict("search").await["answer"].clone();
    assert_eq!((kinds(&found), &found["since"]), (kinds(&answer), &answer["since"]));
    assert!(text(&second.get("/experiments/search").await).contains("Much feedback is refused"));
    second.clock.advance_ms(16 * 60_000);
    eventually("the end of the alarm", async || {
        let answer = second.experiment("search").await["answer"].clone();
        (answer["state"] == "empty" && kinds(&answer).is_empty()).then_some(())
    })
    .await;
}

async fn a_service_that_refuses_answers_says_so(database: TestDatabase) {
    use crate::support::failing_store::{FailingStore, Mode};
    let store = FailingStore::new(database.store().await);
    let server = Server::with(store.clone(), Settings::quick()).await;
    let body = json!({"name": "search", "rankers": ["a", "b"], "conclude_at": "never"});
    server.create(&body).await;
    server.verdict("search").await;
    store.set(Mode::FailsBefore);
    let page = eventually("the refusal", async || {
        let page = text(&server.get("/experiments/search").await);
        page.contains("The service refuses answers: the database does not answer.").then_some(page)
    })
    .await;
    assert!(page.contains("Refused since "), "{page}");
    assert_eq!(server.verdict("search").await["answer"]["state"], "refused");
    store.set(Mode::Fine);
    eventually("the recovery", async || {
        (server.verdict("search").await["answer"]["state"] == "empty").then_some(())
    })
    .await;
}

async fn an_experiment_that_nobody_watches_is_said_to_be_so(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let body = json!({
        "name": "search", "rankers": ["a", "b"], "answer_window_seconds": 0,
        "conclude_at": "never", "watch": 0.0, "policy": {"kind": "uniform"},
    });
    server.create(&body).await;
    for _ in 0..80 {
        server.first_wins("search", &server.pair("search").await).await;
    }
    server.patch("search", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    assert_eq!(server.verdict("search").await["answer"]["headline"], "Ship `a`.");
    server.clock.advance_ms(5 * 86_400_000);
    let answer = eventually("the end of the watch", async || {
        let answer = server.experiment("search").await["answer"].clone();
        (answer["state"] == "not-watched").then_some(answer)
    })
    .await;
    let wanted = "`a` won. Not watched since 21 Sep 2026: no rankers have met.";
    assert_eq!(answer["headline"], wanted);
    let page = text(&server.get("/experiments/search").await);
    assert!(page.contains("Not watched since the end") && !page.contains("No change found"));
    assert!(!page.contains("Ship"), "{page}");
}
