//! Every page and form of the dashboard through axe-core: `scripts/check-pages`.

use std::collections::BTreeSet;
use std::path::Path;

use rankduel_engine::access::Scope;
use serde_json::{Value, json};

use super::browser::EXPERIMENTS;
use super::scene;
use super::visit::{ADMIN, serve};
use crate::support::client::eventually;
use crate::support::service::key;
use crate::support::webdriver::Browser;
use crate::support::{Kind, fresh_database};

/// The findings of axe-core on the page, as JavaScript that follows axe-core itself.
const RUN: &str = r#"
    return axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
      .then((found) => found.violations.map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")));
"#;

/// Widths and themes that differ in layout or colour.
const APPEARANCES: [(u32, &str); 4] =
    [(360, "light"), (360, "dark"), (768, "dark"), (1280, "light")];

/// JavaScript: the addresses to which links and forms of the page lead.
const LINKS: &str = r#"
    const leads = [...document.querySelectorAll("a[href]:not([download]), form[action]")];
    return leads.map((one) => one.getAttribute("href") || one.getAttribute("action"));
"#;

/// Pages of the scene that change something.
const FORMS: [&str; 8] = [
    "/new-experiment",
    "/experiments/checkout/manage",
    "/experiments/nightly/manage",
    "/experiments/checkout/manage/pause",
    "/experiments/checkout/manage/interleaving",
    "/experiments/checkout/manage/settings",
    "/keys",
    "/audit",
];

const REVIEW: &str = "button[value=review]";
const EDIT: &str = "button[value=edit]";
const CONFIRM: &str = "button[value=confirm]";
/// A field with an error, the question before a change, and the result of a change.
const WRONG: &str = "[aria-invalid=true], fieldset .wrong";
const QUESTION: &str = "#sentence";
const NOTICE: &str = ".notice";

/// A browser that goes from page to page, and what it has found.
struct Walk {
    browser: Browser,
    base: String,
    axe: String,
    findings: Vec<String>,
    /// The pages that were checked, and those that they lead to.
    checked: BTreeSet<String>,
    linked: BTreeSet<String>,
}

impl Walk {
    async fn start(base: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("target/check-pages/node_modules/axe-core/axe.min.js");
        Self {
            browser: Browser::start().await,
            base: base.to_owned(),
            axe: std::fs::read_to_string(&file).expect("axe-core: run scripts/check-pages"),
            findings: Vec::new(),
            checked: BTreeSet::new(),
            linked: BTreeSet::new(),
        }
    }

    /// Open a page, and check that it is the one with this element.
    async fn open(&mut self, path: &str, element: &str) {
        self.browser.open(&format!("{}{path}", self.base)).await;
        self.check(path, element).await;
    }

    /// Click, wait for the next page, and check that it is the one with this element.
    async fn click(&mut self, selector: &str, element: &str) {
        let click = format!(
            "window.isOld = true; document.querySelector({}).click(); return location.pathname",
            json!(selector)
        );
        let from = self.browser.run(&click).await;
        let what = format!("the page after {selector} of {from}");
        let is_new = "return !window.isOld && document.readyState === 'complete'";
        eventually(&what, async || self.browser.run(is_new).await.as_bool().filter(|is| *is)).await;
        self.check(&what, element).await;
    }

    /// Set a field, also to a value that it does not offer.
    async fn fill(&self, name: &str, value: &str) {
        let script = format!(
            "const [name, value] = {};
             const field = document.querySelector(`[name=${{name}}]`);
             if (field.tagName === 'SELECT') field.append(new Option(value, value));
             field.value = value;",
            json!([name, value])
        );
        self.browser.run(&script).await;
    }

    async fn has(&self, element: &str) -> bool {
        let script = format!("return document.querySelector({}) !== null", json!(element));
        self.browser.run(&script).await == true
    }

    /// Add what axe finds on the present page.
    async fn check(&mut self, page: &str, element: &str) {
        assert!(self.has(element).await, "{page}: no {element}");
        let path = self.browser.run("return location.pathname").await;
        self.checked.insert(shape(path.as_str().expect("a path")));
        let links = self.browser.run(LINKS).await;
        let links = links.as_array().expect("a list").iter().filter_map(Value::as_str);
        self.linked.extend(links.filter(|link| link.starts_with('/')).map(shape));
        for (width, theme) in APPEARANCES {
            self.browser.appear(width, 900, theme).await;
            self.browser
                .run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                .await;
            let wide = self.browser.run("return document.documentElement.scrollWidth").await;
            assert!(
                wide.as_u64().is_some_and(|wide| wide <= width.into()),
                "{page} {width}: {wide}"
            );
            let found = self.browser.run(&format!("{}\n{RUN}", self.axe)).await;
            let found = found.as_array().expect("a list");
            self.findings.extend(found.iter().map(|one| format!("{page} {width} {theme}: {one}")));
        }
    }

    async fn log_in(&mut self, key: &str, element: &str) {
        self.fill("key", key).await;
        self.click("main form button", element).await;
    }

    /// The form of a new experiment with errors, its question, and the experiment.
    async fn create(&mut self, name: &str) {
        self.open("/new-experiment", REVIEW).await;
        self.click(REVIEW, WRONG).await;
        self.fill("name", name).await;
        self.fill("rankers", "bm25\nneural\nrecency").await;
        self.click(REVIEW, QUESTION).await;
        self.click(EDIT, REVIEW).await;
        self.click(REVIEW, QUESTION).await;
        self.click(CONFIRM, NOTICE).await;
    }

    /// The forms of a change: with a value that is refused, on a stale page, its question, and the
    /// page after it.
    async fn change(
        &mut self,
        experiment: &str,
        action: &str,
        field: &str,
        wrong: &str,
        right: &str,
    ) {
        let path = format!("/experiments/{experiment}/manage/{action}");
        self.open(&path, REVIEW).await;
        self.fill(field, wrong).await;
        self.click(REVIEW, "main").await;
        // a value that the form does not offer is refused in the second step
        if self.has(QUESTION).await {
            self.click(CONFIRM, WRONG).await;
        }
        assert!(self.has(WRONG).await, "{path}: {wrong} is not refused");
        self.fill(field, right).await;
        self.fill("version", "0").await;
        self.click(REVIEW, "#errors").await;
        self.click(REVIEW, QUESTION).await;
        self.click(CONFIRM, NOTICE).await;
    }

    /// A change without values: its question, the page after it, and the page that refuses it now.
    async fn switch(&mut self, experiment: &str, action: &str) {
        let path = format!("/experiments/{experiment}/manage/{action}");
        self.open(&path, QUESTION).await;
        self.click(CONFIRM, NOTICE).await;
        self.open(&path, "main a.button").await;
    }
}

/// A path without names and ids.
fn shape(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [_, "experiments", _, ..] | [_, "keys", _, _] => parts[2] = "*",
        _ => {}
    }
    parts.join("/")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs axe-core: run scripts/check-pages"]
async fn axe_finds_nothing_on_any_page() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = scene::server(&database).await;
    let mut walk = Walk::start(server.base()).await;
    walk.open("/", "tbody").await;
    walk.open("/?search=h&after=Ag", "tbody").await;
    for name in EXPERIMENTS {
        for tab in ["", "/evidence", "/traffic"] {
            walk.open(&format!("/experiments/{name}{tab}"), ".tabs").await;
        }
    }
    for path in FORMS.iter().chain(&["/keys/new", "/experiments/nowhere", "/audit?experiment=none"])
    {
        walk.open(path, "h1").await;
    }
    let without_keys = walk.findings;

    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let (reader, _) = key(&store, &[Scope::Read], None).await;
    let server = serve(database.connect().await).await;
    let mut walk = Walk::start(server.base()).await;
    walk.open("/login", "#key").await;
    walk.log_in("unknown", "#wrong").await;
    walk.log_in(ADMIN, "a[href='/new-experiment']").await;
    walk.create("shop").await;
    walk.open("/", "tbody").await;
    walk.open("/experiments/shop", "a.button").await;
    walk.open("/experiments/shop/evidence", ".tabs").await;
    walk.open("/experiments/shop/traffic", ".tabs").await;
    walk.switch("shop", "pause").await;
    walk.switch("shop", "resume").await;
    walk.change("shop", "enlist", "ranker", "", "learned").await;
    walk.change("shop", "retire", "ranker", "nobody", "recency").await;
    walk.open("/experiments/shop/manage/retire?ranker=bm25", QUESTION).await;
    walk.change("shop", "interleaving", "settings", "x", "{}").await;
    walk.change("shop", "settings", "max_days", "0", "30").await;
    walk.change("shop", "control", "control", "nobody", "bm25").await;
    walk.open("/experiments/shop/manage/exclude?units=bot", REVIEW).await;
    walk.click(REVIEW, WRONG).await; // it needs a reason
    walk.fill("reason", "clicks on everything").await;
    walk.click(REVIEW, QUESTION).await;
    walk.click(CONFIRM, NOTICE).await;
    walk.change("shop", "conclude", "winner", "nobody", "neural").await;
    walk.open("/experiments/shop/manage/enlist", "main a.button").await;
    walk.open("/experiments/shop", "h1").await;
    walk.switch("shop", "archive").await;
    walk.open("/experiments/shop", "h1").await;
    walk.open("/experiments/shop/manage/nothing", "h1").await;

    walk.open("/keys/new", REVIEW).await;
    walk.click(REVIEW, WRONG).await;
    walk.fill("name", "backend").await;
    walk.browser.run("document.querySelector('[value=decide]').checked = true").await;
    walk.click(REVIEW, QUESTION).await;
    walk.click(CONFIRM, "#key").await;
    walk.open("/keys", "tbody").await;
    walk.click("a[href$='/revoke']", QUESTION).await;
    walk.click(CONFIRM, NOTICE).await;
    walk.open("/keys/00000000/revoke", "h1").await;
    walk.open("/audit", "tbody").await;
    walk.open("/audit?experiment=none", "form.filter").await;

    walk.click("form[action='/logout'] button", "#key").await;
    walk.log_in(&reader, "h1").await;
    walk.open("/new-experiment", "a[href='/']").await;
    let findings = [without_keys, walk.findings].concat();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(walk.linked.contains("/keys/*/revoke"), "{:?}", walk.linked);
    // `/docs` is Swagger UI, `/logout` leads to the page of the login
    walk.linked.retain(|path| !matches!(&**path, "/docs" | "/logout"));
    let missing: Vec<_> = walk.linked.difference(&walk.checked).collect();
    assert!(missing.is_empty(), "pages that were not checked: {missing:?}");
}
