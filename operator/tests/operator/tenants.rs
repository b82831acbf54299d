//! Many policies and several namespaces: they share an operator, and do not wait for each other.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use declarest_operator::crd::{ManagedServer, SyncPolicy};
use serde_json::{Value, json};

use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::{World, declarest, is_true};

/// The delay that a busy machine may cause. Without fairness, requests wait for the time of an attempt, 30 s.
const DELAY: Duration = Duration::from_secs(10);
/// More policies than workers.
const POLICIES: usize = 80;

fn collection(index: usize) -> String {
    format!("/c{index}")
}

/// A commit with a resource in each of `count` collections.
fn repository(count: usize) -> GitRemote {
    let git = GitRemote::new();
    for index in 0..count {
        git.write(&format!("c{index}/one/resource.json"), r#"{"id": "one"}"#);
    }
    git.commit("one resource in each collection");
    git.push();
    git
}

fn rest_server(count: usize) -> RestServer {
    let collections = (0..count).map(collection).collect();
    RestServer::start(Config { collections, ..Config::default() }).unwrap()
}

fn policy(name: &str, server: &str, index: usize) -> Value {
    let spec = json!({
        "resourceRepositoryRef": {"name": "repo"},
        "managedServerRef": {"name": server},
        "source": {"path": collection(index)},
        "syncInterval": "1h",
    });
    declarest("SyncPolicy", name, &spec)
}

/// Waits until the policy is Ready, and returns its resource version.
async fn settled(world: &World, name: &str) -> String {
    let policies = world.api::<SyncPolicy>();
    world
        .eventually(&format!("{name} is Ready"), || async {
            let policy = policies.get(name).await.ok()?;
            is_true(&policy.status?.conditions, "Ready").then_some(policy.metadata.resource_version?)
        })
        .await
}

/// How long a commit takes from the notification until it is applied.
async fn push(world: &World, git: &GitRemote, size: u64) -> Duration {
    git.write("c0/one/resource.json", format!(r#"{{"id": "one", "size": {size}}}"#));
    let revision = git.commit("another size");
    git.push();
    let started = Instant::now();
    world.notify().await;
    world.applied(&revision).await;
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_servers_and_hanging_remotes_do_not_delay_other_namespaces() {
    let mut world = World::start_with_neighbour(&[]).await;
    // A policy that works.
    let (git, server) = (repository(1), rest_server(1));
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    let alone = push(&world, &git, 1).await;
    // In another namespace: two servers that hang with many policies, and two remotes that hang.
    world.swap_namespaces();
    let (slow_git, slow) = (repository(POLICIES), [rest_server(POLICIES), rest_server(POLICIES)]);
    world.create_repository(&slow_git.file_url(), Value::Null).await;
    world.fetched(&slow_git.head()).await;
    let mut held = Vec::new();
    for (index, server) in slow.iter().enumerate() {
        held.push(server.hold(Matcher::any()));
        let spec = json!({"http": {"baseURL": server.url()}});
        world.create(declarest("ManagedServer", &format!("slow-{index}"), &spec)).await;
    }
    for index in 0..POLICIES {
        world.create(policy(&format!("slow-{index}"), &format!("slow-{}", index % 2), index)).await;
    }
    let silent = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    for (index, listener) in silent.iter().enumerate() {
        let url = format!("http://{}/desired.git", listener.local_addr().unwrap());
        let spec = json!({"type": "git", "git": {"url": url}});
        world.create(declarest("ResourceRepository", &format!("hanging-{index}"), &spec)).await;
    }
    // All of them wait.
    let _connections = tokio::task::block_in_place(|| silent.each_ref().map(|it| it.accept().unwrap()));
    for server in &slow {
        let waits = || async { (server.open() > 0).then_some(()) };
        world.eventually("a slow server has requests", waits).await;
    }
    // The first namespace goes on.
    world.swap_namespaces();
    for size in 2..5 {
        let beside = push(&world, &git, size).await;
        assert!(beside <= alone + DELAY, "{beside:?} instead of {alone:?}");
    }
    // So do deletions, and a policy of another server, in the namespace that waits.
    world.swap_namespaces();
    let started = Instant::now();
    world.delete::<SyncPolicy>(&format!("slow-{}", POLICIES - 1)).await;
    assert!(started.elapsed() <= DELAY * 2, "a deletion took {:?}", started.elapsed());
    let fast = rest_server(POLICIES);
    world.delete::<SyncPolicy>("slow-78").await;
    world.create_server(json!({"baseURL": fast.url()})).await;
    world.create(policy("fast", "server", 78)).await;
    settled(&world, "fast").await;
}

#[tokio::test]
async fn a_repository_of_a_hundred_policies_is_fetched_once() {
    let (git, server, world) = (repository(100), rest_server(100), World::start().await);
    let remote = GitHttp::start(git.root(), None);
    // Only webhooks cause a fetch.
    let git_spec = json!({"url": remote.url("desired.git")});
    let spec = json!({"type": "git", "git": git_spec, "pollInterval": "1h"});
    world.create(declarest("ResourceRepository", "repo", &spec)).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"source": {"path": collection(0)}})).await;
    world.applied(&git.head()).await;
    let before = remote.requests();
    push(&world, &git, 1).await;
    let of_one_policy = remote.requests() - before;

    for index in 1..100 {
        world.create(policy(&format!("policy-{index}"), "server", index)).await;
    }
    for index in 1..100 {
        settled(&world, &format!("policy-{index}")).await;
    }
    let before = remote.requests();
    for index in 1..100 {
        git.write(&format!("c{index}/one/resource.json"), r#"{"id": "one", "size": 2}"#);
    }
    push(&world, &git, 2).await;
    world
        .eventually("all policies have applied the commit", || async {
            (0..100).all(|index| server.get(&format!("/c{index}/one")).unwrap()["size"] == 2).then_some(())
        })
        .await;
    assert_eq!(remote.requests() - before, of_one_policy);
}

#[tokio::test]
async fn a_changed_secret_runs_only_the_policies_that_depend_on_it() {
    let (git, world) = (repository(2), World::start().await);
    let servers = [rest_server(2), rest_server(2)];
    world.create_repository(&git.file_url(), Value::Null).await;
    for (index, server) in servers.iter().enumerate() {
        let secret = format!("login-{index}");
        world.create_secret(&secret, &[("user", "ops"), ("password", "first")]).await;
        server.require_basic("ops", "first");
        let auth = json!({"basicAuth": {
            "usernameRef": {"name": secret, "key": "user"}, "passwordRef": {"name": secret, "key": "password"}
        }});
        let spec = json!({"http": {"baseURL": server.url(), "auth": auth}});
        world.create(declarest("ManagedServer", &format!("server-{index}"), &spec)).await;
        world.create(policy(&format!("policy-{index}"), &format!("server-{index}"), index)).await;
    }
    let mut before = Vec::new();
    for index in 0..2 {
        before.push(settled(&world, &format!("policy-{index}")).await);
    }
    servers.iter().for_each(RestServer::reset_counts);

    servers[0].require_basic("ops", "second");
    world.replace_secret("login-0", &[("password", "second")]).await;
    let policies = world.api::<SyncPolicy>();
    world
        .eventually("the policy of the Secret has run", || async {
            let status = policies.get("policy-0").await.ok()?.status?;
            let ran = status.last_trigger.as_deref() == Some("SecretChanged");
            (ran && is_true(&status.conditions, "Ready")).then_some(())
        })
        .await;
    // A later change of the other server shows that nothing else is still to come.
    let other = json!({"metadata": {"annotations": {"declarest.io/sync-requested-at": "now"}}});
    assert_eq!(settled(&world, "policy-1").await, before[1]);
    assert_eq!(servers[1].counts().total(), 0);
    world.patch::<SyncPolicy>("policy-1", other).await;
    world
        .eventually("the other policy runs when it is asked to", || async {
            let status = policies.get("policy-1").await.ok()?.status?;
            (status.last_trigger.as_deref() == Some("ManualRequest")).then_some(())
        })
        .await;
    assert!(is_true(
        &world.api::<ManagedServer>().get("server-1").await.unwrap().status.unwrap().conditions,
        "Ready"
    ));
}
