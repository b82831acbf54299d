//! What may stand between us and a Vault: a proxy, and an agent that wants to know who comes.

use std::net::SocketAddr;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::proxy::{Proxy, ProxyCredentials, ProxyFields};
use declarest_core::secrets::vault::{KvVersion, VaultError, VaultSettings, VaultStore};
use declarest_core::transport::TlsConfig;

use crate::network::{Authority, RecordingProxy};
use crate::vault::{Vault, key, secret};

const LOGIN: &str = "proxy-user:canary-proxy";

/// Through `proxy` for every target, with this user and password.
fn through(proxy: &RecordingProxy, login: &str) -> Proxy {
    let url = format!("http://{}", proxy.server.address);
    let (username, password) = login.split_once(':').unwrap();
    let auth = ProxyCredentials { username: username.to_owned(), password: secret(password) };
    let fields = ProxyFields { http: Some(&url), https: Some(&url), no_proxy: None };
    Proxy::parse("proxy", fields, Some(auth)).unwrap()
}

fn address(vault: &Vault) -> SocketAddr {
    vault.url().strip_prefix("http://").unwrap().parse().unwrap()
}

/// Stores a secret and reads it.
async fn try_out(settings: VaultSettings) -> Result<(), VaultError> {
    let store = VaultStore::new(settings).unwrap();
    store.init().await?;
    store.set(&key("a:k"), &secret("v")).await?;
    assert_eq!(store.get(&key("a:k")).await?.expose(), "v");
    Ok(())
}

fn refused(error: &VaultError, proxy: &RecordingProxy) {
    let proxy = proxy.server.address;
    let expected =
        format!("cannot log in: the proxy http://{proxy} rejected the credentials, or requires some");
    assert_eq!(error.to_string().replace(&format!("{proxy}/"), &proxy.to_string()), expected);
    assert_eq!(error.category(), Category::Auth);
}

#[tokio::test]
async fn plain_http_is_asked_of_the_proxy_with_its_credentials() {
    let vault = Vault::start().await;
    let proxy = RecordingProxy::start(address(&vault), Some(LOGIN));
    let settings = |login: &str| VaultSettings {
        address: "http://vault.test:8200".to_owned(),
        proxy: through(&proxy, login),
        ..vault.settings(KvVersion::V2)
    };
    refused(&try_out(settings("proxy-user:canary-wrong")).await.unwrap_err(), &proxy);
    assert!(proxy.requests().is_empty());
    try_out(settings(LOGIN)).await.unwrap();
    assert_eq!(proxy.requests()[0], "POST http://vault.test:8200/v1/auth/userpass/login/ops HTTP/1.1");
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let (vault, authority) = (Vault::start().await, Authority::new());
    let front = authority.serve("vault.test", address(&vault));
    let proxy = RecordingProxy::start(front.address, Some(LOGIN));
    let settings = |login: &str, authority: &Authority| VaultSettings {
        address: "https://vault.test:8200".to_owned(),
        proxy: through(&proxy, login),
        tls: authority.trusted().into(),
        ..vault.settings(KvVersion::V1)
    };
    refused(&try_out(settings("proxy-user:canary-wrong", &authority)).await.unwrap_err(), &proxy);
    try_out(settings(LOGIN, &authority)).await.unwrap();
    let requests = proxy.requests();
    assert!(requests.iter().all(|line| line == "CONNECT vault.test:8200 HTTP/1.1"), "{requests:?}");
    let error = try_out(settings(LOGIN, &Authority::new())).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cannot be reached: through the proxy http://127.0.0.1:"), "{text}");
    assert!(text.ends_with("its certificate is not trusted: UnknownIssuer; add its CA to tls"), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test]
async fn a_client_certificate_gets_in_where_one_is_wanted() {
    let (vault, authority) = (Vault::start().await, Authority::new());
    let front = authority.identity("localhost", &[]).serve(Some(&authority), address(&vault));
    let settings = |tls: TlsConfig| VaultSettings {
        address: format!("https://localhost:{}", front.address.port()),
        tls: tls.into(),
        ..vault.settings(KvVersion::V2)
    };
    let client = authority.identity("client", &[]);
    try_out(settings(client.presented(authority.trusted()))).await.unwrap();
    let stranger = Authority::new().identity("client", &[]);
    for tls in [authority.trusted(), stranger.presented(authority.trusted())] {
        let error = try_out(settings(tls)).await.unwrap_err();
        assert!(
            error.to_string().contains("it requires a client certificate, or rejected the one in tls"),
            "{error}"
        );
        assert_eq!(error.category(), Category::Transport);
    }
}
