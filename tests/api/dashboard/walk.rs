//! A walk through every state of an experiment: no sentence of a page denies another one, or what
//! the API says.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady, until, with};
use crate::support::service::{Server, Settings};

on_sqlite! {
    nothing_is_claimed_before_the_first_winner
    every_page_names_one_leader
    bars_lie_right_of_the_line_where_a_rival_is_ruled_out
    waiting_answers_are_counted_and_dated
    a_decided_page_denies_nothing
    a_page_without_a_result_claims_none
    equal_winners_are_no_rivals
    shares_and_counts_agree
    directions_of_names_end_with_them
    rivals_of_a_race_differ_in_colour_and_name
    numbers_and_names_are_short
}

/// Sentences that a page with a result must not have, in small letters.
const DENIALS: [&str; 9] = [
    "not settled",
    "either way",
    "still open",
    "not ruled out:",
    "not clearly",
    "not known yet",
    "we will know",
    "more pages",
    "no result yet",
];

/// The text of a page, without its elements.
pub fn text(html: &str) -> String {
    let main = html.split_once("<main").map_or(html, |(_, main)| main);
    let pieces = main.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
    pieces.collect::<String>().replace(['\u{202f}', '\u{a0}'], " ").replace("&gt;", ">")
}

/// The texts of the pages of an experiment, in small letters.
pub async fn pages(server: &Client, name: &str) -> String {
    let mut all = String::new();
    for path in ["", "/evidence", "/traffic"] {
        let page = server.get(&format!("/experiments/{name}{path}")).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        all += &text(&page.text()).to_lowercase();
    }
    all
}

/// Wait until the list has this text: it shows what the last round has stored.
async fn listed(server: &Client, part: &str) {
    until(part, async || text(&server.get("/").await.text()).contains(part)).await;
}

pub async fn result(server: &Client, name: &str) -> String {
    text(&server.get(&format!("/experiments/{name}")).await.text())
}

/// Answer `duels` duels. Of ten answers of a pair, the earlier name wins `share`.
pub async fn play(server: &Client, name: &str, duels: usize, share: usize) {
    let mut answers: HashMap<[String; 2], usize> = HashMap::new();
    for _ in 0..duels {
        let duel = server.pair(name).await;
        let mut pair = ["left", "right"].map(|side| duel[side].as_str().expect("an id").to_owned());
        let left_is_first = pair[0] < pair[1];
        pair.sort();
        let number = answers.entry(pair).or_default();
        let first_wins = *number * 7 % 10 < share;
        *number += 1;
        server
            .answer(name, &duel, if left_is_first == first_wins { "left" } else { "right" })
            .await;
    }
}

async fn nothing_is_claimed_before_the_first_winner(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    let text = pages(&server, "search").await;
    assert!(text.contains("no answer has come yet"), "{text}");
    for claim in ["leads", "chance of being best", "by how much", "evidence against"] {
        assert!(!text.contains(claim), "{claim}: {text}");
    }
    let list = self::text(&server.get("/").await.text());
    assert!(list.contains("Running") && list.contains("No answer has come yet."), "{list}");
    let duel = server.pair("search").await;
    server.answer("search", &duel, "none").await;
    let text = pages(&server, "search").await;
    assert!(text.contains("no page has had a winner yet") && !text.contains("leads"), "{text}");
}

async fn every_page_names_one_leader(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    server.create(&steady("search", &["c", "b", "a", "d"])).await;
    // also while it is early, and the counts, the policy and the model can disagree
    for round in 0..8 {
        play(&server, "search", 3, 6).await;
        let found = server.verdict("search").await;
        let leader = found["leader"].as_str().expect("an id");
        let page = result(&server, "search").await;
        assert!(page.contains(&format!("{leader} leads: ")), "{round} {leader}: {page}");
        listed(&server, &format!("{leader} leads: ")).await;
        let form = server.get("/experiments/search/manage/conclude").await.text();
        let chosen = format!("<option value=\"{leader}\" selected>");
        assert!(form.contains(&chosen), "{round} {leader}: {form}");
        let segments = server.report("search", "segments").await;
        assert_eq!(segments["ranker"], leader);
        let rows = found["rankers"].as_array().expect("rows");
        let chances: f64 = rows.iter().map(|row| row["best_probability"].as_f64().unwrap()).sum();
        assert!((chances - 1.0).abs() < 1e-9, "{chances}: {found}");
    }
}

async fn bars_lie_right_of_the_line_where_a_rival_is_ruled_out(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let of = |effect: &Value, name: &str| effect[name].as_f64().expect("a number");
    for (name, rankers, share) in
        [("two", &["a", "b"][..], 7), ("five", &["a", "b", "c", "d", "e"][..], 8)]
    {
        server.create(&steady(name, rankers)).await;
        for _ in 0..40 {
            play(&server, name, 12, share).await;
            let found = server.verdict(name).await;
            for effect in found["effects"].as_array().expect("a list") {
                let (low, high) = (of(effect, "low"), of(effect, "high"));
                let is_out = effect["ruled_out"] == true;
                assert!(low <= high, "{effect}");
                assert!(is_out || low < 0.49, "right of the line and not ruled out: {found}");
                // with two rankers there is no other way than the pair itself
                assert!(rankers.len() > 2 || is_out == (low >= 0.49), "{found}");
                let is_possible = found["possible"].as_array().unwrap().contains(&effect["rival"]);
                assert_eq!(is_out, !is_possible, "{found}");
            }
            if found["state"] == "decided" {
                break;
            }
        }
        assert_eq!(server.verdict(name).await["state"], "decided", "{name}");
    }
}

async fn waiting_answers_are_counted_and_dated(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 3600}));
    let server = Server::running(&database, &body).await;
    // one page is never answered, so that all answers wait
    server.pair("search").await;
    server.clock.advance_ms(1000);
    play(&server, "search", 90, 9).await;
    let found = server.verdict("search").await;
    assert_eq!((&found["state"], &found["duels_to_go"]["estimate"]), (&json!("open"), &json!(0)));
    let preview = found["rankers"][1]["evidence_with_waiting"].as_f64().expect("a number");
    assert!(preview > found["evidence_needed"].as_f64().expect("a number"), "{found}");
    let page = result(&server, "search").await;
    assert!(page.contains("a leads. The answers that wait would settle it."), "{page}");
    assert!(page.contains(" 90 answers are in and wait, because"), "{page}");
    // the clock started at 14:13:20
    assert!(page.contains("the result can come at 15:13 UTC"), "{page}");
    assert!(page.contains("A result will be wrong in at most 5 of 100 experiments."), "{page}");
    assert!(!page.contains(" 0 more") && !page.contains("pages to the"), "{page}");
    server.clock.advance_ms(3_700_000);
    let page = eventually("the result", async || {
        let page = result(&server, "search").await;
        page.contains("Ship a.").then_some(page)
    })
    .await;
    assert!(!page.contains("wait"), "{page}");
}

async fn a_decided_page_denies_nothing(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for rankers in [&["a", "b"][..], &["a", "b", "c", "d"]] {
        let name = format!("of-{}", rankers.len());
        server.create(&steady(&name, rankers)).await;
        play(&server, &name, 240, 9).await;
        assert_eq!(server.verdict(&name).await["winners"], json!(["a"]));
        let check = async |state: &str| {
            let all = pages(&server, &name).await;
            for denial in DENIALS {
                assert!(!all.contains(denial), "{state}, {denial}: {all}");
            }
            assert!(all.contains("this result is wrong in at most 5 of 100 experiments"), "{all}");
            // an archived experiment leaves the list
            if state == "archived" {
                let list = text(&server.get("/").await.text());
                assert!(!list.contains("Ship a."), "{list}");
            } else {
                let heads = "ExperimentStateResultLead over what you run, in pointsSince";
                listed(&server, &format!("Needs a decision{heads}{name}Decided")).await;
            }
        };
        check("running").await;
        assert!(result(&server, &name).await.contains("Ship a."));
        server.patch(&name, &json!({"status": "paused"})).await.json(200);
        check("paused").await;
        server.patch(&name, &json!({"status": "concluded", "winner": "a"})).await.json(200);
        check("concluded").await;
        let page = result(&server, &name).await;
        assert!(page.contains("Make it the default in your search backend"), "{page}");
        // a server that has not loaded it knows of the result
        let list = text(&Server::start(database.connect().await).await.get("/").await.text());
        assert!(list.contains("Decided") && list.contains("Ship a."), "{list}");
        let path = format!("/v1/experiments/{name}");
        assert_eq!(server.send("DELETE", &path, &[], Vec::new()).await.status, 204);
        check("archived").await;
        assert!(result(&server, &name).await.contains("it can be read, but not changed"));
    }
}

async fn a_page_without_a_result_claims_none(database: TestDatabase) {
    let body = with(steady("limit", &["a", "b", "c"]), json!({"conclude_at": {"max_duels": 6}}));
    let server = Server::running(&database, &body).await;
    server.create(&steady("person", &["a", "b", "c"])).await;
    for name in ["limit", "person"] {
        play(&server, name, 6, 6).await;
    }
    server.patch("person", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    for (name, why) in [
        ("limit", "The experiment reached its limit of days or answers and ended on"),
        ("person", "The experiment was ended on b without a result."),
    ] {
        let page = eventually(name, async || {
            let page = result(&server, name).await;
            page.contains(why).then_some(page)
        })
        .await;
        let pages = pages(&server, name).await;
        assert!(
            page.contains("the evidence is not enough for a result")
                || page.contains("evidence is not enough"),
            "{page}"
        );
        for claim in ["ship ", "we will know", "not ruled out:", "still open", "this result is"] {
            assert!(!pages.contains(claim), "{name}, {claim}: {pages}");
        }
        let shown = server.verdict(name).await["concluded"]["winner"].clone();
        let shown = format!("ended on {} without a result.", shown.as_str().expect("an id"));
        assert!(page.contains(&shown), "{page}");
        listed(&server, &shown).await;
    }
}

async fn equal_winners_are_no_rivals(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = steady("search", &["a", "b"]);
    // almost every difference is a tie, and all answers count at the same time
    body["conclude_at"] = json!({"margin": 0.2, "min_days": 30});
    body["answer_window_seconds"] = json!(60);
    server.create(&body).await;
    play(&server, "search", 120, 5).await;
    server.clock.advance_ms(300_000);
    until("two winners", async || server.verdict("search").await["winners"] == json!(["a", "b"]))
        .await;
    let page = result(&server, "search").await;
    assert!(page.contains("are equally good") && page.contains("any of them"), "{page}");
    let text = pages(&server, "search").await;
    for denial in DENIALS {
        assert!(!text.contains(denial), "{denial}: {text}");
    }
    let heads = "ExperimentStateResultLead over what you run, in pointsSince";
    listed(&server, &format!("Going on{heads}searchDecided")).await;
}

async fn shares_and_counts_agree(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    play(&server, "search", 10, 7).await;
    let evidence = server.get("/experiments/search/evidence").await.text();
    assert!(evidence.contains("title=\"7:3\">70</td>"), "7:3 is 70 %: {evidence}");
    assert!(evidence.contains("title=\"3:7\">30</td>"), "{evidence}");
    let regret = server.report("search", "regret").await;
    let mean = regret["copeland_regret"]["mean"].as_f64().unwrap();
    let shown = format!("id=\"regret-mean\">{mean:.2}<");
    assert!(evidence.contains(&shown), "{shown}: {evidence}");
    let list = text(&server.get("/").await.text()).to_lowercase();
    assert!(!list.contains("regret"), "one number of it, on one page: {list}");
    // both rankers are on every page, so half of all places are the other one's
    let page = result(&server, "search").await;
    assert!(page.contains("5 of 10 pages showed another ranking"), "{page}");
}

async fn directions_of_names_end_with_them(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let turned = "evil\u{202e}gnp.b";
    server.create(&steady("search", &["a", turned])).await;
    play(&server, "search", 12, 9).await;
    for path in ["", "/evidence", "/traffic", "/manage", "/manage/conclude"] {
        let page = server.get(&format!("/experiments/search{path}")).await.text();
        for (at, _) in page.match_indices(turned) {
            let before = &page[..at];
            let opened = &before[before.rfind('<').expect("an element")..];
            let of_their_own = ["<bdi", "<option", "<text", "<code"];
            let isolated = opened.contains('\u{2068}')
                || of_their_own.iter().any(|element| opened.starts_with(element))
                || opened.contains("title=")
                || opened.contains("href=");
            assert!(isolated, "{path}: {opened}");
        }
    }
}

async fn rivals_of_a_race_differ_in_colour_and_name(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let ids: Vec<String> =
        (0..12).map(|number| format!("a-name-of-many-parts-that-ends-in-{number:02}")).collect();
    server.create(&steady("search", &ids.iter().map(String::as_str).collect::<Vec<_>>())).await;
    for _ in 0..6 {
        play(&server, "search", 6, 9).await;
        server.clock.advance_ms(60_000);
    }
    let page = server.get("/experiments/search").await.text();
    let (_, race) = page.split_once("id=\"when\"").expect("the section");
    let race = race.split("</section>").next().expect("a section");
    for colour in 1..=5 {
        assert_eq!(race.matches(&format!("\"ln k{colour}\"")).count(), 1, "{colour}: {race}");
    }
    let mut names: Vec<&str> = race.split("<text class=\"k").skip(1).collect();
    let heights = names.iter().map(|name| name.split(" y=\"").nth(1).expect("a height"));
    let heights = heights.map(|y| y.split('%').next().expect("percent").parse().expect("a number"));
    let heights: Vec<f64> = heights.collect();
    let apart = |pair: &[f64]| pair[1] - pair[0] > 7.9;
    assert!(heights.windows(2).all(apart), "no name lies over another one: {heights:?}");
    names.iter_mut().for_each(|name| *name = name.split(['<', '>']).nth(1).expect("a name"));
    assert!(names.iter().all(|name| name.chars().count() <= 18), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5, "{names:?}");
}

async fn numbers_and_names_are_short(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let long = [
        "bm25",
        "neural-two-tower-bge-m3-finetuned-on-click-logs-q3",
        "neural-two-tower-multilingual-e5-large-instruct",
        "a-name-of-one-letter-parts-x-x-x-x",
    ];
    let mut body = steady("search", &long);
    body["conclude_at"] = json!({"confidence": 0.999, "margin": 0.025});
    server.create(&body).await;
    play(&server, "search", 12, 9).await;
    let page = result(&server, "search").await;
    for part in ["by mistake in at most 1 of 1 000 experiments", "lead of up to 2.5 points counts"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let leader = server.verdict("search").await["leader"].clone();
    let page = server.get("/experiments/search").await.text();
    // no other ranker is ruled out
    for (name, short) in long[1..].iter().zip(["finetuned", "multilingual", "name"]) {
        let is_said = page.contains(&format!(" title=\"{name}\">{short}</bdi>"));
        assert!(is_said || leader == *name, "{short}: {page}");
    }
    let page = server.get("/experiments/search/evidence").await.text();
    for tick in [0, 5, 10, 15] {
        assert!(page.contains(&format!("\">{tick}</text>")), "pages of the axis: {page}");
    }
}
