//! A thousand resources over real Git transports.

use declarest_core::server::MAX_CONCURRENCY;
use declarest_operator::crd::SyncPolicy;
use declarest_operator::crd::sync_policy::RunKind;
use serde_json::{Value, json};

use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::World;

const RESOURCES: usize = 1000;

fn thousand() -> GitRemote {
    let git = GitRemote::new();
    for index in 0..RESOURCES {
        git.write(&format!("items/i{index}/resource.json"), format!(r#"{{"id": "i{index}", "size": 1}}"#));
    }
    git.commit("a thousand");
    git.push();
    git
}

fn server() -> RestServer {
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    server.require_basic("ops", "password of the server");
    server
}

async fn world(server: &RestServer) -> World {
    let world = World::start().await;
    world
        .create_secret(
            "login",
            &[("user", "ops"), ("password", "password of the server"), ("token", "git token")],
        )
        .await;
    let auth = json!({"basicAuth": {
        "usernameRef": {"name": "login", "key": "user"}, "passwordRef": {"name": "login", "key": "password"}
    }});
    world.create_server(json!({"baseURL": server.url(), "auth": auth})).await;
    world
}

#[tokio::test]
async fn a_thousand_resources_over_http_with_a_token() {
    let (git, server) = (thousand(), server());
    let http = GitHttp::start(git.root(), Some("git token"));
    let world = world(&server).await;
    world
        .create_repository(&http.url("desired.git"), json!({"tokenRef": {"name": "login", "key": "token"}}))
        .await;
    world.create_policy(json!({"syncInterval": "1h"})).await;
    let status = world.applied(&git.head()).await;
    assert_eq!(usize::try_from(status.resource_stats.unwrap().created), Ok(RESOURCES));
    let peak = server.peak_concurrency();
    assert!(peak <= MAX_CONCURRENCY, "{peak} requests at once");

    for index in 0..10 {
        git.write(&format!("items/i{index}/resource.json"), format!(r#"{{"id": "i{index}", "size": 2}}"#));
    }
    git.remove("items/i500");
    let revision = git.commit("ten changed, one dropped");
    git.push();
    server.reset_counts();
    world.notify().await;
    let status = world
        .policy("the commit is applied", |status| {
            status.last_applied_repo_revision.as_deref() == Some(revision.as_str())
        })
        .await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Incremental));
    let stats = status.resource_stats.unwrap();
    assert_eq!((stats.targeted, stats.updated, stats.pruned), (10, 10, 1));
    assert!(server.get("/items/i500").is_none());

    world.patch::<SyncPolicy>("policy", json!({"spec": {"syncInterval": "10s"}})).await;
    world.finished("SpecChanged").await;
    server.put_by_hand("/items/i700", json!({"id": "i700", "size": 99}));
    let status = world.finished("DriftDue").await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    world
        .eventually("the drift is corrected", || async {
            (server.get("/items/i700")?["size"] == 1).then_some(())
        })
        .await;
    for secret in ["password of the server", "git token"] {
        assert!(!world.log().contains(secret), "a secret is in the log");
    }
}

#[tokio::test]
async fn an_absent_repository_is_reported() {
    let (git, server) = (thousand(), server());
    let http = GitHttp::start(git.root(), None);
    let world = world(&server).await;
    world.create_repository(&http.url("absent.git"), Value::Null).await;
    let message = world.repository_reason("FetchFailed").await;
    assert!(message.contains("absent.git"), "{message}");
}
