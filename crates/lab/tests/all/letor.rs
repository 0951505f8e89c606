//! LETOR files: what is read, what is refused and where, and the rankings that features make.

use std::io::{self, BufReader, Read};

use dueling_bandits::PolicyRng;
use lab::letor::ndcg::ndcg;
use lab::letor::{DataSet, DataSetError, Document, LetorError, Query, Reader};
use proptest::prelude::*;
use rand::SeedableRng;

fn read(text: &str) -> Result<Vec<Query>, LetorError> {
    Reader::new(text.as_bytes()).collect()
}

#[test]
fn a_file_is_read_query_by_query() {
    let text = "2 qid:10 1:0.5 3:-1e-3 #docid = GX1 inc = 1\r\n\
                \n\
                # a comment of its own\n\
                0 qid:10\n\
                1.0 qid:a-b 2:7";
    let queries = read(text).unwrap();
    assert_eq!(queries.len(), 2);
    assert_eq!((queries[0].id.as_str(), queries[0].line), ("10", 1));
    assert_eq!((queries[1].id.as_str(), queries[1].line), ("a-b", 5));
    let first = &queries[0].documents[0];
    assert_eq!((first.grade, first.comment.as_deref()), (2, Some("docid = GX1 inc = 1")));
    assert_eq!([1, 2, 3, 4].map(|number| first.feature(number)), [0.5, 0.0, -1e-3, 0.0]);
    assert_eq!(queries[0].documents[1], Document { grade: 0, features: Vec::new(), comment: None });
    assert_eq!(queries[1].documents[0].grade, 1);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
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
        let error = read(&format!("0 qid:1 1:1\n{line}\n")).expect_err(line).to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
    let long = format!("0 qid:1 1:1 #{}\n", "x".repeat(2 << 20));
    assert_eq!(read(&long).unwrap_err().to_string(), "line 1 is longer than 1048576 bytes");
    let error = Reader::new(&b"0 qid:1 1:1\n0 qid:1 \xff:1\n"[..]).find_map(Result::err).unwrap();
    assert_eq!(error.to_string(), "line 2 is not UTF-8");
}

#[test]
fn queries_before_an_error_are_read_and_none_after_it() {
    let mut reader = Reader::new(&b"0 qid:1 1:1\n0 qid:2 1:1\nbad\n0 qid:3 1:1\n"[..]);
    assert_eq!(reader.next().unwrap().unwrap().id, "1");
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

#[test]
fn a_long_file_is_read_in_small_memory() {
    // a gigabyte that is never in memory: one query a line, made while it is read
    struct Endless(u64, Vec<u8>);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.1.is_empty() {
                self.0 += 1;
                self.1 = format!("1 qid:{} 1:0.25 #{}\n", self.0, "x".repeat(100_000)).into_bytes();
            }
            let taken = buffer.len().min(self.1.len());
            buffer[..taken].copy_from_slice(&self.1[..taken]);
            self.1.drain(..taken);
            Ok(taken)
        }
    }
    let reader = Reader::new(BufReader::with_capacity(1 << 17, Endless(0, Vec::new())));
    let last = reader.take(200).map(Result::unwrap).last().unwrap();
    assert_eq!(last.id, "200");
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        queries in prop::collection::vec(
            prop::collection::vec(
                (0_u8..5, prop::collection::btree_map(1_u32..200, -1e6_f64..1e6, 0..6), "[ -~]{0,12}"), 1..5),
            1..6),
    ) {
        let mut text = String::new();
        for (id, documents) in queries.iter().enumerate() {
            for (grade, features, comment) in documents {
                let features: String = features.iter().map(|(number, value)| format!(" {number}:{value}")).collect();
                text += &format!("{grade} qid:q{id}{features} # {comment}\n");
            }
        }
        let found = read(&text).unwrap();
        prop_assert_eq!(found.len(), queries.len());
        for ((id, documents), query) in queries.iter().enumerate().zip(&found) {
            prop_assert_eq!(&query.id, &format!("q{id}"));
            for ((grade, features, comment), document) in documents.iter().zip(&query.documents) {
                prop_assert_eq!(*grade, document.grade);
                prop_assert_eq!(features.clone().into_iter().collect::<Vec<_>>(), document.features.clone());
                prop_assert_eq!(comment.trim(), document.comment.as_deref().unwrap());
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = DataSet::read(&bytes[..]);
    }

    #[test]
    fn nothing_like_a_line_makes_it_panic(text in "([0-9.:# \nqid-]|qid:1 |1:1 ){0,60}") {
        let _ = DataSet::read(text.as_bytes());
    }

    #[test]
    fn a_ranking_is_by_value_whatever_its_ties(values in prop::collection::vec(0_u8..4, 1..30), seed in any::<u64>()) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let ranking = lab::letor::dataset::Ranking::by(&values);
        let mut ranked = Vec::new();
        for depth in [values.len(), values.len() / 2] {
            ranking.draw(depth, &mut PolicyRng::seed_from_u64(seed), &mut ranked);
            prop_assert_eq!(ranked.len(), depth);
            prop_assert!(ranked.windows(2).all(|pair| values[pair[0] as usize] >= values[pair[1] as usize]));
            let mut once = ranked.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), depth);
            // nothing that was left out is better
            let least = ranked.last().map_or(f64::INFINITY, |&last| values[last as usize]);
            let left_out = (0..values.len() as u32).filter(|document| !ranked.contains(document));
            prop_assert!(left_out.map(|document| values[document as usize]).all(|value| value <= least));
        }
    }
}

#[test]
fn equal_values_come_in_every_order_equally_often() {
    let ranking = lab::letor::dataset::Ranking::by(&[1.0, 0.5, 0.5, 0.5, 0.0]);
    let mut rng = PolicyRng::seed_from_u64(1);
    let mut counts = std::collections::BTreeMap::new();
    let mut ranked = Vec::new();
    for _ in 0..6000 {
        ranking.draw(3, &mut rng, &mut ranked);
        assert_eq!(ranked[0], 0);
        *counts.entry(ranked[1..].to_vec()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 6);
    // 1000 expected, standard deviation 29
    assert!(counts.values().all(|&count: &i32| (count - 1000).abs() < 120), "{counts:?}");
}

const TWO_QUERIES: &str = "\
2 qid:1 1:3 2:1 3:5 4:0\n0 qid:1 1:2 2:2 3:5 4:0\n1 qid:1 1:1 2:3 3:5 4:0\n\
0 qid:2 1:1 2:1 3:9 4:1\n0 qid:2 1:2 2:1 3:9 4:0\n";

#[test]
fn features_that_rank_nothing_are_told_apart() {
    let data = DataSet::read(TWO_QUERIES.as_bytes()).unwrap();
    assert_eq!(data.features, [1, 2, 4]);
    // 3 differs between queries, never within one
    assert_eq!(data.constant, [3]);
    assert_eq!((data.queries.len(), data.documents, data.highest_grade), (2, 5, 2));
}

#[test]
fn files_that_cannot_be_compared_on_are_refused() {
    assert!(matches!(DataSet::read(&b""[..]), Err(DataSetError::Empty)));
    assert!(matches!(DataSet::read(&b"# nothing\n\n"[..]), Err(DataSetError::Empty)));
    let flat = "1 qid:1 1:1 2:1\n0 qid:1 1:0 2:1\n";
    assert!(matches!(DataSet::read(flat.as_bytes()), Err(DataSetError::Features(1))));
}

#[test]
fn ndcg_is_what_the_definition_says() {
    let log2 = f64::log2;
    // by hand: gains 3, 0, 1 at discounts 1, log2 3, 2; best 3, 1, 0
    let expected = (3.0 + 1.0 / 2.0) / (3.0 + 1.0 / log2(3.0));
    assert!((ndcg(&[2, 0, 1], 10).unwrap() - expected).abs() < 1e-12);
    assert!((ndcg(&[2, 0, 1], 1).unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(ndcg(&[0, 0], 10), None);
    let data = DataSet::read(TWO_QUERIES.as_bytes()).unwrap();
    // the second query has no relevant document
    assert!((data.mean_ndcg(0, 10) - expected / 2.0).abs() < 1e-12);
    // feature 4 ties all three: each gain is the mean one
    let tied = 4.0 / 3.0 * (1.0 + 1.0 / log2(3.0) + 0.5) / (3.0 + 1.0 / log2(3.0));
    assert!((data.mean_ndcg(2, 10) - tied / 2.0).abs() < 1e-12);
}
