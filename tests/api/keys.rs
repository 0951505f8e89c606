//! API keys.

use rankduel::http::ShellSettings;
use rankduel_engine::access::ApiKeys;
use reqwest::Client;

use crate::support::client::{Client as Caller, until};
use crate::support::server::{Api, FREE_PORT, Process, outcome, rankduel, rankduel_on};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    keys_are_made_rotated_and_revoked_while_a_server_runs
    a_server_that_has_known_a_key_stays_closed
}

const KEY: &str = "correct-horse-battery-staple";
const OTHER_KEY: &str = "hunter2-hunter2-hunter2";

async fn guarded() -> Api {
    let keys = ApiKeys::parse(&format!("{KEY},{OTHER_KEY}")).expect("keys");
    Api::start(Kind::Sqlite, &ShellSettings { keys, ..ShellSettings::default() }).await
}

#[tokio::test]
async fn each_configured_key_is_accepted_and_nothing_else() {
    let api = guarded().await;
    let send = async |authorization: &str| {
        let request = Client::new().get(api.server.url("/v1/experiments"));
        request.header("authorization", authorization).send().await.unwrap()
    };
    for fine in [format!("Bearer {KEY}"), format!("bearer {OTHER_KEY}"), format!("BEARER   {KEY}")]
    {
        assert_eq!(send(&fine).await.status(), 200, "{fine}");
    }
    let wrong = [
        format!("Bearer {KEY}x"),
        format!("Bearer {}", &KEY[1..]),
        format!("Bearer {KEY},{OTHER_KEY}"),
        format!("Basic {KEY}"),
        format!("Bearer{KEY}"),
        KEY.to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        String::new(),
    ];
    for wrong in wrong {
        let response = send(&wrong).await;
        assert_eq!(response.status(), 401, "{wrong:?}");
        assert!(response.headers().contains_key("www-authenticate"));
    }
    let unknown = send("Bearer no-such-key-0123456789").await;
    assert_eq!(
        unknown.headers()["www-authenticate"],
        "Bearer realm=\"rankduel\", error=\"invalid_token\""
    );
}

/// Whatever the database answers later.
async fn a_server_that_has_known_a_key_stays_closed(database: TestDatabase) {
    let (_, key, _) = {
        assert_eq!(outcome(rankduel(&["migrate", "--database-url", &database.url])).0, Some(0));
        keys(&database, &["create", "ops", "--scope", "admin"])
    };
    let process = Process::start(rankduel_on(&database.url, &["serve", FREE_PORT]));
    let owner = Caller::with_key(&process.url, Some(key.trim()));
    let nobody = Caller::new(&process.url);
    assert_eq!(owner.get("/v1/experiments").await.status, 200);
    database.execute("delete from api_key").await;
    until("the lost key to be refused", async || {
        assert_eq!(nobody.get("/v1/experiments").await.status, 401);
        owner.get("/v1/experiments").await.status == 401
    })
    .await;
    for _ in 0..3 {
        // An unknown key makes the server read the keys again.
        let unknown = Caller::with_key(&process.url, Some("no-such-key-0123456789"));
        assert_eq!(unknown.get("/v1/experiments").await.status, 401);
        assert_eq!(nobody.get("/v1/experiments").await.status, 401);
    }
}

/// `rankduel keys` with these arguments: exit code, standard output and standard error.
fn keys(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    outcome(rankduel_on(&database.url, &[&["keys"], arguments].concat()))
}

async fn keys_are_made_rotated_and_revoked_while_a_server_runs(database: TestDatabase) {
    let (code, _, error) = outcome(rankduel(&["migrate", "--database-url", &database.url]));
    assert_eq!(code, Some(0), "{error}");
    let (_, empty, _) = keys(&database, &["list"]);
    assert!(empty.contains("no key in the database"), "{empty}");
    let made = |arguments: &[&str]| {
        let (code, printed, messages) = keys(&database, arguments);
        assert_eq!(code, Some(0), "{messages}");
        assert!(
            messages.contains("shown this once") && !messages.contains(printed.trim()),
            "{messages}"
        );
        let text = printed.trim_end().to_owned();
        assert!(text.starts_with("rankduel_") && text.lines().count() == 1, "{text}");
        // The line about the new key is the last one: `key ID of …`.
        let line = messages.lines().last().expect("a line");
        (text, line.split_whitespace().nth(1).expect("an id").to_owned())
    };
    let (admin, admin_id) = made(&["create", "ops", "--scope", "admin"]);

    // Keys in the database allow listening for other machines, as keys in the environment do.
    let everywhere = ["serve", "--listen", "0.0.0.0:0", "--log", "warn"];
    let process = Process::start(rankduel_on(&database.url, &everywhere));
    let client = Caller::new(&process.url.replace("0.0.0.0", "127.0.0.1"));
    let status = async |key: &str, path: &str| {
        let bearer = format!("Bearer {key}");
        client.send("GET", path, &[("authorization", &bearer)], Vec::new()).await.status
    };
    assert_eq!(client.get("/v1/experiments").await.status, 401);
    assert_eq!(status(&admin, "/v1/experiments").await, 200);

    let (reader, reader_id) = made(&[
        "create",
        "relevance \u{202e}team",
        "--scope",
        "read",
        "--experiment",
        "search",
        "--expires-in-days",
        "30",
    ]);
    assert_eq!(status(&reader, "/v1/experiments").await, 200, "a new key works at once");
    assert_eq!(status(&reader, "/v1/audit").await, 403);

    let (newer, newer_id) = made(&["rotate", &reader_id, "--overlap-seconds", "3600"]);
    for key in [&reader, &newer] {
        assert_eq!(status(key, "/v1/experiments").await, 200, "both keys work for a while");
    }
    let (_, list, _) = keys(&database, &["list"]);
    let line =
        |id: &str| list.lines().find(|line| line.starts_with(id)).expect("the key").to_owned();
    for id in [&reader_id, &newer_id] {
        assert!(
            line(id).contains("good")
                && line(id).contains(r#""relevance \u{202e}team", for search"#),
            "{list}"
        );
    }
    assert!(line(&newer_id).contains("never"), "{list}");
    assert!(!list.contains(&reader) && !list.contains(&admin), "the list shows a key");

    let (code, printed, _) = keys(&database, &["revoke", &newer_id]);
    assert!(code == Some(0) && printed.contains("revoked"), "{printed}");
    until("the revoked key to be refused", async || status(&newer, "/v1/experiments").await == 401)
        .await;
    assert_eq!(status(&reader, "/v1/experiments").await, 200, "the other key still works");
    let (_, again, _) = keys(&database, &["revoke", &newer_id]);
    assert!(again.contains("revoked before"), "{again}");
    let bearer = format!("Bearer {admin}");
    let log =
        client.send("GET", "/v1/audit", &[("authorization", &bearer)], Vec::new()).await.json(200);
    let entries = log["entries"].as_array().expect("entries");
    let changes: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry["what"].as_str().unwrap_or_default(),
                entry["subject"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        changes,
        [
            ("key-revoked", &*newer_id),
            ("key-rotated", &reader_id),
            ("key-created", &reader_id),
            ("key-created", &admin_id),
        ]
    );
    assert!(entries.iter().all(|entry| entry["who"] == "command-line"), "{log}");

    let wrong: [(&[&str], i32, &str); 6] = [
        (&["create", "x"], 2, "--scope"),
        (&["create", "x", "--scope", "write"], 2, "there is no scope `write`"),
        (&["create", " ", "--scope", "read"], 2, "1 to 100 characters"),
        (&["create", "x", "--scope", "read", "--experiment", "Not A Name"], 2, "--experiment"),
        (&["revoke", "ffffffff"], 1, "there is no key ffffffff"),
        (&["rotate", &newer_id], 1, "has ended already"),
    ];
    for (arguments, wanted, says) in wrong {
        let (code, printed, error) = keys(&database, arguments);
        assert_eq!((code, &*printed), (Some(wanted), ""), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_requires_a_key_once_one_exists() {
    let database = fresh_database(Kind::Sqlite).await;
    let (_process, client) = Process::serving(&database.url, &["--log", "warn"]);
    assert_eq!(client.get("/v1/experiments").await.status, 200);
    let (code, key, error) = keys(&database, &["create", "first", "--scope", "read"]);
    assert_eq!(code, Some(0), "{error}");
    until("requests without a key to be refused", async || {
        client.get("/v1/experiments").await.status == 401
    })
    .await;
    let bearer = format!("Bearer {}", key.trim_end());
    let answer =
        client.send("GET", "/v1/experiments", &[("authorization", &bearer)], Vec::new()).await;
    assert_eq!(answer.status, 200);
}
