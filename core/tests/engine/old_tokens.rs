//! Access tokens that a server answers 403 to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::routing::post;
use declarest_core::path::LogicalPath;
use declarest_core::secrets::Secret;
use declarest_core::server::{Auth, BaseUrl, Client, Gate, Grant, OAuth2, Settings, Throttling};
use declarest_core::sync::{self, Options, Selection, Session, Stop};
use serde_json::json;

use crate::rest_server::{Config, Matcher};
use crate::world::World;

/// The URL of a token endpoint, and how many tokens it has given.
async fn token_endpoint() -> (String, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&given);
    let give = post(move || async move {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        Json(json!({"access_token": format!("token-number-{number}")}))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/token", give);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, given)
}

#[tokio::test]
async fn a_run_replaces_its_token_once_whatever_it_does() {
    let world = World::new(
        Config { collections: vec!["/read".to_owned(), "/write".to_owned()], ..Config::default() },
        &[("read/x/resource.json", r#"{"id":"x"}"#), ("write/y/resource.json", r#"{"id":"y"}"#)],
    );
    // One fails while the run observes, the other one when it writes.
    world.server.fail(Matcher::new("GET", "/read/x"), 403, usize::MAX);
    world.server.fail(Matcher::method("POST"), 403, usize::MAX);
    let (token_url, given) = token_endpoint().await;
    let secret = |text: &str| Secret::from(text.to_owned());
    let settings = Settings {
        auth: Auth::OAuth2(OAuth2 {
            token_url,
            grant: Grant::ClientCredentials,
            client_id: secret("app"),
            client_secret: secret("s3cret"),
            scope: None,
            audience: None,
        }),
        ..Settings::new(BaseUrl::parse(&world.server.url()).unwrap())
    };
    let gate = Arc::new(Gate::new(&Throttling::default()).unwrap());
    let session = Session { client: Client::new(settings, gate, None).unwrap(), ..world.session() };
    for runs in 1..=2 {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let report = sync::run(&session, selection, &Options::default(), &Stop::default()).await;
        assert_eq!(report.stats.failed, 2, "{report:?}");
        assert!(!format!("{report:?}").contains("token-number-"), "{report:?}");
        assert_eq!(given.load(Ordering::SeqCst), 1 + runs);
    }
}
