//! Bad input and bad luck: each is a condition that names what is wrong, and the rest goes on.

use declarest_operator::crd::sync_policy::RunKind;
use declarest_operator::crd::{ManagedServer, ResourceRepository, SyncPolicy};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, Requirement, RestServer};
use crate::support::world::{World, ready};

const CANARY: &str = "canary-7f3a91";

fn items(count: usize) -> GitRemote {
    let git = GitRemote::new();
    for index in 0..count {
        let item = format!(r#"{{"id": "i{index:03}", "size": 1}}"#);
        git.write(&format!("items/i{index:03}/resource.json"), item);
    }
    git.commit("items");
    git.push();
    git
}

/// Answers 422 to an item without size.
fn server() -> RestServer {
    let sized = Requirement { collection: "/items".to_owned(), pointer: "/size".to_owned() };
    let collections = vec!["/items".to_owned(), "/items/*/parts".to_owned(), "/governed".to_owned()];
    RestServer::start(Config { collections, requirements: vec![sized], ..Config::default() }).unwrap()
}

async fn world(git: &GitRemote, server: &RestServer, policy: Value) -> World {
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(policy).await;
    world
}

#[tokio::test]
async fn one_bad_resource_of_a_hundred_fails_alone_and_is_retried_alone() {
    let (git, server) = (items(100), server());
    git.write("items/bad/resource.json", r#"{"id": "bad"}"#);
    git.remove("items/i099");
    git.commit("one bad");
    git.push();
    let world = world(&git, &server, json!({"syncInterval": "1h"})).await;
    let (status, message) = world.policy_reason("PartialFailure").await;
    let stats = status.resource_stats.unwrap();
    assert_eq!((stats.targeted, stats.applied, stats.failed), (100, 99, 1));
    let failed = &status.failed_resources[0];
    assert_eq!(
        (failed.path.as_str(), failed.operation.as_str(), failed.reason.as_str()),
        ("/items/bad", "create", "ValidationError")
    );
    assert!(message.contains("/items/bad") && message.contains("422"), "{message}");
    assert_eq!(status.last_applied_repo_revision, None);

    server.reset_counts();
    let status = world
        .policy("it is retried by itself", |status| {
            status.resource_stats.is_some_and(|stats| stats.targeted == 1 && stats.failed == 1)
        })
        .await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Incremental));
    assert_eq!(status.last_trigger.as_deref(), Some("Retry"));
    assert_eq!(status.failed_resources[0].attempts, 2);
    let touched = server.log();
    assert!(
        touched.iter().all(|request| matches!(request.path.as_str(), "/items" | "/items/bad")),
        "{touched:?}"
    );
    git.write("items/bad/resource.json", r#"{"id": "bad", "size": 3}"#);
    let revision = git.commit("mended");
    git.push();
    world.notify().await;
    let status = world.applied(&revision).await;
    assert_eq!(status.failed_resources, []);
}

#[tokio::test]
async fn files_that_cannot_be_read_fail_alone_and_are_named() {
    let (git, server) = (items(3), server());
    git.write("items/broken/resource.yaml", "id: broken\n  nested: [\n");
    git.write("items/twice/resource.json", "{}").write("items/twice/resource.yaml", "{}");
    git.write("items/secret/resource.yaml", "id: secret\nsize: 1\npassword: '{{secret .}}'\n");
    git.write("governed/_/metadata.yaml", "resource: {ids: /uid}\n");
    git.write("governed/one/resource.yaml", "uid: one\n");
    git.commit("broken files");
    git.push();
    let world = world(&git, &server, json!({})).await;
    let (status, _) = world.policy_reason("PartialFailure").await;
    let reported: Vec<(&str, &str)> =
        status.failed_resources.iter().map(|failed| (failed.path.as_str(), failed.reason.as_str())).collect();
    assert_eq!(
        reported,
        [
            ("/governed/one", "ValidationError"),
            ("/items/broken", "ValidationError"),
            ("/items/secret", "SecretStoreMissing"),
            ("/items/twice", "ConflictError"),
        ]
    );
    let messages: Vec<&str> = status.failed_resources.iter().map(|failed| failed.message.as_str()).collect();
    assert!(messages[0].contains("governed/_/metadata.yaml"), "{messages:#?}");
    assert!(
        messages[1].contains("items/broken/resource.yaml") && messages[1].contains("line 2"),
        "{messages:#?}"
    );
    assert!(messages[2].contains("/password"), "{messages:#?}");
    assert!(messages[3].contains("resource.json") && messages[3].contains("resource.yaml"), "{messages:#?}");
    assert_eq!(status.resource_stats.unwrap().applied, 3);
    assert!(server.get("/items/i002").is_some());
}

#[tokio::test]
async fn a_wrong_git_token_is_named_and_never_shown() {
    let (git, server) = (items(1), server());
    let http = GitHttp::start(git.root(), Some("right"));
    let world = World::start().await;
    world.create_secret("git", &[("token", CANARY)]).await;
    let auth = json!({"tokenRef": {"name": "git", "key": "token"}});
    world.create_repository(&http.url("desired.git"), auth).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    let message = world.repository_reason("AuthFailed").await;
    assert!(message.contains("desired.git"), "{message}");
    let (_, message) = world.policy_reason("DependencyNotReady").await;
    assert!(message.contains("ResourceRepository \"repo\""), "{message}");
    assert!(!world.log().contains(CANARY), "the token is in the log");
    http.set_token(CANARY);
    world.notify().await;
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn an_unknown_branch_is_named() {
    let (git, server) = (items(1), server());
    let world = world(&git, &server, json!({})).await;
    world.applied(&git.head()).await;
    world.patch::<ResourceRepository>("repo", json!({"spec": {"git": {"branch": "nowhere"}}})).await;
    let message = world.repository_reason("FetchFailed").await;
    assert!(message.contains("nowhere"), "{message}");
}

/// How Git becomes unavailable.
enum Outage {
    Server,
    Token,
    Secret,
}

#[rstest]
#[case::server(Outage::Server, "FetchFailed")]
#[case::expired_token(Outage::Token, "AuthFailed")]
#[case::missing_secret(Outage::Secret, "DependencyInvalid")]
#[tokio::test]
async fn drift_is_corrected_while_git_is_not_available(#[case] outage: Outage, #[case] reason: &str) {
    let (git, server) = (items(2), server());
    let http = GitHttp::start(git.root(), Some("right"));
    let world = World::start().await;
    world.create_secret("git", &[("token", "right")]).await;
    let auth = json!({"tokenRef": {"name": "git", "key": "token"}});
    world.create_repository(&http.url("desired.git"), auth).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"syncInterval": "10s"})).await;
    world.applied(&git.head()).await;
    match outage {
        Outage::Server => http.set_failure(Some(503)),
        Outage::Token => http.set_token("renewed"),
        Outage::Secret => world.delete::<k8s_openapi::api::core::v1::Secret>("git").await,
    }
    world.notify().await;
    world.repository_reason(reason).await;
    server.put_by_hand("/items/i000", json!({"id": "i000", "size": 1, "extra": true}));
    world
        .eventually("the drift is corrected", || async {
            server.get("/items/i000")?.get("extra").is_none().then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_missing_secret_key_is_named_and_its_arrival_noticed() {
    let (git, server) = (items(1), server());
    let world = World::start().await;
    world.create_secret("login", &[("user", "ops")]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let auth = json!({"basicAuth": {
        "usernameRef": {"name": "login", "key": "user"}, "passwordRef": {"name": "login", "key": "password"}
    }});
    world.create_server(json!({"baseURL": server.url(), "auth": auth})).await;
    world.create_policy(json!({})).await;
    let message = world.server_reason("DependencyInvalid").await;
    for named in ["spec.http.auth.basicAuth.passwordRef", "login", "password"] {
        assert!(message.contains(named), "{message}");
    }
    let secret = json!({"stringData": {"password": "now there"}});
    world.patch::<k8s_openapi::api::core::v1::Secret>("login", secret).await;
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn refused_credentials_and_a_dead_server_are_distinguished() {
    let (git, mut server) = (items(200), server());
    let world = world(&git, &server, json!({})).await;
    world.applied(&git.head()).await;
    server.require_basic("ops", "secret");
    server.reset_counts();
    world.request_sync().await;
    let (status, message) = world.policy_reason("ManagedServerAuthFailed").await;
    assert!(message.contains("401"), "{message}");
    // What is under way when the third refusal comes is not called back.
    assert!(server.counts().total() < 100, "a run against a closed door goes on");
    assert_eq!(ready(&status.conditions).status, "False");
    server.stop();
    world.request_sync().await;
    world.policy_reason("ManagedServerUnavailable").await;
    server.resume().unwrap();
    server.require_nothing();
    world.request_sync().await;
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn a_resource_that_the_server_cannot_process_does_not_make_the_server_unavailable() {
    let (git, server) = (items(1), server());
    server.fail(Matcher::method("POST"), 500, usize::MAX);
    let world = world(&git, &server, json!({})).await;
    let (_, message) = world.policy_reason("PartialFailure").await;
    assert!(message.contains("500"), "{message}");
}

#[tokio::test]
async fn a_missing_dependency_is_named_and_its_arrival_noticed() {
    let (git, server) = (items(1), server());
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_policy(json!({})).await;
    let (_, message) = world.policy_reason("DependencyInvalid").await;
    assert!(
        message.contains("ManagedServer \"server\"") && message.contains("spec.managedServerRef"),
        "{message}"
    );
    world.create_server(json!({"baseURL": server.url()})).await;
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn a_dependency_that_stumbles_leaves_the_policy_as_it_was() {
    let (git, server) = (items(2), server());
    let world = world(&git, &server, json!({})).await;
    world.applied(&git.head()).await;
    let reference = json!({"valueRef": {"name": "absent", "key": "k"}, "header": "X-Key"});
    let auth = json!({"spec": {"http": {"auth": {"customHeaders": [reference]}}}});
    world.patch::<ManagedServer>("server", auth).await;
    world.policy_reason("DependencyNotReady").await;
    world.patch::<ManagedServer>("server", json!({"spec": {"http": {"auth": null}}})).await;
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn a_bad_cron_and_a_bad_path_are_refused_with_their_field() {
    let (git, server) = (items(1), server());
    let world = world(&git, &server, json!({"fullResyncCron": "0 0 30 2 *"})).await;
    let (_, message) = world.policy_reason("SpecInvalid").await;
    assert!(message.contains("spec.fullResyncCron"), "{message}");
    let path = json!({"spec": {"fullResyncCron": null, "source": {"path": "/items/../x"}}});
    world.patch::<SyncPolicy>("policy", path).await;
    world
        .policy("the path is refused", |status| {
            ready(&status.conditions).message.contains("spec.source.path")
        })
        .await;
}

#[tokio::test]
async fn children_of_a_failed_creation_are_not_tried() {
    let git = GitRemote::new();
    git.write("items/p/resource.json", r#"{"id": "p", "size": 1}"#)
        .write("items/p/parts/c/resource.json", r#"{"id": "c"}"#);
    git.commit("family");
    git.push();
    let server = server();
    server.fail(Matcher::new("POST", "/items"), 422, 1);
    let world = world(&git, &server, json!({})).await;
    let (status, _) = world.policy_reason("PartialFailure").await;
    let reasons: Vec<&str> = status.failed_resources.iter().map(|failed| failed.reason.as_str()).collect();
    assert_eq!(reasons, ["ValidationError", "ParentFailed"]);
    assert!(server.log().iter().all(|request| request.method != "POST" || request.path == "/items"));
    world.applied(&git.head()).await;
}
