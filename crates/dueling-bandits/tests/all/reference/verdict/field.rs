//! What the counts say about each pair: the evidence, and what further comparisons promise.

/// All pairs among the active rankers, which are numbered by their place. Everything is computed
/// from the wins since the roster last changed.
#[derive(Debug, Clone)]
pub struct Field {
    pub rankers: usize,
    /// `W`.
    pub wins: Vec<Vec<f64>>,
    /// `ln E(x≻y)`; 0 before the first duel.
    pub evidence: Vec<Vec<f64>>,
    /// Nats that a further duel is expected to add to it.
    pub rate: Vec<Vec<f64>>,
    /// Probability that "x beats y" is wrong, and 0.01 more.
    pub risk: Vec<Vec<f64>>,
    /// Probability that x beats y; 1/2 for x itself.
    pub above_half: Vec<Vec<f64>>,
}

impl Field {
    pub fn of(wins: Vec<Vec<f64>>, margin: f64) -> Self {
        let rankers = wins.len();
        let null = 0.5 - margin;
        let mixture = mixture(margin);
        let table = |of: &dyn Fn(f64, f64) -> f64, itself: f64| -> Vec<Vec<f64>> {
            let value = |x: usize, y: usize| {
                if x == y { itself } else { of(wins[x][y], wins[y][x]) }
            };
            (0..rankers).map(|x| (0..rankers).map(|y| value(x, y)).collect()).collect()
        };
        Self {
            rankers,
            evidence: table(
                &|won, lost| {
                    if won + lost == 0.0 { 0.0 } else { ln_evidence(&mixture, null, won, lost) }
                },
                0.0,
            ),
            rate: table(&|won, lost| Outlook::of(won, lost, null).rate, 0.0),
            risk: table(&|won, lost| 1.0 - Outlook::of(won, lost, null).probability + 0.01, 0.0),
            above_half: table(&|won, lost| Outlook::of(won, lost, 0.5).probability, 0.5),
            wins,
        }
    }

    /// The duels that "x beats y" lacks to the evidence `target`.
    pub fn missing(&self, x: usize, y: usize, target: f64) -> f64 {
        (target - self.evidence[x][y]).max(0.0) / self.rate[x][y]
    }

    /// The rankers that win more than `null` against the most others.
    pub fn leading(&self, null: f64) -> Vec<usize> {
        let wins_more =
            |x: usize, y: usize| self.wins[x][y] * (1.0 - null) > self.wins[y][x] * null;
        let score = |x: usize| (0..self.rankers).filter(|&y| y != x && wins_more(x, y)).count();
        let most = (0..self.rankers).map(score).max().unwrap_or(0);
        (0..self.rankers).filter(|&x| score(x) == most).collect()
    }
}

/// The leads of the mixture and their weights.
fn mixture(margin: f64) -> Vec<(f64, f64)> {
    let mut leads = Vec::new();
    let mut lead = 0.004;
    while lead < 0.49 {
        let distance = libm::log(lead / (0.045 + margin)) / 1.1;
        leads.push((lead, libm::exp(-0.5 * distance * distance)));
        lead *= 1.45;
    }
    leads.push((0.485, 0.1));
    let total: f64 = leads.iter().map(|(_, weight)| weight).sum();
    leads.into_iter().map(|(lead, weight)| (lead, weight / total)).collect()
}

/// `ln Σ_g w_g (p_g / b)^W ((1 - p_g) / (1 - b))^L`.
fn ln_evidence(mixture: &[(f64, f64)], null: f64, won: f64, lost: f64) -> f64 {
    let exponents: Vec<f64> = mixture
        .iter()
        .map(|&(lead, weight)| {
            let p = null + lead;
            libm::log(weight)
                + won * libm::log(p / null)
                + lost * libm::log((1.0 - p) / (1.0 - null))
        })
        .collect();
    let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = exponents.iter().map(|exponent| libm::exp(exponent - largest)).sum();
    largest + libm::log(sum)
}

/// The posterior of a pair as a normal distribution, from the mean and variance of
/// `Beta(W + 1, L + 1)`.
pub struct Outlook {
    /// `Pr(p > null)`.
    pub probability: f64,
    /// `2 E[max(0, p - null)²]`, and 1e-9 at least.
    rate: f64,
}

impl Outlook {
    pub fn of(won: f64, lost: f64, null: f64) -> Self {
        let n = won + lost + 2.0;
        let mean = (won + 1.0) / n;
        let variance = mean * (1.0 - mean) / (n + 1.0);
        let (lead, deviation) = (mean - null, variance.sqrt());
        let z = lead / deviation;
        let probability = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
        let square = (lead * lead + variance) * probability + lead * deviation * density;
        Self { probability, rate: (2.0 * square).max(1e-9) }
    }
}
