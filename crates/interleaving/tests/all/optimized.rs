//! Plans of optimized interleaving, compared with an exact rational program that is written from
//! the definition.

use std::collections::BTreeMap;

use interleaving::methods::optimized::{Instance, Optimized, RankCredit};
use num_rational::BigRational;
use proptest::prelude::*;
use proptest::sample::Index;

type Number = BigRational;

fn number(value: i64) -> Number {
    Number::from_integer(value.into())
}

/// Every list in which each next document is the highest remaining one of a side.
fn allowed(left: &[u32], right: &[u32], length: usize) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..length {
        let mut longer = Vec::new();
        for list in &lists {
            let top = |side: &[u32]| side.iter().copied().find(|document| !list.contains(document));
            for document in top(left).into_iter().chain(top(right)) {
                let list = [&list[..], &[document]].concat();
                if !longer.contains(&list) {
                    longer.push(list);
                }
            }
        }
        lists = longer;
    }
    lists
}

fn credit_of(kind: RankCredit, left: i64, right: i64) -> Number {
    match kind {
        RankCredit::Inverse => {
            Number::new(1.into(), left.into()) - Number::new(1.into(), right.into())
        }
        RankCredit::Linear => number(right - left),
        RankCredit::Binary => number((right - left).signum()),
    }
}

/// The largest `gain · x`, where `rows · x = right_hand` and no `x` is negative; `None` if there is
/// no such `x`. Simplex with the rule of Bland, on the whole table.
fn maximum(rows: &[Vec<Number>], right_hand: &[Number], gain: &[Number]) -> Option<Number> {
    let (size, columns) = (rows.len(), gain.len());
    let mut table: Vec<Vec<Number>> = (0..size)
        .map(|at| {
            let artificial = (0..size).map(|other| number((at == other).into()));
            rows[at].iter().cloned().chain(artificial).chain([right_hand[at].clone()]).collect()
        })
        .collect();
    let mut basis: Vec<usize> = (columns..columns + size).collect();
    let zero = number(0);
    let mut optimize = |prices: &[Number], basis: &mut Vec<usize>| loop {
        let value = |column: usize| -> Number {
            (0..size).map(|row| &prices[basis[row]] * &table[row][column]).sum()
        };
        let entering = (0..columns).find(|&column| prices[column] > value(column));
        let Some(column) = entering else { return value(columns + size) };
        let leaving = (0..size)
            .filter(|&row| table[row][column] > zero)
            .min_by_key(|&row| (&table[row][columns + size] / &table[row][column], basis[row]))
            .expect("probabilities have a bound");
        let pivot = table[leaving][column].clone();
        table[leaving].iter_mut().for_each(|value| *value /= &pivot);
        let pivot = table[leaving].clone();
        for row in (0..size).filter(|&row| row != leaving) {
            let factor = table[row][column].clone();
            if factor != zero {
                table[row].iter_mut().zip(&pivot).for_each(|(to, by)| *to -= &factor * by);
            }
        }
        basis[leaving] = column;
    };
    let ones = |from: usize, price: i64| -> Vec<Number> {
        (0..columns + size).map(|column| number(if column >= from { price } else { 0 })).collect()
    };
    if optimize(&ones(columns, -1), &mut basis) < zero {
        return None;
    }
    // Artificial variables that are left in the basis are 0. A high price keeps them there.
    let mut prices = ones(columns, -1_000_000_000_000);
    prices[..columns].clone_from_slice(gain);
    Some(optimize(&prices, &mut basis))
}

/// Compares the plan of two lists with the definition.
fn check(left: &[u32], right: &[u32], parameters: Optimized) {
    let (instance, documents) = Instance::of(left, right, parameters);
    let plan = instance.solve().expect("at most 1024 lists");
    let length = documents.len().min(parameters.depth as usize);
    let lists = allowed(left, right, length);
    let rank = |side: &[u32], document: u32| {
        1 + side.iter().position(|&other| other == document).unwrap_or(side.len()) as i64
    };
    let credit =
        |document: u32| credit_of(parameters.credit, rank(left, document), rank(right, document));
    let sign = |document: u32| rank(right, document).cmp(&rank(left, document)) as i64;
    let sensitivity = |list: &[u32]| {
        let mass = |of: i64| -> f64 {
            let at = (1..).zip(list).filter(|(_, document)| sign(**document) == of);
            at.map(|(k, _)| 1.0 / f64::from(k)).sum()
        };
        let (a, b, tied) = (mass(1), mass(-1), mass(0));
        let bits = |w: f64| if w > 0.0 { -w / (a + b) * (w / (a + b)).log2() } else { 0.0 };
        (a + b) / (a + b + tied) * (bits(a) + bits(b))
    };
    let mut rows = vec![vec![number(1); lists.len()]];
    rows.extend((0..length).map(|at| lists.iter().map(|list| credit(list[at])).collect()));
    let mut right_hand = vec![number(0); rows.len()];
    right_hand[0] = number(1);
    let gain: Vec<Number> = lists
        .iter()
        .map(|list| Number::from_float(sensitivity(list)).expect("a finite number"))
        .collect();
    let best = maximum(&rows, &right_hand, &gain);
    let about = format!("{left:?} {right:?} {parameters:?}");
    assert_eq!(plan.is_biased(), best.is_none(), "{about}");

    let shown: BTreeMap<Vec<u32>, f64> = plan
        .lists
        .iter()
        .map(|list| list.iter().map(|&label| documents[usize::from(label)]).collect())
        .zip(plan.probabilities.iter().copied())
        .collect();
    assert_eq!(shown.len(), plan.lists.len(), "a list twice: {about}");
    assert!(shown.keys().all(|list| lists.contains(list)), "{about}");
    assert!((shown.values().sum::<f64>() - 1.0).abs() < 1e-12, "{about}");
    let mean = |value: &dyn Fn(&[u32]) -> f64| -> f64 {
        shown.iter().map(|(list, probability)| probability * value(list)).sum()
    };
    let Some(best) = best else { return };
    for at in 0..length {
        let of = |list: &[u32]| {
            let credit = credit(list[at]);
            credit.numer().to_string().parse::<f64>().expect("a number")
                / credit.denom().to_string().parse::<f64>().expect("a number")
        };
        assert!(mean(&of).abs() < 1e-12, "{about}: position {at} has {}", mean(&of));
    }
    let difference = Number::from_float(mean(&sensitivity)).expect("a finite number") - best;
    let largest = Number::new(1.into(), 1_000_000_000.into());
    assert!(difference < largest && difference > -largest, "{about}: {difference}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn plans_are_optima_of_an_exact_rational_program(
        depth in 2..=6_usize,
        more in 0..=6_usize,
        draws in prop::collection::vec(any::<Index>(), 10),
        credit in prop::sample::select(vec![RankCredit::Inverse, RankCredit::Linear, RankCredit::Binary]),
    ) {
        let left: Vec<u32> = (0..depth as u32).collect();
        let mut pool: Vec<u32> = (0..(depth + more.min(depth)) as u32).collect();
        let right: Vec<u32> = draws[..depth].iter().map(|draw| pool.remove(draw.index(pool.len()))).collect();
        check(&left, &right, Optimized { credit, depth: depth as u32, ..Optimized::default() });
    }
}

#[test]
fn long_plans_are_optima_of_an_exact_rational_program() {
    let left: Vec<u32> = (0..10).collect();
    check(&left, &[1, 0, 2, 10, 4, 3, 5, 7, 6, 8], Optimized::default());
    // Six shared documents imply one position from the others.
    let linear = Optimized { credit: RankCredit::Linear, ..Optimized::default() };
    check(&left[..6], &[4, 1, 5, 0, 3, 2], linear);
}
