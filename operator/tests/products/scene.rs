//! An operator, or a user of the command line, who keeps a product equal to the sample of its bundle.

use std::time::{Duration, Instant};

use declarest_operator::crd::sync_policy::{ResourceStats, RunOutcome};
use declarest_operator::crd::{SecretStore, SyncPolicy, SyncPolicyStatus};
use serde_json::{Value, json};

use crate::command_line::{CommandLine, KEY};
use crate::product::Product;
use crate::support::git_remote::GitRemote;
use crate::support::world::{World, condition, declarest, is_true};
use crate::traffic::{Sent, Traffic, repeated};

/// What applies the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Operator,
    CommandLine,
}

pub struct Scene {
    pub product: Product,
    pub git: GitRemote,
    /// `None` if the command line applies the sample.
    world: Option<World>,
    traffic: Traffic,
    /// A context for the work tree. The operator gets its secrets.
    shell: CommandLine,
}

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Counts {
    pub created: usize,
    pub updated: usize,
    pub pruned: usize,
    pub unchanged: usize,
}

impl Counts {
    fn targeted(&self) -> usize {
        self.created + self.updated + self.unchanged
    }

    /// Reads the line `Applied: 1 created, 2 updated, 3 deleted, 4 unchanged, 0 failed.` Without it there was at most
    /// one result, such as `- /zones/example.org. deleted`.
    fn parse(printed: &str) -> Self {
        let mut counts = Self::default();
        let line = printed.lines().find_map(|line| line.strip_prefix("Applied: "));
        let parts: Vec<(&str, &str)> = match line {
            Some(line) => {
                line.trim_end_matches('.').split(", ").filter_map(|part| part.split_once(' ')).collect()
            }
            None => printed.lines().filter_map(|line| Some(("1", line.rsplit_once(' ')?.1))).collect(),
        };
        for (number, name) in parts {
            let count = match name {
                "created" => &mut counts.created,
                "updated" => &mut counts.updated,
                "deleted" => &mut counts.pruned,
                "unchanged" => &mut counts.unchanged,
                _ => continue,
            };
            *count = number.parse().unwrap();
        }
        counts
    }
}

impl From<ResourceStats> for Counts {
    fn from(stats: ResourceStats) -> Self {
        let [created, updated, pruned, unchanged] =
            [stats.created, stats.updated, stats.pruned, stats.unchanged]
                .map(|count| usize::try_from(count).unwrap());
        Self { created, updated, pruned, unchanged }
    }
}

impl Scene {
    /// The first run creates the whole sample, and the second run finds nothing to do.
    pub async fn start(product: Product, by: By) -> Self {
        let git = GitRemote::new();
        for (path, content) in product.sample() {
            git.write(&path, content);
        }
        git.commit("sample");
        git.push();
        let traffic = Traffic::start(&product.origin).await;
        let shell = tokio::task::block_in_place(|| {
            CommandLine::in_checkout(&product, &traffic.origin, &git.work_tree())
        });
        let world = match by {
            By::Operator => Some(World::start().await),
            By::CommandLine => None,
        };
        let mut scene = Self { product, git, world, traffic, shell };
        let start = Instant::now();
        let counts = match &mut scene.world {
            Some(world) => {
                world.patience *= 4;
                scene.create_objects().await;
                let status = scene.attempted(&scene.git.head()).await;
                scene.succeeded(&status)
            }
            None => scene.apply(),
        };
        let (size, singletons) = (scene.product.sample_size(), scene.product.singletons);
        let changed = (counts.created, counts.updated, counts.targeted());
        assert_eq!(changed, (size - singletons, singletons, size), "{counts:?}");
        let asked = scene.asked_once();
        let (name, time) = (scene.product.name, start.elapsed());
        println!("{name}, {by:?}: {size} resources, first run: {} requests, {time:?}", asked.len());
        scene.settled().await;
        scene
    }

    fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    /// The command line applies the sample, and deletes what HEAD no longer declares.
    fn apply(&self) -> Counts {
        let apply = ["resource", "apply", "/", "-r", "--prune", "--yes"];
        Counts::parse(&tokio::task::block_in_place(|| self.shell.outputs(&apply)).1)
    }

    async fn create_objects(&self) {
        let world = self.world();
        let bundle = self.product.pack(&world.state().join("bundles"));
        let (http, login) = self.product.http(&self.traffic.origin);
        let login: Vec<_> = login.iter().map(|(key, value)| (*key, value.as_str())).collect();
        world.create_secret("login", &login).await;
        world.create_repository(&self.git.file_url(), Value::Null).await;
        let server = json!({"http": http, "metadata": {"bundle": bundle}});
        world.create(declarest("ManagedServer", "server", &server)).await;
        let mut policy = json!({"sync": {"prune": true, "pruneLimit": "100%", "allowEmpty": true}});
        if !self.product.secrets.is_empty() {
            let seed = self.shell.store();
            world.create_secret("store", &[("key", KEY), ("seed", &seed)]).await;
            let reference = |key| json!({"name": "store", "key": key});
            let encryption = json!({"keyRef": reference("key")});
            let file = json!({"path": "store.json", "encryption": encryption, "seedRef": reference("seed")});
            world.create(declarest("SecretStore", "store", &json!({"file": file}))).await;
            policy["secretStoreRef"] = json!({"name": "store"});
            let api = world.api::<SecretStore>();
            world
                .eventually("the store is ready", || async {
                    is_true(&api.get("store").await.ok()?.status?.conditions, "Ready").then_some(())
                })
                .await;
        }
        world.create_policy(policy).await;
    }

    /// A full run finds nothing to do.
    pub async fn settled(&self) {
        let start = Instant::now();
        let counts = self.full_run().await;
        let (asked, time) = (self.asked_once(), start.elapsed());
        let writes: Vec<_> = asked.iter().filter(|sent| sent.is_write()).collect();
        assert!(writes.is_empty(), "a settled product is written to: {writes:?}");
        assert_eq!(counts.unchanged, counts.targeted());
        println!("{}: settled run: {} requests, {time:?}", self.product.name, asked.len());
    }

    /// A full run repairs what was changed by hand, with this many creates and updates.
    pub async fn repairs(&self, created: usize, updated: usize) {
        let counts = self.full_run().await;
        self.asked_once();
        assert_eq!((counts.created, counts.updated), (created, updated));
        self.settled().await;
    }

    /// Changes a secret in the store, and waits until the product `has` it. Then nothing is left to do.
    pub async fn rotates<F: Future<Output = bool>>(&self, key: &str, value: &str, has: impl Fn() -> F) {
        let seed = tokio::task::block_in_place(|| {
            self.shell.set_secret(key, value);
            self.shell.store()
        });
        if let Some(world) = &self.world {
            world.replace_secret("store", &[("seed", &seed)]).await;
            // Some products lock accounts after failed logins that follow each other fast.
            let looked = || async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                has().await.then_some(())
            };
            world.eventually("the product has the secret", looked).await;
            // The run that wrote it ends before the next one.
            self.full_run().await;
        } else {
            self.apply();
            assert!(has().await, "the product does not have the secret");
        }
        self.traffic.take();
        self.settled().await;
    }

    /// Commits and pushes the work tree, and waits for the run that this causes. It succeeds, and then nothing is left.
    pub async fn push(&self) -> Counts {
        self.git.commit("next");
        self.git.push();
        let counts = match &self.world {
            Some(world) => {
                world.notify().await;
                let status = self.attempted(&self.git.head()).await;
                self.succeeded(&status)
            }
            None => self.apply(),
        };
        self.asked_once();
        self.settled().await;
        counts
    }

    async fn full_run(&self) -> Counts {
        let Some(world) = &self.world else { return self.apply() };
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {"declarest.io/sync-requested-at": now}}});
        world.patch::<SyncPolicy>("policy", patch).await;
        let handled = |status: &SyncPolicyStatus| {
            has_ended(status) && status.last_handled_sync_request.as_deref() == Some(now.as_str())
        };
        let status = world.policy("the requested run has ended", handled).await;
        self.succeeded(&status)
    }

    async fn attempted(&self, revision: &str) -> SyncPolicyStatus {
        let attempted = |status: &SyncPolicyStatus| {
            has_ended(status) && status.last_attempted_repo_revision.as_deref() == Some(revision)
        };
        self.world().policy(&format!("the run at {revision} has ended"), attempted).await
    }

    /// The counts of a run, which succeeded.
    fn succeeded(&self, status: &SyncPolicyStatus) -> Counts {
        let failed: Vec<_> = status
            .failed_resources
            .iter()
            .map(|failed| format!("{}: {}", failed.path, failed.message))
            .collect();
        let asked = || self.traffic.take();
        assert_eq!(status.last_run_outcome, Some(RunOutcome::Succeeded), "{failed:#?}\n{:#?}", asked());
        status.resource_stats.unwrap().into()
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
