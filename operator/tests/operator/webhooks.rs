//! Webhooks of Git hosts, as the hosts send them.

use std::time::{Duration, Instant};

use declarest_operator::controller::resource_repository::{DELIVERY_ID, RECEIVED_AT};
use declarest_operator::crd::ResourceRepository;
use futures::future::join_all;
use kube::ResourceExt as _;
use reqwest::{Method, RequestBuilder};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::faulty_api::Trouble;
use crate::support::git_remote::GitRemote;
use crate::support::ports::free_ports;
use crate::support::signature::signature as code;
use crate::support::world::{World, declarest, on_cluster, ready};

/// The shared secret, which must not appear in logs.
const SECRET: &str = "canary-webhook-secret";
const MAIN: &str = r#"{"ref":"refs/heads/main"}"#;

/// An operator with a receiver, and a repository that is not polled during a test.
struct Host {
    world: World,
    git: GitRemote,
    address: String,
}

impl Host {
    async fn new(webhook: Value) -> Self {
        Self::with(&["--repository-webhook-bind-address=127.0.0.1:0"], webhook).await
    }

    async fn with(arguments: &[&str], webhook: Value) -> Self {
        Self::of(World::start_with(arguments).await, webhook).await
    }

    async fn of(world: World, webhook: Value) -> Self {
        let git = GitRemote::new();
        git.write("shops/rio/resource.json", "{}");
        let revision = git.commit("first");
        git.push();
        world.create_secret("hook", &[("secret", SECRET)]).await;
        let mut block = json!({"provider": "generic-hmac", "secretRef": {"name": "hook", "key": "secret"}});
        block.as_object_mut().unwrap().extend(webhook.as_object().unwrap().clone());
        let git_block = json!({"url": git.file_url(), "webhook": block});
        let spec = json!({"type": "git", "pollInterval": "1h", "git": git_block});
        world.create(declarest("ResourceRepository", "repo", &spec)).await;
        world.fetched(&revision).await;
        let address = world.webhook_address().await;
        Self { world, git, address }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{}/webhooks/repository/{}/{name}", self.address, self.world.namespace)
    }

    /// A push, signed as the provider generic-hmac requires.
    fn delivery(&self, id: &str, body: &str) -> RequestBuilder {
        Self::delivery_to(self.url("repo"), id, body)
    }

    fn delivery_to(url: String, id: &str, body: &str) -> RequestBuilder {
        let request = reqwest::Client::new().post(url).body(body.to_owned());
        let request = request.header("X-Signature", code(SECRET, body)).header("X-Event-Type", "push");
        if id.is_empty() { request } else { request.header("X-Delivery-ID", id) }
    }

    async fn annotations(&self) -> (Option<String>, Option<String>) {
        let object = self.world.api::<ResourceRepository>().get("repo").await.unwrap();
        let annotation = |name: &str| object.annotations().get(name).cloned();
        (annotation(RECEIVED_AT), annotation(DELIVERY_ID))
    }

    fn push(&self) -> String {
        self.git.write("shops/rio/resource.json", format!("{:?}", Instant::now()));
        let revision = self.git.commit("next");
        self.git.push();
        revision
    }
}

async fn answer(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap().trim_end().to_owned())
}

#[rstest]
#[case::github("github", &[("X-GitHub-Event", "push"), ("X-GitHub-Delivery", "d1")], "X-Hub-Signature-256", format!("sha256={}", code(SECRET, MAIN)))]
#[case::gitlab("gitlab", &[("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Event-UUID", "d1")], "X-Gitlab-Token", SECRET.to_owned())]
#[case::gitea("gitea", &[("X-Gitea-Event", "push"), ("X-Gitea-Delivery", "d1")], "X-Gitea-Signature", code(SECRET, MAIN))]
#[case::generic("generic-hmac", &[("X-Event-Type", "push"), ("X-Delivery-ID", "d1")], "X-Signature", code(SECRET, MAIN))]
#[tokio::test]
async fn a_push_is_fetched_at_once(
    #[case] provider: &str,
    #[case] headers: &[(&str, &str)],
    #[case] proof: &str,
    #[case] value: String,
) {
    let host = Host::new(json!({"provider": provider})).await;
    let revision = host.push();
    let request = || {
        let request = reqwest::Client::new().post(host.url("repo")).body(MAIN);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    // A wrong proof changes nothing.
    for wrong in ["", "sha256=00", &code("other", MAIN), &value[1..]] {
        let refused = answer(request().header(proof, wrong)).await;
        assert_eq!(refused, (401, "signature or token is not valid".to_owned()));
    }
    assert_eq!(answer(request()).await.0, 401);
    assert_eq!(host.annotations().await, (None, None));
    // The right proof lets the leader fetch.
    assert_eq!(answer(request().header(proof, &value)).await, (202, "accepted".to_owned()));
    let status = host.world.fetched(&revision).await.status.unwrap().webhook.unwrap();
    assert_eq!(status.last_delivery_id.as_deref(), Some("d1"));
    let path = format!("/webhooks/repository/{}/repo", host.world.namespace);
    assert_eq!(status.path, Some(path));
    assert!(!host.world.log().contains(SECRET));
}

#[tokio::test]
async fn each_delivery_gets_its_response() {
    let host = Host::new(json!({"events": ["push", "ping"]})).await;
    let url = |path: &str| format!("http://{}{path}", host.address);
    let get = |path: &str| reqwest::Client::new().get(url(path));
    let post = |path: &str| reqwest::Client::new().post(url(path));
    let namespace = &host.world.namespace;
    let pushed = |body: &str| host.delivery("", body);
    let event = |event: &str| {
        let request = reqwest::Client::new().post(host.url("repo")).body("{}");
        request.header("X-Signature", code(SECRET, "{}")).header("X-Event-Type", event)
    };
    let large = format!(r#"{{"ref":"refs/heads/main","x":"{}"}}"#, "x".repeat(1 << 20));
    let form = "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fdev%22%7D";
    let as_form = pushed(form).header("Content-Type", "application/x-www-form-urlencoded");
    let cases = [
        ("probe", get("/healthz"), 200, "ok"),
        ("method", reqwest::Client::new().request(Method::PUT, host.url("repo")), 405, ""),
        ("other path", post("/webhooks"), 404, ""),
        ("bad namespace", post("/webhooks/repository/Team/repo"), 400, "the path has an invalid name"),
        ("namespace with dots", post("/webhooks/repository/a.b/repo"), 400, "the path has an invalid name"),
        (
            "bad name",
            post(&format!("/webhooks/repository/{namespace}/-x")),
            400,
            "the path has an invalid name",
        ),
        (
            "traversal",
            post(&format!("/webhooks/repository/{namespace}/..%2Fx")),
            400,
            "the path has an invalid name",
        ),
        (
            "no such repository",
            post(&format!("/webhooks/repository/{namespace}/none")),
            404,
            "no such repository webhook",
        ),
        (
            "large, not proven",
            post(&format!("/webhooks/repository/{namespace}/repo")).body(large.clone()),
            413,
            "the body exceeds 1 MiB",
        ),
        ("large", pushed(&large), 413, "the body exceeds 1 MiB"),
        ("ping", event("ping"), 202, "pong"),
        ("another event", event("release"), 202, "ignored"),
        ("not JSON", pushed("ref"), 400, "the body is not a JSON object with a member ref"),
        ("no reference", pushed("{}"), 400, "the body is not a JSON object with a member ref"),
        ("tag", pushed(r#"{"ref":"refs/tags/main"}"#), 202, "filtered"),
        ("another branch", pushed(r#"{"ref":"refs/heads/dev"}"#), 202, "filtered"),
        ("another branch in a form", as_form, 202, "filtered"),
        ("deleted branch", pushed(r#"{"ref":"refs/heads/main","deleted":true}"#), 202, "filtered"),
    ];
    for (case, request, status, text) in cases {
        assert_eq!(answer(request).await, (status, text.to_owned()), "{case}");
    }
    assert_eq!(host.annotations().await, (None, None), "nothing was accepted");
    // The same push is announced once, also if the operator restarts in between.
    assert_eq!(answer(host.delivery("d7", MAIN)).await, (202, "accepted".to_owned()));
    assert_eq!(answer(host.delivery("d7", MAIN)).await, (202, "duplicate".to_owned()));
    let (received, id) = host.annotations().await;
    assert_eq!(id.as_deref(), Some("d7"));
    let received: jiff::Timestamp = received.unwrap().parse().unwrap();
    assert!(received.duration_until(jiff::Timestamp::now()).as_secs() < 60);
}

#[tokio::test]
async fn the_annotation_reveals_a_repeated_delivery_after_a_restart() {
    let mut host = Host::new(json!({})).await;
    assert_eq!(answer(host.delivery("d7", MAIN)).await, (202, "accepted".to_owned()));
    host.world.kill();
    host.world.launch().await;
    host.address = host.world.webhook_address().await;
    assert_eq!(answer(host.delivery("d7", MAIN)).await, (202, "duplicate".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_during_the_start_is_not_refused_as_unknown() {
    let (world, api) = World::start_behind(&["--repository-webhook-bind-address=127.0.0.1:0"]).await;
    let mut host = Host::of(world, json!({})).await;
    host.world.kill();
    api.set(Trouble::Silence);
    host.world.launch().await;
    host.address = host.world.webhook_address().await;
    let starting = "the operator is starting; deliver again".to_owned();
    assert_eq!(answer(host.delivery("d1", MAIN)).await, (503, starting));
    let waiting = tokio::spawn(answer(host.delivery("d2", MAIN)));
    api.set(Trouble::None);
    assert_eq!(waiting.await.unwrap(), (202, "accepted".to_owned()));
}

#[tokio::test]
async fn a_branch_filter_decides_instead_of_the_branch() {
    let filter = json!({"include": ["release/*", "main"], "exclude": ["release/old"]});
    let host = Host::new(json!({"branchFilter": filter})).await;
    let to = |branch: &str| host.delivery(branch, &format!(r#"{{"ref":"refs/heads/{branch}"}}"#));
    for (branch, expected) in [
        ("release/1", "accepted"),
        ("release/1/x", "filtered"),
        ("release/old", "filtered"),
        ("dev", "filtered"),
    ] {
        assert_eq!(answer(to(branch)).await, (202, expected.to_owned()), "{branch}");
    }
}

#[tokio::test]
async fn a_suspended_webhook_is_acknowledged_and_not_processed() {
    let host = Host::new(json!({"suspend": true})).await;
    assert_eq!(answer(host.delivery("d1", MAIN)).await, (202, "suspended".to_owned()));
    assert_eq!(host.annotations().await, (None, None));
}

#[tokio::test]
async fn a_rotated_secret_counts_at_once() {
    let host = Host::new(json!({})).await;
    assert_eq!(answer(host.delivery("d1", MAIN)).await.0, 202);
    host.world.replace_secret("hook", &[("secret", "rotated")]).await;
    let rotated = || async {
        let request = reqwest::Client::new().post(host.url("repo")).body(MAIN);
        let request = request.header("X-Signature", code("rotated", MAIN)).header("X-Event-Type", "push");
        (answer(request).await.0 == 202).then_some(())
    };
    host.world.eventually("the new secret is accepted", rotated).await;
    assert_eq!(answer(host.delivery("d2", MAIN)).await.0, 401, "the old secret is not accepted");
}

#[tokio::test]
async fn a_missing_secret_is_reported_without_a_cause() {
    let host = Host::new(json!({"secretRef": {"name": "hook", "key": "absent"}})).await;
    let (status, text) = answer(host.delivery("d1", MAIN)).await;
    assert_eq!((status, text.contains("log of the operator")), (500, true));
    assert!(host.world.log().contains("has no key absent"));
    // A user sees the cause, although the repository is polled.
    let object = host.world.api::<ResourceRepository>().get("repo").await.unwrap();
    let message = ready(&object.status.unwrap().conditions).message;
    assert!(message.contains("webhook deliveries are rejected: spec.git.webhook.secretRef"), "{message}");
}

#[tokio::test]
async fn a_burst_becomes_few_writes_and_the_last_delivery_is_kept() {
    let host = Host::new(json!({})).await;
    let seen = {
        let api = host.world.api::<ResourceRepository>();
        tokio::spawn(async move {
            let mut seen = std::collections::BTreeSet::new();
            loop {
                let object = api.get("repo").await.unwrap();
                seen.extend(object.annotations().get(RECEIVED_AT).cloned());
                if object.annotations().get(DELIVERY_ID).is_some_and(|id| id == "last") {
                    return seen.len();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    let started = Instant::now();
    let ids: Vec<String> = (0..50).map(|number| format!("d{number}")).collect();
    let burst = ids.iter().map(|id| answer(host.delivery(id, MAIN)));
    assert!(join_all(burst).await.iter().all(|answer| *answer == (202, "accepted".to_owned())));
    assert_eq!(answer(host.delivery("last", MAIN)).await, (202, "accepted".to_owned()));
    let writes = seen.await.unwrap();
    let allowed = usize::try_from(started.elapsed().as_secs()).unwrap() + 2;
    assert!(writes <= allowed, "{writes} writes for 51 deliveries, at most one per second: {allowed}");
    // Each delivery of the burst counts as announced.
    assert_eq!(answer(host.delivery("d0", MAIN)).await.1, "duplicate");
}

#[tokio::test]
async fn slow_and_large_headers_end_the_connection() {
    let host = Host::new(json!({})).await;
    let mut slow = TcpStream::connect(&host.address).await.unwrap();
    slow.write_all(b"POST /webhooks/repository/x/y HTTP/1.1\r\nX-Slow: ").await.unwrap();
    let mut large = TcpStream::connect(&host.address).await.unwrap();
    large.write_all(b"POST / HTTP/1.1\r\nX-Large: ").await.unwrap();
    // The receiver may close the connection before all of it is written.
    let _ = large.write_all(&vec![b'x'; 64 << 10]).await;
    let mut response = Vec::new();
    let _ = large.read_to_end(&mut response).await;
    assert!(response.is_empty() || response.starts_with(b"HTTP/1.1 431"), "{response:?}");
    let ended = tokio::time::timeout(Duration::from_secs(25), slow.read_to_end(&mut response)).await;
    assert!(ended.is_ok(), "the connection is still open after 25 s");
}

#[tokio::test]
async fn a_body_that_stops_ends_the_delivery() {
    let host = Host::new(json!({})).await;
    let mut slow = TcpStream::connect(&host.address).await.unwrap();
    let path = format!("/webhooks/repository/{}/repo", host.world.namespace);
    let begun = format!("POST {path} HTTP/1.1\r\nHost: receiver\r\nContent-Length: 100\r\n\r\n{{");
    slow.write_all(begun.as_bytes()).await.unwrap();
    let mut response = String::new();
    tokio::time::timeout(Duration::from_secs(25), slow.read_to_string(&mut response)).await.unwrap().unwrap();
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(response.ends_with("the body did not arrive in time\n"), "{response}");
}

#[tokio::test]
async fn a_delivery_waits_while_all_connections_are_in_use() {
    let host = Host::new(json!({})).await;
    let idle = join_all((0..64).map(|_| TcpStream::connect(&host.address))).await;
    let mut waiting = tokio::spawn(answer(host.delivery("d1", MAIN)));
    let early = tokio::time::timeout(Duration::from_millis(500), &mut waiting).await;
    assert!(early.is_err(), "a connection above the limit is served: {early:?}");
    drop(idle);
    assert_eq!(waiting.await.unwrap(), (202, "accepted".to_owned()));
}

#[tokio::test]
async fn an_operator_of_one_namespace_serves_short_paths_and_no_other_namespace() {
    let mut arguments = vec!["--repository-webhook-bind-address=127.0.0.1:0"];
    // On a cluster, the operator of each test watches one namespace.
    if !on_cluster() {
        arguments.push("--watch-namespace=team");
    }
    let host = Host::with(&arguments, json!({})).await;
    let to = |path: &str| format!("http://{}/webhooks/repository/{path}", host.address);
    let foreign = answer(Host::delivery_to(to("elsewhere/repo"), "d1", MAIN)).await;
    assert_eq!(foreign, (400, "the operator does not watch this namespace".to_owned()));
    let revision = host.push();
    let short = answer(Host::delivery_to(to("repo"), "d2", MAIN)).await;
    assert_eq!(short, (202, "accepted".to_owned()));
    host.world.fetched(&revision).await;
    assert_eq!(answer(Host::delivery_to(to("none"), "d3", MAIN)).await.0, 404);
}

#[tokio::test]
async fn deliveries_are_counted_by_result() {
    let [port] = free_ports();
    let metrics = format!("127.0.0.1:{port}");
    let listen = format!("--metrics-bind-address={metrics}");
    let host = Host::with(&["--repository-webhook-bind-address=127.0.0.1:0", &listen], json!({})).await;
    answer(host.delivery("d1", MAIN)).await;
    answer(reqwest::Client::new().post(host.url("repo")).body(MAIN)).await;
    answer(reqwest::Client::new().post(host.url("none"))).await;
    let scraped = reqwest::get(format!("http://{metrics}/metrics")).await.unwrap().text().await.unwrap();
    for (provider, result) in
        [("generic-hmac", "accepted"), ("generic-hmac", "unauthorized"), ("none", "not_found")]
    {
        let series = "declarest_operator_repository_webhook_requests_total";
        let line = format!(r#"{series}{{provider="{provider}",result="{result}"}} 1"#);
        assert!(scraped.contains(&line), "{line} is missing in {scraped}");
    }
}
