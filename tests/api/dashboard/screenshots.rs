//! Screenshots for the documentation: `scripts/screenshots`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::scene;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

/// Pages, and the names of their screenshots.
const PAGES: [(&str, &str); 8] = [
    ("/", "list"),
    ("/experiments/checkout", "experiment"),
    ("/experiments/many", "136-rankers"),
    ("/experiments/nightly", "batch"),
    ("/experiments/merged", "interleaved"),
    ("/experiments/checkout/segments", "segments"),
    ("/new-experiment", "new-experiment"),
    ("/experiments/checkout/manage", "manage"),
];
const WIDTHS: [u32; 3] = [360, 768, 1280];
/// The only pictures of pages that change something; tests look at the others.
const OF_FORMS: [(u32, &str); 2] = [(1280, "light"), (360, "dark")];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes docs/screenshots: run scripts/screenshots"]
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
    for (path, name) in PAGES {
        for width in WIDTHS {
            for theme in ["light", "dark"] {
                let is_form = path.contains("new-experiment") || path.contains("manage");
                if is_form && !OF_FORMS.contains(&(width, theme)) {
                    continue;
                }
                browser.appear(width, 900, theme).await;
                browser.open(&format!("{}{path}", server.base())).await;
                let file = folder.join(format!("{name}-{width}-{theme}.png"));
                std::fs::write(&file, browser.picture().await).expect("a file");
            }
        }
    }
    // the top of the page alone, for the README
    browser.appear(1000, 900, "light").await;
    browser.open(&format!("{}/experiments/search", server.base())).await;
    std::fs::write(folder.join("verdict.png"), browser.top(1360).await).expect("a file");
}
