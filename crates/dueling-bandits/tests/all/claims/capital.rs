//! The reserve and the stakes.

use dueling_bandits::claims::capital::{Reserve, Staked};

#[test]
fn the_reserve_and_the_stakes_are_one() {
    let mut reserve = Reserve::default();
    let mut staked = reserve.first_or_change();
    for nth in 0..40 {
        staked += if nth % 3 == 0 { reserve.first_or_change() } else { reserve.doubling() };
        assert!((reserve.left() + staked - 1.0).abs() < 1e-12);
        assert!(reserve.is_sound());
    }
}

#[test]
fn a_stake_grows_with_the_evidence_since_it_was_made() {
    let mut staked = Staked::default();
    assert_eq!(staked.ln_capital(3.0), f64::NEG_INFINITY);
    staked.add(0.25, 0.0);
    staked.add(0.5, 2.0);
    let capital = 0.25 * 5_f64.exp() + 0.5 * 3_f64.exp();
    assert!((staked.ln_capital(5.0) - capital.ln()).abs() < 1e-12);
}
