//! The hosts and addresses that this process may connect to.
//!
//! Users who may create objects choose hosts, and the process reaches networks that they do not: its own loopback
//! interface, and the metadata service of the cloud. So the operator restricts its destinations at start. Names are
//! checked after their resolution, at the time of connecting, because DNS answers change.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::OnceLock;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::proxy::Proxy;

/// The restriction of this process, if any.
static CURRENT: OnceLock<Destinations> = OnceLock::new();

/// Addresses that only the machine itself has a use for: link-local addresses, which include the metadata services of
/// most clouds, and the metadata addresses of others (Alibaba, Azure, AWS over IPv6, Oracle).
const INTERNAL: [&str; 6] = [
    "169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128",
    "192.0.0.192/32",
];

/// Addresses of this machine. A connection to an unspecified address reaches it, too.
const LOOPBACK: [&str; 4] = ["127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128"];

/// Names of metadata services.
const INTERNAL_NAMES: [&str; 4] = ["metadata", "metadata.google.internal", "metadata.goog", "instance-data"];

/// The hosts and addresses that connections may go to.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    /// Networks with the decision for them. The longest prefix decides; of equal ones, a denial.
    networks: Vec<(IpNet, bool)>,
    /// Networks that are denied unless `networks` decides.
    denied: Vec<IpNet>,
    hosts: Vec<HostPattern>,
}

/// A host name, an IP address, or `*.` and a domain, which includes all names below the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

/// A text that is not a [`HostPattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is neither a host name, nor an IP address, nor *. and a domain")]
pub struct InvalidHostPattern(String);

/// A destination that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The address is in a denied network.
    #[error("connections to {host} are denied, because its address {address} is in a denied network")]
    Address {
        /// The host as it was configured.
        host: String,
        /// Its address.
        address: IpAddr,
    },
    /// The host is the name of a metadata service, or not among the allowed ones.
    #[error("connections to {0} are denied, because it is not an allowed host")]
    Host(String),
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let name = text.strip_prefix("*.").unwrap_or(text);
        // A URL writes an IPv6 address in brackets.
        let host = match name.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => Some(Host::Ipv4(address)),
            Ok(IpAddr::V6(address)) => Some(Host::Ipv6(address)),
            Err(_) => Host::parse(name).ok(),
        };
        match host {
            Some(Host::Ipv4(address)) if name == text => Ok(Self(address.to_string())),
            Some(Host::Ipv6(address)) if name == text => Ok(Self(address.to_string())),
            Some(Host::Domain(domain)) if !name.contains('*') => {
                Ok(Self(if name == text { domain } else { format!(".{domain}") }))
            }
            _ => Err(InvalidHostPattern(text.to_owned())),
        }
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        if self.0.starts_with('.') { host.ends_with(&self.0) } else { host == self.0 }
    }
}

impl Destinations {
    /// Returns a restriction. Link-local addresses and metadata services are denied, and unless `loopback` is true, also
    /// the addresses of this machine, except for what `allowed` contains. `denied` is denied in any case, except for
    /// smaller networks in `allowed`. If `hosts` is not empty, no other hosts are allowed.
    pub fn new(loopback: bool, allowed: &[IpNet], denied: &[IpNet], hosts: Vec<HostPattern>) -> Self {
        let own: &[&str] = if loopback { &[] } else { &LOOPBACK };
        let built_in = INTERNAL.iter().chain(own).filter_map(|network| network.parse().ok()).collect();
        let networks = denied.iter().map(|network| (*network, false));
        let networks = networks.chain(allowed.iter().map(|network| (*network, true))).collect();
        Self { networks, denied: built_in, hosts }
    }

    /// Makes this the restriction of all connections of this process. Only the first call has an effect.
    pub fn restrict_process(self) {
        let _ = CURRENT.set(self);
    }

    /// Checks a host name or IP address, without resolving the name.
    fn check_host(&self, host: &str) -> Result<(), Denied> {
        let name = host.trim_matches(['[', ']']).trim_end_matches('.').to_lowercase();
        let listed = self.hosts.iter().any(|pattern| pattern.matches(&name));
        let internal = INTERNAL_NAMES.contains(&name.as_str());
        if !listed && (internal || !self.hosts.is_empty()) {
            return Err(Denied::Host(host.to_owned()));
        }
        match name.parse() {
            Ok(address) => self.check_address(host, address),
            Err(_) => Ok(()),
        }
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Denied> {
        let target = reached(address);
        let decisive = self.networks.iter().filter(|(network, _)| network.contains(&target));
        let decisive = decisive.max_by_key(|(network, allowed)| (network.prefix_len(), !allowed));
        let allowed = match decisive {
            Some((_, allowed)) => *allowed,
            None => !self.denied.iter().any(|network| network.contains(&target)),
        };
        if allowed { Ok(()) } else { Err(Denied::Address { host: host.to_owned(), address }) }
    }

    /// Returns the addresses that are allowed; an error if there are only others.
    fn filter(
        &self,
        host: &str,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Denied> {
        let (mut allowed, mut denial) = (Vec::new(), None);
        for address in addresses {
            match self.check_address(host, address.ip()) {
                Ok(()) => allowed.push(address),
                Err(denied) => denial = Some(denied),
            }
        }
        match denial {
            Some(denied) if allowed.is_empty() => Err(denied),
            _ => Ok(allowed),
        }
    }
}

/// Returns the address that a connection reaches: the IPv4 address in an IPv6 address that maps or translates it (RFC
/// 4291 section 2.5.5.2, RFC 6052).
fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
            }
            _ => IpAddr::V6(v6),
        },
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Checks the host of a URL before a request. The addresses of a name are checked when a client of this module connects.
pub fn check(url: &Url) -> Result<(), Denied> {
    match (CURRENT.get(), url.host_str()) {
        (Some(destinations), Some(host)) => destinations.check_host(host),
        _ => Ok(()),
    }
}

/// Checks the host of a URL, and that of its proxy.
pub fn check_with_proxy(url: &Url, proxy: &Proxy) -> Result<(), Denied> {
    proxy.route(url).map_or(Ok(()), |via| check(via.url))?;
    check(url)
}

/// Resolves a host for a connection that is not made by an HTTP client of this module.
pub(crate) async fn resolve(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    if let Some(destinations) = CURRENT.get() {
        destinations.check_host(host).map_err(std::io::Error::other)?;
    }
    filtered(host, tokio::net::lookup_host((host, port)).await?)
}

/// Returns the addresses that are allowed; an error if there are only others.
fn filtered(host: &str, found: impl Iterator<Item = SocketAddr>) -> std::io::Result<Vec<SocketAddr>> {
    match CURRENT.get() {
        Some(destinations) => destinations.filter(host, found).map_err(std::io::Error::other),
        None => Ok(found.collect()),
    }
}

/// Addresses of hosts that take precedence over DNS, like `--resolve` of curl: for hosts that DNS does not know.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<(HostPattern, IpAddr)>);

impl Names {
    /// Returns the addresses of these hosts. The first pattern that matches decides.
    pub fn new(addresses: Vec<(HostPattern, IpAddr)>) -> Self {
        Self(addresses)
    }

    /// Resolves a host to the addresses that are allowed.
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let name = host.trim_end_matches('.').to_lowercase();
        let Some((_, address)) = self.0.iter().find(|(pattern, _)| pattern.matches(&name)) else {
            return resolve(host, port).await;
        };
        filtered(host, std::iter::once(SocketAddr::new(*address, port)))
    }

    /// Resolves the host of a URL. Fails if it is not known or not allowed.
    pub(crate) async fn check(&self, url: &Url) -> std::io::Result<()> {
        check(url).map_err(std::io::Error::other)?;
        match url.host() {
            Some(Host::Domain(host)) => match self.resolve(host, 0).await {
                Ok(found) if found.is_empty() => Err(std::io::Error::other("the name has no address")),
                result => result.map(drop),
            },
            Some(_) => Ok(()),
            None => Err(std::io::Error::other("the URL has no host")),
        }
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = Self::resolve(&names, name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Returns the resolver for HTTP clients, if this process is restricted.
pub(super) fn resolver() -> Option<Names> {
    CURRENT.get().map(|_| Names::default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn networks(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[rstest]
    #[case("10.0.0.1", true)]
    #[case("192.168.0.1", true)]
    #[case("2001:db8::1", true)]
    #[case("127.0.0.1", false)]
    #[case("127.8.9.10", false)]
    #[case("[::1]", false)]
    #[case("0.0.0.0", false)]
    #[case("[::]", false)]
    #[case("169.254.169.254", false)]
    #[case("[fe80::1]", false)]
    #[case("[fd00:ec2::254]", false)]
    #[case("100.100.100.200", false)]
    #[case("168.63.129.16", false)]
    #[case("[::ffff:169.254.169.254]", false)]
    #[case("[::ffff:7f00:1]", false)]
    #[case("[64:ff9b::a9fe:a9fe]", false)]
    #[case("[64:ff9b::a00:1]", true)]
    #[case("metadata.google.internal", false)]
    #[case("METADATA.google.internal.", false)]
    #[case("git.example.org", true)]
    fn the_defaults_of_a_cluster(#[case] host: &str, #[case] allowed: bool) {
        let destinations = Destinations::new(false, &[], &[], Vec::new());
        assert_eq!(destinations.check_host(host).is_ok(), allowed);
    }

    #[rstest]
    #[case::loopback_is_allowed("127.0.0.1", &["127.0.0.0/8"], &[], true)]
    #[case::only_what_is_listed("127.0.0.1", &["127.0.0.2/32"], &[], false)]
    #[case::denied("10.1.2.3", &[], &["10.0.0.0/8"], false)]
    #[case::exception("10.1.2.3", &["10.1.0.0/16"], &["10.0.0.0/8"], true)]
    #[case::exception_to_an_exception("10.1.2.3", &["10.1.0.0/16"], &["10.0.0.0/8", "10.1.2.0/24"], false)]
    #[case::both("10.1.2.3", &["10.0.0.0/8"], &["10.0.0.0/8"], false)]
    #[case::everything_but("8.8.8.8", &["10.0.0.0/8"], &["0.0.0.0/0"], false)]
    #[case::metadata("169.254.169.254", &["169.254.169.254/32"], &[], true)]
    fn the_longest_prefix_decides(
        #[case] host: &str,
        #[case] allow: &[&str],
        #[case] deny: &[&str],
        #[case] allowed: bool,
    ) {
        let destinations = Destinations::new(false, &networks(allow), &networks(deny), Vec::new());
        assert_eq!(destinations.check_host(host).is_ok(), allowed);
    }

    #[rstest]
    #[case("git.example.org", true)]
    #[case("GIT.example.org", true)]
    #[case("a.b.corp.test", true)]
    #[case("corp.test", false)]
    #[case("evilcorp.test", false)]
    #[case("other.example.org", false)]
    #[case("10.0.0.1", true)]
    #[case("10.0.0.2", false)]
    #[case("[2001:db8::5]", true)]
    #[case("[2001:db8::6]", true)]
    #[case("[2001:db8::7]", false)]
    fn only_listed_hosts(#[case] host: &str, #[case] allowed: bool) {
        let hosts = ["git.example.org", "*.corp.test", "10.0.0.1", "[2001:db8::5]", "2001:DB8::6"];
        let hosts = hosts.map(|text| text.parse().unwrap());
        let destinations = Destinations::new(true, &[], &[], hosts.to_vec());
        assert_eq!(destinations.check_host(host).is_ok(), allowed);
    }

    #[rstest]
    #[case("*.10.0.0.1")]
    #[case("*.[2001:db8::5]")]
    #[case("[10.0.0.1]")]
    #[case("a*b.test")]
    #[case("*")]
    #[case("")]
    #[case("https://h")]
    fn invalid_patterns(#[case] text: &str) {
        assert!(text.parse::<HostPattern>().is_err(), "{text}");
    }

    #[test]
    fn a_name_with_an_allowed_address_is_reached_by_it_alone() {
        let destinations = Destinations::new(false, &[], &[], Vec::new());
        let [inside, outside] = ["127.0.0.1:1", "10.0.0.1:1"].map(|text| text.parse().unwrap());
        assert_eq!(destinations.filter("h", [inside, outside].into_iter()), Ok(vec![outside]));
        let denied = Denied::Address { host: "h".to_owned(), address: inside.ip() };
        assert_eq!(destinations.filter("h", [inside].into_iter()), Err(denied));
        assert_eq!(destinations.filter("h", std::iter::empty()), Ok(Vec::new()));
    }
}
