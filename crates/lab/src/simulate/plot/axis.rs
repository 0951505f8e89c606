//! Axes: scales, ticks and their labels.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from 0.
    Linear,
    /// Logarithmic. Values that are not above 0 are omitted.
    Log,
}

/// An axis: maps values to distances from its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub scale: Scale,
    pub low: f64,
    pub high: f64,
    length: f64,
}

impl Axis {
    /// An axis that includes all `values` and reaches up to all `tops`.
    pub fn new(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        tops: impl Iterator<Item = f64>,
        length: f64,
    ) -> Self {
        let highest = tops.filter(|top| top.is_finite()).fold(0.0, f64::max);
        let (low, high) = match scale {
            Scale::Linear => {
                let step = step(highest);
                (0.0, (highest / step).ceil().max(1.0) * step)
            }
            Scale::Log => {
                let lowest = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
                if lowest.is_finite() {
                    let power = 10_f64.powf(lowest.log10().floor());
                    let starts = [5.0, 2.0].into_iter().map(|m| m * power);
                    let low = starts.into_iter().find(|start| *start <= lowest).unwrap_or(power);
                    (low, highest.max(low * 5.0))
                } else {
                    (1.0, 10.0)
                }
            }
        };
        Self { scale, low, high, length }
    }

    /// Distance of `value` from the start of the axis; `None` for a value without a logarithm.
    pub fn at(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => {
                (value / self.low).log10() / (self.high / self.low).log10()
            }
            Scale::Log => return None,
        };
        // The frame clips values beyond the ends. The limits keep distances within the range that
        // SVG viewers can draw.
        Some(share.clamp(-1.0, 2.0) * self.length)
    }

    /// Major ticks with their labels, and minor ticks. A power of ten is written `10^n`.
    pub fn ticks(&self) -> (Vec<(f64, String)>, Vec<f64>) {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high);
                let count = (self.high / step).round() as u32;
                let marks =
                    (0..=count).map(|n| f64::from(n) * step).map(|v| (v, plain(v, step))).collect();
                (marks, Vec::new())
            }
            Scale::Log => {
                let within = |value: f64| value >= self.low * 0.999 && value <= self.high * 1.001;
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                let multiples = (first..=last)
                    .flat_map(|n| (1..10).map(move |m| (m, n)))
                    .filter(|&(m, n)| within(f64::from(m) * 10_f64.powi(n)));
                // Below two decades, there are too few powers of ten for ticks.
                let short = self.high / self.low < 100.0;
                let (named, minor): (Vec<_>, Vec<_>) =
                    multiples.partition(|&(m, _)| m == 1 || (short && (m == 2 || m == 5)));
                let value = |(m, n): (i32, i32)| f64::from(m) * 10_f64.powi(n);
                let name = |at: (i32, i32)| match short {
                    true => plain(value(at), 10_f64.powi(at.1)),
                    false => format!("10^{}", at.1),
                };
                (
                    named.into_iter().map(|at| (value(at), name(at))).collect(),
                    minor.into_iter().map(value).collect(),
                )
            }
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides `0..=highest` into four to ten parts.
fn step(highest: f64) -> f64 {
    if highest.is_nan() || highest <= 0.0 {
        return 0.25;
    }
    let power = 10_f64.powf((highest / 4.0).log10().floor());
    [5.0, 2.0].into_iter().map(|m| m * power).find(|step| highest / step >= 4.0).unwrap_or(power)
}

/// The label of a tick, with the decimals that the step needs and thousands separated.
fn plain(value: f64, step: f64) -> String {
    if step < 1.0 {
        let digits = (-step.log10()).ceil() as usize;
        return format!("{value:.digits$}");
    }
    group(&format!("{value:.0}"))
}

/// A number with its thousands separated.
pub fn grouped(number: u64) -> String {
    group(&number.to_string())
}

fn group(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
