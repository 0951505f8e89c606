//! The dashboard's pages in a browser.

use serde_json::{Value, json};

use super::scene;
use crate::support::client::until;
use crate::support::service::Server;
use crate::support::webdriver::Browser;
use crate::support::{Kind, TestDatabase, fresh_database};

/// The experiments of the scene.
pub const EXPERIMENTS: [&str; 7] = ["checkout", "two", "ten", "many", "nightly", "merged", "fresh"];

/// A server with experiments to show, and a browser.
async fn stage() -> (TestDatabase, Server, Browser) {
    let database = fresh_database(Kind::Sqlite).await;
    let server = scene::server(&database).await;
    (database, server, Browser::start().await)
}

/// A number as the page formats it.
fn count(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no count: {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_match_the_api_and_log_no_errors() {
    let (_database, server, browser) = stage().await;
    let base = server.base().to_owned();
    browser.open(&base).await;
    let listed = browser
        .run("return [...document.querySelectorAll('tbody th a')].map((a) => a.textContent).sort()")
        .await;
    let mut names = EXPERIMENTS;
    names.sort_unstable();
    assert_eq!(listed, json!(names));

    for name in EXPERIMENTS {
        let page = format!("{base}/experiments/{name}");
        let standings = server.standings(name).await;
        let traffic = server.report(name, "traffic").await;
        let verdict = server.verdict(name).await;
        browser.open(&page).await;
        let counted = json!(count(&browser.text("#answers").await));
        assert_eq!(counted, verdict["rests_on"]["answers"], "{name}");
        bars_are_those_of_the_api(&browser, &verdict, name).await;

        browser.open(&format!("{page}/traffic")).await;
        assert_eq!(json!(count(&browser.text("#in-flight").await)), traffic["in_flight"], "{name}");
        let canary = browser.run("return document.body.textContent.includes('The canary')").await;
        let statistics = server.report(name, "statistics").await;
        assert_eq!(canary, json!(!statistics["canary"].is_null()), "{name}");

        // Every cell of the table has the pair's counts from the API.
        browser.open(&format!("{page}/evidence")).await;
        let cells = browser
            .run(
                "return [...document.querySelectorAll('table.matrix tbody tr')].map((row) => \
                 [row.querySelector('bdi').textContent, ...[...row.querySelectorAll('td:not(.chance)')].map((cell) => cell.title)])",
            )
            .await;
        let rows = standings["rankers"].as_array().unwrap().iter();
        let ids: Vec<&str> = rows.map(|row| row["id"].as_str().unwrap()).collect();
        let index = |id: &str| ids.iter().position(|own| *own == id).expect("a ranker");
        let rows = cells.as_array().unwrap();
        // the second id of the canary takes no part
        let compared = ids.len() - usize::from(name == "merged");
        assert_eq!(rows.len(), if name == "fresh" { 0 } else { compared.min(16) }, "{name}");
        let order: Vec<usize> = rows.iter().map(|row| index(row[0].as_str().unwrap())).collect();
        for (row, &i) in rows.iter().zip(&order) {
            for (cell, &j) in row.as_array().unwrap()[1..].iter().zip(&order) {
                let (wins, losses) = (&standings["wins"][i][j], &standings["wins"][j][i]);
                match cell.as_str().unwrap().split_once(':') {
                    None => assert_eq!((wins, losses), (&json!(0), &json!(0)), "{name} {i} {j}"),
                    Some((left, right)) => assert_eq!(
                        (json!(count(left)), json!(count(right))),
                        (wins.clone(), losses.clone()),
                        "{name} {i} {j}"
                    ),
                }
            }
        }
        for tab in ["", "/evidence", "/traffic"] {
            browser.open(&format!("{page}{tab}")).await;
            let foreign = browser
                .run("return performance.getEntriesByType('resource').map((one) => one.name).filter((url) => !url.startsWith(location.origin) && !url.startsWith('data:'))")
                .await;
            assert_eq!(foreign, json!([]), "{name}{tab} loads from other hosts");
            assert_eq!(browser.console().await, [""; 0], "{name}{tab}");
        }
    }
}

/// The bars of the leader match the API.
async fn bars_are_those_of_the_api(browser: &Browser, verdict: &Value, name: &str) {
    let rows = browser
        .run(
            "return [...document.querySelectorAll('#much tbody tr')].map((row) => \
             [...row.children].map((cell) => cell.textContent))",
        )
        .await;
    let effects = verdict["effects"].as_array().expect("a list").iter();
    // a pair with too few answers has no row
    let width = |of: &Value| of["high"].as_f64().expect("high") - of["low"].as_f64().expect("low");
    let is_known = |of: &&Value| !of["win_rate"].is_null() && width(of) <= 0.6;
    let effects: Vec<_> = effects.filter(is_known).take(16).collect();
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), if name == "fresh" { 0 } else { effects.len() }, "{name}");
    for (row, effect) in rows.iter().zip(effects) {
        assert_eq!(row[0], effect["rival"], "{name}");
        let points = |share: &Value| 100.0 * (share.as_f64().expect("a share") - 0.5);
        let measured = row[2].as_str().unwrap().replace('−', "-").replace('+', "");
        if let Ok(shown) = measured.parse::<f64>() {
            assert!((shown - points(&effect["win_rate"])).abs() < 0.051, "{name}: {row} {effect}");
            let ends = row[3].as_str().unwrap().replace('−', "-").replace('+', "");
            let (low, high) = ends.split_once(" to ").expect("two ends");
            for (shown, end) in [(low, "low"), (high, "high")] {
                let shown: f64 = shown.parse().expect("points");
                // rounded outwards
                let beyond = if end == "low" { 1.0 } else { -1.0 } * (points(&effect[end]) - shown);
                assert!((-1e-6..0.101).contains(&beyond), "{name}: {row} {effect}");
            }
        }
        let outs = ["beaten", "ruled out", "cannot be the best"];
        let is_out = outs.contains(&row[4].as_str().unwrap());
        assert!(
            is_out == (effect["ruled_out"] == true) || row[4] == "equally good",
            "{name}: {row}"
        );
    }
}

/// The text that somebody has typed into the search field stays while the list updates itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_keeps_what_was_typed() {
    let (_database, server, browser) = stage().await;
    browser.open(server.base()).await;
    browser.run("document.getElementById('search').focus()").await;
    browser.press("n").await;
    browser.run("document.getElementById('search').blur()").await;
    server.create(&json!({"name": "newest", "rankers": ["a", "b"]})).await;
    until("the new row", async || browser.text("main").await.contains("newest")).await;
    let typed = browser.run("return document.getElementById('search').value").await;
    assert_eq!(typed, json!("n"));
}

/// A link without an id keeps the focus, and a selected text stays selected.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_keeps_the_place_of_the_reader() {
    let (_database, server, browser) = stage().await;
    browser.open(&format!("{}/experiments/two", server.base())).await;
    let before = count(&browser.text("#answers").await);
    let answer = async || {
        let duel = server.pair("two").await;
        server.answer("two", &duel, "left").await;
    };
    let focus = "return document.activeElement.textContent";
    let focused = browser
        .run("document.querySelector('#main .do a.button').focus(); return document.activeElement.textContent")
        .await;
    answer().await;
    until("the update", async || count(&browser.text("#answers").await) == before + 1).await;
    assert_eq!(browser.run(focus).await, focused);
    let selected = "return document.getSelection().toString()";
    browser.run("document.getSelection().selectAllChildren(document.getElementById('say'))").await;
    let text = browser.run(selected).await;
    answer().await;
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    assert_eq!(browser.run(selected).await, text);
    browser.run("document.getSelection().removeAllRanges()").await;
    until("the next update", async || count(&browser.text("#answers").await) == before + 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_updates_itself_and_needs_no_script() {
    let (_database, server, browser) = stage().await;
    let page = format!("{}/experiments/two", server.base());
    browser.open(&page).await;
    let before = count(&browser.text("#answers").await);
    browser
        .run("document.getElementById('words').open = true; document.getElementById('pause').focus()")
        .await;
    let duel = server.pair("two").await;
    server.answer("two", &duel, "left").await;
    until("the new duel on the page", async || {
        count(&browser.text("#answers").await) == before + 1
    })
    .await;
    assert_eq!(
        browser
            .run("return [document.getElementById('words').open, document.activeElement.id]")
            .await,
        json!([true, "pause"])
    );
    // A paused page stays as it is; the status is announced to screen readers, too.
    browser.press("\u{e007}").await; // Enter
    until("the pause", async || browser.text("#updated").await == "Paused").await;
    assert_eq!(browser.console().await, [""; 0]);

    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    browser.open(&page).await;
    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": false})).await;
    assert_eq!(count(&browser.text("#answers").await), before + 1);
    assert_eq!(
        browser.run("return document.getElementById('updates').hidden").await,
        Value::Bool(true)
    );
}
