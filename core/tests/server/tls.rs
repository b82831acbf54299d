//! Whom a client trusts, who it is, and what happens when the files that say so are replaced.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use declarest_core::error::{Categorized, Category};
use declarest_core::proxy::Proxy;
use declarest_core::secrets::Secret;
use declarest_core::server::{
    Auth, BaseUrl, Client, FetchedOpenApi, Grant, OAuth2, OpenApiSource, Request, RequestObserver, Settings,
};
use declarest_core::transport::{Connector, TlsConfig, TlsFiles, TlsSettings};
use http::Method;
use tempfile::TempDir;

use crate::network::{Authority, Server as Front};
use crate::recorder::{Recorder, json};
use crate::server::{Ear, Server, gate, status};

async fn plain() -> Server {
    Server::start(|_| async { status(200) }).await
}

fn client(front: &Front, tls: impl Into<TlsSettings>) -> Client {
    observed(front, tls, None)
}

fn observed(
    front: &Front,
    tls: impl Into<TlsSettings>,
    observer: Option<Arc<dyn RequestObserver>>,
) -> Client {
    let settings = Settings { tls: tls.into(), ..Settings::new(BaseUrl::parse(&url(front, "")).unwrap()) };
    Client::new(settings, gate(None), observer).unwrap()
}

async fn get(client: &Client) -> Result<(), String> {
    let answer = client.send(&Request::new(Method::GET, "/x")).await;
    answer.map(drop).map_err(|error| {
        assert_eq!(error.category(), Category::Transport, "{error}");
        error.to_string()
    })
}

#[tokio::test]
async fn a_client_certificate_gets_in() {
    let (authority, behind) = (Authority::new(), plain().await);
    let front = authority.identity("localhost", &[]).serve(Some(&authority), behind.address);
    let identity = authority.identity("client", &[]);
    assert_eq!(get(&client(&front, identity.presented(authority.trusted()))).await, Ok(()));
}

#[tokio::test]
async fn without_the_right_client_certificate_nothing_is_asked_twice() {
    let (authority, behind) = (Authority::new(), plain().await);
    let front = authority.identity("localhost", &[]).serve(Some(&authority), behind.address);
    let (ear, _) = Ear::new();
    let without = observed(&front, authority.trusted(), Some(ear.clone()));
    let without = get(&without).await.unwrap_err();
    assert!(without.contains("requires a client certificate, but none is configured"), "{without}");
    let stranger = Authority::new().identity("client", &[]);
    let other = observed(&front, stranger.presented(authority.trusted()), Some(ear.clone()));
    let other = get(&other).await.unwrap_err();
    assert!(other.contains("refused the configured client certificate"), "{other}");
    assert_eq!((ear.attempts.load(Ordering::SeqCst), behind.connections()), (2, 0));
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_ends_a_request_at_once() {
    let (authority, behind) = (Authority::new(), plain().await);
    let front = authority.serve("localhost", behind.address);
    let error = get(&client(&front, Authority::new().trusted())).await.unwrap_err();
    assert!(error.ends_with("UnknownIssuer; name its authority in http.tls"), "{error}");
    assert_eq!(behind.connections(), 0);
}

/// `openssl req -x509` makes such certificates.
#[tokio::test]
async fn a_certificate_of_an_authority_is_not_that_of_a_server() {
    let (behind, (server, trusted)) = (plain().await, Authority::of_server("localhost"));
    let error = get(&client(&server.serve(None, behind.address), trusted)).await.unwrap_err();
    assert!(error.ends_with("the server needs one with basicConstraints=CA:FALSE"), "{error}");
}

#[tokio::test]
async fn names_count_unless_nothing_is_verified() {
    let (authority, behind) = (Authority::new(), plain().await);
    let front = authority.serve("elsewhere.test", behind.address);
    let error = get(&client(&front, authority.trusted())).await.unwrap_err();
    assert!(error.contains("not valid for name \"localhost\""), "{error}");
    assert_eq!(get(&client(&front, TlsConfig::insecure())).await, Ok(()));
}

fn url(front: &Front, path: &str) -> String {
    format!("https://localhost:{}{path}", front.address.port())
}

#[tokio::test]
async fn a_token_endpoint_elsewhere_is_reached_as_the_server_is() {
    let (authority, behind) = (Authority::new(), plain().await);
    let tokens = Recorder::start(|_| json(200, "{\"access_token\": \"t0ken\"}")).await;
    let front = authority.identity("localhost", &[]).serve(Some(&authority), behind.address);
    let endpoint = authority.identity("localhost", &[]).serve(Some(&authority), tokens.address);
    let tls = authority.identity("client", &[]).presented(authority.trusted());
    let auth = Auth::OAuth2(OAuth2 {
        token_url: url(&endpoint, "/token"),
        grant: Grant::ClientCredentials,
        client_id: Secret::from("app".to_owned()),
        client_secret: Secret::from("s3cret".to_owned()),
        scope: None,
        audience: None,
    });
    let base_url = BaseUrl::parse(&url(&front, "")).unwrap();
    let settings = Settings { tls: tls.into(), auth, ..Settings::new(base_url) };
    let client = Client::new(settings, gate(None), None).unwrap();
    assert_eq!(get(&client).await, Ok(()));
    assert_eq!(tokens.lines(), ["POST /token"]);
}

#[tokio::test]
async fn a_document_elsewhere_is_fetched_without_credentials() {
    let authority = Authority::new();
    let documents = Recorder::start(|_| json(200, "{\"openapi\": \"3.1.0\", \"paths\": {}}")).await;
    let front = authority.identity("localhost", &[]).serve(Some(&authority), documents.address);
    let elsewhere = authority.identity("localhost", &[]).serve(Some(&authority), documents.address);
    let known = client(&front, authority.identity("client", &[]).presented(authority.trusted()));
    let load = async |front: &Front| {
        let source = OpenApiSource::parse(&url(front, "/openapi.json")).unwrap();
        FetchedOpenApi::fetch(&known, source, None, None).await.map(drop)
    };
    load(&front).await.unwrap();
    let error = load(&elsewhere).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(error.to_string().contains("its certificate is not trusted"), "{error}");
    assert_eq!(documents.lines(), ["GET /openapi.json"]);
}

/// TLS files that tests replace.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// As Kubernetes and certbot do it: another file takes the place of the old one.
    fn replace(&self, name: &str, text: &str) {
        let next = self.path("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, self.path(name)).unwrap();
    }

    fn connector(&self, mutual: bool) -> Connector {
        let of_client = |name: &str| mutual.then(|| self.path(name));
        let files = TlsFiles {
            ca_cert_file: Some(self.path("ca.pem")),
            client_cert_file: of_client("client.pem"),
            client_key_file: of_client("client.key"),
            insecure_skip_verify: false,
        };
        Connector::new(files, Proxy::default(), |builder| builder).unwrap()
    }
}

async fn reaches(connector: &Connector, address: SocketAddr) -> bool {
    let url = format!("https://localhost:{}/", address.port());
    connector.client().get(url).send().await.is_ok()
}

#[tokio::test]
async fn replaced_authorities_count_for_the_next_request() {
    let (old, new, behind) = (Authority::new(), Authority::new(), plain().await);
    let (by_old, by_new) = (old.serve("localhost", behind.address), new.serve("localhost", behind.address));
    let files = Files::new();
    files.replace("ca.pem", &old.pem());
    let connector = files.connector(false);
    assert!(reaches(&connector, by_old.address).await);
    assert!(!reaches(&connector, by_new.address).await);
    files.replace("ca.pem", &new.pem());
    assert!(reaches(&connector, by_new.address).await);
    // Also if there was a connection already, which the old authorities had verified.
    assert!(!reaches(&connector, by_old.address).await);
}

#[tokio::test]
async fn files_that_cannot_be_used_leave_the_old_ones_in_use() {
    let (authority, behind) = (Authority::new(), plain().await);
    let front = authority.serve("localhost", behind.address);
    let files = Files::new();
    files.replace("ca.pem", &authority.pem());
    let connector = files.connector(false);
    files.replace("ca.pem", "nothing");
    assert!(reaches(&connector, front.address).await);
    std::fs::remove_file(files.path("ca.pem")).unwrap();
    assert!(reaches(&connector, front.address).await);
    files.replace("ca.pem", &Authority::new().pem());
    assert!(!reaches(&connector, front.address).await);
}

#[tokio::test]
async fn a_client_certificate_changes_when_its_key_fits() {
    let (authority, behind) = (Authority::new(), plain().await);
    let front = authority.identity("localhost", &[]).serve(Some(&authority), behind.address);
    let (stranger, member) = (Authority::new().identity("c", &[]), authority.identity("c", &[]));
    let files = Files::new();
    files.replace("ca.pem", &authority.pem());
    files.replace("client.pem", stranger.pem());
    files.replace("client.key", &stranger.key());
    let connector = files.connector(true);
    assert!(!reaches(&connector, front.address).await);
    files.replace("client.pem", member.pem());
    assert!(!reaches(&connector, front.address).await, "the certificate without its key");
    files.replace("client.key", &member.key());
    assert!(reaches(&connector, front.address).await);
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_is_a_replaced_file() {
    let (old, new, behind) = (Authority::new(), Authority::new(), plain().await);
    let front = new.serve("localhost", behind.address);
    let files = Files::new();
    for (name, authority) in [("old", &old), ("new", &new)] {
        std::fs::write(files.path(name), authority.pem()).unwrap();
    }
    let point = |at: &str| {
        let link = |to: &Path| std::os::unix::fs::symlink(files.path(at), to).unwrap();
        link(&files.path("next"));
        std::fs::rename(files.path("next"), files.path("ca.pem")).unwrap();
    };
    point("old");
    let connector = files.connector(false);
    assert!(!reaches(&connector, front.address).await);
    point("new");
    assert!(reaches(&connector, front.address).await);
}
