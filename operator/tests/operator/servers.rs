//! The credentials of managed servers: tokens, client certificates and proxies, from Secrets that are replaced while the
//! operator runs.

use std::net::SocketAddr;
use std::time::Duration;

use declarest_operator::crd::sync_policy::RunKind;
use declarest_operator::crd::{ManagedServer, SyncPolicy};
use serde_json::{Value, json};

use crate::support::bearer::Bearer;
use crate::support::git_remote::GitRemote;
use crate::support::network::{Authority, Identity, RecordingProxy};
use crate::support::ports::free_ports;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::{World, condition, declarest};

const SECRET: &str = "canary-0a7f-first";
const NEXT_SECRET: &str = "canary-0a7f-second";

fn repository() -> GitRemote {
    let git = GitRemote::new();
    git.write("shops/rio/resource.yaml", "id: rio\ntier: gold\n");
    git.commit("first");
    git.push();
    git
}

/// What the next commit declares.
fn push_another(git: &GitRemote) {
    git.write("shops/leo/resource.yaml", "id: leo\n");
    git.commit("second");
    git.push();
}

fn rest_server() -> (RestServer, SocketAddr) {
    let server =
        RestServer::start(Config { collections: vec!["/shops".to_owned()], ..Config::default() }).unwrap();
    let address = server.url().trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    (server, address)
}

/// Starts an operator, and returns the address of its metrics.
async fn measured() -> (World, String) {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let world = World::start_with(&[&format!("--metrics-bind-address={address}")]).await;
    (world, format!("http://{address}/metrics"))
}

/// How often tokens were asked for: the reason, the result, and the number.
async fn token_requests(metrics: &str) -> Vec<(String, String, usize)> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let text = client.get(metrics).send().await.unwrap().text().await.unwrap();
    let series = text.lines().filter_map(|line| {
        let labels = line.strip_prefix("declarest_operator_managed_server_token_requests_total{")?;
        let (labels, count) = labels.split_once("} ")?;
        assert!(labels.contains("name=\"server\""), "{line}");
        let label = |name: &str| {
            let value = labels.split(',').find_map(|label| label.strip_prefix(name)).unwrap();
            value.trim_matches(['=', '"']).to_owned()
        };
        Some((label("reason"), label("result"), count.parse().unwrap()))
    });
    series.collect()
}

fn requests(reason: &str, result: &str, count: usize) -> (String, String, usize) {
    (reason.to_owned(), result.to_owned(), count)
}

fn key(name: &str, key: &str) -> Value {
    json!({"name": name, "key": key})
}

/// A server that wants tokens, and what is declared to be on it.
struct Guarded {
    git: GitRemote,
    server: RestServer,
    guard: Bearer,
    world: World,
    /// Where the operator shows its metrics.
    metrics: String,
}

/// An operator whose client has [`SECRET`], before a token endpoint that takes `secret`.
async fn guarded(secret: &str) -> Guarded {
    let (git, (server, behind)) = (repository(), rest_server());
    let guard = Bearer::start(behind, secret).await;
    let (world, metrics) = measured().await;
    world.create_secret("app", &[("id", "operator"), ("secret", SECRET)]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let oauth2 = json!({
        "tokenURL": format!("{}/oauth/token", guard.url),
        "clientIDRef": key("app", "id"), "clientSecretRef": key("app", "secret"),
    });
    world.create_server(json!({"baseURL": guard.url, "auth": {"oauth2": oauth2}})).await;
    world.create_policy(json!({})).await;
    Guarded { git, server, guard, world, metrics }
}

#[tokio::test]
async fn a_rotated_client_secret_counts_for_the_next_request() {
    let Guarded { git, server, guard, world, metrics } = guarded(SECRET).await;
    world.applied(&git.head()).await;
    assert_eq!(server.get("/shops/rio").unwrap()["tier"], "gold");
    assert_eq!(guard.counts(), (1, 0, 0));

    guard.rotate(NEXT_SECRET);
    world.replace_secret("app", &[("secret", NEXT_SECRET)]).await;
    // The Secret has everything that depends on it run in full.
    world.eventually("another token is obtained", || async { (guard.counts().0 == 2).then_some(()) }).await;
    push_another(&git);
    world.notify().await;
    world.applied(&git.head()).await;
    assert!(server.get("/shops/leo").is_some());
    assert_eq!(guard.counts(), (2, 0, 0));
    // Both were the first of their client, which another Secret makes another one.
    assert_eq!(token_requests(&metrics).await, [requests("first", "success", 2)]);
    for secret in [SECRET, NEXT_SECRET, "issued-token"] {
        assert!(!world.log().contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn a_revoked_client_secret_is_tried_once_and_mended_by_its_replacement() {
    let Guarded { git, server, guard, world, metrics } = guarded(NEXT_SECRET).await;
    world.eventually("the secret is refused", || async { (guard.counts().1 > 0).then_some(()) }).await;
    world.replace_secret("app", &[("secret", NEXT_SECRET)]).await;
    world.applied(&git.head()).await;
    assert!(server.get("/shops/rio").is_some());
    let (issued, refused, without_token) = guard.counts();
    assert_eq!(without_token, 0, "nothing is sent without a token");
    let mut counted = token_requests(&metrics).await;
    counted.sort();
    assert_eq!(counted, [requests("first", "failure", refused), requests("first", "success", issued)]);
}

async fn create_identity(world: &World, authority: &Authority, identity: &Identity) {
    let data = [("ca", &*authority.pem()), ("cert", identity.pem()), ("key", &*identity.key())];
    world.create_secret("tls", &data).await;
}

#[tokio::test]
async fn a_client_certificate_is_presented_and_replaced() {
    let (git, (server, behind)) = (repository(), rest_server());
    let authority = Authority::new();
    let front = authority.identity("localhost", &[]).serve(Some(&authority), behind);
    let world = World::start().await;
    create_identity(&world, &authority, &Authority::new().identity("operator", &[])).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let tls = json!({
        "caCertRef": key("tls", "ca"), "clientCertRef": key("tls", "cert"), "clientKeyRef": key("tls", "key"),
    });
    let base_url = format!("https://localhost:{}", front.address.port());
    world.create_server(json!({"baseURL": base_url, "tls": tls})).await;
    world.create_policy(json!({})).await;
    world
        .eventually("a stranger is refused", || async {
            world.log().contains("it refused the configured client certificate").then_some(())
        })
        .await;

    let member = authority.identity("operator", &[]);
    world.replace_secret("tls", &[("cert", member.pem()), ("key", &member.key())]).await;
    world.applied(&git.head()).await;
    assert!(server.get("/shops/rio").is_some());
}

#[tokio::test]
async fn a_key_that_does_not_fit_is_the_fault_of_the_secret() {
    let world = World::start().await;
    let authority = Authority::new();
    let identity = authority.identity("operator", &[]);
    let other = authority.identity("other", &[]).key();
    world.create_secret("tls", &[("cert", identity.pem()), ("key", &*other)]).await;
    let tls = json!({"clientCertRef": key("tls", "cert"), "clientKeyRef": key("tls", "key")});
    world.create_server(json!({"baseURL": "https://api.example.test", "tls": tls})).await;
    let message = world.server_reason("DependencyInvalid").await;
    assert_eq!(message, "spec.http.tls.clientKeyRef: it is not the key of the certificate");
    world.replace_secret("tls", &[("key", &identity.key())]).await;
    world.server_reason("Ready").await;
}

#[tokio::test]
async fn a_proxy_is_gone_through_with_its_credentials() {
    let (git, (server, behind)) = (repository(), rest_server());
    let proxy = RecordingProxy::start(behind, Some("operator:canary-proxy"));
    let world = World::start().await;
    world.create_secret("proxy", &[("user", "operator"), ("password", "canary-proxy")]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let spec = json!({
        "httpURL": format!("http://{}", proxy.server.address),
        "auth": {"usernameRef": key("proxy", "user"), "passwordRef": key("proxy", "password")},
    });
    // Only the proxy resolves it.
    world.create_server(json!({"baseURL": "http://api.test", "proxy": spec})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    assert!(server.get("/shops/rio").is_some());
    let requests = proxy.requests();
    assert!(
        !requests.is_empty() && requests.iter().all(|line| line.contains(" http://api.test/")),
        "{requests:?}"
    );
    assert!(!world.log().contains("canary-proxy"), "the password is in the log");
}

#[tokio::test]
async fn whom_a_server_trusts_counts_for_documents_of_its_origin_only() {
    let (server, behind) = rest_server();
    server.put_by_hand("/openapi", json!({"openapi": "3.0.3", "paths": {}}));
    let authority = Authority::new();
    let front = authority.identity("localhost", &[]).serve(None, behind);
    let other = authority.identity("localhost", &[]).serve(None, behind);
    let world = World::start().await;
    world.create_secret("tls", &[("ca", &*authority.pem())]).await;
    let url = |port: u16| format!("https://localhost:{port}/openapi");
    let http = json!({
        "baseURL": format!("https://localhost:{}", front.address.port()),
        "tls": {"caCertRef": key("tls", "ca")},
    });
    let spec = json!({"http": http, "openapi": {"url": url(front.address.port())}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    world.server_reason("Ready").await;
    let elsewhere = json!({"spec": {"openapi": {"url": url(other.address.port())}}});
    world.patch::<ManagedServer>("server", elsewhere).await;
    let message = world.server_reason("ArtifactUnavailable").await;
    assert!(message.contains("its certificate is not trusted"), "{message}");
}

#[tokio::test]
async fn a_health_check_shows_only_whether_the_server_is_reachable() {
    let (git, (server, _)) = (repository(), rest_server());
    server.put_by_hand("/up", json!({}));
    server.fail(Matcher::new("GET", "/up"), 500, usize::MAX);
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url(), "healthCheck": "/up"})).await;
    let reachable = async |reason: Option<&str>| {
        let look = || async {
            let status = world.api::<ManagedServer>().get("server").await.ok()?.status?;
            let found = status.conditions.iter().find(|condition| condition.type_ == "Reachable");
            (found.map(|condition| condition.reason.as_str()) == reason).then(|| status.conditions.clone())
        };
        world.eventually(&format!("Reachable says {reason:?}"), look).await
    };
    let conditions = reachable(Some("ProbeFailed")).await;
    let reported = condition(&conditions, "Reachable");
    assert!(
        reported.status == "False"
            && reported.message.contains("GET /up: ")
            && reported.message.contains("status 500")
    );
    assert_eq!(condition(&conditions, "Ready").status, "True");
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    assert!(server.get("/shops/rio").is_some());

    server.clear_failures();
    world.patch::<ManagedServer>("server", json!({"spec": {"pollInterval": "31m"}})).await;
    let conditions = reachable(Some("ProbeSucceeded")).await;
    assert_eq!(condition(&conditions, "Reachable").status, "True");
    world.patch::<ManagedServer>("server", json!({"spec": {"http": {"healthCheck": null}}})).await;
    reachable(None).await;
}

#[tokio::test]
async fn all_policies_of_a_server_share_its_budget() {
    let git = GitRemote::new();
    for number in 0..20 {
        git.write(&format!("shops/s{number}/resource.yaml"), format!("id: s{number}\n"));
        git.write(&format!("tills/t{number}/resource.yaml"), format!("id: t{number}\n"));
    }
    git.commit("first");
    git.push();
    let collections = vec!["/shops".to_owned(), "/tills".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    server.latency(Duration::from_millis(3));
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let throttling = json!({"maxConcurrentRequests": 1});
    world.create_server(json!({"baseURL": server.url(), "requestThrottling": throttling})).await;
    for (policy, path) in [("shops", "/shops"), ("tills", "/tills")] {
        let spec = json!({
            "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
            "source": {"path": path}, "sync": {}, "syncInterval": "1h",
        });
        world.create(declarest("SyncPolicy", policy, &spec)).await;
    }
    world.eventually("both have run", || async { (server.resources().len() == 40).then_some(()) }).await;
    assert_eq!(server.peak_concurrency(), 1);
}

#[tokio::test]
async fn a_changed_secret_of_a_server_makes_its_policies_and_no_others_run_in_full() {
    let (git, (server, _)) = (repository(), rest_server());
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    for name in ["server", "other"] {
        world.create_secret(name, &[("key", SECRET)]).await;
        let auth = json!({"customHeaders": [{"header": "X-Key", "valueRef": key(name, "key")}]});
        let spec = json!({"http": {"baseURL": server.url(), "auth": auth}});
        world.create(declarest("ManagedServer", name, &spec)).await;
    }
    world.create_policy(json!({"source": {"path": "/shops"}})).await;
    let other = json!({
        "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "other"},
        "source": {"path": "/tills"}, "syncInterval": "1h",
    });
    world.create(declarest("SyncPolicy", "other", &other)).await;
    world.applied(&git.head()).await;
    let of_other = || async {
        let status = world.api::<SyncPolicy>().get("other").await.ok()?.status?;
        status.last_applied_repo_revision.is_some().then_some(status)
    };
    world.eventually("the other one ran", of_other).await;

    world.replace_secret("server", &[("key", NEXT_SECRET)]).await;
    assert_eq!(world.finished("SecretChanged").await.last_sync_mode, Some(RunKind::Full));
    assert_eq!(of_other().await.unwrap().last_trigger.as_deref(), Some("InitialSync"));
}
