//! What the operator takes as a process, on the in-process API.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use declarest_operator::crd::sync_policy::RunKind;
use declarest_operator::crd::{ResourceRepository, SyncPolicy};
use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::desired;
use crate::rest::Rest;
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::world::{Object, World, declarest, is_true};
use crate::table::{Figure, ROUNDS, median};

/// How long the slowest first sync may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// Files of a commit.
const CHANGED: usize = 10;
/// Policies of one operator, and resources of each.
const POLICIES: usize = 1_000;
const OF_EACH: usize = 10;
/// After this much time no further round begins.
const ENOUGH: Duration = Duration::from_secs(90);

/// An operator that has applied everything, of a repository and a server.
pub struct Settled {
    world: World,
    git: GitRemote,
    _remote: GitHttp,
    server: Rest,
    resources: usize,
    members: usize,
    first_sync: Duration,
    full_check: Duration,
    /// In MiB, for both.
    peak: u64,
}

impl Settled {
    /// Lets a new operator create `resources`, in collections of `members` each, on an empty server, and then
    /// read each of them once more; `policy` adds to the spec.
    pub async fn new(resources: usize, members: usize, policy: &[(&str, Value)]) -> Self {
        let git = GitRemote::new();
        // For a remote on disk libgit2 would pack in the operator what a server packs elsewhere.
        let remote = GitHttp::start(git.root(), None);
        let revision = desired::commit(&git.bare(), desired::spread(resources, members));
        let server = Rest::start(&desired::collections(resources, members), 0);
        let mut world = World::start_with(&["--log-level", "info"]).await;
        world.patience = PATIENCE;
        world.create_repository(&remote.url("desired.git"), Value::Null).await;
        world.create_server(json!({"baseURL": server.url})).await;
        let started = Instant::now();
        world.create_policy(policy.iter().cloned().collect()).await;
        world.applied(&revision).await;
        let first_sync = started.elapsed();
        let started = Instant::now();
        world.request_sync().await;
        world.finished("ManualRequest").await;
        let (full_check, peak) = (started.elapsed(), world.peak_memory());
        Self { world, git, _remote: remote, server, resources, members, first_sync, full_check, peak }
    }

    /// Restarts the operator, so that its memory is that of what comes now.
    async fn restart(&mut self) {
        assert!(self.world.terminate().success());
        self.world.launch().await;
    }

    /// Commits ten changed files and returns how long it takes from when the repository knows the commit to
    /// when the policy has applied it.
    async fn apply_ten(&self, size: usize) -> Duration {
        let apart = self.resources / CHANGED;
        let changed = (0..CHANGED).map(|index| (desired::member(index * apart, self.members), size));
        let revision = desired::commit(&self.git.bare(), changed);
        self.server.reset_counts().await;
        let fetched = |repository: &ResourceRepository| {
            let status = repository.status.as_ref();
            status.is_some_and(|status| status.last_fetched_revision.as_ref() == Some(&revision))
        };
        let applied = |policy: &SyncPolicy| {
            let status = policy.status.as_ref();
            status.is_some_and(|status| status.last_applied_repo_revision.as_ref() == Some(&revision))
        };
        let notified = self.world.notify();
        let (fetched, applied, ()) =
            tokio::join!(when(&self.world, fetched), when(&self.world, applied), notified);
        let status = self.world.applied(&revision).await;
        assert_eq!(status.last_sync_mode, Some(RunKind::Incremental));
        assert_eq!(status.resource_stats.unwrap().updated, 10);
        applied - fetched
    }
}

/// When an object of this kind first is as wanted.
async fn when<K: Object>(world: &World, mut wanted: impl FnMut(&K) -> bool) -> Instant {
    let api = world.api::<K>();
    let events = api.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event.unwrap()
            && wanted(&object)
        {
            return Instant::now();
        }
    }
    panic!("no {} within the time limit\n{}", K::kind(&()), world.log_tail())
}

/// Commits of ten files in a small and in a large scope.
pub async fn ten_files(few: &mut Settled, many: &mut Settled) -> Vec<Figure> {
    few.restart().await;
    many.restart().await;
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        of_few.push(few.apply_ten(round + 2).await);
        of_many.push(many.apply_ten(round + 2).await);
    }
    let what = |what: &str| format!("ten files changed, 100,000 / 1,000 resources: {what}");
    let figure = |figure: &str, many: f64, few: f64, raw: String| Figure {
        row: "d",
        what: what(figure),
        target: Some(1.3),
        measured: many / few,
        unit: "",
        raw,
    };
    let raw = |many, few| format!("{many} / {few}");
    let time = Figure::ratio("d", what("time"), (of_many, of_few), raw).at_most(1.3);
    let (all_many, all_few) = (many.server.counts().await.total, few.server.counts().await.total);
    let raw = format!("{all_many} / {all_few}");
    let requests = figure("requests", number(all_many), number(all_few), raw);
    let (peak_many, peak_few) = (many.world.peak_memory(), few.world.peak_memory());
    let raw = format!("{peak_many} / {peak_few} MiB, of operators that were restarted before");
    vec![time, requests, figure("peak memory", number(peak_many), number(peak_few), raw)]
}

fn number<N: TryInto<u32, Error: std::fmt::Debug>>(number: N) -> f64 {
    f64::from(number.try_into().unwrap())
}

/// The most memory that an operator had until everything was created and read.
pub fn memory(settled: &Settled, target: f64) -> Figure {
    Figure {
        row: "e",
        what: format!("peak memory of the operator, {} resources: first sync, full check", settled.resources),
        target: Some(target),
        measured: number(settled.peak),
        unit: "MiB",
        raw: format!("{:.1} s, {:.1} s", settled.first_sync.as_secs_f64(), settled.full_check.as_secs_f64()),
    }
}

/// The most memory that an operator has had after a first sync of 100,000 resources, ten changed files, and a drift
/// check that finds one resource changed.
pub async fn life(target: f64) -> Figure {
    let settled = Settled::new(100_000, 100, &[]).await;
    settled.apply_ten(2).await;
    settled.world.patch::<SyncPolicy>("policy", json!({"spec": {"syncInterval": "10s"}})).await;
    settled.world.finished("DriftDue").await;
    let url = format!("{}/{}", settled.server.url, desired::member(77, settled.members));
    let changed = reqwest::Client::new().put(url).body(desired::payload("i77", 0)).send().await;
    assert!(changed.unwrap().status().is_success());
    let corrected = settled.world.policy("the change is undone", |status| {
        status.resource_stats.is_some_and(|stats| stats.updated == 1)
            && status.last_trigger.as_deref() == Some("DriftDue")
    });
    corrected.await;
    let peak = settled.world.peak_memory();
    Figure {
        row: "i",
        what: "peak memory, 100,000 resources, kube-apiserver: first sync, commit, drift".to_owned(),
        target: Some(target),
        measured: number(peak),
        unit: "MiB",
        raw: format!("first sync {:.1} s", settled.first_sync.as_secs_f64()),
    }
}

/// Many policies of a few resources, from the start of the process until all are ready.
pub async fn policies() -> Figure {
    let git = GitRemote::new();
    desired::commit(&git.bare(), desired::spread(POLICIES * OF_EACH, OF_EACH));
    let (started, mut times) = (Instant::now(), Vec::new());
    while times.len() < ROUNDS && (times.is_empty() || started.elapsed() < ENOUGH) {
        times.push(cold_start(&git).await);
    }
    let rounds = times.len();
    Figure {
        row: "f",
        what: "1,000 policies of 10 resources, all ready from cold".to_owned(),
        target: Some(60.0),
        measured: median(times),
        unit: "s",
        raw: format!("median of {rounds}"),
    }
}

async fn cold_start(git: &GitRemote) -> Duration {
    let collections = desired::collections(POLICIES * OF_EACH, OF_EACH);
    let server = Rest::start(&collections, 0);
    let repository = json!({"type": "git", "git": {"url": git.file_url()}});
    let mut objects = vec![
        declarest("ResourceRepository", "repo", &repository),
        declarest("ManagedServer", "server", &json!({"http": {"baseURL": server.url}})),
    ];
    objects.extend(collections.iter().enumerate().map(|(index, path)| {
        let spec = json!({
            "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
            "source": {"path": path}, "sync": {"prune": true}, "syncInterval": "1h",
        });
        declarest("SyncPolicy", &format!("policy-{index}"), &spec)
    }));
    let mut world = World::cold(&["--log-level", "info"], objects);
    world.patience = PATIENCE;
    let started = Instant::now();
    world.launch().await;
    let all = all_ready(&world).await;
    assert_eq!(server.counts().await.writes, POLICIES * OF_EACH);
    all - started
}

/// Waits until all policies are Ready, and returns the time when the last one was.
async fn all_ready(world: &World) -> Instant {
    let mut ready = HashSet::new();
    when(world, |policy: &SyncPolicy| {
        if policy.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Ready")) {
            ready.insert(policy.name_any());
        }
        ready.len() == POLICIES
    })
    .await
}

/// Managed servers of the policies on a real API server.
const SERVERS: usize = 20;
/// How long the operator is observed when it has nothing to do.
const IDLE: Duration = Duration::from_mins(1);

/// Many policies on a real API server: time and CPU time until all are ready, and CPU time when nothing is due.
pub async fn policies_on_cluster(repositories: usize) -> Vec<Figure> {
    let git = GitRemote::new();
    desired::commit(&git.bare(), desired::spread(POLICIES * OF_EACH, OF_EACH));
    let remote = GitHttp::start(git.root(), None);
    let collections = desired::collections(POLICIES * OF_EACH, OF_EACH);
    let servers: Vec<Rest> = (0..SERVERS).map(|_| Rest::start(&collections, 0)).collect();
    let mut world = World::cold_on_cluster(&["--log-level", "info"]).await;
    world.patience = PATIENCE;
    let repository = json!({"type": "git", "git": {"url": remote.url("desired.git")}});
    for index in 0..repositories {
        world.create(declarest("ResourceRepository", &format!("repo-{index}"), &repository)).await;
    }
    for (index, server) in servers.iter().enumerate() {
        let spec = json!({"http": {"baseURL": server.url}});
        world.create(declarest("ManagedServer", &format!("server-{index}"), &spec)).await;
    }
    for (index, path) in collections.iter().enumerate() {
        let spec = json!({
            "resourceRepositoryRef": {"name": format!("repo-{}", index % repositories)},
            "managedServerRef": {"name": format!("server-{}", index % SERVERS)},
            "source": {"path": path}, "sync": {"prune": true},
        });
        world.create(declarest("SyncPolicy", &format!("policy-{index}"), &spec)).await;
    }
    let started = Instant::now();
    world.launch().await;
    let (time, cpu) = (all_ready(&world).await - started, world.cpu_time());
    tokio::time::sleep(IDLE / 6).await;
    let before = world.cpu_time();
    tokio::time::sleep(IDLE).await;
    let idle = world.cpu_time().saturating_sub(before).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let what =
        |what: &str| format!("1,000 policies, {SERVERS} servers, repositories: {repositories}; {what}");
    let figure = |what, target, measured, unit: &'static str, raw: String| Figure {
        row: "f",
        what,
        target: Some(target),
        measured,
        unit,
        raw,
    };
    let peak = format!("peak memory {} MiB", world.peak_memory());
    vec![
        figure(what("all ready"), 30.0, time.as_secs_f64(), "s", "kube-apiserver".to_owned()),
        figure(what("CPU time"), 15.0, cpu.as_secs_f64(), "s", peak),
        figure(what("settled, share of a core"), 1.0, idle, "%", format!("{} s", IDLE.as_secs())),
    ]
}

/// What a drift check asks the server when all is as it should be.
pub async fn settled_check() -> Figure {
    let settled = Settled::new(10_000, 1_000, &[("syncInterval", json!("10s"))]).await;
    let mut last = None;
    let mut requests = 0.0;
    // The first check may still learn what lists are good for.
    for _ in 0..3 {
        settled.server.reset_counts().await;
        let next = settled.world.policy("a drift check ends", |status| {
            status.last_trigger.as_deref() == Some("DriftDue")
                && status.last_full_resync_time.as_ref() > last.as_ref()
                && !is_true(&status.conditions, "Reconciling")
        });
        last = next.await.last_full_resync_time;
        requests = number(settled.server.counts().await.total);
    }
    Figure {
        row: "g",
        what: "requests of a settled drift check of 10,000 in 10 collections".to_owned(),
        target: Some(10.0),
        measured: requests,
        unit: "",
        raw: "the third check".to_owned(),
    }
}
