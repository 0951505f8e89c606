//! The units that are known, in little memory.
//!
//! A unit is a user, a session or a device: whoever gives several answers that depend on each
//! other. The set is a sequence of filters of Bloom ("Space/time trade-offs in hash coding with
//! allowable errors", 1970): a full one is kept, and a larger one takes the next units. It never
//! forgets a unit. It takes a new unit for a known one with a small probability that depends on the
//! hash of the unit alone, and not on its answer. A mistake therefore leaves an answer out, whoever
//! won it: it costs comparisons, and the evidence stays valid.

use crate::rng::mix;

/// Bits of the first filter: 64 KiB. Each further one has twice as many.
const FIRST_BITS: u64 = 1 << 19;
/// Bits of a full filter for each of its units: it then mistakes one new unit in 260. With 100,000
/// units the set has 192 KiB and mistakes one in 170, with a million 960 KiB and one in 13.
const BITS_PER_UNIT: u64 = 14;
/// Most filters. The last one takes all further units.
const FILTERS_MAX: usize = 4;
/// Bits that one unit sets.
const PROBES: u64 = 4;

/// A set of units that may contain a few more than were inserted.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct SeenUnits {
    filters: Vec<Vec<u64>>,
    inserted: u64,
}

impl SeenUnits {
    /// Insert a unit. Returns whether it was new.
    pub fn insert(&mut self, unit: u64) -> bool {
        if self.contains(unit) {
            return false;
        }
        self.inserted += 1;
        let place = filters_of(self.inserted) - 1;
        if place == self.filters.len() {
            self.filters.push(vec![0; words_of(place)]);
        }
        let filter = &mut self.filters[place];
        for bit in bits(unit, filter.len()) {
            filter[bit / 64] |= 1 << (bit % 64);
        }
        true
    }

    /// Whether the unit was inserted, or looks like one that was.
    pub fn contains(&self, unit: u64) -> bool {
        self.filters.iter().any(|filter| {
            bits(unit, filter.len()).all(|bit| filter[bit / 64] & (1 << (bit % 64)) != 0)
        })
    }

    /// How many units were inserted.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The probability that a new unit is taken for a known one.
    pub fn mistake_probability(&self) -> f64 {
        let is_new = |filter: &Vec<u64>| {
            let set: u64 = filter.iter().map(|word| u64::from(word.count_ones())).sum();
            1.0 - (set as f64 / (64 * filter.len()) as f64).powi(PROBES as i32)
        };
        1.0 - self.filters.iter().map(is_new).product::<f64>()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.filters.iter().map(|filter| 8 * filter.len()).sum()
    }

    /// Whether a decoded set has the filters that it needs.
    pub fn is_sound(&self) -> bool {
        let sizes = self.filters.iter().map(Vec::len);
        self.filters.len() == filters_of(self.inserted)
            && sizes.eq((0..self.filters.len()).map(words_of))
    }
}

/// The number of filters for this many units.
fn filters_of(units: u64) -> usize {
    let room = |filters: usize| (FIRST_BITS / BITS_PER_UNIT) * ((1 << filters) - 1);
    (0..FILTERS_MAX).find(|&filters| units <= room(filters)).unwrap_or(FILTERS_MAX)
}

/// The words of the filter at this place.
fn words_of(place: usize) -> usize {
    (FIRST_BITS as usize / 64) << place
}

/// The bits of a unit in a filter of this many words, a power of two. Units are hashes already; one
/// more step keeps the filter even where a caller numbers its units.
fn bits(unit: u64, words: usize) -> impl Iterator<Item = usize> {
    let mixed = mix(unit);
    let (start, step) = (mixed >> 32, (mixed & 0xffff_ffff) | 1);
    (0..PROBES).map(move |probe| (start + probe * step) as usize & (64 * words - 1))
}
