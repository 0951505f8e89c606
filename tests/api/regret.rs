//! Regret: the API, the page and the metrics say one thing, and it holds the truth.
//!
//! The truth is computed from the pairs shown and the matrix that answers them. The long test
//! prints a row for each look:
//!
//! `scripts/test --release --all-features --test api -- --ignored --nocapture regret::long`

use dueling_bandits::preference::{PreferenceMatrix, Regret};
use dueling_bandits::step_rng;
use rand::RngExt;
use serde_json::{Value, json};

use crate::support::client::{eventually, with};
use crate::support::service::{Server, Settings};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    the_truth_is_in_the_range_wherever_it_is_read
    a_wrong_conclusion_is_seen
}

/// A searcher whose preferences are known.
struct Searcher {
    matrix: PreferenceMatrix,
    /// Appearances of each ranker.
    shown: Vec<u64>,
    rng: dueling_bandits::PolicyRng,
}

/// The regret at one moment, and where it was read.
struct Look {
    truth: f64,
    regret: Value,
}

fn id(ranker: usize) -> String {
    format!("r{ranker}")
}

impl Searcher {
    fn new(matrix: &str) -> Self {
        Self::of(PreferenceMatrix::named(matrix).expect("known").expect("valid"))
    }

    fn of(matrix: PreferenceMatrix) -> Self {
        Self { shown: vec![0; matrix.rankers()], matrix, rng: step_rng(7, 7) }
    }

    /// An experiment with all rankers but the last `without` ones.
    fn experiment(&self, name: &str, policy: Option<Value>, without: usize) -> Value {
        let rankers: Vec<_> = (0..self.matrix.rankers() - without).map(id).collect();
        let body = json!({"name": name, "rankers": rankers, "conclude_at": "never", "seed": 5});
        policy.map_or(body.clone(), |policy| with(body, json!({"policy": policy})))
    }

    async fn play(&mut self, server: &Server, name: &str, pages: u64) {
        for _ in 0..pages {
            let duel = server.next_duel(name).await;
            let [left, right] = ["left", "right"]
                .map(|side| duel[side].as_str().expect("an id")[1..].parse().expect("a number"));
            self.shown[left] += 1;
            self.shown[right] += 1;
            if left != right {
                let left_wins = self.rng.random_bool(self.matrix.win_probability(left, right));
                server.answer(name, &duel, if left_wins { "left" } else { "right" }).await;
            }
        }
    }

    /// The regret that API, page and metrics agree on once everything is in the log.
    async fn look(&self, server: &Server, name: &str) -> Look {
        let steps = self.shown.iter().sum::<u64>() / 2;
        let regret = eventually("the same regret everywhere", async || {
            let regret = server.report(name, "regret").await;
            (regret["steps"] == steps && is_exported(server, name, &regret).await).then_some(regret)
        })
        .await;
        let page = server.get(&format!("/experiments/{name}/evidence")).await.text();
        // between the digits of thousands
        let page = page.replace(['\u{a0}', '\u{2009}', '\u{202f}'], "");
        let [mean, low, high] = ["mean", "low", "high"]
            .map(|end| quantity(regret["copeland_regret"][end].as_f64().expect("a number")));
        for part in
            [format!("id=\"regret-mean\">{mean}<"), format!("id=\"regret-range\">{low} to {high}<")]
        {
            assert!(page.contains(&part), "{part}: {page}");
        }
        Look { truth: Regret::copeland(&self.matrix).of_appearances(&self.shown), regret }
    }
}

/// Whether the metrics have these numbers.
async fn is_exported(server: &Server, name: &str, regret: &Value) -> bool {
    let text = server.get("/metrics").await.text();
    let has = |family: &str, estimate: &str, value: &Value| {
        let series = format!(
            "rankduel_experiment_{family}{{experiment=\"{name}\",estimate=\"{estimate}\"}} "
        );
        let found = text.lines().find_map(|line| line.strip_prefix(&series));
        found.map(|text| text.parse::<f64>().expect("a number")) == value.as_f64()
    };
    let bands = [
        ("copeland_regret", &regret["copeland_regret"]),
        ("uniform_copeland_regret", &regret["uniform_copeland_regret"]),
        ("recent_copeland_regret", &regret["recent"]),
    ];
    bands.iter().all(|(family, band)| {
        ["mean", "low", "high"].iter().all(|estimate| has(family, estimate, &band[estimate]))
    }) && has("copeland_regret", "least", &regret["bounds"]["low"])
        && has("copeland_regret", "most", &regret["bounds"]["high"])
        && text.contains(&format!(
            "rankduel_experiment_steps_total{{experiment=\"{name}\"}} {}\n",
            regret["steps"]
        ))
}

/// A number as pages show it, without blanks.
fn quantity(value: f64) -> String {
    match value {
        size if size >= 1000.0 => format!("{:.0}", value.round()),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        0.0 => "0".into(),
        _ => format!("{value:.2}"),
    }
}

impl Look {
    fn number(&self, pointer: &str) -> f64 {
        self.regret.pointer(pointer).and_then(Value::as_f64).expect("a number")
    }

    fn is_within(&self, low: &str, high: &str) -> bool {
        (self.number(low) - 1e-6..=self.number(high) + 1e-6).contains(&self.truth)
    }

    fn is_in_range(&self) -> bool {
        self.is_within("/copeland_regret/low", "/copeland_regret/high")
    }

    /// The bounds, which hold in 95 % of experiments at least: with these seeds always.
    fn assert_bounds(&self, when: &str) {
        let holds = self.is_within("/bounds/low", "/bounds/high");
        assert!(holds, "{when}: {} is not within {}", self.truth, self.regret["bounds"]);
    }
}

/// The default policy and uniform pairs; `arxiv-6` has a pair that is exactly even.
async fn the_truth_is_in_the_range_wherever_it_is_read(database: TestDatabase) {
    let mut server = Server::with(database.store().await, Settings::quick()).await;
    for (name, policy) in [("default", None), ("even", Some(json!({"kind": "uniform"})))] {
        let mut searcher = Searcher::new("arxiv-6");
        server.create(&searcher.experiment(name, policy, 1)).await;
        searcher.play(&server, name, 150).await;
        server.patch(name, &json!({"enlist": id(5)})).await.json(200);
        searcher.play(&server, name, 150).await;
        let before = searcher.look(&server, name).await;
        before.assert_bounds("after a roster change");
        server.stop().await;
        server = Server::with(database.connect().await, Settings::quick()).await;
        let after = searcher.look(&server, name).await;
        assert_eq!(after.regret["copeland_regret"], before.regret["copeland_regret"]);
        searcher.play(&server, name, 50).await;
        searcher.look(&server, name).await.assert_bounds("after a restart");
    }
    server.stop().await;
}

/// An experiment of four rankers, each clearly better than the next one, is concluded by hand on
/// the last one.
async fn a_wrong_conclusion_is_seen(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let wins = |i: i32, j: i32| match j - i {
        0 => 0.5,
        ahead => 0.5 + f64::from(ahead.signum()) * (0.15 + 0.1 * f64::from(ahead.abs())),
    };
    let rows: Vec<Vec<f64>> = (0..4).map(|i| (0..4).map(|j| wins(i, j)).collect()).collect();
    let mut searcher = Searcher::of(PreferenceMatrix::from_rows(&rows).expect("valid"));
    let uniform = json!({"kind": "uniform"});
    server.create(&searcher.experiment("wrong", Some(uniform), 0)).await;
    searcher.play(&server, "wrong", 500).await;
    let before = searcher.look(&server, "wrong").await;
    let duels = server.standings("wrong").await["duels"].clone();
    let worst = json!({"status": "concluded", "winner": id(3)});
    server.patch("wrong", &worst).await.json(200);
    searcher.play(&server, "wrong", 1000).await;
    let after = searcher.look(&server, "wrong").await;
    after.assert_bounds("after a wrong conclusion");
    let (mean, truth) = (after.number("/copeland_regret/mean"), after.truth);
    assert!((mean - truth).abs() < 0.15 * truth, "{mean} instead of {truth}");
    assert!(mean > before.number("/copeland_regret/mean") + 600.0, "{mean}");
    // the rule of RankduelRegretAboveUniform
    let (recent, uniform) = (after.number("/recent/low"), after.number("/recent/uniform"));
    assert!(recent > 1.1 * uniform && after.number("/steps") > 500.0, "{recent}, {uniform}");
    // what the policy has seen is what it selected
    assert_eq!(server.standings("wrong").await["duels"], duels);
    let after = server.report("wrong", "regret").await;
    server.patch("wrong", &json!({"status": "running"})).await.json(200);
    assert_eq!(server.report("wrong", "regret").await["steps"], after["steps"]);
    server.stop().await;
}

/// The estimates of five policies on four matrices: after a roster change, where the policy can
/// change its roster, at 200, 1,000 and 5,000 pages, after a restart, and after a conclusion.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long() {
    println!("| matrix | policy | look | truth | low | mean | high | least | most |");
    let (mut looks, mut in_range) = (0, 0);
    for matrix in ["arxiv-6", "cyclic-4", "arithmetic-8", "btl:10:1"] {
        for kind in ["default", "d-ts-plus", "ccb", "scomp2", "uniform"] {
            let policy = match kind {
                "default" => None,
                "scomp2" => Some(json!({"kind": kind, "horizon": 10_000, "batches": 5})),
                kind => Some(json!({"kind": kind})),
            };
            let database = fresh_database(Kind::Sqlite).await;
            let mut server = Server::with(database.store().await, Settings::quick()).await;
            let mut searcher = Searcher::new(matrix);
            let last = id(searcher.matrix.rankers() - 1);
            // a policy in batches keeps its roster
            let is_late = kind != "scomp2";
            server.create(&searcher.experiment("x", policy, usize::from(is_late))).await;
            searcher.play(&server, "x", 50).await;
            if is_late {
                server.patch("x", &json!({"enlist": last})).await.json(200);
            }
            let mut print = |when: &str, look: Look| {
                look.assert_bounds(when);
                looks += 1;
                in_range += usize::from(look.is_in_range());
                let [low, mean, high, least, most] = [
                    "/copeland_regret/low",
                    "/copeland_regret/mean",
                    "/copeland_regret/high",
                    "/bounds/low",
                    "/bounds/high",
                ]
                .map(|pointer| look.number(pointer));
                println!(
                    "| {matrix} | {kind} | {when} | {:.1} | {low:.1} | {mean:.1} | {high:.1} | {least:.1} | {most:.1} |",
                    look.truth
                );
            };
            let mut played = 50;
            for pages in [200, 1000, 5000] {
                searcher.play(&server, "x", pages - played).await;
                played = pages;
                print(&pages.to_string(), searcher.look(&server, "x").await);
            }
            server.stop().await;
            server = Server::with(database.connect().await, Settings::quick()).await;
            print("restart", searcher.look(&server, "x").await);
            let ended = json!({"status": "concluded", "winner": last});
            server.patch("x", &ended).await.json(200);
            searcher.play(&server, "x", 500).await;
            print("conclusion on the last", searcher.look(&server, "x").await);
            server.stop().await;
        }
    }
    println!("{in_range} of {looks} in the range");
    assert!(10 * in_range >= 9 * looks);
}
