//! Rankers that are added and retired while an experiment runs.

use std::collections::BTreeSet;

use rankduel::http::ProblemKind;
use rankduel::service::transfer::{Import, export, import};
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Answer, assert_has, assert_verifies, eventually, until, with};
use crate::support::service::{Server, Settings};

on_both_databases! {
    a_ranker_is_added_while_duels_are_in_flight
    duels_of_a_retired_ranker_still_count_once
    the_state_is_the_same_after_every_restart_and_at_every_replica
    an_export_contains_the_roster_changes
}

on_sqlite! {
    invalid_roster_changes_are_refused_with_the_reason
    the_verdict_and_all_scores_cover_active_rankers_only
    an_experiment_concludes_on_an_active_ranker
    a_verdict_that_starts_again_is_proven_again
    answers_from_before_a_change_do_not_wait_for_the_verdict
    rankings_are_required_of_active_rankers
    the_pages_mark_retired_rankers
}

async fn enlist(server: &Server, ranker: Value) -> Answer {
    server.patch("search", &json!({"enlist": ranker})).await
}

async fn retire(server: &Server, id: &str) -> Answer {
    server.patch("search", &json!({"retire": id})).await
}

fn search(policy: &str) -> Value {
    let rankers = ["a", "b", "c"];
    let policy = json!({"kind": policy});
    json!({"name": "search", "rankers": rankers, "policy": policy, "seed": 5, "conclude_at": "never", "answer_window_seconds": 0})
}

/// The rankers shown in this many duels, which are not answered.
async fn shown(server: &Server, duels: usize) -> BTreeSet<String> {
    let mut shown = BTreeSet::new();
    for _ in 0..duels {
        let duel = server.next_duel("search").await;
        for side in ["left", "right"] {
            shown.insert(duel[side].as_str().expect("an id").to_owned());
        }
    }
    shown
}

/// Answer `duels` duels: the ranker whose id comes first in the alphabet wins.
async fn play(server: &Server, duels: usize) {
    for _ in 0..duels {
        server.first_wins("search", &server.pair("search").await).await;
    }
}

/// Request `duels` duels, and answer each one between two rankers in this way.
async fn go_on(server: &Server, duels: usize) {
    for _ in 0..duels {
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == false {
            server.first_wins("search", &duel).await;
        }
    }
}

/// A duel between these two.
async fn pair_of(server: &Server, one: &str, other: &str) -> Value {
    for _ in 0..10_000 {
        let duel = server.next_duel("search").await;
        let sides = [duel["left"].as_str(), duel["right"].as_str()];
        if sides.contains(&Some(one)) && sides.contains(&Some(other)) {
            return duel;
        }
    }
    panic!("no duel of {one} and {other}");
}

async fn assert_no_findings(database: &TestDatabase) {
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
}

async fn a_ranker_is_added_while_duels_are_in_flight(database: TestDatabase) {
    let server = Server::running(&database, &search("uniform")).await;
    play(&server, 20).await;
    let open = server.pair("search").await;

    let answer = enlist(&server, json!({"id": "d", "description": "two towers"})).await;
    assert_eq!(answer.header("etag"), Some("\"2\""));
    let experiment = answer.json(200);
    let listed =
        json!([{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d", "description": "two towers"}]);
    assert_has(&experiment, json!({"rankers": listed, "version": 2}));
    // The same change again is no change; the original creation request still finds the experiment.
    let again = json!({"id": "d", "description": "two towers"});
    assert_eq!(enlist(&server, again).await.json(200)["version"], 2);
    assert_eq!(
        server.post("/v1/experiments", &search("uniform")).await.json(200)["rankers"],
        listed
    );

    let standings = server.standings("search").await;
    assert_eq!(standings["duels"], 20, "the log is kept");
    assert_eq!(standings["rankers"].as_array().map(Vec::len), Some(4));
    assert_eq!(standings["wins"][3], json!([0, 0, 0, 0]));
    assert!(shown(&server, 200).await.contains("d"));
    server.answer("search", &open, "left").await;
    let duel = pair_of(&server, "d", "a").await;
    server.wins("search", &duel, "d").await;
    let standings = server.standings("search").await;
    assert_eq!((&standings["duels"], &standings["wins"][3]), (&json!(22), &json!([1, 0, 0, 0])));

    let page = server.get("/v1/audit?experiment=search").await.json(200);
    let entry = &page["entries"][0];
    assert_eq!(
        (&entry["what"], &entry["after"]["enlist"]["id"]),
        (&json!("experiment-changed"), &json!("d")),
        "{page}"
    );
    assert_eq!(
        page["entries"].as_array().map(Vec::len),
        Some(2),
        "a request that changed nothing is in the log: {page}"
    );
    assert_no_findings(&database).await;
}

async fn duels_of_a_retired_ranker_still_count_once(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for policy in ["uniform", "d-ts-verdict", "d-ts-plus", "d-ts", "ccb"] {
        let body = with(search(policy), json!({"name": policy}));
        server.create(&body).await;
        // Some of the first duels show the ranker that is retired.
        let mut out = None;
        for _ in 0..2000 {
            let duel = server.pair(policy).await;
            if duel["left"] == "b" || duel["right"] == "b" {
                out = Some(duel);
                break;
            }
        }
        let out = out.expect("a duel of b");
        let answer = server.patch(policy, &json!({"retire": "b"})).await.json(200);
        assert_eq!(
            answer["rankers"],
            json!([{"id": "a"}, {"id": "b", "retired": true}, {"id": "c"}])
        );
        assert_eq!(
            server.patch(policy, &json!({"retire": "b"})).await.json(200)["version"],
            2,
            "retiring is idempotent"
        );
        for _ in 0..150 {
            let duel = server.next_duel(policy).await;
            assert!(duel["left"] != "b" && duel["right"] != "b", "{policy}: {duel}");
        }
        let outcome = if out["left"] == "b" { "left" } else { "right" };
        let position = server.answer(policy, &out, outcome).await;
        let body = json!({"duel_id": out["duel_id"], "outcome": outcome});
        let repeat = server.feedback(policy, &body).await.json(200);
        assert_has(&repeat, json!({"status": "duplicate", "position": position}));
        let standings = server.standings(policy).await;
        assert_eq!(
            (&standings["duels"], &standings["rankers"][1]["wins"]),
            (&json!(1), &json!(1)),
            "{policy}"
        );
        assert_eq!(
            (&standings["rankers"][1]["retired"], &standings["rankers"][0]["retired"]),
            (&json!(true), &json!(false))
        );
        let store = database.connect().await;
        assert_verifies(&*store, policy).await;
    }
}

/// Everything known about the experiment: the saved state and every estimate.
async fn all(server: &Server, position: u64) -> (Vec<u8>, Vec<Value>) {
    let state = eventually("the state", async || {
        let loaded = server.service.experiment("search").await.expect("an experiment");
        let fold = loaded.fold().expect("a fold");
        (fold.state().position == position).then(|| fold.save())
    })
    .await;
    let mut answers = vec![server.experiment("search").await];
    for resource in ["standings", "regret", "verdict", "winners", "statistics"] {
        answers.push(server.get(&format!("/v1/experiments/search/{resource}")).await.json(200));
    }
    (state, answers)
}

async fn the_state_is_the_same_after_every_restart_and_at_every_replica(database: TestDatabase) {
    let [server, second] = Server::two(&database).await;
    server.create(&search("d-ts-plus")).await;
    go_on(&server, 15).await;
    let early = {
        let loaded = server.service.experiment("search").await.expect("an experiment");
        loaded.snapshot(0).expect("a state")
    };
    let out_there = second.pair("search").await;
    enlist(&server, json!("d")).await.json(200);
    // The other replica is notified, and keeps issuing duels and recording answers meanwhile.
    second.answer("search", &out_there, "left").await;
    until("the added ranker at the other replica", async || {
        let experiment = second.experiment("search").await;
        experiment["rankers"][3]["id"] == "d"
    })
    .await;
    go_on(&second, 15).await;
    let of_a = second.next_duel("search").await;
    retire(&second, "a").await.json(200);
    server.answer("search", &of_a, "left").await;
    enlist(&server, json!("e")).await.json(200);
    go_on(&server, 30).await;
    go_on(&second, 5).await;
    let position = server.position("search").await.max(second.position("search").await);
    // Self-duels are written in the background.
    server.stop().await;
    second.stop().await;

    let third = Server::start(database.connect().await).await;
    let position = third.position("search").await.max(position);
    let all = async |server: &Server| all(server, position).await;
    let expected = all(&third).await;
    assert_eq!(expected.1[0]["version"], 4);
    {
        let loaded = third.service.experiment("search").await.expect("an experiment");
        assert!(loaded.fold().expect("a fold").run().roster().retired() == [0]);
    }
    let last = third.same_after_restarts(&database, "search", all).await;
    last.stop().await;
    database.execute("delete from snapshot").await;
    let store = database.connect().await;
    store.save_snapshot(&early).await.expect("it is kept");
    assert_no_findings(&database).await;
    assert_eq!(all(&Server::start(store).await).await, expected, "from an early snapshot");
}

async fn invalid_roster_changes_are_refused_with_the_reason(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (policy, why) in [("pcomp", "batches"), ("scb", "rounds"), ("savage", "plans")] {
        let parameters = json!({"kind": policy, "horizon": 1000});
        let kind = if policy == "pcomp" { parameters } else { json!({"kind": policy}) };
        let body = json!({"name": policy, "rankers": ["a", "b", "c"], "policy": kind});
        server.create(&body).await;
        for change in [json!({"enlist": "d"}), json!({"retire": "a"})] {
            let problem = server.patch(policy, &change).await.problem(ProblemKind::RankersFixed);
            let detail = problem["detail"].as_str().expect("a detail");
            assert!(detail.contains(policy) && detail.contains(why), "{detail}");
        }
        assert_eq!(server.experiment(policy).await["version"], 1);
        assert_eq!(server.position(policy).await, 1, "nothing was written");
    }

    server.create(&search("d-ts")).await;
    for (change, pointer) in [
        (json!({"enlist": ""}), "/enlist"),
        (json!({"enlist": "x\u{7}"}), "/enlist"),
        (json!({"enlist": "x".repeat(129)}), "/enlist"),
        (json!({"enlist": {"id": "d", "description": "x".repeat(1001)}}), "/enlist/description"),
        (json!({"retire": "a", "policy": {"kind": "ccb"}}), "/policy"),
        (json!({"retire": "a", "interleaving": {"kind": "best"}}), "/interleaving/kind"),
        (json!({"retire": "a", "control": "a"}), "/control"),
        (json!({"retire": "a", "control": "nobody"}), "/control"),
        (json!({"retire": "nobody"}), "/retire"),
        (json!({"retire": "A"}), "/retire"),
    ] {
        server.refuses_change("search", &change, pointer).await;
    }
    let path = "/v1/experiments/search";
    let other = enlist(&server, json!({"id": "a", "description": "another"})).await;
    other.problem(ProblemKind::RankersFixed);
    assert_eq!(server.get(path).await.json(200)["version"], 1);

    retire(&server, "a").await.json(200);
    let detail = |problem: Value| problem["detail"].as_str().expect("a detail").to_owned();
    let back = detail(enlist(&server, json!("a")).await.problem(ProblemKind::RankersFixed));
    assert!(back.contains("was retired") && back.contains("another id"), "{back}");
    let last = detail(retire(&server, "b").await.problem(ProblemKind::RankersFixed));
    assert!(last.contains("fewer than 2"), "{last}");
    assert!(!shown(&server, 100).await.contains("a"));

    let gone = json!({"status": "concluded", "winner": "a"});
    server.refuses_change("search", &gone, "/winner").await;
    let concluded = server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert_ne!(concluded["winner"], "a");
    let closed = detail(enlist(&server, json!("d")).await.problem(ProblemKind::RankersFixed));
    assert!(closed.contains("concluded"), "{closed}");
    assert_eq!(retire(&server, "a").await.json(200)["status"], "concluded", "retired before");
    assert_eq!(server.send("DELETE", path, &[], Vec::new()).await.status, 204);
    enlist(&server, json!("d")).await.problem(ProblemKind::ExperimentArchived);
    retire(&server, "a").await.problem(ProblemKind::ExperimentArchived);
    server.patch("nobody", &json!({"enlist": "d"})).await.problem(ProblemKind::ExperimentNotFound);
    assert_no_findings(&database).await;
}

async fn the_verdict_and_all_scores_cover_active_rankers_only(database: TestDatabase) {
    let server = Server::running(&database, &search("uniform")).await;
    play(&server, 90).await;
    let decided = server.verdict("search").await;
    assert_eq!((&decided["state"], &decided["winners"]), (&json!("decided"), &json!(["a"])));

    // The verdict on the remaining rankers starts anew: which ranker was retired may have depended
    // on the results so far.
    retire(&server, "a").await.json(200);
    let reopened = server.verdict("search").await;
    assert_has(&reopened, json!({"state": "open", "winners": [], "possible": ["b", "c"]}));
    play(&server, 60).await;
    let after = server.verdict("search").await;
    assert_eq!((&after["state"], &after["winners"]), (&json!("decided"), &json!(["b"])), "{after}");
    assert_eq!(
        after["sentence"],
        "Ship `b`. `b` is the best ranker: it beats the other one, or is less than 1 point behind. A wrong verdict comes up in at most 5 % of experiments."
    );
    assert_eq!((&after["leader"], &after["possible"]), (&json!("b"), &json!(["b"])));
    let row = &after["rankers"][0];
    assert_has(row, json!({"retired": true, "possible": false, "certain": false}));
    assert_eq!(row["copeland_probability"], 0.0);
    let standings = server.standings("search").await;
    assert_eq!((&standings["leaders"], &standings["champion"]), (&json!(["b"]), &json!("b")));
    let scores: Vec<_> =
        (0..3).map(|i| standings["rankers"][i]["copeland_score"].as_f64().unwrap()).collect();
    assert_eq!(
        scores,
        [1.0, 1.0, 0.0],
        "the retired ranker is scored by its wins, the others without it"
    );
    let winners = server.report("search", "winners").await;
    assert_eq!((&winners["pairs"], &winners["agree"]), (&json!(1), &json!(true)), "{winners}");
    assert_eq!(winners["notions"][0]["winners"], json!(["b"]));
    assert_eq!(winners["notions"][0]["scores"], json!([null, 1.0, 0.0]));
    // An appearance of c costs 1/2 in a duel. a beats both others, so a duel of a and b costs
    // nothing.
    let (standings, regret) = eventually("both at the same position", async || {
        let standings = server.standings("search").await;
        let regret = server.report("search", "regret").await;
        (standings["position"] == regret["position"]).then_some((standings, regret))
    })
    .await;
    let of_c = standings["rankers"][2]["appearances"].as_f64().unwrap();
    let plug_in = &regret["plug_in"];
    assert_eq!(plug_in["copeland_regret"].as_f64(), Some(of_c / 2.0), "{regret}");
    assert_eq!(
        plug_in["uniform_copeland_regret"].as_f64(),
        Some(regret["steps"].as_f64().unwrap() / 2.0)
    );
    assert_eq!(regret["condorcet"]["winner"], "b");

    // An added ranker reopens the question.
    enlist(&server, json!("0")).await.json(200);
    let open = server.verdict("search").await;
    assert_eq!((&open["state"], &open["winners"]), (&json!("open"), &json!([])), "{open}");
    assert_eq!(open["possible"], json!(["b", "c", "0"]), "{open}");
    assert_eq!(server.report("search", "winners").await["pairs"], 3);
    play(&server, 120).await;
    let decided = server.verdict("search").await;
    assert_has(&decided, json!({"state": "decided", "winners": ["0"]}));
}

async fn an_experiment_concludes_on_an_active_ranker(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = with(search("uniform"), json!({"conclude_at": {"confidence": 0.9}}));
    // no page compares the winner again
    body["watch"] = json!(0);
    server.create(&body).await;
    let mut out = Vec::new();
    for _ in 0..120 {
        out.push(server.pair("search").await);
    }
    retire(&server, "a").await.json(200);
    // All answers belong to duels that were in flight when the best ranker was retired.
    for duel in &out {
        server.first_wins("search", duel).await;
    }
    let concluded = server.concluded("search").await;
    assert_eq!(concluded["winner"], "b");
    let duel = server.next_duel("search").await;
    assert_eq!((&duel["left"], &duel["right"]), (&json!("b"), &json!("b")));
    assert_no_findings(&database).await;
}

/// Request pages, of which the first ranker of the alphabet wins those of two, until the verdict is
/// decided; returns how many pages were requested.
async fn decide(server: &Server, name: &str) -> usize {
    for page in 0..2_000 {
        let duel = server.next_duel(name).await;
        if duel["self_duel"] == false {
            server.first_wins(name, &duel).await;
        }
        if page % 20 == 0 && server.verdict(name).await["state"] == "decided" {
            return page;
        }
    }
    panic!("no verdict in 2,000 pages: {}", server.verdict(name).await);
}

/// The winner was shown alone, and with nothing but pages of one ranker no answer would ever come.
async fn a_verdict_that_starts_again_is_proven_again(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (name, rankers) in [("three", &["a", "b", "c"][..]), ("four", &["a", "b", "c", "d"])] {
        let body = json!({"name": name, "rankers": rankers, "policy": {"kind": "d-ts-verdict"}});
        server.create(&with(search("d-ts-verdict"), body)).await;
        decide(&server, name).await;
        for loser in rankers.iter().rev().take(rankers.len() - 2) {
            server.patch(name, &json!({"retire": loser})).await.json(200);
            assert_eq!(server.verdict(name).await["state"], "open");
            decide(&server, name).await;
        }
        // it shows its winner alone again
        let alone = |duel: Value| usize::from(duel["self_duel"] == true);
        let mut found = 0;
        for _ in 0..50 {
            found += alone(server.next_duel(name).await);
        }
        assert!(found > 45, "{found} of 50");
    }
}

async fn rankings_are_required_of_active_rankers(database: TestDatabase) {
    let server = Server::running(&database, &search("uniform")).await;
    let ask = async |rankers: &[&str]| {
        let rankings: serde_json::Map<_, _> = rankers
            .iter()
            .map(|id| ((*id).to_owned(), json!([format!("{id}1"), "shared"])))
            .collect();
        server
            .post("/v1/experiments/search/next-duel", &json!({"rankings": rankings, "length": 2}))
            .await
    };
    // A ranking of a ranker that is not added yet is accepted. If one is missing, a wrong name is
    // reported.
    ask(&["a", "b", "c", "d"]).await.json(200);
    ask(&["a", "b", "d"]).await.problem_at(ProblemKind::InvalidRequest, "/rankings/c");
    ask(&["a", "b", "d"]).await.problem_at(ProblemKind::InvalidRequest, "/rankings/d");
    let page = ask(&["a", "b", "c"]).await.json(200);
    enlist(&server, json!("d")).await.json(200);
    retire(&server, "a").await.json(200);
    ask(&["a", "b", "c"]).await.problem_at(ProblemKind::InvalidRequest, "/rankings/d");
    ask(&["b", "c", "d"]).await.json(200);
    ask(&["a", "b", "c", "d"]).await.json(200);
    // Duels issued earlier are interleaved and answered as usual.
    let again =
        json!({"duel_id": page["duel_id"], "left": ["x", "y"], "right": ["y", "x"], "length": 2});
    server.post("/v1/experiments/search/interleave", &again).await.json(200);
    let clicks = json!({"duel_id": page["duel_id"], "clicks": [page["slots"][0]["document"]]});
    assert_eq!(server.feedback("search", &clicks).await.json(200)["status"], "recorded");
}

async fn an_export_contains_the_roster_changes(database: TestDatabase) {
    let server = Server::running(&database, &search("d-ts-plus")).await;
    go_on(&server, 10).await;
    let mut early = Vec::new();
    export(&*database.connect().await, "search", &mut early).await.expect("an export");
    enlist(&server, json!("d")).await.json(200);
    go_on(&server, 10).await;
    retire(&server, "b").await.json(200);
    go_on(&server, 10).await;
    server.stop().await;
    let store = database.connect().await;
    let mut file = Vec::new();
    export(&*store, "search", &mut file).await.expect("an export");
    assert_eq!(import(&*store, &mut &*file, None, None).await.expect("the same"), Import::Same);
    assert_eq!(
        import(&*store, &mut &*early, None, None).await.expect("the same, earlier"),
        Import::Same
    );
    let new = import(&*store, &mut &*file, Some("copy"), None).await.expect("a copy");
    assert!(matches!(new, Import::New { .. }), "{new:?}");
    assert_verifies(&*store, "copy").await;
    let again = Server::start(store).await;
    let (mut copy, mut original) = (again.standings("copy").await, again.standings("search").await);
    for standings in [&mut copy, &mut original] {
        standings["experiment"] = Value::Null;
    }
    assert_eq!(copy, original);
    // A first line that contradicts its log is detected, and nothing of the file is kept.
    let text =
        String::from_utf8(file).expect("text").replacen("\"retired\":[1]", "\"retired\":[2]", 1);
    let error = import(&*database.connect().await, &mut text.as_bytes(), Some("wrong"), None).await;
    assert!(error.is_err());
    again.get("/v1/experiments/wrong").await.problem(ProblemKind::ExperimentNotFound);
}

async fn the_pages_mark_retired_rankers(database: TestDatabase) {
    let server = Server::running(&database, &search("uniform")).await;
    play(&server, 60).await;
    let page = async |path: &str| {
        server.get(&format!("/experiments/search{path}")).await.text().replace('\u{a0}', " ")
    };
    let before = page("").await;
    assert!(!before.contains("retired") && before.contains("3 rankers"), "{before}");
    retire(&server, "a").await.json(200);
    enlist(&server, json!("d")).await.json(200);
    let after = page("").await;
    assert!(after.contains("3 rankers, 1 retired"), "{after}");
    assert!(
        after.contains(
            "The rankers have changed: for the best ranker, only pages since then count."
        ),
        "{after}"
    );
    let evidence = page("/evidence").await;
    let (_, matrix) = evidence.split_once("id=\"matrix\"").expect("the section");
    let matrix = matrix.split("</section>").next().expect("a section");
    assert!(matrix.contains("<bdi>b</bdi>") && !matrix.contains("<bdi>a</bdi>"), "{matrix}");
    // The retired ranker is last, and marked in words.
    let traffic = page("/traffic").await;
    let (_, last) = traffic.rsplit_once("<th scope=\"row\">").expect("rows");
    assert!(last.contains(">a<") && last.contains("retired"), "{last}");
    assert_eq!(traffic.matches("retired</span>").count(), 1, "{traffic}");
}

async fn answers_from_before_a_change_do_not_wait_for_the_verdict(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    server.create(&with(search("uniform"), json!({"answer_window_seconds": 512}))).await;
    let waits = async || {
        let found = server.verdict("search").await;
        let page = server.get("/experiments/search").await.text();
        let says = page.contains("because other pages of that time can still get theirs");
        (found["waiting"].clone(), found["rests_on"]["waiting"].clone(), says)
    };
    // nobody answers this one
    server.pair("search").await;
    play(&server, 3).await;
    assert_eq!(waits().await.0["answers"], 3);
    enlist(&server, json!({"id": "d"})).await.json(200);
    assert_eq!(waits().await, (Value::Null, json!(0), false));
    // in a cohort after the change; the clock started at 14:13:20
    server.clock.advance_ms(2000);
    play(&server, 2).await;
    let next = json!({"answers": 2, "next_count_at": "2026-09-21T14:22:00.000Z"});
    assert_eq!(waits().await, (next, json!(2), true));
}
