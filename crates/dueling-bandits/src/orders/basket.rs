//! The basket of one unit, and its score.
//!
//! A line meets the links of its document, of pages issued before it was ordered. Its credit `s` is
//! their mean: *split credit*. Last click would credit the ranker that shows a document again, and
//! first click the one that showed it first. By orders the score is `S = Σ q s / Σ q` over the lines
//! in the window that have a link, and by money `S = Σ q v s`, cut at ± cap, over the cap.

use serde::{Deserialize, Serialize};

use crate::orders::facts::{By, CLOCK_MS, Document, MOST_PIECES, Order, Page, Rules};
use crate::orders::join::Join;

/// The largest credit of a link.
pub const CREDIT: i8 = 127;

/// A clicked document of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Link {
    document: Document,
    /// From the view of the lower ranker of the pair: 127 is all of the credit.
    credit: i8,
    /// Unix seconds at which the page was issued, as bytes: a fixed size in snapshots.
    second: [u8; 4],
}

impl Link {
    pub fn new(document: Document, credit: i8, issued_at: i64) -> Self {
        Self { document, credit, second: second_of(issued_at) }
    }

    fn issued_at(&self) -> i64 {
        i64::from(u32::from_be_bytes(self.second)) * 1000
    }
}

fn second_of(issued_at: i64) -> [u8; 4] {
    ((issued_at / 1000).clamp(0, i64::from(u32::MAX)) as u32).to_be_bytes()
}

/// The links of one unit and one pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Basket {
    /// The issue of the first page that has a link, and its segment.
    pub first: (i64, u8),
    /// Ascending, each once.
    links: Vec<Link>,
}

impl Basket {
    pub fn new(page: &Page) -> Self {
        Self { first: (page.issued_at, page.segment), links: Vec::new() }
    }

    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Adds a link of a page. Returns whether it is new.
    pub fn add(&mut self, page: &Page, link: Link) -> bool {
        self.first = self.first.min((page.issued_at, page.segment));
        let Err(place) = self.links.binary_search(&link) else { return false };
        self.links.reserve_exact(1);
        self.links.insert(place, link);
        true
    }

    /// Which side has more credit of clicks on the first page: 1, -1 or 0.
    pub fn clicks(&self) -> i32 {
        let first = second_of(self.first.0);
        let of_page = self.links.iter().filter(|link| link.second == first);
        of_page.map(|link| i32::from(link.credit)).sum::<i32>().signum()
    }

    /// The orders of the unit meet the links, and each line is counted in `join`.
    pub fn meet(&self, rules: &Rules, orders: &[Order], join: &mut Join) -> Meeting {
        let mut meeting = Meeting::default();
        for order in orders {
            for line in &order.lines {
                let after = order.at - self.first.0;
                let Some(credit) = self.credit(&line.document, order.at) else {
                    *match self.of(&line.document).next() {
                        Some(_) => &mut join.before_page,
                        None if after < -CLOCK_MS => &mut join.unit_unknown,
                        None => &mut join.not_clicked,
                    } += 1;
                    continue;
                };
                if after > rules.window_ms {
                    meeting.beyond += credit;
                    continue;
                }
                *if credit == 0.0 { &mut join.of_both } else { &mut join.credited } += 1;
                meeting.delays.push(after);
                let pieces = f64::from(line.quantity.min(MOST_PIECES));
                meeting.pieces += pieces;
                meeting.credit += match rules.by {
                    By::Orders => pieces * credit,
                    By::Money { .. } => f64::from(line.quantity) * line.value * credit,
                };
            }
        }
        meeting
    }

    fn of(&self, document: &Document) -> impl Iterator<Item = &Link> {
        let from = self.links.partition_point(|link| link.document < *document);
        self.links[from..].iter().take_while(move |link| link.document == *document)
    }

    /// The mean credit of the links of a document that was ordered at this time; `None` if none of
    /// its pages was issued by then.
    fn credit(&self, document: &Document, at: i64) -> Option<f64> {
        let (mut sum, mut count) = (0, 0);
        for link in self.of(document).filter(|link| link.issued_at() <= at + CLOCK_MS) {
            sum += i32::from(link.credit);
            count += 1;
        }
        (count > 0).then(|| f64::from(sum) / f64::from(count * i32::from(CREDIT)))
    }

    /// Whether this program can have made it.
    pub fn is_sound(&self) -> bool {
        !self.links.is_empty()
            && self.links.is_sorted_by(|one, next| one < next)
            && self.links.iter().all(|link| link.credit >= -CREDIT)
    }
}

/// The lines of a unit, and what they found.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    credit: f64,
    pieces: f64,
    /// The credit of lines that were ordered after the window.
    pub beyond: f64,
    /// Milliseconds after the first page, of lines that count.
    pub delays: Vec<i64>,
}

impl Meeting {
    /// S, from -1 to 1; `None` without a line that counts.
    pub fn score(&self, rules: &Rules) -> Option<f64> {
        (self.pieces > 0.0).then(|| match rules.by {
            By::Orders => self.credit / self.pieces,
            By::Money { cap } => (self.credit / cap).clamp(-1.0, 1.0),
        })
    }
}
