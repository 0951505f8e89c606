//! The list of experiments, on the dashboard and in the API: from what is stored, without loading
//! any.

use std::collections::BTreeMap;
use std::time::Duration;

use rankduel::http::ProblemKind;
use rankduel_engine::access::Scope;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady, with};
use crate::support::failing_store::{FailingStore, Mode};
use crate::support::service::{Server, Settings, key};

on_both_databases! {
    the_dashboard_lists_all_experiments_by_group_after_a_restart
    a_list_is_filtered
    a_key_lists_only_its_own_experiments
    paging_goes_on_while_experiments_change
    what_was_due_while_no_server_ran_is_done_at_the_start
}

on_sqlite! {
    the_lead_over_the_control_is_in_its_row
    an_error_of_a_page_is_a_page
}

const DAY_MS: i64 = 86_400_000;

/// A row of the list, without its marks.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    cells: String,
}

/// The rows of a page by the titles of their groups, in order.
fn groups(html: &str) -> Vec<(String, Vec<Row>)> {
    let sections = html.split("<section class=\"list\">").skip(1);
    let of_section = |section: &str| {
        let title = plain(section.split("</h2>").next().expect("a title"));
        let rows = section.split("<tr>").filter(|row| row.contains("scope=\"row\""));
        let rows = rows.map(|row| Row {
            name: row
                .split("/experiments/")
                .nth(1)
                .and_then(|it| it.split('"').next())
                .map(str::to_owned)
                .expect("a link"),
            cells: plain(row.split("</tr>").next().expect("a row")),
        });
        (title, rows.collect())
    };
    sections.map(of_section).collect()
}

fn plain(html: &str) -> String {
    let pieces = html.split('<').map(|it| it.split_once('>').map_or(it, |(_, text)| text));
    pieces.collect::<Vec<_>>().join(" ").replace(['\u{a0}', '\u{202f}'], " ")
}

/// Titles and names of the rows.
fn names(html: &str) -> Vec<(String, Vec<String>)> {
    let of_group = |(title, rows): (String, Vec<Row>)| {
        (title.trim().to_owned(), rows.into_iter().map(|row| row.name).collect())
    };
    groups(html).into_iter().map(of_group).collect()
}

/// The address of a link with this text.
fn link(html: &str, text: &str) -> Option<String> {
    let before = html.split(&format!("\">{text}")).next().filter(|it| it.len() < html.len())?;
    Some(before.rsplit("href=\"").next()?.replace("&amp;", "&"))
}

async fn list(client: &Client, path: &str) -> String {
    let answer = client.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

/// The first ranker wins all of these duels.
async fn play(server: &Server, name: &str, duels: usize) {
    for _ in 0..duels {
        server.first_wins(name, &server.pair(name).await).await;
    }
}

/// The same of an experiment that may conclude meanwhile, and then issues no more duels.
async fn play_at_once(server: &Server, name: &str, duels: usize) {
    let mut answers = Vec::new();
    for _ in 0..duels {
        let duel = server.pair(name).await;
        let outcome = if duel["left"] == "a" { "left" } else { "right" };
        answers.push(json!({"duel_id": duel["duel_id"], "outcome": outcome}));
    }
    server.feedback(name, &json!({"feedback": answers})).await.json(200);
}

/// Wait until the stored answer has this state.
async fn stored(server: &Server, name: &str, state: &str) {
    eventually(state, async || {
        let answer = server.experiment(name).await["answer"].clone();
        (answer["state"] == state).then_some(())
    })
    .await;
}

fn counting(name: &str, rankers: &[&str]) -> Value {
    with(steady(name, rankers), json!({"answer_window_seconds": 0}))
}

/// An experiment whose alarm is on: much of its feedback is refused.
async fn create_alarming(server: &Server, name: &str) {
    let uniform = json!({"policy": {"kind": "uniform"}});
    server.create(&with(counting(name, &["a", "b"]), uniform)).await;
    for _ in 0..60 {
        server.feedback(name, &json!({"duel_id": "nobody's", "outcome": "left"})).await;
    }
    server.clock.advance_ms(20_000);
    stored(server, name, "alarm").await;
}

async fn the_dashboard_lists_all_experiments_by_group_after_a_restart(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    for number in 0..101 {
        let body = with(
            counting(&format!("calm-{number:03}"), &["a", "b"]),
            json!({"owner": if number == 7 { "Ops \u{202e}team" } else { "" }}),
        );
        server.create(&body).await;
    }
    server.create(&counting("won", &["a", "b"])).await;
    play(&server, "won", 60).await;
    stored(&server, "won", "result").await;
    server.create(&counting("ended", &["a", "b"])).await;
    server.patch("ended", &json!({"status": "concluded"})).await.json(200);
    server.create(&counting("gone", &["a", "b"])).await;
    server.patch("gone", &json!({"status": "concluded"})).await.json(200);
    assert_eq!(server.send("DELETE", "/v1/experiments/gone", &[], Vec::new()).await.status, 204);
    create_alarming(&server, "zz-alarm").await;
    let before = list(&server, "/").await;
    server.stop().await;

    let server = Server::with(database.connect().await, Settings::quick()).await;
    server.clock.advance_ms(60_000);
    let first = list(&server, "/").await;
    let calm: Vec<String> = (0..101).map(|number| format!("calm-{number:03}")).collect();
    let group = |title: &str, names: &[&str]| {
        (title.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    let wanted = [
        group("Look into it", &["zz-alarm"]),
        group("Needs a decision", &["ended", "won"]),
        ("Going on".to_owned(), calm[..97].to_vec()),
    ];
    assert_eq!(names(&first), wanted);
    assert_eq!(names(&before), wanted, "as before the restart");
    let rows = |html: &str| -> BTreeMap<String, String> {
        let rows = groups(html).into_iter().flat_map(|(_, rows)| rows);
        rows.map(|row| (row.name, row.cells)).collect()
    };
    let shown = rows(&first);
    assert!(shown["zz-alarm"].contains("Much feedback is refused"), "{shown:?}");
    assert!(shown["won"].contains("Ship  a ."), "{shown:?}");
    assert!(shown["calm-007"].contains("Ops \u{202e}team"), "{shown:?}");
    assert!(first.contains("<bdi class=\"owner\">Ops"), "its direction turns nothing around it");
    assert!(shown.values().all(|cells| cells.contains("14:13 UTC")), "since when: {shown:?}");
    let text = plain(&first);
    for part in [
        "104 experiments",
        "Look into it 1",
        "Going on 101",
        "Needs a decision 2",
        "1 to 100 of 104, page 1 of 2",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let next = link(&first, "Next page").expect("a next page");
    let second = list(&server, &next).await;
    let rest = [("Going on".to_owned(), calm[97..].to_vec())];
    assert_eq!(names(&second), rest);
    let text = plain(&second);
    assert!(text.contains("101 to 104 of 104, page 2 of 2"), "{text}");
    assert!(text.contains("Look into it 1"), "alarms are seen on each page: {text}");
    assert_eq!(link(&second, "Next page"), None);
    assert_eq!(names(&list(&server, &link(&second, "First page").expect("a link")).await), wanted);
    // the start of a group
    let running = list(&server, &link(&first, "Going on 101").expect("a link")).await;
    assert_eq!(names(&running), [("Going on".to_owned(), calm[..100].to_vec())]);
    let api = server.list(50).await;
    assert_eq!(api.concat().len(), 104);
    assert!(server.service.loaded().is_empty(), "nothing was loaded");
    server.stop().await;
}

async fn a_list_is_filtered(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    for (name, owner) in [("checkout", "Search-Team"), ("search", "ops"), ("other", "")] {
        let body = with(counting(name, &["a", "b"]), json!({"owner": owner}));
        server.create(&body).await;
    }
    server.patch("other", &json!({"status": "concluded"})).await.json(200);
    create_alarming(&server, "loud").await;
    // whatever else holds of it
    server.patch("loud", &json!({"status": "paused"})).await.json(200);
    server.create(&counting("gone", &["a", "b"])).await;
    server.patch("gone", &json!({"status": "concluded"})).await.json(200);
    let gone = server.send("DELETE", "/v1/experiments/gone", &[], Vec::new()).await;
    assert_eq!(gone.status, 204);
    for (query, found) in [
        ("", &["checkout", "loud", "other", "search"][..]),
        ("search=SEARCH", &["checkout", "search"]),
        ("search=ops", &["search"]),
        ("search=%20ops%20", &["search"]),
        ("search=out", &["checkout"]),
        ("search=%25", &[]),
        ("state=alarm", &["loud"]),
        ("state=harm,alarm,stopped", &["loud", "other"]),
        ("state=empty&search=team", &["checkout"]),
        ("state=paused", &["loud"]),
        ("state=running", &["checkout", "search"]),
        ("state=concluded", &["other"]),
        ("state=archived", &["gone"]),
        ("state=archived&search=ops", &[]),
        ("state=stopped,archived", &["gone", "other"]),
    ] {
        let page = server.get(&format!("/v1/experiments?{query}")).await.json(200);
        let names: Vec<_> = page["experiments"]
            .as_array()
            .expect("a page")
            .iter()
            .map(|it| it["name"].as_str().expect("a name"))
            .collect();
        assert_eq!((names, &page["total"]), (found.to_vec(), &json!(found.len())), "{query}");
        let html = list(&server, &format!("/?{query}")).await;
        let mut shown: Vec<_> =
            groups(&html).into_iter().flat_map(|(_, rows)| rows).map(|row| row.name).collect();
        shown.sort_unstable();
        assert_eq!(shown, found, "{query}");
        let count = if found.len() == 1 {
            "1 experiment ".to_owned()
        } else {
            format!("{} experiments", found.len())
        };
        assert!(plain(&html).contains(&count), "{query}: {}", plain(&html));
    }
    let archived = list(&server, "/?state=archived").await;
    let text = plain(&archived).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("gone Archived The experiment was ended"), "its badge: {text}");
    // one page each, with the filter in the cursor's query
    let page = server.get("/v1/experiments?limit=1&search=search").await.json(200);
    let next = page["next"].as_str().expect("a next page");
    let second =
        server.get(&format!("/v1/experiments?limit=1&search=search&cursor={next}")).await.json(200);
    assert_eq!(
        (&second["experiments"][0]["name"], &second["total"]),
        (&json!("search"), &json!(2))
    );
    // the form keeps what was asked for
    let html = list(&server, "/?search=%22o%3C&state=paused").await;
    assert!(html.contains("value=\"&quot;o&lt;\""), "{html}");
    assert!(html.contains("<option value=\"paused\" selected>"), "{html}");
    assert!(html.contains("<option value=\"harm,alarm\">Look into it"), "{html}");
    assert_eq!(names(&list(&server, "/?search=&state=&after=").await).len(), 3);

    let long = "x".repeat(101);
    for (query, name, part) in [
        ("state=decided", "state", "unknown variant `decided`"),
        ("state=", "state", "unknown variant"),
        ("state=alarm,", "state", "unknown variant"),
        (&*format!("search={long}"), "search", "101 characters"),
        ("search=%00", "search", "NUL"),
        ("cursor=!", "cursor", "not from this list"),
        ("owner=ops", "owner", "unknown field"),
    ] {
        let answer = server.get(&format!("/v1/experiments?{query}")).await;
        let problem = answer.problem_saying(ProblemKind::InvalidRequest, part);
        assert_eq!(problem["errors"][0]["name"], name, "{query}");
        let query = query.replace("cursor", "after");
        if query != "state=" && !query.starts_with("owner") {
            let page = server.get(&format!("/?{query}")).await;
            assert_eq!(page.status, 422, "{query}: {}", page.text());
            assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        }
    }
}

async fn a_key_lists_only_its_own_experiments(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    for name in ["a", "ab", "b", "c"] {
        server.create(&counting(name, &["a", "b"])).await;
    }
    server.stop().await;
    let store = database.connect().await;
    let (text, _) = key(&store, &[Scope::Read], Some(&["ab", "c", "none"])).await;
    let server = Server::with(store, Settings::quick()).await;
    let own = Client::with_key(server.base(), Some(&text));
    let page = own.get("/v1/experiments?limit=1").await.json(200);
    assert_eq!((&page["experiments"][0]["name"], &page["total"]), (&json!("ab"), &json!(2)));
    assert_eq!(
        names(&list(&own, "/").await),
        [("Going on".to_owned(), vec!["ab".to_owned(), "c".into()])]
    );
    let found = list(&own, "/?search=b").await;
    assert!(plain(&found).contains("1 experiment found"), "{}", plain(&found));
    assert_eq!(own.get("/v1/experiments?search=a&state=harm").await.json(200)["total"], 0);
}

/// An experiment that is there all the time is on one page of the API, whatever happens meanwhile.
async fn paging_goes_on_while_experiments_change(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let name = |number: usize| format!("e-{number:02}");
    for number in 0..24 {
        server.create(&counting(&name(number), &["a", "b"])).await;
    }
    let (mut seen, mut next, mut round) = (Vec::new(), String::new(), 0);
    loop {
        let page = server.get(&format!("/v1/experiments?limit=4{next}")).await.json(200);
        let rows = page["experiments"].as_array().expect("a page").iter();
        seen.extend(rows.map(|it| it["name"].as_str().expect("a name").to_owned()));
        let Some(cursor) = page["next"].as_str() else { break };
        next = format!("&cursor={cursor}");
        // behind the cursor and before it, experiments come, change and go
        server.create(&counting(&format!("d-{round}"), &["a", "b"])).await;
        server.create(&counting(&format!("e-{:02}x", 4 * round + 9), &["a", "b"])).await;
        for number in [round, 23 - round] {
            server.patch(&name(number), &json!({"status": "concluded"})).await.json(200);
        }
        let path = format!("/v1/experiments/{}", name(round));
        assert_eq!(server.send("DELETE", &path, &[], Vec::new()).await.status, 204);
        round += 1;
    }
    let mut sorted = seen.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted, seen, "each once, in order");
    assert!((0..24).all(|number| seen.contains(&name(number))), "{seen:?}");
}

async fn the_lead_over_the_control_is_in_its_row(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let body = with(counting("search", &["a", "b"]), json!({"control": "b"}));
    server.create(&body).await;
    server.create(&counting("plain", &["a", "b"])).await;
    play(&server, "search", 150).await;
    server.clock.advance_ms(6 * 60_000);
    let shown = eventually("the lead", async || {
        let rows = groups(&list(&server, "/").await).into_iter().flat_map(|(_, rows)| rows);
        let row = rows.filter(|row| row.name == "search").map(|row| row.cells).next()?;
        row.contains("+50.0").then_some(row)
    })
    .await;
    assert!(shown.contains("at least  +") || shown.contains("at least +"), "{shown}");
    server.stop().await;
    // also where nothing is loaded
    let server = Server::with(database.connect().await, Settings::quick()).await;
    let html = list(&server, "/").await;
    assert!(plain(&html).contains("+50.0"), "{html}");
    assert!(server.service.loaded().is_empty());
}

async fn what_was_due_while_no_server_ran_is_done_at_the_start(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let conclude = |at: Value| json!({"conclude_at": at, "watch": 0});
    for (name, at) in [
        ("most-days", json!({"max_days": 2})),
        ("least-days", json!({"min_days": 1})),
        ("changed", json!({"max_days": 900})),
        ("later", json!({"max_days": 30})),
    ] {
        server.create(&with(counting(name, &["a", "b"]), conclude(at))).await;
    }
    server.patch("changed", &json!({"conclude_at": {"max_days": 1}})).await.json(200);
    server.create(&counting("calm", &["a", "b"])).await;
    play_at_once(&server, "least-days", 25).await;
    assert_eq!(server.verdict("least-days").await["state"], "decided");
    // answers that count an hour later
    let waits = json!({"policy": {"kind": "uniform"}, "answer_window_seconds": 600});
    let body = with(steady("waiting", &["a", "b"]), waits);
    let body = with(body, conclude(json!({"confidence": 0.95})));
    server.create(&body).await;
    server.pair("waiting").await; // nobody answers it
    play_at_once(&server, "waiting", 25).await;
    let body = with(counting("unwatched", &["a", "b"]), conclude(json!({"confidence": 0.95})));
    server.create(&body).await;
    play_at_once(&server, "unwatched", 25).await;
    server.concluded("unwatched").await;
    create_alarming(&server, "loud").await;
    stored(&server, "least-days", "result").await;
    eventually("the time to look", async || {
        let due = "select name from experiment where name = 'waiting' and due_at_ms is not null";
        (!database.texts(due.into()).await.is_empty()).then_some(())
    })
    .await;
    assert_eq!(server.verdict("waiting").await["state"], "open");
    stored(&server, "unwatched", "result").await;
    server.stop().await;

    let server = Server::with(database.connect().await, Settings::quick()).await;
    server.clock.advance_ms(3 * DAY_MS);
    // nobody asks for any of them
    let wanted = [
        ("calm", "empty", "running"),
        ("changed", "stopped", "concluded"),
        ("later", "empty", "running"),
        ("least-days", "result", "concluded"),
        ("loud", "empty", "running"),
        ("most-days", "stopped", "concluded"),
        ("unwatched", "not-watched", "concluded"),
        ("waiting", "result", "concluded"),
    ];
    eventually("what was due", async || {
        let rows = database
            .texts(
                "select name || ' ' || state || ' ' || status from experiment order by name".into(),
            )
            .await;
        let found: Vec<_> = rows.into_iter().flatten().collect();
        let wanted = wanted.map(|(name, state, status)| format!("{name} {state} {status}"));
        (found == wanted).then_some(())
    })
    .await;
    for name in ["calm", "later"] {
        assert!(server.service.peek(name).is_none(), "{name} was loaded");
    }
    server.stop().await;
}

async fn an_error_of_a_page_is_a_page(database: TestDatabase) {
    let store = FailingStore::new(database.store().await);
    let mut settings = Settings::default();
    settings.shell.request_timeout = Duration::from_millis(300);
    settings.shell.max_concurrent_requests = 1;
    let server = Server::with(store.clone(), settings).await;
    server.create(&counting("search", &["a", "b"])).await;
    let is_page = async |method: &str, path: &str, status: u16, part: &str| {
        let answer = server.send(method, path, &[], Vec::new()).await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {path}: {text}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(text.starts_with("<!DOCTYPE html>") && text.contains(part), "{path}: {text}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    };
    is_page("GET", "/?state=nothing", 422, "unknown variant").await;
    is_page("GET", "/experiments/none", 404, "no experiment").await;
    is_page("POST", "/", 405, "not allowed").await;
    store.set(Mode::FailsBefore);
    is_page("GET", "/", 503, "database").await;
    store.set(Mode::Hangs);
    is_page("GET", "/", 504, "time").await;
    is_page("GET", "/experiments/other", 504, "time").await;
    server.get("/v1/experiments").await.problem(ProblemKind::Timeout);
    // no permit is left
    eventually("a refusal", async || {
        let client = server.client();
        let waiting = tokio::spawn(async move { client.get("/v1/experiments").await.status });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let answer = server.get("/").await;
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        waiting.await.expect("an answer");
        (answer.status == 503).then_some(())
    })
    .await;
    store.set(Mode::Fine);
}
