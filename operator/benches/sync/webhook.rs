//! The time from a push to the first request to the managed server, with a webhook.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desired;
use crate::rest::Rest;
use crate::support::git_http::GitHttp;
use crate::support::git_remote::{GitRemote, git};
use crate::support::signature::signature;
use crate::support::world::{World, declarest, on_cluster};
use crate::table::Figure;

const PUSHES: usize = 100;
const RESOURCES: usize = 10_000;
const MEMBERS: usize = 1_000;
const SECRET: &str = "shared";
/// The receiver writes at most once per second.
const APART: Duration = Duration::from_millis(1_100);
/// The interval at which the server is asked for the number of its requests, which adds to each result.
const LOOK: Duration = Duration::from_millis(1);

/// Passes the hooks of the Git host on to the operator.
struct Relay {
    client: Client,
    receiver: String,
    /// The time of the last hook.
    hooked: Mutex<Option<Instant>>,
}

/// Pushes to a repository of 10,000 files over HTTP. Its hook sends the delivery.
pub async fn push_to_request(target: f64) -> Figure {
    // A settled operator with a webhook.
    let (git_remote, work) = (GitRemote::new(), tempfile::tempdir().unwrap());
    let remote = GitHttp::start(git_remote.root(), None);
    let bare = git_remote.bare();
    let revision = desired::commit(&bare, desired::spread(RESOURCES, MEMBERS));
    let server = Rest::start(&desired::collections(RESOURCES, MEMBERS), 0);
    let arguments = ["--log-level", "info", "--repository-webhook-bind-address=127.0.0.1:0"];
    let world = World::start_with(&arguments).await;
    world.create_secret("hook", &[("secret", SECRET)]).await;
    let webhook = json!({"provider": "generic-hmac", "secretRef": {"name": "hook", "key": "secret"}});
    let source = json!({"url": remote.url("desired.git"), "webhook": webhook});
    let spec = json!({"type": "git", "pollInterval": "1h", "git": source});
    world.create(declarest("ResourceRepository", "repo", &spec)).await;
    world.create_server(json!({"baseURL": server.url})).await;
    world.create_policy(Value::Null).await;
    world.applied(&revision).await;
    // A Git host whose hook reaches the receiver.
    let path = format!("/webhooks/repository/{}/repo", world.namespace);
    let receiver = format!("http://{}{path}", world.webhook_address().await);
    let relay = Arc::new(Relay { client: Client::new(), receiver, hooked: Mutex::default() });
    hook(&bare, &relay).await;
    git(&bare, &["config", "http.receivepack", "true"]);
    git(work.path(), &["clone", "--quiet", &remote.url("desired.git"), "work"]);
    // The pushes.
    let mut times = Vec::new();
    for round in 0..PUSHES {
        let pause = tokio::time::Instant::now() + APART;
        server.reset_counts().await;
        *relay.hooked.lock().unwrap() = None;
        let (time, revision) = tokio::join!(first_request(&server, &relay), push(&work, round));
        times.push(time);
        world.applied(&revision).await;
        tokio::time::sleep_until(pause).await;
    }
    times.sort();
    let in_ms = |percent: usize| times[PUSHES * percent / 100 - 1].as_secs_f64() * 1e3;
    let api = if on_cluster() { "kube-apiserver" } else { "in-process API" };
    Figure {
        row: "j",
        what: format!("from the hook of a push to the first request, p99 of {PUSHES}, {api}"),
        target: Some(target),
        measured: in_ms(99),
        unit: "ms",
        raw: format!("median {:.0} ms, longest {:.0} ms", in_ms(50), in_ms(100)),
    }
}

/// Installs a hook that calls a relay.
async fn hook(bare: &std::path::Path, relay: &Arc<Relay>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(deliver).with_state(Arc::clone(relay));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let script = format!(
        "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{port}\n\
         printf 'GET / HTTP/1.1\\r\\nHost: relay\\r\\nConnection: close\\r\\n\\r\\n' >&3\ncat <&3 >/dev/null\n"
    );
    let file = bare.join("hooks/post-receive");
    fs::create_dir_all(bare.join("hooks")).unwrap();
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn deliver(State(relay): State<Arc<Relay>>) {
    *relay.hooked.lock().unwrap() = Some(Instant::now());
    let body = r#"{"ref":"refs/heads/main"}"#;
    let code = signature(SECRET, body);
    let request =
        relay.client.post(&relay.receiver).header("x-event-type", "push").header("x-signature", code);
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "accepted\n");
}

/// The time from the hook to the first request that the server counts.
async fn first_request(server: &Rest, relay: &Relay) -> Duration {
    loop {
        tokio::time::sleep(LOOK).await;
        let hooked = *relay.hooked.lock().unwrap();
        if let Some(hooked) = hooked
            && server.counts().await.total > 0
        {
            return hooked.elapsed();
        }
    }
}

/// Changes one file, commits and pushes; the commit.
async fn push(directory: &TempDir, round: usize) -> String {
    let work = directory.path().join("work");
    let changed = move || {
        let member = desired::member(round * 97 % RESOURCES, MEMBERS);
        let name = member.rsplit_once('/').unwrap().1.to_owned();
        let file = work.join(&member).join("resource.json");
        fs::write(file, desired::payload(&name, round + 2)).unwrap();
        git(&work, &["commit", "--quiet", "--all", "--message", "change"]);
        git(&work, &["push", "--quiet"]);
        git(&work, &["rev-parse", "HEAD"])
    };
    tokio::task::spawn_blocking(changed).await.unwrap()
}
