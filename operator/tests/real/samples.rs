//! The path of a user with the shipped samples on a real API server: the Secrets that their comments name, the first push,
//! a webhook, drift, pruning, new credentials, suspension, a restart, deletion, and the removal of the operator.

use std::fmt::Write as _;
use std::fs;

use declarest_operator::crd::{ResourceRepository, SyncPolicy};
use kube::Api;
use serde_json::{Value, json};

use crate::support::bearer::Bearer;
use crate::support::cluster::{Cluster, config_dir};
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::shipped::Shipped;
use crate::support::signature::signature;
use crate::support::vault::FakeVault;
use crate::support::world::is_true;

const SAMPLES: [&str; 4] = ["resourcerepository", "managedserver", "secretstore", "syncpolicy"];

/// The values of the Secrets that the samples need, by the key that their comments state.
const VALUES: [(&str, &str); 6] = [
    ("token", "t0ken-of-git"),
    ("secret", "s3cret-of-the-webhook"),
    ("client-id", "declarest"),
    ("client-secret", "f1rst-client-secret"),
    ("role-id", "r0le"),
    ("secret-id", "s3cret-id"),
];

/// The servers that the samples refer to, and the operator.
struct Path {
    cluster: &'static Cluster,
    namespace: String,
    git: GitRemote,
    git_http: GitHttp,
    server: RestServer,
    guard: Bearer,
    vault: FakeVault,
    policies: Api<SyncPolicy>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_work_from_the_first_push_to_the_removal_of_the_operator() {
    let path = Path::new().await;
    let operator = Shipped::start(path.cluster).await;
    path.create_secrets();
    path.apply_samples();
    path.first_push(&operator).await;
    path.push_by_webhook(&operator).await;
    path.correct_drift(&operator).await;
    path.prune(&operator).await;
    path.rotate(&operator).await;
    path.suspend_and_resume(&operator).await;
    path.restart(operator).await;
}

fn value(key: &str) -> &'static str {
    VALUES.iter().find(|(name, _)| *name == key).unwrap_or_else(|| panic!("no value for {key}")).1
}

fn sample(name: &str) -> String {
    fs::read_to_string(format!("{}/{name}.yaml", config_dir("samples"))).unwrap()
}

impl Path {
    async fn new() -> Self {
        let cluster = Cluster::shared();
        let namespace = cluster.create_namespace().await;
        let git = GitRemote::new();
        let git_http = GitHttp::start(git.root(), Some(value("token")));
        let config = Config { collections: vec!["/api/shops".to_owned()], ..Config::default() };
        let server = RestServer::start(config).unwrap();
        server.put_by_hand("/api/health", json!({"status": "up"}));
        server.put_by_hand("/api/openapi.json", json!({"openapi": "3.1.0", "paths": {}}));
        let behind = server.url().trim_start_matches("http://").parse().unwrap();
        let guard = Bearer::start(behind, value("client-secret")).await;
        let vault = FakeVault::start(value("secret-id")).await;
        vault.put("shop/shops/rio:/pin", "p1n-of-rio");
        let policies = Api::namespaced(cluster.admin().await, &namespace);
        Self { cluster, namespace, git, git_http, server, guard, vault, policies }
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(&[&["-n", &self.namespace], arguments].concat()).unwrap()
    }

    /// Runs the commands that the comments of the samples state.
    fn create_secrets(&self) {
        let mut created = 0;
        for name in SAMPLES {
            let text = sample(name);
            for line in text.lines().filter_map(|line| line.strip_prefix("#   kubectl ")) {
                let words: Vec<String> = line
                    .split_whitespace()
                    .map(|word| match word.strip_prefix("--from-literal=") {
                        Some(literal) => {
                            let key = literal.strip_suffix("=...").unwrap();
                            format!("--from-literal={key}={}", value(key))
                        }
                        None => word.to_owned(),
                    })
                    .collect();
                self.kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>());
                created += 1;
            }
        }
        assert_eq!(created, 4);
    }

    /// Applies the samples with the addresses of this test and with shorter intervals.
    fn apply_samples(&self) {
        let replaced = [
            ("https://git.example.com/acme/desired-state.git", self.git_http.url("desired.git")),
            ("https://shop.example.com/api/openapi.json", format!("{}/api/openapi.json", self.guard.url)),
            ("https://shop.example.com/api", format!("{}/api", self.guard.url)),
            ("https://login.example.com/oauth2/token", format!("{}/oauth/token", self.guard.url)),
            ("https://vault.example.com:8200", self.vault.url.clone()),
            ("syncInterval: 5m", "syncInterval: 30s".to_owned()),
        ];
        let mut text = String::new();
        for name in SAMPLES {
            writeln!(text, "---\n{}", sample(name)).unwrap();
        }
        for (from, to) in replaced {
            assert!(text.contains(from), "the samples do not contain {from}");
            text = text.replace(from, &to);
        }
        self.cluster.apply(&text, &["-n", &self.namespace]).unwrap();
    }

    fn shop(&self, name: &str, shop: &Value) {
        self.git.write(&format!("shops/{name}/resource.json"), shop.to_string());
    }

    fn push(&self, message: &str) -> String {
        let revision = self.git.commit(message);
        self.git.push();
        revision
    }

    /// Waits until the policy is ready with the revision.
    async fn applied(&self, operator: &Shipped, revision: &str) {
        let ready = async || {
            let status = self.policies.get("shops").await.ok()?.status?;
            let applied = status.last_applied_repo_revision.as_deref() == Some(revision);
            (applied && is_true(&status.conditions, "Ready")).then_some(())
        };
        operator.eventually(&format!("{revision} is applied"), ready).await;
    }

    /// Pushes as a Git host does, which then calls the webhook.
    async fn deliver(&self, operator: &Shipped, message: &str) -> String {
        let revision = self.push(message);
        let repositories: Api<ResourceRepository> =
            Api::namespaced(self.cluster.admin().await, &self.namespace);
        let path = operator
            .eventually("status.webhook.path", async || {
                repositories.get("desired-state").await.ok()?.status?.webhook?.path
            })
            .await;
        let url = format!("http://{}{path}", operator.listener("webhooks").await);
        let body = json!({"ref": "refs/heads/main", "after": revision}).to_string();
        let request = reqwest::Client::new()
            .post(url)
            .header("X-GitHub-Event", "push")
            .header("X-GitHub-Delivery", &revision)
            .header("X-Hub-Signature-256", format!("sha256={}", signature(value("secret"), &body)));
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 202, "{}", response.text().await.unwrap());
        revision
    }

    async fn first_push(&self, operator: &Shipped) {
        self.shop("rio", &json!({"id": "rio", "city": "Rio", "pin": "{{secret .}}"}));
        self.shop("lima", &json!({"id": "lima", "city": "Lima"}));
        let revision = self.push("first");
        self.kubectl(&["wait", "--for=condition=Ready", "--timeout=90s", "syncpolicy/shops"]);
        self.applied(operator, &revision).await;
        let rio = json!({"id": "rio", "city": "Rio", "pin": "p1n-of-rio"});
        assert_eq!(self.server.get("/api/shops/rio"), Some(rio));
        // Events follow the status.
        let described = async || {
            let described = self.kubectl(&["describe", "syncpolicy", "shops"]);
            described.contains("created").then_some(described)
        };
        let described = operator.eventually("kubectl describe shows what was created", described).await;
        assert!(!described.contains("p1n-of-rio"), "{described}");
        for object in
            ["resourcerepository/desired-state", "managedserver/shop-api", "secretstore/shop-secrets"]
        {
            self.kubectl(&["wait", "--for=condition=Ready", "--timeout=90s", object]);
        }
    }

    async fn push_by_webhook(&self, operator: &Shipped) {
        self.shop("quito", &json!({"id": "quito", "city": "Quito"}));
        let revision = self.deliver(operator, "a third shop").await;
        self.applied(operator, &revision).await;
        assert!(self.server.get("/api/shops/quito").is_some());
    }

    async fn correct_drift(&self, operator: &Shipped) {
        self.server.put_by_hand("/api/shops/lima", json!({"id": "lima", "city": "Lyma"}));
        let corrected = async || {
            let lima = self.server.get("/api/shops/lima")?;
            (lima["city"] == "Lima").then_some(())
        };
        operator.eventually("the drift is corrected", corrected).await;
        self.show(operator).await;
    }

    /// Checks what kubectl shows of the policy: its columns, and its events in the order in which they happened.
    async fn show(&self, operator: &Shipped) {
        let described = async || {
            let described = self.kubectl(&["describe", "syncpolicy", "shops"]);
            let at = |reason: &str| described.find(&format!("  {reason}  "));
            let (synced, corrected) = (at("SyncSucceeded")?, at("DriftCorrected")?);
            Some((synced, corrected, described))
        };
        let (synced, corrected, described) =
            operator.eventually("kubectl describe shows the corrected drift", described).await;
        assert!(synced < corrected, "{described}");
        let shown = self.kubectl(&["get", "syncpolicy", "shops", "--output=wide"]);
        let (header, row) = shown.trim_end().split_once('\n').unwrap();
        let columns: Vec<&str> = header.split_whitespace().collect();
        assert_eq!(
            columns,
            [
                "NAME", "REPO", "SERVER", "REVISION", "LAST", "SYNC", "READY", "AGE", "MODE", "FAILED",
                "STATUS"
            ]
        );
        let status = self.policies.get("shops").await.unwrap().status.unwrap();
        let revision = status.last_applied_repo_revision.unwrap();
        let values: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(values[..4], ["shops", "desired-state", "shop-api", &revision], "{row}");
        // The ages of the last sync and of the policy are numbers of seconds or minutes.
        assert!(values[4].ends_with(['s', 'm']) && values[6].ends_with(['s', 'm']), "{row}");
        assert_eq!((values[5], &values[7..9]), ("True", &["apply", "0"][..]), "{row}");
        assert!(values.len() > 9, "the row has no message: {row}");
    }

    async fn prune(&self, operator: &Shipped) {
        self.git.remove("shops/quito");
        let revision = self.deliver(operator, "without the third shop").await;
        self.applied(operator, &revision).await;
        assert!(self.server.get("/api/shops/quito").is_some(), "the sample does not prune");
        self.patch("syncpolicy/shops", &json!({"spec": {"sync": {"prune": true}}}));
        let pruned = async || self.server.get("/api/shops/quito").is_none().then_some(());
        operator.eventually("the removed shop is pruned", pruned).await;
    }

    async fn rotate(&self, operator: &Shipped) {
        self.guard.rotate("s3cond-client-secret");
        self.patch("secret/shop-api", &json!({"stringData": {"client-secret": "s3cond-client-secret"}}));
        self.shop("lima", &json!({"id": "lima", "city": "Lima", "open": true}));
        let revision = self.deliver(operator, "after the rotation").await;
        self.applied(operator, &revision).await;
        assert_eq!(self.server.get("/api/shops/lima").unwrap()["open"], json!(true));
    }

    async fn suspend_and_resume(&self, operator: &Shipped) {
        self.patch("syncpolicy/shops", &json!({"spec": {"suspend": true}}));
        let suspended = async || {
            let status = self.policies.get("shops").await.ok()?.status?;
            let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready")?;
            (ready.reason == "Suspended").then_some(())
        };
        operator.eventually("the policy is suspended", suspended).await;
        self.shop("lima", &json!({"id": "lima", "city": "Lima", "open": false}));
        let revision = self.deliver(operator, "while suspended").await;
        let repositories: Api<ResourceRepository> =
            Api::namespaced(self.cluster.admin().await, &self.namespace);
        let fetched = async || {
            let status = repositories.get("desired-state").await.ok()?.status?;
            (status.last_fetched_revision.as_deref() == Some(&revision)).then_some(())
        };
        operator.eventually("the repository is still fetched", fetched).await;
        assert_eq!(self.server.get("/api/shops/lima").unwrap()["open"], json!(true));
        self.patch("syncpolicy/shops", &json!({"spec": {"suspend": false}}));
        self.applied(operator, &revision).await;
        assert_eq!(self.server.get("/api/shops/lima").unwrap()["open"], json!(false));
    }

    /// Replaces the operator, as an upgrade does, and removes everything with the new one.
    async fn restart(&self, operator: Shipped) {
        // Without the overlay runtime-verification, only the target of the contract cannot be read.
        let log = operator.log();
        let mut forbidden = log.lines().filter(|line| line.contains("forbidden"));
        assert!(forbidden.all(|line| line.contains("watch list error")), "{log}");
        drop(operator);
        self.shop("bogota", &json!({"id": "bogota"}));
        let revision = self.push("while no operator runs");
        let operator = Shipped::start(self.cluster).await;
        self.applied(&operator, &revision).await;
        assert!(self.server.get("/api/shops/bogota").is_some());
        assert_eq!(self.server.duplicates(), []);
        // Deleting a policy, also one with a finalizer of an earlier version, deletes nothing on the server.
        let shops = self.server.resources();
        self.patch("syncpolicy/shops", &json!({"metadata": {"finalizers": ["declarest.io/cleanup"]}}));
        let all = "syncpolicy,resourcerepository,managedserver,secretstore";
        self.kubectl(&["delete", all, "--all", "--timeout=60s"]);
        assert_eq!(self.server.resources(), shops);
        let cluster = self.cluster;
        cluster.kubectl(&["delete", "--timeout=600s", "-k", &config_dir("default")]).unwrap();
        let left = cluster.kubectl(&["get", "crd", "-o", "name"]).unwrap();
        assert!(!left.contains("declarest.io"), "{left}");
    }

    fn patch(&self, object: &str, patch: &Value) {
        self.kubectl(&["patch", object, "--type=merge", &format!("--patch={patch}")]);
    }
}
