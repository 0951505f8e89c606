//! The open connections, and which of them goes when there are too many.
//!
//! A connection on which no request was authorized yet makes room for a new one, the oldest first.
//! Whoever opens connections and shows no key therefore closes his own, and a caller with a key is
//! let in at any time: it shows the key with its first request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use tokio::task::AbortHandle;

/// The other end of a connection, and whether it has shown a valid key.
#[derive(Debug, Default)]
pub struct Peer {
    known: AtomicBool,
}

impl Peer {
    /// A request on this connection was authorized.
    pub fn note_authorized(&self) {
        // many threads can read one value cheaply, but not write it
        if !self.is_known() {
            self.known.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a request on this connection was authorized.
    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    /// Counts the connections that were refused or closed.
    shed: Counter,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// In the order of their arrival.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: Arc<Peer>,
    /// `None` until its task runs.
    task: Option<AbortHandle>,
}

/// A counted connection; dropping it ends the count.
#[derive(Debug)]
pub(crate) struct Counted {
    number: u64,
    connections: Arc<Connections>,
}

impl Connections {
    /// At most `most` connections; `shed` counts those that were refused or closed.
    pub fn new(most: usize, shed: Counter) -> Arc<Self> {
        Arc::new(Self { most, shed, open: Mutex::default() })
    }

    /// Count a new connection, and close another one if there are too many. `None` if no other one
    /// may be closed for it.
    pub fn admit(self: &Arc<Self>, peer: &Arc<Peer>) -> Option<Counted> {
        let mut open = self.lock();
        if open.connections.len() >= self.most {
            self.shed.inc();
            open.close_oldest()?;
        }
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, Connection { peer: Arc::clone(peer), task: None });
        Some(Counted { number, connections: Arc::clone(self) })
    }

    /// Set the task of a connection. Aborting the task closes the connection.
    pub fn set_task(&self, number: u64, task: AbortHandle) {
        if let Some(connection) = self.lock().connections.get_mut(&number) {
            connection.task = Some(task);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // every change of the counts is complete before anything can panic
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Close the oldest connection that has shown no key. `None` if all have.
    fn close_oldest(&mut self) -> Option<()> {
        let (number, task) = self.connections.iter().find_map(|(number, connection)| {
            let closes = !connection.peer.is_known();
            connection.task.as_ref().filter(|_| closes).map(|task| (*number, task.clone()))
        })?;
        self.connections.remove(&number);
        task.abort();
        Some(())
    }
}

impl Counted {
    /// The number of the connection, for [`Connections::set_task`].
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connections.lock().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_connection_without_a_key_makes_room() {
        let connections = Connections::new(3, Counter::default());
        let mut tasks = Vec::new();
        let mut connect = || {
            let peer = Arc::new(Peer::default());
            let counted = connections.admit(&peer)?;
            let task = tokio::spawn(std::future::pending::<()>());
            connections.set_task(counted.number(), task.abort_handle());
            tasks.push(task);
            Some((peer, counted))
        };
        let first = connect().expect("room");
        let _second = connect().expect("room");
        let _third = connect().expect("room");
        first.0.note_authorized();
        let fourth = connect().expect("the room of the second");
        fourth.0.note_authorized();
        let fifth = connect().expect("the room of the third");
        fifth.0.note_authorized();
        assert!(connect().is_none(), "all have shown a key");
        drop(first);
        assert!(connect().is_some());
        tokio::task::yield_now().await;
        let closed: Vec<_> = tasks.iter().map(|task| task.is_finished()).collect();
        assert_eq!(closed, [false, true, true, false, false, false]);
    }
}
