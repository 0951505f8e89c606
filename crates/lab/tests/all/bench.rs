//! `lab bench` on a small server of its own: it answers the duels that it got, and reads reports.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{json, run};

/// The requests that the server got, by their path without the name of the experiment.
#[derive(Debug, Default)]
struct Seen {
    requests: HashMap<String, u64>,
    /// The name of the experiment, at the server that was asked to create it.
    name: String,
    issued: Vec<String>,
    answered: Vec<String>,
}

fn answer(seen: &Mutex<Seen>, path: &str, body: &str) -> (u16, Value) {
    let mut seen = seen.lock().expect("no panic");
    let call = path.rsplit('/').next().expect("a path");
    *seen.requests.entry(call.to_owned()).or_default() += 1;
    match call {
        "next-duel" => {
            let id = format!("duel-{}", seen.issued.len());
            let alone = seen.issued.len().is_multiple_of(3);
            seen.issued.push(id.clone());
            (200, json!({"duel_id": id, "left": "0", "right": "1", "self_duel": alone}))
        }
        "experiments" => {
            let body: Value = serde_json::from_str(body).expect("JSON");
            seen.name = body["name"].as_str().expect("a name").to_owned();
            (201, body)
        }
        "feedback" => {
            let body: Value = serde_json::from_str(body).expect("JSON");
            seen.answered.push(body["duel_id"].as_str().expect("an id").to_owned());
            (200, json!({"status": "recorded"}))
        }
        "absent" => (404, json!({"detail": "no such report"})),
        _ => (200, json!({})),
    }
}

/// Answers the requests of one connection until it is closed.
fn serve(stream: TcpStream, seen: &Mutex<Seen>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.to_ascii_lowercase());
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.trim().parse().expect("a length"))];
        reader.read_exact(&mut body).ok()?;
        let path = lines[0].split(' ').nth(1).expect("a path").to_owned();
        let (status, answer) = answer(seen, &path, &String::from_utf8_lossy(&body));
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", answer.len());
        (&stream).write_all((head + &answer).as_bytes()).ok()?;
    }
}

/// A server, and what it has seen.
fn start() -> (String, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let all = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&all);
            std::thread::spawn(move || serve(stream, &seen));
        }
    });
    (url, seen)
}

#[test]
fn every_issued_duel_is_answered_once_and_reports_are_read() {
    let (first, seen) = start();
    let (second, also_seen) = start();
    let rows = json(&format!(
        "bench --url {first} --url {second} --first 10 --seconds 0.2 --connections 3 --rate 100 \
         --report verdict --report /experiments/NAME"
    ));
    let rows = rows.as_array().expect("rows");
    let names: Vec<_> = rows.iter().map(|row| row["request"].as_str().expect("a name")).collect();
    assert_eq!(names[..2], ["next-duel", "feedback"]);
    assert_eq!(names[2..4], ["next-duel beside reports", "feedback beside reports"]);
    // 20 pages are due in each measurement, and a third of them needs no feedback
    for (row, pages) in [(&rows[0], 20), (&rows[2], 20)] {
        assert_eq!(row["requests"], pages, "{row}");
        let of = |key: &str| row[key].as_f64().expect(key);
        assert!(0.0 < of("p50_ms") && of("p50_ms") <= of("p99_ms"), "{row}");
        assert!(of("p99_ms") <= of("max_ms"), "{row}");
    }
    let (seen, also_seen) = (seen.lock().expect("no panic"), also_seen.lock().expect("no panic"));
    let name = also_seen.name.clone() + &seen.name;
    let both = |of: fn(&Seen) -> &Vec<String>| {
        let mut all = [&of(&seen)[..], &of(&also_seen)[..]].concat();
        all.sort_unstable();
        all
    };
    let issued: Vec<_> = both(|seen| &seen.issued);
    assert_eq!(issued.len(), 50, "10 pages first, then twice 20");
    let answered = both(|seen| &seen.answered);
    let paired: Vec<_> = issued
        .iter()
        .filter(|id| !id["duel-".len()..].parse::<u32>().expect("a number").is_multiple_of(3))
        .cloned()
        .collect();
    assert_eq!(answered, paired);
    for (report, read) in [("verdict", "verdict"), ("/experiments/NAME", &*name)] {
        let counts = [&seen, &also_seen].map(|seen| seen.requests.get(read).copied().unwrap_or(0));
        let row = rows.iter().find(|row| row["request"] == report).expect("a row");
        let read: u64 = counts.iter().sum();
        assert!(read > 0 && row["requests"] == read, "{row}: {read}");
    }
}

#[test]
fn an_error_of_a_server_ends_the_bench() {
    let (url, _) = start();
    let output = run(&format!("bench --url {url} --first 0 --seconds 0.05 --report absent"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("absent answered 404"), "{message}");
}
