//! The charts of an experiment's page in a browser, and as CSV.

use super::scene;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

#[tokio::test(flavor = "multi_thread")]
async fn charts_show_their_values_by_keyboard_and_on_hover_and_as_csv() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = scene::server(&database).await;
    let browser = Browser::start().await;
    browser.open(&format!("{}/experiments/checkout", server.base())).await;
    for chart in ["race", "cost", "shown"] {
        let first = format!("document.getElementById('{chart}-1')");
        browser.run(&format!("{first}.focus()")).await;
        browser.press("\u{e014}\u{e014}").await; // two times Arrow Right
        let focused = browser
            .run("const one = document.activeElement; return [one.id, one.getAttribute('aria-label'), getComputedStyle(one.nextElementSibling).display, one.nextElementSibling.textContent]")
            .await;
        assert_eq!(focused[0], format!("{chart}-3"), "the arrow keys move between values");
        assert_eq!(focused[2], "grid", "the values are visible");
        let spoken = focused[1].as_str().expect("a text");
        assert!(spoken.contains("pages shown: "), "{spoken}");
        // Ticks are multiples of 1, 2, 2.5 or 5 times a power of ten. Which ones depends on the
        // number of pages, and that on the duels that the server draws.
        let ticks = browser
            .run(&format!("return [...{first}.closest('.frame').querySelectorAll('.x-ticks li')].map((one) => Number(one.textContent.replace(/\\s/g, '')))"))
            .await;
        let ticks: Vec<u64> = serde_json::from_value(ticks).expect("whole numbers");
        let digits = ticks[1].to_string();
        assert!(
            matches!(digits.trim_end_matches('0'), "1" | "2" | "25" | "5"),
            "{chart}: {ticks:?}"
        );
        assert!(ticks.iter().zip(0..).all(|(tick, part)| *tick == part * ticks[1]), "{ticks:?}");
        // Every line of the legend is a column of the data.
        let legend = browser
            .run(&format!("return [...{first}.closest('.plot').querySelectorAll('.legend li')].map((one) => one.textContent)"))
            .await;
        let link = browser
            .run(&format!(
                "return {first}.closest('.plot').querySelector('.data a').getAttribute('href')"
            ))
            .await;
        let path = link.as_str().expect("a path");
        assert_eq!(path, format!("/experiments/checkout/charts/{chart}.csv"));
        let answer = server.get(path).await;
        assert_eq!(answer.status, 200);
        assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/csv")));
        let text = answer.text();
        let header = text.lines().next().expect("a header");
        for label in legend.as_array().expect("labels") {
            assert!(header.contains(label.as_str().expect("a text")), "{header} lacks {label}");
        }
        let columns = |line: &str| line.split(',').count();
        let rows: Vec<&str> = text.lines().skip(1).collect();
        let wanted = columns(rows[0]);
        assert!(rows.len() > 5 && rows.iter().all(|row| columns(row) == wanted), "{text}");
    }
    // The regret of the last row is that of the API.
    let regret = server.get("/v1/experiments/checkout/regret").await.json(200);
    let text = server.get("/experiments/checkout/charts/cost.csv").await.text();
    let last: Vec<&str> = text.lines().last().expect("a row").split(',').collect();
    let mean = regret["posterior"]["copeland_regret"]["mean"].as_f64().expect("a number");
    let shown: f64 = last[1].parse().expect("a number");
    assert!((shown - mean).abs() < 1e-6 * mean, "{last:?} {mean}");
    assert_eq!(server.get("/experiments/checkout/charts/none.csv").await.status, 404);
    assert_eq!(server.get("/experiments/none/charts/cost.csv").await.status, 404);
    assert_eq!(browser.console().await, [""; 0]);
}
