//! The open connections, and which of them goes when there are too many.
//!
//! A connection on which no request was authorized yet makes room for a new one, the oldest first.
//! Whoever opens connections and shows no key therefore closes his own, and a caller with a key is
//! let in at any time: it shows the key with its first request.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use tokio::task::AbortHandle;

/// The other end of a connection, and whether it has shown a valid key.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    known: AtomicBool,
}

impl Peer {
    /// A peer at this address that has not shown a key yet.
    pub fn new(address: IpAddr) -> Self {
        Self { address, known: AtomicBool::new(false) }
    }

    /// The address of the connection.
    pub fn address(&self) -> IpAddr {
        self.address
    }

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

/// The part of an address that limits count by: an IPv4 address, or the 64 bits of an IPv6 address
/// that name a network, because one machine can take any number of addresses in it.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

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

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let network = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
