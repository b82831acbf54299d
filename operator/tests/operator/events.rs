//! Events and log lines of artifacts, probes and proxies.

use declarest_operator::crd::ManagedServer;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;

use crate::support::published::Published;
use crate::support::world::{World, declarest};

/// Waits for an event, and returns its type and note.
pub async fn event(world: &World, reason: &str) -> (String, String) {
    let look = || async {
        let events = world.api::<Event>().list(&ListParams::default()).await.ok()?.items;
        let event = events.into_iter().find(|event| event.reason.as_deref() == Some(reason))?;
        Some((event.type_?, event.note?))
    };
    world.eventually(&format!("the event {reason}"), look).await
}

#[tokio::test]
async fn artifacts_and_probes_are_reported() {
    let published = Published::start("ours", None).await;
    let world = World::start().await;
    world.create_secret("app", &[("key", "value")]).await;
    let key = json!({"header": "X-Key", "valueRef": {"name": "app", "key": "key"}});
    let metadata = json!({"url": format!("{}/bundle.tar.gz", published.url)});
    let http = json!({"baseURL": published.url, "healthCheck": "/absent", "auth": {"customHeaders": [key]}});
    world.create(declarest("ManagedServer", "server", &json!({"http": http, "metadata": metadata}))).await;
    world.artifacts_cached("Cached").await;
    assert_eq!(event(&world, "ArtifactsCached").await.0, "Normal");
    assert!(world.log().contains("ProbeFailed"), "{}", world.log_tail());

    published.breaks(&["/bundle.tar.gz"]);
    world.replace_secret("app", &[("other", "value")]).await;
    world.artifacts_cached("StaleArtifact").await;
    let (type_, note) = event(&world, "DownloadFailed").await;
    assert!(type_ == "Warning" && note.contains("spec.metadata.url: "), "{type_}: {note}");
    assert!(world.log().contains("StaleArtifact"), "{}", world.log_tail());
}

#[tokio::test]
async fn a_first_download_that_fails_is_reported() {
    let published = Published::start("ours", None).await;
    published.breaks(&["/bundle.tar.gz"]);
    let world = World::start().await;
    let metadata = json!({"url": format!("{}/bundle.tar.gz", published.url)});
    let spec = json!({"http": {"baseURL": published.url}, "metadata": metadata});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    let (_, note) = event(&world, "DownloadFailed").await;
    assert!(note.contains("status 500"), "{note}");
    event(&world, "ArtifactUnavailable").await;
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_reported() {
    let world = World::start().await;
    let credentials = json!({"usernameRef": {"name": "absent", "key": "user"}, "passwordRef": {"name": "absent", "key": "p"}});
    let proxy = json!({"httpsURL": "http://proxy.example.test:3128", "auth": credentials});
    world.create_server(json!({"baseURL": "https://api.example.test", "proxy": proxy})).await;
    let (type_, note) = event(&world, "ProxyConfigFailed").await;
    assert!(type_ == "Warning" && note.contains("spec.http.proxy.auth.usernameRef"), "{type_}: {note}");
}

#[tokio::test]
async fn insecure_settings_are_reported_once() {
    let published = Published::start("ours", None).await;
    let world = World::start().await;
    let http = json!({"baseURL": published.url, "tls": {"insecureSkipVerify": true}});
    world.create_server(http).await;
    let message = world.server_reason("Ready").await;
    let insecure = "insecure: spec.http.tls.insecureSkipVerify: any certificate is accepted";
    assert!(message.ends_with(insecure), "{message}");
    assert_eq!(event(&world, "Insecure").await, ("Warning".to_owned(), insecure.to_owned()));
    world.patch::<ManagedServer>("server", json!({"spec": {"pollInterval": "11m"}})).await;
    let look = || async {
        let server = world.api::<ManagedServer>().get("server").await.ok()?;
        (server.status?.observed_generation == server.metadata.generation).then_some(())
    };
    world.eventually("the change is observed", look).await;
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let insecure = events.iter().filter(|event| event.reason.as_deref() == Some("Insecure"));
    assert_eq!(insecure.count(), 1);
}

#[tokio::test]
async fn a_cleanup_that_fails_is_reported() {
    let world = World::start().await;
    world.create_server(json!({"baseURL": "https://api.example.test"})).await;
    world.server_reason("Ready").await;
    // A file in the place of the directory of all servers cannot be removed like a directory.
    let directory = world.state().join("cache/managedservers");
    std::fs::remove_dir_all(&directory)
        .or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
        .unwrap();
    std::fs::write(&directory, "").unwrap();
    world.delete::<ManagedServer>("server").await;
    let (type_, note) = event(&world, "CleanupFailed").await;
    assert!(type_ == "Warning" && note.contains("cannot remove directory"), "{type_}: {note}");
}
