//! The result page in states in which two features meet: no sentence, tile or row says what another
//! one denies.

use serde_json::{Value, json};

use super::walk::{play, result, text};
use crate::support::TestDatabase;
use crate::support::client::{eventually, steady, with};
use crate::support::service::Server;

on_sqlite! {
    the_better_of_two_need_not_be_better
    a_number_needs_enough_pages
    there_is_no_tick_without_data
    segments_are_judged_with_the_result
    a_proof_outlives_later_answers
    the_line_below_the_name_says_who_takes_part
    without_a_result_the_control_is_proposed
    figures_are_files
    the_cost_ends_with_the_experiment
    no_split_is_even_after_a_change_of_the_rankers
    times_are_as_people_read_them
    a_winner_that_is_shown_alone_is_not_watched
    a_pause_puts_off_no_forecast
    a_lead_below_the_margin_is_a_lead
}

fn with_control(rankers: &[&str], more: Value) -> Value {
    with(with(steady("search", rankers), json!({"control": rankers[0]})), more)
}

async fn the_better_of_two_need_not_be_better(database: TestDatabase) {
    let body =
        with_control(&["prod", "cand"], json!({"conclude_at": {"margin": 0.05, "min_days": 30}}));
    let server = Server::running(&database, &body).await;
    for _ in 0..60 {
        // the earlier name, `cand`, wins six of ten
        play(&server, "search", 10, 6).await;
        if server.verdict("search").await["state"] == "decided" {
            break;
        }
    }
    let found = server.verdict("search").await;
    assert_eq!(found["winners"], json!(["cand"]));
    assert_ne!(found["control"]["proven"], "better");
    let page = result(&server, "search").await;
    for part in ["Not worse by more than 5 points", "That it is better is not proven"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for claim in ["The best of 2", "beaten", "Ship cand"] {
        assert!(!page.contains(claim), "{claim}: {page}");
    }
}

async fn a_lead_below_the_margin_is_a_lead(database: TestDatabase) {
    let body =
        with_control(&["prod", "cand"], json!({"conclude_at": {"margin": 0.1, "min_days": 30}}));
    let server = Server::running(&database, &body).await;
    let mut control = json!(null);
    for _ in 0..100 {
        play(&server, "search", 10, 6).await;
        control = server.verdict("search").await["control"].clone();
        if control["proven"] == "not_worse" && control["at_least"].as_f64() > Some(0.51) {
            break;
        }
    }
    let page = result(&server, "search").await;
    let not_proven = "that it is better by 10 points is not proven";
    for part in ["cand is at least ", "ahead of prod, which you run now", not_proven] {
        assert!(page.contains(part), "{part}: {control} {page}");
    }
    assert!(!page.contains("behind prod"), "{page}");
}

async fn a_number_needs_enough_pages(database: TestDatabase) {
    let ids: Vec<String> = (0..20).map(|number| format!("r{number:02}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let server = Server::running(&database, &with_control(&ids, json!({}))).await;
    play(&server, "search", 40, 9).await;
    let page = result(&server, "search").await;
    let (_, much) = page.split_once("By how much?").expect("the section");
    let much = much.split("What does it cost?").next().expect("a section");
    // the control has a row of its own, the others share a sentence
    assert!(much.matches("too few answers").count() <= 2, "{much}");
    assert!(much.contains("for a number"), "{much}");
    let found = server.verdict("search").await;
    let is_control = found["leader"] == "r00";
    assert!(is_control || page.contains("Too few answers of"), "{page}");
    assert!(!page.contains(" of what you run now"), "{page}");
    assert!(is_control || much.contains("you run it now"), "{much}");
}

async fn there_is_no_tick_without_data(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": "never", "watch": 0.0}));
    let server = Server::running(&database, &body).await;
    play(&server, "search", 20, 9).await;
    let page = result(&server, "search").await;
    assert!(page.contains("Is it still true?Too few answers to tell"), "{page}");
    play(&server, "search", 180, 9).await;
    let page = result(&server, "search").await;
    assert!(
        page.contains("Is it still true?No change foundIn 200 answers with a winner"),
        "{page}"
    );
    server.patch("search", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    for days in [0, 5] {
        server.clock.advance_ms(days * 86_400_000);
        let page = result(&server, "search").await;
        assert!(page.contains("Not watched since the end"), "{page}");
        assert!(!page.contains("No change found"), "{page}");
    }
}

/// The default policy shows the winner alone once it is proven.
async fn a_winner_that_is_shown_alone_is_not_watched(database: TestDatabase) {
    let more = json!({"conclude_at": "never", "policy": {"kind": "d-ts-verdict"}});
    let server = Server::running(&database, &with(steady("search", &["a", "b"]), more)).await;
    while server.verdict("search").await["state"] != "decided" {
        let duel = server.post("/v1/experiments/search/next-duel", &json!({})).await.json(200);
        if duel["self_duel"] == false {
            server.wins("search", &duel, "a").await;
        }
    }
    for _ in 0..80 {
        server.post("/v1/experiments/search/next-duel", &json!({"count": 50})).await.json(200);
    }
    server.clock.advance_ms(60_000);
    eventually("that nothing is watched", async || {
        let page = result(&server, "search").await;
        let says = "Not watched since the resultNo rankers meet any more. Conclude it: ";
        page.contains(says).then_some(())
    })
    .await;
}

async fn segments_are_judged_with_the_result(database: TestDatabase) {
    let segments = json!({"segments": ["app", "web"], "conclude_at": "never"});
    let server =
        Server::running(&database, &with_control(&["prod", "cand", "other"], segments)).await;
    let of = async |segment: &str, pages: usize| {
        for _ in 0..pages {
            let path = "/v1/experiments/search/next-duel";
            let duel = server.post(path, &json!({"segment": segment})).await.json(200);
            let is_cand = |side: &str| duel[side] == "cand";
            let wins = match (is_cand("left"), is_cand("right")) {
                (true, _) => segment == "app",
                (_, true) => segment != "app",
                _ => true,
            };
            server.answer("search", &duel, if wins { "left" } else { "right" }).await;
        }
    };
    of("web", 60).await;
    of("app", 90).await;
    let found = server.verdict("search").await;
    assert_eq!(found["state"], "open", "{found}");
    let page = result(&server, "search").await;
    assert!(page.contains("For whom?Comes with the result"), "{page}");
    assert!(page.contains("Segments are judged once there is a winner."), "{page}");
    assert!(!page.contains("Not in web"), "{page}");
}

async fn a_proof_outlives_later_answers(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for rankers in [&["a", "b"][..], &["a", "b", "c", "d"]] {
        let name = format!("of-{}", rankers.len());
        server.create(&with(steady(&name, rankers), json!({"conclude_at": "never"}))).await;
        while server.verdict(&name).await["state"] != "decided" {
            play(&server, &name, 20, 9).await;
        }
        // from then on the winner loses
        for _ in 0..60 {
            let duel = server.pair(&name).await;
            let side = if duel["left"] == "a" { "right" } else { "left" };
            server.answer(&name, &duel, side).await;
        }
        let found = server.verdict(&name).await;
        let needed = found["evidence_needed"].as_f64().expect("a number");
        for row in found["rankers"].as_array().expect("rows").iter().filter(|row| row["id"] != "a")
        {
            let against = row["evidence_against"].as_f64().expect("a number");
            assert!(against >= needed, "{row} {needed}");
        }
        for effect in found["effects"].as_array().expect("rows") {
            assert_eq!(effect["ruled_out"], true, "{effect}");
            let low = effect["low"].as_f64().expect("a number");
            assert!(rankers.len() > 2 || low >= 0.49, "{effect}");
        }
        let page = result(&server, &name).await;
        assert!(!page.contains("not ruled out") && !page.contains("still open"), "{page}");
    }
}

async fn the_line_below_the_name_says_who_takes_part(database: TestDatabase) {
    let body = with_control(&["prod", "cand"], json!({"coverage": 0.1, "alone": 0.3}));
    let server = Server::running(&database, &body).await;
    let page = result(&server, "search").await;
    let line = "10 % of the units take part. Of these, 30 % are shown one ranker alone.";
    assert!(page.contains(line), "{page}");
    assert!(page.contains("As of 2026-09-21 14:13:20 UTC."), "for print: {page}");
}

async fn without_a_result_the_control_is_proposed(database: TestDatabase) {
    let server =
        Server::running(&database, &with_control(&["prod", "cand", "other"], json!({}))).await;
    play(&server, "search", 30, 9).await;
    assert_eq!(server.verdict("search").await["state"], "open");
    let form = server.get("/experiments/search/manage/conclude").await.text();
    assert!(form.contains("<option value=\"prod\" selected>"), "{form}");
}

async fn times_are_as_people_read_them(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 60}));
    let server = Server::running(&database, &body).await;
    // nobody answers this one
    server.pair("search").await;
    play(&server, "search", 9, 9).await;
    let page = server.get("/experiments/search").await.text();
    assert!(page.contains(">14:13:20</text>") && page.contains(">14:14:"), "{page}");
    let traffic = text(&server.get("/experiments/search/traffic").await.text());
    assert!(traffic.contains("Opened2026-09-21 14:13:20 UTC"), "{traffic}");
}

async fn figures_are_files(database: TestDatabase) {
    let body = json!({"segments": ["app"], "description": "a, \"b\""});
    let server =
        Server::running(&database, &with_control(&["=prod,1", "cand", "other"], body)).await;
    let file = async |name: &str| server.get(&format!("/experiments/search/figures/{name}")).await;
    server.patch("search", &json!({"coverage": 0.9, "owner": "running"})).await.json(200);
    assert_eq!(file("race.svg").await.status, 404, "there is nothing to draw");
    for _ in 0..5 {
        play(&server, "search", 75, 6).await;
        server.clock.advance_ms(86_400_000);
    }
    let page = server.get("/experiments/search").await.text();
    let pages = page + &server.get("/experiments/search/evidence").await.text();
    for (name, start) in [
        ("lead.csv", "leader,rival,wins,losses,win_rate,low,high,ruled_out\n"),
        ("segments.csv", "segment,ranker,opponent,wins,losses,win_rate,low,high\n"),
        ("race.csv", "at,pages,leader,rival,ln_evidence\n2026-09-21T"),
        ("regret.csv", "at,pages,low,mean,high,even_split\n"),
        ("lead-by-day.csv", "since,until,leader,rival,answers,win_rate,low,high\n2026-09-21T"),
        ("lead-by-day.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\""),
        ("race.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\""),
        ("regret.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\""),
    ] {
        assert!(
            pages.contains(&format!("/experiments/search/figures/{name}\" download")),
            "{name}"
        );
        let answer = file(name).await;
        assert!(answer.text().starts_with(start), "{name}: {}", answer.text());
        let disposition = format!("attachment; filename=\"search-{name}\"");
        assert_eq!(answer.header("content-disposition"), Some(&*disposition));
    }
    let note =
        "Dotted lines mark changes of the experiment: Mon\u{a0}21\u{a0}Sep, coverage, owner.";
    assert!(pages.contains(note), "{pages}");
    // all answers of the pair, by day
    let days = file("lead-by-day.csv").await.text();
    let answers = days.lines().skip(1).map(|row| row.rsplit(',').nth(3).expect("a number"));
    let answers: f64 = answers.map(|number| number.parse::<f64>().expect("a number")).sum();
    let found = server.verdict("search").await;
    let rows = found["effects"].as_array().expect("rows");
    let is_shown = |row: &&Value| {
        let rival = row["rival"].as_str().expect("an id");
        days.contains(&format!("\"'=prod,1\",{rival},"))
    };
    let of_pair =
        rows.iter().find(is_shown).map(|it| it["wins"].as_f64().zip(it["losses"].as_f64()));
    assert_eq!(of_pair.flatten().map(|(wins, losses)| wins + losses), Some(answers), "{days}");
    let lead = file("lead.csv").await.text();
    let effects = server.verdict("search").await["effects"].clone();
    assert_eq!(lead.lines().count(), 1 + effects.as_array().expect("rows").len());
    assert!(lead.contains("\"'=prod,1\""), "no formula: {lead}");
    for name in ["lead.svg", "none.csv", "race", "race.png"] {
        assert_eq!(file(name).await.status, 404, "{name}");
    }
}

async fn no_split_is_even_after_a_change_of_the_rankers(database: TestDatabase) {
    let policy = json!({"conclude_at": "never", "policy": {"kind": "uniform"}});
    let server =
        Server::running(&database, &with(steady("search", &["a", "b", "c"]), policy)).await;
    play(&server, "search", 60, 9).await;
    assert!(result(&server, "search").await.contains("An even split would have shown "));
    server.patch("search", &json!({"retire": "c"})).await.json(200);
    play(&server, "search", 10, 9).await;
    let page = result(&server, "search").await;
    assert!(page.contains("pages showed another ranking"), "{page}");
    assert!(!page.contains("even split"), "{page}");
    let evidence = server.get("/experiments/search/evidence").await.text();
    assert!(evidence.contains("regret-mean") && !evidence.contains("even split"), "{evidence}");
}

async fn the_cost_ends_with_the_experiment(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": "never"}));
    let server = Server::running(&database, &body).await;
    play(&server, "search", 60, 9).await;
    server.patch("search", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    for _ in 0..50 {
        server.post("/v1/experiments/search/next-duel", &json!({})).await.json(200);
    }
    let page = eventually("the pages after the end", async || {
        let page = result(&server, "search").await;
        page.contains("After the end there were ").then_some(page)
    })
    .await;
    let (before, _) = page.split_once(" showed another ranking, up to the end").expect("the tile");
    let pages = before.rsplit(' ').next().and_then(|number| number.parse::<u32>().ok());
    // those of the end are 50 more
    assert!(pages.is_some_and(|pages| (60..110).contains(&pages)), "{page}");
}

/// Two experiments with the same pages in a day each, of which one was paused for days.
async fn a_pause_puts_off_no_forecast(database: TestDatabase) {
    const HALF_DAY_MS: i64 = 43_200_000;
    let body = |name: &str| with(steady(name, &["a", "b"]), json!({"seed": 7}));
    let server = Server::running(&database, &body("paused")).await;
    let play_a_day = async |name: &str| {
        for _ in 0..2 {
            play(&server, name, 50, 6).await;
            server.clock.advance_ms(HALF_DAY_MS);
        }
    };
    let set = async |name: &str, status: &str| {
        server.patch(name, &json!({"status": status})).await.json(200);
    };
    play_a_day("paused").await;
    set("paused", "paused").await;
    server.clock.advance_ms(8 * HALF_DAY_MS);
    server.create(&body("steady")).await;
    play_a_day("steady").await;
    // the forecasts are simulated from the same position of the log
    set("steady", "paused").await;
    for name in ["steady", "paused"] {
        set(name, "running").await;
    }
    let mut found = Vec::new();
    for name in ["steady", "paused"] {
        let page = result(&server, name).await;
        let (_, tile) =
            page.split_once("When will we know?About ").unwrap_or_else(|| panic!("{page}"));
        found.push(tile.split("Is it better?").next().expect("a tile").to_owned());
    }
    assert_eq!(found[0], found[1]);
}
