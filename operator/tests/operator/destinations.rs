//! The hosts and addresses to which objects may let the operator connect.

use std::net::TcpListener;

use declarest_operator::crd::{ManagedServer, SecretStore, SyncPolicyStatus};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::network::redirecting;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, declarest, ready};

/// A world in which nothing may connect to this machine, and a listener to which nothing must connect.
struct Confined {
    world: World,
    listener: TcpListener,
}

impl Confined {
    async fn start() -> Self {
        let world = World::start_with(&["--deny-cidr=127.0.0.0/8,::1/128"]).await;
        Self { world, listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn url(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}/a", self.listener.local_addr().unwrap().port())
    }

    fn assert_untouched(self) {
        drop(self.world);
        self.listener.set_nonblocking(true).unwrap();
        assert!(self.listener.accept().is_err(), "something connected");
    }
}

#[rstest]
#[case("http", "127.0.0.1")]
#[case("https", "localhost")]
#[case("ssh", "127.0.0.1")]
#[case("ssh", "localhost")]
#[tokio::test]
async fn repositories_at_denied_addresses_are_not_fetched(#[case] scheme: &str, #[case] host: &str) {
    let confined = Confined::start().await;
    let auth = if scheme == "ssh" {
        let key = declarest_key();
        confined.world.create_secret("git", &[("key", &key)]).await;
        json!({"sshSecretRef": {
            "privateKeyRef": {"name": "git", "key": "key"}, "insecureIgnoreHostKey": true,
        }})
    } else {
        Value::Null
    };
    confined.world.create_repository(&confined.url(scheme, host), auth).await;
    let message = confined.world.repository_reason("SpecInvalid").await;
    assert!(message.contains(&format!("connections to {host} are denied")), "{message}");
    confined.assert_untouched();
}

/// An SSH key without a passphrase.
fn declarest_key() -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    std::fs::read_to_string(file).unwrap()
}

#[rstest]
#[case("http://127.0.0.1")]
#[case("http://[::ffff:127.0.0.1]")]
#[case("http://169.254.169.254/latest/meta-data")]
#[case("http://metadata.google.internal/computeMetadata")]
#[tokio::test]
async fn servers_at_denied_addresses_are_invalid(#[case] url: &str) {
    let confined = Confined::start().await;
    confined.world.create_server(json!({"baseURL": url})).await;
    let message = confined.world.server_reason("SpecInvalid").await;
    assert!(message.contains("connections to ") && message.contains(" are denied"), "{message}");
    confined.assert_untouched();
}

#[rstest]
#[case("127.0.0.1")]
#[case("localhost")]
#[tokio::test]
async fn documents_at_denied_addresses_are_not_downloaded(
    #[case] host: &str,
    #[values("openapi", "metadata")] document: &str,
) {
    let confined = Confined::start().await;
    let url = format!("{}.tar.gz", confined.url("http", host));
    let spec = json!({"http": {"baseURL": "http://10.255.255.1"}, document: {"url": url}});
    confined.world.create(declarest("ManagedServer", "server", &spec)).await;
    let api = confined.world.api::<ManagedServer>();
    let denied = || async {
        let conditions = api.get("server").await.ok()?.status?.conditions;
        conditions.iter().any(|found| found.message.contains("are denied")).then_some(())
    };
    confined.world.eventually("the download is denied", denied).await;
    confined.assert_untouched();
}

#[rstest]
#[case("127.0.0.1")]
#[case("localhost")]
#[tokio::test]
async fn a_vault_at_a_denied_address_is_not_logged_in_to(#[case] host: &str) {
    let confined = Confined::start().await;
    confined.world.create_secret("vault", &[("token", "canary")]).await;
    let vault = json!({
        "address": format!("http://{host}:{}", confined.listener.local_addr().unwrap().port()),
        "auth": {"token": {"secretRef": {"name": "vault", "key": "token"}}},
    });
    confined.world.create(declarest("SecretStore", "store", &json!({"vault": vault}))).await;
    let api = confined.world.api::<SecretStore>();
    let denied = || async {
        let conditions = api.get("store").await.ok()?.status?.conditions;
        ready(&conditions).message.contains("are denied").then_some(())
    };
    confined.world.eventually("the login is denied", denied).await;
    confined.assert_untouched();
}

#[tokio::test]
async fn a_proxy_at_a_denied_address_is_not_used() {
    let confined = Confined::start().await;
    let proxy = json!({"httpURL": confined.url("http", "127.0.0.1").trim_end_matches("/a")});
    confined.world.create_server(json!({"baseURL": "http://api.test", "proxy": proxy})).await;
    let message = confined.world.server_reason("SpecInvalid").await;
    assert!(message.contains("connections to 127.0.0.1 are denied"), "{message}");
    confined.assert_untouched();
}

#[rstest]
#[case(true)]
#[case(false)]
#[tokio::test]
async fn reads_are_redirected_to_another_origin_only_if_that_is_allowed(#[case] allowed: bool) {
    let git = GitRemote::new();
    git.write("old/a/resource.json", r#"{"id": "a"}"#);
    let revision = git.commit("one resource");
    git.push();
    let config = Config { collections: vec!["/old".to_owned()], ..Config::default() };
    let other = RestServer::start(config.clone()).unwrap();
    other.put_by_hand("/old/a", json!({"id": "a"}));
    let behind = other.url().strip_prefix("http://").unwrap().trim_end_matches('/').parse().unwrap();
    let server = redirecting(format!("{}/old/a", other.url().trim_end_matches('/')), behind);
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let http = json!({"baseURL": format!("http://{}", server.address), "allowCrossOriginRedirects": allowed});
    world.create_server(http).await;
    world.create_policy(json!({})).await;
    let wanted = |status: &SyncPolicyStatus| {
        status.last_attempted_repo_revision.as_deref() == Some(&revision)
            && status.failed_resources.is_empty() == allowed
    };
    let status = world.policy("the revision is attempted", wanted).await;
    let text = format!("{:?}", status.failed_resources);
    assert_eq!(text.contains("because allowCrossOriginRedirects is not set"), !allowed, "{text}");
}
