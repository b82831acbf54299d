//! Each way in which a sync can fail is visible in a condition, an event, a log line and a metric.

use declarest_operator::crd::SyncPolicy;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use rstest::rstest;
use serde_json::{Value, json};

use crate::metrics::{METRICS, series};
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, Requirement, RestServer};
use crate::support::world::World;

/// What is wrong in a world that is otherwise in order.
enum Fault {
    /// The specification of the policy has this member.
    Policy(Value),
    /// The repository has this URL and authentication.
    Repository(&'static str, Value),
    /// The Git remote expects another token.
    Token,
    /// The managed server has this URL.
    Server(&'static str),
    /// The managed server expects a credential.
    Credential,
    /// The managed server refuses a deletion.
    Deletion,
    /// The managed server refuses a resource, which lacks a member.
    Resource,
}

/// The place of the failure: the kind, its name, and the counter that shows it.
struct Place {
    kind: &'static str,
    name: &'static str,
    counter: &'static str,
}

const POLICY: Place = Place {
    kind: "SyncPolicy",
    name: "policy",
    counter: r#"syncpolicy_reconcile_total{name="policy",namespace="NAMESPACE",reason="REASON",result="failure"}"#,
};
const POLL: Place = Place {
    kind: "ResourceRepository",
    name: "repo",
    counter: r#"resource_repository_poll_total{name="repo",namespace="NAMESPACE",result="failure"}"#,
};

#[rstest]
#[case::invalid_spec(Fault::Policy(json!({"fullResyncCron": "61 * * * *"})), POLICY, "SpecInvalid", "spec.fullResyncCron")]
#[case::missing_object(Fault::Policy(json!({"managedServerRef": {"name": "absent"}})), POLICY, "DependencyInvalid", "absent")]
#[case::missing_secret(Fault::Repository("https://git.example.test/desired.git", json!({"tokenRef": {"name": "absent", "key": "token"}})), POLL, "DependencyInvalid", "absent")]
#[case::fetch(
    Fault::Repository("http://127.0.0.1:9/desired.git", Value::Null),
    POLL,
    "FetchFailed",
    "127.0.0.1:9"
)]
#[case::git_authentication(Fault::Token, POLL, "AuthFailed", "spec.git.auth.tokenRef: Secret git")]
#[case::api_authentication(Fault::Credential, POLICY, "ManagedServerAuthFailed", "ManagedServer server: ")]
#[case::api_transport(
    Fault::Server("http://127.0.0.1:9"),
    POLICY,
    "ManagedServerUnavailable",
    "ManagedServer server: "
)]
#[case::apply(Fault::Resource, POLICY, "PartialFailure", "/items/bad")]
#[case::prune(Fault::Deletion, POLICY, "PartialFailure", "/items/i1")]
#[tokio::test]
async fn a_failure_is_visible_everywhere(
    #[case] fault: Fault,
    #[case] place: Place,
    #[case] reason: &str,
    #[case] named: &str,
) {
    let git = repository();
    let sized = Requirement { collection: "/items".to_owned(), pointer: "/size".to_owned() };
    let config =
        Config { collections: vec!["/items".to_owned()], requirements: vec![sized], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    let world = World::start_with(&[METRICS, "--log-format=json"]).await;
    let http = GitHttp::start(git.root(), Some("right"));
    arrange(&world, &git, &http, &server, &fault).await;

    let message = match place.kind {
        "SyncPolicy" => world.policy_reason(reason).await.1,
        _ => world.repository_reason(reason).await,
    };
    assert!(message.contains(named), "{message}");

    let event = async || {
        let events = world.api::<Event>().list(&ListParams::default()).await.ok()?.items;
        events.into_iter().find(|event| {
            let regarding = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
            event.reason.as_deref() == Some(reason) && regarding == Some(place.kind)
        })
    };
    let event = world.eventually(&format!("the event {reason}"), event).await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert!(event.note.unwrap().contains(named));

    let log = world.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let shown: Vec<_> = lines.filter(|line| line.to_string().contains(&format!("\"{reason}\""))).collect();
    let complete = |line: &Value| {
        let text = line.to_string();
        line["level"] == "warn" && [named, place.kind, place.name].iter().all(|part| text.contains(part))
    };
    assert!(shown.iter().any(complete), "{shown:#?}");

    let namespace = &world.namespace;
    let gauge = format!(
        r#"resource_condition{{kind="{}",name="{}",namespace="{namespace}",status="False",type="Ready"}}"#,
        place.kind, place.name
    );
    series(&world, &gauge, |value| value >= 1.0).await;
    let counter = place.counter.replace("NAMESPACE", namespace).replace("REASON", reason);
    series(&world, &counter, |value| value >= 1.0).await;
}

fn repository() -> GitRemote {
    let git = GitRemote::new();
    for id in 1..=5 {
        git.write(&format!("items/i{id}/resource.json"), format!(r#"{{"id": "i{id}", "size": 1}}"#));
    }
    git.commit("items");
    git.push();
    git
}

/// Creates the objects of a world with `fault`, and waits until a first run is over if the fault needs one.
async fn arrange(world: &World, git: &GitRemote, http: &GitHttp, server: &RestServer, fault: &Fault) {
    let (url, auth, base) = match fault {
        Fault::Repository(url, auth) => ((*url).to_owned(), auth.clone(), server.url()),
        Fault::Token => {
            world.create_secret("git", &[("token", "wrong")]).await;
            let token = json!({"tokenRef": {"name": "git", "key": "token"}});
            (http.url("desired.git"), token, server.url())
        }
        Fault::Server(base) => (git.file_url(), Value::Null, (*base).to_owned()),
        _ => (git.file_url(), Value::Null, server.url()),
    };
    if let Fault::Credential = fault {
        server.require_header("X-Key", "right");
    }
    if let Fault::Resource = fault {
        git.write("items/bad/resource.json", r#"{"id": "bad"}"#);
        git.commit("an item without size");
        git.push();
    }
    world.create_repository(&url, auth).await;
    world.create_server(json!({"baseURL": base})).await;
    let policy = if let Fault::Policy(more) = fault { more.clone() } else { json!({}) };
    world.create_policy(policy).await;
    if let Fault::Deletion = fault {
        world.policy_reason("Ready").await;
        server.fail(Matcher::new("DELETE", "/items/i1"), 422, usize::MAX);
        git.remove("items/i1");
        git.commit("one item less");
        git.push();
        world.notify().await;
    }
}

/// A change of an object during the backoff of its policy reconciles the policy, without a run.
#[tokio::test]
async fn a_failed_run_is_logged_once() {
    let git = GitRemote::new();
    git.write("items/i1/resource.json", r#"{"id": "i1"}"#);
    git.commit("first");
    git.push();
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    server.fail(Matcher::method("POST"), 422, 99);
    let world = World::start_with(&[METRICS, "--log-format=json"]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"source": {"path": "/items"}})).await;
    let (status, _) = world.policy_reason("PartialFailure").await;
    let counter = format!(
        r#"syncpolicy_reconcile_total{{name="policy",namespace="{}",reason="PartialFailure",result="failure"}}"#,
        world.namespace
    );
    for round in 2..=4 {
        let changed = json!({"metadata": {"annotations": {"example.org/round": round.to_string()}}});
        world.patch::<SyncPolicy>("policy", changed).await;
        series(&world, &counter, |value| value >= f64::from(round)).await;
    }
    let log = world.log();
    // A run may have finished whose failure is not logged yet.
    let (concluded, _) = log.rsplit_once("reconcile failed").unwrap();
    let logged = concluded.matches("reconcile failed").count() + 1;
    let runs = concluded.matches("sync finished").count();
    assert_eq!((logged, status.consecutive_failures), (runs, 1), "{log}");
}
