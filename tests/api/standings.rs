//! The reported numbers, compared with an independent count.

use std::collections::BTreeMap;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::client::{assert_has, eventually, with};
use crate::support::service::Server;

on_sqlite! {
    standings_match_the_answers
    ties_count_by_the_rule_of_the_experiment
    regret_of_a_small_example_is_right
}

/// The answers of an experiment, counted by the test. Rankers are indices.
struct Count {
    rankers: usize,
    wins: Vec<Vec<u64>>,
    ties: Vec<Vec<u64>>,
    none: Vec<Vec<u64>>,
    self_duels: Vec<u64>,
    /// left, right, tie, none
    shown: [u64; 4],
}

impl Count {
    fn of(rankers: usize) -> Self {
        let zeros = vec![vec![0; rankers]; rankers];
        Self {
            rankers,
            wins: zeros.clone(),
            ties: zeros.clone(),
            none: zeros,
            self_duels: vec![0; rankers],
            shown: [0; 4],
        }
    }

    fn answer(&mut self, left: usize, right: usize, outcome: usize) {
        self.shown[outcome] += 1;
        match outcome {
            0 => self.wins[left][right] += 1,
            1 => self.wins[right][left] += 1,
            kind => {
                let table = if kind == 2 { &mut self.ties } else { &mut self.none };
                table[left][right] += 1;
                table[right][left] += 1;
            }
        }
    }

    fn losses(&self, i: usize) -> u64 {
        (0..self.rankers).map(|j| self.wins[j][i]).sum()
    }

    fn appearances(&self, i: usize) -> u64 {
        let sum = |row: &[u64]| row.iter().sum::<u64>();
        sum(&self.wins[i])
            + self.losses(i)
            + sum(&self.ties[i])
            + sum(&self.none[i])
            + 2 * self.self_duels[i]
    }

    /// The number of opponents beaten more often than not; a tie counts as `tie` wins for both.
    fn copeland(&self, i: usize, tie: f64) -> usize {
        let credit = |i: usize, j: usize| self.wins[i][j] as f64 + tie * self.ties[i][j] as f64;
        (0..self.rankers).filter(|&j| credit(i, j) > credit(j, i)).count()
    }

    fn borda(&self, i: usize, tie: f64) -> f64 {
        let rate = |j: usize| {
            let (won, lost) = (self.wins[i][j] as f64, self.wins[j][i] as f64);
            let ties = tie * self.ties[i][j] as f64;
            let all = won + lost + 2.0 * ties;
            if all > 0.0 { (won + ties) / all } else { 0.5 }
        };
        (0..self.rankers).filter(|&j| j != i).map(rate).sum::<f64>() / (self.rankers - 1) as f64
    }
}

fn assert_close(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().expect("a number");
    assert!((found - expected).abs() < 1e-9, "{what}: {found} instead of {expected}");
}

/// Request and answer `duels` duels at random.
async fn play(server: &Server, name: &str, ids: &[&str], duels: usize, seed: u64) -> Count {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut count = Count::of(ids.len());
    let index = |id: &Value| ids.iter().position(|known| id == known).expect("a ranker");
    for _ in 0..duels {
        let duel = server.next_duel(name).await;
        let (left, right) = (index(&duel["left"]), index(&duel["right"]));
        if left == right {
            count.self_duels[left] += 1;
            continue;
        }
        let outcome = match rng.random_range(0..10) {
            0 => 3,
            1 | 2 => 2,
            // The lower index is the better ranker.
            draw => usize::from((draw < 8) == (right < left)),
        };
        server.answer(name, &duel, ["left", "right", "tie", "none"][outcome]).await;
        count.answer(left, right, outcome);
    }
    count
}

async fn standings_with_self_duels(server: &Server, name: &str, count: &Count) -> Value {
    let self_duels: u64 = count.self_duels.iter().sum();
    eventually("the self-duels", async || {
        let standings = server.standings(name).await;
        (standings["self_duels"] == self_duels).then_some(standings)
    })
    .await
}

fn assert_standings(standings: &Value, count: &Count, ids: &[&str], tie: f64) {
    let k = ids.len();
    let [left, right, tied, none] = count.shown;
    assert_eq!(
        standings["outcomes"],
        json!({"left": left, "right": right, "tie": tied, "none": none})
    );
    assert_eq!(standings["duels"], count.shown.iter().sum::<u64>());
    assert_eq!(standings["wins"], json!(count.wins));
    assert_eq!(standings["ties"], json!(count.ties));
    let scores: Vec<_> = (0..k).map(|i| count.copeland(i, tie)).collect();
    let best = scores.iter().max().expect("rankers");
    let leaders: Vec<_> = (0..k).filter(|&i| scores[i] == *best).map(|i| ids[i]).collect();
    assert_eq!(standings["leaders"], json!(leaders));
    assert!(ids.contains(&standings["champion"].as_str().expect("an id")));
    let rows = standings["rankers"].as_array().expect("rows");
    assert_eq!(rows.len(), k);
    for (i, row) in rows.iter().enumerate() {
        let sum = |row: &[u64]| row.iter().sum::<u64>();
        assert_eq!(row["id"], ids[i]);
        assert_eq!(row["wins"], sum(&count.wins[i]));
        assert_eq!(row["losses"], count.losses(i));
        assert_eq!(row["ties"], sum(&count.ties[i]));
        assert_eq!(row["no_signal"], sum(&count.none[i]));
        assert_eq!(row["appearances"], count.appearances(i));
        assert_eq!(row["leader"], scores[i] == *best);
        assert_close(&row["copeland_score"], scores[i] as f64 / (k - 1) as f64, "Copeland score");
        assert_close(&row["borda_score"], count.borda(i, tie), "Borda score");
    }
    for i in 0..k {
        assert_eq!(standings["wins"][i][i], 0);
        for j in 0..k {
            assert_eq!(standings["ties"][i][j], standings["ties"][j][i], "symmetric");
        }
    }
}

async fn standings_match_the_answers(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let ids = ["a", "b", "c", "d"];
    server
        .create(
            &json!({"name": "search", "rankers": ids, "policy": {"kind": "uniform"}, "seed": 1}),
        )
        .await;
    let nothing = Count::of(4);
    assert_standings(&server.standings("search").await, &nothing, &ids, 0.0);
    let count = play(&server, "search", &ids, 150, 1).await;
    assert_standings(
        &standings_with_self_duels(&server, "search", &count).await,
        &count,
        &ids,
        0.0,
    );

    // A server that folds the log from the start agrees.
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    assert_standings(&server.standings("search").await, &count, &ids, 0.0);
}

async fn ties_count_by_the_rule_of_the_experiment(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let ids = ["a", "b", "c"];
    for (name, rule, tie) in [("skip", "skip", 0.0), ("half", "half", 0.5)] {
        let body = with(steady(name, &ids), json!({"ties": rule}));
        server.create(&body).await;
        let count = play(&server, name, &ids, 60, 2).await;
        assert_standings(&server.standings(name).await, &count, &ids, tie);
    }
    // A coin gives every tie to one of the two rankers, so even ties are decided comparisons.
    server.create(&with(steady("coin", &["a", "b"]), json!({"ties": "coin"}))).await;
    for _ in 0..41 {
        let duel = server.next_duel("coin").await;
        server.answer("coin", &duel, "tie").await;
    }
    let standings = server.standings("coin").await;
    assert_eq!(standings["wins"], json!([[0, 0], [0, 0]]), "raw counts do not include coins");
    assert_eq!(standings["ties"], json!([[0, 41], [41, 0]]));
    let borda = standings["rankers"][0]["borda_score"].as_f64().expect("a score");
    let heads = borda * 41.0;
    assert!(
        (heads - heads.round()).abs() < 1e-9 && (1.0..=40.0).contains(&heads),
        "2^-40 otherwise: {borda}"
    );
    assert_eq!(standings["leaders"].as_array().map(Vec::len), Some(1), "an odd number of coins");
}

/// `a` beats `b` four times and `c` twice; `b` and `c` do not meet. Scores are 1, 0, 0 of 1, so an
/// appearance costs 0, 1, 1. There were 6, 4 and 2 appearances, two to a step: (0 + 4 + 2) / 2 = 3
/// over 6 steps. Uniform pairs show `b` or `c` two times in three: 6 · 2/3 = 4. A quarter is saved.
async fn regret_of_a_small_example_is_right(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    let regret = async || server.report("search", "regret").await;
    let before = regret().await;
    assert_has(
        &before,
        json!({
            "experiment": "search", "position": 1, "steps": 0, "saved_share": null,
            "plug_in": {"copeland_regret": 0.0, "uniform_copeland_regret": 0.0},
            "recent": null, "series": [],
        }),
    );
    assert_eq!(before["copeland_regret"], json!({"mean": 0.0, "low": 0.0, "high": 0.0}));
    assert_eq!(before["condorcet"]["winner"], json!(null));
    let mut wanted = BTreeMap::from([("b".to_owned(), 4), ("c".to_owned(), 2)]);
    while wanted.values().any(|missing| *missing > 0) {
        let duel = server.next_duel("search").await;
        let [left, right] =
            ["left", "right"].map(|side| duel[side].as_str().expect("a ranker").to_owned());
        let (other, outcome) = match (&*left, &*right) {
            ("a", other) => (other, "left"),
            (other, "a") => (other, "right"),
            _ => continue,
        };
        let missing = wanted.get_mut(other).expect("b or c");
        if *missing > 0 {
            *missing -= 1;
            server.answer("search", &duel, outcome).await;
        }
    }
    let found = regret().await;
    assert_has(
        &found,
        json!({
            "experiment": "search", "position": 7, "steps": 6,
            "plug_in": {"copeland_regret": 3.0, "uniform_copeland_regret": 4.0},
        }),
    );
    // By the counts, `a` always wins, so its lead over both is 1/2: (4 + 2) / 2 · 1/2.
    assert_has(&found["condorcet"], json!({"winner": "a", "regret": 1.5}));
    assert_posterior_of_the_small_example(&found);
    // A page without a click was still shown: one more step with the best ranker and another.
    let duel = loop {
        let duel = server.next_duel("search").await;
        if duel["left"] == "a" || duel["right"] == "a" {
            break duel;
        }
    };
    server.answer("search", &duel, "none").await;
    let after = regret().await;
    let plug_in = &after["plug_in"];
    assert_eq!((&after["steps"], &plug_in["copeland_regret"]), (&json!(7), &json!(3.5)));
    assert_close(&plug_in["uniform_copeland_regret"], 14.0 / 3.0, "uniform");
}

/// `a` is better than `b` with probability 31/32 (four wins and no loss) and than `c` with 7/8;
/// about `b` and `c` nothing is known. The mean follows from the scores of the eight tournaments
/// and their probabilities.
fn assert_posterior_of_the_small_example(found: &Value) {
    let shown = [6.0, 4.0, 2.0];
    let mut mean = 0.0;
    let mut condorcet = 0.0;
    for signs in 0..8 {
        let coin = |bit: u32, p: f64| if signs >> bit & 1 == 1 { p } else { 1.0 - p };
        let probability = coin(0, 31.0 / 32.0) * coin(1, 7.0 / 8.0) * coin(2, 0.5);
        let wins = |bit: u32| f64::from(signs >> bit & 1);
        let scores = [wins(0) + wins(1), 1.0 - wins(0) + wins(2), 2.0 - wins(1) - wins(2)];
        let best = scores.iter().copied().fold(0.0, f64::max);
        let cost: f64 =
            scores.iter().zip(shown).map(|(score, shown)| (best - score) / 2.0 * shown / 2.0).sum();
        mean += probability * cost;
        condorcet += if best == 2.0 { probability } else { 0.0 };
    }
    let draws = found["draws"].as_u64().expect("a number") as f64;
    let near = |found: &Value, expected: f64, spread: f64| {
        let found = found.as_f64().expect("a number");
        assert!(
            (found - expected).abs() < 5.0 * spread / draws.sqrt(),
            "{found} instead of {expected}"
        );
    };
    near(&found["copeland_regret"]["mean"], mean, 1.0);
    near(&found["condorcet"]["probability"], condorcet, 0.5);
    let series = found["series"].as_array().expect("points");
    assert_eq!(series.len(), 6);
    let last = &series[5];
    assert_eq!(last["steps"], 6);
    for end in ["mean", "low", "high"] {
        assert_eq!(last[end], found["copeland_regret"][end], "the same draws");
    }
    for point in series {
        let [low, mean, high] =
            ["low", "mean", "high"].map(|end| point[end].as_f64().expect("a number"));
        assert!(low <= mean && mean <= high, "{point}");
    }
    let (recent, thousand) = (&found["recent"], 1000.0 / 6.0);
    assert_eq!(recent["steps"], 6, "all of them");
    let now = found["copeland_regret"]["mean"].as_f64().expect("a number");
    assert_close(&recent["mean"], now * thousand, "of 1000 steps");
}
