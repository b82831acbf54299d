use declarest_operator::crd::{ManagedServer, SecretStore};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::world::{World, ready};

#[tokio::test]
async fn follows_the_secrets_it_refers_to() {
    let world = World::start();
    let login = |key| json!({"name": "login", "key": key});
    let spec = json!({"http": {
        "baseURL": "https://api.example.test",
        "auth": {"basicAuth": {"usernameRef": login("user"), "passwordRef": login("password")}},
    }});
    world.create::<ManagedServer>("s", spec).await;
    let refused: ManagedServer = world.until_reason("s", "DependencyInvalid").await;
    assert_eq!(
        ready(&refused).unwrap().message,
        "spec.http.auth.basicAuth.usernameRef: Secret default/login does not exist"
    );

    world.create_secret("login", "user", "alice").await;
    let key_missing = |object: &ManagedServer| {
        ready(object).is_some_and(|ready| {
            ready.message == "spec.http.auth.basicAuth.passwordRef: Secret default/login has no key password"
        })
    };
    world.until("s", key_missing).await;

    let patch = json!({"stringData": {"password": "hunter2"}});
    let secrets = world.api::<Secret>();
    secrets.patch("login", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let usable: ManagedServer = world.until_reason("s", "Ready").await;
    assert!(!serde_json::to_string(&usable).unwrap().contains("hunter2"));

    secrets.delete("login", &DeleteParams::default()).await.unwrap();
    world.until_reason::<ManagedServer>("s", "DependencyInvalid").await;
}

#[tokio::test]
async fn what_cannot_be_honoured_yet_is_refused() {
    let world = World::start();
    let spec = json!({"http": {"baseURL": "https://api.example.test", "proxy": {}}});
    world.create::<ManagedServer>("s", spec).await;
    let refused: ManagedServer = world.until_reason("s", "SpecInvalid").await;
    assert_eq!(
        ready(&refused).unwrap().message,
        "spec.http.proxy: not supported by this version yet; remove it"
    );

    let spec = json!({"file": {"path": "store", "encryption": {"keyRef": {"name": "k", "key": "k"}}}});
    world.create::<SecretStore>("st", spec).await;
    let refused: SecretStore = world.until_reason("st", "SpecInvalid").await;
    assert_eq!(refused.status.unwrap().provider.as_deref(), Some("file"));
}

#[tokio::test]
async fn a_variable_that_specs_must_not_use_is_refused() {
    let world = World::start();
    world.create::<ManagedServer>("s", json!({"http": {"baseURL": "${KUBERNETES_SERVICE_HOST}"}})).await;
    let refused: ManagedServer = world.until_reason("s", "SpecInvalid").await;
    let message = &ready(&refused).unwrap().message;
    assert!(
        message.starts_with("spec.http.baseURL: environment variable KUBERNETES_SERVICE_HOST"),
        "{message}"
    );
    assert_eq!(refused.spec.http.base_url, "${KUBERNETES_SERVICE_HOST}");
}
