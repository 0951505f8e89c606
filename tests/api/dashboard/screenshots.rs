//! Screenshots for the documentation: `cargo test --test api pictures_of_every_page -- --ignored`,
//! and then `pngquant` for small files.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::scene;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

/// Pages, the names of their screenshots, and how each is shown.
const PAGES: [(&str, &str, u32, &str); 5] = [
    ("/", "list", 1280, "light"),
    ("/experiments/checkout", "experiment", 1280, "light"),
    ("/experiments/checkout", "experiment", 360, "dark"),
    ("/experiments/search/evidence", "evidence", 1280, "light"),
    ("/new-experiment", "new-experiment", 1280, "light"),
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes docs/screenshots: run with --ignored"]
async fn pictures_of_every_page() {
    let other = std::env::var_os("RANKDUEL_SCREENSHOTS").map(PathBuf::from);
    let folder =
        other.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/screenshots"));
    std::fs::create_dir_all(&folder).expect("the folder");
    let database = fresh_database(Kind::Sqlite).await;
    let server = scene::server(&database).await;
    scene::fill(&server, "search", 6, json!({"kind": "d-ts-verdict", "margin": 0.01}), 2600).await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    let browser = Browser::start().await;
    for (path, name, width, theme) in PAGES {
        browser.appear(width, 900, theme).await;
        browser.open(&format!("{}{path}", server.base())).await;
        let file = folder.join(format!("{name}-{width}-{theme}.png"));
        std::fs::write(&file, browser.picture().await).expect("a file");
    }
    // the top of the page alone, for the README
    browser.appear(1000, 900, "light").await;
    browser.open(&format!("{}/experiments/search", server.base())).await;
    std::fs::write(folder.join("verdict.png"), browser.top(1360).await).expect("a file");
}
