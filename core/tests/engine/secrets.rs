//! Placeholders in desired state, and the secrets that are sent in their place and shown nowhere.

use axum::Router;
use axum::http::StatusCode;
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Mode, Options, Report, Selection, Session, Stop};
use rstest::rstest;
use tokio::net::TcpListener;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::client::client;
use crate::rest_server::Config;
use crate::world::{World, failure, json};

const CANARY: &str = "c4nary/s3cret";

fn apps(payload: &str) -> World {
    let config = Config { collections: vec!["/apps".to_owned()], ..Config::default() };
    World::new(config, &[("apps/billing/resource.json", payload)])
}

#[rstest]
#[case::implicit(r#"{"id":"billing","pw":"{{secret .}}"}"#, "apps/billing:/pw")]
#[case::explicit(r#"{"id":"billing","pw":"{{secret main}}"}"#, "apps/billing:main")]
#[case::whole(r#""{{secret .}}""#, "apps/billing:.")]
#[tokio::test]
async fn the_server_gets_the_value(#[case] payload: &str, #[case] key: &str) {
    let whole = format!(r#"{{"id":"billing","pw":"{CANARY}"}}"#);
    let value = if key.ends_with(":.") { &whole } else { CANARY };
    let world = apps(payload).with_secrets(&[(key, value)]).await;
    assert_eq!(world.sync().await.stats.created, 1);
    assert_eq!(world.live("/apps/billing"), whole);
    assert_eq!(world.sync().await.stats.unchanged, 1, "what is compared is the value");
    assert_eq!(world.writes(), ["POST /apps 201"]);
}

#[tokio::test]
async fn a_payload_that_is_a_secret_takes_no_defaults() {
    let whole = format!(r#"{{"id":"billing","pw":"{CANARY}"}}"#);
    let world = apps(r#""{{ secret . }}""#).with_secrets(&[("apps/billing:.", &whole)]).await;
    world.declare("apps/_/metadata.yaml", "resource: {defaults: {value: {tier: silver}}}");
    assert_eq!(world.sync().await.stats.created, 1);
    assert_eq!(world.live("/apps/billing"), whole);
    assert_eq!(world.sync().await.stats.unchanged, 1);
}

#[tokio::test]
async fn the_descriptor_of_a_payload_needs_no_store() {
    let world = apps(r#"{"id":"billing","type":"{{payload_type .}}"}"#);
    assert_eq!(world.sync().await.stats.created, 1);
    assert_eq!(world.live("/apps/billing"), r#"{"id":"billing","type":"json"}"#);
}

#[tokio::test]
async fn a_rotated_secret_is_sent_by_the_next_run() {
    let payload = r#"{"id":"billing","pw":"{{secret .}}"}"#;
    let world = apps(payload).with_secrets(&[("apps/billing:/pw", "first one")]).await;
    world.sync().await;
    world.store_secret("apps/billing:/pw", CANARY).await;
    assert_eq!(world.sync().await.stats.updated, 1);
    assert_eq!(world.live("/apps/billing"), format!(r#"{{"id":"billing","pw":"{CANARY}"}}"#));
}

#[rstest]
#[case::no_store(
    None,
    "SecretStoreMissing",
    "/apps/billing: secret provider is not configured: the value at \"/pw\" is a placeholder; configure a secret store"
)]
#[case::no_such_key(
    Some("apps/other:/pw"),
    "SecretUnreadable",
    "/apps/billing: cannot read the secret apps/billing:/pw for \"/pw\": "
)]
#[tokio::test]
async fn what_cannot_be_resolved_is_not_sent(
    #[case] stored: Option<&str>,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let mut world = apps(r#"{"id":"billing","pw":"{{secret .}}"}"#);
    if let Some(key) = stored {
        world = world.with_secrets(&[(key, CANARY)]).await;
    }
    let reported = failure(&world.sync().await);
    assert_eq!(reported.0, reason);
    assert!(reported.1.starts_with(message), "{}", reported.1);
    assert!(world.server.log().is_empty(), "nothing was asked for");
}

#[tokio::test]
async fn a_plan_shows_that_a_secret_differs_and_not_what_it_is() {
    let payload = r#"{"id":"billing","pw":"{{secret .}}","copy":{"of":"{{secret pw}}"}}"#;
    let secrets = [("apps/billing:/pw", CANARY), ("apps/billing:pw", CANARY)];
    let world = apps(payload).with_secrets(&secrets).await;
    let other = r#"{"id":"billing","pw":"live-s3cret","copy":{"of":"live-s3cret"},"log":"live-s3cret"}"#;
    world.server.put_by_hand("/apps/billing", json(other));
    let options = Options { mode: Mode::Observe, keep_compared: true, ..Options::default() };
    let plan = world.plan(&options).await;
    let differences: Vec<&str> = plan.actions[0].differences.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(differences, ["/copy/of", "/log", "/pw"]);
    let shown = format!("{} {:?}", serde_json::to_string(&plan).unwrap(), plan.actions);
    assert!(shown.contains("{{secret .}}"));
    for hidden in [CANARY, "live-s3cret"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

#[tokio::test]
async fn an_echo_of_the_server_is_shown_without_the_secret() {
    let echo = Router::new().fallback(|method: axum::http::Method, body: String| async move {
        if method == "POST" {
            (StatusCode::UNPROCESSABLE_ENTITY, body)
        } else {
            (StatusCode::NOT_FOUND, body)
        }
    });
    let world = apps(r#"{"id":"billing","pw":"{{secret .}}"}"#);
    let world = world.with_secrets(&[("apps/billing:/pw", CANARY)]).await;
    let (_, message) = failure(&run_against(&world, echo).await);
    assert!(message.contains("422") && message.contains("<redacted>"), "{message}");
    assert!(!message.contains(CANARY), "{message}");
}

/// A run over everything against a server of its own.
async fn run_against(world: &World, router: Router) -> Report {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async { axum::serve(listener, router).await });
    let session = Session { client: client(&url), ..world.session() };
    let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let report = sync::run(&session, everything, &Options::default(), &Stop::default()).await;
    server.abort();
    report
}

#[tokio::test]
async fn a_secret_in_a_path_is_never_shown() {
    let value = "c4nary&s3cret<é";
    // As URLs have it, and as the encoder of Go's library writes it.
    let echo = Router::new().fallback(|uri: axum::http::Uri| async move {
        (StatusCode::BAD_REQUEST, format!(r#"{{"error":"{uri}: c4nary\u0026s3cret\u003cé"}}"#))
    });
    let world = apps(r#"{"id":"billing","note":"{{secret .}}"}"#);
    world.declare("apps/_/metadata.yaml", "operations: {get: {path: \"/things/{{/note}}\"}}");
    let world = world.with_secrets(&[("apps/billing:/note", value)]).await;
    let (_, message) = failure(&run_against(&world, echo).await);
    assert_eq!(
        message,
        r#"GET /things/<redacted>: remote request failed with status 400: {"error":"/things/<redacted>: <redacted>"}"#
    );
}

#[tokio::test]
async fn the_failure_of_one_resource_does_not_show_the_secret_of_another() {
    let echo = Router::new().fallback(|| async {
        // The excerpt ends within it.
        (StatusCode::BAD_REQUEST, format!("{CANARY} {}{CANARY}", "x".repeat(230)))
    });
    let world = apps(r#"{"id":"billing","pw":"{{secret .}}"}"#);
    world.declare("apps/shop/resource.json", r#"{"id":"shop"}"#);
    let world = world.with_secrets(&[("apps/billing:/pw", CANARY)]).await;
    let report = run_against(&world, echo).await;
    assert_eq!(report.failures.len(), 2);
    for failure in report.failures {
        assert!(failure.message.contains("<redacted>"), "{failure:?}");
        assert!(!failure.message.contains("c4n"), "{failure:?}");
    }
}

/// A server that accepts no writes of its only token, whose id is the token itself.
fn tokens() -> (ApiServer, World) {
    let server = ApiServer::start(&["/tokens"], |request, store| match request.method.as_str() {
        "GET" => request.rest(store, Ids::Given),
        _ => Answer::json(500, &serde_json::json!({"error": format!("cannot write {}", request.path)})),
    });
    server.put(&format!("/tokens/{CANARY_ID}"), serde_json::json!({"id": CANARY_ID, "name": "admin"}));
    let metadata = "resource: {id: /id, alias: /name, secretAttributes: [/id]}";
    (server, World::new(Config::default(), &[("tokens/_/metadata.yaml", metadata)]))
}

const CANARY_ID: &str = "c4nary*7f3a91";
const TOKEN: &str = r#"{"name":"admin","note":"new"}"#;

#[rstest]
#[case::update(true)]
#[case::delete(false)]
#[tokio::test]
async fn failures_do_not_show_an_id_that_is_a_secret(#[case] declared: bool) {
    let (server, world) = tokens();
    let candidates: &[_] = if declared { &[] } else { &[("/tokens/admin", TOKEN)] };
    if declared {
        world.declare("tokens/admin/resource.json", TOKEN);
    }
    let options = Options { allow_empty: true, ..Options::default() };
    let report = world.sync_with(server.url(), candidates, &options).await;
    let (_, message) = failure(&report);
    assert!(message.contains("<redacted>"), "{message}");
    assert!(!format!("{report:?}").contains("c4nary"), "{report:?}");
}

/// Only the placeholder in Git shows that the value is a secret.
#[tokio::test]
async fn a_reference_does_not_show_the_value_of_a_placeholder() {
    let world = World::new(Config::default(), &[]).with_secrets(&[("users/ana:/pin", "c4nary-pin")]).await;
    world.declare("users/ana/resource.json", r#"{"id":"ana","pin":"{{secret .}}"}"#);
    world.declare("groups/staff/resource.json", r#"{"id":"staff","code":"{{ref \"/users/ana\" \"/pin\"}}"}"#);
    let server = ApiServer::rest(&["/users", "/groups"], Ids::Stated("id"));
    server.put("/users/ana", json(r#"{"id": "ana", "pin": "c4nary-pin"}"#));
    server.put("/groups/staff", json(r#"{"id": "staff", "code": "none"}"#));
    for path in ["/", "/groups"] {
        let session = Session { client: client(server.url()), ..world.session() };
        let scope = LogicalPath::parse(path).unwrap();
        let selection = Selection::full(session.tree.as_ref(), &scope, true).unwrap();
        let plan = sync::plan(&session, selection, &Options::default(), &Stop::default()).await;
        assert!(plan.failures.is_empty(), "{:?}", plan.failures);
        let shown = serde_json::to_string(&plan).unwrap();
        assert!(shown.contains("/groups/staff") && !shown.contains("c4nary"), "{shown}");
    }
}

/// The server has further tokens, so a list shows that it does not have one with the text of the placeholder.
#[rstest]
#[case::id("{id: /id, secretAttributes: [/id]}")]
#[case::id_and_alias("{id: /id, alias: /name, secretAttributes: [/id]}")]
#[case::alias("{alias: /id, secretAttributes: [/id]}")]
#[tokio::test]
async fn a_name_that_is_a_secret_is_that_of_the_server(#[case] rules: &str) {
    let config = Config { collections: vec!["/tokens".to_owned()], ..Config::default() };
    let metadata = format!("resource: {rules}");
    let files = [
        ("tokens/_/metadata.yaml", metadata.as_str()),
        ("tokens/admin/resource.json", r#"{"id": "{{secret .}}", "name": "admin"}"#),
        ("tokens/dev/resource.json", r#"{"id": "{{secret .}}", "name": "dev"}"#),
    ];
    let secrets = [("tokens/admin:/id", "c4nary-1"), ("tokens/dev:/id", "c4nary-2")];
    let world = World::new(config, &files).with_secrets(&secrets).await;
    for number in 0..23 {
        let token = format!("t{number}");
        let content = json(&format!(r#"{{"id": "{token}", "name": "{token}"}}"#));
        world.server.put_by_hand(&format!("/tokens/{token}"), content);
    }
    for run in 0..3 {
        let report = world.sync_on(&world.server.url(), &[]).await;
        let created = if run == 0 { 2 } else { 0 };
        assert_eq!((report.stats.created, report.stats.failed), (created, 0), "{report:?}");
    }
    assert_eq!(world.live("/tokens/c4nary-1"), r#"{"id":"c4nary-1","name":"admin"}"#);
    assert_eq!(world.live("/tokens/c4nary-2"), r#"{"id":"c4nary-2","name":"dev"}"#);
}
