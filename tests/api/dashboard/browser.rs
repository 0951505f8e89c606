//! The dashboard's pages in a browser.

use serde_json::{Value, json};

use super::scene;
use crate::support::client::eventually;
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
        .run("return [...document.querySelectorAll('tbody th a')].map((a) => a.textContent)")
        .await;
    let mut names = EXPERIMENTS;
    names.sort_unstable();
    assert_eq!(listed, json!(names));

    for name in EXPERIMENTS {
        browser.open(&format!("{base}/experiments/{name}")).await;
        let standings = server.standings(name).await;
        let traffic = server.get(&format!("/v1/experiments/{name}/traffic")).await.json(200);
        assert_eq!(json!(count(&browser.text("#duels").await)), standings["duels"], "{name}");
        assert_eq!(json!(count(&browser.text("#in-flight").await)), traffic["in_flight"], "{name}");

        // Every cell of the table has the pair's counts from the API.
        let cells = browser
            .run(
                "return [...document.querySelectorAll('table.heat tbody tr')].map((row) => \
                 [row.querySelector('th').textContent, ...[...row.querySelectorAll('td')].map((cell) => \
                 cell.querySelector('.small:last-child') ? cell.querySelector('.small:last-child').textContent : '')])",
            )
            .await;
        let ids: Vec<&str> = standings["rankers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap())
            .collect();
        let index = |id: &str| ids.iter().position(|own| *own == id).expect("a ranker");
        let rows = cells.as_array().unwrap();
        // the second id of the canary takes no part
        let compared = ids.len() - usize::from(name == "merged");
        assert_eq!(rows.len(), compared.min(16), "{name}");
        let order: Vec<usize> = rows.iter().map(|row| index(row[0].as_str().unwrap())).collect();
        for (row, &i) in rows.iter().zip(&order) {
            for (cell, &j) in row.as_array().unwrap()[1..].iter().zip(&order) {
                let cell = cell.as_str().unwrap();
                let (wins, losses) = (&standings["wins"][i][j], &standings["wins"][j][i]);
                match cell.split_once(':') {
                    None => assert_eq!((wins, losses), (&json!(0), &json!(0)), "{name} {i} {j}"),
                    Some((left, right)) => {
                        let right = right.split('(').next().unwrap();
                        assert_eq!(
                            (json!(count(left)), json!(count(right))),
                            (wins.clone(), losses.clone()),
                            "{name} {i} {j}"
                        );
                    }
                }
            }
        }
        // The chosen ranker's row.
        let against = browser.run("return [...document.querySelectorAll('#against tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))").await;
        let chosen = browser.run("return document.querySelector('#ranker').value").await;
        let i = index(chosen.as_str().unwrap());
        for row in against.as_array().unwrap() {
            let j = index(row[0].as_str().unwrap());
            assert_eq!(json!(count(row[1].as_str().unwrap())), standings["wins"][i][j], "{name}");
            assert_eq!(json!(count(row[2].as_str().unwrap())), standings["wins"][j][i], "{name}");
        }
        let statistics = server.get(&format!("/v1/experiments/{name}/statistics")).await.json(200);
        pairs_are_those_of_the_api(&browser, &statistics, name).await;
        let foreign = browser
            .run("return performance.getEntriesByType('resource').map((one) => one.name).filter((url) => !url.startsWith(location.origin) && !url.startsWith('data:'))")
            .await;
        assert_eq!(foreign, json!([]), "{name} loads from other hosts");
        assert_eq!(browser.console().await, [""; 0], "{name}");
    }
}

/// The table of interleaved pages matches the API.
async fn pairs_are_those_of_the_api(browser: &Browser, statistics: &Value, name: &str) {
    let rows = |title: &str| {
        format!(
            "return [...document.querySelectorAll('section[aria-labelledby={title}] tbody tr')].map((row) => \
             [...row.children].map((cell) => cell.textContent))"
        )
    };
    let pages = browser.run(&rows("interleaved-title")).await;
    let of_version = |one: &&Value| !one["version"].is_null();
    let expected: Vec<&Value> =
        statistics["versions"].as_array().unwrap().iter().filter(of_version).collect();
    let expected: usize = expected.iter().map(|one| one["pairs"].as_array().unwrap().len()).sum();
    assert_eq!(pages.as_array().unwrap().len(), expected, "{name}: one row per pair");
    for row in pages.as_array().unwrap() {
        let pairs = statistics["versions"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| one["pairs"].as_array().unwrap());
        let is_row = |pair: &&Value| {
            row[0]
                == format!(
                    "{} : {}",
                    pair["ranker"].as_str().unwrap(),
                    pair["against"].as_str().unwrap()
                )
        };
        let pair = pairs.clone().find(is_row).expect("a pair of the API");
        let delta = row[1].as_str().unwrap().replace('−', "-").parse::<f64>().unwrap();
        assert!((delta - pair["delta"].as_f64().unwrap()).abs() < 0.0006, "{name}: {row} {pair}");
        let won = format!("{}:{} ({})", pair["wins"], pair["losses"], pair["ties"]);
        assert_eq!(row[3], won, "{name}");
    }
    let canary = browser
        .run("return document.body.textContent.includes('The canary, two ids of the same ranker')")
        .await;
    assert_eq!(canary, json!(!statistics["canary"].is_null()), "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_updates_itself_and_needs_no_script() {
    let (_database, server, browser) = stage().await;
    let page = format!("{}/experiments/two?ranker=neural", server.base());
    browser.open(&page).await;
    let before = count(&browser.text("#duels").await);
    browser
        .run("document.getElementById('words').open = true; document.getElementById('pause').focus()")
        .await;
    let duel = server.pair("two").await;
    server.answer("two", &duel, "left").await;
    eventually("the new duel on the page", async || {
        (count(&browser.text("#duels").await) == before + 1).then_some(())
    })
    .await;
    assert_eq!(
        browser
            .run("return [document.getElementById('words').open, document.activeElement.id]")
            .await,
        json!([true, "pause"])
    );
    assert_eq!(browser.run("return document.querySelector('#ranker').value").await, "neural");
    // A paused page stays as it is; the status is announced to screen readers, too.
    browser.press("\u{e007}").await; // Enter
    eventually("the pause", async || (browser.text("#updated").await == "Paused").then_some(()))
        .await;
    assert_eq!(browser.console().await, [""; 0]);

    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    browser.open(&page).await;
    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": false})).await;
    assert_eq!(count(&browser.text("#duels").await), before + 1);
    assert_eq!(
        browser.run("return document.getElementById('updates').hidden").await,
        Value::Bool(true)
    );
}
