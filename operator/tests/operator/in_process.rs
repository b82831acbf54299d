//! Controllers within the test's process, for what no process on an API server can be made to do in
//! reasonable time: hold an object that the schema refuses, and panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use declarest_core::repository::Quota;
use declarest_core::transport::Names;
use declarest_operator::admission::Reviewer;
use declarest_operator::args::{Args, BindAddress, Command, ManagerOptions};
use declarest_operator::controller::context::Settings;
use declarest_operator::controller::expand::Expansion;
use declarest_operator::crd::{self, Limits, ManagedServer, SyncPolicy};
use declarest_operator::directories::Directories;
use declarest_operator::runtime::{Platform, operate};
use declarest_operator::standalone;
use http_body_util::BodyExt as _;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::admission::AdmissionRequest;
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::ports::free_ports;

const NAMESPACE: &str = "team";

/// Runs the controllers in a task until the guard is dropped.
fn run(client: &Client, state: &TempDir) -> DropGuard {
    run_on(platform(client, state))
}

fn run_on(platform: Platform) -> DropGuard {
    let stop = CancellationToken::new();
    let (options, stopped) = (options(), stop.clone());
    tokio::spawn(async move { operate(platform, &options, stopped).await });
    stop.drop_guard()
}

fn platform(client: &Client, state: &TempDir) -> Platform {
    Platform {
        client: client.clone(),
        directories: Directories::below(state.path()),
        identity: "test".to_owned(),
        metrics_exporter: None,
        election: None,
        keeper: None,
        allow_file_repositories: true,
        metrics_address: BindAddress::Off,
        metrics_readers: None,
        probe_address: BindAddress::Off,
        webhook_address: BindAddress::Off,
        admission: None,
        webhook_client: client.clone(),
    }
}

fn options() -> ManagerOptions {
    use clap::Parser as _;
    match Args::parse_from(["declarest-operator"]).into_command() {
        Command::Run(options) => options.manager,
        other => panic!("expected the default command, not {other:?}"),
    }
}

fn servers(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::erase::<ManagedServer>(&()))
}

fn server(name: &str, http: &Value) -> DynamicObject {
    let object = DynamicObject::new(name, &ApiResource::erase::<ManagedServer>(&()));
    object.data(json!({"spec": {"http": http}}))
}

/// Waits until the first condition, which is Ready, has this reason.
async fn until_reason(servers: &Api<DynamicObject>, name: &str, reason: &str) -> DynamicObject {
    let reported = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"]["conditions"][0]["reason"] == reason)
    };
    await_condition(servers.clone(), name, reported).await.unwrap().unwrap()
}

async fn delete(servers: &Api<DynamicObject>, object: &DynamicObject) {
    let (name, uid) = (object.name_any(), object.uid().unwrap());
    servers.delete(&name, &DeleteParams::default()).await.unwrap();
    await_condition(servers.clone(), &name, is_deleted(&uid)).await.unwrap();
}

/// Our definitions with a spec that may be anything, as an earlier schema might have been.
fn lax() -> Vec<CustomResourceDefinition> {
    let mut crds = crd::all();
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        let schema = version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        let anything = JSONSchemaProps {
            type_: Some("object".to_owned()),
            x_kubernetes_preserve_unknown_fields: Some(true),
            ..JSONSchemaProps::default()
        };
        schema.properties.as_mut().unwrap().insert("spec".to_owned(), anything);
    }
    crds
}

#[tokio::test]
async fn one_undecodable_object_is_reported_and_harms_no_other() {
    let (client, state) = (standalone::Api::new(lax()).unwrap().client(), tempfile::tempdir().unwrap());
    let servers = servers(&client);
    let bad = server("bad", &json!("https://api.example.test"));
    servers.create(&PostParams::default(), &bad).await.unwrap();
    let _running = run(&client, &state);
    let good = server("good", &json!({"baseURL": "https://api.example.test"}));
    servers.create(&PostParams::default(), &good).await.unwrap();
    until_reason(&servers, "good", "Ready").await;

    let bad = until_reason(&servers, "bad", "SpecInvalid").await;
    let message = bad.data["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("the object cannot be decoded: "), "{message}");
    delete(&servers, &bad).await;
}

#[tokio::test]
async fn an_object_that_becomes_undecodable_is_announced() {
    let (client, state) = (standalone::Api::new(lax()).unwrap().client(), tempfile::tempdir().unwrap());
    let [port] = free_ports();
    let metrics_address = BindAddress::Host(format!("127.0.0.1:{port}"));
    let _running = run_on(Platform { metrics_address, ..platform(&client, &state) });
    let servers = servers(&client);
    let shop = server("shop", &json!({"baseURL": "https://api.example.test"}));
    servers.create(&PostParams::default(), &shop).await.unwrap();
    until_reason(&servers, "shop", "Ready").await;
    let undecodable = Patch::Merge(json!({"spec": {"http": "https://api.example.test"}}));
    servers.patch("shop", &PatchParams::default(), &undecodable).await.unwrap();
    until_reason(&servers, "shop", "SpecInvalid").await;

    let scraped = reqwest::Client::builder().no_proxy().build().unwrap();
    let scraped = scraped.get(format!("http://127.0.0.1:{port}/metrics")).send().await.unwrap();
    let scraped = scraped.text().await.unwrap();
    let is_ready = |line: &&str| line.contains("resource_condition{") && line.contains(r#"type="Ready""#);
    let ready: Vec<&str> = scraped.lines().filter(is_ready).collect();
    assert!(ready.len() == 1 && ready[0].contains(r#"status="False""#), "{ready:?}");

    let events: Api<Event> = Api::namespaced(client, NAMESPACE);
    for _ in 0..3000 {
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let event = events.iter().find(|event| event.reason.as_deref() == Some("SpecInvalid"));
        if let Some(event) = event {
            let note = event.note.as_deref().unwrap();
            assert!(note.starts_with("the object cannot be decoded: "), "{note}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there is no event");
}

fn reviewer(client: &Client) -> Reviewer {
    let settings = Settings {
        workers: 1,
        sync_timeout: Duration::from_mins(1),
        quota: Quota::default(),
        limits: Limits::default(),
        expansion: Expansion::new(&[] as &[&str]).unwrap(),
        names: Names::default(),
    };
    Reviewer::new(client.clone(), settings, Vec::new())
}

/// The request of an API server for a review, about an object that is created or deleted.
fn reviewed(operation: &str, object: &DynamicObject) -> AdmissionRequest<DynamicObject> {
    let kind = &object.types.as_ref().unwrap().kind;
    let (version, plural) = ("v1alpha1", format!("{}s", kind.to_lowercase()));
    let created = operation == "CREATE";
    let request = json!({
        "uid": "7", "kind": {"group": "declarest.io", "version": version, "kind": kind},
        "resource": {"group": "declarest.io", "version": version, "resource": plural},
        "name": object.name_any(), "namespace": NAMESPACE, "operation": operation,
        "userInfo": {}, "dryRun": false, "options": null,
        "object": created.then_some(object), "oldObject": (!created).then_some(object),
    });
    serde_json::from_value(request).unwrap()
}

#[tokio::test]
async fn one_undecodable_policy_does_not_block_the_admission_of_others() {
    let client = standalone::Api::new(lax()).unwrap().client();
    let kind = ApiResource::erase::<SyncPolicy>(&());
    let policy = |name: &str, source: Value| {
        let spec = json!({
            "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "used"}, "source": source,
        });
        DynamicObject::new(name, &kind).data(json!({ "spec": spec }))
    };
    let policies: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &kind);
    policies.create(&PostParams::default(), &policy("bad", json!("/shops"))).await.unwrap();
    policies.create(&PostParams::default(), &policy("good", json!({"path": "/shops"}))).await.unwrap();
    let reviewer = reviewer(&client);

    let elsewhere = reviewed("CREATE", &policy("new", json!({"path": "/users"})));
    let response = reviewer.review::<SyncPolicy>(&elsewhere).await;
    assert!(response.allowed, "{:?}", response.result);
    let overlapping = reviewed("CREATE", &policy("new", json!({"path": "/shops/rio"})));
    let response = reviewer.review::<SyncPolicy>(&overlapping).await;
    assert!(response.result.message.contains("overlaps that of the SyncPolicy \"good\""), "{response:?}");

    let http = json!({"baseURL": "https://api.example.test"});
    let unused = reviewer.review::<ManagedServer>(&reviewed("DELETE", &server("unused", &http))).await;
    assert!(unused.allowed, "{:?}", unused.result);
    let used = reviewer.review::<ManagedServer>(&reviewed("DELETE", &server("used", &http))).await;
    assert!(used.result.message.contains("is used by SyncPolicy \"bad\", \"good\""), "{used:?}");
}

#[tokio::test]
async fn a_deleted_object_is_cleaned_up_without_a_finalizer() {
    let (client, state) = (standalone::Api::new(crd::all()).unwrap().client(), tempfile::tempdir().unwrap());
    let _running = run(&client, &state);
    let servers = servers(&client);
    let mut shop = server("shop", &json!({"baseURL": "https://api.example.test"}));
    // Earlier versions added one.
    shop.metadata.finalizers = Some(vec!["declarest.io/cleanup".to_owned()]);
    servers.create(&PostParams::default(), &shop).await.unwrap();
    let ready = until_reason(&servers, "shop", "Ready").await;
    assert_eq!(ready.finalizers(), [] as [&str; 0]);
    let cached = state.path().join("cache/managedservers").join(NAMESPACE).join("shop");
    std::fs::create_dir_all(&cached).unwrap();

    delete(&servers, &ready).await;
    for _ in 0..1000 {
        if !cached.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!cached.exists());

    // The next object of this name begins from the start.
    shop.metadata.finalizers = None;
    servers.create(&PostParams::default(), &shop).await.unwrap();
    until_reason(&servers, "shop", "Ready").await;
}

/// A client whose watches of `plural` panic at the next change after `broken` is set.
fn fragile(client: &Client, plural: &'static str, broken: &Arc<AtomicBool>) -> Client {
    let (inner, broken) = (client.clone(), Arc::clone(broken));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, broken) = (inner.clone(), Arc::clone(&broken));
        async move {
            let is_watch = request.uri().path().ends_with(plural)
                && request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let response = inner.send(request).await?;
            Ok::<_, kube::Error>(response.map(|body| {
                body.map_frame(move |frame| {
                    assert!(!(is_watch && broken.load(Ordering::Relaxed)), "a panic on purpose");
                    frame
                })
            }))
        }
    });
    Client::new(service, NAMESPACE)
}

#[tokio::test]
async fn the_process_ends_when_a_watch_has_ended() {
    let (client, state) = (standalone::Api::new(crd::all()).unwrap().client(), tempfile::tempdir().unwrap());
    let broken = Arc::new(AtomicBool::new(false));
    let platform = platform(&fragile(&client, "/managedservers", &broken), &state);
    let running = tokio::spawn(async move { operate(platform, &options(), CancellationToken::new()).await });
    let servers = servers(&client);
    let http = json!({"baseURL": "https://api.example.test"});
    servers.create(&PostParams::default(), &server("first", &http)).await.unwrap();
    until_reason(&servers, "first", "Ready").await;

    broken.store(true, Ordering::Relaxed);
    servers.create(&PostParams::default(), &server("second", &http)).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_mins(1), running).await;
    let error = ended.expect("the process runs on").unwrap().unwrap_err();
    assert_eq!(error.to_string(), "a task ended too early: watch of ManagedServer");
}
