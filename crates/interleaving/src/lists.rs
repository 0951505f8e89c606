//! The two rankings that every method reads: numbered documents, without repeats, cut to a common
//! depth.

use serde::{Deserialize, Serialize};

/// How rankings of different lengths are treated. If every slot earned credit, a longer list would
/// have more of them, so that random clicks would prefer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub enum DepthPolicy {
    /// Both are cut to the length of the shorter one. A page can be shorter than that of either
    /// ranker alone.
    Min,
    /// As `min`; the rest of the longer one follows and earns no credit. A page is never shorter
    /// than that of either ranker alone.
    #[default]
    Max,
    /// Neither is cut, and every slot can earn credit. The papers do this; it is unfair to the
    /// shorter list.
    Uncut,
}

/// Two rankings of numbered documents, without repeats, cut to a common depth.
#[derive(Debug, Clone)]
pub struct Lists {
    left: Vec<u32>,
    right: Vec<u32>,
    tail: Vec<u32>,
    /// By document: rank on the left and on the right before the cut, 0 where it is missing.
    ranks: Vec<[u32; 2]>,
    depth: DepthPolicy,
}

impl Lists {
    /// Lists of documents numbered `0..documents`, best first. If a list names a document twice,
    /// the first occurrence counts.
    ///
    /// If one list is empty, there is nothing to compare: the other list is shown, whatever the
    /// depth policy, and earns no credit.
    ///
    /// # Panics
    ///
    /// Panics if a document's number is not in `0..documents`.
    pub fn new(left: &[u32], right: &[u32], documents: usize, depth: DepthPolicy) -> Self {
        let mut ranks = vec![[0; 2]; documents];
        let mut left = deduplicated(left, 0, &mut ranks);
        let mut right = deduplicated(right, 1, &mut ranks);
        let common = left.len().min(right.len());
        let mut tail = Vec::new();
        if depth != DepthPolicy::Uncut || common == 0 {
            let longer = if left.len() > common { &mut left } else { &mut right };
            let rest = longer.split_off(common);
            if depth == DepthPolicy::Max || common == 0 {
                let mut drafted = vec![false; documents];
                for &document in left.iter().chain(&right) {
                    drafted[document as usize] = true;
                }
                tail = rest.into_iter().filter(|&document| !drafted[document as usize]).collect();
            }
        }
        Self { left, right, tail, ranks, depth }
    }

    /// The left ranking, cut.
    pub fn left(&self) -> &[u32] {
        &self.left
    }

    /// The right ranking, cut.
    pub fn right(&self) -> &[u32] {
        &self.right
    }

    /// The documents that follow the draft and earn no credit.
    pub fn tail(&self) -> &[u32] {
        &self.tail
    }

    /// Number of documents; they are numbered `0..documents`.
    pub fn documents(&self) -> usize {
        self.ranks.len()
    }

    /// Number of different documents in the cut lists: the length of the longest draft.
    pub fn distinct(&self) -> usize {
        let in_left = self.left.len();
        let cut = self.left.len() as u32;
        let known = |&&document: &&u32| (1..=cut).contains(&self.ranks[document as usize][0]);
        in_left + self.right.iter().filter(|document| !known(document)).count()
    }

    /// Rank of a document on the left and on the right before the cut, 0 where it is missing.
    pub fn ranks(&self, document: u32) -> [u32; 2] {
        self.ranks[document as usize]
    }

    /// Whether slots earn credit even after one list has no documents left.
    pub fn credits_after_exhaustion(&self) -> bool {
        self.depth == DepthPolicy::Uncut
    }
}

fn deduplicated(list: &[u32], side: usize, ranks: &mut [[u32; 2]]) -> Vec<u32> {
    let mut kept = Vec::with_capacity(list.len());
    for &document in list {
        let rank = &mut ranks[document as usize][side];
        if *rank == 0 {
            kept.push(document);
            *rank = kept.len() as u32;
        }
    }
    kept
}

/// Finds the highest document of a ranking that is not shown yet.
#[derive(Debug)]
pub(crate) struct TopRemaining<'a> {
    list: &'a [u32],
    next: usize,
}

impl<'a> TopRemaining<'a> {
    pub fn of(list: &'a [u32]) -> Self {
        Self { list, next: 0 }
    }

    /// The highest document that is not in `shown`.
    pub fn get(&mut self, shown: &[bool]) -> Option<u32> {
        while let Some(&document) = self.list.get(self.next) {
            if !shown[document as usize] {
                return Some(document);
            }
            self.next += 1;
        }
        None
    }

    /// Whether another remaining document follows the last result of [`TopRemaining::get`].
    pub fn has_another(&self, shown: &[bool]) -> bool {
        self.list.iter().skip(self.next + 1).any(|&document| !shown[document as usize])
    }
}
