//! The pages that change something, and the charts, in a browser.

use serde_json::{Value, json};

use super::browser::PALE;
use super::scene;
use super::visit::{ADMIN, serve};
use crate::support::client::{JSON, eventually};
use crate::support::service::Server;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

/// Log in with the key of the server.
pub async fn log_in(browser: &Browser, server: &Server) {
    browser.open(&format!("{}/login", server.base())).await;
    fill(browser, "key", ADMIN).await;
    submit(browser, "main form button", "Experiments").await;
}

/// Set the value of a field.
pub async fn fill(browser: &Browser, name: &str, value: &str) {
    let script = format!(
        "const field = document.querySelector(`[name={name}]`); field.value = {}; return field.value",
        json!(value)
    );
    assert_eq!(browser.run(&script).await.as_str().map(str::trim), Some(value.trim()), "{name}");
}

/// Click on an element, and wait for a page with this title.
pub async fn submit(browser: &Browser, selector: &str, title: &str) {
    browser.run(&format!("document.querySelector({}).click()", json!(selector))).await;
    let script = "const title = document.querySelector('h1'); return title && title.textContent";
    eventually(title, async || {
        let found = browser.run(script).await;
        found.as_str().is_some_and(|found| found.trim().starts_with(title)).then_some(())
    })
    .await;
}

async fn read(server: &Server, name: &str) -> Value {
    let bearer = format!("Bearer {ADMIN}");
    let headers = [JSON, ("authorization", &*bearer)];
    server.send("GET", &format!("/v1/experiments/{name}"), &headers, Vec::new()).await.json(200)
}

const CONFIRM: &str = "button[value=confirm]";
const REVIEW: &str = "button[value=review]";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_creates_and_manages_an_experiment() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(database.store().await).await;
    let browser = Browser::start().await;
    log_in(&browser, &server).await;

    submit(&browser, "a[href='/new-experiment']", "New experiment").await;
    fill(&browser, "name", "Shop").await;
    fill(&browser, "rankers", "bm25\nneural | two towers\nrecency").await;
    submit(&browser, REVIEW, "New experiment").await;
    // The error is beside the field, and the values are kept.
    let wrong = browser
        .run("return document.querySelector('[name=name]').getAttribute('aria-describedby')")
        .await;
    let help = browser.text(&format!("#{}", wrong.as_str().expect("an id"))).await;
    assert!(help.contains("An experiment's name is 1 to 64"), "{help}");
    let kept = browser.run("return document.querySelector('[name=rankers]').value").await;
    assert_eq!(kept, "bm25\nneural | two towers\nrecency");
    // The browser logs the expected 422.
    drop(browser.console().await);
    fill(&browser, "name", "shop").await;
    browser.run(&format!("document.querySelector('{REVIEW}').click()")).await;
    eventually("the question", async || {
        browser
            .run("return document.getElementById('sentence') !== null")
            .await
            .as_bool()
            .filter(|is| *is)
    })
    .await;
    // A reader who changes their mind finds the form as it was.
    browser.run("document.querySelector('button[value=edit]').click()").await;
    eventually("the form", async || {
        let kept = browser
            .run("const field = document.querySelector('textarea'); return field && field.value")
            .await;
        (kept == "bm25\nneural | two towers\nrecency").then_some(())
    })
    .await;
    browser.run(&format!("document.querySelector('{REVIEW}').click()")).await;
    eventually("the question", async || {
        browser
            .run("return document.getElementById('sentence') !== null")
            .await
            .as_bool()
            .filter(|is| *is)
    })
    .await;
    submit(&browser, CONFIRM, "Manage shop").await;
    assert!(browser.text(".notice").await.contains("is created"));
    assert_eq!(read(&server, "shop").await["rankers"][1]["description"], "two towers");

    for (action, field, status) in [
        ("pause", None, "paused"),
        ("resume", None, "running"),
        ("enlist", Some(("ranker", "learned")), "running"),
        ("policy", Some(("policy", "uniform")), "running"),
        ("interleaving", Some(("interleaving", "balanced")), "running"),
        ("conclude", Some(("winner", "neural")), "concluded"),
    ] {
        let link = format!("a[href='/experiments/shop/manage/{action}']");
        browser.run(&format!("document.querySelector({}).click()", json!(link))).await;
        let form = if field.is_some() { REVIEW } else { CONFIRM };
        let script = format!("return document.querySelector('{form}') !== null");
        eventually(action, async || browser.run(&script).await.as_bool().filter(|is| *is)).await;
        if let Some((name, value)) = field {
            fill(&browser, name, value).await;
            browser.run(&format!("document.querySelector('{REVIEW}').click()")).await;
            let script = format!("return document.querySelector('{CONFIRM}') !== null");
            eventually(action, async || browser.run(&script).await.as_bool().filter(|is| *is))
                .await;
            let sentence = browser.text("#sentence").await;
            assert!(sentence.contains(value), "{action}: {sentence}");
        }
        submit(&browser, CONFIRM, "Manage shop").await;
        assert_eq!(read(&server, "shop").await["status"], status, "{action}");
    }
    let shop = read(&server, "shop").await;
    assert_eq!((&shop["winner"], &shop["policy"]["kind"]), (&json!("neural"), &json!("uniform")));
    assert_eq!(shop["rankers"][3]["id"], "learned");
    // The managing pages have no script at all, and break no rule of their own.
    assert_eq!(browser.run("return document.scripts.length").await, 0);
    browser.open(&format!("{}/audit?experiment=shop", server.base())).await;
    assert_eq!(browser.run("return document.querySelectorAll('tbody tr').length").await, 7);
    assert_eq!(browser.console().await, [""; 0]);
}

/// Pages of the scene that change something.
pub const PAGES: [&str; 8] = [
    "/new-experiment",
    "/experiments/checkout/manage",
    "/experiments/nightly/manage",
    "/experiments/checkout/manage/pause",
    "/experiments/checkout/manage/policy",
    "/experiments/checkout/manage/interleaving",
    "/keys",
    "/audit",
];

#[tokio::test(flavor = "multi_thread")]
async fn managing_pages_fit_every_width_and_are_readable_in_both_themes() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = scene::server(&database).await;
    let browser = Browser::start().await;
    for page in PAGES {
        for (width, theme) in [(360, "light"), (768, "dark"), (1280, "light"), (360, "dark")] {
            browser.appear(width, 800, theme).await;
            browser.open(&format!("{}{page}", server.base())).await;
            browser
                .run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                .await;
            let wide = browser.run("return document.documentElement.scrollWidth").await;
            assert!(
                wide.as_u64().is_some_and(|wide| wide <= u64::from(width)),
                "{page} {width}: {wide}"
            );
            assert_eq!(browser.run(PALE).await, json!([]), "{page} {theme}");
        }
    }
    assert_eq!(browser.console().await, [""; 0]);
}

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
