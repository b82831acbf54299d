//! `declarest operator`, with an API server that has one policy and runs it on request.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use rstest::rstest;
use serde_json::{Value, json};

use crate::environment::{Home, Run};

const POLICIES: &str = "/apis/declarest.io/v1alpha1/namespaces/team/syncpolicies";

/// The policy, the outcome of a requested run, and the changes so far.
pub struct Cluster {
    policy: Value,
    outcome: Option<&'static str>,
    patches: Vec<Value>,
}

pub type Shared = Arc<Mutex<Cluster>>;

fn policy() -> Value {
    json!({
        "apiVersion": "declarest.io/v1alpha1", "kind": "SyncPolicy",
        "metadata": {"name": "shops", "namespace": "team", "generation": 2},
        "spec": {"suspend": false},
        "status": {
            "lastAppliedRepoRevision": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
            "lastSuccessfulSyncTime": "2026-01-31T12:00:00Z",
            "resourceStats": {"targeted": 13, "applied": 12, "pruned": 0, "failed": 1, "drifted": 0},
            "failedResources": [{"path": "/shops/rio", "operation": "update", "reason": "Refused", "message": "status 422"}],
            "conditions": [
                {"type": "Drifted", "status": "False", "reason": "InSync", "message": ""},
                {"type": "Ready", "status": "False", "reason": "ResourcesFailed", "message": "1 of 13 resources failed",
                 "observedGeneration": 2},
            ],
        },
    })
}

fn others(plural: &str) -> Value {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": "ready", "observedGeneration": 1}]);
    let mut fetching = ready.clone();
    fetching
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "Reconciling", "status": "True", "reason": "Reconciling",
        "message": "fetching branch main", "observedGeneration": 1}));
    match plural {
        "managedservers" => json!([
            {"metadata": {"name": "shop", "namespace": "team", "generation": 1}, "status": {"conditions": ready}},
            {"metadata": {"name": "new", "namespace": "team", "generation": 3}, "status": {"conditions": ready}},
        ]),
        "resourcerepositories" => json!([
            {"metadata": {"name": "git", "namespace": "team", "generation": 1},
             "status": {"conditions": fetching, "lastFetchedRevision": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"}},
        ]),
        _ => json!([]),
    }
}

/// Merges a JSON Merge Patch without null (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    match patch.as_object() {
        Some(members) => members.iter().for_each(|(key, member)| merge(&mut target[key], member)),
        None => *target = patch.clone(),
    }
}

async fn answer(
    State(cluster): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    if headers.get("Authorization").is_none_or(|token| token != "Bearer canary") {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401,
            "reason": "Unauthorized", "message": "Unauthorized"});
        return (StatusCode::UNAUTHORIZED, status.to_string());
    }
    let mut cluster = cluster.lock().unwrap();
    let path = uri.path();
    if path == format!("{POLICIES}/shops") {
        if method == Method::PATCH {
            let patch: Value = serde_json::from_slice(&body).unwrap();
            merge(&mut cluster.policy, &patch);
            cluster.patches.push(patch);
        } else if let (Some(request), Some(outcome)) = (
            cluster.policy.pointer("/metadata/annotations/declarest.io~1sync-requested-at").cloned(),
            cluster.outcome,
        ) {
            cluster.policy["status"]["lastHandledSyncRequest"] = request;
            cluster.policy["status"]["lastRunOutcome"] = outcome.into();
        }
        return (StatusCode::OK, cluster.policy.to_string());
    }
    let plural = path.rsplit('/').next().unwrap();
    let items = match plural {
        "syncpolicies" if !path.contains("/empty/") => json!([cluster.policy]),
        "managedservers" | "resourcerepositories" | "secretstores" if !path.contains("/empty/") => {
            others(plural)
        }
        _ => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "not found"});
            return (StatusCode::NOT_FOUND, status.to_string());
        }
    };
    (StatusCode::OK, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}).to_string())
}

/// An API server whose runs end with `outcome`, and a home with a kubeconfig for it.
pub fn cluster(outcome: Option<&'static str>, suspended: bool) -> (Home, Shared) {
    let mut policy = policy();
    policy["spec"]["suspend"] = suspended.into();
    let shared: Shared = Arc::new(Mutex::new(Cluster { policy, outcome, patches: Vec::new() }));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let served = Arc::clone(&shared);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, Router::new().fallback(answer).with_state(served)).await.unwrap();
        });
    });
    let home = Home::new();
    home.write(
        ".kube/config",
        &format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: dev\n\
             clusters: [{{name: dev, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: user, user: {{token: canary}}}}]\n\
             contexts: [{{name: dev, context: {{cluster: dev, user: user, namespace: team}}}}]\n"
        ),
    );
    (home, shared)
}

fn operator(home: &Home, arguments: &[&str]) -> Run {
    let run = home.run(&[&["operator"], arguments].concat());
    assert!(!format!("{run}").contains("canary"), "{run}");
    run
}

#[test]
fn status_is_a_table() {
    let (home, _) = cluster(None, false);
    insta::assert_snapshot!(operator(&home, &["status"]), @r"
    exit 0
    --- stdout
    NAME                    READY    REASON           REVISION      LAST SYNC             RESOURCES
    managedserver/new       Unknown  -                -             -                     -
        the operator has not handled the current spec
    managedserver/shop      True     Ready            -             -                     -
    resourcerepository/git  True     Ready            0a1b2c3d4e5f  -                     -
        fetching branch main
    syncpolicy/shops        False    ResourcesFailed  0a1b2c3d4e5f  2026-01-31T12:00:00Z  12 applied, 1 failed
        1 of 13 resources failed
    --- stderr
    ");
    insta::assert_snapshot!(operator(&home, &["status", "-A", "-o", "wide"]), @r"
    exit 0
    --- stdout
    NAMESPACE  NAME                    READY    REASON           REVISION      LAST SYNC             RESOURCES             MESSAGE
    team       managedserver/new       Unknown  -                -             -                     -                     the operator has not handled the current spec
    team       managedserver/shop      True     Ready            -             -                     -                     ready
    team       resourcerepository/git  True     Ready            0a1b2c3d4e5f  -                     -                     ready
        fetching branch main
    team       syncpolicy/shops        False    ResourcesFailed  0a1b2c3d4e5f  2026-01-31T12:00:00Z  12 applied, 1 failed  1 of 13 resources failed
    --- stderr
    ");
    insta::assert_snapshot!(operator(&home, &["status", "-o", "name"]), @r"
    exit 0
    --- stdout
    managedserver/new
    managedserver/shop
    resourcerepository/git
    syncpolicy/shops
    --- stderr
    ");
}

#[test]
fn status_as_json() {
    let (home, _) = cluster(None, false);
    let run = operator(&home, &["status", "-o", "json"]);
    let reports: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reports.as_array().unwrap().len(), 4, "{run}");
    assert_eq!(
        reports[3],
        json!({
            "kind": "SyncPolicy", "namespace": "team", "name": "shops", "ready": "False", "reason": "ResourcesFailed",
            "message": "1 of 13 resources failed", "suspended": false, "lastSync": "2026-01-31T12:00:00Z",
            "revision": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
            "resources": {"targeted": 13, "applied": 12, "pruned": 0, "failed": 1, "drifted": 0},
        })
    );
}

#[test]
fn a_cluster_without_our_definitions() {
    let (home, _) = cluster(None, false);
    insta::assert_snapshot!(operator(&home, &["status", "-n", "empty"]), @r"
    exit 3
    --- stdout
    --- stderr
    the API server answered 404: not found
    hint: install the CRDs of DeclaREST in this cluster
    ");
}

#[test]
fn sync_requests_a_run() {
    let (home, cluster) = cluster(None, false);
    insta::assert_snapshot!(operator(&home, &["sync", "shops"]), @r"
    exit 0
    --- stdout
    syncpolicy/shops: requested a run
    --- stderr
    ");
    let patches = cluster.lock().unwrap().patches.clone();
    let request = patches[0]["metadata"]["annotations"]["declarest.io/sync-requested-at"].as_str().unwrap();
    assert!(patches.len() == 1 && request.starts_with("20") && request.ends_with('Z'), "{patches:?}");
}

#[rstest]
#[case::succeeded(Some("Succeeded"), "10s", 0)]
#[case::failed(Some("PartiallyFailed"), "10s", 1)]
#[case::nothing_runs(None, "1s", 6)]
fn sync_waits_for_the_result(#[case] outcome: Option<&'static str>, #[case] wait: &str, #[case] code: i32) {
    let (home, _) = cluster(outcome, false);
    let run = operator(&home, &["sync", "shops", &format!("--wait={wait}")]);
    assert_eq!(run.code, code, "{run}");
    let expected = match outcome {
        Some("Succeeded") => "syncpolicy/shops: the run succeeded\n",
        Some(_) => {
            "the run of SyncPolicy \"shops\" ended with PartiallyFailed: 1 of 13 resources failed\n  update /shops/rio: status 422\n"
        }
        None => "SyncPolicy \"shops\" did not run within 1 s: ResourcesFailed: 1 of 13 resources failed\n",
    };
    assert!(format!("{}{}", run.stdout, run.stderr).starts_with(expected), "{run}");
}

#[test]
fn sync_does_not_wait_for_a_rejected_policy() {
    let (home, cluster) = cluster(None, false);
    cluster.lock().unwrap().policy["status"]["conditions"][1]["reason"] = "OverlappingPolicy".into();
    insta::assert_snapshot!(operator(&home, &["sync", "shops", "--wait=60s"]), @r#"
    exit 2
    --- stdout
    --- stderr
    SyncPolicy "shops" does not run: OverlappingPolicy: 1 of 13 resources failed
    "#);
}

#[test]
fn a_suspended_policy_does_not_run() {
    let (home, cluster) = cluster(Some("Succeeded"), true);
    insta::assert_snapshot!(operator(&home, &["sync", "shops"]), @r#"
    exit 2
    --- stdout
    --- stderr
    SyncPolicy "shops" is suspended, so it does not run
    hint: "declarest operator resume shops" continues its runs
    "#);
    assert_eq!(cluster.lock().unwrap().patches.len(), 0);
}

#[test]
fn suspend_and_resume() {
    let (home, cluster) = cluster(None, false);
    let says = |arguments: &[&str]| {
        let run = operator(&home, arguments);
        assert_eq!(run.code, 0, "{run}");
        run.stdout
    };
    assert_eq!(says(&["suspend", "shops"]), "syncpolicy/shops: suspended\n");
    assert_eq!(says(&["suspend", "shops"]), "syncpolicy/shops: is already suspended\n");
    assert_eq!(says(&["resume", "shops"]), "syncpolicy/shops: resumed\n");
    assert_eq!(says(&["resume", "shops"]), "syncpolicy/shops: is not suspended\n");
    let patches = cluster.lock().unwrap().patches.clone();
    assert_eq!(patches, [json!({"spec": {"suspend": true}}), json!({"spec": {"suspend": false}})]);
}

#[rstest]
#[case::sync("sync")]
#[case::suspend("suspend")]
#[case::resume("resume")]
fn an_unknown_policy(#[case] command: &str) {
    let (home, _) = cluster(None, false);
    let run = operator(&home, &[command, "shop"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.starts_with("SyncPolicy \"shop\" not found in namespace \"team\"\nhint: "), "{run}");
}
