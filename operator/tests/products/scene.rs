//! An operator that keeps a product equal to the sample of its bundle.

use std::time::Instant;

use declarest_operator::crd::sync_policy::{ResourceStats, RunOutcome};
use declarest_operator::crd::{SecretStore, SyncPolicy, SyncPolicyStatus};
use serde_json::{Value, json};

use crate::command_line::{CommandLine, KEY};
use crate::product::Product;
use crate::support::git_remote::GitRemote;
use crate::support::world::{World, condition, declarest, is_true};
use crate::traffic::{Sent, Traffic, repeated};

pub struct Scene {
    pub product: Product,
    pub git: GitRemote,
    world: World,
    traffic: Traffic,
    secrets: CommandLine,
}

impl Scene {
    /// The first run creates the whole sample, and the second run finds nothing to do.
    pub async fn start(product: Product) -> Self {
        let git = GitRemote::new();
        for (path, content) in product.sample() {
            git.write(&path, content);
        }
        git.commit("sample");
        git.push();
        let traffic = Traffic::start(&product.origin).await;
        let secrets = CommandLine::new(&product, &traffic.origin);
        let mut world = World::start().await;
        world.patience *= 4;
        let scene = Self { product, git, world, traffic, secrets };
        let start = Instant::now();
        scene.create_objects().await;
        let status = scene.attempted(&scene.git.head()).await;
        let size = scene.product.sample_size();
        let stats = scene.succeeded(&status);
        let changed = (stats.created, stats.updated, stats.targeted);
        let singletons = scene.product.singletons;
        assert_eq!(changed, (size - singletons, singletons, size), "{status:?}");
        let asked = scene.asked_once();
        println!(
            "{}: {size} resources, first run: {} requests, {:?}",
            scene.product.name,
            asked.len(),
            start.elapsed()
        );
        scene.settled().await;
        scene
    }

    async fn create_objects(&self) {
        let bundle = self.product.pack(&self.world.state().join("bundles"));
        let (http, login) = self.product.http(&self.traffic.origin);
        let login: Vec<_> = login.iter().map(|(key, value)| (*key, value.as_str())).collect();
        self.world.create_secret("login", &login).await;
        self.world.create_repository(&self.git.file_url(), Value::Null).await;
        let server = json!({"http": http, "metadata": {"bundle": bundle}});
        self.world.create(declarest("ManagedServer", "server", &server)).await;
        let mut policy = json!({"sync": {"prune": true, "pruneLimit": "100%", "allowEmpty": true}});
        if !self.product.secrets.is_empty() {
            let seed = self.secrets.store();
            self.world.create_secret("store", &[("key", KEY), ("seed", &seed)]).await;
            let reference = |key| json!({"name": "store", "key": key});
            let encryption = json!({"keyRef": reference("key")});
            let file = json!({"path": "store.json", "encryption": encryption, "seedRef": reference("seed")});
            self.world.create(declarest("SecretStore", "store", &json!({"file": file}))).await;
            policy["secretStoreRef"] = json!({"name": "store"});
            let api = self.world.api::<SecretStore>();
            self.world
                .eventually("the store is ready", || async {
                    is_true(&api.get("store").await.ok()?.status?.conditions, "Ready").then_some(())
                })
                .await;
        }
        self.world.create_policy(policy).await;
    }

    /// A full run finds nothing to do.
    pub async fn settled(&self) {
        let start = Instant::now();
        let stats = self.full_run().await;
        let (asked, time) = (self.asked_once(), start.elapsed());
        let writes: Vec<_> = asked.iter().filter(|sent| sent.is_write()).collect();
        assert!(writes.is_empty(), "a settled product is written to: {writes:?}");
        assert_eq!(stats.unchanged, stats.targeted);
        println!("{}: settled run: {} requests, {time:?}", self.product.name, asked.len());
    }

    /// A full run repairs what was changed by hand, with this many creates and updates.
    pub async fn repairs(&self, created: i32, updated: i32) {
        let stats = self.full_run().await;
        self.asked_once();
        assert_eq!((stats.created, stats.updated), (created, updated));
        self.settled().await;
    }

    /// Changes a secret in the store, and waits until the product `has` it. Then nothing is left to do.
    pub async fn rotates<F: Future<Output = bool>>(&self, key: &str, value: &str, has: impl Fn() -> F) {
        let seed = tokio::task::block_in_place(|| {
            self.secrets.set_secret(key, value);
            self.secrets.store()
        });
        self.world.replace_secret("store", &[("seed", &seed)]).await;
        self.world.eventually("the product has the secret", || async { has().await.then_some(()) }).await;
        // The run that wrote it ends before the next one. On a busy machine, one more run was seen to write.
        for _ in 0..2 {
            self.full_run().await;
        }
        self.traffic.take();
        self.settled().await;
    }

    /// Commits and pushes the work tree, and waits for the run that this causes. It succeeds, and then nothing is left.
    pub async fn push(&self) -> ResourceStats {
        self.git.commit("next");
        self.git.push();
        self.world.notify().await;
        let status = self.attempted(&self.git.head()).await;
        let stats = self.succeeded(&status);
        self.asked_once();
        self.settled().await;
        stats
    }

    async fn full_run(&self) -> ResourceStats {
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {"declarest.io/sync-requested-at": now}}});
        self.world.patch::<SyncPolicy>("policy", patch).await;
        let handled = |status: &SyncPolicyStatus| {
            has_ended(status) && status.last_handled_sync_request.as_deref() == Some(now.as_str())
        };
        let status = self.world.policy("the requested run has ended", handled).await;
        self.succeeded(&status)
    }

    async fn attempted(&self, revision: &str) -> SyncPolicyStatus {
        let attempted = |status: &SyncPolicyStatus| {
            has_ended(status) && status.last_attempted_repo_revision.as_deref() == Some(revision)
        };
        self.world.policy(&format!("the run at {revision} has ended"), attempted).await
    }

    /// The counts of a run, which succeeded.
    fn succeeded(&self, status: &SyncPolicyStatus) -> ResourceStats {
        let failed: Vec<_> = status
            .failed_resources
            .iter()
            .map(|failed| format!("{}: {}", failed.path, failed.message))
            .collect();
        let asked = || self.traffic.take();
        assert_eq!(status.last_run_outcome, Some(RunOutcome::Succeeded), "{failed:#?}\n{:#?}", asked());
        status.resource_stats.unwrap()
    }

    /// The requests of the last run, none of which was sent twice.
    fn asked_once(&self) -> Vec<Sent> {
        let run = self.traffic.take();
        let twice = repeated(&run);
        assert!(twice.is_empty(), "sent twice: {twice:?}, in {run:#?}");
        run
    }
}

fn has_ended(status: &SyncPolicyStatus) -> bool {
    let reason = condition(&status.conditions, "Reconciling").reason;
    !reason.is_empty() && reason != "Reconciling" && status.last_attempt_time.is_some()
}
