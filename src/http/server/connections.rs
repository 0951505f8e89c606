//! The open connections, and which of them is closed when there are too many.
//!
//! Every new connection is admitted. If there are too many then, an earlier one is closed. If more
//! than a small share of all have shown no key, it is the oldest of those. Otherwise, of the key
//! with the most connections, it is the one on which no request has begun for the longest time. So
//! neither callers without a key nor those with one key can keep others out, and there is always
//! room to show a key, or to probe.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use tokio::task::AbortHandle;

use rankduel_engine::access::KnownKey;

/// This share of the connections is kept for those that have shown no key.
const KEYLESS_SHARE: usize = 16;

/// The other end of a connection.
#[derive(Debug, Default)]
pub struct Peer(Mutex<Option<Authorized>>);

/// The last request of a peer that was authorized.
#[derive(Debug)]
struct Authorized {
    /// `None` at a server without keys.
    key: Option<Arc<KnownKey>>,
    began: Instant,
}

impl Peer {
    /// A request on this connection that began at this time was authorized, with this key.
    pub fn note_authorized(&self, key: Option<&Arc<KnownKey>>, began: Instant) {
        match &mut *lock(&self.0) {
            Some(last) if last.key.as_ref().map(Arc::as_ptr) == key.map(Arc::as_ptr) => {
                last.began = began;
            }
            last => *last = Some(Authorized { key: key.cloned(), began }),
        }
    }
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Largest number of open connections.
    most: usize,
    /// Counts the connections that were closed for others.
    shed: Counter,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By number, which is the order of their arrival.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: Arc<Peer>,
    /// Aborting it closes the connection.
    task: AbortHandle,
}

/// A counted connection; dropping it ends the count.
#[derive(Debug)]
pub(crate) struct Counted {
    number: u64,
    connections: Arc<Connections>,
}

impl Connections {
    /// At most `most` connections; `shed` counts those that were closed for others.
    pub fn new(most: usize, shed: Counter) -> Arc<Self> {
        Arc::new(Self { most, shed, open: Mutex::default() })
    }

    /// Admit a new connection, and close an earlier one if there are too many. `spawn` starts the
    /// task that serves it.
    pub fn admit(self: &Arc<Self>, peer: Arc<Peer>, spawn: impl FnOnce(Counted) -> AbortHandle) {
        let mut open = lock(&self.open);
        if open.connections.len() >= self.most
            && let Some(number) = open.superfluous(self.most / KEYLESS_SHARE)
        {
            self.shed.inc();
            open.close(number);
        }
        let number = open.next;
        open.next += 1;
        let task = spawn(Counted { number, connections: Arc::clone(self) });
        open.connections.insert(number, Connection { peer, task });
    }

    /// Close the connections whose last key is not valid any more.
    pub fn close_without(&self, is_valid: impl Fn(&KnownKey) -> bool) {
        let mut open = lock(&self.open);
        let ended = open.connections.iter().filter(|(_, connection)| {
            let last = lock(&connection.peer.0);
            let key = last.as_ref().and_then(|last| last.key.as_ref());
            key.is_some_and(|key| !is_valid(key))
        });
        let ended: Vec<u64> = ended.map(|(number, _)| *number).collect();
        ended.into_iter().for_each(|number| open.close(number));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // every change is complete before anything can panic
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    /// The number of the connection to close for a new one. Up to `keyless_room` connections that
    /// have shown no key are kept.
    fn superfluous(&self, keyless_room: usize) -> Option<u64> {
        let (mut keyless, mut oldest) = (0, None);
        // for each key: the number of its connections; and of the least recently used one, when
        // its last request began, and its number
        let mut of_keys: HashMap<_, (usize, Instant, u64)> = HashMap::new();
        for (&number, connection) in &self.connections {
            let last = lock(&connection.peer.0);
            let Some(Authorized { key, began }) = &*last else {
                oldest = oldest.or(Some(number));
                keyless += 1;
                if keyless > keyless_room {
                    return oldest;
                }
                continue;
            };
            let key = key.as_ref().map(|key| *key.digest());
            let (count, least_recent, candidate) =
                of_keys.entry(key).or_insert((0, *began, number));
            *count += 1;
            if began < least_recent {
                (*least_recent, *candidate) = (*began, number);
            }
        }
        let most = of_keys.into_values().max_by_key(|(count, ..)| *count);
        most.map(|(_, _, candidate)| candidate).or(oldest)
    }

    fn close(&mut self, number: u64) {
        if let Some(Connection { task, .. }) = self.connections.remove(&number) {
            task.abort();
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        lock(&self.connections.open).connections.remove(&self.number);
    }
}
