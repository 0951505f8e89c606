//! Every page of the dashboard through axe-core: `scripts/check-pages`.

use std::path::Path;

use super::manage_browser::{PAGES, fill, log_in, submit};
use super::scene;
use super::visit::serve;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

/// The findings of axe-core on the page, as JavaScript that follows axe-core itself.
const RUN: &str = r#"
    return axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
      .then((found) => found.violations.map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")));
"#;

/// Widths and themes that differ in layout or colour.
const APPEARANCES: [(u32, &str); 3] = [(360, "light"), (768, "dark"), (1280, "dark")];

/// Add what axe finds on the open page.
async fn check(browser: &Browser, axe: &str, page: &str, findings: &mut Vec<String>) {
    for (width, theme) in APPEARANCES {
        browser.appear(width, 900, theme).await;
        browser
            .run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            .await;
        let found = browser.run(&format!("{axe}\n{RUN}")).await;
        let found = found.as_array().expect("a list");
        findings.extend(found.iter().map(|one| format!("{page} {width} {theme}: {one}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs axe-core: run scripts/check-pages"]
async fn axe_finds_nothing_on_any_page() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/check-pages/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&file).expect("axe-core: run scripts/check-pages");
    let database = fresh_database(Kind::Sqlite).await;
    let server = scene::server(&database).await;
    let browser = Browser::start().await;
    let mut findings = Vec::new();
    let pages = ["/", "/experiments/checkout", "/experiments/merged", "/experiments/nightly"];
    for page in pages.iter().chain(&PAGES) {
        browser.open(&format!("{}{page}", server.base())).await;
        check(&browser, &axe, page, &mut findings).await;
    }
    // Pages that follow a form: errors, the question, keys.
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(database.store().await).await;
    browser.open(&format!("{}/login", server.base())).await;
    check(&browser, &axe, "login", &mut findings).await;
    log_in(&browser, &server).await;
    browser.open(&format!("{}/new-experiment", server.base())).await;
    submit(&browser, "button[value=review]", "New experiment").await;
    check(&browser, &axe, "a new experiment with errors", &mut findings).await;
    fill(&browser, "name", "shop").await;
    fill(&browser, "rankers", "bm25\nneural").await;
    submit(&browser, "button[value=review]", "New experiment").await;
    check(&browser, &axe, "the question", &mut findings).await;
    browser.open(&format!("{}/keys/new", server.base())).await;
    check(&browser, &axe, "a new key", &mut findings).await;
    fill(&browser, "name", "backend").await;
    browser.run("document.querySelector('[value=decide]').checked = true").await;
    submit(&browser, "button[value=review]", "New key").await;
    submit(&browser, "button[value=confirm]", "The new key").await;
    check(&browser, &axe, "the new key", &mut findings).await;
    browser.open(&format!("{}/keys", server.base())).await;
    check(&browser, &axe, "keys", &mut findings).await;
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
