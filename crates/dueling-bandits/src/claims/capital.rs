//! The capital that claims are staked from.
//!
//! Several claims of one kind ("ranker x is better than the control", for every x) share one error
//! δ. Each claim has its own evidence `E`, and all of them together have one *reserve* `r`, which
//! starts at 1. A *stake* of `s` on a claim at time `t₀` moves `s` from the reserve to that claim,
//! where it grows with the evidence since then. The capital of a claim is
//!
//! `C(t) = Σ_i s_i E(t) / E(t_i)`, with `r + Σ s = 1` over all claims and times.
//!
//! If all claims are false, `r + Σ C` is a nonnegative supermartingale that starts at 1: an answer
//! multiplies each capital by a factor with a mean of at most 1, and a stake moves capital at the
//! factor 1. So any of them ever reaches `1/δ` with a probability of at most δ, however a stake
//! depends on earlier answers. If only some claims are false, the sum over these is no larger.
//!
//! The schedule of the stakes is a choice of power. Half of the capital goes to all claims in equal
//! parts at the start. Four tenths follow the claim with the most evidence: half of what is left of
//! them each time the number of comparisons has doubled. The last tenth is kept for changes: half
//! of what is left of it each time. With the default policy this needs up to 7 % fewer pages than
//! equal parts of all.

/// Share of the capital that is staked at the start.
const AT_START: f64 = 0.5;
/// Share for doublings of the number of comparisons.
const FOR_DOUBLINGS: f64 = 0.4;
/// Share for changes.
const FOR_CHANGES: f64 = 0.1;

/// The capital that was not staked yet.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Reserve {
    start: f64,
    doublings: f64,
    changes: f64,
}

impl Default for Reserve {
    fn default() -> Self {
        Self { start: AT_START, doublings: FOR_DOUBLINGS, changes: FOR_CHANGES }
    }
}

impl Reserve {
    /// One of claims that follow nothing: what is not kept for changes is staked at the start.
    pub fn without_doublings() -> Self {
        Self { start: AT_START + FOR_DOUBLINGS, doublings: 0.0, changes: FOR_CHANGES }
    }

    /// Capital that is left.
    pub fn left(&self) -> f64 {
        self.start + self.doublings + self.changes
    }

    /// The stake of the start. Afterwards, the stake of a change.
    pub fn first_or_change(&mut self) -> f64 {
        if self.start > 0.0 { std::mem::take(&mut self.start) } else { self.change() }
    }

    /// The stake when the number of comparisons has doubled.
    pub fn doubling(&mut self) -> f64 {
        self.doublings *= 0.5;
        self.doublings
    }

    /// The stake of a change, such as a new ranker.
    pub fn change(&mut self) -> f64 {
        self.changes *= 0.5;
        self.changes
    }

    /// Whether a decoded reserve is one.
    pub fn is_sound(&self) -> bool {
        let within = |left: f64, all: f64| (0.0..=all).contains(&left);
        within(self.start, AT_START + FOR_DOUBLINGS)
            && within(self.doublings, FOR_DOUBLINGS)
            && within(self.changes, FOR_CHANGES)
            && self.left() <= 1.0
    }
}

/// The stakes on one claim, `ln Σ_i s_i / E(t_i)`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Staked(f64);

impl Default for Staked {
    /// Nothing.
    fn default() -> Self {
        Self(f64::NEG_INFINITY)
    }
}

impl Staked {
    /// Stake `amount` now, when the evidence is `ln_evidence`.
    pub fn add(&mut self, amount: f64, ln_evidence: f64) {
        if amount > 0.0 {
            let new = libm::log(amount) - ln_evidence;
            let (low, high) = if new < self.0 { (new, self.0) } else { (self.0, new) };
            self.0 = high + libm::log1p(libm::exp(low - high));
        }
    }

    /// `ln C` when the evidence is `ln_evidence`.
    pub fn ln_capital(self, ln_evidence: f64) -> f64 {
        self.0 + ln_evidence
    }

    /// Whether a decoded value can be one.
    pub fn is_sound(self) -> bool {
        self.0 < f64::INFINITY
    }
}
