//! The kind SecretStore: encrypted files and their seeds, logins at a Vault, and whom their Secrets wake.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use declarest_operator::crd::{ResourceRepository, SecretStore, SecretStoreStatus, SyncPolicy};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::network::RecordingProxy;
use crate::support::ports::free_ports;
use crate::support::rest_server::{Config, RestServer};
use crate::support::vault::FakeVault;
use crate::support::world::{World, declarest, ready};

/// The bytes 00 01 02 … 1f.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// With that key, `{"secrets":{"apps/billing:/dbPassword":"s3cr3t-1"}}`.
const SEED: &str = r#"{"version":1,"nonce":"AAECAwQFBgcICQoL","ciphertext":"PCClfqaXp2/+Y63wk4gIHfD55V2cFzYSX13K4X85YcFyZ8GOy+MougeXHJ+78wUJzCQd78AjQECiqX/x1ARpzihIQQ=="}"#;

fn reference(name: &str, key: &str) -> Value {
    json!({"name": name, "key": key})
}

/// A file store with more of its spec.
fn file(more: &Value) -> Value {
    let mut file = json!({"path": "app/store.json", "encryption": {"keyRef": reference("store", "key")}});
    for (field, value) in more.as_object().into_iter().flatten() {
        file[field] = value.clone();
    }
    declarest("SecretStore", "store", &json!({"file": file}))
}

fn seeded() -> Value {
    file(&json!({"seedRef": reference("store", "seed")}))
}

fn state_file(world: &World) -> PathBuf {
    world.state().join("secrets").join(&world.namespace).join("store/app/store.json")
}

/// Waits until Ready of the store has this reason and its message this part.
async fn reported(world: &World, reason: &str, part: &str) -> SecretStoreStatus {
    let api = world.api::<SecretStore>();
    let what = format!("the store says {reason}: {part}");
    world
        .eventually(&what, || async {
            let status = api.get("store").await.ok()?.status?;
            let ready = ready(&status.conditions);
            (ready.reason == reason && ready.message.contains(part)).then_some(status)
        })
        .await
}

#[tokio::test]
async fn a_seed_becomes_a_private_file_that_decrypts() {
    let world = World::start().await;
    world.create(seeded()).await;
    reported(&world, "DependencyInvalid", "/store does not exist").await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    let status = reported(&world, "Ready", "number of secrets: 1").await;
    let path = PathBuf::from(status.resolved_path.unwrap());
    assert_eq!(path, state_file(&world));
    assert_eq!(fs::read_to_string(&path).unwrap(), SEED);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(status.provider.as_deref(), Some("file"));
    assert!(!world.log().contains(KEY) && !world.log().contains("s3cr3t-1"), "a secret is in the log");

    // The seed was a copy, which goes with the object.
    world.delete::<SecretStore>("store").await;
    world.removed(&path).await;
}

#[tokio::test]
async fn a_wrong_key_is_reported_until_its_secret_is_corrected() {
    let world = World::start().await;
    world.create_secret("store", &[("key", &KEY.replace('1', "2")), ("seed", SEED)]).await;
    world.create(seeded()).await;
    reported(&world, "DecryptFailed", "spec.file.seedRef: cannot decrypt secret file ").await;
    assert!(!state_file(&world).exists(), "what does not decrypt is not kept");
    world.replace_secret("store", &[("key", "too short")]).await;
    reported(&world, "DependencyInvalid", "spec.file.encryption.keyRef: ").await;
    world.replace_secret("store", &[("key", KEY)]).await;
    reported(&world, "Ready", "number of secrets: 1").await;
}

#[tokio::test]
async fn a_broken_seed_leaves_the_file_and_a_new_one_replaces_it() {
    let world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    world.create(seeded()).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    world.replace_secret("store", &[("seed", &SEED.replace("PCCl", "AAAA"))]).await;
    reported(&world, "DecryptFailed", "spec.file.seedRef: ").await;
    assert_eq!(fs::read_to_string(state_file(&world)).unwrap(), SEED);
    // The same secrets, in another text.
    let spaced = SEED.replace(',', ", ");
    world.replace_secret("store", &[("seed", &spaced)]).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    assert_eq!(fs::read_to_string(state_file(&world)).unwrap(), spaced);
}

#[tokio::test]
async fn what_was_stored_after_the_seed_outlives_a_restart() {
    let mut world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    world.create(seeded()).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    let changed = SEED.replace(',', " ,");
    fs::write(state_file(&world), &changed).unwrap();
    world.kill();
    world.launch().await;
    // Anything that makes it look again.
    world.replace_secret("store", &[("other", "x")]).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    assert_eq!(fs::read_to_string(state_file(&world)).unwrap(), changed);
}

/// Other users may write to the directory of a store, and reading a pipe waits for a writer.
#[tokio::test]
async fn a_pipe_in_the_place_of_a_digest_does_not_block() {
    let mut world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    world.create(seeded()).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    world.kill();
    let marker = state_file(&world).with_extension("json.seed");
    fs::remove_file(&marker).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &marker, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    world.launch().await;
    world.replace_secret("store", &[("other", "x")]).await;
    reported(&world, "StoreUnavailable", "store.json.seed: ").await;
    fs::remove_file(&marker).unwrap();
    world.replace_secret("store", &[("other", "y")]).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    assert!(marker.is_file());
}

#[tokio::test]
async fn a_store_that_would_be_lost_says_so_once() {
    let world = World::start().await;
    world.create_secret("store", &[("key", KEY)]).await;
    world.create(file(&json!({}))).await;
    reported(&world, "Ready", "number of secrets: 0; the file is lost if the operator's state directory")
        .await;
    assert!(!state_file(&world).exists(), "looking makes no file");
    let events = world.api::<Event>();
    world
        .eventually("a warning is there", || async {
            let events = events.list(&ListParams::default()).await.ok()?.items;
            events
                .into_iter()
                .find(|event| event.reason.as_deref() == Some("EphemeralStorage"))
                .filter(|event| event.type_.as_deref() == Some("Warning"))
        })
        .await;
    // A file of another origin is not a copy of anything.
    fs::write(state_file(&world), SEED).unwrap();
    world.replace_secret("store", &[("other", "x")]).await;
    reported(&world, "Ready", "number of secrets: 1").await;
    world.delete::<SecretStore>("store").await;
    assert!(state_file(&world).exists());
}

#[tokio::test]
async fn a_store_on_a_claim_waits_for_it_and_lives_where_it_is_mounted() {
    let world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    let storage = json!({"existingPVC": {"name": "absent"}});
    world.create(file(&json!({"storage": storage}))).await;
    let missing = format!("spec.file.storage.existingPVC: PersistentVolumeClaim {}/absent", world.namespace);
    reported(&world, "DependencyInvalid", &missing).await;

    let volume = world.state().join("volumes").join(&world.namespace).join("store-secrets");
    fs::create_dir_all(&volume).unwrap();
    let pvc = json!({"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Mi"}});
    let spec = json!({"spec": {"file": {
        "storage": {"existingPVC": null, "pvc": pvc}, "seedRef": reference("store", "seed"),
    }}});
    world.patch::<SecretStore>("store", spec).await;
    let status = reported(&world, "Ready", "number of secrets: 1").await;
    let path = PathBuf::from(status.resolved_path.unwrap());
    assert_eq!(path, volume.join(&world.namespace).join("store/app/store.json"));
    let claim = world.api::<PersistentVolumeClaim>().get("store-secrets").await.unwrap();
    assert_eq!(claim.metadata.labels.unwrap()["declarest.io/secret-store"], "store");

    world.delete::<SecretStore>("store").await;
    assert!(path.exists(), "what is on a claim belongs to its owner");
}

/// A claim that is mounted, and the storage that names it.
async fn mount_claim(world: &World) -> (PathBuf, Value) {
    let volume = world.state().join("volumes").join(&world.namespace).join("data");
    fs::create_dir_all(&volume).unwrap();
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    world.api().create(&PostParams::default(), &claim).await.unwrap();
    (volume, json!({"existingPVC": {"name": "data"}}))
}

/// Earlier versions had other directories on claims. A seed that was used there does not replace later changes.
#[rstest::rstest]
#[case("store")]
#[case("secretstores/NAMESPACE/store")]
#[tokio::test]
async fn the_file_of_an_earlier_version_is_moved(#[case] earlier: &str) {
    let world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    let (volume, storage) = mount_claim(&world).await;
    let earlier = volume.join(earlier.replace("NAMESPACE", &world.namespace)).join("app");
    fs::create_dir_all(&earlier).unwrap();
    fs::write(earlier.join("store.json"), SEED).unwrap();
    fs::write(earlier.join("notes.txt"), "a user's own").unwrap();
    world.create(file(&json!({"storage": storage}))).await;
    let status = reported(&world, "Ready", "number of secrets: 1").await;
    let path = PathBuf::from(status.resolved_path.unwrap());
    assert_eq!(path, volume.join(&world.namespace).join("store/app/store.json"));
    assert_eq!(fs::read_to_string(&path).unwrap(), SEED);
    assert!(!earlier.join("store.json").exists() && earlier.join("notes.txt").exists());
}

/// Users who can write to a claim must not reach other files through it.
#[tokio::test]
async fn symbolic_links_on_a_claim_are_not_followed() {
    let world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    let (volume, storage) = mount_claim(&world).await;
    let outside = world.state().join("outside");
    fs::create_dir_all(outside.join("app")).unwrap();
    fs::write(outside.join("app/store.json"), SEED).unwrap();
    let own = volume.join(&world.namespace);
    fs::create_dir_all(&own).unwrap();
    symlink(&outside, own.join("store")).unwrap();
    world.create(file(&json!({"storage": storage, "seedRef": reference("store", "seed")}))).await;
    reported(&world, "StoreUnavailable", "symbolic links are not followed here").await;

    fs::remove_file(own.join("store")).unwrap();
    fs::create_dir_all(own.join("store/app")).unwrap();
    for name in ["store.json", "store.json.seeding", "store.json.seed"] {
        symlink(outside.join("app/target"), own.join("store/app").join(name)).unwrap();
    }
    world.replace_secret("store", &[("other", "value")]).await;
    reported(&world, "StoreUnavailable", "symbolic links are not followed here").await;
    assert!(!outside.join("app/target").exists(), "a link was followed");
}

#[tokio::test]
async fn a_repository_of_the_same_name_on_the_same_claim_leaves_the_store_alone() {
    let (world, git) = (World::start().await, GitRemote::new());
    git.write("items/a/resource.json", "{}");
    let revision = git.commit("first");
    git.push();
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    let (volume, storage) = mount_claim(&world).await;
    world.create(file(&json!({"storage": storage, "seedRef": reference("store", "seed")}))).await;
    let path = PathBuf::from(reported(&world, "Ready", "number of secrets: 1").await.resolved_path.unwrap());
    // Where both kinds lived in earlier versions.
    let foreign = volume.join("store/notes.txt");
    fs::create_dir_all(volume.join("store")).unwrap();
    fs::write(&foreign, "a user's own").unwrap();
    let spec = json!({"type": "git", "git": {"url": git.file_url()}, "storage": storage});
    world.create(declarest("ResourceRepository", "store", &spec)).await;
    let api = world.api::<ResourceRepository>();
    let fetched = async || {
        let status = api.get("store").await.ok()?.status?;
        (status.last_fetched_revision.as_deref() == Some(&*revision)).then_some(status.local_path?)
    };
    let mirror = PathBuf::from(world.eventually("the repository is fetched", &fetched).await);
    assert!(mirror.join("git").is_dir());
    fs::write(mirror.join("notes.txt"), "a user's own").unwrap();
    world.delete::<ResourceRepository>("store").await;
    world.removed(&mirror.join("git")).await;
    world.removed(&mirror.join("binding")).await;
    assert!(path.exists() && foreign.exists(), "only the mirror goes with the repository");
    assert!(mirror.join("notes.txt").exists(), "nothing but the mirror was the repository's");
}

#[tokio::test]
async fn a_link_on_a_volume_leads_nowhere() {
    let world = World::start().await;
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    let directory = world.state().join("secrets").join(&world.namespace).join("store");
    let elsewhere = world.state().join("elsewhere");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, directory.join("app")).unwrap();
    world.create(seeded()).await;
    reported(&world, "StoreUnavailable", "symbolic links are not followed here").await;
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

fn vault(address: &str) -> Value {
    let userpass =
        json!({"usernameRef": reference("store", "user"), "passwordRef": reference("store", "password")});
    let vault = json!({"address": address, "namespace": "ops", "auth": {"userpass": userpass}});
    declarest("SecretStore", "store", &json!({"vault": vault}))
}

#[tokio::test]
async fn a_vault_is_logged_in_to_again_when_the_secret_changes() {
    let (world, server) = (World::start().await, FakeVault::start("first").await);
    world.create_secret("store", &[("user", "ops"), ("password", "canary-wrong")]).await;
    world.create(vault(&server.url)).await;
    let refused = "spec.vault.auth: Vault at ";
    reported(&world, "DependencyInvalid", refused).await;
    world.replace_secret("store", &[("password", "first")]).await;
    let status = reported(&world, "Ready", "Vault accepted the login").await;
    assert_eq!((status.provider.as_deref(), status.resolved_path), (Some("vault"), None));
    server.rotate("second");
    world.replace_secret("store", &[("password", "second")]).await;
    world
        .eventually("the new password is used", || async { (server.logins("second") > 0).then_some(()) })
        .await;
    reported(&world, "Ready", "Vault accepted the login").await;
    assert_eq!(server.namespaces(), ["ops".to_owned()].into(), "the login included");
    assert!(!world.log().contains("canary"), "a secret is in the log");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_followed_through_its_secret() {
    let (world, server) = (World::start().await, FakeVault::start("first").await);
    let behind = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let proxy = RecordingProxy::start(behind, Some("ops:proxy-secret"));
    world.create_secret("store", &[("user", "ops"), ("password", "first"), ("proxy", "canary-wrong")]).await;
    let mut store = vault("http://vault.test:8200");
    store["spec"]["vault"]["proxy"] = json!({
        "httpURL": format!("http://{}", proxy.server.address),
        "auth": {"usernameRef": reference("store", "user"), "passwordRef": reference("store", "proxy")},
    });
    world.create(store).await;
    reported(&world, "DependencyInvalid", "spec.vault.proxy: cannot log in: the proxy http://").await;
    world.replace_secret("store", &[("proxy", "proxy-secret")]).await;
    reported(&world, "Ready", "Vault accepted the login").await;
    assert!(!world.log().contains("canary"), "a secret is in the log");
}

#[tokio::test]
async fn a_vault_that_was_never_reached_is_unavailable_at_once() {
    let world = World::start().await;
    world.create_secret("store", &[("user", "ops"), ("password", "p")]).await;
    let [gone] = free_ports();
    world.create(vault(&format!("http://127.0.0.1:{gone}"))).await;
    let status = reported(&world, "StoreUnavailable", "cannot be reached").await;
    assert_eq!(ready(&status.conditions).status, "False");
}

#[tokio::test]
async fn a_vault_that_was_well_may_miss_a_look() {
    let (world, server) = (World::start().await, FakeVault::start("first").await);
    world.create_secret("store", &[("user", "ops"), ("password", "first")]).await;
    world.create(vault(&server.url)).await;
    reported(&world, "Ready", "Vault accepted the login").await;
    server.seal(true);
    // Each change of the Secret is a look.
    world.replace_secret("store", &[("other", "1")]).await;
    let status = reported(&world, "Ready", "does not respond now (1 of 3 consecutive checks failed): ").await;
    assert_eq!(ready(&status.conditions).status, "True");
    world.replace_secret("store", &[("other", "2")]).await;
    world.eventually("a second look", || async { (server.refusals() > 1).then_some(()) }).await;
    world.replace_secret("store", &[("other", "3")]).await;
    reported(&world, "StoreUnavailable", "is sealed; unseal it").await;
    assert!(server.refusals() > 2);
    server.seal(false);
    reported(&world, "Ready", "Vault accepted the login").await;
}

#[tokio::test]
async fn a_changed_secret_of_a_store_makes_its_policies_and_no_others_run_in_full() {
    let (world, git, server) = (World::start().await, GitRemote::new(), RestServer::start(rest()).unwrap());
    for shop in ["ava", "kai"] {
        git.write(&format!("{shop}/resource.json"), format!(r#"{{"id": "{shop}"}}"#));
    }
    git.commit("two");
    git.push();
    world.create_secret("store", &[("key", KEY), ("seed", SEED)]).await;
    world.create(seeded()).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    let with_store = json!({"source": {"path": "/ava"}, "secretStoreRef": {"name": "store"}});
    world.create_policy(with_store).await;
    let without = json!({
        "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
        "source": {"path": "/kai"}, "syncInterval": "1h",
    });
    world.create(declarest("SyncPolicy", "without", &without)).await;
    world.applied(&git.head()).await;
    let api = world.api::<SyncPolicy>();
    let other = || async {
        api.get("without").await.ok()?.status.filter(|status| status.last_applied_repo_revision.is_some())
    };
    world.eventually("the other one ran", other).await;

    world.replace_secret("store", &[("other", "x")]).await;
    world.finished("SecretChanged").await;
    assert_eq!(other().await.unwrap().last_trigger.as_deref(), Some("InitialSync"));
}

fn rest() -> Config {
    Config { collections: vec!["/".to_owned()], ..Config::default() }
}
