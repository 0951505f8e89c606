//! The ledger of a batch: the comparisons that a policy has committed to, and which of them are
//! answered.
//!
//! A batch is a multiset of pairs. It is complete when every comparison in it has an outcome, and
//! only then does the policy adapt. First, second, half and void outcomes answer a comparison.
//! (Void is a skipped tie: the comparison was made, without information.) A page without a click
//! does not answer it, and the comparison is issued again.
//!
//! A pair whose rankers return the same documents would then hold the batch up for ever. So once
//! [`SILENT_PAGES`] pages of a pair in a row had no result, each further one answers a comparison
//! until one has a result again. It changes no count: what the policy learns of a pair is unbiased,
//! from fewer comparisons (`algorithms.md` §5).
//!
//! A comparison is surplus if it is of another batch, of a pair outside the batch, or more than the
//! pair needs. Surplus comparisons answer nothing and delay nothing. Those of a pair of the open
//! batch still count among the wins of that pair.

use rand::RngExt;

use crate::{BatchPair, BatchProgress, Duel, InFlight, Observation, Outcome, PolicyRng, Selection};

/// Number of random positions in the open list to try before scanning it.
const PROBES: usize = 8;

/// Pages of a pair without a result, in a row, that answer no comparison.
pub const SILENT_PAGES: u32 = 100;

/// One pair of a batch.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Row {
    first: u16,
    second: u16,
    needed: u32,
    answered: u32,
    /// Wins of (first, second) since the batch opened, in halves.
    half_wins: [u32; 2],
    /// Pages without a result since the last one that had one, up to [`SILENT_PAGES`]. Goes on
    /// from one batch to the next.
    silent: u32,
}

impl Row {
    fn duel(&self) -> Duel {
        Duel::new(usize::from(self.first), usize::from(self.second))
    }

    fn key(&self) -> (u16, u16) {
        (self.first.min(self.second), self.first.max(self.second))
    }
}

/// The pairs of one batch, ordered by their lower and then their higher ranker.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rows(Vec<Row>);

impl Rows {
    fn find(&self, duel: Duel) -> Option<usize> {
        self.position(duel.first, duel.second)
    }

    fn position(&self, i: usize, j: usize) -> Option<usize> {
        let key = (i.min(j), i.max(j));
        let found = self.0.binary_search_by(|row| {
            let (low, high) = row.key();
            (usize::from(low), usize::from(high)).cmp(&key)
        });
        found.ok()
    }

    /// Half wins of (`i` over `j`, `j` over `i`) while the batch was open; zeros for a pair outside
    /// the batch.
    pub fn half_wins(&self, i: usize, j: usize) -> (u32, u32) {
        match self.position(i, j).map(|at| &self.0[at]) {
            Some(row) if usize::from(row.first) == i => (row.half_wins[0], row.half_wins[1]),
            Some(row) => (row.half_wins[1], row.half_wins[0]),
            None => (0, 0),
        }
    }
}

/// The open batch of one policy, and the number of batches so far. Starts with no batch open.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Ledger {
    /// The number of the newest batch; 0 before the first.
    newest: u32,
    /// Numbers that no batch has got: see [`Ledger::renumber`].
    skipped: u32,
    rows: Rows,
    /// Rows that still need answers, in arbitrary order.
    open: Vec<u32>,
    /// The position of each row in `open`. Derived from `open`.
    #[serde(skip)]
    place: Vec<u32>,
    /// Sums over the rows. Derived from them.
    #[serde(skip)]
    needed: u64,
    #[serde(skip)]
    answered: u64,
}

impl Ledger {
    /// Open the next batch: every pair of `duels` (distinct, no self-duels) `each` times, cut to
    /// `budget` comparisons in total. A cut takes equally from every pair; a remainder goes to
    /// pairs at equal distances in the order of the rows.
    ///
    /// Returns the number of comparisons requested, and the results of the previous batch. If there
    /// is nothing to compare, no batch is open afterwards.
    pub fn open(&mut self, duels: Vec<Duel>, each: u64, budget: u64) -> (u64, Rows) {
        let pairs = duels.len() as u64;
        let asked = budget.min(pairs.saturating_mul(each));
        let mut rows: Vec<Row> = duels
            .into_iter()
            .map(|duel| Row {
                // rankers are at most MAX_RANKERS = 1024
                first: duel.first as u16,
                second: duel.second as u16,
                needed: 0,
                answered: 0,
                half_wins: [0; 2],
                silent: self.rows.find(duel).map_or(0, |at| self.rows.0[at].silent),
            })
            .collect();
        rows.sort_by_key(Row::key);
        let share = |until: u64| match until.checked_mul(asked) {
            Some(product) => product / pairs,
            None => (u128::from(until) * u128::from(asked) / u128::from(pairs)) as u64,
        };
        let mut given = 0;
        for (until, row) in (1..).zip(&mut rows) {
            row.needed = u32::try_from(share(until) - given).unwrap_or(u32::MAX);
            given = share(until);
        }
        rows.retain(|row| row.needed > 0);

        if !rows.is_empty() {
            self.newest += 1;
        }
        self.open = (0..rows.len() as u32).collect();
        self.place = self.open.clone();
        (self.needed, self.answered) = (asked, 0);
        (asked, std::mem::replace(&mut self.rows, Rows(rows)))
    }

    /// Give the open batch this number, if its own is lower. The next ones follow.
    pub fn renumber(&mut self, number: u32) {
        if self.number().is_some() {
            let skipped = number.min(Observation::OPEN_BATCH - 1).saturating_sub(self.newest);
            self.skipped += skipped;
            self.newest += skipped;
        }
    }

    /// Numbers that no batch has got.
    pub fn skipped(&self) -> u32 {
        self.skipped
    }

    /// The results so far of the newest batch.
    pub fn learnt(&self) -> &Rows {
        &self.rows
    }

    /// A random pair that needs more answers than are in flight; `None` when every comparison left
    /// is issued, or when no batch is open.
    ///
    /// First tries a few random positions, which suffices while most of the batch is not issued
    /// yet. Then scans all open pairs, from a random one on.
    pub fn draw(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Option<Selection> {
        let number = self.number()?;
        let wanted = |place: usize| {
            let row = &self.rows.0[self.open[place] as usize];
            let duel = row.duel();
            (row.needed - row.answered > in_flight.of(duel.first, duel.second)).then_some(duel)
        };
        let places = self.open.len();
        let probed = (0..PROBES).find_map(|_| wanted(rng.random_range(0..places)));
        let duel = probed.or_else(|| {
            let start = rng.random_range(0..places);
            (start..places).chain(0..start).find_map(wanted)
        })?;
        Some(Selection { duel, batch: Some(number), ticket: 0 })
    }

    /// Fold up to `count` comparisons with the outcome of `observation`, and return how many were
    /// folded. That is fewer than `count` only if one of them was the last that its pair needed:
    /// the caller can then check whether the batch is complete before it folds the rest.
    pub fn record(&mut self, observation: &Observation, count: u32) -> u32 {
        let Some(at) = self.number().and_then(|_| self.rows.find(observation.duel)) else {
            return count;
        };
        let is_of_batch = observation.batch == self.number()
            || observation.batch == Some(Observation::OPEN_BATCH);
        let row = &mut self.rows.0[at];
        let missing = row.needed - row.answered;
        let unanswering = match observation.outcome {
            Outcome::None if is_of_batch => count.min(SILENT_PAGES - row.silent),
            Outcome::None => count,
            _ => 0,
        };
        let answering = if is_of_batch { missing.min(count - unanswering) } else { 0 };
        let folded = if is_of_batch && missing > 0 { unanswering + answering } else { count };

        match observation.outcome {
            Outcome::None if is_of_batch => row.silent += unanswering,
            Outcome::None => {}
            _ => row.silent = 0,
        }
        let (first, second) = observation.outcome.half_wins();
        let as_asked = usize::from(row.first) == observation.duel.first;
        let half_wins = if as_asked { [first, second] } else { [second, first] };
        for (own, more) in row.half_wins.iter_mut().zip(half_wins) {
            *own = own.saturating_add(more.saturating_mul(folded));
        }
        row.answered += answering;
        self.answered += u64::from(answering);
        if answering > 0 && answering == missing {
            self.close(at);
        }
        folded
    }

    fn close(&mut self, row: usize) {
        let place = self.place[row] as usize;
        self.open.swap_remove(place);
        if let Some(&moved) = self.open.get(place) {
            self.place[moved as usize] = place as u32;
        }
    }

    /// Check a decoded ledger for an experiment with `rankers` rankers, and derive the fields that
    /// are not saved. `None` if it is not a valid state of a ledger.
    pub fn resume(mut self, rankers: usize) -> Option<Self> {
        let rows = &self.rows.0;
        let sound = |row: &Row| {
            usize::from(row.key().1) < rankers
                && row.first != row.second
                && row.silent <= SILENT_PAGES
        };
        let newest = self.newest.checked_sub(self.skipped)?;
        (self.newest < Observation::OPEN_BATCH && (newest > 0 || rows.is_empty())).then_some(())?;
        let sorted = rows.windows(2).all(|pair| pair[0].key() < pair[1].key());
        (sorted && rows.iter().all(sound) && rows.iter().all(|row| row.answered <= row.needed))
            .then_some(())?;

        self.needed = rows.iter().map(|row| u64::from(row.needed)).sum();
        self.answered = rows.iter().map(|row| u64::from(row.answered)).sum();
        let unplaced = u32::MAX;
        self.place = vec![unplaced; rows.len()];
        for (place, &row) in (0..).zip(&self.open) {
            let slot = self.place.get_mut(row as usize).filter(|slot| **slot == unplaced)?;
            *slot = place;
        }
        let open_rows = (0..).zip(rows).filter(|(_, row)| row.answered < row.needed);
        let all_listed = open_rows.clone().all(|(at, _): (usize, _)| self.place[at] != unplaced);
        (all_listed && open_rows.count() == self.open.len()).then_some(self)
    }
}

impl Ledger {
    /// Number of the open batch; `None` while no batch is open.
    pub fn number(&self) -> Option<u32> {
        (!self.open.is_empty()).then_some(self.newest)
    }

    /// How far the open batch is; zeros while no batch is open.
    pub fn progress(&self) -> BatchProgress {
        if self.open.is_empty() {
            return BatchProgress::default();
        }
        let Self { needed, answered, .. } = *self;
        BatchProgress { pairs: self.rows.0.len(), open_pairs: self.open.len(), needed, answered }
    }

    /// The pairs of the open batch, without the first `skipped`.
    pub fn pairs_after(&self, skipped: usize) -> impl Iterator<Item = BatchPair> + '_ {
        let rows = if self.open.is_empty() { &[][..] } else { &self.rows.0 };
        let rows = rows.get(skipped..).unwrap_or_default();
        rows.iter().map(|row| BatchPair {
            duel: row.duel(),
            needed: row.needed,
            answered: row.answered,
        })
    }
}
