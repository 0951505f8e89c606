//! The reverse proxies in front of the server, and the addresses of the callers behind them.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::HeaderMap;

/// A range of addresses, such as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    base: u128,
    mask: u128,
}

/// Every address as an IPv6 one.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl AddressRange {
    fn contains(&self, address: IpAddr) -> bool {
        bits(address) & self.mask == self.base
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an address, or a range such as 10.0.0.0/8");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let unused = if address.is_ipv4() { 96 } else { 0 };
        let length = match length {
            Some(length) => length.parse::<u32>().map_err(|_| wrong())?.saturating_add(unused),
            None => 128,
        };
        let mask = match length {
            0 => 0,
            1..=128 => u128::MAX << (128 - length),
            _ => return Err(wrong()),
        };
        Ok(Self { base: bits(address) & mask, mask })
    }
}

/// The proxies whose `X-Forwarded-For` the server believes.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<AddressRange>);

impl TrustedProxies {
    /// The proxies at these addresses.
    pub fn new(ranges: Vec<AddressRange>) -> Self {
        Self(ranges)
    }

    /// Whether a proxy is at this address.
    pub fn include(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }

    /// The address that a request comes from: the nearest one that is not a trusted proxy. Whatever
    /// is beyond it in `X-Forwarded-For` may be made up.
    pub fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut caller = peer;
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let mut hops = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.rsplit(','))
            .map(|hop| hop.trim().parse::<IpAddr>());
        while self.include(caller) {
            let Some(Ok(hop)) = hops.next() else { break };
            caller = hop;
        }
        caller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(ranges: &[&str]) -> TrustedProxies {
        TrustedProxies::new(ranges.iter().map(|text| text.parse().expect("a range")).collect())
    }

    #[test]
    fn ranges_contain_their_addresses_in_both_notations() {
        let own = proxies(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
        for inside in ["10.255.0.1", "::ffff:10.1.1.1", "192.0.2.7", "2001:db8:1::2"] {
            assert!(own.include(inside.parse().expect("an address")), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.8", "2001:db9::1", "::1"] {
            assert!(!own.include(outside.parse().expect("an address")), "{outside}");
        }
        assert!(proxies(&["0.0.0.0/0"]).include("1.2.3.4".parse().expect("an address")));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "proxy", "10.0.0.0/4294967295"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_trusted_proxies_name_the_caller() {
        let own = proxies(&["10.0.0.0/8"]);
        let caller = |peer: &str, forwarded: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append("x-forwarded-for", axum::http::HeaderValue::from_static(line));
            }
            own.caller(peer.parse().expect("an address"), &headers).to_string()
        };
        assert_eq!(caller("192.0.2.1", &["1.1.1.1"]), "192.0.2.1");
        assert_eq!(caller("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(caller("10.0.0.1", &["1.1.1.1, 2.2.2.2"]), "2.2.2.2");
        assert_eq!(caller("10.0.0.1", &["1.1.1.1", "2.2.2.2, 10.0.0.2"]), "2.2.2.2");
        assert_eq!(caller("10.0.0.1", &["1.1.1.1, unknown"]), "10.0.0.1");
    }
}
