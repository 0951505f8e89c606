//! The preference matrix through its public API: refused input and its errors, known results, and
//! invariants.

use dueling_bandits::preference::{
    CsvError, InvalidMatrix, NoCondorcetWinner, PreferenceMatrix, Regret, csv,
};
use proptest::prelude::*;

fn matrix(name: &str) -> PreferenceMatrix {
    PreferenceMatrix::named(name).expect("a built-in name").expect("a valid name")
}

fn parse(text: &str) -> Result<PreferenceMatrix, String> {
    csv::read(text.as_bytes()).map_err(|error| error.to_string())
}

// ---- reading and writing

#[test]
fn names_comments_blank_lines_and_spaces_are_skipped() {
    let numbers = "0.5,0.75\n0.25,0.5\n";
    let plain = parse(numbers).unwrap();
    for text in [
        "# two rankers\n\n 0.5 , 0.75\r\n\n0.25,0.5\n# end",
        &format!("bm25, neural\n{numbers}"),
        ",bm25,neural\nbm25,0.5,0.75\nneural,0.25,0.5\n",
        ",2024,nan\n2024,0.5,0.75\nnan,0.25,0.5\n",
        "ranker,2024,2025\n2024,0.5,0.75\n2025,0.25,0.5\n",
        "nan,inf\nnan,0.5,0.75\n0.7,0.25,0.5\n",
        ",#1,b\n#1,0.5,0.75\nb,0.25,0.5\n# end\n",
        "# preferences\n\"\",\"a, b\",\"c\"\"d\"\n\"a, b\",0.5,0.75\n\"c\"\"d\",0.25,0.5\n",
    ] {
        assert_eq!(parse(text).unwrap(), plain, "{text}");
    }
}

#[test]
fn each_malformed_matrix_is_refused_with_its_place() {
    let cases = [
        ("", "it is empty"),
        ("\n# nothing\n", "it is empty"),
        ("0.5\n", "one ranker"),
        ("0.5,0.6\n0.4,0.5\n0.5,0.5\n", "not square: it has 3 rows of 2 columns"),
        ("0.5,0.6,0.7\n0.4,0.5,0.6\n", "not square: it has 2 rows of 3 columns"),
        ("0.5,0.6\n0.4\n", "row 2 has 1 columns, but 2 are needed"),
        ("0.5,1.2\n-0.2,0.5\n", "row 1, column 2 is 1.2; it must be a probability"),
        ("0.5,0.6\n-0.4,0.5\n", "row 2, column 1 is -0.4; it must be a probability"),
        ("0.5,NaN\n0.4,0.5\n", "row 1, column 2 is NaN"),
        ("0.5,inf\n0.4,0.5\n", "row 1, column 2 is inf"),
        (
            "0.5,0.6\n0.5,0.5\n",
            "row 1, column 2 is 0.6 and row 2, column 1 is 0.5; they must add up to 1",
        ),
        ("0.5,0.6\n0.4,0.4\n", "row 2, column 2 is 0.4; a ranker against itself must be 0.5"),
        ("# a\n0.5,0.6\n0.4,abc\n", "row 2, column 2 (line 3) is `abc`, which is not a number"),
        ("0.5,b\n0.5,0.6\n0.4,0.5\n", "row 1, column 2 (line 1) is `b`"),
        ("a,b\nc,d\n0.5,0.6\n0.4,0.5\n", "row 1, column 2 (line 2) is `d`"),
        (",a,b\na,0.5,0.6\nb,0.4,x\n", "row 2, column 3 (line 3) is `x`"),
        ("a\n0.5,0.6\n0.4,0.5\n", "row 1, column 1 (line 1) is `a`"),
        ("0.5,0.6,\n0.4,0.5\n", "row 1, column 3 (line 1) is ``, which is not a number"),
        ("0.5;0.6\n0.4;0.5\n", "`0.5;0.6`, which is not a number: write commas between"),
        ("0,5;0,6\n0,4;0,5\n", "`5;0`, which is not a number: write commas between"),
        ("0\x00.\x005\x00\n\x00", "save it as UTF-8"),
        ("bm25,0.5,0.6\nneural,0.4,0.5\n", "row 1, column 1 (line 1) is `bm25`"),
    ];
    for (text, expected) in cases {
        let message = parse(text).expect_err(text);
        assert!(message.contains(expected), "{text:?}\n message: {message}\n expected: {expected}");
    }
}

#[test]
fn complementary_entries_may_differ_by_rounding_only() {
    assert!(parse("0.5,0.6000000005\n0.4,0.5").is_ok());
    assert!(parse("0.5,0.600000002\n0.4,0.5").is_err());
}

#[test]
fn more_than_1024_rankers_are_refused_before_they_are_read() {
    let row = vec!["0.5"; 1025].join(",");
    assert!(parse(&row).unwrap_err().contains("more than 1024 columns"));
    let one_column = "0.5\n".repeat(1025);
    assert!(parse(&one_column).unwrap_err().contains("more than 1024 rows"));
    let square = format!("{}\n", vec!["0.5"; 1024].join(",")).repeat(1024);
    assert_eq!(parse(&square).unwrap().rankers(), 1024);
}

#[test]
fn reading_endless_input_stops() {
    let line = std::io::BufReader::new(std::io::repeat(b'1'));
    assert!(matches!(csv::read(line), Err(CsvError::LongLine { line: 1 })));
    let newlines = std::io::BufReader::new(std::io::repeat(b'\n'));
    assert!(matches!(csv::read(newlines), Err(CsvError::ManyLines)));
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    let error = csv::read(&[0x30, 0xff, 0xfe, b'\n'][..]).unwrap_err();
    assert!(matches!(error, CsvError::NotANumber { row: 1, column: 1, .. }), "{error}");
}

// ---- by name

#[test]
fn published_matrices_have_their_published_scores_and_winners() {
    let arxiv = matrix("arxiv-6");
    assert_eq!(arxiv.copeland_scores(), [5, 4, 3, 1, 1, 0]);
    assert_eq!(arxiv.condorcet_winner(), Some(0));
    assert_eq!(arxiv.win_probability(0, 4), 0.61);
    assert_eq!(arxiv.win_probability(3, 5), 0.5);

    let cyclic = matrix("cyclic-4");
    assert_eq!(cyclic.copeland_scores(), [3, 1, 1, 1]);
    assert_eq!(cyclic.condorcet_winner(), Some(0));
    // all members of the cycle have the row sum 0.4 + 0.9 + 0.1
    assert!(cyclic.borda_scores()[1..].iter().all(|score| (score - 1.4 / 3.0).abs() < 1e-12));

    let arithmetic = matrix("arithmetic-8");
    assert_eq!(arithmetic.copeland_scores(), [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(arithmetic.win_probability(7, 0), 0.15);
}

#[test]
fn generated_matrices_have_their_documented_properties() {
    let btl = matrix("btl:30:4");
    // the odds multiply: w_i/w_j · w_j/w_k = w_i/w_k
    let odds = |i, j| btl.win_probability(i, j) / btl.win_probability(j, i);
    assert!((odds(0, 1) * odds(1, 2) / odds(0, 2) - 1.0).abs() < 1e-9);
    assert!(btl.condorcet_winner().is_some());

    let hard = matrix("hard:20:7");
    let winner = hard.condorcet_winner().unwrap();
    for i in 0..20 {
        for j in (0..20).filter(|&j| j != i) {
            let expected = if i == winner {
                0.7
            } else if j == winner {
                0.3
            } else {
                0.5
            };
            assert!((hard.win_probability(i, j) - expected).abs() < 1e-12);
        }
    }
    assert!(
        (matrix("hard:5:7:0.05").margin(matrix("hard:5:7:0.05").condorcet_winner().unwrap(), 0))
            <= 0.05
    );

    let cycle = matrix("cycle:40:1");
    assert_eq!(cycle.condorcet_winner(), None);
    let mut scores = cycle.copeland_scores();
    scores.sort_unstable();
    assert_eq!(scores[37..], [38, 38, 38]);
    assert_eq!(scores[..37], (0..37).collect::<Vec<_>>());
    assert_eq!(cycle.smith_set(), cycle.copeland_winners());
    for i in 0..40 {
        for j in (0..40).filter(|&j| j != i) {
            assert!((0.1..0.4).contains(&cycle.margin(i, j).abs()));
        }
    }
}

#[test]
fn sst_matrices_are_strongly_transitive_and_keep_the_triangle_inequality() {
    let sst = matrix("sst:25:3");
    let mut order: Vec<usize> = (0..25).collect();
    let scores = sst.copeland_scores();
    order.sort_by_key(|&i| std::cmp::Reverse(scores[i]));
    for a in 0..25 {
        for b in a + 1..25 {
            for c in b + 1..25 {
                let (i, j, k) = (order[a], order[b], order[c]);
                let (near, far, both) = (sst.margin(i, j), sst.margin(j, k), sst.margin(i, k));
                assert!(near > 0.0 && far > 0.0);
                assert!(both >= near.max(far) - 1e-12, "{both} under {near}, {far}");
                assert!(both <= near + far + 1e-12, "{both} over {near} + {far}");
            }
        }
    }
}

#[test]
fn a_generated_matrix_depends_only_on_its_name() {
    for name in ["btl:9:5", "hard:9:5", "cycle:9:5", "sst:9:5"] {
        assert_eq!(matrix(name), matrix(name));
        let other = format!("{}6", &name[..name.len() - 1]);
        assert_ne!(matrix(name), matrix(&other), "{name} and {other}");
    }
}

#[test]
fn errors_of_invalid_names_explain_the_problem() {
    let cases = [
        ("btl:1:1", "`1` is not a number of rankers from 2 to 1024"),
        ("btl:1025:1", "`1025` is not a number of rankers"),
        ("cycle:2:1", "from 3 to 1024"),
        ("btl:x:1", "`x` is not a number of rankers"),
        ("btl:5:-1", "the seed `-1`"),
        ("btl:5", "one of the forms"),
        ("btl:5:1:0.2", "one of the forms"),
        ("hard:5:1:0", "the gap `0`"),
        ("hard:5:1:0.6", "the gap `0.6`"),
    ];
    for (name, expected) in cases {
        let message = PreferenceMatrix::named(name).expect(name).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains(name), "{name}: {message}");
    }
    for no_name in ["arxiv", "arxiv-6:1", "btl", "matrix.csv", ""] {
        assert!(PreferenceMatrix::named(no_name).is_none(), "{no_name}");
    }
    let missing = PreferenceMatrix::load("no/such.csv").unwrap_err().to_string();
    assert!(missing.contains("no/such.csv") && missing.contains("btl:K:SEED"), "{missing}");
}

// ---- invariants

/// Any matrix of up to 12 rankers, including ties and certain wins.
fn any_matrix() -> impl Strategy<Value = PreferenceMatrix> {
    (2usize..=12)
        .prop_flat_map(|k| (Just(k), prop::collection::vec(0u32..=20, k * (k - 1) / 2)))
        .prop_map(|(k, twentieths)| {
            let mut next = twentieths.into_iter();
            PreferenceMatrix::from_pairs(k, |_, _| f64::from(next.next().unwrap()) / 20.0).unwrap()
        })
}

fn with_renaming() -> impl Strategy<Value = (PreferenceMatrix, Vec<usize>)> {
    any_matrix().prop_flat_map(|matrix| {
        let names: Vec<usize> = (0..matrix.rankers()).collect();
        (Just(matrix), Just(names).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn a_written_matrix_is_read_back_unchanged(matrix in any_matrix()) {
        let mut bytes = Vec::new();
        csv::write(&matrix, &mut bytes).unwrap();
        prop_assert_eq!(csv::read(&bytes[..]).unwrap(), matrix);
    }

    #[test]
    fn scores_and_winners_are_renamed_with_the_rankers((matrix, names) in with_renaming()) {
        let renamed = matrix.restricted_to(&names).unwrap();
        let (scores, walk) = (matrix.copeland_scores(), matrix.random_walk_distribution());
        let borda = matrix.borda_scores();
        for (new, &old) in names.iter().enumerate() {
            prop_assert_eq!(renamed.copeland_scores()[new], scores[old]);
            prop_assert!((renamed.borda_scores()[new] - borda[old]).abs() < 1e-12);
            prop_assert!((renamed.random_walk_distribution()[new] - walk[old]).abs() < 1e-9);
        }
        prop_assert_eq!(renamed.condorcet_winner().map(|new| names[new]), matrix.condorcet_winner());
        let mut smith: Vec<usize> = renamed.smith_set().into_iter().map(|new| names[new]).collect();
        smith.sort_unstable();
        prop_assert_eq!(smith, matrix.smith_set());
    }

    #[test]
    fn a_condorcet_winner_is_every_copeland_and_von_neumann_winner(matrix in any_matrix()) {
        let copeland = matrix.copeland_winners();
        prop_assert!(copeland.iter().all(|winner| matrix.smith_set().contains(winner)));
        if let Some(winner) = matrix.condorcet_winner() {
            prop_assert_eq!(copeland, vec![winner]);
            prop_assert_eq!(matrix.smith_set(), vec![winner]);
            prop_assert_eq!(matrix.von_neumann_strategy().unwrap()[winner], 1.0);
        } else {
            prop_assert!(matrix.smith_set().len() >= 2);
        }
    }

    #[test]
    fn no_ranker_beats_the_von_neumann_strategy(matrix in any_matrix()) {
        let strategy = matrix.von_neumann_strategy().unwrap();
        prop_assert!(strategy.iter().all(|weight| *weight >= 0.0));
        prop_assert!((strategy.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let worst = crate::winners::worst_margin(&matrix, &strategy);
        prop_assert!((-1e-9..=1e-12).contains(&worst), "worst margin {}", worst);
    }

    #[test]
    fn the_walk_is_stationary(matrix in any_matrix()) {
        let k = matrix.rankers();
        let walk = matrix.random_walk_distribution();
        prop_assert!((walk.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for j in 0..k {
            let comes: f64 = (0..k).filter(|&i| i != j).map(|i| walk[i] * matrix.win_probability(j, i)).sum();
            let goes: f64 = (0..k).filter(|&i| i != j).map(|i| walk[j] * matrix.win_probability(i, j)).sum();
            prop_assert!((comes - goes).abs() < 1e-9);
        }
    }

    #[test]
    fn regret_is_never_negative_and_nothing_for_the_best(matrix in any_matrix()) {
        let copeland = Regret::copeland(&matrix);
        let best = matrix.copeland_winners()[0];
        prop_assert_eq!(copeland.of_step(best, best), 0.0);
        for i in 0..matrix.rankers() {
            for j in 0..matrix.rankers() {
                prop_assert!((0.0..=1.0).contains(&copeland.of_step(i, j)));
            }
        }
        match (Regret::condorcet(&matrix), matrix.condorcet_winner()) {
            (Ok(condorcet), Some(winner)) => {
                prop_assert_eq!(condorcet.of_step(winner, winner), 0.0);
                for i in 0..matrix.rankers() {
                    prop_assert!((0.0..=0.5).contains(&condorcet.of_step(winner, i)));
                }
            }
            (Err(NoCondorcetWinner), None) => {}
            (regret, winner) => prop_assert!(false, "{:?} with winner {:?}", regret, winner),
        }
    }

    #[test]
    fn regret_of_appearances_is_the_sum_over_the_steps(
        matrix in any_matrix(),
        steps in prop::collection::vec((0usize..12, 0usize..12), 0..200),
    ) {
        let regret = Regret::copeland(&matrix);
        let mut appearances = vec![0; matrix.rankers()];
        let mut sum = 0.0;
        for (i, j) in steps {
            let (i, j) = (i % matrix.rankers(), j % matrix.rankers());
            appearances[i] += 1;
            appearances[j] += 1;
            sum += regret.of_step(i, j);
        }
        prop_assert!((regret.of_appearances(&appearances) - sum).abs() < 1e-9);
    }
}

// ---- regret

#[test]
fn regret_of_single_steps_by_hand() {
    let arxiv = matrix("arxiv-6");
    let copeland = Regret::copeland(&arxiv);
    // scores 5 4 3 1 1 0 of 5: cpld* - (cpld_1 + cpld_5)/2 = 1 - (0.8 + 0)/2
    assert!((copeland.of_step(1, 5) - 0.6).abs() < 1e-12);
    assert_eq!(copeland.of_step(0, 0), 0.0);
    let condorcet = Regret::condorcet(&arxiv).unwrap();
    // (0.05 + 0.11)/2
    assert!((condorcet.of_step(1, 5) - 0.08).abs() < 1e-12);
    assert_eq!(Regret::condorcet(&matrix("cycle:5:1")), Err(NoCondorcetWinner));
    assert_eq!(Regret::weak(&matrix("cycle:5:1")), Err(NoCondorcetWinner));
    let weak = Regret::weak(&arxiv).unwrap();
    assert!((weak.of_step(1, 5) - 0.05).abs() < 1e-12);
    assert_eq!(weak.of_step(5, 0), 0.0);
    // the sums of the rows without the diagonal are 2.86 2.73 2.51 2.41 2.27 2.22, of 5
    let borda = Regret::borda(&arxiv);
    assert!((borda.of_step(1, 5) - (0.13 + 0.64) / 10.0).abs() < 1e-12);
    assert_eq!(borda.of_step(0, 0), 0.0);
}

#[test]
fn uniform_pairs_cost_their_closed_form() {
    // the mean score of arxiv-6 is 14/30 of the winner's, so a step costs 1 - 14/30
    let copeland = Regret::copeland(&matrix("arxiv-6"));
    assert!((copeland.of_uniform_pairs(3000) - 3000.0 * 16.0 / 30.0).abs() < 1e-9);
    assert_eq!(Regret::from_copeland_scores(&[1, 0]).of_uniform_pairs(10), 5.0);
    // of the nine pairs of three rankers with losses 0, 0.1 and 0.2, one costs 0.2 and three 0.1
    let three = PreferenceMatrix::from_rows(&[
        vec![0.5, 0.6, 0.7],
        vec![0.4, 0.5, 0.5],
        vec![0.3, 0.5, 0.5],
    ]);
    let weak = Regret::weak(&three.unwrap()).unwrap();
    assert!((weak.of_uniform_pairs(9) - 0.5).abs() < 1e-12);
}

#[test]
fn the_loss_of_a_retired_ranker_follows_from_the_active_ones() {
    // 1 and 2 are active and 1 beats 2; 0 beats both of them, 3 beats one of them, 4 none
    let regret = Regret::from_copeland_scores_among(&[2, 1, 0, 1, 0], &[1, 2]);
    assert_eq!([0, 1, 2, 3, 4].map(|i| regret.of_step(i, i)), [0.0, 0.0, 1.0, 0.5, 1.0]);
    assert_eq!(regret.of_uniform_pairs(10), 5.0, "pairs of 1 and 2");
    // no active ranker beats all; a retired one that does costs nothing, and is no gain
    let regret = Regret::from_copeland_scores_among(&[1, 1, 1, 3], &[0, 1, 2]);
    assert_eq!([0, 3].map(|i| regret.of_step(i, i)), [0.0, 0.0]);
    let all = Regret::from_copeland_scores_among(&[2, 1, 0], &[0, 1, 2]);
    assert_eq!(all, Regret::from_copeland_scores(&[2, 1, 0]));
}

#[test]
fn sizes_are_checked_when_built_in_code() {
    assert_eq!(PreferenceMatrix::from_rows(&[]), Err(InvalidMatrix::Empty));
    assert_eq!(PreferenceMatrix::from_pairs(1, |_, _| 0.5), Err(InvalidMatrix::OneRanker));
    assert_eq!(
        PreferenceMatrix::from_pairs(2, |_, _| f64::NAN).unwrap_err().to_string(),
        "row 1, column 2 is NaN; it must be a probability from 0 to 1"
    );
}
