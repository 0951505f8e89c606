//! Axes of plots that are divided at round numbers.

use std::f64::consts::LN_10;

use super::layout::number;

/// Most parts of an axis: more labels would not fit on a phone.
const PARTS_MAX: f64 = 5.0;

/// An axis from 0 to a round number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// Distance of two ticks: 1, 2, 2.5 or 5 times a power of ten.
    pub step: f64,
    pub parts: usize,
}

impl Scale {
    /// The axis whose end is not below `most`, with 3 to 5 parts where numbers allow. With
    /// `whole`, its ticks are whole numbers.
    pub fn upto(most: f64, whole: bool) -> Self {
        if most <= 0.0 || !most.is_finite() {
            return Self { step: 1.0, parts: 1 };
        }
        let least = most / PARTS_MAX * (1.0 - 1e-12);
        let power = 10f64.powf(least.log10().floor());
        let fits = |step: &f64| *step >= least && (!whole || step.fract() == 0.0);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(fits).unwrap_or_else(|| least.ceil());
        Self { step, parts: (most / step - 1e-9).ceil().max(1.0) as usize }
    }

    pub fn end(&self) -> f64 {
        self.step * self.parts as f64
    }

    /// The labels of the ticks, from 0 on.
    pub fn ticks(&self) -> Vec<String> {
        let is_whole = |digits: &i32| {
            let shifted = self.step * 10f64.powi(*digits);
            (shifted - shifted.round()).abs() < 1e-6 * shifted
        };
        let digits = (0..=6).find(is_whole).unwrap_or(6);
        let tick = |part: usize| {
            let value = self.step * part as f64;
            match digits {
                0 => number(value.round() as u64),
                _ if part == 0 => "0".into(),
                digits => format!("{value:.*}", digits as usize),
            }
        };
        (0..=self.parts).map(tick).collect()
    }
}

/// An axis from 0.1 to a power of ten, with a tick at 0.1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decades {
    /// Powers of ten between two ticks.
    each: u32,
    parts: u32,
}

impl Decades {
    /// The axis on which `value`, at least 1, is well below the end.
    pub fn beyond(value: f64) -> Self {
        let decades = 1.0 + (value.max(1.0).log10() + 0.3).ceil().clamp(1.0, 300.0);
        let each = (decades / PARTS_MAX).ceil();
        Self { each: each as u32, parts: (decades / each).ceil() as u32 }
    }

    /// Where on the axis the value with this natural logarithm is: 0 at its start, 1 at its end.
    /// Values outside of the axis are at its start or at its end.
    pub fn height(&self, ln: f64) -> f64 {
        ((ln / LN_10 + 1.0) / f64::from(self.each * self.parts)).clamp(0.0, 1.0)
    }

    /// The value at this height.
    pub fn value(&self, height: f64) -> f64 {
        ((height * f64::from(self.each * self.parts) - 1.0) * LN_10).exp()
    }

    /// The labels of the ticks, from 0.1 on.
    pub fn ticks(&self) -> Vec<String> {
        let power = |part: u32| match (part * self.each).checked_sub(1) {
            None => "0.1".into(),
            Some(exponent @ 0..=6) => number(10u64.pow(exponent)),
            Some(exponent) => format!("1e{exponent}"),
        };
        (0..=self.parts).map(power).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_the_end_is_not_below() {
        for (most, whole, ticks) in [
            (0.0, true, "0 1"),
            (1.0, true, "0 1"),
            (4.0, true, "0 1 2 3 4"),
            (11.0, true, "0 5 10 15"),
            (9.0, true, "0 2 4 6 8 10"),
            (1.1, false, "0 0.25 0.50 0.75 1.00 1.25"),
            (37.0, false, "0 10 20 30 40"),
            (0.03, false, "0 0.01 0.02 0.03"),
            (3184.0, true, "0 1\u{202f}000 2\u{202f}000 3\u{202f}000 4\u{202f}000"),
        ] {
            let scale = Scale::upto(most, whole);
            assert_eq!(scale.ticks().join(" "), ticks, "{most}");
            assert!(scale.end() >= most * (1.0 - 1e-9) && scale.parts <= 5, "{most}");
        }
        for value in (1..2000).map(|i| f64::from(i) * 0.37) {
            let scale = Scale::upto(value, false);
            assert!(scale.end() >= value && scale.end() <= 1.5 * value, "{value}: {scale:?}");
        }
    }

    #[test]
    fn decades_are_powers_of_ten() {
        let ticks = |value| Decades::beyond(value).ticks().join(" ");
        assert_eq!(ticks(1.0), "0.1 1 10");
        assert_eq!(ticks(22.2), "0.1 1 10 100");
        assert_eq!(ticks(1e4), "0.1 10 1\u{202f}000 100\u{202f}000");
        assert_eq!(ticks(1e7), "0.1 10 1\u{202f}000 100\u{202f}000 1e7 1e9");
    }

    #[test]
    fn a_height_on_an_axis_of_decades_is_that_of_its_value() {
        let decades = Decades::beyond(22.2);
        for (value, height) in [(0.01, 0.0), (0.1, 0.0), (1.0, 1.0 / 3.0), (100.0, 1.0), (1e3, 1.0)]
        {
            assert!((decades.height(f64::ln(value)) - height).abs() < 1e-9, "{value}");
            let shown = value.clamp(0.1, 100.0);
            assert!((decades.value(height) - shown).abs() < 1e-9 * shown, "{value}");
        }
    }
}
