//! The pages of the API keys, over HTTP: made, replaced and revoked, by those who may.

use rankduel_engine::access::Scope;

use super::manage::{api, changes_of, create};
use super::visit::{ADMIN, Answer, Visitor, key, serve};
use crate::support::service::{START_MS, Server};
use crate::support::{Kind, fresh_database};

const HOUR_MS: i64 = 3_600_000;

/// The text of the key that a page shows.
fn shown_key(page: &Answer) -> String {
    let start = page.html.find("<code id=\"key\">").expect("the key") + "<code id=\"key\">".len();
    page.html[start..].split('<').next().expect("its end").to_owned()
}

/// The status of a request with this key.
async fn status_with(server: &Server, key: &str) -> u16 {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", &*bearer)];
    server.send("GET", "/v1/experiments/search", &headers, Vec::new()).await.status
}

#[tokio::test]
async fn keys_are_made_shown_once_and_revoked() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let server = serve(database.connect().await).await;
    create(&server, "search").await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let token = visitor.get("/keys/new").await.token();
    let fields = [
        ("form_token", &*token),
        ("name", "backend <1>"),
        ("scopes", "decide"),
        ("scopes", "read"),
        ("experiments", "search, other"),
        ("expires_in_days", "30"),
    ];
    let asked = visitor.post("/keys/new", &fields).await;
    assert_eq!(asked.status, 200);
    assert!(asked.html.contains("backend &lt;1&gt;") && asked.html.contains("decide read"));
    assert_eq!(store.api_keys().await.unwrap().len(), 0);
    for (name, value, message) in [
        ("name", "", "the name of a key has 1 to 100"),
        ("scopes", "", "a key needs at least one scope"),
        ("experiments", "No Name", "an experiment&#39;s name"),
        ("expires_in_days", "0", "after 1 to 36500 days"),
        ("expires_in_days", "x", "a whole number of days"),
    ] {
        let mut wrong: Vec<_> = fields.into_iter().filter(|(own, _)| *own != name).collect();
        wrong.push(("step", "confirm"));
        if name != "scopes" {
            wrong.push((name, value));
        }
        let answer = visitor.post("/keys/new", &wrong).await;
        assert_eq!(answer.status, 422, "{name}");
        let html = answer.html.replace('\'', "&#39;").to_lowercase();
        assert!(html.contains(message), "{name}: {html}");
    }
    let mut confirmed = fields.to_vec();
    confirmed.push(("step", "confirm"));
    let made = visitor.post("/keys/new", &confirmed).await;
    assert_eq!((made.status, &*made.caching), (200, "no-store"));
    let text = shown_key(&made);
    let record = store.api_keys().await.unwrap().remove(0);
    assert_eq!(
        (&*record.name, &*record.scopes, record.expires_at),
        ("backend <1>", "decide read", Some(START_MS + 30 * 86_400_000))
    );
    assert_eq!(record.experiments, Some(vec!["search".to_owned(), "other".to_owned()]));
    // The key is valid at once, and shown nowhere again.
    let bearer = format!("Bearer {text}");
    let read = async || {
        let headers = [("authorization", &*bearer)];
        server.send("GET", "/v1/experiments/search", &headers, Vec::new()).await.status
    };
    assert_eq!(read().await, 200);
    let list = visitor.get("/keys").await;
    assert!(list.html.contains(&record.id) && !list.html.contains(&text), "{}", list.html);
    let audit = visitor.get("/audit").await;
    assert!(audit.html.contains("key-created") && !audit.html.contains(&text));

    let path = format!("/keys/{}/revoke", record.id);
    let asked = visitor.get(&path).await;
    assert!(asked.html.contains("within ten seconds"), "{}", asked.html);
    let confirm = [("form_token", &*token), ("step", "confirm")];
    assert_eq!(visitor.post(&path, &confirm[1..]).await.status, 403);
    assert_eq!(visitor.post(&path, &confirm[..1]).await.status, 200, "the question again");
    assert_eq!(read().await, 200);
    assert_eq!(visitor.post(&path, &confirm).await.location, "/keys?done=revoked");
    assert_eq!(read().await, 401);
    assert_eq!(visitor.get("/keys/00000000/revoke").await.status, 404);
    let entries = changes_of(&server).await;
    let what: Vec<_> = entries.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["key-revoked", "key-created", "experiment-created"]);
    assert!(entries[0]["who"].as_str().unwrap().starts_with("key:"));
}

#[tokio::test]
async fn keys_and_the_whole_audit_log_need_a_key_for_all_experiments() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let (limited, _) = key(&store, Scope::Admin, Some(&["search"])).await;
    let (reader, _) = key(&store, Scope::Read, None).await;
    let server = serve(database.connect().await).await;
    for name in ["search", "secret"] {
        create(&server, name).await;
    }
    let (limited, reader) =
        (Visitor::with(&server, &limited).await, Visitor::with(&server, &reader).await);
    let token = limited.get("/new-experiment").await.token();
    for path in [
        "/keys",
        "/keys/new",
        "/keys/00000000/revoke",
        "/keys/00000000/rotate",
        "/audit",
        "/audit?experiment=secret",
    ] {
        assert_eq!(limited.get(path).await.status, 403, "{path}");
        assert_eq!(reader.get(path).await.status, 403, "{path}");
        assert_eq!(Visitor::of(&server).get(path).await.status, 303, "{path}");
    }
    let fields =
        [("form_token", &*token), ("name", "more"), ("scopes", "admin"), ("step", "confirm")];
    assert_eq!(limited.post("/keys/new", &fields).await.status, 403);
    assert_eq!(store.api_keys().await.unwrap().len(), 2);
    let own = limited.get("/audit?experiment=search").await;
    assert!(own.status == 200 && own.html.contains("experiment-created"), "{}", own.html);
    assert!(!own.html.contains("secret"));
    // Readers see no way to change anything; others do.
    for (visitor, manages, all) in [
        (&reader, false, false),
        (&limited, true, false),
        (&Visitor::with(&server, ADMIN).await, true, true),
    ] {
        let page = visitor.get("/experiments/search").await;
        assert_eq!(page.html.contains("/experiments/search/manage"), manages);
        assert_eq!(page.html.contains("href=\"/keys\""), all);
        assert_eq!(visitor.get("/").await.html.contains("/new-experiment"), manages);
    }
}

#[tokio::test]
async fn a_key_is_replaced_by_one_with_the_same_rights_after_an_overlap() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let server = serve(database.connect().await).await;
    create(&server, "search").await;
    let (text, id) = key(&store, Scope::Read, Some(&["search"])).await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let path = format!("/keys/{id}/rotate");
    assert!(visitor.get("/keys").await.html.contains(&path), "the list links the form");
    let form = visitor.get(&path).await;
    assert!(
        form.html.contains("name=\"overlap_hours\" type=\"text\" value=\"24\""),
        "{}",
        form.html
    );
    let token = form.token();
    let fields = [("form_token", &*token), ("overlap_hours", "2"), ("expires_in_days", "30")];
    for (name, value, message) in [
        ("overlap_hours", "", "a whole number of hours"),
        ("overlap_hours", "8761", "after at most 31536000 seconds"),
        ("overlap_hours", "4000000", "a whole number of hours"),
        ("expires_in_days", "0", "after 1 to 36500 days"),
        ("expires_in_days", "x", "a whole number of days"),
    ] {
        for step in ["review", "confirm"] {
            let mut wrong: Vec<_> = fields.into_iter().filter(|(own, _)| *own != name).collect();
            wrong.extend([(name, value), ("step", step)]);
            let answer = visitor.post(&path, &wrong).await;
            assert_eq!(answer.status, 422, "{name}={value}");
            assert!(answer.html.contains(message), "{name}={value}: {}", answer.html);
        }
    }
    let asked = visitor.post(&path, &fields).await;
    assert_eq!(asked.status, 200);
    assert!(asked.html.contains("What will happen") && asked.html.contains("for 30 days"));
    let mut confirmed = fields.to_vec();
    confirmed.push(("step", "confirm"));
    assert_eq!(visitor.post(&path, &confirmed[1..]).await.status, 403, "the token is missing");
    let forged = [("origin", "https://evil.example")];
    let answer = visitor.send(reqwest::Method::POST, &path, &confirmed, &forged).await;
    assert_eq!(answer.status, 403);
    let (reader, _) = key(&store, Scope::Read, None).await;
    let reader = Visitor::with(&server, &reader).await;
    assert_eq!(reader.post(&path, &confirmed).await.status, 403);
    assert_eq!(store.api_keys().await.unwrap().len(), 2, "nothing was changed");

    let made = visitor.post(&path, &confirmed).await;
    assert_eq!((made.status, &*made.caching), (200, "no-store"), "{}", made.html);
    let keys = store.api_keys().await.unwrap();
    let old = keys.iter().find(|key| key.id == id).expect("the old key");
    let new = keys.iter().find(|key| key.replaces.as_ref() == Some(&id)).expect("the new key");
    assert_eq!(
        (&new.name, &new.scopes, &new.experiments),
        (&old.name, &old.scopes, &old.experiments)
    );
    assert_eq!(old.expires_at, Some(START_MS + 2 * HOUR_MS));
    assert_eq!(new.expires_at, Some(START_MS + 30 * 24 * HOUR_MS));
    assert!(made.html.contains("The old key"), "{}", made.html);
    // Both are valid during the overlap, and the new one is shown nowhere again.
    let replacement = shown_key(&made);
    for key in [&text, &replacement] {
        assert_eq!(status_with(&server, key).await, 200);
    }
    assert!(!visitor.get("/keys").await.html.contains(&replacement));
    let entries = changes_of(&server).await;
    assert_eq!(entries[0]["what"], "key-rotated");
    assert!(entries[0]["who"].as_str().unwrap().starts_with("key:"));
    let after = api(&server, "GET", "/v1/audit", None).await.to_string();
    assert!(after.contains(&new.id) && !after.contains(&replacement));

    // Without an overlap the old key ends at once. A key that has ended is not replaced.
    let path = format!("/keys/{}/rotate", new.id);
    let fields = [("form_token", &*token), ("overlap_hours", "0"), ("step", "confirm")];
    assert_eq!(visitor.post(&path, &fields).await.status, 200);
    assert_eq!(status_with(&server, &replacement).await, 401);
    for path in [&*path, "/keys/00000000/rotate"] {
        assert_eq!(visitor.get(path).await.status, 404, "{path}");
        assert_eq!(visitor.post(path, &fields).await.status, 404, "{path}");
    }
}
