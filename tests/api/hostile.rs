//! Hostile callers: forged duels, SQL in every string, bodies that never end, floods.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rankduel::http::ShellSettings;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::Kind;
use crate::support::TestDatabase;
use crate::support::client::{PATIENCE, assert_has, steady};
use crate::support::server::Api;
use crate::support::service::Server;

on_both_databases! {
    sql_in_strings_is_only_text
    ten_thousand_experiments_are_listed_and_served
}

on_sqlite! {
    a_duel_id_with_any_bit_flipped_is_refused
}

async fn a_duel_id_with_any_bit_flipped_is_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let duel = server.pair("search").await;
    let text = duel["duel_id"].as_str().expect("an id");
    let bytes = URL_SAFE_NO_PAD.decode(text).expect("base64");
    let flipped = (0..bytes.len() * 8).map(|bit| {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        URL_SAFE_NO_PAD.encode(bytes)
    });
    // base64 has unused bits: the last character is changed as well
    let (start, last) = text.split_at(text.len() - 1);
    let others =
        (b'!'..=b'~').map(|byte| char::from(byte).to_string()).filter(|other| other != last);
    let forged: Vec<_> = flipped
        .chain(others.map(|other| format!("{start}{other}")))
        .map(|forged| json!({"duel_id": forged, "outcome": "left"}))
        .collect();
    assert!((300..=1000).contains(&forged.len()), "{} duel ids", forged.len());
    let receipts = server.feedback("search", &json!({"feedback": forged})).await.json(200);
    for receipt in receipts["results"].as_array().expect("results") {
        assert_eq!(receipt["status"], "invalid", "{receipt}");
    }
    assert_eq!(server.position("search").await, 1);
    server.answer("search", &duel, "left").await;
}

/// Texts that would end a string, a statement or a pattern in concatenated SQL.
const SQL: [&str; 8] = [
    "'; drop table log; --",
    "\"; drop table log; --",
    "' or '1'='1",
    "$1",
    "\\'; delete from log; --",
    "%_",
    "a') union select secret from signing_key --",
    "/*",
];

async fn sql_in_strings_is_only_text(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let duel = server.pair("search").await;
    server.answer("search", &duel, "left").await;
    let standings = server.standings("search").await;
    for (number, sql) in SQL.into_iter().enumerate() {
        let encoded: String = sql.bytes().map(|byte| format!("%{byte:02X}")).collect();
        // Where any text is allowed, it comes back unchanged.
        let name = format!("kept-{number}");
        let description = format!("{sql}\n\t\u{0} Ключ 鍵 🔑 e\u{301} \u{202e}abc\u{200b}");
        let rankers = json!([{"id": sql, "description": description}, "b"]);
        server.create(&json!({"name": name, "rankers": rankers})).await;
        let read = server.experiment(&name).await;
        assert_has(&read["rankers"][0], json!({"id": sql, "description": description}));
        let concluded =
            server.patch(&name, &json!({"status": "concluded", "winner": sql})).await.json(200);
        assert_eq!(concluded["winner"], sql);

        // Elsewhere it is refused.
        let refused = [
            server.feedback("search", &json!({"duel_id": sql, "outcome": "left"})).await,
            server.patch("search", &json!({"status": "concluded", "winner": sql})).await,
            server.get(&format!("/v1/experiments/{encoded}/standings")).await,
            server.get(&format!("/v1/experiments?cursor={encoded}")).await,
        ];
        for answer in refused {
            assert!(matches!(answer.status, 404 | 422), "{}: {}", answer.request, answer.text());
        }
        let conditional = server
            .send("GET", "/v1/experiments/search/standings", &[("if-none-match", sql)], vec![])
            .await;
        assert_eq!(conditional.status, 200);
    }
    assert_eq!(server.standings("search").await, standings);
    assert_eq!(database.count("select count(*) from signing_key").await, 1);
    assert_eq!(database.count("select count(*) from experiment").await, 1 + SQL.len() as i64);
}

/// The database holds ten thousand experiments. The list returns them page by page, and those
/// that are requested are served.
async fn ten_thousand_experiments_are_listed_and_served(database: TestDatabase) {
    const COUNT: usize = 10_000;
    let server = Server::running(&database, &steady("0", &["a", "b"])).await;
    let rows = (1..COUNT).map(|number| format!("({number}, 'many-{number}')"));
    let rows = rows.collect::<Vec<_>>().join(", ");
    database.execute_text(format!("insert into experiment_name (id, name) values {rows}")).await;
    database
        .execute_text(format!(
            "with many (id, name) as (values {rows})
             insert into experiment (id, name, spec, seed, status, version, head, created_at_ms, updated_at_ms, state, list_group)
             select many.id, many.name, spec, seed, status, 1, 1, created_at_ms, updated_at_ms, state, list_group
             from many cross join (select * from experiment where name = '0') as first",
        ))
        .await;
    database
        .execute_text(format!(
            "with many (id, name) as (values {rows})
             insert into log (experiment_id, position, nonce, recorded_at_ms, kind, detail)
             select many.id, position, nonce, recorded_at_ms, kind, detail
             from many cross join (select * from log) as first",
        ))
        .await;
    assert_eq!(server.list(500).await.concat().len(), COUNT);
    for number in (1..COUNT).step_by(97) {
        let name = format!("many-{number}");
        let duel = server.pair(&name).await;
        assert_eq!(server.answer(&name, &duel, "left").await, 2);
    }
}

/// A body that arrives a byte at a time keeps its permit no longer than the request timeout.
#[tokio::test]
async fn a_body_that_never_ends_times_out() {
    let shell =
        ShellSettings { request_timeout: Duration::from_millis(300), ..ShellSettings::default() };
    let api = Api::start(Kind::Sqlite, &shell).await;
    let mut stream = TcpStream::connect(&api.server.address).await.expect("a connection");
    let head = "POST /v1/experiments HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("to send");
    let (mut from, mut to) = stream.into_split();
    let dripping = tokio::spawn(async move {
        while to.write_all(b"{").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let mut answer = vec![0; 1024];
    let length = tokio::time::timeout(PATIENCE, from.read(&mut answer))
        .await
        .expect("an answer")
        .expect("bytes");
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    dripping.abort();
}

/// Thousands of small headers are refused, as one large header is.
#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    for count in [200, 5000] {
        let headers: String = (0..count).map(|number| format!("x-{number}: 1\r\n")).collect();
        let mut stream = TcpStream::connect(&api.server.address).await.expect("a connection");
        // The server may close the connection before it has read everything.
        let _ = stream
            .write_all(
                format!("GET /v1/experiments HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes(),
            )
            .await;
        let mut answer = vec![0; 64];
        let length = tokio::time::timeout(PATIENCE, stream.read(&mut answer))
            .await
            .expect("an answer")
            .unwrap_or(0);
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{count}: {answer}");
    }
    assert_eq!(api.server.get("/v1/experiments").await.status(), 200);
}
