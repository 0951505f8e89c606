//! `rankduel figures`: every figure is made and names its data.

use std::fs::read_to_string;
use std::path::Path;

use lab::simulate::figures::{Content, FIGURES};
use lab::simulate::plot::legend;

use super::rankduel;

/// Make figures of `runs` short runs in `out`, and return the standard output.
fn make(out: &Path, runs: &str, more: &[&str]) -> String {
    let tiny = ["figures", "--horizon", "120", "--runs", runs, "--out", out.to_str().unwrap()];
    let output = rankduel(&[&tiny, more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_figure_is_made_with_its_data_and_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let printed = make(folder.path(), "3", &[]);
    for figure in FIGURES {
        let file = |ending: &str| folder.path().join(format!("{}.{ending}", figure.name));
        assert!(printed.contains(&format!("{}: {}", figure.name, figure.caption)));
        let csv = read_to_string(file("csv")).unwrap();
        assert!(csv.lines().count() >= 3, "{}:\n{csv}", figure.name);
        let command = read_to_string(file("txt")).unwrap();
        let line = command.lines().last().unwrap();
        assert!(line.starts_with(&format!("rankduel figures {} ", figure.name)), "{line}");
        assert!(line.contains("--horizon=120 --runs=3 --seed=0"), "{line}");
        match figure.content {
            Content::WinnerOverlap(_) | Content::Bounds(_) => {}
            Content::Regret(f) | Content::Spread(f) | Content::Delay(_, f) => {
                let svg = read_to_string(file("svg")).unwrap();
                for policy in f.lines {
                    let legend = legend::words(policy.policy);
                    assert!(svg.contains(&format!(">{legend}</text>")), "{legend} in {svg}");
                    assert!(csv.contains(policy.policy));
                }
            }
            Content::CondorcetSubsets(_) | Content::CopelandSizes(_) | Content::GapAdvantage(_) => {
                assert!(read_to_string(file("svg")).unwrap().contains("random subsets"));
            }
        }
    }
}

#[test]
fn a_plot_is_drawn_again_from_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["thompson-1a", "thompson-2a", "late-replicas"];
    make(folder.path(), "3", &names);
    let read = |name: &str, ending: &str| {
        read_to_string(folder.path().join(format!("{name}.{ending}"))).unwrap()
    };
    let drawn: Vec<String> = names.iter().map(|name| read(name, "svg")).collect();
    let redraw =
        [&["figures", "--redraw", "--out", folder.path().to_str().unwrap()], &names[..]].concat();
    assert!(rankduel(&redraw).status.success());
    for (name, before) in names.iter().zip(drawn) {
        // the file has seven digits, enough for every coordinate
        assert_eq!(read(name, "svg"), before, "{name}");
        assert!(before.contains("prefers-color-scheme:dark"), "{name}");
        assert!(read(name, "txt").contains("--runs=3"), "{name}");
    }
    // changed data changes the plot
    let csv = read("thompson-2a", "csv");
    std::fs::write(folder.path().join("thompson-2a.csv"), csv.replace(",120,", ",12")).unwrap();
    let spoilt = rankduel(&redraw);
    assert_eq!(spoilt.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&spoilt.stderr).contains("line 2 is malformed"));
}

/// A program that stands for rsvg-convert and writes its arguments to the file after `--output`.
#[cfg(unix)]
const CONVERTER: &str = "#!/bin/sh
[ \"$1\" = --version ] && exit 0
all=\"$*\"
while [ $# -gt 2 ]; do [ \"$1\" = --output ] && out=$2; shift; done
[ -s \"$2\" ] || exit 1
echo \"$all\" > \"$out\"
";

#[cfg(unix)]
#[test]
fn plots_are_converted_for_print_or_refused_before_any_work() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    let print = || {
        std::process::Command::new(env!("CARGO_BIN_EXE_rankduel"))
            .args(["figures", "copeland-3", "--print", "--horizon=120", "--runs=2", "--out"])
            .arg(&out)
            .env("PATH", format!("{}:/bin:/usr/bin/absent", programs.display()))
            .output()
            .unwrap()
    };
    if !Path::new("/bin/rsvg-convert").exists() {
        let refused = print();
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("librsvg2-bin"));
        assert!(!out.exists());
    }
    let program = programs.join("rsvg-convert");
    std::fs::write(&program, CONVERTER).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let printed = print();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    for (ending, options) in [("pdf", "--format=pdf "), ("png", "--format=png --zoom 3.125 ")] {
        let arguments = read_to_string(out.join(format!("copeland-3.{ending}"))).unwrap();
        assert!(arguments.starts_with(options), "{arguments}");
        assert!(arguments.trim_end().ends_with("copeland-3.svg"), "{arguments}");
    }
}

#[test]
fn a_stand_in_is_named_and_a_given_matrix_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let printed = make(&out, "3", &["thompson-1a"]);
    assert!(
        printed
            .contains("`arxiv-6` stands in for mslr_informational_5_condorcet.csv; give the file"),
        "{printed}"
    );
    let printed = make(&out, "1", &["copeland-2"]);
    assert!(
        printed.contains("`cycle:50:1` stands in for `cycle:500:1`, which --full uses"),
        "{printed}"
    );

    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("mslr_informational_5_condorcet.csv"), "0.5,0.6\n0.4,0.5\n").unwrap();
    let data = data.to_str().unwrap();
    let printed = make(&out, "3", &["thompson-1a", "--data", data]);
    assert!(!printed.contains("stands in"), "{printed}");
    let command = read_to_string(out.join("thompson-1a.txt")).unwrap();
    assert!(command.contains("# matrix: mslr_informational_5_condorcet.csv"), "{command}");
    assert!(command.contains(&format!("--data={data}")), "{command}");

    let absent = rankduel(&["figures", "batched-1b", "--data", data]);
    assert_eq!(absent.status.code(), Some(2));
    let message = String::from_utf8_lossy(&absent.stderr);
    assert!(message.contains("batched-1b") && message.contains("sushi_16.csv"), "{message}");
}

#[test]
fn subsets_of_an_order_always_have_a_condorcet_winner_and_a_cycle_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let shares = |matrix: &str| {
        make(folder.path(), "40", &["copeland-4", "--matrix", matrix]);
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
    let table = make(folder.path(), "20", &["copeland-table-1", "--matrix", "arithmetic-8"]);
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
    let list = String::from_utf8(rankduel(&["figures", "--list"]).stdout).unwrap();
    for figure in FIGURES {
        assert!(list.contains(figure.name) && list.contains(figure.source), "{}", figure.name);
    }
    let unknown = rankduel(&["figures", "copeland-99"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr)
            .contains("there is no figure `copeland-99`; choose one of: copeland-1")
    );
}
