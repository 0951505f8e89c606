//! `lab figures`: every figure is made and names its data.

use std::fs::read_to_string;
use std::path::Path;

use dueling_bandits::preference::PreferenceMatrix;
use lab::simulate::Progress;
use lab::simulate::figures::FIGURES;
use lab::simulate::figures::gaps::{Hardness, csv, measure};

use super::{printed, refused};

/// Make figures of `runs` short runs in `out`, and return the standard output.
fn make(out: &Path, runs: u32, more: &str) -> String {
    printed(&format!("figures --horizon 120 --runs {runs} --out {} {more}", out.display()))
}

#[test]
fn every_figure_is_made_with_its_data_and_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let printed = make(folder.path(), 3, "");
    for figure in FIGURES {
        let file = |ending: &str| folder.path().join(format!("{}.{ending}", figure.name));
        assert!(printed.contains(&format!("{}: {}", figure.name, figure.caption)));
        let csv = read_to_string(file("csv")).unwrap();
        assert!(csv.lines().count() >= 3, "{}:\n{csv}", figure.name);
        let command = read_to_string(file("txt")).unwrap();
        let line = command.lines().last().unwrap();
        assert!(line.starts_with(&format!("lab figures {} ", figure.name)), "{line}");
        assert!(line.contains("--horizon=120 --runs=3 --seed=0"), "{line}");
        for policy in figure.content.inputs().map(|of| of.lines).unwrap_or_default() {
            assert!(csv.contains(policy.policy), "{}", figure.name);
        }
    }
}

/// One figure of each family, which together have every policy of the figures.
const FAMILIES: &str = "copeland-1 copeland-4 copeland-6 thompson-1a thompson-2b thompson-delay \
                        late-in-flight late-replicas batched-1a batched-3a savage";
/// Their ends at a reduced size, with the policies as the figures of the notes have them.
const ENDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/figures.csv");

/// The lines of a figure's data, and of its curves only the ends.
fn ends(csv: &str) -> Vec<&str> {
    let curve = |line: &str| line.split(',').take(3).map(String::from).collect::<Vec<_>>();
    let is_curves = csv.starts_with("matrix,runs,policy,step,");
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    let is_end = |at: &usize| {
        !is_curves || lines.get(at + 1).is_none_or(|next| curve(next) != curve(lines[*at]))
    };
    (0..lines.len()).filter(is_end).map(|at| lines[at]).collect()
}

#[test]
fn the_figures_of_the_notes_are_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    printed(&format!("figures {FAMILIES} --horizon 1500 --runs 2 --out {}", out.display()));
    let mut found = String::new();
    for figure in FAMILIES.split_whitespace() {
        let csv = read_to_string(out.join(format!("{figure}.csv"))).unwrap();
        for line in ends(&csv) {
            found.push_str(&format!("{figure},{line}\n"));
        }
    }
    let stored = read_to_string(ENDS).unwrap_or_default();
    if found != stored {
        let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures.csv");
        std::fs::write(&new, &found).unwrap();
        let changed: Vec<&str> =
            found.lines().filter(|line| !stored.lines().any(|old| old == *line)).collect();
        panic!(
            "the figures have changed:\n{}\nmake those of crates/lab/notes anew with the command \
             of papers.md, correct the numbers of that page, and then store {} as {ENDS}",
            changed.join("\n"),
            new.display()
        );
    }
}

#[test]
fn a_stand_in_is_named_and_a_given_matrix_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let printed = make(&out, 3, "thompson-1a");
    assert!(
        printed
            .contains("`arxiv-6` stands in for mslr_informational_5_condorcet.csv; give the file"),
        "{printed}"
    );
    let printed = make(&out, 1, "copeland-2");
    assert!(
        printed.contains("`cycle:50:1` stands in for `cycle:500:1`, which --full uses"),
        "{printed}"
    );

    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("mslr_informational_5_condorcet.csv"), "0.5,0.6\n0.4,0.5\n").unwrap();
    let data = data.to_str().unwrap();
    let printed = make(&out, 3, &format!("thompson-1a --data {data}"));
    assert!(!printed.contains("stands in"), "{printed}");
    let command = read_to_string(out.join("thompson-1a.txt")).unwrap();
    assert!(command.contains("# matrix: mslr_informational_5_condorcet.csv"), "{command}");
    assert!(command.contains(&format!("--data={data}")), "{command}");

    refused(&format!("figures batched-1b --data {data}"), "batched-1b");
    refused(&format!("figures batched-1b --data {data}"), "sushi_16.csv");
}

#[test]
fn subsets_of_an_order_always_have_a_condorcet_winner_and_a_cycle_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let shares = |matrix: &str| {
        make(folder.path(), 40, &format!("copeland-4 --matrix {matrix}"));
        let csv = read_to_string(folder.path().join("copeland-4.csv")).unwrap();
        let rows =
            csv.lines().skip(1).map(|line| line.split(',').map(|n| n.parse().unwrap()).collect());
        rows.collect::<Vec<Vec<u64>>>()
    };
    for row in shares("btl:20:1") {
        assert_eq!((row[1], row[2]), (40, 40), "{row:?}");
    }
    let cycle = shares("cycle:20:1");
    assert_eq!(cycle.first(), Some(&vec![1, 40, 40]));
    assert_eq!(cycle.last(), Some(&vec![20, 40, 0]));
}

#[test]
fn all_notions_of_winner_agree_on_a_strong_order() {
    let folder = tempfile::tempdir().unwrap();
    let table = make(folder.path(), 20, "copeland-table-1 --matrix arithmetic-8");
    for notion in ["Copeland", "von Neumann", "Borda", "random walk"] {
        assert!(table.contains(&format!("{notion},100.00,100.00,100.00,100.00")), "{table}");
    }
    assert!(
        table.contains("all Copeland winners within the von Neumann support,100.00"),
        "{table}"
    );
}

#[test]
fn figures_are_listed_and_unknown_ones_refused() {
    let list = printed("figures --list");
    for figure in FIGURES {
        assert!(list.contains(figure.name) && list.contains(figure.source), "{}", figure.name);
    }
    refused("figures copeland-99", "there is no figure `copeland-99`; choose one of: copeland-1");
}

#[test]
fn the_quantities_of_definition_3() {
    let of = |rows: &[&[f64]]| {
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        Hardness::of(&PreferenceMatrix::from_rows(&rows).unwrap())
    };
    // 0, 1 and 2 beat each other in a cycle and all of them beat 3, by 0.4, 0.2 and 0.05
    let found = of(&[
        &[0.5, 0.6, 0.3, 0.9],
        &[0.4, 0.5, 0.8, 0.7],
        &[0.7, 0.2, 0.5, 0.55],
        &[0.1, 0.3, 0.45, 0.5],
    ]);
    assert_eq!((found.winners, found.most_losses), (3, 1));
    let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
    assert!(near(found.gap, 0.05) && near(found.smallest_gap, 0.05), "{found:?}");
    let all_win = of(&[&[0.5, 0.6, 0.4], &[0.4, 0.5, 0.6], &[0.6, 0.4, 0.5]]);
    assert_eq!((all_win.winners, all_win.gap, all_win.advantage()), (3, None, None));
}

#[test]
fn every_subset_is_counted_once() {
    let matrix = PreferenceMatrix::named("arxiv-6").unwrap().unwrap();
    let gaps = measure(&matrix, &[1, 2, 4, 6], 30, 1, &Progress::new());
    assert_eq!(gaps.iter().map(|of| of.size).collect::<Vec<_>>(), [2, 4, 6]);
    for of_size in &gaps {
        assert_eq!(of_size.winners.values().sum::<u64>(), 30);
        assert_eq!(of_size.losses.values().sum::<u64>(), 30);
    }
    // all six: one winner without a loss, Δ = 0.04 and Δmin = 0.01
    let all = &gaps[2];
    assert_eq!((all.winners.get(&1), all.losses.get(&0)), (Some(&30), Some(&30)));
    assert!((all.advantage.unwrap().mean - 16.0).abs() < 1e-6);
    assert!(csv(&gaps).contains("\n6,C,1,30,\n6,L_C,0,30,\n6,mean of D^2/D_min^2,1"));
}
