//! Which targets are reached without the proxy.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::{Host, Url};

/// A list of targets that are reached directly, as in `NO_PROXY`.
///
/// It is separated by commas; blanks around entries do not matter, nor does case. An entry is one of
///
/// - `*`: every target,
/// - an IP address or a network such as `10.0.0.0/8`: targets written as such an address; names are not
///   resolved to compare them,
/// - `example.com`: that name and every name below it,
/// - `.example.com` or `*.example.com`: only the names below it,
///
/// where names and single addresses may end in `:port` (IPv6 addresses then stand in brackets) and so apply
/// to that port only. [`Proxy`](super::Proxy) reaches loopback directly whatever the list says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy {
    entries: Vec<Entry>,
}

/// A text that is no entry of a [`NoProxy`] list.
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
    /// Reads a list and leaves out what is no entry. For `NO_PROXY`, which other programs read, too, and
    /// which may hold forms that only they know.
    pub fn parse_known(text: &str) -> Self {
        Self { entries: texts(text).filter_map(|entry| entry.parse().ok()).collect() }
    }

    /// Whether the list names the target.
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
        // Compares as `url` writes hosts: international names in their ASCII form.
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

/// Without host bits; networks of IPv4 addresses mapped into IPv6 (RFC 4291 section 2.5.5.2) as the former.
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

/// Whether the target is this machine by its name: `localhost` or a loopback address.
pub(super) fn is_loopback(target: &Url) -> bool {
    match target.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
        Some(host) => address_of(&host).is_some_and(|address| address.is_loopback()),
        None => false,
    }
}

/// The address that a host is written as; an IPv4 address mapped into IPv6 counts as the former.
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
