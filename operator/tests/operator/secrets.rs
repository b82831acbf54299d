//! Policies whose desired state names secrets: what the server gets, what a rotation does, and what is never shown.

use declarest_core::secrets::file::{FileStore, FileStoreSettings, Kdf, KeyMaterial};
use declarest_core::secrets::{Secret, SecretKey};
use declarest_operator::crd::SyncPolicy;
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

use crate::support::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::vault::FakeVault;
use crate::support::world::{World, declarest};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const CANARY: &str = "c4nary/s3cret";

/// An encrypted file with one secret, as it is put into a Secret.
async fn seed(value: &str) -> String {
    seed_with(KEY, value).await
}

/// The same with another key.
pub async fn seed_with(key: &str, value: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets.json");
    let key = KeyMaterial::key(&Secret::from(key.to_owned())).unwrap();
    let store =
        FileStore::new(FileStoreSettings { beneath: None, path: path.clone(), key, kdf: Kdf::default() });
    let (key, value) = (SecretKey::parse("apps/billing:/pw").unwrap(), Secret::from(value.to_owned()));
    store.set(&key, &value).await.unwrap();
    std::fs::read_to_string(path).unwrap()
}

fn apps() -> (GitRemote, RestServer) {
    let git = GitRemote::new();
    git.write("apps/billing/resource.json", r#"{"id":"billing","pw":"{{secret .}}","tier":1}"#);
    git.write("apps/plain/resource.json", r#"{"id":"plain","tier":1}"#);
    git.commit("apps");
    git.push();
    let config = Config { collections: vec!["/apps".to_owned()], ..Config::default() };
    (git, RestServer::start(config).unwrap())
}

fn file_store() -> Value {
    let spec = json!({"file": {
        "path": "store.json",
        "encryption": {"keyRef": {"name": "store", "key": "key"}},
        "seedRef": {"name": "store", "key": "seed"},
    }});
    declarest("SecretStore", "store", &spec)
}

/// A policy that has applied everything.
async fn applied(store: Value, secret: &[(&str, &str)]) -> (World, GitRemote, RestServer) {
    let (world, (git, server)) = (World::start().await, apps());
    world.create_secret("store", secret).await;
    world.create(store).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"secretStoreRef": {"name": "store"}})).await;
    world.applied(&git.head()).await;
    (world, git, server)
}

async fn live(world: &World, server: &RestServer, value: &str) {
    let wanted = json!({"id": "billing", "pw": value, "tier": 1});
    let what = format!("the server has {wanted}");
    let look = || async { (server.get("/apps/billing").as_ref() == Some(&wanted)).then_some(()) };
    world.eventually(&what, look).await;
}

#[tokio::test]
async fn a_secret_of_an_encrypted_file_reaches_only_the_server() {
    let (world, git, server) = applied(file_store(), &[("key", KEY), ("seed", &seed(CANARY).await)]).await;
    live(&world, &server, CANARY).await;
    let status = world.applied(&git.head()).await;
    let shown = serde_json::to_string(&status).unwrap() + &world.log();
    assert!(!shown.contains(CANARY) && !shown.contains(KEY), "a secret is in status or log");
}

#[tokio::test]
async fn a_new_seed_is_applied_by_a_full_run() {
    let (world, _git, server) =
        applied(file_store(), &[("key", KEY), ("seed", &seed("old value").await)]).await;
    live(&world, &server, "old value").await;
    let change = json!({"stringData": {"seed": seed(CANARY).await}});
    world.patch::<v1::Secret>("store", change).await;
    live(&world, &server, CANARY).await;
    let status = world.finished("SecretChanged").await;
    assert_eq!(status.resource_stats.unwrap().failed, 0);
}

/// Never shows a password.
fn hiding(request: &Request, store: &mut Store) -> Answer {
    match (request.method.as_str(), store.get(&request.path)) {
        ("GET", Some(app)) => Answer::json(200, &json!({"id": app["id"], "tier": app["tier"]})),
        _ => request.rest(store, Ids::Stated("id")),
    }
}

#[tokio::test]
async fn a_rotated_secret_that_the_server_never_shows_is_written_once() {
    let (world, git) = (World::start().await, GitRemote::new());
    let server = ApiServer::start(&["/apps"], hiding);
    git.write("apps/_/metadata.yaml", "resource: {writeOnlyAttributes: [/pw]}\n");
    git.write("apps/billing/resource.json", r#"{"id":"billing","pw":"{{secret .}}","tier":1}"#);
    git.commit("apps");
    git.push();
    world.create_secret("store", &[("key", KEY), ("seed", &seed("old value").await)]).await;
    world.create(file_store()).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"secretStoreRef": {"name": "store"}})).await;
    world.applied(&git.head()).await;
    assert_eq!(server.writes(), ["POST /apps 201"]);
    let change = json!({"stringData": {"seed": seed(CANARY).await}});
    world.patch::<v1::Secret>("store", change).await;
    let status = world.finished("SecretChanged").await;
    assert_eq!(status.resource_stats.as_ref().unwrap().failed, 0);
    assert_eq!(server.writes(), ["POST /apps 201", "PUT /apps/billing 200"]);
    assert_eq!(server.get("/apps/billing").unwrap()["pw"], CANARY);
    assert!(!serde_json::to_string(&status).unwrap().contains(CANARY));
}

#[tokio::test]
async fn what_changes_in_vault_alone_is_seen_by_the_next_drift_check() {
    let vault = FakeVault::start("vault password").await;
    vault.put("apps/billing:/pw", "old value");
    let login = json!({
        "usernameRef": {"name": "store", "key": "user"}, "passwordRef": {"name": "store", "key": "password"},
    });
    let spec = json!({"vault": {"address": vault.url, "auth": {"userpass": login}}});
    let store = declarest("SecretStore", "store", &spec);
    let (world, _git, server) = applied(store, &[("user", "ops"), ("password", "vault password")]).await;
    live(&world, &server, "old value").await;
    vault.put("apps/billing:/pw", CANARY);
    world.patch::<SyncPolicy>("policy", json!({"spec": {"syncInterval": "10s"}})).await;
    live(&world, &server, CANARY).await;
}

#[tokio::test]
async fn a_missing_secret_fails_its_resource_and_no_other() {
    let (world, (git, server)) = (World::start().await, apps());
    world.create_secret("store", &[("key", KEY)]).await;
    let mut store = file_store();
    store["spec"]["file"].as_object_mut().unwrap().remove("seedRef");
    world.create(store).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"secretStoreRef": {"name": "store"}})).await;
    let (status, message) = world.policy_reason("PartialFailure").await;
    assert_eq!(status.failed_resources[0].reason, "SecretUnreadable");
    assert!(message.contains("apps/billing:/pw"), "{message}");
    assert!(server.get("/apps/plain").is_some() && server.get("/apps/billing").is_none());
}

/// A later policy with the same name writes the attribute, because another client may have changed it.
#[tokio::test]
async fn the_record_of_write_only_attributes_goes_with_its_policy() {
    let git = GitRemote::new();
    git.write("users/_/metadata.yaml", "resource: {writeOnlyAttributes: [/password]}\n");
    git.write("users/ana/resource.json", r#"{"id": "ana", "password": "declared"}"#);
    git.commit("users");
    git.push();
    let server = ApiServer::rest(&["/users"], Ids::Stated("id"));
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    let record = world.state().join("cache/syncpolicies").join(&world.namespace).join("policy");
    assert!(record.exists());
    world.delete::<SyncPolicy>("policy").await;
    world.removed(&record).await;
    server.put("/users/ana", json!({"id": "ana", "password": "changed"}));
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    assert_eq!(server.get("/users/ana"), Some(json!({"id": "ana", "password": "declared"})));
}
