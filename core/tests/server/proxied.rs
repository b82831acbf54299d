//! What stands behind a proxy and what goes through it, be that a real one or not.

use declarest_core::proxy::{Proxy, ProxyCredentials, ProxyFields};
use declarest_core::secrets::Secret;
use declarest_core::server::{Auth, Grant, OAuth2};

use crate::recorder::{Recorder, json};

/// A REST server that gives a token to every client.
pub async fn server() -> Recorder {
    Recorder::start(|seen| match seen.target.as_str() {
        target if target.ends_with("/token") => json(200, "{\"access_token\": \"token\"}"),
        _ => json(200, "{\"all\": \"well\"}"),
    })
    .await
}

/// Through the proxy at `url` for every target, with this `user:password`.
pub fn through(url: &str, login: Option<&str>, no_proxy: Option<&str>) -> Proxy {
    let auth = login.and_then(|login| login.split_once(':')).map(|(username, password)| ProxyCredentials {
        username: username.to_owned(),
        password: Secret::from(password.to_owned()),
    });
    Proxy::parse("proxy", ProxyFields { http: Some(url), https: Some(url), no_proxy }, auth).unwrap()
}

/// Tokens of a server that only the proxy finds.
pub fn tokens_from_afar() -> Auth {
    Auth::OAuth2(OAuth2 {
        token_url: "http://idp.test/token".to_owned(),
        grant: Grant::ClientCredentials,
        client_id: Secret::from("app".to_owned()),
        client_secret: Secret::from("secret".to_owned()),
        scope: None,
        audience: None,
    })
}
