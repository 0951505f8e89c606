//! Orders as events of the log of an experiment.

use sha2::{Digest, Sha256};

use super::content::{Order, Placed};
use crate::service::units::UnitHasher;
use rankduel_engine::tokens::page_payload::document_of_experiment;
use rankduel_store::events::{ControlEvent, Event, UnitHash};
use rankduel_store::hashes::DocumentHash;
use rankduel_store::order_events::{OrderEvent, OrderHash};
use rankduel_store::{NewEvent, Nonce};

/// The names of units and documents in one experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    pub units: UnitHasher,
    pub seed: u64,
}

/// An order in one experiment.
#[derive(Debug, Clone)]
pub(super) struct NamedOrder {
    pub order: OrderHash,
    /// The nonce of the order, also of one that is cancelled.
    pub nonce: Nonce,
    /// Unix milliseconds; `None` if it is cancelled.
    pub at: Option<i64>,
    pub event: NewEvent,
}

impl Names {
    /// The order with its names. A repeat has the same event under the same nonce.
    pub fn order(&self, order: &Order) -> NamedOrder {
        let (nonce, hash) = hashed(b"rankduel order\0", &order.id);
        let event = match &order.placed {
            Some(placed) => NewEvent::new(nonce, self.placed(hash, placed)),
            None => {
                let event = Event::Control(ControlEvent::OrderCancelled { order: hash });
                NewEvent::new(hashed(b"rankduel order cancelled\0", &order.id).0, event)
            }
        };
        let at = order.placed.as_ref().map(|placed| placed.at);
        NamedOrder { order: hash, nonce, at, event }
    }

    fn placed(&self, order: OrderHash, placed: &Placed) -> Event {
        let lines = placed.lines.iter().map(|line| {
            let document = DocumentHash(document_of_experiment(self.seed, &line.document));
            (document, line.value.unwrap_or_default(), line.pieces() as u32)
        });
        let unit = UnitHash(self.units.hash(&placed.unit));
        let event = OrderEvent { order, unit, at: placed.at, lines: lines.collect() };
        Event::Control(ControlEvent::Order(Box::new(event)))
    }
}

/// The nonce and the hash of an order's id. The highest bit of the nonce is set, which no random
/// nonce has.
fn hashed(purpose: &[u8], id: &str) -> (Nonce, OrderHash) {
    let mut hash = Sha256::new();
    hash.update(purpose);
    hash.update(id.as_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    let nonce = u128::from_be_bytes(std::array::from_fn(|index| hash[index])) | 1 << 127;
    (nonce, UnitHash(u64::from_be_bytes(std::array::from_fn(|index| hash[16 + index]))))
}
