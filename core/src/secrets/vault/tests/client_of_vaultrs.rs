//! The reasons why the requests of `vaultrs` are not sent by its own client. If one of these tests fails, a new version
//! may make our transport unnecessary.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use rustify::endpoint::MiddleWare as _;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, span};
use vaultrs::api::EndpointMiddleware;
use vaultrs::api::token::requests::LookupTokenSelfRequest;
use vaultrs::client::{VaultClient, VaultClientSettings};
use vaultrs::error::ClientError;

use super::*;
use crate::transport::{TlsConfig, client_builder};

/// Builds the client with our HTTP client and without the environment.
fn client(server: &Server) -> VaultClient {
    let http = client_builder(&TlsConfig::default(), &Proxy::default()).build().unwrap();
    let middle =
        EndpointMiddleware { token: TOKEN.to_owned(), version: "v1".to_owned(), wrap: None, namespace: None };
    let settings = VaultClientSettings {
        address: server.url.parse().unwrap(),
        ca_certs: Vec::new(),
        identity: None,
        timeout: None,
        token: TOKEN.to_owned(),
        verify: true,
        version: 1,
        wrapping: false,
        namespace: None,
        proxy: None,
    };
    VaultClient { http: rustify::clients::reqwest::Client::new(&server.url, http), middle, settings }
}

async fn read(server: &Server) -> Result<HashMap<String, String>, ClientError> {
    vaultrs::kv2::read(&client(server), "secret", "a:k").await
}

#[tokio::test]
async fn an_answer_of_any_size_is_read() {
    let length = 16 << 20;
    let server = Server::start(move |_, _| {
        let metadata = json!({"created_time": "", "deletion_time": "", "destroyed": false, "version": 1});
        let data = json!({"data": {"value": "v".repeat(length)}, "metadata": metadata});
        let lease = json!({"lease_id": "", "lease_duration": 0, "renewable": false, "request_id": ""});
        let mut answer = lease;
        answer["data"] = data;
        Reply::json(200, &answer)
    })
    .await;
    assert_eq!(read(&server).await.unwrap()["value"].len(), length);
}

#[test]
fn the_token_is_not_marked_as_sensitive() {
    let middle =
        EndpointMiddleware { token: TOKEN.to_owned(), version: "v1".to_owned(), wrap: None, namespace: None };
    let mut request = http::Request::get("http://vault/auth/token/lookup-self").body(Vec::new()).unwrap();
    middle.request(&LookupTokenSelfRequest {}, &mut request).unwrap();
    assert!(!request.headers()["x-vault-token"].is_sensitive());
}

/// Collects the text of all events.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0.lock().unwrap(), "{value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn errors_of_vault_are_logged_as_they_are_and_lose_retry_after() {
    let server = Server::start(|seen, _| {
        let echo = json!({"errors": [format!("slow down, {}", token(seen))]});
        Reply::json(429, &echo).with("retry-after", "7")
    })
    .await;
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let error = read(&server).await.unwrap_err();
    drop(guard);
    assert!(log.0.lock().unwrap().contains(TOKEN), "{:?}", log.0);
    // The variant has no other fields.
    assert!(matches!(error, ClientError::APIError { code: 429, errors: _ }), "{error:?}");
}
