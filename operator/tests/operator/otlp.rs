//! Traces and metrics, as a receiver of OTLP gets them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode as Code};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::canaries::canary;
use crate::support::git_remote::GitRemote;
use crate::support::otlp::{Behavior, Receiver, attribute};
use crate::support::world::World;

/// A managed server with one collection, which records the requests that it gets.
#[derive(Clone, Default)]
struct Shop {
    items: Arc<Mutex<BTreeMap<String, Value>>>,
    got: Arc<Mutex<Vec<Got>>>,
}

/// The method, the path and the `traceparent` of a request.
type Got = (String, String, Option<String>);

impl Shop {
    async fn start(&self) -> String {
        let shop = self.clone();
        let router = Router::new().fallback(move |request: Request| {
            let shop = shop.clone();
            async move { shop.answer(request).await }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, router).await });
        url
    }

    async fn answer(&self, request: Request) -> Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let parent = request.headers().get("traceparent");
        let parent = parent.map(|parent| parent.to_str().unwrap().to_owned());
        let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
        self.got.lock().unwrap().push((method.to_string(), path.clone(), parent));
        let mut items = self.items.lock().unwrap();
        if method == Method::GET && path == "/items" {
            return axum::Json(items.values().cloned().collect::<Vec<_>>()).into_response();
        }
        if method == Method::GET {
            let found = items.get(&path).cloned();
            return found
                .map_or(StatusCode::NOT_FOUND.into_response(), |item| axum::Json(item).into_response());
        }
        let item: Value = serde_json::from_slice(&body).unwrap();
        items.insert(format!("/items/{}", item["id"].as_str().unwrap()), item.clone());
        axum::Json(item).into_response()
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

/// Lets the operator apply one item to `shop`.
async fn sync(world: &World, shop: &Shop, http: Value) {
    let git = GitRemote::new();
    git.write("items/i1/resource.json", r#"{"id": "i1"}"#);
    let revision = git.commit("first");
    git.push();
    world.create_repository(&git.file_url(), Value::Null).await;
    let mut spec = json!({"baseURL": shop.start().await});
    for (field, value) in http.as_object().into_iter().flatten() {
        spec[field] = match value.as_str().and_then(|text| text.strip_prefix("+")) {
            Some(more) => json!(format!("{}{more}", spec[field].as_str().unwrap())),
            None => value.clone(),
        };
    }
    world.create_server(spec).await;
    world.create_policy(json!({"source": {"path": "/items"}})).await;
    world.applied(&revision).await;
}

/// The parent of a span in its trace.
fn parent<'a>(spans: &'a [Span], span: &Span) -> Option<&'a Span> {
    spans.iter().find(|other| other.trace_id == span.trace_id && other.span_id == span.parent_span_id)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[tokio::test]
async fn a_trace_shows_a_reconcile_its_phases_and_its_requests_without_secrets() {
    let receiver = Receiver::start(Behavior::Accept).await;
    let endpoint = format!("http://127.0.0.1:{}", receiver.port);
    let (key, query) = (canary("key"), canary("query"));
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%20b"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "200"),
    ];
    let world = World::start_in(&environment, &[]).await;
    world.create_secret("credentials", &[("key", &key)]).await;
    let shop = Shop::default();
    let header = json!([{"header": "X-Key", "valueRef": {"name": "credentials", "key": "key"}}]);
    let encoded = utf8_percent_encode(&query, NON_ALPHANUMERIC).to_string();
    let base_url = format!("+/?api_key={encoded}");
    sync(&world, &shop, json!({"baseURL": base_url, "auth": {"customHeaders": header}})).await;

    let spans = world
        .eventually("the write and its reconcile are exported", || async {
            let spans = receiver.received().spans;
            let write = spans.iter().find(|span| span.name == "POST" || span.name == "PUT")?;
            let root = std::iter::successors(Some(write), |span| parent(&spans, span)).last()?;
            (root.name == "reconcile").then(|| spans.clone())
        })
        .await;
    let write = spans.iter().find(|span| span.name == "POST" || span.name == "PUT").unwrap();
    let ancestors: Vec<&Span> =
        std::iter::successors(Some(write), |span| parent(&spans, span)).skip(1).collect();
    let names: Vec<&str> = ancestors.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["resource", "apply", "reconcile"]);
    assert!(ancestors[2].parent_span_id.is_empty());
    assert_eq!(attribute(&ancestors[0].attributes, "declarest.resource.path"), "/items/i1");
    assert_eq!(attribute(&ancestors[2].attributes, "controller"), "SyncPolicy");
    assert_eq!(attribute(&ancestors[2].attributes, "declarest.reason"), "Ready");
    assert_eq!(attribute(&write.attributes, "server.address"), "127.0.0.1");
    assert_eq!(attribute(&write.attributes, "http.response.status_code"), "200");

    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let read =
        named("GET").into_iter().find(|span| attribute(&span.attributes, "url.path") == "/items/i1").unwrap();
    assert_eq!(parent(&spans, read).unwrap().name, "plan");
    assert_eq!(attribute(&read.attributes, "error.type"), "404");
    assert_eq!(read.status.as_ref().unwrap().code(), Code::Error);
    let fetch = named("fetch")[0];
    assert_eq!(attribute(&parent(&spans, fetch).unwrap().attributes, "controller"), "ResourceRepository");

    let by_parent: HashMap<String, &Span> = spans
        .iter()
        .map(|span| (format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)), span))
        .collect();
    for (method, path, parent) in
        shop.got().iter().filter(|(_, path, _)| path == "/items/i1" || path == "/items")
    {
        let span =
            by_parent.get(parent.as_ref().unwrap()).unwrap_or_else(|| panic!("{method} {path} {parent:?}"));
        assert_eq!((&span.name, attribute(&span.attributes, "url.path").as_str()), (method, path.as_str()));
    }

    // An export may fall between two measurements of one reconcile.
    let names = [
        "syncpolicy_resources_applied_total",
        "syncpolicy_reconcile_duration_seconds",
        "leader",
        "workqueue_depth",
        "build_info",
    ];
    world
        .eventually("the metrics are exported", || async {
            let metrics = receiver.received().metrics;
            let has = |name| metrics.iter().any(|metric| metric.name == format!("declarest_operator_{name}"));
            names.iter().all(has).then_some(())
        })
        .await;
    let received = receiver.received();
    for resource in &received.resources {
        assert!(resource.contains("service.name=declarest-operator"), "{resource}");
        assert!(resource.contains("deployment.environment.name=test"), "{resource}");
    }
    assert!(received.headers.iter().all(|headers| headers["x-tenant"] == "a b"));
    for secret in [&key, &query, &encoded] {
        let leaks = |body: &Vec<u8>| body.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!received.bodies.iter().any(leaks), "{secret} was exported");
        assert!(!world.log().contains(secret.as_str()), "{secret} was logged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_or_fails_does_not_affect_syncs() {
    for behavior in [Behavior::Hang, Behavior::Fail] {
        let receiver = Receiver::start(behavior).await;
        let endpoint = format!("http://127.0.0.1:{}", receiver.port);
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "300"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "100"),
        ];
        let mut world = World::start_in(&environment, &[]).await;
        sync(&world, &Shop::default(), json!({})).await;
        world
            .eventually("several exports fail", || async {
                (receiver.received().bodies.len() > 6).then_some(())
            })
            .await;
        for signal in ["traces", "metrics"] {
            let failures = world
                .log()
                .lines()
                .filter(|line| {
                    line.contains("cannot export telemetry")
                        && line.contains(&format!(r#""signal":"{signal}""#))
                })
                .count();
            assert_eq!(failures, 1, "{}", world.log_tail());
        }
        let stopped = Instant::now();
        assert!(tokio::task::block_in_place(|| world.terminate()).success(), "{}", world.log_tail());
        assert!(stopped.elapsed() < Duration::from_secs(30), "{:?}", stopped.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_delays_the_end_by_at_most_its_limit() {
    let receiver = Receiver::start(Behavior::Hang).await;
    let endpoint = format!("http://127.0.0.1:{}", receiver.port);
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ];
    let mut world = World::start_in(&environment, &[]).await;
    sync(&world, &Shop::default(), json!({})).await;
    let stopped = Instant::now();
    assert!(tokio::task::block_in_place(|| world.terminate()).success(), "{}", world.log_tail());
    assert!(stopped.elapsed() < Duration::from_secs(30), "{:?}", stopped.elapsed());
    assert!(
        world.log().contains("the last traces and metrics could not be exported"),
        "{}",
        world.log_tail()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_process_exports_the_rest_to_a_host_that_objects_may_not_use() {
    let receiver = Receiver::start(Behavior::Accept).await;
    let endpoint = format!("http://localhost:{}/v1/traces", receiver.port);
    let metrics = format!("http://localhost:{}/v1/metrics", receiver.port);
    let environment = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", metrics.as_str()),
        ("OTEL_SERVICE_NAME", "declarest-east"),
        ("OTEL_TRACES_SAMPLER", "always_on"),
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "3600000"),
    ];
    let mut world = World::start_in(&environment, &["--allowed-hosts=127.0.0.1"]).await;
    sync(&world, &Shop::default(), json!({})).await;
    assert!(receiver.received().bodies.is_empty());
    assert!(tokio::task::block_in_place(|| world.terminate()).success(), "{}", world.log_tail());
    let received = receiver.received();
    assert!(received.spans.iter().any(|span| span.name == "apply"), "{}", world.log_tail());
    assert!(
        received.metrics.iter().any(|metric| metric.name == "declarest_operator_syncpolicy_reconcile_total")
    );
    assert!(received.resources.iter().all(|resource| resource.contains("service.name=declarest-east")));
}

#[tokio::test]
async fn without_a_receiver_requests_belong_to_no_trace() {
    let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), ("OTEL_SDK_DISABLED", "true")];
    let world = World::start_in(&off, &[]).await;
    let shop = Shop::default();
    sync(&world, &shop, json!({})).await;
    assert!(shop.got().iter().all(|(_, _, parent)| parent.is_none()));
    assert!(!world.log().contains("telemetry"), "{}", world.log_tail());
}

#[tokio::test]
async fn a_protocol_that_is_not_supported_ends_the_process_with_a_clear_error() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_declarest-operator"));
    let directory = tempfile::tempdir().unwrap();
    command.arg("standalone").arg("--manifests").arg(directory.path());
    command.arg("--state-dir").arg(directory.path().join("state"));
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(
        line["error"],
        "cannot export telemetry: OTEL_EXPORTER_OTLP_PROTOCOL: the protocol \"grpc\" is not supported; use \
         http/protobuf, for which receivers usually listen on port 4318"
    );
}
