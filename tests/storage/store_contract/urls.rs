//! Valid store URLs, and the errors for the others.

use rankduel_store::{ConnectError, connect, connect_with};

/// The error message for a refused URL.
async fn refusal(url: &str) -> String {
    match connect(url).await {
        Err(ConnectError::Url(message)) => message,
        Err(other) => panic!("{url}: {other}"),
        Ok(_) => panic!("{url} was accepted"),
    }
}

#[tokio::test]
async fn invalid_urls_are_refused_with_the_reason() {
    for (url, reason) in [
        ("", "not a database URL"),
        ("rankduel.db", "not a database URL"),
        ("/var/lib/rankduel.db", "not a database URL"),
        ("mysql://root@localhost/db", "\"mysql\""),
        ("Postgres://localhost/db", "\"Postgres\""),
        ("sqlite:", "names no file"),
        ("sqlite://", "names no file"),
        ("sqlite://?mode=rwc", "names no file"),
        ("sqlite::memory:", "outlive"),
        ("sqlite://:memory:", "outlive"),
        ("sqlite://%3Amemory%3A", "outlive"),
        ("sqlite://file::memory:", "outlive"),
        ("sqlite://file:x.db", "outlive"),
        ("sqlite://x.db?mode=memory", "outlive"),
        ("sqlite://x.db?cache=shared", "\"cache=shared\""),
        ("sqlite://x.db?immutable=1", "\"immutable=1\""),
        ("sqlite:///nowhere/at/all/x.db", "/nowhere/at/all"),
        ("postgres://localhost:port/db", "cannot be read"),
        ("postgres://localhost/db?sslmode=maybe", "cannot be read"),
        ("postgres://localhost/db?ssl_mode=require", "unknown parameter"),
        ("postgresql://localhost/db?host=/tmp&colour=red", "unknown parameter"),
        ("postgres://localhost/db?pool_mode=statement", "session or transaction"),
    ] {
        let message = refusal(url).await;
        assert!(message.contains(reason), "{url}: {message}");
        assert!(!message.contains('\n'), "{url}: one line");
    }
}

#[tokio::test]
async fn the_url_for_listening_leads_to_postgresql_without_a_pooler() {
    let postgres = "postgres://localhost/db";
    for (url, direct) in [
        ("sqlite://x.db", postgres),
        (postgres, "sqlite://x.db"),
        (postgres, "postgres://localhost/db?pool_mode=transaction"),
    ] {
        match connect_with(url, Some(direct)).await {
            Err(ConnectError::Url(message)) => {
                assert!(message.contains("--listen-database-url"), "{url} {direct}: {message}");
            }
            Err(other) => panic!("{url} {direct}: {other}"),
            Ok(_) => panic!("{url} {direct} were accepted"),
        }
    }
}

#[tokio::test]
async fn no_refusal_repeats_a_password() {
    for url in [
        "postgres://me:secret@localhost:port/db",
        "postgres://me:secret@localhost/db?sslmode=secret",
        "postgres://me:secret@localhost/db?pasword=secret",
        "postgres://me:p?secret@localhost/db",
        "postgres://me:p/secret@localhost/db?x",
        "postgres://me:p#secret@localhost/db",
        "postgres://me:p@ss/secret@localhost/db",
        "postgres://me@localhost/db#secret",
        "postgres://me:%secret%ff@localhost/db",
        "postgres://localhost/db?port=secret",
        "postgres:me:secret@@localhost:x:y",
        "mysql://me:secret@localhost/db",
        "me:secret@localhost/db",
        "//me:secret@localhost/db",
        "secret",
    ] {
        let message = refusal(url).await;
        assert!(!message.contains("secret"), "{url}: {message}");
    }
}

#[tokio::test]
async fn valid_urls_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    for (url, kind) in [
        (format!("sqlite://{path}/a.db"), "sqlite"),
        (format!("sqlite:{path}/b.db"), "sqlite"),
        (format!("sqlite://{path}/with%20space%3F.db?mode=rwc"), "sqlite"),
        (
            "postgres://me:p%40ss@nowhere.invalid:6432/db?sslmode=require&application_name=x"
                .into(),
            "postgres",
        ),
        ("postgresql:///db?host=/run/nowhere".into(), "postgres"),
        ("postgresql:///db?pool_mode=transaction&host=/run/nowhere".into(), "postgres"),
    ] {
        let store = connect(&url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(store.kind(), kind);
    }
    assert!(folder.path().join("with space?.db").exists());
}
