//! The targets without a proxy.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::{Host, Url};

/// A list of targets with a direct connection, as in `NO_PROXY`.
///
/// Entries are separated by commas. White space around entries and letter case are ignored. An entry is one of
///
/// - `*`: every target,
/// - an IP address or a network such as `10.0.0.0/8`: targets with such an address in the URL; names are not resolved
///   for the comparison,
/// - `example.com`: this name and all names below it,
/// - `.example.com` or `*.example.com`: only the names below it,
///
/// where names and single addresses may end in `:port` (IPv6 addresses are then in brackets) and so apply only to
/// that port. [`Proxy`](super::Proxy) connects to loopback directly regardless of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy {
    entries: Vec<Entry>,
}

/// A text that is not a valid entry of a [`NoProxy`] list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{entry}\" is not `*`, an IP address, a network in CIDR notation, host[:port] or .domain")]
pub struct NoProxyError {
    /// The entry as written.
    pub entry: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Every,
    Network { network: IpNet, port: Option<u16> },
    Domain { name: String, itself: bool, port: Option<u16> },
}

impl NoProxy {
    /// Parses a list and ignores invalid entries. It is for `NO_PROXY`, which may contain entries for other programs.
    pub fn parse_known(text: &str) -> Self {
        Self { entries: texts(text).filter_map(|entry| entry.parse().ok()).collect() }
    }

    /// Whether the list contains the target.
    pub fn matches(&self, target: &Url) -> bool {
        let port = target.port_or_known_default();
        target.host().is_some_and(|host| self.entries.iter().any(|entry| entry.matches(&host, port)))
    }
}

impl FromStr for NoProxy {
    type Err = NoProxyError;

    fn from_str(text: &str) -> Result<Self, NoProxyError> {
        Ok(Self { entries: texts(text).map(str::parse).collect::<Result<_, _>>()? })
    }
}

fn texts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

impl FromStr for Entry {
    type Err = NoProxyError;

    fn from_str(text: &str) -> Result<Self, NoProxyError> {
        let entry = match text {
            "*" => Some(Self::Every),
            _ if text.contains('/') => {
                text.parse().ok().map(|network| Self::Network { network: canonical(network), port: None })
            }
            _ => Self::host(text),
        };
        entry.ok_or_else(|| NoProxyError { entry: text.to_owned() })
    }
}

impl Entry {
    fn host(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::address(address, None));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        if let Some(bracketed) = host.strip_prefix('[') {
            return Some(Self::address(bracketed.strip_suffix(']')?.parse().ok()?, port));
        }
        if let Ok(address) = host.parse() {
            return Some(Self::address(address, port));
        }
        let below = host.strip_prefix("*.").or_else(|| host.strip_prefix('.'));
        let name = below.unwrap_or(host).trim_end_matches('.').to_lowercase();
        // Host names are compared in the form of `url`: international names in ASCII.
        let Ok(Host::Domain(name)) = Host::parse(&name) else { return None };
        let plain = name.split('.').all(|label| !label.is_empty() && !label.contains('*'));
        plain.then_some(Self::Domain { name, itself: below.is_none(), port })
    }

    fn address(address: IpAddr, port: Option<u16>) -> Self {
        Self::Network { network: address.to_canonical().into(), port }
    }

    fn matches(&self, host: &Host<&str>, target_port: Option<u16>) -> bool {
        let on_port = |port: &Option<u16>| port.is_none() || *port == target_port;
        match (self, host) {
            (Self::Every, _) => true,
            (Self::Network { network, port }, host) => {
                on_port(port) && address_of(host).is_some_and(|address| network.contains(&address))
            }
            (Self::Domain { name, itself, port }, Host::Domain(host)) => {
                let rest = host.trim_end_matches('.').strip_suffix(name.as_str());
                on_port(port) && rest.is_some_and(|rest| rest.ends_with('.') || (rest.is_empty() && *itself))
            }
            (Self::Domain { .. }, _) => false,
        }
    }
}

/// Returns the network without host bits. Networks of IPv4-mapped IPv6 addresses (RFC 4291 section 2.5.5.2) become
/// IPv4 networks.
fn canonical(network: IpNet) -> IpNet {
    let network = network.trunc();
    let mapped = network.prefix_len().checked_sub(96);
    match (network.addr(), network.addr().to_canonical(), mapped) {
        (IpAddr::V6(_), address @ IpAddr::V4(_), Some(length)) => {
            IpNet::new(address, length).unwrap_or(network)
        }
        _ => network,
    }
}

/// Whether the URL names this machine: `localhost` or a loopback address.
pub fn is_loopback(target: &Url) -> bool {
    match target.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(host) => address_of(&host).is_some_and(|address| address.is_loopback()),
        None => false,
    }
}

/// Returns the address in a URL. An IPv4-mapped IPv6 address becomes an IPv4 address.
fn address_of(host: &Host<&str>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address).to_canonical()),
    }
}

impl fmt::Display for NoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = match self {
            Self::Every => {
                f.write_str("*")?;
                None
            }
            Self::Network { network, port } => {
                let (address, single) = (network.addr(), network.prefix_len() == network.max_prefix_len());
                match address {
                    IpAddr::V6(address) if port.is_some() => write!(f, "[{address}]")?,
                    _ if single => write!(f, "{address}")?,
                    _ => write!(f, "{network}")?,
                }
                port.as_ref()
            }
            Self::Domain { name, itself, port } => {
                write!(f, "{}{name}", if *itself { "" } else { "." })?;
                port.as_ref()
            }
        };
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
