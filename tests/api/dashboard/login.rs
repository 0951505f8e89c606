//! Logging in to the dashboard: sessions, cookies, and the allowed origins of forms.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rankduel_engine::access::{Actor, Scope};
use rankduel_store::AuditNote;
use serde_json::json;

use super::manage::create;
use super::visit::{ADMIN, Visitor, serve};
use crate::support::client::{Answer, until};
use crate::support::service::{START_MS, Server, key};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    a_session_is_valid_at_every_server_until_it_or_its_key_ends
    logging_out_ends_the_session_at_every_server
    lists_show_a_restricted_key_nothing_of_other_experiments
}

async fn log_in(server: &Server, key: &str, headers: &[(&str, &str)]) -> Answer {
    let fields = [("key", key), ("next", "/experiments/search")];
    Visitor::of(server).send("POST", "/login", &fields, headers).await
}

/// A new session of this key.
async fn session(server: &Server, key: &str) -> String {
    Visitor::with(server, key).await.cookie
}

async fn page(server: &Server, path: &str, cookie: &str) -> Answer {
    Visitor::holding(server, cookie).get(path).await
}

async fn a_session_is_valid_at_every_server_until_it_or_its_key_ends(database: TestDatabase) {
    let store = database.store().await;
    let (reader, id) = key(&store, &[Scope::Read], None).await;
    let (one, other) =
        (serve(database.connect().await).await, serve(database.connect().await).await);
    create(&one, "search").await;
    let asked = page(&one, "/experiments/search?ranker=b", "").await;
    let login = "/login?next=%2Fexperiments%2Fsearch%3Franker%3Db";
    assert_eq!((asked.status, asked.location()), (303, login));

    let answer = log_in(&one, &reader, &[]).await;
    assert_eq!((answer.status, answer.location()), (303, "/experiments/search"));
    let (session, attributes) = answer.cookie().expect("a session");
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Max-Age=43200");
    assert!(!session.contains(&reader));
    for server in [&one, &other] {
        let shown = page(server, "/experiments/search", &format!("theme=x; {session}")).await;
        assert_eq!(shown.status, 200);
        let policy = shown.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page(server, "/", session).await.status, 200);
        assert_eq!(
            page(server, "/no-such", session).await.status,
            401,
            "a session gives access to pages only"
        );
        assert_eq!(page(server, "/v1/experiments", session).await.status, 401);
        let missing = page(server, "/experiments/missing", session).await;
        assert_eq!(missing.status, 404);
        assert!(missing.text().contains("No such experiment"));
    }
    for changed in [
        session.replace('=', "=A"),
        session[..session.len() - 1].to_owned(),
        "rankduel-session=".to_owned(),
    ] {
        assert_eq!(page(&one, "/", &changed).await.status, 303, "{changed}");
    }
    // The session expires.
    one.clock.advance_ms(12 * 3600 * 1000);
    assert_eq!(page(&one, "/", session).await.status, 303);
    // The session's key is revoked.
    let note = AuditNote::new(&Actor::command_line(), "key-revoked", &id, START_MS);
    assert!(store.revoke_api_key(&id, START_MS, &note).await.unwrap());
    key(&store, &[Scope::Read], None).await;
    assert_eq!(log_in(&other, "an-unknown-key-lets-it-look", &[]).await.status, 401);
    assert_eq!(page(&other, "/", session).await.status, 303);
}

async fn log_out(server: &Server, cookie: &str) -> Answer {
    Visitor::holding(server, cookie).post("/logout", &[]).await
}

async fn logging_out_ends_the_session_at_every_server(database: TestDatabase) {
    let store = database.store().await;
    let (reader, _) = key(&store, &[Scope::Read], None).await;
    let (one, other) =
        (serve(database.connect().await).await, serve(database.connect().await).await);
    let (first, second) = (session(&one, &reader).await, session(&one, &reader).await);
    assert_ne!(first, second);
    let out = log_out(&one, &first).await;
    assert_eq!((out.status, out.location()), (303, "/login"));
    assert!(out.cookie().is_some_and(|(_, attributes)| attributes.contains("Max-Age=0")));
    assert_eq!(page(&one, "/", &first).await.status, 303, "a kept cookie opens nothing");
    until("the end of the session at the other server", async || {
        page(&other, "/", &first).await.status == 303
    })
    .await;
    let later = serve(database.connect().await).await;
    assert_eq!(page(&later, "/", &first).await.status, 303, "also at a server that starts later");
    for server in [&one, &other, &later] {
        assert_eq!(page(server, "/", &second).await.status, 200, "the other session goes on");
    }
    // Logging out without a session, or again, changes nothing.
    for cookie in ["", &first, "rankduel-session=AAAA"] {
        assert_eq!(log_out(&one, cookie).await.status, 303);
    }
    assert_eq!(database.count("select count(*) from ended_session").await, 1);
    // Ended sessions are forgotten once they would have expired everywhere.
    one.clock.advance_ms(14 * 3600 * 1000);
    let third = session(&one, &reader).await;
    log_out(&one, &third).await;
    assert_eq!(database.count("select count(*) from ended_session").await, 1);
    // A session ends with the key that signed it.
    let fourth = session(&other, &reader).await;
    let signing = store.signing_keys().await.unwrap()[0].id;
    let next = rankduel_engine::tokens::signing::fresh_key(START_MS, START_MS).unwrap();
    let note = AuditNote::new(&Actor::command_line(), "signing-key-added", "", START_MS);
    store.add_signing_key(&next, &note).await.unwrap();
    store.remove_signing_key(signing, &note).await.unwrap();
    until("the refusal of sessions that the retired key signed", async || {
        page(&other, "/", &fourth).await.status == 303
    })
    .await;
}

/// The database does not answer: this server refuses the session, and says that others may not.
#[tokio::test]
async fn logging_out_while_the_database_is_down_is_not_reported_as_done() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let (reader, _) = key(&store, &[Scope::Read], None).await;
    let server = serve(store).await;
    let session = session(&server, &reader).await;
    database.execute("alter table ended_session rename to away").await;
    let out = log_out(&server, &session).await;
    assert!(out.status >= 500, "{}", out.status);
    assert!(out.cookie().is_some_and(|(_, attributes)| attributes.contains("Max-Age=0")));
    assert_eq!(page(&server, "/", &session).await.status, 303);
}

async fn lists_show_a_restricted_key_nothing_of_other_experiments(database: TestDatabase) {
    let store = database.store().await;
    let own = ["b-own", "d-own", "y-own"].map(str::to_owned).to_vec();
    let (reader, _) = key(&store, &[Scope::Read], Some(&["b-own", "d-own", "y-own"])).await;
    let server = serve(store).await;
    // More than a page of the dashboard before the last own one.
    let others = (0..120).map(|number| format!("secret-{number:03}"));
    for name in own.iter().cloned().chain(["a-secret".into(), "c-secret".into()]).chain(others) {
        create(&server, &name).await;
    }
    let bearer = format!("Bearer {reader}");
    let list = async |query: String| {
        let headers = [("authorization", &*bearer)];
        server
            .send("GET", &format!("/v1/experiments?{query}"), &headers, Vec::new())
            .await
            .json(200)
    };
    let names = |page: &serde_json::Value| -> Vec<String> {
        let experiments = page["experiments"].as_array().expect("experiments");
        experiments.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
    };
    let whole = list("limit=500".into()).await;
    assert_eq!((names(&whole), &whole["next"]), (own.clone(), &json!(null)));
    let (mut seen, mut query) = (Vec::new(), "limit=1".to_owned());
    for _ in 0..10 {
        let page = list(query).await;
        seen.extend(names(&page));
        let Some(next) = page["next"].as_str() else { break };
        let cursor = URL_SAFE_NO_PAD.decode(next).expect("base64");
        let cursor = String::from_utf8(cursor).expect("text");
        assert!(own.contains(&cursor), "the cursor names {cursor}");
        query = format!("limit=1&cursor={next}");
    }
    assert_eq!(seen, own);
    // The dashboard shows all own ones on its first page, and names no other.
    let session = session(&server, &reader).await;
    let text = page(&server, "/", &session).await.text();
    for name in &own {
        assert!(text.contains(&format!("/experiments/{name}")), "{text}");
    }
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn no_page_to_open_after_login_is_an_error_of_the_server() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(database.store().await).await;
    let open = Server::start(fresh_database(Kind::Sqlite).await.store().await).await;
    let odd = [
        "%01",
        "%7F",
        "a%00",
        "%0d%0aset-cookie:%20x=y",
        "%C3%A9",
        "%FF",
        "a%20b",
        "%09",
        "\\evil",
    ];
    let odd = odd.map(|next| format!("/experiments/{next}"));
    for next in odd.into_iter().chain(["//evil.example/", "https://evil.example/"].map(Into::into))
    {
        let form = format!("key={ADMIN}&next={next}").into_bytes();
        let answer = server.send("POST", "/login", &[], form).await;
        assert_eq!((answer.status, answer.location()), (303, "/"), "{next}");
        assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 1, "{next}");
        let login = format!("/login?next={next}");
        assert_eq!(page(&server, &login, "").await.status, 200, "{next}");
        let answer = page(&open, &login, "").await;
        assert_eq!((answer.status, answer.location()), (303, "/"), "{next}");
    }
}

#[tokio::test]
async fn login_needs_a_key_that_may_read_and_the_same_origin() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let (decide, _) = key(&store, &[Scope::Decide], None).await;
    let (one, _) = key(&store, &[Scope::Read], Some(&["search"])).await;
    let server = serve(store).await;
    for name in ["search", "other"] {
        create(&server, name).await;
    }
    for wrong in ["", "wrong-key-wrong-key", &decide] {
        let answer = log_in(&server, wrong, &[]).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.cookie(), None);
        assert!(answer.text().contains("lacks the scope read"));
    }
    // A key for one experiment shows only that experiment.
    let session = session(&server, &one).await;
    assert_eq!(page(&server, "/experiments/search", &session).await.status, 200);
    let refused = page(&server, "/experiments/other", &session).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("content-type"), Some("text/html; charset=utf-8"));
    let list = page(&server, "/", &session).await.text();
    assert!(list.contains("/experiments/search") && !list.contains("/experiments/other"));
    // An API key also gives access to pages, for scripts.
    let bearer = format!("Bearer {ADMIN}");
    let answer =
        server.send("GET", "/experiments/other", &[("authorization", &bearer)], Vec::new()).await;
    assert_eq!(answer.status, 200);

    // Forms from other origins are refused, whatever their key.
    let origin = server.base().to_owned();
    for (headers, status) in [
        (vec![("origin", &*origin)], 303),
        (vec![("sec-fetch-site", "same-origin")], 303),
        (vec![("origin", "https://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")], 403),
        (vec![("sec-fetch-site", "same-site")], 403),
    ] {
        assert_eq!(log_in(&server, ADMIN, &headers).await.status, status, "{headers:?}");
    }
    // Behind a proxy that terminates TLS, and on other hosts, the cookie is restricted to TLS.
    for headers in [
        [("host", "rankduel.example")],
        [("host", "127.0.0.1.example:80")],
        [("host", "10.0.0.1:7171")],
        [("x-forwarded-proto", "https")],
    ] {
        let answer = log_in(&server, ADMIN, &headers).await;
        let (session, attributes) = answer.cookie().expect("a session");
        assert!(
            session.starts_with("__Host-rankduel-session=") && attributes.ends_with("; Secure"),
            "{attributes}"
        );
    }
}
