//! What specs refer to outside of themselves: Secrets and the operator's environment.

use declarest_operator::crd::{ManagedServer, SecretStore};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::support::git_remote::GitRemote;
use crate::support::world::{World, declarest, ready};

const CANARY: &str = "canary-51c0de";

#[tokio::test]
async fn a_secret_is_followed_from_its_absence_to_its_deletion() {
    let world = World::start().await;
    let login = |key| json!({"name": "login", "key": key});
    let auth = json!({"basicAuth": {"usernameRef": login("user"), "passwordRef": login("password")}});
    world.create_server(json!({"baseURL": "https://api.example.test", "auth": auth})).await;
    let message = world.server_reason("DependencyInvalid").await;
    let absent = "spec.http.auth.basicAuth.usernameRef: Secret";
    assert_eq!(message, format!("{absent} {}/login does not exist", world.namespace));

    world.create_secret("login", &[("user", "alice"), ("password", CANARY)]).await;
    world.server_reason("Ready").await;
    let object = world.api::<ManagedServer>().get("server").await.unwrap();
    assert!(!serde_json::to_string(&object).unwrap().contains(CANARY), "the password is in the object");
    assert!(!world.log().contains(CANARY), "the password is in the log");

    world.delete::<Secret>("login").await;
    world.server_reason("DependencyInvalid").await;
}

#[tokio::test]
async fn a_variable_that_specs_must_not_use_is_refused() {
    let world = World::start().await;
    world.create_server(json!({"baseURL": "${KUBERNETES_SERVICE_HOST}"})).await;
    let message = world.server_reason("SpecInvalid").await;
    assert!(
        message.starts_with("spec.http.baseURL: environment variable KUBERNETES_SERVICE_HOST"),
        "{message}"
    );
    let object = world.api::<ManagedServer>().get("server").await.unwrap();
    assert_eq!(object.spec.http.base_url, "${KUBERNETES_SERVICE_HOST}");
}

/// The tests set `DECLAREST_VAR_HIDDEN` to `concealed-value` for every operator.
#[tokio::test]
async fn the_value_of_a_variable_is_used_but_not_shown() {
    let (world, git) = (World::start().await, GitRemote::new());
    git.commit("first");
    git.push();
    let placeholder = "${DECLAREST_VAR_HIDDEN}";
    let spec = json!({"type": "git", "git": {"url": git.file_url(), "branch": placeholder}});
    world.create(declarest("ResourceRepository", "repo", &spec)).await;
    let message = world.repository_reason("FetchFailed").await;
    assert!(message.contains("has no branch \"${DECLAREST_VAR_HIDDEN}\""), "{message}");

    world
        .create_secret("k", &[("k", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")])
        .await;
    let spec = json!({"file": {"path": placeholder, "encryption": {"keyRef": {"name": "k", "key": "k"}}}});
    world.create(declarest("SecretStore", "store", &spec)).await;
    let api = world.api::<SecretStore>();
    let path = async || api.get("store").await.ok()?.status?.resolved_path;
    let path = world.eventually("the path of the store is shown", &path).await;
    assert!(path.ends_with("/store/${DECLAREST_VAR_HIDDEN}"), "{path}");
    assert!(!world.log().contains("concealed-value"), "the value is in the log");
}

/// A value can be the same text as a level, which is not a value of the spec.
#[tokio::test]
async fn a_hidden_value_does_not_change_the_other_members_of_a_log_line() {
    let world = World::start_in(&[("DECLAREST_VAR_LEVEL", "info")], &[]).await;
    let spec = json!({"type": "git", "git": {"url": "file:///none", "branch": "${DECLAREST_VAR_LEVEL}"}});
    world.create(declarest("ResourceRepository", "repo", &spec)).await;
    world.repository_reason("FetchFailed").await;
    let log = world.log();
    assert!(log.contains("FetchFailed") && !log.contains("\"level\":\"${"), "{log}");
}

#[tokio::test]
async fn other_variables_are_not_allowed_by_default() {
    let world = World::start().await;
    world.create_server(json!({"baseURL": "${HOME}"})).await;
    let message = world.server_reason("SpecInvalid").await;
    assert!(message.starts_with("spec.http.baseURL: environment variable HOME is not allowed"), "{message}");
}

#[tokio::test]
async fn a_store_shows_its_provider_even_when_it_is_refused() {
    let world = World::start().await;
    let spec = json!({"file": {"path": "store", "encryption": {"keyRef": {"name": "k", "key": "k"}}}});
    world.create(declarest("SecretStore", "store", &spec)).await;
    let api = world.api::<SecretStore>();
    let status = world
        .eventually("the store is judged", || async {
            api.get("store").await.ok()?.status.filter(|status| !ready(&status.conditions).reason.is_empty())
        })
        .await;
    assert_eq!(status.provider.as_deref(), Some("file"));
    assert_eq!(ready(&status.conditions).status, "False");
}
