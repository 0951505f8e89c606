//! The open connections, and which of them goes when there are too many.
//!
//! A connection on which no request was authorized yet makes room for a new one, the oldest first.
//! Whoever opens connections and shows no key therefore closes his own, and a caller with a key is
//! let in at any time: it shows the key with its first request.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use tokio::task::AbortHandle;

use super::peer::{Peer, network_of};

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub all: usize,
    pub per_address: usize,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: Limits,
    /// Counts the connections that were refused or closed.
    shed: Counter,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// In the order of their arrival.
    connections: BTreeMap<u64, Connection>,
    per_network: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Connection {
    peer: Arc<Peer>,
    /// The network that it counts for.
    network: Option<IpAddr>,
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
    pub fn new(limits: Limits, shed: Counter) -> Arc<Self> {
        Arc::new(Self { limits, shed, open: Mutex::default() })
    }

    /// Count a new connection, and close another one if there are too many. `None` if no other one
    /// may be closed for it. With `unlimited`, it does not count for its address.
    pub fn admit(self: &Arc<Self>, peer: &Arc<Peer>, unlimited: bool) -> Option<Counted> {
        let mut open = self.lock();
        let network = (!unlimited).then(|| network_of(peer.address()));
        let own = network.and_then(|network| open.per_network.get(&network).copied()).unwrap_or(0);
        if own >= self.limits.per_address {
            self.shed.inc();
            open.close_oldest(|connection| connection.network == network)?;
        } else if open.connections.len() >= self.limits.all {
            self.shed.inc();
            open.close_oldest(|_| true)?;
        }
        let number = open.next;
        open.next += 1;
        if let Some(network) = network {
            *open.per_network.entry(network).or_default() += 1;
        }
        open.connections.insert(number, Connection { peer: Arc::clone(peer), network, task: None });
        Some(Counted { number, connections: Arc::clone(self) })
    }

    /// Set the task of a connection. Aborting the task closes the connection.
    pub fn set_task(&self, number: u64, task: AbortHandle) {
        if let Some(connection) = self.lock().connections.get_mut(&number) {
            connection.task = Some(task);
        }
    }

    /// The number of connections.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.lock().connections.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // every change of the counts is complete before anything can panic
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Close the oldest connection among these that has shown no key. `None` if all have.
    fn close_oldest(&mut self, among: impl Fn(&Connection) -> bool) -> Option<()> {
        let closes = self.connections.iter().find(|(_, connection)| {
            connection.task.is_some() && !connection.peer.is_known() && among(connection)
        });
        let number = *closes?.0;
        if let Some(task) = self.remove(number).and_then(|connection| connection.task) {
            task.abort();
        }
        Some(())
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.connections.remove(&number)?;
        if let Some(network) = connection.network
            && let Some(count) = self.per_network.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                self.per_network.remove(&network);
            }
        }
        Some(connection)
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
        self.connections.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        connections: Arc<Connections>,
        tasks: Vec<tokio::task::JoinHandle<()>>,
    }

    impl World {
        fn new(all: usize, per_address: usize) -> Self {
            let limits = Limits { all, per_address };
            Self { connections: Connections::new(limits, Counter::default()), tasks: Vec::new() }
        }

        fn connect(&mut self, address: &str) -> Option<(Arc<Peer>, Counted)> {
            let peer = Arc::new(Peer::new(address.parse().expect("an address")));
            let counted = self.connections.admit(&peer, false)?;
            let task = tokio::spawn(std::future::pending());
            self.connections.set_task(counted.number(), task.abort_handle());
            self.tasks.push(task);
            Some((peer, counted))
        }

        async fn is_closed(&mut self, number: usize) -> bool {
            tokio::task::yield_now().await;
            self.tasks[number].is_finished()
        }
    }

    #[tokio::test]
    async fn the_oldest_connection_without_a_key_makes_room() {
        let mut world = World::new(3, 3);
        let first = world.connect("192.0.2.1").expect("room");
        let _second = world.connect("192.0.2.1").expect("room");
        let _third = world.connect("192.0.2.2").expect("room");
        first.0.note_authorized();
        let fourth = world.connect("192.0.2.3").expect("the room of the second");
        assert!(!world.is_closed(0).await && world.is_closed(1).await);
        fourth.0.note_authorized();
        let fifth = world.connect("192.0.2.4").expect("the room of the third");
        assert!(world.is_closed(2).await);
        fifth.0.note_authorized();
        assert!(world.connect("192.0.2.5").is_none(), "all have shown a key");
        drop(first);
        assert!(world.connect("192.0.2.5").is_some());
    }

    #[tokio::test]
    async fn an_address_that_has_its_share_closes_its_own() {
        let mut world = World::new(10, 2);
        let _other = world.connect("192.0.2.9").expect("room");
        let _first = world.connect("192.0.2.1").expect("room");
        let second = world.connect("192.0.2.1").expect("room");
        let _third = world.connect("192.0.2.1").expect("the room of the first");
        assert!(!world.is_closed(0).await && world.is_closed(1).await);
        drop(second);
        assert_eq!(world.connections.count(), 2);
        assert_eq!(world.connections.lock().per_network.len(), 2);
    }
}
