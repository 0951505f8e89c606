//! Replays under another policy.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::service::Server;

on_sqlite! {
    a_replay_under_the_own_policy_gives_the_served_state
    a_replay_under_another_policy_reports_its_selections
    an_invalid_replay_is_refused
}

/// Answer `duels` duels; the lower id wins three times in four.
async fn play(server: &Server, name: &str, duels: usize) {
    for number in 0..duels {
        let duel = server.next_duel(name).await;
        if duel["self_duel"] == true {
            continue;
        }
        let first = (duel["left"].as_str() < duel["right"].as_str()) == (number % 4 != 3);
        server.answer(name, &duel, if first { "left" } else { "right" }).await;
    }
}

async fn replay(server: &Server, name: &str, policy: Value) -> Value {
    server
        .post(&format!("/v1/experiments/{name}/replay"), &json!({"policy": policy}))
        .await
        .json(200)
}

async fn a_replay_under_the_own_policy_gives_the_served_state(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let policies = [
        json!({"kind": "d-ts-plus"}),
        json!({"kind": "ccb"}),
        json!({"kind": "scb"}),
        json!({"kind": "savage", "horizon": 400}),
        json!({"kind": "scomp2", "horizon": 400}),
        json!({"kind": "pcomp", "horizon": 1000, "batches": 2}),
    ];
    let mut compared = 0;
    for (number, policy) in policies.into_iter().enumerate() {
        let name = format!("e{number}");
        server
            .create(&json!({"name": name, "rankers": ["a", "b", "c"], "policy": policy, "seed": number}))
            .await;
        play(&server, &name, 40).await;
        let found = replay(&server, &name, policy.clone()).await;
        assert_eq!(found["own_policy"], true);
        let loaded = server.service.experiment(&name).await.expect("an experiment");
        let (position, saved, champion) = {
            let fold = loaded.fold().expect("a fold");
            (fold.position(), fold.policy().save(), fold.policy().champion())
        };
        if position != found["position"] {
            continue; // self-duels were logged meanwhile, so the digests are of different states
        }
        let digest: String = <sha2::Sha256 as sha2::Digest>::digest(&saved)[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        compared += 1;
        assert_eq!(found["state"], digest, "{policy}");
        assert_eq!(found["champion"], ["a", "b", "c"][champion]);
        // A second replay gives the same result, to the last digit.
        let again = replay(&server, &name, policy).await;
        if again["position"] == found["position"] {
            assert_eq!(again, found);
        }
    }
    assert!(compared >= 2, "batches contain no self-duels");
}

async fn a_replay_under_another_policy_reports_its_selections(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    play(&server, "search", 20).await;
    let short = replay(&server, "search", json!({"kind": "d-ts"})).await;
    assert_eq!((&short["own_policy"], &short["regret"]), (&json!(false), &json!(null)));
    assert!(short["regret_reason"].as_str().is_some_and(|why| why.contains("20 steps")), "{short}");

    play(&server, "search", 400).await;
    let found = replay(&server, "search", json!({"kind": "uniform"})).await;
    assert_eq!((&found["position"], &found["steps"]), (&json!(420), &json!(420)));
    assert_eq!((&found["leaders"], &found["champion"]), (&json!(["a"]), &json!("a")));
    let shares: f64 =
        found["next"].as_array().unwrap().iter().map(|next| next["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "nine ordered pairs: {found}");
    let regret = &found["regret"];
    let steps = regret["steps"].as_u64().expect("a number of steps");
    assert!((100..=420).contains(&steps), "{found}");
    // Uniform pairs cost the uniform regret: within five deviations of the mean of twenty runs.
    let [mean, deviation, uniform] =
        [&regret["replayed"]["mean"], &regret["deviation"], &regret["uniform"]]
            .map(|v| v.as_f64().unwrap());
    assert!(
        (mean - uniform).abs() < 5.0 * deviation / 20.0_f64.sqrt() + 0.02 * uniform,
        "{regret}"
    );

    // The log and the runs have the same prices, so their difference is known better than each.
    let number = |value: &Value| value.as_f64().expect("a number");
    let difference = &regret["difference"];
    let [replayed, logged] = [&regret["replayed"], &regret["logged"]];
    let means = number(&replayed["mean"]) - number(&logged["mean"]);
    assert!((number(&difference["mean"]) - means).abs() < 1e-6 * (1.0 + means.abs()), "{regret}");
    assert!(number(&difference["low"]) <= means && means <= number(&difference["high"]));
    let width = |band: &Value| number(&band["high"]) - number(&band["low"]);
    assert!(width(difference) <= width(replayed) + width(logged), "{regret}");
    assert!((0.0..=1.0).contains(&number(&regret["cheaper"])));
    let answers = regret["answers"].as_array().expect("pairs");
    assert_eq!(answers.len(), 3);
    let used: f64 = answers
        .iter()
        .map(|pair| {
            assert!(number(&pair["used"]) <= number(&pair["available"]), "{regret}");
            number(&pair["used"])
        })
        .sum();
    assert!(used <= steps as f64 && used > 0.5 * steps as f64, "six of nine pairs: {regret}");

    // A log of one pair has no information about the others.
    server
        .create(
            &json!({"name": "narrow", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}}),
        )
        .await;
    let mut answered = 0;
    while answered < 120 {
        let duel = server.pair("narrow").await;
        if duel["left"] != "c" && duel["right"] != "c" {
            server.answer("narrow", &duel, "left").await;
            answered += 1;
        }
    }
    let narrow = replay(&server, "narrow", json!({"kind": "uniform"})).await;
    assert_eq!(narrow["regret"], json!(null));
    let reason = narrow["regret_reason"].as_str().expect("a reason");
    assert!(reason.contains("used up") && reason.contains("`c`"), "{reason}");
    // The experiment is unchanged.
    assert_eq!(server.position("search").await, 420);

    // The command reports the same, for the database and for an export.
    server.stop().await;
    let command = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rankduel"))
            .args(arguments)
            .env("RANKDUEL_DATABASE_URL", &database.url)
            .output()
            .expect("the program runs");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("text")
    };
    let of = |text: String| serde_json::from_str::<Value>(&text).expect("JSON");
    let options = ["--policy", "uniform", "--format", "json"];
    assert_eq!(of(command(&[&["replay", "search"], &options[..]].concat())), json!([found]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("search.jsonl").display().to_string();
    command(&["export", "search", "--out", &file]);
    let mut expected = found;
    expected["experiment"] = json!("replayed");
    assert_eq!(
        of(command(&[&["replay", "--file", &file], &options[..]].concat())),
        json!([expected])
    );
    let own = command(&["replay", "search"]);
    assert!(own.contains("(the experiment's own)") && own.contains("Copeland regret"), "{own}");
}

async fn an_invalid_replay_is_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    let path = "/v1/experiments/search/replay";
    for (body, pointer) in [
        (json!({"policy": {"kind": "no-such"}}), "/policy/kind"),
        (json!({"policy": {}}), "/policy/kind"),
        (json!({"policy": {"kind": "d-ts", "alpha": 0.1}}), "/policy/alpha"),
        (json!({"policy": {"kind": "scomp2"}}), "/policy/horizon"),
    ] {
        server.post(path, &body).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    for body in
        [json!({}), json!({"policy": "d-ts"}), json!({"policy": {"kind": "d-ts"}, "more": 1})]
    {
        server.post(path, &body).await.problem(ProblemKind::InvalidRequest);
    }
    let body = json!({"policy": {"kind": "d-ts"}});
    server
        .post("/v1/experiments/nobody/replay", &body)
        .await
        .problem(ProblemKind::ExperimentNotFound);
    play(&server, "search", 3).await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server.prune("search", 2).await;
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    server.post(path, &body).await.problem_saying(ProblemKind::CannotReplay, "pruned");
}
