//! Metadata: in the repository, in a bundle, and from the server's own `OpenAPI` document.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use declarest_operator::crd::ManagedServer;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, condition, declarest};

fn repository(files: &[(&str, &str)]) -> GitRemote {
    let git = GitRemote::new();
    for (path, content) in files {
        git.write(path, content);
    }
    git.commit("first");
    git.push();
    git
}

const SHOPS: [(&str, &str); 7] = [
    (
        "shops/_/metadata.yaml",
        "resource: {id: /id, alias: /name, defaults: {value: \"{{include defaults.yaml}}\"}}
operations: {compare: {transforms: [{excludeAttributes: /version}]}}",
    ),
    ("shops/_/defaults.yaml", "tier: silver"),
    ("shops/rio/resource.yaml", "name: rio"),
    ("shops/leo/resource.yaml", "name: leo\ntier: gold"),
    ("shops/_/tills/_/metadata.yaml", "resource: {externalizedAttributes: [{path: /run, file: run.sh}]}"),
    ("shops/rio/tills/t1/resource.json", r#"{"id": "t1", "run": "{{include run.sh}}"}"#),
    ("shops/rio/tills/t1/run.sh", "echo open\n"),
];

fn server_with_ids() -> RestServer {
    RestServer::start(Config {
        collections: vec!["/shops/*/tills".to_owned()],
        server_ids: vec!["/shops".to_owned()],
        versioned: vec!["/shops".to_owned()],
        ..Config::default()
    })
    .unwrap()
}

#[tokio::test]
async fn what_a_repository_says_about_its_resources_holds() {
    let git = repository(&SHOPS);
    let server = server_with_ids();
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    let held = server.resources();
    let shop = |name: &str| held.iter().find(|(_, body)| body["name"] == name).unwrap();
    assert_eq!((&shop("rio").1["tier"], &shop("leo").1["tier"]), (&json!("silver"), &json!("gold")));
    // The till was created below the id that the server gave to its shop in the same run.
    let till = server.get(&format!("{}/tills/t1", shop("rio").0)).unwrap();
    assert_eq!(till["run"], "echo open\n");

    server.reset_counts();
    world.request_sync().await;
    world.finished("ManualRequest").await;
    assert!(server.writes().is_empty(), "{:?}", server.writes());

    git.write("shops/_/defaults.yaml", "tier: bronze");
    let revision = git.commit("another tier");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    assert_eq!(server.get(&shop("rio").0).unwrap()["tier"], "bronze");
    assert_eq!(server.writes().len(), 1, "{:?}", server.writes());
    assert!(server.duplicates().is_empty());
}

#[tokio::test]
async fn an_invalid_document_fails_what_it_governs_by_name() {
    let git = repository(&[
        ("shops/_/metadata.yaml", "resource:\n  ids: /name\n"),
        ("shops/rio/resource.json", r#"{"id": "rio"}"#),
        ("orders/o1/resource.json", r#"{"id": "o1"}"#),
    ]);
    let collections = vec!["/shops".to_owned(), "/orders".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    let (status, _) = world.policy_reason("PartialFailure").await;
    assert!(server.get("/orders/o1").is_some() && server.get("/shops/rio").is_none());
    let message = &status.failed_resources[0].message;
    assert!(message.contains("shops/_/metadata.yaml: line 2"), "{message}");
    assert!(message.contains("did you mean \"id\"?"), "{message}");

    git.write("shops/_/metadata.yaml", "resource:\n  id: /id\n");
    let revision = git.commit("the right key");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    assert!(server.get("/shops/rio").is_some());
}

/// A bundle that keeps tills at `/v2/registers`.
fn write_bundle(world: &World, name: &str, alias: &str) {
    let root = world.state().join("bundles").join(name);
    fs::create_dir_all(root.join("metadata/tills/_")).unwrap();
    let manifest = format!(
        "apiVersion: declarest.io/v1alpha1\nkind: MetadataBundle\nname: {name}\nversion: 1.0.0\n\
         description: Tills.\ndeclarest: {{metadataRoot: metadata}}\n"
    );
    fs::write(root.join("bundle.yaml"), manifest).unwrap();
    let metadata = format!("resource: {{remoteCollectionPath: /v2/registers, id: {alias}}}");
    fs::write(root.join("metadata/tills/_/metadata.yaml"), metadata).unwrap();
}

#[tokio::test]
async fn a_bundle_says_where_resources_are_and_the_repository_has_the_last_word() {
    let git = repository(&[("tills/t1/resource.json", r#"{"id": "t1", "serial": "s-1"}"#)]);
    let collections = vec!["/v2/registers".to_owned(), "/v3/registers".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let world = World::start().await;
    write_bundle(&world, "till-bundle", "/id");
    world.create_repository(&git.file_url(), Value::Null).await;
    let spec = json!({"http": {"baseURL": server.url()}, "metadata": {"bundle": "./till-bundle"}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    assert!(server.get("/v2/registers/t1").is_some());
    let status = world.api::<ManagedServer>().get("server").await.unwrap().status.unwrap();
    assert!(status.artifact_digests.unwrap().metadata.unwrap().starts_with("sha256:"));
    assert_eq!(condition(&status.conditions, "ArtifactsCached").reason, "Cached");

    git.write("tills/_/metadata.yaml", "resource: {remoteCollectionPath: /v3/registers}");
    let revision = git.commit("tills moved");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    assert!(server.get("/v3/registers/t1").is_some());
}

#[tokio::test]
async fn a_bundle_that_cannot_be_had_is_named_with_its_field() {
    let server = RestServer::start(Config::default()).unwrap();
    let world = World::start().await;
    for (bundle, reason, expected) in [
        ("./absent", "ArtifactUnavailable", "spec.metadata.bundle: "),
        ("../../etc", "SpecInvalid", "a local bundle must be below"),
        ("ftp://h/b.tar.gz", "SpecInvalid", "spec.metadata.bundle: "),
    ] {
        let spec = json!({"http": {"baseURL": server.url()}, "metadata": {"bundle": bundle}});
        world.create(declarest("ManagedServer", "server", &spec)).await;
        let message = world.server_reason(reason).await;
        assert!(message.contains(expected), "{message}");
        world.delete::<ManagedServer>("server").await;
    }
}

#[tokio::test]
async fn a_bundle_is_used_when_its_link_out_of_the_directory_is_removed() {
    let server = RestServer::start(Config::default()).unwrap();
    let world = World::start().await;
    let bundles = world.state().join("bundles");
    fs::create_dir_all(&bundles).unwrap();
    symlink(world.state(), bundles.join("till-bundle")).unwrap();
    let spec = json!({"http": {"baseURL": server.url()}, "metadata": {"bundle": "./till-bundle"}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    let message = world.server_reason("ArtifactUnavailable").await;
    assert!(message.contains("because of a symbolic link; remove the link"), "{message}");
    // No object changes.
    fs::remove_file(bundles.join("till-bundle")).unwrap();
    write_bundle(&world, "till-bundle", "/id");
    world.artifacts_cached("Cached").await;
    world.server_reason("Ready").await;
}

#[tokio::test]
async fn methods_come_from_the_openapi_document() {
    let git = repository(&[("tills/t1/resource.json", r#"{"id": "t1", "size": 1}"#)]);
    let collections = vec!["/tills".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let document = json!({
        "openapi": "3.0.3",
        "paths": {
            "/tills": {"get": {}, "post": {}},
            "/tills/{id}": {"get": {}, "patch": {}, "delete": {}},
        },
    });
    server.put_by_hand("/openapi", document);
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let url = format!("{}/openapi", server.url());
    let spec = json!({"http": {"baseURL": server.url()}, "openapi": {"url": url}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    git.write("tills/t1/resource.json", r#"{"id": "t1", "size": 2}"#);
    let revision = git.commit("a larger till");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    assert_eq!(server.get("/tills/t1").unwrap()["size"], 2);
    let methods: Vec<String> = server.writes().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["POST", "PATCH"]);
}

/// Serves an `OpenAPI` document below `/openapi.json`, until it is down. It answers 304 to clients that have it already.
async fn describe(down: Arc<AtomicBool>, known: Arc<AtomicBool>) -> String {
    let router = Router::new().fallback(move |headers: HeaderMap| async move {
        let tag = [("etag", "\"v1\"")];
        if down.load(Ordering::SeqCst) {
            return (StatusCode::INTERNAL_SERVER_ERROR, tag, "");
        }
        if headers.contains_key("if-none-match") {
            known.store(true, Ordering::SeqCst);
            return (StatusCode::NOT_MODIFIED, tag, "");
        }
        (StatusCode::OK, tag, "{\"openapi\": \"3.0.3\", \"paths\": {}}")
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/openapi.json", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn what_was_fetched_serves_after_a_restart_while_its_source_is_down() {
    let (down, known) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let url = describe(Arc::clone(&down), Arc::clone(&known)).await;
    let server = RestServer::start(Config::default()).unwrap();
    let mut world = World::start().await;
    let spec = json!({"http": {"baseURL": server.url()}, "openapi": {"url": url}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    world.server_reason("Ready").await;
    let (first, _) = world.artifacts_cached("Cached").await;
    let file = first.openapi_cache_path.clone().unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains("3.0.3"));

    down.store(true, Ordering::SeqCst);
    world.kill();
    world.launch().await;
    let (stale, reported) = world.artifacts_cached("StaleArtifact").await;
    assert!(
        reported.message.contains("spec.openapi: ") && reported.message.contains("status 500"),
        "{reported:?}"
    );
    assert_eq!(
        (&stale.artifact_digests, &stale.openapi_cache_path),
        (&first.artifact_digests, &first.openapi_cache_path)
    );
    world.server_reason("Ready").await;

    assert!(!known.load(Ordering::SeqCst));
    down.store(false, Ordering::SeqCst);
    world.kill();
    world.launch().await;
    world.artifacts_cached("Cached").await;
    assert!(known.load(Ordering::SeqCst), "what is in the cache is not fetched again");
}
