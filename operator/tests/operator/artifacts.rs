//! Bundles and documents that a ManagedServer fetches: which hosts get credentials, and what is used while they cannot be
//! fetched again.

use std::path::Path;

use declarest_operator::crd::ManagedServer;
use declarest_operator::crd::sync_policy::RunKind;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::published::{Asked, Published};
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, condition, declarest};

const KEY: &str = "canary-5b1e-first";
const NEXT_KEY: &str = "canary-5b1e-second";

/// A ManagedServer at `base_url` that shows the key of the Secret `app`, with its metadata at `metadata`.
async fn create_server(world: &World, base_url: &str, metadata: &str) {
    let key = json!({"header": "X-Key", "valueRef": {"name": "app", "key": "key"}});
    let spec = json!({
        "http": {"baseURL": base_url, "auth": {"customHeaders": [key]}, "defaultHeaders": {"X-Tenant": "blue"}},
        "metadata": {"url": metadata},
    });
    world.create(declarest("ManagedServer", "server", &spec)).await;
}

fn of_bundle(asked: Vec<Asked>) -> Vec<[String; 2]> {
    let bundles = asked.into_iter().filter(|[path, ..]| path == "/bundle.tar.gz");
    bundles.map(|[_, key, tenant, _]| [key, tenant]).collect()
}

#[tokio::test]
async fn the_key_of_a_server_fetches_its_own_bundle_and_no_other() {
    let (server, elsewhere) =
        (Published::start("ours", Some(KEY)).await, Published::start("theirs", None).await);
    let world = World::start().await;
    world.create_secret("app", &[("key", KEY)]).await;
    create_server(&world, &format!("{}/api", server.url), &format!("{}/bundle.tar.gz", server.url)).await;
    let (ours, _) = world.artifacts_cached("Cached").await;
    for [key, tenant] in of_bundle(server.take_asked()) {
        assert_eq!((key.as_str(), tenant.as_str()), (KEY, "blue"));
    }

    let spec = json!({"spec": {"metadata": {"url": format!("{}/bundle.tar.gz", elsewhere.url)}}});
    world.patch::<ManagedServer>("server", spec).await;
    let fetched = || async {
        let (theirs, _) = world.artifacts_cached("Cached").await;
        (theirs.artifact_digests != ours.artifact_digests).then_some(())
    };
    world.eventually("the bundle is another one", fetched).await;
    let asked = of_bundle(elsewhere.take_asked());
    assert!(!asked.is_empty() && asked.iter().flatten().all(String::is_empty), "{asked:?}");
    assert!(!world.log().contains("canary"), "the key is in the log");
}

#[tokio::test]
async fn a_bundle_that_cannot_be_fetched_again_serves_on() {
    let server = Published::start("ours", Some(KEY)).await;
    let world = World::start().await;
    world.create_secret("app", &[("key", KEY)]).await;
    create_server(&world, &server.url, &format!("{}/bundle.tar.gz", server.url)).await;
    let (first, _) = world.artifacts_cached("Cached").await;
    let digests = first.artifact_digests.clone();
    assert!(digests.as_ref().unwrap().metadata.as_ref().unwrap().starts_with("sha256:"));

    server.breaks(&["/bundle.tar.gz"]);
    // The Secret has the server looked at again.
    world.replace_secret("app", &[("other", "value")]).await;
    let (stale, reported) = world.artifacts_cached("StaleArtifact").await;
    assert!(
        reported.message.contains("spec.metadata.url: ") && reported.message.contains("status 500"),
        "{reported:?}"
    );
    assert_eq!((&stale.artifact_digests, &stale.metadata_cache_path), (&digests, &first.metadata_cache_path));
    let ready = condition(&stale.conditions, "Ready");
    assert_eq!((reported.status.as_str(), ready.status.as_str()), ("False", "True"));

    server.breaks(&[]);
    server.wants(NEXT_KEY);
    world.replace_secret("app", &[("key", NEXT_KEY)]).await;
    let (recovered, _) = world.artifacts_cached("Cached").await;
    assert_eq!(recovered.artifact_digests, digests);
    assert_eq!(of_bundle(server.take_asked()).last().unwrap()[0], NEXT_KEY);
}

#[tokio::test]
async fn an_invalid_first_bundle_is_fetched_again() {
    let server = Published::start("ours", Some(KEY)).await;
    server.corrupt();
    let world = World::start().await;
    world.create_secret("app", &[("key", KEY)]).await;
    create_server(&world, &server.url, &format!("{}/bundle.tar.gz", server.url)).await;
    let reported = world.server_reason("ArtifactUnavailable").await;
    assert!(reported.contains("spec.metadata.url: archive of bundle "), "{reported}");
    // Neither the object nor its Secret changes.
    server.publish("ours");
    world.artifacts_cached("Cached").await;
    world.server_reason("Ready").await;
}

/// A ManagedServer that authenticates with tokens, and has bundle and document on the same server.
fn with_tokens(server: &Published) -> Value {
    let oauth2 = json!({
        "tokenURL": format!("{}/token", server.url),
        "clientIDRef": {"name": "app", "key": "id"}, "clientSecretRef": {"name": "app", "key": "key"},
    });
    let spec = json!({
        "http": {"baseURL": server.url, "auth": {"oauth2": oauth2}},
        "metadata": {"url": format!("{}/bundle.tar.gz", server.url)},
        "openapi": {"url": format!("{}/openapi.json", server.url)},
    });
    declarest("ManagedServer", "server", &spec)
}

#[tokio::test]
async fn without_a_token_what_was_fetched_serves_after_a_restart() {
    let server = Published::start("ours", Some("Bearer issued-token")).await;
    let mut world = World::start().await;
    world.create_secret("app", &[("id", "operator"), ("key", KEY)]).await;
    server.breaks(&["/token"]);
    world.create(with_tokens(&server)).await;
    let reported = world.server_reason("ArtifactUnavailable").await;
    assert!(reported.contains("spec.metadata.url: no access token from "), "{reported}");
    assert!(of_bundle(server.take_asked()).is_empty(), "nothing is asked for without a token");

    server.breaks(&[]);
    world.kill();
    world.launch().await;
    let (first, _) = world.artifacts_cached("Cached").await;
    server.breaks(&["/token"]);
    world.kill();
    world.launch().await;
    let (stale, reported) = world.artifacts_cached("StaleArtifact").await;
    for artifact in ["spec.metadata.url: ", "spec.openapi: "] {
        assert!(reported.message.contains(artifact), "{reported:?}");
    }
    assert!(
        reported.message.contains("no access token from ") && !reported.message.contains("canary"),
        "{reported:?}"
    );
    assert_eq!(
        (&stale.artifact_digests, &stale.metadata_cache_path, &stale.openapi_cache_path),
        (&first.artifact_digests, &first.metadata_cache_path, &first.openapi_cache_path)
    );
    world.server_reason("Ready").await;

    server.breaks(&[]);
    world.kill();
    world.launch().await;
    world.artifacts_cached("Cached").await;
}

#[tokio::test]
async fn another_bundle_makes_the_policies_of_the_server_run_in_full() {
    let git = GitRemote::new();
    git.write("tills/t1/resource.json", r#"{"id": "t1"}"#);
    git.commit("first");
    git.push();
    let collections = vec!["/tills".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let published = Published::start("first", None).await;
    let mut world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let metadata = json!({"url": format!("{}/bundle.tar.gz", published.url)});
    let spec = json!({"http": {"baseURL": server.url()}, "metadata": metadata});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;

    // It is fetched again at every poll, and by every operator that starts.
    world.kill();
    published.publish("second");
    world.launch().await;
    let status = world.finished("DependencyChanged").await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn bundles_are_kept_in_the_directory_that_the_environment_names() {
    let published = Published::start("ours", Some(KEY)).await;
    let directory = tempfile::tempdir().unwrap();
    let variable = ("DECLAREST_BUNDLE_CACHE_DIR", directory.path().to_str().unwrap());
    let world = World::start_elected(&[variable], &[]).await;
    world.create_secret("app", &[("key", KEY)]).await;
    create_server(&world, &published.url, &format!("{}/bundle.tar.gz", published.url)).await;
    let (status, _) = world.artifacts_cached("Cached").await;
    let kept = status.metadata_cache_path.unwrap();
    assert!(Path::new(&kept).starts_with(directory.path()) && Path::new(&kept).exists(), "{kept}");
}
