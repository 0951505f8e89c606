//! Policies that adapt only between batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rankduel::http::ProblemKind;
use rankduel_engine::clock::{Clock as _, ManualClock, rfc3339};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use crate::support::TestDatabase;
use crate::support::client::{
    Answer, Client, JSON, assert_has, assert_verifies, eventually, steady, until, with,
};
use crate::support::failing_store::{FailingStore, Mode};
use crate::support::service::{START_MS, Server, Settings};

on_both_databases! {
    surplus_answers_do_not_delay_a_batch
    posted_batch_results_count_once
    a_post_has_one_identity_for_ever
    posted_counts_reach_the_batch_that_single_answers_reach
    a_post_is_decided_at_its_place_in_the_log
    a_post_goes_through_between_single_answers
    a_batch_in_parts_is_complete_when_all_are_there
    callers_see_the_end_of_a_concluded_experiment
    pcomp_runs_to_its_horizon
}

on_sqlite! {
    an_open_batch_lists_its_comparisons
    a_pair_with_equal_rankings_does_not_hold_a_batch_up
    every_pair_of_256_rankers_is_posted_in_parts
    a_concluded_experiment_records_no_results
    a_batch_without_progress_raises_an_alarm_with_or_without_traffic
    the_open_batch_is_on_its_page_and_in_the_metrics
    a_large_batch_comes_in_parts
    a_lease_issues_the_comparisons_of_the_batch
    expired_comparisons_are_issued_again
    results_that_do_not_match_the_batch_are_refused
    a_lease_needs_a_running_experiment
    other_policies_have_no_batches
    scomp2_runs_to_its_horizon
    many_equal_ties_take_no_longer_than_one
}

const BATCH: &str = "/v1/experiments/search/batch";
const LEASE: &str = "/v1/experiments/search/batch/lease";
const RESULTS: &str = "/v1/experiments/search/batch/results";
const TTL_MS: i64 = 64_000;

/// Three rankers, three rounds: every pair 10 times, then 100 times, then the rest of 1000.
fn search() -> Value {
    json!({
        "name": "search",
        "rankers": ["a", "b", "c"],
        "policy": {"kind": "pcomp", "horizon": 1000, "batches": 3},
        "duel_ttl_seconds": TTL_MS / 1000,
    })
}

async fn batch(server: &Server) -> Value {
    server.get(BATCH).await.json(200)
}

async fn lease(client: &Client, count: u32) -> Vec<Value> {
    let leased = client.post(LEASE, &json!({"count": count})).await.json(200);
    leased["duels"].as_array().expect("duels").clone()
}

/// Post one outcome for all these duels.
async fn answer_all(client: &Client, duels: &[Value], outcome: &str) -> Vec<Value> {
    let items: Vec<_> =
        duels.iter().map(|duel| json!({"duel_id": duel["duel_id"], "outcome": outcome})).collect();
    let receipts = client.feedback("search", &json!({"feedback": items})).await.json(200);
    receipts["results"].as_array().expect("results").clone()
}

async fn an_open_batch_lists_its_comparisons(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    server.clock.advance_ms(5000);
    let row = |left, right, answered, in_flight| json!({"left": left, "right": right, "needed": 10, "answered": answered, "in_flight": in_flight});
    let fresh = json!({
        "experiment": "search", "position": 1, "number": 1, "number_max": 3,
        "opened_at": rfc3339(START_MS), "needed": 30, "answered": 0, "in_flight": 0,
        "pairs_total": 3, "pairs_missing": 3,
        "pairs": [row("a", "b", 0, 0), row("a", "c", 0, 0), row("b", "c", 0, 0)],
    });
    assert_eq!(batch(&server).await, fresh);

    let duels = lease(&server, 3).await;
    let asked = server.next_duel("search").await;
    assert_eq!(asked["batch"], 1);
    let out = batch(&server).await;
    assert_eq!((&out["in_flight"], &out["answered"]), (&json!(4), &json!(0)));
    server.answer("search", &duels[0], "left").await;
    server.answer("search", &asked, "tie").await;
    let out = batch(&server).await;
    assert_has(&out, json!({"in_flight": 2, "answered": 2, "position": 3}));
    for row in out["pairs"].as_array().expect("pairs") {
        let is_of = |duel: &&Value| {
            let sides = [&duel["left"], &duel["right"]];
            sides.contains(&&row["left"]) && sides.contains(&&row["right"])
        };
        assert_eq!(row["answered"], [&duels[0], &asked].into_iter().filter(is_of).count());
        assert_eq!(row["in_flight"], duels[1..].iter().filter(is_of).count());
    }
}

/// Sixty rankers have 1770 pairs.
async fn a_large_batch_comes_in_parts(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let ids: Vec<String> = (0..60).map(|number| format!("ranker-{number}")).collect();
    let policy = json!({"kind": "pcomp", "horizon": 1_000_000, "batches": 2});
    server.create(&json!({"name": "search", "rankers": ids, "policy": policy})).await;
    let part = async |query: &str| server.get(&format!("{BATCH}{query}")).await.json(200);
    let pairs = |part: &Value| part["pairs"].as_array().expect("pairs").clone();
    let duels = lease(&server, 1000).await;
    assert_eq!(duels.len(), 1000);
    answer_all(&server, &duels[..10], "left").await;

    let (first, rest) = (part("").await, part("?offset=1000").await);
    assert_eq!((pairs(&first).len(), pairs(&rest).len()), (1000, 770));
    let all = [pairs(&first), pairs(&rest)].concat();
    let mut parts = Vec::new();
    for offset in (0..1770).step_by(300) {
        parts.extend(pairs(&part(&format!("?offset={offset}&limit=300")).await));
    }
    assert_eq!(parts, all);
    let sum = |of: &str| all.iter().filter_map(|pair| pair[of].as_u64()).sum::<u64>();
    for one in [&first, &rest, &part("?offset=1770").await, &part("?limit=1").await] {
        assert_eq!(one["pairs_total"], 1770);
        for (of, total) in [("answered", 10), ("in_flight", 990)] {
            assert_eq!((sum(of), &one[of]), (total, &json!(total)), "{of}");
        }
        assert_eq!(one["needed"], sum("needed"));
    }
    assert_eq!(pairs(&part("?offset=1770").await), Vec::<Value>::new());
    for wrong in ["limit=0", "limit=1001", "offset=-1", "pairs=1"] {
        server.get(&format!("{BATCH}?{wrong}")).await.problem(ProblemKind::InvalidRequest);
    }
}

async fn a_lease_issues_the_comparisons_of_the_batch(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    for count in
        [json!(0), json!(1001), json!(-1), json!(1.5), json!("10"), json!(null), json!([1])]
    {
        server
            .post(LEASE, &json!({"count": count}))
            .await
            .problem_at(ProblemKind::InvalidRequest, "/count");
    }
    let mut duels = lease(&server, 7).await;
    assert_eq!(duels.len(), 7);
    duels.extend(lease(&server, 1000).await);
    assert_eq!(duels.len(), 30, "the whole batch is leased");
    assert_eq!(lease(&server, 1).await, Vec::<Value>::new(), "nothing is left to lease");
    let mut pairs = std::collections::BTreeMap::new();
    for duel in &duels {
        assert_eq!((&duel["batch"], &duel["self_duel"]), (&json!(1), &json!(false)));
        assert_eq!(duel["expires_at"], rfc3339(START_MS + TTL_MS));
        let mut pair = [duel["left"].to_string(), duel["right"].to_string()];
        pair.sort();
        *pairs.entry(pair).or_insert(0) += 1;
    }
    assert_eq!(pairs.into_values().collect::<Vec<_>>(), [10, 10, 10]);

    // A caller that waits for the batch to close gets a self-duel.
    let waiting = server.next_duel("search").await;
    assert_eq!((&waiting["self_duel"], &waiting["batch"]), (&json!(true), &Value::Null));

    server.clock.advance_ms(2000);
    answer_all(&server, &duels, "left").await;
    let next = batch(&server).await;
    assert_has(&next, json!({"number": 2, "opened_at": rfc3339(START_MS + 2000)}));
    assert_eq!((&next["answered"], &next["in_flight"]), (&json!(0), &json!(0)));
    assert_eq!(lease(&server, 1).await[0]["batch"], 2);
}

async fn expired_comparisons_are_issued_again(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let lost = lease(&server, 30).await;
    answer_all(&server, &lost[..12], "left").await;
    server.clock.advance_ms(TTL_MS);
    assert_eq!(lease(&server, 30).await.len(), 0, "a late answer could still count");
    server.clock.advance_ms(TTL_MS / 64 + 1);
    let again = lease(&server, 30).await;
    assert_eq!(again.len(), 18);
    for receipt in answer_all(&server, &lost[12..], "left").await {
        assert_eq!(receipt["status"], "expired");
    }
    for receipt in answer_all(&server, &again, "right").await {
        assert_eq!(receipt["status"], "recorded");
    }
    assert_eq!(batch(&server).await["number"], 2);
}

async fn surplus_answers_do_not_delay_a_batch(database: TestDatabase) {
    let [one, other] = Server::two(&database).await;
    one.create(&search()).await;
    // Neither server knows which duels the other has in flight.
    let (ones, others) = (lease(&one, 30).await, lease(&other, 30).await);
    assert_eq!((ones.len(), others.len()), (30, 30));
    for (server, duels) in [(&other, &ones), (&one, &others)] {
        for receipt in answer_all(server, duels, "left").await {
            assert_eq!(receipt["status"], "recorded");
        }
    }
    for server in [&one, &other] {
        let out = eventually("all answers", async || {
            let out = batch(server).await;
            (out["position"] == 61).then_some(out)
        })
        .await;
        // the answers belong to batch 1
        assert_has(&out, json!({"number": 2, "answered": 0}));
        assert_eq!(server.standings("search").await["duels"], 60, "surplus answers count");
    }
}

/// Results of the whole first batch: of ten comparisons each, `a` wins 7 against `b` and 6 against
/// `c`; some are ties.
fn results() -> Value {
    let row = |left, right, left_wins, right_wins, ties| json!({"left": left, "right": right, "left_wins": left_wins, "right_wins": right_wins, "ties": ties});
    json!({"batch": 1, "results": [row("a", "b", 7, 2, 1), row("c", "a", 4, 6, 0), row("b", "c", 5, 5, 0)]})
}

async fn posted_batch_results_count_once(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let recorded = server.post(RESULTS, &results()).await.json(200);
    assert_eq!(recorded, json!({"status": "recorded", "batch": 1, "position": 2}));
    let standings = server.standings("search").await;
    assert_eq!(standings["wins"], json!([[0, 7, 6], [2, 0, 5], [4, 5, 0]]));
    assert_eq!(standings["ties"], json!([[0, 1, 0], [1, 0, 0], [0, 0, 0]]));
    assert_eq!((&standings["duels"], &standings["leaders"]), (&json!(30), &json!(["a"])));
    assert_eq!(
        standings["outcomes"],
        json!({"left": 0, "right": 0, "tie": 0, "none": 0}),
        "no sides"
    );
    assert_eq!(batch(&server).await["number"], 2);

    let duplicate = json!({"status": "duplicate", "batch": 1, "position": 2});
    assert_eq!(server.post(RESULTS, &results()).await.json(200), duplicate);
    let mut turned = results();
    let rows = turned["results"].as_array_mut().expect("rows");
    rows.reverse();
    rows[0] = json!({"left": "c", "right": "b", "left_wins": 5, "right_wins": 5, "ties": 0});
    rows[2] = json!({"left": "b", "right": "a", "left_wins": 2, "right_wins": 7, "ties": 1});
    assert_eq!(server.post(RESULTS, &turned).await.json(200), duplicate, "the same, sides swapped");

    let mut changed = Vec::new();
    for (row, field, value) in [
        (0, "left_wins", json!(6)),
        (1, "ties", json!(1)),
        (2, "right", json!("a")),
        (2, "left", json!("x")),
    ] {
        let mut other = results();
        other["results"][row][field] = value;
        changed.push(other);
    }
    let mut fewer = results();
    fewer["results"].as_array_mut().expect("rows").pop();
    changed.push(fewer);
    let mut twice = results();
    twice["results"][2] = twice["results"][0].clone();
    changed.push(twice);
    for other in changed {
        server.post(RESULTS, &other).await.problem(ProblemKind::FeedbackConflict);
    }
    assert_eq!(server.standings("search").await, standings);

    // The second batch, with some of its comparisons answered one by one.
    let duels = lease(&server, 20).await;
    answer_all(&server, &duels, "left").await;
    let second = server.missing_results("search").await;
    assert_eq!(server.post(RESULTS, &second).await.json(200)["position"], 23);
    assert_eq!(server.standings("search").await["duels"], 330);

    // A server that folds the log from the start, and has not seen the first post, agrees.
    let standings = server.standings("search").await;
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    assert_eq!(server.standings("search").await, standings);
    assert_eq!(server.post(RESULTS, &results()).await.json(200), duplicate);
    assert_eq!(server.post(RESULTS, &second).await.json(200)["status"], "duplicate");
}

/// Two rankers, with 10, 100 and 890 comparisons in three batches.
fn two_rankers(name: &str) -> Value {
    with(search(), json!({"name": name, "rankers": ["a", "b"], "conclude_at": "never"}))
}

fn row(left_wins: u32, right_wins: u32) -> Value {
    json!({"left": "a", "right": "b", "left_wins": left_wins, "right_wins": right_wins, "ties": 0})
}

async fn post(client: &Client, name: &str, body: &Value) -> Answer {
    client.post(&format!("/v1/experiments/{name}/batch/results"), body).await
}

async fn exclude(client: &Client, name: &str, unit: &str) {
    let exclude = json!({"units": [unit], "reason": "a machine"});
    client.patch(name, &json!({"exclude": exclude})).await.json(200);
}

/// A duel that is shown to `unit` and won by `a`.
async fn a_wins(client: &Client, name: &str, unit: &str) {
    let path = format!("/v1/experiments/{name}/next-duel");
    let duel = client.post(&path, &json!({"unit": unit})).await.json(200);
    client.wins(name, &duel, "a").await;
}

async fn a_post_has_one_identity_for_ever(database: TestDatabase) {
    let server = Server::running(&database, &two_rankers("search")).await;
    let first = json!({"batch": 1, "results": [row(6, 4)]});
    let part = json!({"batch": 2, "part": 7, "results": [row(60, 40)]});
    let receipt = |status: &str, batch: u32, position: u64| json!({"status": status, "batch": batch, "position": position});
    assert_eq!(post(&server, "search", &first).await.json(200), receipt("recorded", 1, 2));
    assert_eq!(post(&server, "search", &part).await.json(200), receipt("recorded", 2, 3));
    let repeats = async |client: &Client| {
        assert_eq!(post(client, "search", &first).await.json(200), receipt("duplicate", 1, 2));
        assert_eq!(post(client, "search", &part).await.json(200), receipt("duplicate", 2, 3));
        let other = json!({"batch": 1, "results": [row(5, 5)]});
        post(client, "search", &other).await.problem(ProblemKind::FeedbackConflict);
        let other = json!({"batch": 2, "part": 8, "results": [row(60, 40)]});
        post(client, "search", &other).await.problem(ProblemKind::BatchNotOpen);
        assert_eq!(client.standings("search").await["duels"], 110);
    };
    repeats(&server).await;
    // a unit without answers
    exclude(&server, "search", "nobody").await;
    repeats(&server).await;
    assert_eq!(batch(&server).await["number"], 3);
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    repeats(&server).await;
}

/// The answers of one unit are taken back. What was posted or answered after them is then of
/// earlier batches than before, and of the same ones whether it came as counts or one by one.
async fn posted_counts_reach_the_batch_that_single_answers_reach(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for name in ["counts", "singles"] {
        server.create(&two_rankers(name)).await;
        for number in 0..10 {
            let unit = if number < 4 { "machine" } else { "person" };
            a_wins(&server, name, unit).await;
        }
    }
    let posted = json!({"batch": 2, "results": [row(55, 45)]});
    post(&server, "counts", &posted).await.json(200);
    for number in 0..100 {
        let duel = server.next_duel("singles").await;
        server.wins("singles", &duel, if number < 55 { "a" } else { "b" }).await;
    }
    let state = async |name: &str| {
        let mut open = server.report(name, "batch").await;
        let standings = server.standings(name).await;
        for moment in ["experiment", "position", "number", "number_max", "in_flight"] {
            open[moment] = Value::Null;
        }
        open["pairs"][0]["in_flight"] = Value::Null;
        (open, standings["wins"].clone())
    };
    assert_eq!(state("counts").await, state("singles").await);
    for name in ["counts", "singles"] {
        exclude(&server, name, "machine").await;
    }
    // 6 + 4 for the first batch, and 96 of 100 for the second
    assert_eq!(state("counts").await, state("singles").await);
    let open = server.report("counts", "batch").await;
    assert_has(&open, json!({"needed": 100, "answered": 96, "pairs_missing": 1}));
    assert_eq!(server.standings("counts").await["wins"], json!([[0, 61], [45, 0]]));

    // the old post is a repeat, and what is missing can be posted
    assert_eq!(post(&server, "counts", &posted).await.json(200)["status"], "duplicate");
    let number = open["number"].as_u64().expect("a number");
    assert!(number > 2, "results of another batch were posted as batch 2");
    let rest = json!({"batch": number, "results": [row(3, 1)]});
    assert_eq!(post(&server, "counts", &rest).await.json(200)["status"], "recorded");
    assert_eq!(post(&server, "counts", &rest).await.json(200)["status"], "duplicate");
    let open = server.report("counts", "batch").await;
    assert_has(&open, json!({"number": number + 1, "number_max": number + 1, "needed": 890}));
    assert_eq!(server.standings("counts").await["duels"], 110);
}

/// Between the check of a post and its append, another server closes the batch, answers a part of
/// it, or concludes the experiment.
async fn a_post_is_decided_at_its_place_in_the_log(database: TestDatabase) {
    let store = FailingStore::new(database.store().await);
    let one = Server::with(store.clone(), Settings::default()).await;
    let other = Server::start(database.connect().await).await;
    let wins = async |name: &str, count: usize| {
        for _ in 0..count {
            let duel = other.next_duel(name).await;
            other.wins(name, &duel, "a").await;
        }
    };
    for (name, meanwhile) in [("closed", 0), ("answered", 1), ("concluded", 2)] {
        one.create(&two_rankers(name)).await;
        wins(name, 8).await;
        let body = json!({"batch": 1, "results": [row(1, 1)]});
        until("the answers at the other server", async || {
            one.report(name, "batch").await["answered"] == 8
        })
        .await;
        store.set(Mode::AppendsWait);
        let (before, client) = (store.appends(), one.client());
        let posting = {
            let body = body.clone();
            tokio::spawn(async move { post(&client, name, &body).await })
        };
        until("the append", async || store.appends() > before).await;
        match meanwhile {
            0 => wins(name, 2).await,
            1 => wins(name, 1).await,
            _ => drop(other.patch(name, &json!({"status": "concluded"})).await.json(200)),
        }
        store.set(Mode::Fine);
        let answer = posting.await.expect("an answer");
        let duels = if meanwhile == 0 { 10 } else { 8 + meanwhile % 2 };
        match meanwhile {
            0 => drop(answer.problem_saying(ProblemKind::BatchNotOpen, "batch 2 is")),
            1 => drop(answer.problem_at(ProblemKind::InvalidRequest, "/results/0")),
            _ => drop(answer.problem_saying(ProblemKind::BatchNotOpen, "no batch is")),
        }
        for server in [&one, &other] {
            assert_eq!(server.standings(name).await["duels"], duels, "{name}");
        }
        // refused results are not in the log: the numbers are free
        let log = database.connect().await;
        assert_verifies(&*log, name).await;
        if meanwhile == 1 {
            let rest = json!({"batch": 1, "results": [row(0, 1)]});
            assert_eq!(post(&one, name, &rest).await.json(200)["status"], "recorded");
        }
    }
}

/// The log goes on all the time, here and at another server.
async fn a_post_goes_through_between_single_answers(database: TestDatabase) {
    let [one, other] = Server::two(&database).await;
    let rankers: Vec<_> = (0..12).map(|number| format!("r{number}")).collect();
    let policy = json!({"kind": "pcomp", "horizon": 1_000_000, "batches": 2});
    one.create(&with(search(), json!({"rankers": rankers, "policy": policy}))).await;
    let done = Arc::new(AtomicU64::new(0));
    // of the pairs with r0 alone
    let mut duels = lease(&one, 1000).await;
    duels.retain(|duel| duel["left"] == "r0" || duel["right"] == "r0");
    let answering: Vec<_> = [one.client(), other.client()]
        .into_iter()
        .zip(duels.chunks(duels.len().div_ceil(2)).map(<[Value]>::to_vec).collect::<Vec<_>>())
        .map(|(client, duels)| {
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                for duel in duels {
                    client.answer("search", &duel, "left").await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut posted = 0;
    for part in 1..=11 {
        let row = json!({
            "left": format!("r{part}"), "right": format!("r{}", part % 11 + 1),
            "left_wins": 500, "right_wins": 500, "ties": 0,
        });
        let body = json!({"batch": 1, "part": part, "results": [row]});
        let server = if part % 2 == 0 { &one } else { &other };
        let receipt = post(server, "search", &body).await.json(200);
        posted += u64::from(receipt["status"] == "recorded");
    }
    for task in answering {
        task.await.expect("answers");
    }
    assert_eq!(posted, 11);
    let answered = 11_000 + done.load(Ordering::Relaxed);
    for server in [&one, &other] {
        until("all answers", async || batch(server).await["answered"] == answered).await;
        assert_eq!(batch(server).await["pairs_missing"], 66 - 11);
    }
}

async fn a_batch_in_parts_is_complete_when_all_are_there(database: TestDatabase) {
    let [one, other] = Server::two(&database).await;
    one.create(&search()).await;
    let rows = results()["results"].clone();
    let part = |number: u32, of: &[usize]| {
        let rows: Vec<_> = of.iter().map(|&at| rows[at].clone()).collect();
        json!({"batch": 1, "part": number, "results": rows})
    };
    for (body, pointer) in [(part(0, &[0]), "/part"), (part(1, &[]), "/results")] {
        one.post(RESULTS, &body).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    let receipt = one.post(RESULTS, &part(1, &[0])).await.json(200);
    assert_eq!(receipt, json!({"status": "recorded", "batch": 1, "position": 2}));
    let missing = async |client: &Client| {
        let open = client.get(&format!("{BATCH}?missing=true")).await.json(200);
        let pairs = open["pairs"].as_array().expect("pairs").clone();
        assert_eq!(open["pairs_missing"], pairs.len());
        pairs.iter().map(|pair| format!("{}{}", pair["left"], pair["right"])).collect::<Vec<_>>()
    };
    assert_eq!(missing(&one).await, ["\"a\"\"c\"", "\"b\"\"c\""]);
    // the other server may not have seen it yet, and knows it before it checks the next part
    assert_eq!(other.post(RESULTS, &part(1, &[0])).await.json(200)["status"], "duplicate");
    other.post(RESULTS, &part(1, &[1])).await.problem(ProblemKind::FeedbackConflict);
    let twice = other.post(RESULTS, &part(2, &[0, 1])).await;
    twice.problem_at(ProblemKind::InvalidRequest, "/results/0");
    assert_eq!(other.post(RESULTS, &part(2, &[1])).await.json(200)["position"], 3);
    assert_eq!(missing(&other).await.len(), 1);
    assert_eq!(one.post(RESULTS, &part(3, &[2])).await.json(200)["position"], 4);
    assert_eq!(batch(&one).await["number"], 2);
    other.post(RESULTS, &part(4, &[2])).await.problem(ProblemKind::BatchNotOpen);
    assert_eq!(one.standings("search").await["duels"], 30);
}

async fn every_pair_of_256_rankers_is_posted_in_parts(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let ids: Vec<String> = (0..256).map(|number| format!("ranker-{number:03}")).collect();
    let policy = json!({"kind": "pcomp", "horizon": 1_000_000, "batches": 2});
    server.create(&json!({"name": "search", "rankers": ids, "policy": policy})).await;
    let mut rows = Vec::new();
    for (at, left) in ids.iter().enumerate() {
        rows.extend(ids[at + 1..].iter().map(|right| {
            // 1,000,000 comparisons of 32,640 pairs
            json!({"left": left, "right": right, "left_wins": 15, "right_wins": 0, "ties": 15})
        }));
    }
    let open = batch(&server).await;
    assert_has(&open, json!({"pairs_total": 32640, "needed": 1_000_000}));
    let whole = json!({"batch": 1, "results": rows}).to_string();
    assert!(whole.len() > 2 * 1024 * 1024, "{}", whole.len());
    // The server can close the connection before all of the body was sent.
    if let Ok(refused) = server.try_send("POST", RESULTS, &[JSON], whole.into_bytes()).await {
        assert_eq!(refused.status, 413);
    }
    // some pairs need 31
    for offset in (0..32640).step_by(1000) {
        let page = server.get(&format!("{BATCH}?offset={offset}")).await.json(200);
        for (pair, row) in page["pairs"].as_array().expect("pairs").iter().zip(&mut rows[offset..])
        {
            row["right_wins"] = json!(pair["needed"].as_u64().expect("a count") - 30);
        }
    }
    for (part, rows) in (1..).zip(rows.chunks(10_000)) {
        let body = json!({"batch": 1, "part": part, "results": rows});
        assert_eq!(server.post(RESULTS, &body).await.json(200)["position"], part + 1);
    }
    assert_eq!(batch(&server).await["number"], Value::Null, "the horizon is used up");
    assert_eq!(server.standings("search").await["duels"], 1_000_000);
}

async fn a_concluded_experiment_records_no_results(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert_eq!(batch(&server).await["number"], Value::Null);
    let refused = server.post(RESULTS, &results()).await;
    refused.problem_saying(ProblemKind::BatchNotOpen, "no batch is");
    assert_eq!(server.standings("search").await["duels"], 0);
    server.patch("search", &json!({"status": "running"})).await.json(200);
    server.post(RESULTS, &results()).await.json(200);
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert_eq!(server.post(RESULTS, &results()).await.json(200)["status"], "duplicate");
}

/// `a` and `b` return the same documents: no page of theirs can have a winner.
async fn a_pair_with_equal_rankings_does_not_hold_a_batch_up(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let (mut pages, mut silent) = (0, 0);
    while batch(&server).await["number"] == 1 {
        let duel = server.next_duel("search").await;
        if duel["left"] == "c" || duel["right"] == "c" {
            server.wins("search", &duel, "c").await;
        } else {
            let ids = json!(["d1", "d2", "d3"]);
            let body = json!({"duel_id": duel["duel_id"], "left": ids, "right": ids, "length": 3});
            let page = server.post("/v1/experiments/search/interleave", &body).await.json(200);
            let clicks = json!({"duel_id": page["duel_id"], "clicks": [0]});
            server.feedback("search", &clicks).await.json(200);
            silent += 1;
        }
        pages += 1;
        assert!(pages < 1000, "the batch does not end: {}", batch(&server).await);
    }
    assert_eq!((pages, silent), (130, 110));
    let standings = server.standings("search").await;
    assert_eq!(standings["wins"], json!([[0, 0, 0], [0, 0, 0], [10, 10, 0]]));
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
}

async fn a_batch_without_progress_raises_an_alarm_with_or_without_traffic(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let stuck = async |server: &Server| {
        let page = server.get("/experiments/search").await.text();
        page.contains("The open batch makes no progress")
    };
    let limit = 5 * TTL_MS;
    server.clock.advance_ms(limit);
    assert!(!stuck(&server).await);
    server.clock.advance_ms(1);
    assert!(stuck(&server).await, "without any traffic");
    // pages without a result are traffic, and no progress
    let duel = server.next_duel("search").await;
    server.answer("search", &duel, "none").await;
    assert!(stuck(&server).await, "with pages that have no result");
    let duel = server.next_duel("search").await;
    server.answer("search", &duel, "left").await;
    assert!(!stuck(&server).await);
    // what a server has seen since it started does not matter
    server.clock.advance_ms(limit + 1);
    let detail =
        "Batch 1 has 1 of 30 comparisons, and got none for 5 minutes; 3 of its pairs need more";
    assert!(server.get("/experiments/search").await.text().replace('\u{a0}', " ").contains(detail));
    let clock = server.clock.now_ms();
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    server.clock.advance_ms(clock - START_MS);
    assert!(stuck(&server).await, "after a restart");
    // a pause is none
    for status in ["paused", "running"] {
        server.clock.advance_ms(limit + 1);
        server.patch("search", &json!({"status": status})).await.json(200);
        assert!(!stuck(&server).await, "{status}");
    }
}

async fn the_open_batch_is_on_its_page_and_in_the_metrics(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let duels = lease(&server, 30).await;
    answer_all(&server, &duels[..12], "left").await;
    let page = server.get("/experiments/search/traffic").await.text();
    for part in ["1 of at most 3", "12 of 30, 18 in flight", "after 18 more comparisons"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let metrics = async || server.get("/metrics").await.text();
    let text = metrics().await;
    for (name, value) in
        [("number", 1), ("number_max", 3), ("needed", 30), ("answered", 12), ("pairs_missing", 3)]
    {
        let line = format!("rankduel_experiment_batch_{name}{{experiment=\"search\"}} {value}.0");
        assert!(text.contains(&line), "{line}: {text}");
    }
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert!(!metrics().await.contains("experiment_batch_number{"));
    assert!(server.get("/experiments/search/traffic").await.text().contains("No batch is open."));
}

async fn results_that_do_not_match_the_batch_are_refused(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let detail_of = |answer: Answer, pointer: &str| {
        let problem = answer.problem_at(ProblemKind::InvalidRequest, pointer);
        problem["errors"].to_string()
    };
    let post = async |change: &dyn Fn(&mut Value)| {
        let mut body = results();
        change(&mut body["results"]);
        server.post(RESULTS, &body).await
    };
    let before = server.standings("search").await;

    let too_few = detail_of(post(&|rows| rows[0]["left_wins"] = json!(6)).await, "/results/0");
    assert!(
        too_few.contains("`a` and `b`") && too_few.contains('9') && too_few.contains("10"),
        "{too_few}"
    );
    let too_many =
        detail_of(post(&|rows| rows[1]["ties"] = json!(4_294_967_295u32)).await, "/results/1");
    assert!(too_many.contains("`c` and `a`"), "{too_many}");
    let unknown = detail_of(post(&|rows| rows[2]["left"] = json!("z")).await, "/results/2");
    assert!(unknown.contains("`z`") && unknown.contains("`b` and `c` is missing"), "{unknown}");
    let itself = detail_of(post(&|rows| rows[2]["right"] = json!("b")).await, "/results/2");
    assert!(itself.contains("`b` and `b`"), "{itself}");
    let twice = detail_of(
        post(&|rows| {
            rows[2] = json!({"left": "b", "right": "a", "left_wins": 5, "right_wins": 5, "ties": 0})
        })
        .await,
        "/results/2",
    );
    assert!(twice.contains("twice") && twice.contains("`b` and `c` is missing"), "{twice}");
    let missing = detail_of(post(&|rows| *rows = json!([])).await, "/results");
    assert_eq!(missing.matches("is missing").count(), 3, "{missing}");

    for number in [0, 2, u32::MAX] {
        let mut body = results();
        body["batch"] = json!(number);
        server.post(RESULTS, &body).await.problem_saying(ProblemKind::BatchNotOpen, "batch 1 is");
    }
    assert_eq!(server.standings("search").await, before, "a refused request changed the standings");
    server.post(RESULTS, &results()).await.json(200);
}

async fn a_lease_needs_a_running_experiment(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let duels = lease(&server, 2).await;
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    server.post(LEASE, &json!({"count": 1})).await.problem(ProblemKind::ExperimentPaused);
    server.answer("search", &duels[0], "left").await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert_eq!(lease(&server, 1).await.len(), 0, "a concluded experiment issues no comparisons");
    server.answer("search", &duels[1], "left").await;
    let ended = batch(&server).await;
    assert_eq!((&ended["number"], &ended["opened_at"]), (&json!(null), &json!(null)));
    assert_eq!((&ended["pairs"], &ended["needed"]), (&json!([]), &json!(0)));

    // the batch continues where it was
    server.patch("search", &json!({"status": "running"})).await.json(200);
    let open = batch(&server).await;
    assert_eq!((&open["number"], &open["answered"]), (&json!(1), &json!(2)));
    assert_eq!(lease(&server, 1).await.len(), 1);
}

/// The experiment concludes by itself long before its batch of a million comparisons ends. Callers
/// that work until no batch is open stop, at every server.
async fn callers_see_the_end_of_a_concluded_experiment(database: TestDatabase) {
    let [server, second] = Server::two(&database).await;
    server.create(&with(steady("search", &["a", "b"]), json!({"conclude_at": {}}))).await;
    for client in [&server, &second] {
        eventually("the end of the batches", async || {
            let open = client.get(BATCH).await.json(200);
            if open["number"].is_null() {
                return Some(());
            }
            let duels = lease(client, 20).await;
            let answers = duels.iter().map(|duel| {
                let outcome = if duel["left"] == "a" { "left" } else { "right" };
                json!({"duel_id": duel["duel_id"], "outcome": outcome})
            });
            let answers: Vec<_> = answers.collect();
            if !answers.is_empty() {
                client.feedback("search", &json!({"feedback": answers})).await.json(200);
            }
            None
        })
        .await;
    }
    let experiment = second.experiment("search").await;
    assert_eq!((&experiment["status"], &experiment["winner"]), (&json!("concluded"), &json!("a")));
}

async fn other_policies_have_no_batches(database: TestDatabase) {
    let server = Server::running(
        &database,
        &json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "uniform"}}),
    )
    .await;
    server.get(BATCH).await.problem(ProblemKind::NotABatchPolicy);
    server.post(LEASE, &json!({"count": 1})).await.problem(ProblemKind::NotABatchPolicy);
    server.post(RESULTS, &results()).await.problem(ProblemKind::NotABatchPolicy);
    assert_eq!(server.position("search").await, 1);
}

const CLIENTS: u64 = 8;
const HORIZON: u64 = 1000;
const RANKERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Totals over all eight clients.
#[derive(Default)]
struct Done {
    recorded: AtomicU64,
    no_signal: AtomicU64,
    duplicates: AtomicU64,
    expired: AtomicU64,
    batches: AtomicU64,
    /// Counts the duels of `a` and `b`, to alternate the winner.
    turns: AtomicU64,
}

/// Run an experiment to its end with eight concurrent clients. They lose one duel in 20, send one
/// answer in 10 twice, and give no click to one page in 20. The clock advances whenever a client
/// has to wait, so that lost duels expire, and perhaps slow ones. It stands still while requests
/// run: an answer that arrives in time and is written after its time would be surplus. The lower
/// index wins nine times in ten, but `a` and `b` alternate, so only the horizon ends the run.
async fn run(database: &TestDatabase, kind: &str) -> (Server, Arc<Done>) {
    let body = with(
        search(),
        json!({"rankers": RANKERS, "policy": {"kind": kind, "horizon": HORIZON}, "seed": 3}),
    );
    let server = Server::running(database, &body).await;
    let done = Arc::new(Done::default());
    let clock = Arc::new(RwLock::new(server.clock.clone()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|seed| {
            let (client, clock, done) = (server.client(), Arc::clone(&clock), Arc::clone(&done));
            let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            tokio::spawn(async move { work(&client, &clock, &done, rng).await })
        })
        .collect();
    for client in clients {
        client.await.expect("a client that does not panic");
    }
    (server, done)
}

async fn work(
    client: &Client,
    clock: &RwLock<ManualClock>,
    done: &Done,
    mut rng: Xoshiro256PlusPlus,
) {
    let mut lost = Vec::new();
    loop {
        let running = clock.read().await;
        let duels = if rng.random_bool(0.5) {
            lease(client, rng.random_range(1..30)).await
        } else {
            vec![client.next_duel("search").await]
        };
        drop(running);
        let duels: Vec<_> = duels.into_iter().filter(|duel| duel["batch"].is_u64()).collect();
        if duels.is_empty() {
            if client.get(BATCH).await.json(200)["number"].is_null() {
                break;
            }
            clock.write().await.advance_ms(TTL_MS / 64);
        }
        for duel in duels {
            done.batches.fetch_max(duel["batch"].as_u64().expect("a batch"), Ordering::Relaxed);
            if rng.random_bool(0.05) {
                lost.push(duel);
                continue;
            }
            let index =
                |side: &str| RANKERS.iter().position(|id| duel[side] == *id).expect("a ranker");
            let (left, right) = (index("left"), index("right"));
            let outcome = if rng.random_bool(0.05) {
                "none"
            } else if left + right == 1 {
                let turn = done.turns.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
                if turn == (left < right) { "left" } else { "right" }
            } else if rng.random_bool(0.9) == (left < right) {
                "left"
            } else {
                "right"
            };
            for _ in 0..1 + u32::from(rng.random_bool(0.1)) {
                let item = json!({"duel_id": duel["duel_id"], "outcome": outcome});
                let running = clock.read().await;
                let receipts =
                    client.feedback("search", &json!({"feedback": [item]})).await.json(200);
                drop(running);
                let counter = match receipts["results"][0]["status"].as_str() {
                    Some("recorded") if outcome == "none" => &done.no_signal,
                    Some("recorded") => &done.recorded,
                    Some("duplicate") => &done.duplicates,
                    Some("expired") => &done.expired,
                    other => panic!("{other:?}: {receipts}"),
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    // The lost answers arrive too late.
    clock.write().await.advance_ms(TTL_MS + 1);
    for many in lost.chunks(1000) {
        for receipt in answer_all(client, many, "left").await {
            assert_eq!(receipt["status"], "expired");
            done.expired.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The server issues no comparison twice while it may still be answered. There is therefore no
/// surplus: the answers are exactly the comparisons of the batches.
async fn assert_end(server: &Server, done: &Done) -> Value {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert!(count(&done.duplicates) > 0 && count(&done.no_signal) > 0 && count(&done.expired) > 0);
    let standings = server.standings("search").await;
    assert_eq!(standings["duels"], count(&done.recorded) + count(&done.no_signal));
    assert!(count(&done.recorded) <= HORIZON);
    // B = floor(log2 1000) = 9
    assert!(count(&done.batches) <= 19, "{} batches", count(&done.batches));
    let end = batch(server).await;
    assert_has(&end, json!({"number": null, "opened_at": null, "pairs": []}));
    assert_eq!(lease(server, 10).await.len(), 0);
    let duel = server.next_duel("search").await;
    assert_has(&duel, json!({"left": standings["champion"], "right": standings["champion"]}));
    standings
}

async fn assert_runs_to_its_horizon(database: TestDatabase, kind: &str) {
    let (server, done) = run(&database, kind).await;
    let standings = assert_end(&server, &done).await;
    assert_eq!(done.recorded.load(Ordering::Relaxed), HORIZON, "{kind}");
    assert!(["a", "b"].contains(&standings["champion"].as_str().expect("an id")), "{standings}");
}

async fn pcomp_runs_to_its_horizon(database: TestDatabase) {
    assert_runs_to_its_horizon(database, "pcomp").await;
}

async fn scomp2_runs_to_its_horizon(database: TestDatabase) {
    assert_runs_to_its_horizon(database, "scomp2").await;
}

async fn many_equal_ties_take_no_longer_than_one(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (ties, status) in [("skip", 200), ("half", 200), ("coin", 422)] {
        let body = json!({
            "name": ties, "rankers": ["a", "b"], "ties": ties, "conclude_at": "never",
            "policy": {"kind": "pcomp", "horizon": 2_000_000_000_u64, "batches": 1},
        });
        server.create(&body).await;
        let results = json!([{
            "left": "a", "right": "b", "left_wins": 0, "right_wins": 0, "ties": 2_000_000_000_u64,
        }]);
        let path = format!("/v1/experiments/{ties}/batch/results");
        let answer = server.post(&path, &json!({"batch": 1, "results": results})).await;
        if status == 422 {
            let problem = answer.problem_at(ProblemKind::InvalidRequest, "/results");
            let detail = problem["errors"][0]["detail"].as_str().expect("a text");
            assert!(detail.starts_with("the results have 2000000000 ties"), "{detail}");
            continue;
        }
        answer.json(status);
    }
}
