//! A large form is checked on other threads than a small one, and gets the same page.

use serde_json::{Value, json};

use super::manage::{api, changes_of, create};
use super::visit::{ADMIN, Answer, Visitor, serve};
use crate::support::service::Server;
use crate::support::{Kind, TestDatabase, fresh_database};

/// The choices that a new experiment's form starts with.
const CHOSEN: [(&str, &str); 4] =
    [("policy", "ccb"), ("concludes", "verdict"), ("ties", "skip"), ("interleaving", "team-draft")];

/// So much white space that the form is large.
fn space() -> String {
    "\n".repeat(64 * 1024)
}

/// The status and the page that these fields lead to, with and without much space behind the values
/// of `field`.
async fn both(visitor: &Visitor, path: &str, fields: &[(&str, &str)], field: &str) -> [Answer; 2] {
    let form = visitor.get(path).await;
    let (token, version) = (form.token(), form.html.contains("name=\"version\""));
    let version = if version { form.hidden("version") } else { String::new() };
    let submit = async |space: &str| {
        let padded: Vec<_> = fields
            .iter()
            .map(|(name, value)| {
                (*name, if *name == field { format!("{value}{space}") } else { (*value).into() })
            })
            .collect();
        let mut all: Vec<(&str, &str)> = vec![("form_token", &token), ("version", &version)];
        all.extend(padded.iter().map(|(name, value)| (*name, &**value)));
        visitor.post(path, &all).await
    };
    [submit("").await, submit(&space()).await]
}

/// A page without the values of its form, which differ in space.
fn text(answer: &Answer) -> String {
    let html = answer.html.split_once("<main").map_or(&*answer.html, |(_, main)| main);
    let outside = html.split('<').filter_map(|part| part.split_once('>'));
    outside.map(|(_, text)| text.trim()).filter(|text| !text.is_empty()).collect()
}

async fn visitor() -> (TestDatabase, Server, Visitor) {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(database.store().await).await;
    create(&server, "search").await;
    let visitor = Visitor::with(&server, ADMIN).await;
    (database, server, visitor)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_form_leads_to_the_page_of_a_small_one() {
    let (_database, server, visitor) = visitor().await;
    let before = changes_of(&server).await.len();
    let new = "/new-experiment";
    let [valid, invalid, taken, no_number] = [
        ("new", "a\nb", "0.9"),
        ("new", "a\na", "2"),
        ("search", "a\nb", "0.9"),
        ("new", "a\nb", "x"),
    ]
    .map(|(name, rankers, confidence)| {
        let own = [("name", name), ("rankers", rankers), ("confidence", confidence)];
        [&own[..], &CHOSEN].concat()
    });
    let enlist = "/experiments/search/manage/enlist";
    let key = [("name", "backend"), ("scopes", "read"), ("experiments", "search")];
    for (path, fields, field, status) in [
        (new, &valid[..], "rankers", 200),
        (new, &invalid, "rankers", 422),
        (new, &taken, "rankers", 422),
        (new, &no_number, "rankers", 422),
        (enlist, &[("ranker", "d"), ("description", "fourth")], "description", 200),
        (enlist, &[("ranker", "a"), ("description", "fourth")], "description", 422),
        ("/keys/new", &key, "experiments", 200),
        ("/keys/new", &key[..1], "name", 422),
    ] {
        for step in ["review", "edit"] {
            let all = [fields, &[("step", step)]].concat();
            let [small, large] = both(&visitor, path, &all, field).await;
            let expected = if step == "edit" { 200 } else { status };
            assert_eq!((small.status, large.status), (expected, expected), "{path} {fields:?}");
            assert_eq!(text(&small), text(&large), "{path} {fields:?}");
        }
    }
    let forged = [("form_token", "forged"), ("rankers", &space())];
    assert_eq!(visitor.post(new, &forged).await.status, 403);
    assert_eq!(changes_of(&server).await.len(), before, "nothing was confirmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_form_makes_its_change() {
    let (_database, server, visitor) = visitor().await;
    let own = [("name", "new"), ("rankers", "a | first\nb"), ("step", "confirm")];
    let fields = [&own[..], &CHOSEN].concat();
    // the small form makes the experiment, and the large one is the same request
    for answer in both(&visitor, "/new-experiment", &fields, "rankers").await {
        let created = "/experiments/new/manage?done=created";
        assert_eq!((answer.status, &*answer.location), (303, created));
    }
    let new: Value = api(&server, "GET", "/v1/experiments/new", None).await;
    assert_eq!(new["rankers"], json!([{"id": "a", "description": "first"}, {"id": "b"}]));
}
