//! Plots: what fits into them, what can be told apart, and the words of their legends.

use std::collections::HashSet;

use lab::simulate::figures::{Content, FIGURES};
use lab::simulate::plot::legend::{looks, words};
use lab::simulate::plot::{Look, Plot, PlotPoint, Scale, Series};

fn empty() -> Plot {
    Plot {
        title: String::new(),
        x_label: String::new(),
        y_label: String::new(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        top: None,
        series: Vec::new(),
        note: String::new(),
    }
}

#[test]
fn legends_are_words() {
    for (policy, legend) in [
        ("scomp2:elimination=kl-published,batches=8", "SCOMP2, KL as published, B = 8"),
        ("btm:gamma=1.3,kappa=1,self_pairs=false", "BTM, γ = 1.3, κ = 1, no self-pairs"),
        ("savage:winner=copeland", "SAVAGE, Copeland winner"),
        ("uniform", "Uniform pairs"),
        ("winner-stays:some_thing=3", "winner-stays, some thing = 3"),
    ] {
        assert_eq!(words(policy), legend);
    }
}

#[test]
fn curves_of_a_figure_differ_in_grey() {
    for figure in FIGURES {
        let (Content::Regret(f) | Content::Spread(f) | Content::Delay(_, f)) = figure.content
        else {
            continue;
        };
        let policies = || f.lines.iter().map(|line| line.policy);
        let looks = looks(policies());
        for (at, policy) in policies().enumerate() {
            let before = &looks[..at];
            assert!(before.iter().all(|look| look.mark != looks[at].mark), "{}", figure.name);
            let is_new = before.iter().all(|look| look.dash != looks[at].dash);
            assert!(is_new || at >= 8, "{policy} in {}", figure.name);
        }
    }
    let colour = |policy: &'static str| looks([policy].into_iter())[0].colour;
    assert!(colour("rucb") != colour("d-ts-verdict"));
}

#[test]
fn a_plot_without_curves_is_valid() {
    let svg = Plot { title: "a < b & c".into(), x_scale: Scale::Log, ..empty() }.svg();
    assert!(svg.contains("A &lt; b &amp; c") && svg.trim_end().ends_with("</svg>"), "{svg}");
}

#[test]
fn a_long_title_and_a_marker_at_the_end_fit_into_the_plot() {
    let top = PlotPoint { x: 10.0, y: 1e4, low: 1e4, high: 1e4 };
    let points = vec![PlotPoint { y: 1.0, ..top }, top];
    let series = Series::marks("a".into(), Look::at(0), points);
    let plot = |title: &str| Plot {
        title: title.into(),
        y_scale: Scale::Log,
        series: vec![series.clone()],
        ..empty()
    };
    let width = |svg: &str| -> f64 {
        let start = svg.find(" width=\"").unwrap() + 8;
        svg[start..].split('"').next().unwrap().parse().unwrap()
    };
    let (short, long) = (plot("short").svg(), plot(&"w".repeat(120)).svg());
    assert!(width(&long) > 120.0 * 8.0 && width(&short) < width(&long));
    // The upper marker reaches 6 above its position and must stay below the upper edge of the
    // frame.
    let paths = || short.match_indices(" d=\"M").map(|(at, _)| &short[at + 5..]);
    let heights = paths().map(|d| {
        let end = d
            .find(|c: char| c != '.' && c != ' ' && c != ',' && c != '-' && !c.is_ascii_digit())
            .unwrap();
        let pair: Vec<f64> = d[..end].split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
        pair[1]
    });
    assert!(heights.fold(f64::INFINITY, f64::min) > 40.0);
}

#[test]
fn a_curve_may_leave_the_frame_and_separate_runs_stand_side_by_side() {
    let point = |x: f64, y: f64| PlotPoint { x, y, low: y, high: y };
    let series = |joined: bool, high: f64| {
        let points = vec![point(1.0, 1.0), point(2.0, high)];
        Series { joined, ..Series::curve("a".into(), Look::at(1), points) }
    };
    let series = vec![series(true, 10.0), series(false, 5.0), series(false, 1000.0)];
    let svg = Plot { top: Some(10.0), series, ..empty() }.svg();
    // two marks, two and one, and three in the legend; 1000 is outside of the frame
    assert_eq!(svg.matches("stroke-width=\"1.6\"").count(), 8, "{svg}");
    assert!(svg.contains(">10</text>") && !svg.contains(">1,000</text>"));
}

#[test]
fn dashes_and_marks_differ_without_colours() {
    let svg = |look: Look| {
        let point = PlotPoint { x: 1.0, y: 1.0, low: 1.0, high: 1.0 };
        let series = vec![Series::curve("a".into(), look, vec![point])];
        Plot { series, ..empty() }.svg()
    };
    let of = |count, look: fn(usize) -> Look| {
        (0..count).map(|at| svg(look(at))).collect::<HashSet<String>>().len()
    };
    assert_eq!(of(8, |dash| Look { colour: 0, dash, mark: 0 }), 8);
    assert_eq!(of(12, |mark| Look { colour: 0, dash: 0, mark }), 12);
}

#[test]
fn every_class_has_a_colour_for_a_dark_page() {
    let point = PlotPoint { x: 1.0, y: 1.0, low: 0.5, high: 2.0 };
    let series =
        |at| Series { joined: at % 2 == 0, ..Series::curve("a".into(), Look::at(at), vec![point]) };
    let svg = Plot { series: (0..12).map(series).collect(), note: "n".into(), ..empty() }.svg();
    let classes = svg.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let classes: HashSet<&str> = classes.collect();
    assert!(classes.len() >= 13, "{classes:?}");
    for class in classes {
        assert!(svg.contains(&format!(".{class}{{")), "{class}");
    }
}

#[test]
fn notes_are_wrapped_and_small_letters_are_shifted() {
    let svg = Plot {
        x_label: "L_C (1)".into(),
        y_label: "Δ_{min}²".into(),
        note: "the 95 % of ".repeat(20),
        ..empty()
    }
    .svg();
    let small = "<tspan dy=\"3.5\" font-size=\"9.5\">";
    assert!(svg.contains(&format!("L{small}C</tspan><tspan dy=\"-3.5\"> (1)</tspan>")), "{svg}");
    assert!(svg.contains(&format!("{small}min</tspan><tspan dy=\"-3.5\">²")), "{svg}");
    assert!(svg.matches("class=\"small\"").count() > 2 && !svg.contains("95</text>"), "{svg}");
}

#[test]
fn axes_end_at_round_numbers_and_decades_are_even() {
    let svg = |y_scale: Scale, high: f64| {
        let point = |y: f64| PlotPoint { x: y, y, low: y, high: y };
        let points = vec![point(1.0), point(high)];
        let series = vec![Series::curve(String::new(), Look::at(0), points)];
        Plot { series, y_scale, x_scale: y_scale, ..empty() }.svg()
    };
    let linear = svg(Scale::Linear, 1_230_000.0);
    for label in ["0", "200,000", "1,400,000"] {
        assert!(linear.contains(&format!(">{label}</text>")), "{label} in {linear}");
    }
    let decades = svg(Scale::Log, 10_000.0);
    let ticks = decades.split("text-anchor=\"middle\">10<").count() - 1;
    assert_eq!(ticks, 5, "10^0 to 10^4: {decades}");
    let short = svg(Scale::Log, 4.0);
    for label in ["1", "2"] {
        assert!(short.contains(&format!(">{label}</text>")), "{label} in {short}");
    }
}
