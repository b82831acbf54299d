//! Push, drift, removal: the main job, and the settings of a policy.

use std::time::Duration;

use declarest_operator::crd::sync_policy::RunKind;
use declarest_operator::crd::{ResourceRepository, SyncPolicy, SyncPolicyStatus};
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::events::event;
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::{World, condition, declarest, is_true, ready};

/// Three shops with a till each; ids of orders are the server's.
fn shops() -> GitRemote {
    let git = GitRemote::new();
    for shop in ["ava", "kai", "rio"] {
        git.write(
            &format!("shops/{shop}/resource.yaml"),
            format!("id: {shop}\nname: Shop {shop}\ntier: 1\n"),
        );
        let till = format!("shops/{shop}/tills/t1/resource.json");
        git.write(&till, r#"{"id": "t1", "size": 2}"#);
    }
    git.write("orders/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    git.write("orders/blue/resource.yaml", "name: blue\nprio: 1\n");
    git.commit("shops");
    git.push();
    git
}

fn shop_server() -> RestServer {
    let config = Config {
        collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned(), "/orders".to_owned()],
        server_ids: vec!["/orders".to_owned()],
        ..Config::default()
    };
    RestServer::start(config).unwrap()
}

async fn synced(policy: Value) -> (World, GitRemote, RestServer) {
    let (world, git, server) = (World::start().await, shops(), shop_server());
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(policy).await;
    world.applied(&git.head()).await;
    (world, git, server)
}

#[tokio::test]
async fn a_first_sync_creates_everything_parents_first() {
    let (world, git, server) = synced(json!({})).await;
    let status = world.applied(&git.head()).await;
    let stats = status.resource_stats.unwrap();
    assert_eq!((stats.targeted, stats.applied, stats.created, stats.failed), (7, 7, 7, 0));
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    assert_eq!(status.last_trigger.as_deref(), Some("InitialSync"));
    assert!(!is_true(&status.conditions, "Reconciling") && !is_true(&status.conditions, "Stalled"));
    let created: Vec<String> = server.writes().into_iter().map(|request| request.path).collect();
    for shop in ["ava", "kai", "rio"] {
        assert!(server.get(&format!("/shops/{shop}/tills/t1")).is_some());
    }
    assert_eq!(created.iter().filter(|path| *path == "/shops").count(), 3);
    assert_eq!(server.duplicates().len(), 0);
}

#[tokio::test]
async fn a_push_touches_only_what_it_changed() {
    let (world, git, server) = synced(json!({})).await;
    server.reset_counts();
    git.write("shops/rio/resource.yaml", "id: rio\nname: Shop rio\ntier: 2\n");
    git.write("shops/new/resource.json", r#"{"id": "new"}"#);
    let revision = git.commit("change");
    git.push();
    world.notify().await;
    let status = world.applied(&revision).await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Incremental));
    let stats = status.resource_stats.unwrap();
    assert_eq!((stats.targeted, stats.created, stats.updated), (2, 1, 1));
    let touched: Vec<String> =
        server.log().iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    assert!(
        touched.contains(&"PUT /shops/rio".to_owned()) && touched.contains(&"POST /shops".to_owned()),
        "{touched:?}"
    );
    assert_eq!(server.writes().len(), 2);
    assert!(touched.iter().all(|request| request.contains("/shops")), "{touched:?}");
    assert_eq!(server.get("/shops/rio").unwrap()["tier"], 2);
}

#[tokio::test]
async fn a_hand_edit_is_put_back_without_a_commit() {
    let (world, _git, server) = synced(json!({"syncInterval": "10s"})).await;
    server.put_by_hand("/shops/rio", json!({"id": "rio", "name": "hacked", "tier": 9}));
    server.delete_by_hand("/shops/ava/tills/t1");
    world
        .eventually("the drift is corrected", || async {
            let name = server.get("/shops/rio")?["name"].clone();
            (name == "Shop rio" && server.get("/shops/ava/tills/t1").is_some()).then_some(())
        })
        .await;
    let status = world.finished("DriftDue").await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
}

#[tokio::test]
async fn what_git_drops_is_pruned_children_first_and_nothing_else() {
    let (world, git, server) = synced(json!({})).await;
    server.put_by_hand("/shops/handmade", json!({"id": "handmade"}));
    git.remove("shops/rio");
    let revision = git.commit("close rio");
    git.push();
    world.notify().await;
    let status = world.applied(&revision).await;
    assert_eq!(status.resource_stats.unwrap().pruned, 2);
    assert!(server.get("/shops/rio").is_none());
    assert!(server.get("/shops/handmade").is_some());
    let deletes: Vec<String> = server
        .writes()
        .into_iter()
        .filter(|request| request.method == "DELETE")
        .map(|request| request.path)
        .collect();
    assert_eq!(deletes, ["/shops/rio/tills/t1", "/shops/rio"]);
}

#[tokio::test]
async fn nothing_is_pruned_unless_asked() {
    let (world, git, server) = synced(json!({"sync": {"prune": false}})).await;
    git.remove("shops/rio");
    let revision = git.commit("close rio");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    assert!(server.get("/shops/rio").is_some());
    // Allowed later, the next full run still knows what this policy once declared.
    world.patch::<SyncPolicy>("policy", json!({"spec": {"sync": {"prune": true}}})).await;
    world.eventually("rio is pruned", || async { server.get("/shops/rio").is_none().then_some(()) }).await;
}

#[tokio::test]
async fn too_many_deletions_wait_for_approval() {
    let (world, git, server) = (World::start().await, GitRemote::new(), shop_server());
    for index in 0..20 {
        git.write(&format!("shops/s{index}/resource.json"), format!(r#"{{"id": "s{index}"}}"#));
    }
    git.commit("twenty");
    git.push();
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    for index in 0..15 {
        git.remove(&format!("shops/s{index}"));
    }
    git.commit("five left");
    git.push();
    world.notify().await;
    let (_, message) = world.policy_reason("PruneRefused").await;
    assert!(message.contains("15 resources") && message.contains("/shops/s0"), "{message}");
    assert!(server.get("/shops/s0").is_some());
    world.patch::<SyncPolicy>("policy", json!({"spec": {"sync": {"pruneLimit": 15}}})).await;
    let status = world.applied(&git.head()).await;
    assert_eq!(status.resource_stats.unwrap().pruned, 15);
}

#[tokio::test]
async fn an_emptied_scope_is_not_pruned_by_accident() {
    let (world, git, server) = synced(json!({})).await;
    git.remove("shops").remove("orders");
    git.write("README.md", "nothing left");
    git.commit("empty");
    git.push();
    world.notify().await;
    // The diff is as wide as the scope, so the whole scope is compared.
    let (_, message) = world.policy_reason("PruneRefused").await;
    assert!(message.contains("allowEmpty"), "{message}");
    assert!(server.get("/shops/rio").is_some());
}

#[tokio::test]
async fn observing_reports_drift_and_writes_nothing() {
    let (world, git, server) = (World::start().await, shops(), shop_server());
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"mode": "observe"})).await;
    let status = world.policy("drift is reported", |status| is_true(&status.conditions, "Drifted")).await;
    assert_eq!(status.resource_stats.unwrap().drifted, 7);
    let message = &condition(&status.conditions, "Drifted").message;
    assert!(
        message.starts_with("7 resources differ from Git, not written (mode: observe): create /orders"),
        "{message}"
    );
    assert_eq!(status.drifted_resources.len(), 7);
    assert_eq!(status.last_applied_repo_revision, None);
    let expected = format!("compared revision {}; the condition Drifted names the differences", git.head());
    assert_eq!(ready(&status.conditions).message, expected);
    let (type_, note) = event(&world, "DriftObserved").await;
    assert!(type_ == "Normal" && note.starts_with("7 resources differ from Git"), "{type_}: {note}");
    assert_eq!(server.writes().len(), 0);
}

#[tokio::test]
async fn a_source_path_without_resources_is_named() {
    let (world, git, server) = (World::start().await, shops(), shop_server());
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"source": {"path": "/shpos"}})).await;
    let status = world.applied(&git.head()).await;
    let expected =
        format!("applied revision {}, which declares no resources at spec.source.path", git.head());
    assert_eq!(ready(&status.conditions).message, expected);
}

#[tokio::test]
async fn observing_names_the_differences_until_they_are_gone() {
    let (world, git, server) = synced(json!({"sync": {"prune": true}})).await;
    world.patch::<SyncPolicy>("policy", json!({"spec": {"mode": "observe"}})).await;
    server.put_by_hand("/shops/rio", json!({"id": "rio", "name": "Shop rio", "tier": 9}));
    git.remove("shops/kai/tills");
    git.commit("without a till");
    git.push();
    world.notify().await;
    let named = |status: &SyncPolicyStatus| status.drifted_resources.len() == 2;
    let status = world.policy("both are named", named).await;
    let message = &condition(&status.conditions, "Drifted").message;
    let expected = "2 resources differ from Git, not written (mode: observe): prune /shops/kai/tills/t1; update \
                    /shops/rio at /tier";
    assert_eq!(message, expected);
    assert_eq!(status.drifted_resources[1].pointers, ["/tier"]);

    world.patch::<SyncPolicy>("policy", json!({"spec": {"mode": "apply"}})).await;
    let status = world.policy("nothing differs", |status| status.drifted_resources.is_empty()).await;
    assert!(!is_true(&status.conditions, "Drifted"), "{status:?}");
}

#[tokio::test]
async fn the_log_names_each_resource_that_was_written() {
    let (world, git, _server) = synced(json!({"sync": {"prune": true}})).await;
    git.write("shops/rio/resource.yaml", "id: rio\nname: c4nary\ntier: 5\n");
    git.remove("shops/kai/tills");
    let revision = git.commit("changes");
    git.push();
    world.notify().await;
    world.applied(&revision).await;
    let log = world.log();
    let lines = log.lines().filter(|line| line.contains("resource written"));
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |operation: &str| lines.iter().filter(|line| line["operation"] == operation).collect::<Vec<_>>();
    assert_eq!(of("create").len(), 7);
    let [update] = of("update")[..] else { panic!("{lines:?}") };
    assert_eq!((&update["path"], &update["at"]), (&json!("/shops/rio"), &json!("/name /tier")));
    assert_eq!(update["name"], "policy", "{update}");
    let [prune] = of("prune")[..] else { panic!("{lines:?}") };
    assert_eq!(prune["path"], "/shops/kai/tills/t1");
    assert!(!log.contains("c4nary"));
}

#[tokio::test]
async fn a_suspended_policy_is_silent_until_it_resumes() {
    let (world, git, server) = synced(json!({})).await;
    world.patch::<SyncPolicy>("policy", json!({"spec": {"suspend": true}})).await;
    world.policy_reason("Suspended").await;
    server.reset_counts();
    git.write("shops/rio/resource.yaml", "id: rio\ntier: 5\n");
    let revision = git.commit("while suspended");
    git.push();
    world.notify().await;
    world
        .eventually("the commit is fetched", || async {
            let repository = world.api::<ResourceRepository>().get("repo").await.ok()?;
            (repository.status?.last_fetched_revision? == revision).then_some(())
        })
        .await;
    assert_eq!(server.counts().total(), 0);
    world.patch::<SyncPolicy>("policy", json!({"spec": {"suspend": false}})).await;
    let status = world.applied(&revision).await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
}

#[tokio::test]
async fn an_annotation_asks_for_a_full_run() {
    let (world, _git, server) = synced(json!({})).await;
    server.put_by_hand("/shops/rio", json!({"id": "rio"}));
    world.request_sync().await;
    world.finished("ManualRequest").await;
    world.eventually("rio is whole again", || async { server.get("/shops/rio")?.get("tier").cloned() }).await;
}

#[rstest]
#[case::literal("server")]
#[case::placeholder("${SHOP_SERVER}")]
#[tokio::test]
async fn the_newer_of_two_overlapping_policies_waits_for_the_older(#[case] name: &str) {
    let (git, server) = (shops(), shop_server());
    let world = World::start_in(&[("SHOP_SERVER", "server")], &["--env-expand-allow=SHOP_*"]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"managedServerRef": {"name": name}, "source": {"path": "/shops"}})).await;
    world.applied(&git.head()).await;
    world
        .create(json!({
            "apiVersion": "declarest.io/v1alpha1", "kind": "SyncPolicy", "metadata": {"name": "second"},
            "spec": {
                "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
                "source": {"path": "/shops/rio"},
            }
        }))
        .await;
    let api = world.api::<SyncPolicy>();
    let reason = async || {
        let status = api.get("second").await.ok()?.status?;
        Some(condition(&status.conditions, "Ready").reason)
    };
    world.eventually("it waits", || async { (reason().await? == "OverlappingPolicy").then_some(()) }).await;
    world.delete::<SyncPolicy>("policy").await;
    world.eventually("it takes over", || async { (reason().await? == "Ready").then_some(()) }).await;
    assert!(git.head().len() == 40);
}

#[tokio::test]
async fn an_overlap_ends_and_begins_with_the_server_of_the_older_policy() {
    let (git, server, other, world) = (shops(), shop_server(), shop_server(), World::start().await);
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create(declarest("ManagedServer", "other", &json!({"http": {"baseURL": other.url()}}))).await;
    world.create_policy(json!({"source": {"path": "/shops"}})).await;
    world.applied(&git.head()).await;
    let spec = json!({
        "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
        "source": {"path": "/shops/rio"}, "syncInterval": "1h",
    });
    world.create(declarest("SyncPolicy", "second", &spec)).await;
    let api = world.api::<SyncPolicy>();
    let second_is = async |reason: &str| {
        let look = async || {
            let status = api.get("second").await.ok()?.status?;
            (condition(&status.conditions, "Ready").reason == reason).then_some(())
        };
        world.eventually(&format!("the newer policy is {reason}"), &look).await;
    };
    second_is("OverlappingPolicy").await;
    for (server, reason) in [("other", "Ready"), ("server", "OverlappingPolicy")] {
        world.patch::<SyncPolicy>("policy", json!({"spec": {"managedServerRef": {"name": server}}})).await;
        second_is(reason).await;
    }
}

/// One repository can be applied to several servers, for example staging and production.
#[tokio::test]
async fn a_run_does_not_wait_for_one_on_another_server() {
    let (world, git, slow, fast) = (World::start().await, shops(), shop_server(), shop_server());
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": slow.url()})).await;
    world.create(declarest("ManagedServer", "fast", &json!({"http": {"baseURL": fast.url()}}))).await;
    let held = slow.hold(Matcher::any());
    world.create_policy(json!({})).await;
    let in_flight = || async { (slow.open() > 0).then_some(()) };
    world.eventually("a request to the slow server is in flight", in_flight).await;
    let spec = json!({
        "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "fast"},
        "source": {"path": "/"},
    });
    world.create(declarest("SyncPolicy", "second", &spec)).await;
    let (api, head) = (world.api::<SyncPolicy>(), git.head());
    let applied = async || {
        let status = api.get("second").await.ok()?.status?;
        (status.last_applied_repo_revision.as_deref() == Some(&*head)).then_some(())
    };
    world.eventually("the policy of the other server applies", &applied).await;
    assert_eq!((slow.resources().len(), fast.resources().len()), (0, 7));
    drop(held);
    world.applied(&head).await;
}

/// The run of the younger policy is still under way when the older one claims its scope.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_policy_that_resumes_stops_the_run_of_the_newer() {
    const RESOURCES: usize = 80;
    let (world, git) = (World::start().await, GitRemote::new());
    for index in 0..RESOURCES {
        git.write(&format!("shops/s{index}/resource.json"), format!(r#"{{"id": "s{index}"}}"#));
    }
    git.commit("shops");
    git.push();
    let server = shop_server();
    world.create_repository(&git.file_url(), Value::Null).await;
    let throttling = json!({"maxConcurrentRequests": 1});
    world.create_server(json!({"baseURL": server.url(), "requestThrottling": throttling})).await;
    let source = json!({"path": "/shops/s0"});
    world.create_policy(json!({"source": source, "suspend": true})).await;
    world.policy_reason("Suspended").await;
    // Ages count in seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    server.latency(Duration::from_millis(100));
    let spec = json!({
        "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
        "source": {"path": "/shops"},
    });
    world.create(declarest("SyncPolicy", "second", &spec)).await;
    world.eventually("it creates", || async { (server.resources().len() > 2).then_some(()) }).await;
    world.patch::<SyncPolicy>("policy", json!({"spec": {"suspend": false}})).await;
    let api = world.api::<SyncPolicy>();
    let gave_way = async || {
        let status = api.get("second").await.ok()?.status?;
        (condition(&status.conditions, "Ready").reason == "OverlappingPolicy").then_some(())
    };
    world.eventually("the newer one gives way", &gave_way).await;
    let created = server.resources().len();
    assert!(created < RESOURCES / 2, "the run of the newer policy went on: {created} created");
    world.applied(&git.head()).await;
    assert!(server.resources().len() <= created + 1, "only the older policy goes on");
}

/// A clock that was set back must not put off the correction of drift.
#[tokio::test]
async fn times_in_the_future_are_due_now() {
    let (mut world, _git, server) = synced(json!({"syncInterval": "1h"})).await;
    let future = jiff::Timestamp::now() + Duration::from_hours(24 * 30);
    let future = jiff::Timestamp::from_second(future.as_second()).unwrap().to_string();
    let status = json!({"status": {"lastFullResyncTime": future, "nextSyncTime": future}});
    let api = world.api::<SyncPolicy>();
    api.patch_status("policy", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    server.put_by_hand("/shops/rio", json!({"id": "rio", "tier": 7}));
    world.kill();
    world.launch().await;
    let status = world.finished("DriftDue").await;
    assert_eq!(server.get("/shops/rio").unwrap()["tier"], json!(1));
    let now = jiff::Timestamp::now();
    assert!(status.last_full_resync_time.unwrap().0 <= now, "the time is true again");
    assert!(status.next_sync_time.unwrap().0 <= now + Duration::from_hours(1));
}

#[tokio::test]
async fn deleting_a_policy_leaves_the_server_alone_and_releases_the_object() {
    let (world, _git, server) = synced(json!({})).await;
    server.reset_counts();
    world.delete::<SyncPolicy>("policy").await;
    assert_eq!(server.counts().total(), 0);
    assert!(server.get("/shops/rio").is_some());
}

#[tokio::test]
async fn a_force_push_is_compared_as_a_whole_and_prunes_what_it_dropped() {
    let (world, git, server) = synced(json!({})).await;
    let first = git.head();
    git.write("shops/gone/resource.json", r#"{"id": "gone"}"#);
    let dropped = git.commit("to be dropped");
    git.push();
    world.notify().await;
    world.applied(&dropped).await;
    git.reset_to(&first);
    git.write("shops/kept/resource.json", r#"{"id": "kept"}"#);
    let rewritten = git.commit("rewritten");
    git.force_push();
    world.notify().await;
    let status = world.applied(&rewritten).await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    assert!(server.get("/shops/kept").is_some());
    assert!(server.get("/shops/gone").is_none(), "what the lost commit declared was this policy's");
}

#[tokio::test]
async fn a_branch_that_is_deleted_and_created_again_prunes_only_what_it_dropped() {
    let (world, git, server) = synced(json!({})).await;
    let before = server.resources().len();
    git.delete_branch();
    world.notify().await;
    let message = world.repository_reason("FetchFailed").await;
    assert!(message.contains("main"), "{message}");
    assert_eq!(server.resources().len(), before);

    // The new branch has a history of its own.
    git.restart_history();
    git.write("shops/new/resource.json", r#"{"id": "new"}"#);
    git.remove("shops/rio");
    let created = git.commit("created again");
    git.push();
    world.notify().await;
    let status = world.applied(&created).await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    assert!(server.get("/shops/new").is_some());
    assert!(server.get("/shops/rio").is_none(), "what the lost branch declared was this policy's");
}

#[tokio::test]
async fn a_rotated_secret_is_used_without_a_restart_and_causes_a_full_run() {
    let (world, git, server) = (World::start().await, shops(), shop_server());
    server.require_basic("ops", "first");
    world.create_secret("login", &[("user", "ops"), ("password", "first")]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let auth = json!({"basicAuth": {
        "usernameRef": {"name": "login", "key": "user"}, "passwordRef": {"name": "login", "key": "password"}
    }});
    world.create_server(json!({"baseURL": server.url(), "auth": auth})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    server.require_basic("ops", "second");
    world.replace_secret("login", &[("password", "second")]).await;
    let status = world.finished("SecretChanged").await;
    assert!(!world.log().contains("second"), "a secret is in the log");
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    world.applied(&git.head()).await;
}

#[tokio::test]
async fn a_rotated_token_of_git_causes_no_full_run() {
    let (world, git, server) = (World::start().await, shops(), shop_server());
    let http = GitHttp::start(git.root(), Some("first"));
    world.create_secret("git", &[("token", "first")]).await;
    let token = json!({"tokenRef": {"name": "git", "key": "token"}});
    world.create_repository(&http.url("desired.git"), token).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    let before = world.applied(&git.head()).await;
    http.set_token("second");
    world.replace_secret("git", &[("token", "second")]).await;
    git.write("shops/oslo/resource.json", r#"{"id": "oslo"}"#);
    let second = git.commit("second");
    git.push();
    world.notify().await;
    let status = world.applied(&second).await;
    assert_eq!(status.last_trigger.as_deref(), Some("RevisionChanged"));
    assert_eq!(status.last_full_resync_time, before.last_full_resync_time);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_termination_ends_the_run_and_exits_cleanly() {
    let (mut world, git, server) = (World::start().await, shops(), shop_server());
    let held = server.hold(Matcher::method("POST"));
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.eventually("a create is in flight", || async { (server.open() > 0).then_some(()) }).await;
    let release = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(held);
    });
    let exit = tokio::task::block_in_place(|| world.terminate());
    release.join().unwrap();
    assert!(exit.success(), "{exit:?}\n{}", world.log());
    world.launch().await;
    let status = world.applied(&git.head()).await;
    assert_eq!(status.resource_stats.unwrap().failed, 0);
    assert_eq!(server.duplicates().len(), 0);
}

#[tokio::test]
async fn a_repository_that_moves_is_compared_as_a_whole_and_prunes_nothing_of_the_old_one() {
    let (world, _git, server) = synced(json!({})).await;
    let elsewhere = GitRemote::new();
    elsewhere.write("shops/solo/resource.json", r#"{"id": "solo"}"#);
    let revision = elsewhere.commit("another history");
    elsewhere.push();
    let url = json!({"spec": {"git": {"url": elsewhere.file_url()}}});
    world.patch::<ResourceRepository>("repo", url).await;
    let status = world.applied(&revision).await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    assert_eq!(status.inventory_base_revision.as_deref(), Some(revision.as_str()));
    assert!(server.get("/shops/solo").is_some());
    assert!(server.get("/shops/rio").is_some(), "the new history never declared it");
}

#[tokio::test]
async fn a_paginated_list_never_leads_to_a_second_creation() {
    let (world, git, server) = synced(json!({})).await;
    // From now on the list hides the order and says that there is more.
    server.paginate("/orders");
    world.request_sync().await;
    let (status, message) = world.policy_reason("PartialFailure").await;
    assert!(message.contains("/orders/blue") && message.contains("further pages"), "{message}");
    assert_eq!(status.resource_stats.unwrap().failed, 1);
    assert_eq!(server.resources().iter().filter(|(path, _)| path.starts_with("/orders/")).count(), 1);
    assert_eq!(status.last_applied_repo_revision, Some(git.head()));
}
