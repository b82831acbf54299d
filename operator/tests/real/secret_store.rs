//! The kind SecretStore at a real Vault: the program that `make vault` builds, or any that `VAULT_BIN` names.

use declarest_core::secrets::vault::VaultAuth;
use declarest_operator::crd::SecretStore;
use serde_json::json;

use crate::support::world::{World, declarest, ready};
use crate::vault::Vault;

/// Waits until Ready of the store has this reason, and returns its message.
async fn reported(world: &World, reason: &str) -> String {
    let api = world.api::<SecretStore>();
    world
        .eventually(&format!("the store says {reason}"), || async {
            let ready = ready(&api.get("store").await.ok()?.status?.conditions);
            (ready.reason == reason).then_some(ready.message)
        })
        .await
}

#[tokio::test]
async fn an_app_role_behind_tls_is_followed_through_its_secret() {
    let (world, vault) = (World::start().await, Vault::start_with_tls().await);
    let VaultAuth::AppRole { role_id, secret_id, .. } = vault.app_role().await else { panic!("no AppRole") };
    let reference = |key| json!({"name": "store", "key": key});
    let spec = json!({"vault": {
        "address": vault.url(), "mount": "two", "pathPrefix": "team/x",
        "auth": {"appRole": {"roleIDRef": reference("role"), "secretIDRef": reference("secret")}},
        "tls": {"caCertRef": reference("ca")},
    }});
    let other_ca = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    world
        .create_secret("store", &[("role", role_id.expose()), ("secret", "canary"), ("ca", &other_ca)])
        .await;
    world.create(declarest("SecretStore", "store", &spec)).await;
    let message = reported(&world, "StoreUnavailable").await;
    assert!(message.contains("certificate"), "{message}");
    world.replace_secret("store", &[("ca", &vault.certificate)]).await;
    let message = reported(&world, "DependencyInvalid").await;
    assert!(message.contains("refuses the AppRole login") && !message.contains("canary"), "{message}");
    world.replace_secret("store", &[("secret", secret_id.expose())]).await;
    reported(&world, "Ready").await;

    // Only Vault can detect a wrong version.
    world.patch::<SecretStore>("store", json!({"spec": {"vault": {"kvVersion": 1}}})).await;
    let message = reported(&world, "StoreUnavailable").await;
    assert!(message.ends_with("\"two\" is a version 2 engine; set 2"), "{message}");
    world.patch::<SecretStore>("store", json!({"spec": {"vault": {"kvVersion": 2}}})).await;
    reported(&world, "Ready").await;
    assert!(!world.log().contains(secret_id.expose()), "a secret is in the log");
}
