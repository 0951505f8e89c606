//! A rate limit per address, as a generic cell rate algorithm: one moment per address.
//!
//! A crate for this brings a concurrent map and clocks of its own; this is a map and an addition.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::connections::network_of;

/// Addresses that are remembered. An address is forgotten once its whole burst is available again.
const ADDRESSES_MAX: usize = 10_000;

/// Limits the rate of every address.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Time that one request takes of the burst.
    each: Duration,
    burst: Duration,
    /// When the whole burst of an address is available again.
    restored_at: Mutex<HashMap<IpAddr, Instant>>,
}

impl Rates {
    /// `per_second` requests of each address, and `burst` at once.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let each = Duration::from_secs(1) / per_second.max(1);
        Self { each, burst: each * burst.max(1), restored_at: Mutex::default() }
    }

    /// Count a request from `address` at `now`. The error is the time after which the next one is
    /// accepted.
    pub fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        // a panic leaves at worst an address that is not counted
        let mut restored_at = self.restored_at.lock().unwrap_or_else(PoisonError::into_inner);
        let network = network_of(address);
        if restored_at.len() >= ADDRESSES_MAX && !restored_at.contains_key(&network) {
            restored_at.retain(|_, at| *at > now);
            if restored_at.len() >= ADDRESSES_MAX {
                // So many addresses at once are an attack; a limit for each is no limit then.
                return Err(self.each);
            }
        }
        let at = restored_at.entry(network).or_insert(now);
        let after = (*at).max(now) + self.each;
        match (after - now).checked_sub(self.burst) {
            None | Some(Duration::ZERO) => {
                *at = after;
                Ok(())
            }
            Some(wait) => Err(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_burst_and_then_its_rate() {
        let rates = Rates::new(10, 3);
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().expect("an address"));
        for _ in 0..3 {
            assert_eq!(rates.take(one, at(0)), Ok(()));
        }
        assert_eq!(rates.take(one, at(0)), Err(Duration::from_millis(100)));
        assert_eq!(rates.take(other, at(0)), Ok(()));
        assert_eq!(rates.take(one, at(99)), Err(Duration::from_millis(1)));
        assert_eq!(rates.take(one, at(100)), Ok(()));
        assert!(rates.take(one, at(150)).is_err());
        for _ in 0..3 {
            assert_eq!(rates.take(one, at(1000)), Ok(()));
        }
        assert!(rates.take(one, at(1000)).is_err());
    }

    #[test]
    fn memory_is_bounded_however_many_addresses_there_are() {
        let rates = Rates::new(1, 1);
        let now = Instant::now();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        for number in 0..ADDRESSES_MAX as u32 {
            assert_eq!(rates.take(address(number), now), Ok(()));
        }
        assert!(rates.take(address(u32::MAX), now).is_err());
        assert_eq!(rates.take(address(u32::MAX), now + Duration::from_secs(1)), Ok(()));
        assert_eq!(rates.restored_at.lock().expect("no panic").len(), 1);
    }
}
