//! The dashboard behind a proxy that shows it under a path.

use std::collections::{BTreeSet, VecDeque};

use rankduel::http::{PathPrefix, ShellSettings};
use rankduel_engine::access::ApiKeys;
use serde_json::json;

use super::visit::{ADMIN, Visitor};
use crate::support::TestDatabase;
use crate::support::client::JSON;
use crate::support::service::{Server, Settings};

on_sqlite! {
    every_link_and_redirect_has_the_prefix
}

/// The paths in the links, forms, styles and scripts of a page.
fn paths(html: &str) -> Vec<String> {
    let values = ["href", "action", "src"].iter().flat_map(|name| {
        let start = format!(" {name}=\"");
        html.split(start.as_str())
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .map(|value| value.replace("&amp;", "&"))
            .collect::<Vec<_>>()
    });
    values.filter(|value| !value.starts_with(['#', '?']) && !value.starts_with("data:")).collect()
}

async fn serve(database: &TestDatabase, prefix: &str) -> Server {
    let shell = ShellSettings {
        keys: ApiKeys::parse(ADMIN).expect("a key"),
        path_prefix: PathPrefix::parse(prefix).expect("a prefix"),
        ..ShellSettings::default()
    };
    Server::with(database.store().await, Settings { shell, ..Settings::default() }).await
}

async fn every_link_and_redirect_has_the_prefix(database: TestDatabase) {
    const PREFIX: &str = "/tools/rankduel";
    let server = serve(&database, PREFIX).await;
    let bearer = format!("Bearer {ADMIN}");
    let body = json!({"name": "a.b", "rankers": ["x", "y"]}).to_string().into_bytes();
    let headers = [JSON, ("authorization", &*bearer)];
    let under = format!("{PREFIX}/v1/experiments");
    let made = server.send("POST", &under, &headers, body).await;
    assert_eq!((made.status, made.header("location")), (201, Some(&*format!("{under}/a.b"))));
    let duel = server.send("POST", &format!("{under}/a.b/next-duel"), &headers[1..], vec![]).await;
    assert_eq!(duel.status, 200, "{}", duel.text());

    // without a session
    let mut visitor = Visitor::of(&server);
    let asked = visitor.get(&format!("{PREFIX}/experiments/a.b")).await;
    assert_eq!(
        (asked.status, asked.location()),
        (303, "/tools/rankduel/login?next=%2Fexperiments%2Fa.b")
    );
    let login = |path: String, key| {
        let visitor = &visitor;
        async move { visitor.post(&path, &[("key", key), ("next", "/keys")]).await }
    };
    let wrong = login(format!("{PREFIX}/login"), "wrong").await;
    assert!(wrong.text().contains("action=\"/tools/rankduel/login\""), "{}", wrong.text());
    let right = login(format!("{PREFIX}/login"), ADMIN).await;
    assert_eq!((right.status, right.location()), (303, "/tools/rankduel/keys"));
    visitor.cookie = right.cookie().expect("a session").0.to_owned();

    // every page that can be reached, as a proxy that keeps the prefix asks for it
    let mut waiting = VecDeque::from([format!("{PREFIX}/")]);
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop_front() {
        let path = path.split('#').next().expect("a path").to_owned();
        if path.ends_with("/logout") || !seen.insert(path.clone()) {
            continue;
        }
        let page = visitor.get(&path).await;
        assert!(matches!(page.status, 200 | 303 | 405), "{path}: {}", page.status);
        assert_eq!(page.status == 405, page.header("allow").is_some(), "{path}");
        if page.status == 303 {
            waiting.push_back(page.location().to_owned());
        }
        let own = if path.contains("/docs/") { Vec::new() } else { paths(&page.text()) };
        for linked in own {
            assert!(linked.starts_with("/tools/rankduel/"), "{path} links {linked}");
            waiting.push_back(linked);
        }
    }
    for page in ["experiments/a.b", "experiments/a.b/manage", "audit", "docs", "dashboard.css"] {
        assert!(seen.contains(&format!("{PREFIX}/{page}")), "{page} is not linked: {seen:?}");
    }
    let gone = visitor.get(&format!("{PREFIX}/experiments/none")).await;
    assert!(
        gone.status == 404 && gone.text().contains("href=\"/tools/rankduel/\""),
        "{}",
        gone.text()
    );

    // a proxy that removes the prefix, and a browser that takes gzip
    let zipped = [("accept-encoding", "gzip")];
    for page in ["/docs", "/experiments/a.b"] {
        let answer = visitor.send("GET", page, &[], &[]).await;
        assert!(answer.text().contains("href=\"/tools/rankduel/"), "{}", answer.text());
        let answer = visitor.send("HEAD", page, &[], &zipped).await;
        assert_eq!(answer.status, 200);
    }
    let reference = visitor.get("/openapi.yaml").await.text();
    assert!(reference.contains("\"/tools/rankduel\""));
    let tls = [("x-forwarded-proto", "https")];
    let fields = [("key", ADMIN)];
    let secure = visitor.send("POST", "/login", &fields, &tls).await;
    let (cookie, _) = secure.cookie().expect("a session");
    assert!(cookie.starts_with("__Secure-rankduel-session="), "{cookie}");
}
