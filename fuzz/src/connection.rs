//! Where to connect to, by which way, and whom to trust there.

use declarest_core::proxy::{NoProxy, Proxy, ProxyCredentials, ProxyFields};
use declarest_core::repository::{HostKey, KnownHosts, RemoteUrl};
use declarest_core::server::{BaseUrl, OpenApiSource};
use url::Url;

use super::utf8;

/// The wire format of an ssh-ed25519 key whose point is all `A`.
const KEY: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0\x20AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The text of a `known_hosts` file, and a key in wire format.
pub fn known_hosts(data: &[u8]) {
    let presented = [HostKey::new(KEY.to_vec()), HostKey::new(data.to_vec())];
    let known = KnownHosts::parse(&String::from_utf8_lossy(data));
    for key in presented.iter().flatten() {
        assert!(!key.algorithm().is_empty() && key.fingerprint().starts_with("SHA256:"));
        for (host, port) in [("git.example.test", 22), ("git.example.test", 2222), ("::1", 22)] {
            let _ = known.check(host, port, key);
        }
    }
}

/// The addresses of repositories and servers. None of them may show a password.
pub fn url(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    for url in [RemoteUrl::parse(text), RemoteUrl::parse_local_allowed(text)].into_iter().flatten() {
        let shown = url.to_string();
        // The other form, `user@host:path`, shows without its user.
        if text.contains("://") {
            let shown = Url::parse(&shown).expect("a URL");
            assert!(shown.password().is_none() && shown.username().is_empty(), "{shown}");
            assert!(shown.query().is_none() && shown.fragment().is_none(), "{shown}");
        }
    }
    if let Ok(base) = BaseUrl::parse(text) {
        assert!(base.path().starts_with('/'), "{:?}", base.path());
    }
    if let Ok(source) = OpenApiSource::parse(text) {
        let _ = source.to_string();
    }
}

/// The lines are the proxies for http and https, a list of exceptions, and targets.
pub fn proxy(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let mut lines = text.split('\n');
    let (http, https, no_proxy) = (lines.next(), lines.next(), lines.next());
    let targets: Vec<Url> = lines.take(4).filter_map(|line| Url::parse(line).ok()).collect();
    let block = Proxy::<ProxyCredentials>::parse("spec.proxy", ProxyFields { http, https, no_proxy }, None);
    let environment = Proxy::from_environment(|name| {
        let value = match name {
            "HTTP_PROXY" => http,
            "https_proxy" => https,
            "NO_PROXY" => no_proxy,
            _ => None,
        };
        value.map(str::to_owned)
    });
    let known = NoProxy::parse_known(no_proxy.unwrap_or_default());
    for target in &targets {
        let _ = known.matches(target);
    }
    let (Ok(block), Ok(environment)) = (block, environment) else { return };
    for proxy in Proxy::resolve(&environment, [None, Some(block)]) {
        for via in targets.iter().filter_map(|target| proxy.route(target)) {
            assert!(via.url.username().is_empty() && via.url.password().is_none(), "{}", via.url);
        }
    }
}
