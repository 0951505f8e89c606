//! LETOR files: valid and invalid lines, and the rankings of features.

use dueling_bandits::PolicyRng;
use lab::letor::{DataSet, DataSetError, Ranking};
use proptest::prelude::*;
use rand::SeedableRng;

#[test]
fn a_file_is_read_query_by_query() {
    let text = "2 qid:10 1:0.5 3:-1e-3 #docid = GX1 inc = 1\r\n\
                \n\
                # a comment of its own\n\
                0 qid:10\n\
                1.0 qid:a-b 2:7\n\
                0 qid:a-b 3:1";
    let data = DataSet::parse(text).unwrap();
    let grades: Vec<_> = data.queries.iter().map(|query| &query.grades[..]).collect();
    assert_eq!(grades, [[2, 0], [1, 0]]);
    assert_eq!(data.features, [1, 2, 3]);
    // an omitted feature is 0
    let rng = &mut PolicyRng::seed_from_u64(1);
    let mut first = |query: usize, ranker: usize| {
        let mut ranked = Vec::new();
        data.queries[query].ranking(ranker).draw(1, rng, &mut ranked);
        ranked[0]
    };
    assert_eq!([first(0, 0), first(0, 2), first(1, 1), first(1, 2)], [0, 1, 0, 1]);
}

#[test]
fn an_error_has_the_line_and_the_cause() {
    for (line, expected) in [
        ("x qid:1 1:1", "line 2: the grade is `x`"),
        ("-1 qid:1 1:1", "line 2: the grade is `-1`"),
        ("+1 qid:1 1:1", "line 2: the grade is `+1`"),
        ("0.5 qid:1 1:1", "line 2: the grade is `0.5`"),
        ("32 qid:1 1:1", "line 2: the grade is `32`"),
        ("NaN qid:1 1:1", "line 2: the grade is `NaN`"),
        ("1", "line 2: the second word is ``; it must be qid:ID"),
        ("1 1:1 qid:1", "line 2: the second word is `1:1`"),
        ("1 qid: 1:1", "line 2: the second word is `qid:`"),
        ("1 qid:1 7", "line 2: `7` is not a feature"),
        ("1 qid:1 0:7", "line 2: feature number `0`"),
        ("1 qid:1 -1:7", "line 2: feature number `-1`"),
        ("1 qid:1 99999999999:7", "line 2: feature number `99999999999`"),
        ("1 qid:1 1:NaN", "line 2: feature 1 is `NaN`"),
        ("1 qid:1 1:inf", "line 2: feature 1 is `inf`"),
        ("1 qid:1 1:1e999", "line 2: feature 1 is `1e999`"),
        ("1 qid:1 1:", "line 2: feature 1 is ``"),
        ("1 qid:1 2:1 1:1", "line 2: feature 1 comes after feature 2"),
        ("1 qid:1 2:1 2:1", "line 2: feature 2 comes after feature 2"),
        ("1 qid:2 1:1\n1 qid:1 1:1", "line 3: query `1` comes again after another"),
    ] {
        let error = DataSet::parse(&format!("0 qid:1 1:1\n{line}\n")).expect_err(line).to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

proptest! {
    #[test]
    fn text_like_a_line_does_not_panic(text in "([0-9.:# \nqid-]|qid:1 |1:1 ){0,60}") {
        let _ = DataSet::parse(&text);
    }

    #[test]
    fn a_ranking_is_by_value_whatever_its_ties(values in prop::collection::vec(0_u8..4, 1..30), seed in any::<u64>()) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let ranking = Ranking::by(&values);
        let mut ranked = Vec::new();
        for depth in [values.len(), values.len() / 2] {
            ranking.draw(depth, &mut PolicyRng::seed_from_u64(seed), &mut ranked);
            prop_assert_eq!(ranked.len(), depth);
            prop_assert!(ranked.windows(2).all(|pair| values[pair[0] as usize] >= values[pair[1] as usize]));
            let mut once = ranked.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), depth);
            // No omitted document is better.
            let least = ranked.last().map_or(f64::INFINITY, |&last| values[last as usize]);
            let left_out = (0..values.len() as u32).filter(|document| !ranked.contains(document));
            prop_assert!(left_out.map(|document| values[document as usize]).all(|value| value <= least));
        }
    }
}

#[test]
fn equal_values_have_every_order_equally_often() {
    let ranking = Ranking::by(&[1.0, 0.5, 0.5, 0.5, 0.0]);
    let mut rng = PolicyRng::seed_from_u64(1);
    let mut counts = std::collections::BTreeMap::new();
    let mut ranked = Vec::new();
    for _ in 0..6000 {
        ranking.draw(3, &mut rng, &mut ranked);
        assert_eq!(ranked[0], 0);
        *counts.entry(ranked[1..].to_vec()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 6);
    // 1000 expected, standard deviation 29.
    assert!(counts.values().all(|&count: &i32| (count - 1000).abs() < 120), "{counts:?}");
}

const TWO_QUERIES: &str = "\
2 qid:1 1:3 2:1 3:5 4:0\n0 qid:1 1:2 2:2 3:5 4:0\n1 qid:1 1:1 2:3 3:5 4:0\n\
0 qid:2 1:1 2:1 3:9 4:1\n0 qid:2 1:2 2:1 3:9 4:0\n";

#[test]
fn constant_features_are_not_rankers() {
    let data = DataSet::parse(TWO_QUERIES).unwrap();
    assert_eq!(data.features, [1, 2, 4]);
    // Feature 3 differs between queries, but not within one.
    assert_eq!(data.constant, [3]);
    assert_eq!((data.queries.len(), data.documents, data.highest_grade), (2, 5, 2));
}

#[test]
fn files_with_fewer_than_two_rankers_are_refused() {
    let refused = |text: &str| DataSet::parse(text).expect_err(text);
    assert_eq!(refused(""), DataSetError::Empty);
    assert_eq!(refused("# nothing\n\n"), DataSetError::Empty);
    assert_eq!(refused("1 qid:1 1:1 2:1\n0 qid:1 1:0 2:1\n"), DataSetError::Features(1));
}

#[test]
fn ndcg_matches_the_definition() {
    let log2 = f64::log2;
    // By hand: gains 3, 0, 1 at discounts 1, log2 3, 2; the best order is 3, 1, 0.
    let expected = (3.0 + 1.0 / 2.0) / (3.0 + 1.0 / log2(3.0));
    let data = DataSet::parse(TWO_QUERIES).unwrap();
    // The second query has no relevant document.
    assert!((data.mean_ndcg(0, 10) - expected / 2.0).abs() < 1e-12);
    // Feature 4 has equal values: each gain is the mean gain.
    let tied = 4.0 / 3.0 * (1.0 + 1.0 / log2(3.0) + 0.5) / (3.0 + 1.0 / log2(3.0));
    assert!((data.mean_ndcg(2, 10) - tied / 2.0).abs() < 1e-12);
}
