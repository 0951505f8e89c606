//! The other end of a connection.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let network = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
