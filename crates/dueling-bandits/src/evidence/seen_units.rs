//! The units that are known, in a fixed amount of memory.
//!
//! A unit is a user, a session or a device: whoever gives several answers that depend on each
//! other. The filter is that of Bloom ("Space/time trade-offs in hash coding with allowable
//! errors", 1970). It never forgets a unit. It takes a new unit for a known one with a small
//! probability that depends on the hash of the unit alone, and not on its answer. A mistake
//! therefore leaves an answer out, whoever won it: it costs comparisons, and the evidence stays
//! valid.

/// Bits of the filter: 512 KiB. With 100,000 units it mistakes one new unit in 16,000, with a
/// million one in 7.
const BITS: u64 = 1 << 22;
const WORDS: usize = (BITS / 64) as usize;
/// Bits that one unit sets.
const PROBES: u64 = 4;

/// A set of units that may contain a few more than were inserted.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct SeenUnits {
    /// Empty before the first unit.
    words: Vec<u64>,
    inserted: u64,
}

impl SeenUnits {
    /// Insert a unit. Returns whether it was new.
    pub fn insert(&mut self, unit: u64) -> bool {
        if self.contains(unit) {
            return false;
        }
        self.words.resize(WORDS, 0);
        for bit in bits(unit) {
            self.words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        self.inserted += 1;
        true
    }

    /// Whether the unit was inserted, or looks like one that was.
    pub fn contains(&self, unit: u64) -> bool {
        !self.words.is_empty()
            && bits(unit).all(|bit| self.words[(bit / 64) as usize] & (1 << (bit % 64)) != 0)
    }

    /// How many units were inserted.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The probability that a new unit is taken for a known one.
    pub fn mistake_probability(&self) -> f64 {
        let set: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        (set as f64 / BITS as f64).powi(PROBES as i32)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    /// Whether a decoded filter has its size.
    pub fn is_sound(&self) -> bool {
        matches!(self.words.len(), 0 | WORDS) && (self.words.is_empty() == (self.inserted == 0))
    }
}

/// The bits of a unit. Units are hashes already; one more step keeps the filter even where a caller
/// numbers its units.
fn bits(unit: u64) -> impl Iterator<Item = u64> {
    let mixed = mix(unit);
    let (start, step) = (mixed >> 32, (mixed & 0xffff_ffff) | 1);
    (0..PROBES).map(move |probe| (start + probe * step) % BITS)
}

/// The finaliser of SplitMix64: a bijection that spreads every bit of its input.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
