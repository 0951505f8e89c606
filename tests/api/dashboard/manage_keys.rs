//! The pages of the API keys, over HTTP: made and revoked, by those who may.

use rankduel_engine::access::Scope;

use super::manage::{changes_of, create};
use super::visit::{ADMIN, Visitor, serve};
use crate::support::client::Answer;
use crate::support::service::{START_MS, key};
use crate::support::{Kind, fresh_database};

/// The text of the key that a page shows.
fn shown_key(page: &Answer) -> String {
    let html = page.text();
    let (_, rest) = html.split_once("<code id=\"key\">").expect("the key");
    rest.split('<').next().expect("its end").to_owned()
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
    assert!(asked.text().contains("backend &lt;1&gt;") && asked.text().contains("decide read"));
    assert_eq!(store.api_keys().await.unwrap().len(), 0);
    for (name, value, message) in [
        ("name", "", "the name of a key has 1 to 100"),
        ("scopes", "", "a key needs at least one scope"),
        ("experiments", "No Name", "an experiment&#39;s name"),
        ("expires_in_days", "0", "after 1 to 36500 days"),
        ("expires_in_days", "x", "write a number with digits"),
    ] {
        let mut wrong: Vec<_> = fields.into_iter().filter(|(own, _)| *own != name).collect();
        wrong.push(("step", "confirm"));
        if name != "scopes" {
            wrong.push((name, value));
        }
        let answer = visitor.post("/keys/new", &wrong).await;
        assert_eq!(answer.status, 422, "{name}");
        let html = answer.plain().replace('\'', "&#39;").to_lowercase();
        assert!(html.contains(message), "{name}: {html}");
    }
    let mut confirmed = fields.to_vec();
    confirmed.push(("step", "confirm"));
    let made = visitor.post("/keys/new", &confirmed).await;
    assert_eq!((made.status, made.header("cache-control")), (200, Some("no-store")));
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
    assert!(list.text().contains(&record.id) && !list.text().contains(&text), "{}", list.text());
    let audit = visitor.get("/audit").await;
    assert!(audit.text().contains("key-created") && !audit.text().contains(&text));

    let path = format!("/keys/{}/revoke", record.id);
    let asked = visitor.get(&path).await;
    assert!(asked.text().contains("within ten seconds"), "{}", asked.text());
    let confirm = [("form_token", &*token), ("step", "confirm")];
    assert_eq!(visitor.post(&path, &confirm[1..]).await.status, 403);
    assert_eq!(visitor.post(&path, &confirm[..1]).await.status, 200, "the question again");
    assert_eq!(read().await, 200);
    assert_eq!(visitor.post(&path, &confirm).await.location(), "/keys?done=revoked");
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
    let (limited, _) = key(&store, &[Scope::Admin], Some(&["search"])).await;
    let (reader, _) = key(&store, &[Scope::Read], None).await;
    let server = serve(database.connect().await).await;
    for name in ["search", "secret"] {
        create(&server, name).await;
    }
    let (limited, reader) =
        (Visitor::with(&server, &limited).await, Visitor::with(&server, &reader).await);
    let token = limited.get("/new-experiment").await.token();
    for path in
        ["/keys", "/keys/new", "/keys/00000000/revoke", "/audit", "/audit?experiment=secret"]
    {
        assert_eq!(limited.get(path).await.status, 403, "{path}");
        assert_eq!(reader.get(path).await.status, 403, "{path}");
        assert_eq!(Visitor::of(&server).get(path).await.status, 303, "{path}");
    }
    let fields =
        [("form_token", &*token), ("name", "more"), ("scopes", "admin"), ("step", "confirm")];
    assert_eq!(limited.post("/keys/new", &fields).await.status, 403);
    assert_eq!(store.api_keys().await.unwrap().len(), 2);
    let own = limited.get("/audit?experiment=search").await;
    assert!(own.status == 200 && own.text().contains("experiment-created"), "{}", own.text());
    assert!(!own.text().contains("secret"));
    // Readers see no way to change anything; others do.
    for (visitor, manages, all) in [
        (&reader, false, false),
        (&limited, true, false),
        (&Visitor::with(&server, ADMIN).await, true, true),
    ] {
        let page = visitor.get("/experiments/search").await;
        assert_eq!(page.text().contains("/experiments/search/manage"), manages);
        assert_eq!(page.text().contains("href=\"/keys\""), all);
        assert_eq!(visitor.get("/").await.text().contains("/new-experiment"), manages);
    }
}
