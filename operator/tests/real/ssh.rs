//! The operator fetches over SSH from a real sshd, on either API.

use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::sshd::{PASSPHRASE, Sshd};
use crate::support::world::World;

struct Scene {
    world: World,
    git: GitRemote,
    server: RestServer,
    sshd: Sshd,
}

async fn scene() -> Scene {
    let (git, sshd) = (GitRemote::new(), Sshd::start());
    for index in 0..1000 {
        git.write(&format!("items/i{index}/resource.json"), format!(r#"{{"id": "i{index}"}}"#));
    }
    git.commit("a thousand");
    git.push();
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    let world = World::start().await;
    world.create_server(json!({"baseURL": server.url()})).await;
    Scene { world, git, server, sshd }
}

fn ssh_auth(more: &Value) -> Value {
    let mut ssh = json!({
        "privateKeyRef": {"name": "ssh", "key": "key"},
        "knownHostsRef": {"name": "ssh", "key": "hosts"},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        ssh[field] = value.clone();
    }
    json!({"sshSecretRef": ssh})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_resources_over_ssh_with_a_locked_key() {
    let Scene { world, git, server, sshd } = scene().await;
    let (key, hosts) = (sshd.locked_client_key(), sshd.known_hosts());
    world.create_secret("ssh", &[("key", &key), ("hosts", &hosts), ("pass", PASSPHRASE)]).await;
    let auth = ssh_auth(&json!({"passphraseRef": {"name": "ssh", "key": "pass"}}));
    world.create_repository(&sshd.url(&git.bare()), auth).await;
    world.create_policy(json!({})).await;
    let status = world.applied(&git.head()).await;
    assert_eq!(status.resource_stats.unwrap().created, 1000);
    git.write("items/i7/resource.json", r#"{"id": "i7", "size": 7}"#);
    let revision = git.commit("seven");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    assert_eq!(server.get("/items/i7").unwrap()["size"], 7);
    assert!(!world.log().contains(PASSPHRASE), "the passphrase is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_host_key_is_refused_and_named() {
    let Scene { world, git, server, sshd } = scene().await;
    let (key, hosts) = (sshd.client_key(), sshd.wrong_known_hosts());
    world.create_secret("ssh", &[("key", &key), ("hosts", &hosts)]).await;
    world.create_repository(&sshd.url(&git.bare()), ssh_auth(&json!({}))).await;
    world.create_policy(json!({})).await;
    let message = world.repository_reason("AuthFailed").await;
    assert!(message.contains("127.0.0.1") && message.contains("SHA256:"), "{message}");
    assert_eq!(server.counts().total(), 0);
    // The right one, put in place while everything runs, is enough.
    let secret = json!({"stringData": {"hosts": sshd.known_hosts()}});
    world.patch::<k8s_openapi::api::core::v1::Secret>("ssh", secret).await;
    world.applied(&git.head()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_server_does_not_know_is_refused() {
    let Scene { world, git, sshd, .. } = scene().await;
    let (key, hosts) = (sshd.unknown_client_key(), sshd.known_hosts());
    world.create_secret("ssh", &[("key", &key), ("hosts", &hosts)]).await;
    world.create_repository(&sshd.url(&git.bare()), ssh_auth(&json!({}))).await;
    let message = world.repository_reason("AuthFailed").await;
    assert!(message.contains("ssh://"), "{message}");
}
