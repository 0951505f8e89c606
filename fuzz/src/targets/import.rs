//! Importing arbitrary files: a file is refused, or the imported experiment verifies and every
//! endpoint serves it.
//!
//! An input that begins with `{` is the file itself. Any other input selects one of the kept files
//! and changes values in it, so that most inputs are JSON with the members of an export. The target
//! writes the digests, which the fuzzer cannot guess: a person who makes a file can compute them.

use std::cell::RefCell;

use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rankduel::http::operations;
use rankduel::service::transfer::{self, Import};
use rankduel::service::verify::verify;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::bytes::Bytes;
use super::scene::{Scene, get, send};

const FILES: [&str; 5] = [
    include_str!("../../corpus-seeds/import/outcomes"),
    include_str!("../../corpus-seeds/import/pages"),
    include_str!("../../corpus-seeds/import/batches"),
    include_str!("../../corpus-seeds/import/archived"),
    include_str!("../../corpus-seeds/import/pruned"),
];

/// Imports after which the service restarts on an empty database.
const IMPORTS_MAX: usize = 100;
/// Longest input of this target.
const CHANGES_MAX: usize = 8;
/// Folding takes time in proportion to the comparisons of a batch, and an input must not take long.
const COUNT_MAX: u64 = 1000;

thread_local! {
    static SCENE: RefCell<Option<(Scene, usize)>> = const { RefCell::new(None) };
}

/// The input is a file, or changes of a kept file.
pub fn run(bytes: &[u8]) {
    let lines = match bytes.first() {
        Some(b'{') => raw(bytes),
        _ => changed(bytes),
    };
    let Some(lines) = lines else { return };
    if lines.iter().any(has_large_batch) {
        return;
    }
    let file = with_digests(lines);
    SCENE.with_borrow_mut(|kept| {
        let (scene, number) = kept.take().unwrap_or_else(|| (Scene::start(), 0));
        let name = format!("imported-{number}");
        let imported = scene.runtime.block_on(transfer::import(
            &*scene.store,
            &mut file.as_bytes(),
            Some(&name),
            None,
        ));
        match imported {
            Err(_) => *kept = Some((scene, number)),
            Ok(Import::Same) => panic!("{name} is imported for the first time"),
            Ok(Import::New { .. }) => {
                check(&scene, &name);
                if number < IMPORTS_MAX {
                    *kept = Some((scene, number + 1));
                } else {
                    scene.stop();
                }
            }
        }
    });
}

/// Whether the target would import this input. Such an input is a useful seed.
#[allow(dead_code, reason = "only the tests call it")]
pub fn imports(input: &[u8]) -> bool {
    let Some(lines) = raw(input) else { return false };
    let scene = Scene::start();
    let file = with_digests(lines);
    let mut file = file.as_bytes();
    let import = transfer::import(&*scene.store, &mut file, None, None);
    let imported = scene.runtime.block_on(import).is_ok();
    scene.stop();
    imported
}

/// The lines of a file, without its last one if that is the digest.
fn raw(bytes: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).ok()).collect::<Option<_>>()?;
    lines.pop_if(|line| line.get("sha256").is_some());
    Some(lines)
}

/// The lines of a kept file with changes. A change is a line, a value in it, and what to do.
fn changed(bytes: &[u8]) -> Option<Vec<Value>> {
    let mut bytes = Bytes(bytes);
    let mut lines = raw(FILES[bytes.below(FILES.len())].as_bytes())?;
    for _ in 0..CHANGES_MAX {
        if bytes.is_empty() || lines.is_empty() {
            break;
        }
        let line = bytes.below(lines.len().min(256));
        match bytes.byte() {
            0 => drop(lines.remove(line)),
            1 => lines.insert(line, lines[line].clone()),
            2 => {
                let other = bytes.below(lines.len().min(256));
                lines.swap(line, other);
            }
            kind => {
                let number = usize::from(bytes.byte());
                let mut left = number;
                change(&mut lines[line], &mut left, kind, &mut bytes);
            }
        }
    }
    Some(lines)
}

/// Change the value with this number, counted in depth. Wraps around: a number beyond the last
/// value changes none.
fn change(value: &mut Value, left: &mut usize, kind: u8, bytes: &mut Bytes<'_>) -> bool {
    match value {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                if *left == 0 && kind == 3 {
                    members.remove(&name);
                    return true;
                }
                let Some(member) = members.get_mut(&name) else { continue };
                if change(member, left, kind, bytes) {
                    return true;
                }
            }
            false
        }
        Value::Array(items) => {
            if *left == 0 && kind == 4 {
                items.extend(items.first().cloned());
                return true;
            }
            items.iter_mut().any(|item| change(item, left, kind, bytes))
        }
        leaf => {
            if *left > 0 {
                *left -= 1;
                return false;
            }
            *leaf = other(leaf, bytes);
            true
        }
    }
}

/// A value to put in the place of this one.
fn other(value: &Value, bytes: &mut Bytes<'_>) -> Value {
    let choice = bytes.byte();
    let number = value.as_i64().unwrap_or(0);
    match choice % 30 {
        0 => json!(0),
        1 => json!(1),
        2 => json!(2),
        3 => json!(3),
        4 => json!(-1),
        5 => json!(number.wrapping_add(1)),
        6 => json!(number.wrapping_sub(1)),
        7 => json!(255),
        8 => json!(60_000),
        9 => json!(65_535),
        10 => json!(u32::MAX),
        11 => json!((1_u64 << 53) - 1),
        12 => json!(1_u64 << 53),
        13 => json!(i64::MAX),
        14 => json!(i64::MIN),
        15 => json!(u64::MAX),
        16 => json!(null),
        17 => json!(true),
        18 => json!(false),
        19 => json!("junk"),
        20 => json!(""),
        21 => json!([]),
        22 => json!({}),
        23 => json!("running"),
        24 => json!("paused"),
        25 => json!("concluded"),
        26 => json!(0.5),
        27 => json!(bytes.byte()),
        28 => json!(i64::from(bytes.byte()) << bytes.below(56)),
        _ => {
            json!(["uniform", "d-ts", "pcomp", "balanced", "tie", "none", "a", "d"][bytes.below(8)])
        }
    }
}

fn has_large_batch(line: &Value) -> bool {
    let results = &line["event"]["results"];
    let rows = results.as_array().into_iter().flatten();
    rows.flat_map(|row| row.as_object()).flat_map(|row| row.values()).any(|count| {
        // also beyond what a count can be: those are refused without counting
        count.as_u64().is_some_and(|count| count > COUNT_MAX && count <= u32::MAX.into())
    })
}

/// The file with a digest at the end of its snapshot and one at its own end.
fn with_digests(mut lines: Vec<Value>) -> String {
    for line in &mut lines {
        let Some(state) = line.pointer_mut("/snapshot/state") else { continue };
        let Some(bytes) = state.as_str().and_then(|text| STANDARD.decode(text).ok()) else {
            continue;
        };
        let content = &bytes[..bytes.len().saturating_sub(16)];
        *state = json!(STANDARD.encode([content, &Sha256::digest(content)[..16]].concat()));
    }
    let entries = lines.iter().filter(|line| line.get("nonce").is_some()).count();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let sha256: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{text}{}\n", json!({"entries": entries, "sha256": sha256}))
}

/// The imported experiment verifies, and every endpoint answers as the API promises.
fn check(scene: &Scene, name: &str) {
    let findings = scene.runtime.block_on(verify(&*scene.store, name)).expect("the store");
    assert!(findings.wrong.is_empty(), "{name}: {:?}", findings.wrong);
    let answer = |request| {
        let (status, body) = scene.answer(request);
        assert!(!body.contains("experiment-unreadable"), "{name}: {status} {body}");
        body
    };
    for operation in operations() {
        if operation.method == Method::GET {
            answer(get(&operation.path.replace("{name}", name)));
        }
    }
    for page in [format!("/experiments/{name}"), "/".to_owned()] {
        answer(get(&page));
    }
    let path = |path: &str| format!("/v1/experiments/{name}/{path}");
    let post = |to: &str, body: Value| answer(send(Method::POST, &path(to), &body));
    let duel: Value = serde_json::from_str(&post("next-duel", json!({}))).expect("JSON");
    let id = &duel["duel_id"];
    let lists = json!({"duel_id": id, "left": ["1", "2"], "right": ["2", "3"], "length": 3});
    let page: Value = serde_json::from_str(&post("interleave", lists)).expect("JSON");
    let page = &page["duel_id"];
    post("feedback", json!({"duel_id": page, "clicks": [0], "final": false}));
    post("feedback", json!({"duel_id": page, "clicks": [1]}));
    post("next-duel", json!({}));
    post("feedback", json!({"duel_id": id, "outcome": "left"}));
    post("batch/lease", json!({"count": 2}));
    for change in [
        json!({"status": "running"}),
        json!({"enlist": {"id": "one-more"}}),
        json!({"interleaving": {"kind": "probabilistic"}}),
        json!({"status": "concluded"}),
    ] {
        answer(send(Method::PATCH, &format!("/v1/experiments/{name}"), &change));
    }
    post("next-duel", json!({}));
    answer(get(&path("standings")));
    answer(send(Method::DELETE, &format!("/v1/experiments/{name}"), &json!(null)));
    // what was made here verifies too
    let findings = scene.runtime.block_on(verify(&*scene.store, name)).expect("the store");
    assert!(findings.wrong.is_empty(), "{name}: {:?}", findings.wrong);
}
