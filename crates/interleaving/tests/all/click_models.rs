//! Simulated users: the published tables, and clicks as often as the models say.

use interleaving::FastRng as PolicyRng;
use interleaving::click_models::{Table, Users};
use rand::SeedableRng;

const PAGES: usize = 40_000;

/// How often each set of positions is clicked.
fn frequencies(
    users: &str,
    grades: usize,
    page: &[u8],
) -> std::collections::BTreeMap<Vec<usize>, f64> {
    let clicker = Users::from_text(users).unwrap().reading(grades).unwrap();
    let mut rng = PolicyRng::seed_from_u64(11);
    let mut clicks = vec![99];
    let mut found = std::collections::BTreeMap::new();
    for _ in 0..PAGES {
        clicker.click(page.iter().copied(), &mut rng, &mut clicks);
        *found.entry(clicks.clone()).or_insert(0.0) += 1.0 / PAGES as f64;
    }
    found
}

#[track_caller]
fn near(found: Option<&f64>, wanted: f64) {
    let four_errors = 4.0 * (wanted * (1.0 - wanted) / PAGES as f64).sqrt();
    let found = found.copied().unwrap_or(0.0);
    assert!((found - wanted).abs() <= four_errors, "{found}, not {wanted} ± {four_errors}");
}

#[test]
fn the_tables_are_the_published_ones() {
    let table = |name: &str, grades| Table::named(name).unwrap().probabilities(grades).unwrap();
    assert_eq!(table("perfect", 3), (&[0.0, 0.5, 1.0][..], &[0.0, 0.0, 0.0][..]));
    assert_eq!(table("navigational", 2), (&[0.05, 0.95][..], &[0.2, 0.9][..]));
    assert_eq!(table("navigational", 3), (&[0.05, 0.5, 0.95][..], &[0.2, 0.5, 0.9][..]));
    assert_eq!(
        table("informational", 5),
        (&[0.4, 0.6, 0.7, 0.8, 0.9][..], &[0.1, 0.2, 0.3, 0.4, 0.5][..])
    );
    assert_eq!(table("almost-random", 3), (&[0.4, 0.5, 0.6][..], &[0.5, 0.5, 0.5][..]));
    assert_eq!(table("random", 5), (&[0.5; 5][..], &[0.0; 5][..]));
    for (_, table) in Table::NAMES {
        for grades in [2, 3, 5] {
            let (click, stop) = table.probabilities(grades).unwrap();
            assert_eq!((click.len(), stop.len()), (grades, grades));
            assert!(click.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}

#[test]
fn a_cascade_stops_after_a_click_or_after_a_look() {
    // one relevant document, then one that is not
    let click = frequencies("navigational", 2, &[1, 0]);
    near(click.get(&vec![0]), 0.95 * (0.9 + 0.1 * 0.95));
    near(click.get(&vec![0, 1]), 0.95 * 0.1 * 0.05);
    near(click.get(&vec![1]), 0.05 * 0.05);
    near(click.get(&vec![]), 0.05 * 0.95);
    let examine = frequencies("navigational:stop_on=examine", 2, &[1, 0]);
    near(examine.get(&vec![0]), 0.95 * (0.9 + 0.1 * 0.95));
    near(examine.get(&vec![1]), 0.05 * 0.1 * 0.05);
    near(examine.get(&vec![]), 0.05 * (0.9 + 0.1 * 0.95));
}

#[test]
fn perfect_users_click_all_that_is_relevant_and_nothing_else() {
    let perfect = frequencies("perfect", 2, &[0, 1, 0, 1]);
    assert_eq!(perfect.keys().collect::<Vec<_>>(), [&vec![1, 3]]);
}

#[test]
fn attention_falls_off_with_the_position() {
    let users = frequencies("position-based:eta=2,attraction=perfect", 2, &[1, 1]);
    near(users.get(&vec![0, 1]), 0.25);
    near(users.get(&vec![0]), 0.75);
    let flat = frequencies("position-based:eta=0", 2, &[1, 0]);
    near(flat.get(&vec![0, 1]), 0.95 * 0.05);
}

#[test]
fn what_is_written_is_read_again() {
    for text in
        ["perfect", "random:stop_on=examine", "position-based:eta=0.5,attraction=informational"]
    {
        let users = Users::from_text(text).unwrap();
        assert_eq!(Users::from_text(&users.text()), Ok(users));
    }
}

#[test]
fn wrong_users_are_refused_by_name() {
    for (text, expected) in [
        (
            "perfct",
            "choose one of: perfect, navigational, informational, almost-random, random, position-based",
        ),
        ("perfect:stop=click", "no parameter `stop`"),
        ("perfect:stop_on=never", "`stop_on` is `never`"),
        ("perfect:stop_on", "not of the form"),
        ("perfect:stop_on=click,stop_on=click", "twice"),
        ("position-based:eta=-1", "`eta` is -1"),
        ("position-based:eta=NaN", "`eta` is NaN"),
        ("position-based:attraction=none", "no users `none`"),
        ("position-based:stop_on=click", "no parameter `stop_on`"),
    ] {
        let error = Users::from_text(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let error = Users::from_text("perfect").unwrap().reading(4).unwrap_err().to_string();
    assert!(error.contains("4 grades"), "{error}");
}
