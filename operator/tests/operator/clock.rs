//! Time: jumps of the wall clock, and a day in ten minutes.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::time::Duration;

use declarest_operator::crd::SyncPolicy;
use kube::api::ListParams;
use rstest::rstest;
use serde_json::{Value, json};

use crate::metrics::{METRICS, scrape};
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::simulated_clock::SimulatedClock;
use crate::support::world::{World, declarest, is_true};

const HOUR: Duration = Duration::from_hours(1);

/// Policies of the soak test, and resources of each.
const POLICIES: u32 = 100;
const MEMBERS: u32 = 3;
const CHECKS_PER_HOUR: f64 = 12.0;
const POLLS_PER_HOUR: f64 = 60.0;

fn remote(policies: u32) -> GitRemote {
    let git = GitRemote::new();
    for policy in 0..policies {
        for member in 0..MEMBERS {
            let text = format!(r#"{{"id": "m{member}", "size": 1}}"#);
            git.write(&format!("c{policy}/m{member}/resource.json"), text);
        }
    }
    git.commit("members");
    git.push();
    git
}

fn server(policies: u32) -> RestServer {
    let collections = (0..policies).map(|policy| format!("/c{policy}")).collect();
    RestServer::start(Config { collections, ..Config::default() }).unwrap()
}

/// The objects of a world in which each policy has a collection of its own.
fn objects(url: &str, server: &RestServer, policies: u32, interval: &str) -> Vec<Value> {
    let git = json!({"type": "git", "git": {"url": url}, "pollInterval": "1m"});
    let mut objects = vec![
        declarest("ResourceRepository", "repo", &git),
        declarest("ManagedServer", "server", &json!({"http": {"baseURL": server.url()}})),
    ];
    for policy in 0..policies {
        let spec = json!({
            "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
            "source": {"path": format!("/c{policy}")}, "sync": {"prune": true}, "syncInterval": interval,
        });
        objects.push(declarest("SyncPolicy", &format!("p{policy}"), &spec));
    }
    objects
}

/// Waits until all policies are ready.
async fn all_ready(world: &World, policies: u32) {
    let api = world.api::<SyncPolicy>();
    let look = async || {
        let ready = api.list(&ListParams::default()).await.ok()?.items.into_iter();
        let ready = ready.filter(|policy| {
            policy.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Ready"))
        });
        (ready.count() == policies as usize).then_some(())
    };
    world.eventually("all policies are ready", look).await;
}

/// A drift check is due after the interval, whether the wall clock was set forward or back in the meantime.
#[rstest]
#[case::forward(86_400)]
#[case::back(-86_400)]
#[tokio::test]
async fn drift_is_corrected_after_a_jump_of_the_clock(#[case] seconds: i64) {
    let (git, server, clock) = (remote(1), server(1), SimulatedClock::new(1));
    let mut world = World::cold(&[], objects(&git.file_url(), &server, 1, "10s"));
    world.environment.extend(clock.variables());
    world.launch().await;
    all_ready(&world, 1).await;
    clock.jump(seconds);
    for size in 2..4 {
        server.put_by_hand("/c0/m1", json!({"id": "m1", "size": size}));
        let corrected = async || (server.get("/c0/m1")?["size"] == 1).then_some(());
        world.eventually("the drift is corrected", corrected).await;
    }
}

/// What must not grow while nothing changes.
#[derive(Debug)]
struct Footprint {
    memory_kib: u64,
    descriptors: usize,
    threads: usize,
    files: usize,
    series: usize,
}

/// The names and labels of all series, except those of failures: on a busy machine, a request that takes 0.4 s takes 30 s
/// of simulated time, and fails.
async fn series(world: &World) -> BTreeSet<String> {
    let text = scrape(world).await;
    let of_failures = |line: &str| ["failure", "error", "Failed"].iter().any(|word| line.contains(word));
    let samples = text.lines().filter(|line| !line.starts_with('#') && !of_failures(line));
    samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
}

impl Footprint {
    async fn of(world: &World) -> Self {
        let status = world.process("status");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            memory_kib: memory.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: world.process_entries("fd"),
            threads: world.process_entries("task"),
            files: files(&world.state()),
            series: series(world).await.len(),
        }
    }

    /// The smallest of several, because work in progress needs descriptors and threads.
    async fn at_rest(world: &World) -> Self {
        let mut least = Self::of(world).await;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = Self::of(world).await;
            least = Self {
                memory_kib: least.memory_kib.min(now.memory_kib),
                descriptors: least.descriptors.min(now.descriptors),
                threads: least.threads.min(now.threads),
                files: least.files.min(now.files),
                series: least.series.min(now.series),
            };
        }
        least
    }
}

fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

/// The sum of a counter over all objects.
async fn sum(world: &World, counter: &str) -> f64 {
    let text = scrape(world).await;
    let series = text.lines().filter(|line| line.starts_with(&format!("declarest_operator_{counter}{{")));
    series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// `SOAK_HOURS` simulated hours in which nothing changes, after a first one, with `SOAK_SPEED` simulated seconds in a
/// second.
#[tokio::test]
#[ignore = "takes minutes: make soak"]
async fn nothing_grows_while_nothing_changes() {
    let setting = |name, default| env::var(name).map_or(default, |value| value.parse().unwrap());
    let (hours, speed) = (setting("SOAK_HOURS", 1), setting("SOAK_SPEED", 60));
    let (git, server, clock) = (remote(POLICIES), server(POLICIES), SimulatedClock::new(speed));
    let http = GitHttp::start(git.root(), None);
    let objects = objects(&http.url("desired.git"), &server, POLICIES, "5m");
    let mut world = World::cold(&[METRICS, "--log-level=info"], objects);
    world.environment.extend(clock.variables());
    world.patience = Duration::from_mins(3);
    world.launch().await;
    all_ready(&world, POLICIES).await;
    // The first hour fills caches. From the second check on, a check is the request for one list.
    clock.pass(HOUR).await;
    server.reset_counts();
    let (checks, polls) = (
        sum(&world, "syncpolicy_reconcile_total").await,
        sum(&world, "resource_repository_poll_total").await,
    );
    let (early, known) = (Footprint::of(&world).await, series(&world).await);
    for hour in 0..hours {
        println!("hour {}: {:?}", hour + 1, Footprint::of(&world).await);
        clock.pass(HOUR).await;
    }
    let counts = server.counts();
    let checks = sum(&world, "syncpolicy_reconcile_total").await - checks;
    let polls = sum(&world, "resource_repository_poll_total").await - polls;
    let late = Footprint::at_rest(&world).await;
    let new: Vec<_> = series(&world).await.difference(&known).cloned().collect();
    println!(
        "{hours} h: {checks} drift checks, {polls} polls, {} requests; {early:?} -> {late:?}; new series: {new:?}",
        counts.total()
    );

    assert!(late.memory_kib * 10 <= early.memory_kib * 11, "{early:?} -> {late:?}");
    assert!(late.descriptors <= early.descriptors + 8, "{early:?} -> {late:?}");
    assert!(late.threads <= early.threads + 4, "{early:?} -> {late:?}");
    assert!(late.files <= early.files + 4, "{early:?} -> {late:?}");
    // A request that fails adds one histogram of requests.
    assert!(late.series <= early.series + 15, "{new:?}");
    // A check may be early by a tenth of the interval, so that policies do not run together. The time that the operator
    // needs for its work is real, so there are fewer: a poll of 0.3 s takes most of a simulated minute.
    let due = f64::from(hours * POLICIES) * CHECKS_PER_HOUR;
    assert!((0.5..1.12).contains(&(checks / due)), "{checks} drift checks instead of {due}");
    let due = f64::from(hours) * POLLS_PER_HOUR;
    assert!((0.25..1.05).contains(&(polls / due)), "{polls} polls instead of {due}");
    assert_eq!(counts.writes(), 0);
    // A check whose first request fails sends further ones.
    let requests = f64::from(u32::try_from(counts.total()).unwrap());
    assert!((0.9..1.5).contains(&(requests / checks)), "{requests} requests in {checks} checks");
}
