//! The events of the fixed logs. This file has its own random number generator, so that an update
//! of a crate cannot change the logs.

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Script(u64);

impl Script {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// True with a probability of `share` percent.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// Whether the first of a pair wins: usually the ranker with the lower index does.
    pub fn first_wins(&mut self, first: usize, second: usize) -> bool {
        self.percent(if first < second { 65 } else { 35 })
    }
}
