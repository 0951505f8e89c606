//! The charts of an experiment's page in a browser.

use super::scene;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

#[tokio::test(flavor = "multi_thread")]
async fn charts_show_their_values_by_keyboard_and_in_words() {
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
    }
    assert_eq!(browser.console().await, [""; 0]);
}
