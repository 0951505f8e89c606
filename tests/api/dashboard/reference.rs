//! The API reference at `/docs` in a browser.

use rankduel::http::ShellSettings;
use rankduel_engine::access::ApiKeys;
use serde_json::json;

use crate::support::client::until;
use crate::support::service::{Server, Settings};
use crate::support::webdriver::Browser;
use crate::support::{Kind, TestDatabase, fresh_database};

const KEY: &str = "given-at-the-start-0123456789";

/// Element ids of `GET /livez` and `GET /v1/experiments`, made of tag and operation id.
const LIVEZ: &str = "operations-operations-livez";
const EXPERIMENTS: &str = "operations-experiments-list";

async fn serve(database: &TestDatabase, keys: ApiKeys) -> Server {
    let shell = ShellSettings { keys, ..ShellSettings::default() };
    Server::with(database.store().await, Settings { shell, ..Settings::default() }).await
}

/// Wait until the page has an element that matches a selector.
async fn drawn(browser: &Browser, selector: &str) {
    let script = format!("return document.querySelector({}) !== null", json!(selector));
    until(selector, async || browser.run(&script).await == json!(true)).await;
}

async fn click(browser: &Browser, selector: &str) {
    drawn(browser, selector).await;
    browser.run(&format!("document.querySelector({}).click()", json!(selector))).await;
}

/// Open an operation and prepare its request.
async fn open(browser: &Browser, operation: &str) {
    click(browser, &format!("#{operation} .opblock-summary-control")).await;
    click(browser, &format!("#{operation} .try-out__btn")).await;
}

/// Send the request of an open operation, and wait until the page shows this status.
async fn execute(browser: &Browser, operation: &str, status: &str) {
    click(browser, &format!("#{operation} .execute")).await;
    let script = format!(
        "return [...document.querySelectorAll('#{operation} .live-responses-table .response \
         > .response-col_status')].map((cell) => cell.textContent.trim())"
    );
    let what = format!("{status} of {operation}");
    until(&what, async || browser.run(&script).await == json!([status])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_shows_every_operation_and_sends_its_requests() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(&database, ApiKeys::default()).await;
    let browser = Browser::start().await;
    browser.open(&format!("{}/docs", server.base())).await;
    drawn(&browser, ".opblock").await;

    let document = serde_json::to_value(rankduel::http::description()).expect("JSON");
    let paths = document["paths"].as_object().expect("an object");
    let described: usize =
        paths.values().map(|item| item.as_object().expect("an object").len()).sum();
    let shown = browser.run("return document.querySelectorAll('.opblock').length").await;
    assert_eq!(shown, json!(described));

    open(&browser, LIVEZ).await;
    execute(&browser, LIVEZ, "200").await;
    open(&browser, EXPERIMENTS).await;
    execute(&browser, EXPERIMENTS, "200").await;

    let foreign = browser
        .run(
            "return performance.getEntriesByType('resource').map((one) => one.name)\
             .filter((url) => !url.startsWith(location.origin) && !url.startsWith('data:'))",
        )
        .await;
    assert_eq!(foreign, json!([]), "the page loads from other hosts");
    // The console would also show violations of the content security policy.
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_sends_the_entered_key() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(&database, ApiKeys::parse(KEY).expect("a key")).await;
    let browser = Browser::start().await;
    browser.open(&format!("{}/docs", server.base())).await;
    open(&browser, LIVEZ).await;
    execute(&browser, LIVEZ, "200").await;
    assert_eq!(browser.console().await, [""; 0]);
    open(&browser, EXPERIMENTS).await;
    execute(&browser, EXPERIMENTS, "401").await;

    click(&browser, ".auth-wrapper .authorize").await;
    drawn(&browser, "#auth-bearer-value").await;
    browser.run("document.getElementById('auth-bearer-value').focus()").await;
    browser.press(&format!("{KEY}\u{e007}")).await; // Enter
    drawn(&browser, ".modal-ux [aria-label='Remove authorization']").await;
    click(&browser, ".modal-ux .close-modal").await;
    execute(&browser, EXPERIMENTS, "200").await;
    // The browser logs the expected 401 and nothing else.
    let console = browser.console().await;
    assert!(console.len() == 1 && console[0].contains("status of 401"), "{console:?}");
    let stored = browser.run("return localStorage.length + sessionStorage.length").await;
    assert_eq!(stored, json!(0), "the key is stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn problem_pages_link_to_the_list_of_problems() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(&database, ApiKeys::default()).await;
    let browser = Browser::start().await;
    browser.open(&format!("{}/problems/timeout", server.base())).await;
    assert_eq!(browser.text("h1").await, rankduel::http::ProblemKind::Timeout.title());
    click(&browser, "a[href='/docs#problems']").await;
    drawn(&browser, "#problems[open]").await;
    drawn(&browser, ".opblock").await;
    assert_eq!(browser.console().await, [""; 0]);
}
