//! Interleaved pages and the clicks on them.

use std::collections::HashSet;

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Answer, assert_has, settings_of, steady, until, with};
use crate::support::service::Server;

on_both_databases! {
    a_page_is_the_same_at_every_server_and_offset
    pieces_in_any_order_give_one_outcome
    pieces_are_settled_after_the_settling_time
    pieces_at_two_servers_are_one_outcome
    an_outcome_settles_a_duel_with_pieces
    a_changed_method_is_a_new_version
}

on_sqlite! {
    a_page_does_not_reveal_the_rankers_of_its_slots
    clicks_name_positions_documents_or_slots
    pages_of_an_optimized_list_have_the_depth_of_the_first
    a_document_counts_once_with_its_heaviest_event
    ubi_events_are_accepted_unchanged
    one_call_returns_a_duel_with_its_page
    hostile_rankings_are_interleaved_or_refused
    invalid_clicks_are_refused
    a_self_duel_shows_one_ranker_and_earns_no_credit
    page_settings_are_kept
    statistics_are_kept_per_method
}

const RANKERS: [&str; 2] = ["a", "b"];
const LEFT: [&str; 4] = ["l1", "l2", "l3", "l4"];
const RIGHT: [&str; 4] = ["r1", "r2", "r3", "r4"];

async fn start(database: &TestDatabase) -> Server {
    Server::running(database, &steady("search", &RANKERS)).await
}

fn lists(duel: &Value, left: &[&str], right: &[&str], offset: u32, length: u32) -> Value {
    json!({"duel_id": duel["duel_id"], "left": left, "right": right, "offset": offset, "length": length})
}

async fn ask(server: &Server, body: &Value) -> Answer {
    server.post("/v1/experiments/search/interleave", body).await
}

/// A new duel of [`LEFT`] and [`RIGHT`] with its page of eight. The rankings share no document, so
/// a document's first letter is its side.
async fn page(server: &Server) -> Value {
    let duel = server.next_duel("search").await;
    ask(server, &lists(&duel, &LEFT, &RIGHT, 0, 8)).await.json(200)
}

async fn clicks(server: &Server, page: &Value, clicks: Value, last: Option<bool>) -> Answer {
    let mut body = json!({"duel_id": page["duel_id"], "clicks": clicks});
    if let Some(last) = last {
        body["final"] = json!(last);
    }
    server.feedback("search", &body).await
}

/// The status that the receipt for these clicks has.
async fn status(server: &Server, page: &Value, what: Value, last: Option<bool>) -> String {
    let receipt = clicks(server, page, what, last).await.json(200);
    receipt["status"].as_str().expect("a status").to_owned()
}

/// Outcomes so far: left won, right won, ties, no signal.
async fn outcomes(server: &Server) -> [u64; 4] {
    let outcomes = &server.standings("search").await["outcomes"];
    ["left", "right", "tie", "none"].map(|name| outcomes[name].as_u64().expect("a count"))
}

fn documents(page: &Value) -> Vec<String> {
    let slots = page["slots"].as_array().expect("slots");
    slots.iter().map(|slot| slot["document"].as_str().expect("an id").to_owned()).collect()
}

async fn a_page_is_the_same_at_every_server_and_offset(database: TestDatabase) {
    let server = start(&database).await;
    let other = Server::start(database.connect().await).await;
    let mut firsts = HashSet::new();
    for _ in 0..24 {
        let duel = server.next_duel("search").await;
        let lists = |of: &Value, offset, length| {
            lists(of, &LEFT, &["r1", "l2", "r3", "l1"], offset, length)
        };
        let answer = ask(&server, &lists(&duel, 0, 6)).await;
        let whole = answer.json(200);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(ask(&other, &lists(&duel, 0, 6)).await.json(200), whole);
        assert_eq!((&whole["total"], &whole["informative"]), (&json!(6), &json!(true)));
        assert_eq!(whole["interleaving_version"], 1);
        let mut all = documents(&whole);
        firsts.insert(all[0].clone());
        // By the id of the duel, and by the id of the previous page.
        let first = ask(&other, &lists(&duel, 0, 2)).await.json(200);
        let second = ask(&server, &lists(&first, 2, 4)).await.json(200);
        assert_eq!(second, ask(&other, &lists(&duel, 2, 4)).await.json(200));
        let slots = [&first, &second].map(|page| page["slots"].as_array().unwrap().clone());
        assert_eq!(json!(slots.concat()), whole["slots"]);
        assert_eq!(second["slots"][0]["position"], 2);
        all.sort();
        assert_eq!(all, ["l1", "l2", "l3", "l4", "r1", "r3"]);
    }
    assert_eq!(firsts.len(), 2, "each side is first on some pages");
}

async fn pages_of_an_optimized_list_have_the_depth_of_the_first(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut spec = steady("search", &["a", "b"]);
    spec["interleaving"] = json!({"kind": "optimized"});
    server.create(&spec).await;
    let right = ["r1", "l3", "l1", "r2", "l2", "r3"];
    for _ in 0..8 {
        let duel = server.next_duel("search").await;
        let page = async |of: &Value, offset, length| {
            ask(&server, &lists(of, &LEFT, &right, offset, length)).await.json(200)
        };
        let first = page(&duel, 0, 3).await;
        let whole = documents(&page(&first, 0, 7).await);
        assert_eq!(documents(&first), whole[..3]);
        let second = page(&first, 3, 4).await;
        assert_eq!(documents(&second), whole[3..]);
        assert_eq!(documents(&page(&second, 2, 2).await), whole[2..4]);
        // Below the depth, a click is no signal.
        clicks(&server, &second, json!([3, 6]), None).await.json(200);
    }
    assert_eq!(outcomes(&server).await, [0, 0, 0, 8]);
}

async fn a_page_does_not_reveal_the_rankers_of_its_slots(database: TestDatabase) {
    let server = start(&database).await;
    let duel = server.next_duel("search").await;
    let one = ask(&server, &lists(&duel, &LEFT, &RIGHT, 0, 8)).await.json(200);
    // Apart from the documents, everything that a page shows is the same for every page.
    for slot in one["slots"].as_array().unwrap() {
        let members: Vec<_> = slot.as_object().unwrap().keys().collect();
        assert_eq!(members, ["document", "position", "token"]);
        assert_eq!(slot["token"].as_str().unwrap().len(), 12);
    }
    let tokens: HashSet<_> =
        one["slots"].as_array().unwrap().iter().map(|slot| &slot["token"]).collect();
    assert_eq!(tokens.len(), 8);
    // The same rankings under another duel get other tokens.
    let two = page(&server).await;
    let again: HashSet<_> =
        two["slots"].as_array().unwrap().iter().map(|slot| &slot["token"]).collect();
    assert!(tokens.is_disjoint(&again));
}

async fn clicks_name_positions_documents_or_slots(database: TestDatabase) {
    let server = start(&database).await;
    let mut expected = [0; 4];
    for round in 0..16 {
        let page = page(&server).await;
        let place = documents(&page)
            .iter()
            .position(|id| id == if round % 2 == 0 { "l1" } else { "r2" })
            .unwrap();
        let slot = &page["slots"][place];
        let click = match round / 2 % 4 {
            0 => json!(place),
            1 => slot["document"].clone(),
            2 => json!({"slot": slot["token"]}),
            _ => json!({"position": place, "event": "click"}),
        };
        expected[round % 2] += 1;
        let last = [None, Some(true)][round / 8];
        let receipt = clicks(&server, &page, json!([click, click]), last).await.json(200);
        assert_eq!(receipt, json!({"status": "recorded", "position": round + 2}));
        let receipt = clicks(&server, &page, json!([click]), last).await.json(200);
        assert_eq!(receipt, json!({"status": "duplicate", "position": round + 2}));
    }
    for (feedback, outcome) in
        [(json!(["l1", "r1"]), 2), (json!([]), 3), (json!(["l1", "r1", "r2"]), 1)]
    {
        let page = page(&server).await;
        assert_eq!(status(&server, &page, feedback, None).await, "recorded");
        expected[outcome] += 1;
    }
    assert_eq!(outcomes(&server).await, expected);
    // Other outcomes are accepted as before, also under the page's id.
    let page = page(&server).await;
    server.answer("search", &page, "tie").await;
    expected[2] += 1;
    assert_eq!(outcomes(&server).await, expected);
}

async fn a_document_counts_once_with_its_heaviest_event(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = steady("search", &RANKERS);
    body["event_weights"] = json!({"purchase": 3, "cart": 2});
    let created = server.create(&body).await;
    assert_eq!(created["event_weights"], json!({"cart": 2, "click": 1, "purchase": 3}));
    for (feedback, expected) in [
        (json!(["l1", {"document": "l1", "event": "purchase"}, "r1", "r2"]), [1, 0, 0, 0]),
        (json!([{"document": "l1", "event": "cart"}, "r1", "r2", "r1", "r1"]), [1, 0, 1, 0]),
        (json!([{"document": "l1", "event": "cart"}, "r1", "r2", "r3"]), [1, 1, 1, 0]),
    ] {
        let page = page(&server).await;
        clicks(&server, &page, feedback, None).await.json(200);
        assert_eq!(outcomes(&server).await, expected);
    }
    let page = page(&server).await;
    let unknown = clicks(&server, &page, json!([0, {"position": 1, "event": "hover"}]), None).await;
    let problem = unknown.problem_at(ProblemKind::InvalidRequest, "/clicks/1");
    assert!(problem["detail"].as_str().unwrap().contains("cart, click, purchase"), "{problem}");
}

async fn pieces_in_any_order_give_one_outcome(database: TestDatabase) {
    let server = start(&database).await;
    let pieces = [json!(["l1"]), json!(["r1", "r2"]), json!([]), json!(["r2"])];
    for round in 0..4 {
        let page = page(&server).await;
        let before = server.position("search").await;
        let mut position = before;
        for turn in 0..8 {
            let piece = &pieces[(turn + round) % 4];
            let receipt = clicks(&server, &page, piece.clone(), Some(false)).await.json(200);
            if turn < 4 {
                position += 1;
                assert_eq!(receipt, json!({"status": "recorded", "position": position}));
            } else {
                let first = before + turn as u64 - 3;
                assert_eq!(receipt, json!({"status": "duplicate", "position": first}));
            }
        }
        assert_eq!(outcomes(&server).await, [0, round as u64, 0, 0], "nothing is settled yet");
        let last = clicks(&server, &page, json!([]), Some(true)).await.json(200);
        assert_eq!(last, json!({"status": "recorded", "position": position + 1}));
        let settled = server.standings("search").await;
        assert_eq!(outcomes(&server).await, [0, round as u64 + 1, 0, 0]);
        // Later clicks are late, and a repeat is a duplicate.
        for (feedback, last, status) in [
            (json!(["l3"]), false, "late"),
            (json!(["l1", "l2", "l3", "l4"]), true, "late"),
            (pieces[0].clone(), false, "duplicate"),
            (json!([]), true, "duplicate"),
        ] {
            let receipt = clicks(&server, &page, feedback, Some(last)).await.json(200);
            assert_eq!(receipt["status"], status, "{receipt}");
            let many = json!({"feedback": [{"duel_id": page["duel_id"], "clicks": ["l4"], "final": false}]});
            let receipts = server.feedback("search", &many).await.json(200);
            assert_eq!(receipts["results"][0]["status"], "late");
            assert_eq!(receipts["results"][0]["position"], position + 1);
        }
        let answer = json!({"duel_id": page["duel_id"], "outcome": "right"});
        server.feedback("search", &answer).await.problem(ProblemKind::FeedbackConflict);
        assert_eq!(server.standings("search").await, settled);
    }
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("rankduel_feedback_total{status=\"late\"} 24"), "{metrics}");
}

async fn pieces_are_settled_after_the_settling_time(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = steady("search", &RANKERS);
    body["settle_after_seconds"] = json!(60);
    body["duel_ttl_seconds"] = json!(120);
    assert_eq!(server.create(&body).await["settle_after_seconds"], 60);
    let (first, second, never) = (page(&server).await, page(&server).await, page(&server).await);
    clicks(&server, &first, json!(["l1"]), Some(false)).await.json(200);
    server.clock.advance_ms(59_999);
    clicks(&server, &first, json!(["r1"]), Some(false)).await.json(200);
    clicks(&server, &second, json!(["r1"]), Some(false)).await.json(200);
    assert_eq!(server.position("search").await, 4);
    server.clock.advance_ms(1);
    until("both are settled", async || server.position("search").await == 6).await;
    assert_eq!(outcomes(&server).await, [0, 1, 1, 0]);
    let late = clicks(&server, &first, json!(["l2"]), Some(false)).await.json(200);
    assert_eq!(late["status"], "late");
    // A first piece after the settling time counts while the duel has not expired.
    clicks(&server, &never, json!(["l1"]), Some(false)).await.json(200);
    until("it is settled", async || server.position("search").await == 8).await;
    assert_eq!(outcomes(&server).await, [1, 1, 1, 0]);
    let open = page(&server).await;
    server.clock.advance_ms(120_001);
    clicks(&server, &open, json!(["l1"]), Some(false)).await.problem(ProblemKind::DuelExpired);
    clicks(&server, &open, json!(["l1"]), None).await.problem(ProblemKind::DuelExpired);
    // Repeats and late clicks are reported as such, at any time.
    assert_eq!(status(&server, &first, json!(["l1"]), Some(false)).await, "duplicate");
    assert_eq!(status(&server, &first, json!(["l3"]), Some(false)).await, "late");
    assert_eq!(status(&server, &first, json!([]), Some(true)).await, "late");
    assert_eq!(server.position("search").await, 8);
}

/// Half of the pages are settled by their last piece, at either server; the others by their
/// settling time, at both servers at once.
async fn pieces_at_two_servers_are_one_outcome(database: TestDatabase) {
    let servers = Server::two(&database).await;
    let settled = json!({"settle_after_seconds": 60});
    servers[0].create(&with(steady("search", &RANKERS), settled)).await;
    let mut pages = Vec::new();
    for number in 0..10 {
        let (here, there) = (&servers[number % 2], &servers[1 - number % 2]);
        let page = page(here).await;
        let again = ask(there, &lists(&page, &LEFT, &RIGHT, 0, 8)).await.json(200);
        assert_eq!(again, page, "the same page");
        assert_eq!(status(here, &page, json!(["l1"]), Some(false)).await, "recorded");
        assert_eq!(status(there, &page, json!(["l1"]), Some(false)).await, "duplicate");
        assert_eq!(status(there, &page, json!(["r1", "r2"]), Some(false)).await, "recorded");
        if number < 5 {
            assert_eq!(status(here, &page, json!(["l2"]), Some(true)).await, "recorded");
            assert_eq!(status(there, &page, json!(["l2"]), Some(true)).await, "duplicate");
            assert_eq!(status(there, &page, json!(["l3"]), Some(false)).await, "late");
        }
        pages.push(page);
    }
    for server in &servers {
        server.clock.advance_ms(60_000);
    }
    for server in &servers {
        until("all are settled", async || outcomes(server).await == [0, 5, 5, 0]).await;
    }
    // Ten pages with two pieces each, and one entry that settles each page.
    assert_eq!(database.count("select count(*) from log").await, 31);
    for page in &pages {
        assert_eq!(status(&servers[0], page, json!(["l1", "l2", "l3"]), Some(false)).await, "late");
    }
    let [one, other] = servers;
    assert_eq!(one.standings("search").await, other.standings("search").await);
    let statistics = async |server: &Server| server.report("search", "statistics").await;
    assert_eq!(statistics(&one).await, statistics(&other).await);
}

async fn an_outcome_settles_a_duel_with_pieces(database: TestDatabase) {
    let server = start(&database).await;
    let page = page(&server).await;
    clicks(&server, &page, json!(["l1"]), Some(false)).await.json(200);
    server.answer("search", &page, "right").await;
    assert_eq!(outcomes(&server).await, [0, 1, 0, 0]);
    assert_eq!(status(&server, &page, json!(["l2"]), Some(false)).await, "late");
    assert_eq!(status(&server, &page, json!([]), Some(true)).await, "late");
    server.clock.advance_ms(3_600_000);
    assert_eq!(outcomes(&server).await, [0, 1, 0, 0]);
}

async fn ubi_events_are_accepted_unchanged(database: TestDatabase) {
    let server = start(&database).await;
    let page = page(&server).await;
    let path = "/v1/experiments/search/feedback/ubi";
    let place = documents(&page).iter().position(|id| id == "r1").unwrap();
    let event = |action: &str, query: &Value, attributes: Value| {
        json!({"application": "shop", "action_name": action, "query_id": query, "client_id": "c-1", "session_id": "s",
            "timestamp": "2026-11-21T16:00:00Z", "message_type": "CLICK", "event_attributes": attributes})
    };
    let short = json!("6f1c8f4e");
    let body = json!({"duels": {"6f1c8f4e": page["duel_id"]}, "events": [
        event("click", &page["duel_id"], json!({"object": {"object_id": "r2", "object_id_field": "sku"}, "position": {"ordinal": 99}})),
        event("click", &short, json!({"position": {"ordinal": (place + 1) as f64, "xy": {"x": 1.5, "y": 2}}})),
        event("click", &short, json!({"object": {"object_id": "r2"}, "position": {"ordinal": 1}})),
        event("view", &short, json!({"object": {"object_id": "l1"}, "position": {"ordinal": 1}})),
        event("click", &json!("else"), json!({"duel_id": page["duel_id"], "object": {"object_id": "l3"}})),
        event("click", &json!("else"), json!({"object": {"object_id": "l3"}})),
        event("click", &short, json!({"object": {"object_id": 17}})),
        event("click", &short, json!({"position": {"ordinal": 0}})),
        event("click", &short, json!({})),
        json!({"action_name": "click", "timestamp": "2026-11-21T16:00:00Z"}),
        json!({"query_id": "x"}),
        json!(3),
        json!({"action_name": "hover", "query_id": 7, "event_attributes": []}),
        json!({"action_name": "hover", "event_attributes": {"position": [1], "object": ["r1"]}}),
        event("click", &short, json!([])),
        event("click", &json!(""), json!({"duel_id": "", "object": {"object_id": "r1"}})),
        event("click", &short, json!({"object": {"object_id": ""}, "position": {"ordinal": (place + 1).to_string()}})),
    ]});
    let receipts = server.post(path, &body).await.json(200);
    let results = receipts["results"].as_array().expect("results").iter();
    let statuses: Vec<_> = results.map(|one| one["status"].as_str().expect("a status")).collect();
    assert_eq!(
        statuses.join(" "),
        "recorded recorded duplicate ignored recorded invalid invalid invalid invalid invalid \
         invalid invalid ignored ignored invalid invalid duplicate",
        "{receipts}"
    );
    assert_eq!(outcomes(&server).await, [0; 4]);
    clicks(&server, &page, json!([]), Some(true)).await.json(200);
    assert_eq!(outcomes(&server).await, [0, 1, 0, 0]);
    let late = server.post(path, &body).await.json(200);
    assert_eq!(late["results"][0]["status"], "duplicate");
    for (wrong, pointer) in [
        (json!({"events": []}), "/events"),
        (json!({"events": vec![json!({}); 1001]}), "/events"),
        (json!({"event": []}), "/event"),
    ] {
        server.post(path, &wrong).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
}

async fn one_call_returns_a_duel_with_its_page(database: TestDatabase) {
    let server = start(&database).await;
    let path = "/v1/experiments/search/next-duel";
    let rankings = json!({"a": ["a1", "a2"], "b": ["b1", "b2"]});
    let body =
        json!({"rankings": rankings, "length": 4, "pinned": [{"document": "ad", "position": 1}]});
    let mut winners = [0; 2];
    for _ in 0..12 {
        let both = server.post(path, &body).await.json(200);
        assert_eq!(both["experiment"], "search");
        let shown: HashSet<_> = documents(&both).into_iter().collect();
        assert_eq!(shown.len(), 4);
        assert_eq!(both["slots"][1]["document"], "ad");
        assert_eq!(both["total"], 5);
        let ranker = if both["left"] == "a" { 0 } else { 1 };
        winners[ranker] += 1;
        // The left ranker's first document is on the page, and a click on it counts for the left.
        let first = format!("{}1", both["left"].as_str().unwrap());
        assert!(shown.contains(&first), "{both}");
        assert_eq!(status(&server, &both, json!([first]), None).await, "recorded");
    }
    assert_eq!(outcomes(&server).await, [12, 0, 0, 0]);
    assert!(winners.iter().all(|&count| count > 0), "{winners:?}");
    let standings = server.standings("search").await;
    assert_eq!(standings["wins"], json!([[0, winners[0]], [winners[1], 0]]));
    // Without rankings, the response is a duel without a page.
    let alone = server.post(path, &json!({})).await.json(200);
    assert!(alone.get("slots").is_none() && alone["duel_id"].is_string());
    for (wrong, pointer) in [
        (json!({"rankings": {"a": []}, "length": 3}), "/rankings/b"),
        (json!({"rankings": {"a": [], "c": []}, "length": 3}), "/rankings/b"),
        (json!({"rankings": rankings}), "/length"),
        (json!({"rankings": rankings, "length": 0}), "/length"),
        (json!({"rankings": {"a": [""], "b": [""]}, "length": 3}), "/rankings/"),
        (json!({"length": 3}), "/rankings"),
        (json!({"rankings": 3}), "/rankings"),
        (json!({"rankers": {}}), "/rankers"),
    ] {
        let problem = server.post(path, &wrong).await.problem(ProblemKind::InvalidRequest);
        let at = problem["errors"][0]["pointer"].as_str().unwrap();
        assert!(at.starts_with(pointer), "{problem}");
    }
    let answer = server.send("POST", path, &[("content-type", "text/plain")], b"{}".to_vec()).await;
    answer.problem(ProblemKind::UnsupportedMediaType);
}

async fn a_changed_method_is_a_new_version(database: TestDatabase) {
    let server = start(&database).await;
    let other = Server::start(database.connect().await).await;
    let path = "/v1/experiments/search";
    let created = server.get(path).await.json(200);
    let team_draft = json!({"kind": "team-draft", "shared": "collapse", "depth_policy": "max"});
    assert_has(&created, json!({"interleaving": team_draft, "interleaving_version": 1}));
    let before = server.next_duel("search").await;
    let before_page = ask(&server, &lists(&before, &LEFT, &RIGHT, 0, 8)).await.json(200);
    assert_eq!(other.get(path).await.json(200)["interleaving_version"], 1);

    // The same change again changes nothing.
    let same =
        server.patch("search", &json!({"interleaving": {"kind": "team-draft"}})).await.json(200);
    assert_eq!(settings_of(same), settings_of(created));
    let change = json!({"interleaving": {"kind": "balanced", "depth_policy": "min"}});
    let changed = server.patch("search", &change).await.json(200);
    let balanced = json!({"kind": "balanced", "depth_policy": "min"});
    assert_has(&changed, json!({"interleaving": balanced, "interleaving_version": 2}));
    assert_eq!(changed["version"], 2);
    let listed = server.get("/v1/experiments").await.json(200);
    let changed = settings_of(changed);
    assert_eq!(settings_of(listed["experiments"][0].clone()), changed);
    // Another server reads the change.
    until("the change", async || settings_of(other.get(path).await.json(200)) == changed).await;

    for server in [&server, &other] {
        // A duel issued before the change keeps its method.
        assert_eq!(ask(server, &lists(&before, &LEFT, &RIGHT, 0, 8)).await.json(200), before_page);
        let after = page(server).await;
        assert_eq!(after["interleaving_version"], 2);
        assert_eq!(status(server, &after, json!(["l1"]), None).await, "recorded");
    }
    clicks(&server, &before_page, json!(["l1"]), None).await.json(200);
    assert_eq!(outcomes(&server).await, [3, 0, 0, 0]);

    for (wrong, pointer) in [
        (json!({"interleaving": {"kind": "best"}}), "/interleaving/kind"),
        (json!({"interleaving": {"kind": "probabilistic", "tau": 0}}), "/interleaving/tau"),
        (json!({"interleaving": {"kind": "balanced", "tau": 3}}), "/interleaving/tau"),
        (json!({"interleaving": {}}), "/interleaving/kind"),
        (json!({"interleaving": {"kind": "balanced"}, "winner": "a"}), "/winner"),
        (json!({}), ""),
    ] {
        server.refuses_change("search", &wrong, pointer).await;
    }
    // A new server that has only the log agrees.
    server.stop().await;
    other.stop().await;
    database.execute("delete from snapshot").await;
    let server = Server::start(database.connect().await).await;
    assert_eq!(settings_of(server.get(path).await.json(200)), changed);
    assert_eq!(ask(&server, &lists(&before, &LEFT, &RIGHT, 0, 8)).await.json(200), before_page);
    assert_eq!(page(&server).await["interleaving_version"], 2);
}

async fn hostile_rankings_are_interleaved_or_refused(database: TestDatabase) {
    let server = start(&database).await;
    let duel = server.next_duel("search").await;
    let with = |left: Value, right: Value| json!({"duel_id": duel["duel_id"], "left": left, "right": right, "length": 5});
    // Repeated documents are dropped and counted.
    let page =
        ask(&server, &with(json!(["x", "x", "y", "x"]), json!(["y", "z", "y"]))).await.json(200);
    assert_eq!(page["repeats"], json!({"left": 2, "right": 1}));
    assert_eq!(documents(&page).iter().collect::<HashSet<_>>().len(), documents(&page).len());
    // An empty ranking beside another, and the same ranking on both sides.
    for (left, right) in [(json!([]), json!(["y", "z"])), (json!(["y", "z"]), json!(["y", "z"]))] {
        let page = ask(&server, &with(left, right)).await.json(200);
        assert_eq!((documents(&page).concat(), &page["informative"]), ("yz".into(), &json!(false)));
    }
    // Document ids of any form come back unchanged and can be clicked.
    let odd =
        ["quote\" and 'quote'", "line\nfeed\r\u{0}", "ünï\u{1f600}", " ", "\\u0000", "</script>"];
    let page = ask(&server, &with(json!(odd), json!(["plain"]))).await.json(200);
    assert!(documents(&page).contains(&odd[0].to_owned()), "{page}");
    let duel_of_odd = server.next_duel("search").await;
    let body = json!({"duel_id": duel_of_odd["duel_id"], "left": odd, "right": odd.iter().rev().collect::<Vec<_>>(), "length": 6});
    let page = ask(&server, &body).await.json(200);
    let mut shown = documents(&page);
    shown.sort();
    let mut sorted = odd.map(str::to_owned);
    sorted.sort();
    assert_eq!(shown, sorted);
    assert_eq!(status(&server, &page, json!(odd), None).await, "recorded");
    // Long rankings are accepted up to a limit.
    let many = |count: usize| json!((0..count).map(|n| format!("d{n}")).collect::<Vec<_>>());
    let page = ask(&server, &with(many(10_000), json!(["d9999", "y"]))).await.json(200);
    assert_eq!(documents(&page).len(), 5, "the longer ranking fills the page");
    let long = ask(&server, &with(json!([]), many(10_001))).await;
    long.problem_at(ProblemKind::InvalidRequest, "/right");
    // Deep pages; a page beyond the end is empty.
    let mut deep = with(many(2000), many(2000));
    (deep["offset"], deep["length"]) = (json!(990), json!(10));
    let page = ask(&server, &deep).await.json(200);
    assert_eq!(documents(&page)[9], "d999");
    assert_eq!(status(&server, &page, json!([990, 0]), None).await, "recorded");
    let page = ask(&server, &lists(&duel, &["x"], &["y"], 900, 5)).await.json(200);
    assert_eq!((&page["slots"], &page["total"]), (&json!([]), &json!(2)));
    for (offset, length, pointer) in
        [(990, 11, "/offset"), (u32::MAX, 1, "/offset"), (0, 1001, "/length"), (0, 0, "/length")]
    {
        let answer = ask(&server, &lists(&duel, &["x"], &["y"], offset, length)).await;
        answer.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    // Pinned documents.
    let pin = |document: &str, position: i64| json!({"document": document, "position": position});
    for (pinned, pointer) in [
        (json!([pin("p", 1000)]), "/pinned/0/position"),
        (json!([pin("p", -1)]), "/pinned/0/position"),
        (json!([pin("p", 1), pin("q", 1)]), "/pinned/1/position"),
        (json!([pin("p", 1), pin("p", 2)]), "/pinned/1/document"),
        (json!((0..101).map(|n| pin(&format!("p{n}"), n)).collect::<Vec<_>>()), "/pinned"),
        (json!([pin("", 1)]), "/pinned/0"),
        (json!(["p"]), "/pinned/0"),
    ] {
        let mut body = with(json!(["x"]), json!(["y"]));
        body["pinned"] = pinned;
        ask(&server, &body).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    let mut body = with(json!(["x", "p"]), json!(["y", "p"]));
    body["pinned"] = json!([pin("p", 0), pin("last", 999)]);
    let page = ask(&server, &body).await.json(200);
    let shown = documents(&page);
    assert_eq!((shown.len(), shown[0].as_str(), shown[3].as_str()), (4, "p", "last"));
    // Values that are not rankings.
    for (left, pointer) in [
        (json!([""]), "/left/0"),
        (json!(["a".repeat(1025)]), "/left/0"),
        (many(10_001), "/left"),
        (json!(["a", 3]), "/left/1"),
        (json!(["a", null]), "/left/1"),
        (json!("a"), "/left"),
        (json!({"a": 1}), "/left"),
    ] {
        ask(&server, &with(left, json!(["y"])))
            .await
            .problem_at(ProblemKind::InvalidRequest, pointer);
    }
    let alone = json!({"duel_id": duel["duel_id"], "left": ["x"], "length": 5});
    ask(&server, &alone).await.problem_at(ProblemKind::InvalidRequest, "/right");
    // Invalid duel ids.
    server.create(&steady("other", &RANKERS)).await;
    let foreign = server.next_duel("other").await;
    ask(&server, &lists(&foreign, &LEFT, &RIGHT, 0, 5))
        .await
        .problem_at(ProblemKind::InvalidDuel, "/duel_id");
    for nothing in ["", "AQ", "ü", &"A".repeat(30_000)] {
        ask(&server, &lists(&json!({"duel_id": nothing}), &LEFT, &RIGHT, 0, 5))
            .await
            .problem(ProblemKind::InvalidDuel);
    }
    server.clock.advance_ms(3_600_001);
    ask(&server, &lists(&duel, &LEFT, &RIGHT, 0, 5)).await.problem(ProblemKind::DuelExpired);
}

async fn invalid_clicks_are_refused(database: TestDatabase) {
    let server = start(&database).await;
    let page = page(&server).await;
    for (feedback, pointer) in [
        (json!([0, 8]), "/clicks/1"),
        (json!([u64::MAX]), "/clicks/0"),
        (json!(["l1", "nothing"]), "/clicks/1"),
        (json!([{"slot": "AAAAAAAAAAAA"}]), "/clicks/0"),
        (json!([{"slot": ""}]), "/clicks/0"),
        (json!([-1]), "/clicks/0"),
        (json!([1.5]), "/clicks/0"),
        (json!([null]), "/clicks/0"),
        (json!([{}]), "/clicks/0"),
        (json!([{"position": 1, "document": "l1"}]), "/clicks/0"),
        (json!([{"position": 1, "times": 2}]), "/clicks/0/times"),
        (json!(vec![0; 101]), "/clicks"),
        (json!(vec![0; 500_000]), "/clicks"),
        (json!([vec![0; 300], vec![-1]].concat()), "/clicks/300"),
        (json!(3), "/clicks"),
    ] {
        clicks(&server, &page, feedback, None)
            .await
            .problem_at(ProblemKind::InvalidRequest, pointer);
    }
    let duel = server.next_duel("search").await;
    clicks(&server, &duel, json!([0]), None)
        .await
        .problem_at(ProblemKind::InvalidRequest, "/duel_id");
    for (wrong, pointer) in [
        (json!({"clicks": [0], "outcome": "left"}), "/clicks"),
        (json!({"clicks": [0], "left_clicks": 1, "right_clicks": 0}), "/clicks"),
        (json!({"outcome": "left", "final": true}), "/final"),
        (json!({"clicks": [0], "final": "yes"}), "/final"),
    ] {
        let mut body = wrong;
        body["duel_id"] = page["duel_id"].clone();
        server.feedback("search", &body).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    assert_eq!(server.position("search").await, 1);
}

async fn a_self_duel_shows_one_ranker_and_earns_no_credit(database: TestDatabase) {
    let server = start(&database).await;
    server.patch("search", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    let duel = server.next_duel("search").await;
    assert_eq!(duel["self_duel"], true);
    let body = json!({"duel_id": duel["duel_id"], "left": LEFT, "length": 3});
    let page = ask(&server, &body).await.json(200);
    assert_eq!(documents(&page), LEFT[..3]);
    assert_has(&page, json!({"self_duel": true, "informative": false}));
    assert_eq!(ask(&server, &lists(&duel, &LEFT, &RIGHT, 0, 3)).await.json(200), page);
    assert_eq!(status(&server, &page, json!([0, "l2"]), None).await, "recorded");
    assert_eq!(outcomes(&server).await, [0; 4]);
    let rankings = json!({"rankings": {"a": ["a1"], "b": ["b1", "b2"]}, "length": 3});
    let page = server.post("/v1/experiments/search/next-duel", &rankings).await.json(200);
    assert_eq!(documents(&page), ["b1", "b2"]);
}

async fn page_settings_are_kept(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = steady("search", &RANKERS);
    body["interleaving"] = json!({"kind": "probabilistic", "tau": 2.5});
    body["canary"] = json!(["b", "a"]);
    body["canary_share"] = json!(0);
    body["duel_ttl_seconds"] = json!(60);
    let created = server.post("/v1/experiments", &body).await.json(201);
    let probabilistic = json!({"kind": "probabilistic", "tau": 2.5, "credit": "more-clicks", "verdict": "score", "depth_policy": "max"});
    assert_eq!(created["interleaving"], probabilistic);
    assert_has(&created, json!({"canary": ["b", "a"], "settle_after_seconds": 60}));
    assert_eq!(server.post("/v1/experiments", &body).await.json(200), created);
    let page = page(&server).await;
    assert_eq!(documents(&page).len(), 8);
    // Both sides had documents to draw.
    let first = documents(&page)[0].starts_with('l');
    clicks(&server, &page, json!([0]), None).await.json(200);
    assert_eq!(outcomes(&server).await, [u64::from(first), u64::from(!first), 0, 0]);
}

async fn statistics_are_kept_per_method(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = steady("search", &RANKERS);
    body["canary"] = json!(["a", "b"]);
    body["canary_share"] = json!(0);
    server.create(&body).await;
    let path = "/v1/experiments/search/statistics";
    let empty = server.get(path).await;
    assert_eq!(empty.json(200)["versions"], json!([]));
    let etag = empty.header("etag").unwrap().to_owned();
    assert_eq!(server.send("GET", path, &[("if-none-match", &etag)], Vec::new()).await.status, 304);
    // The wins of each ranker, from the sides that the pages name.
    let mut wins = [0u64; 2];
    let mut lefts = 0;
    for (feedback, left_wins) in [
        (json!(["l1"]), Some(true)),
        (json!(["r1"]), Some(false)),
        (json!(["l1", "r1"]), None),
        (json!([]), None),
    ] {
        let duel = server.next_duel("search").await;
        let page = ask(&server, &lists(&duel, &LEFT, &RIGHT, 0, 8)).await.json(200);
        clicks(&server, &page, feedback, None).await.json(200);
        let a_left = duel["left"] == "a";
        lefts += u64::from(a_left);
        if let Some(left_wins) = left_wins {
            wins[usize::from(a_left != left_wins)] += 1;
        }
    }
    // One page whose clicks give no signal, and one that is waiting for more clicks.
    let duel = server.next_duel("search").await;
    lefts += u64::from(duel["left"] == "a");
    let same = ask(&server, &lists(&duel, &LEFT, &LEFT, 0, 4)).await.json(200);
    clicks(&server, &same, json!([0]), None).await.json(200);
    let waits = page(&server).await;
    clicks(&server, &waits, json!([0]), Some(false)).await.json(200);
    let statistics = server.get(path).await.json(200);
    assert_eq!((&statistics["open_pages"], &statistics["alarms"]), (&json!(1), &json!([])));
    let version = &statistics["versions"][0];
    assert_eq!((&version["version"], &version["method"]), (&json!(1), &json!("team-draft")));
    let pair = &version["pairs"][0];
    assert_eq!((&pair["ranker"], &pair["against"]), (&json!("a"), &json!("b")));
    assert_has(pair, json!({"wins": wins[0], "losses": wins[1], "ties": 1}));
    assert_eq!(
        pair["no_signal"],
        json!({"total": 2, "no_click": 1, "nothing_creditable": 0, "not_informative": 1})
    );
    let delta = (wins[0] as f64 + 0.5) / 3.0 - 0.5;
    assert!((pair["delta"].as_f64().unwrap() - delta).abs() < 1e-12, "{pair}");
    let balance = &version["pages"];
    assert_has(balance, json!({"pages": 5, "left_share": lefts as f64 / 5.0}));
    assert_eq!(balance["competitive_share"], json!(32.0 / 36.0));

    server.patch("search", &json!({"interleaving": {"kind": "balanced"}})).await.json(200);
    let page = page(&server).await;
    clicks(&server, &page, json!(["l1"]), None).await.json(200);
    let duel = server.next_duel("search").await;
    server.answer("search", &duel, "tie").await;
    let statistics = server.get(path).await.json(200);
    let versions = statistics["versions"].as_array().expect("versions").iter();
    let versions: Vec<_> = versions.map(|one| (&one["version"], &one["pages"]["pages"])).collect();
    let null = Value::Null;
    assert_eq!(versions, [(&null, &json!(1)), (&json!(1), &json!(5)), (&json!(2), &json!(1))]);
    assert_eq!(statistics["versions"][0]["pairs"][0]["ties"], 1);
    assert_eq!(statistics["versions"][0]["pages"]["left_share"], null);

    // A difference between the ids of the canary raises the alarm: one id wins every time,
    // regardless of the three earlier pages.
    assert_eq!(statistics["canary"]["alarm"], false);
    for _ in 0..40 {
        let duel = server.next_duel("search").await;
        server.wins("search", &duel, "a").await;
    }
    let statistics = server.get(path).await.json(200);
    assert_eq!(statistics["canary"]["alarm"], true, "{statistics}");
    assert!(statistics["alarms"][0].as_str().unwrap().contains("canary"), "{statistics}");
}
