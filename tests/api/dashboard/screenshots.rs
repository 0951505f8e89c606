//! Screenshots for the documentation: `scripts/screenshots`.

use std::path::{Path, PathBuf};

use super::scene;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

/// Pages, and the names of their screenshots.
const PAGES: [(&str, &str); 7] = [
    ("/", "list"),
    ("/experiments/checkout", "experiment"),
    ("/experiments/many", "136-rankers"),
    ("/experiments/nightly", "batch"),
    ("/experiments/merged", "interleaved"),
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
}
