//! `kill -9` at random points of runs that create, update and delete. `CHAOS_KILLS` says how often, `CHAOS_SEED`
//! where, and `CHAOS_TABLE` names a file to which the results are added: `make chaos`.

mod situations;
#[path = "../../../core/tests/chaos/state.rs"]
mod state;
#[path = "../../../core/tests/chaos/table.rs"]
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};

use self::state::State;
use self::table::{Row, Tally, size};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Request, RestServer};
use crate::support::world::World;

const KILLS: usize = 4;
/// Operators at a time, each with a server of its own: most of the time they wait before they try again.
const SCENES: usize = 4;
const CONCURRENCY: usize = 4;
/// Resources that are changed in each round.
const LASTING: usize = 4;
/// A run that makes fewer requests than expected is killed after this time.
const AT_LAST: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_request_it_converges() {
    let (kills, seed) = (size("CHAOS_KILLS", KILLS), size("CHAOS_SEED", 0));
    let scenes = (0..SCENES).map(|scene| {
        survive(seed + u64::try_from(scene).unwrap(), kills.saturating_sub(scene).div_ceil(SCENES))
    });
    let mut survived = Survived::default();
    for scene in join_all(scenes).await {
        survived.merge(scene);
    }
    survived.publish();
    assert!(survived.violations.is_empty(), "{}", survived.violations.join("\n"));
}

/// Kills the operator of one scene so often.
async fn survive(seed: u64, kills: usize) -> Survived {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut scene = Scene::start().await;
    scene.next_round();
    let (requests, writes) = scene.traffic_of_a_round().await;
    let mut survived = Survived { requests: scene.server.counts().total(), ..Survived::default() };
    for _ in 0..kills {
        // A run reads before it writes, but what a kill interrupts should mostly be a write.
        let moment = if rng.u8(..4) == 0 {
            scene.killed_at(rng.usize(1..=requests), |_| true).await
        } else {
            scene.killed_at(rng.usize(1..=writes), Request::is_write).await
        };
        scene.world.launch().await;
        survived.kill(moment);
        // Sometimes the next change and the next kill meet a run that still makes good for the last one.
        if rng.u8(..4) > 0 {
            survived.settle(scene.settled().await);
        }
    }
    survived.settle(scene.settled().await);
    let peak = scene.server.peak_concurrency();
    if peak > CONCURRENCY {
        survived.violations.push(format!("{peak} requests at once, {CONCURRENCY} are allowed"));
    }
    survived
}

/// A repository that changes round by round, and the server that follows it.
struct Scene {
    world: World,
    git: GitRemote,
    server: RestServer,
    expected: State,
    /// The addresses on the server of what is no longer declared.
    doomed: BTreeSet<String>,
    round: usize,
}

impl Scene {
    async fn start() -> Self {
        let server = RestServer::start(Config {
            collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
            server_ids: vec!["/orders".to_owned(), "/orders/*/lines".to_owned()],
            log_bodies: true,
            ..Config::default()
        });
        let (server, git) = (server.unwrap(), GitRemote::new());
        // Slow enough that several requests are under way when the operator dies.
        server.latency(Duration::from_millis(5));
        server.put_by_hand("/shops/foreign", json!({"id": "foreign"}));
        server.put_by_hand("/orders/f-1", json!({"id": "f-1", "name": "foreign"}));
        let expected = state::of(server.resources());
        for collection in ["orders", "orders/_/lines"] {
            git.write(&format!("{collection}/_/metadata.yaml"), "resource: {id: /id, alias: /name}");
        }
        let world = World::start().await;
        let mut scene = Self { world, git, server, expected, doomed: BTreeSet::new(), round: 0 };
        scene.next_round();
        scene.world.create_repository(&scene.git.file_url(), Value::Null).await;
        let throttling = json!({"maxConcurrentRequests": CONCURRENCY});
        let http = json!({"baseURL": scene.server.url(), "requestThrottling": throttling});
        scene.world.create_server(http).await;
        scene.world.create_policy(json!({})).await;
        scene.world.applied(&scene.git.head()).await;
        scene
    }

    /// Pushes a commit that creates, changes and drops something.
    fn next_round(&mut self) {
        let (last, round) = (self.round, self.round + 1);
        self.round = round;
        if last > 0 {
            self.undeclare(&format!("/shops/s{last}"));
            self.undeclare(&format!("/orders/o{last}"));
        }
        let (shop, order) = (format!("s{round}"), format!("o{round}"));
        self.declare(&format!("/shops/{shop}"), json!({"id": shop}));
        self.declare(&format!("/shops/{shop}/tills/t"), json!({"id": "t"}));
        self.declare(&format!("/orders/{order}"), json!({"name": order}));
        self.declare(&format!("/orders/{order}/lines/l"), json!({"name": "l", "order": order}));
        for index in 0..LASTING {
            let (shop, order) = (format!("lasting{index}"), format!("lasting{index}"));
            self.declare(&format!("/shops/{shop}"), json!({"id": shop, "round": round}));
            self.declare(&format!("/orders/{order}"), json!({"name": order, "round": round}));
        }
        self.git.commit(&format!("round {round}"));
        self.git.push();
    }

    fn declare(&mut self, path: &str, body: Value) {
        self.git.write(&format!("{}/resource.json", path.trim_start_matches('/')), body.to_string());
        self.expected.insert(path.to_owned(), vec![body]);
    }

    fn undeclare(&mut self, path: &str) {
        self.git.remove(path.trim_start_matches('/'));
        let dropped = |other: &String| other == path || other.starts_with(&format!("{path}/"));
        self.doomed.extend(self.expected.keys().filter(|other| dropped(other)).cloned());
        self.expected.retain(|other, _| !dropped(other));
    }

    /// How many requests it takes to follow one commit, and how many of them are writes.
    async fn traffic_of_a_round(&self) -> (usize, usize) {
        let before = self.server.log().len();
        self.world.notify().await;
        self.world.applied(&self.git.head()).await;
        let log = self.server.log();
        (log.len() - before, log[before..].iter().filter(|request| request.is_write()).count())
    }

    /// Pushes the next commit and kills the operator at the n-th request of a kind that follows. Returns what it
    /// was doing.
    async fn killed_at(&mut self, nth: usize, kind: impl Fn(&Request) -> bool) -> &'static str {
        self.next_round();
        let before = self.server.log().len();
        let seen = || self.server.log()[before..].iter().filter(|request| kind(request)).count();
        self.world.notify().await;
        let started = Instant::now();
        while seen() < nth && started.elapsed() < AT_LAST {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.world.kill();
        let log = self.server.log();
        match log[before..].iter().rfind(|request| request.is_write()) {
            None => "reading",
            Some(write) if write.method == "POST" => "creating",
            Some(write) if write.method == "DELETE" => "pruning",
            Some(_) => "updating",
        }
    }

    /// Waits until the last commit is applied; returns what is wrong then.
    async fn settled(&self) -> Settled {
        let status = self.world.applied(&self.git.head()).await;
        let state = state::of(self.server.resources());
        let mut violations = state::differences(&self.expected, &state);
        let failed = status.resource_stats.map_or(0, |stats| stats.failed);
        if failed > 0 {
            violations.push(format!("{failed} failed"));
        }
        violations.extend(created_twice(&self.server.writes()));
        let lost_deletes = self.doomed.iter().filter(|path| state.contains_key(*path)).count();
        let round = format!("round {}", self.round);
        for violation in &mut violations {
            violation.insert_str(0, &format!("{round}: "));
        }
        Settled {
            violations,
            lost_deletes,
            duplicates: self.server.duplicates().len(),
            requests: self.server.counts().total(),
            peak: self.server.peak_concurrency(),
        }
    }
}

/// What the server looked like in the end of a round, and what it was asked so far.
struct Settled {
    violations: Vec<String>,
    lost_deletes: usize,
    duplicates: usize,
    requests: usize,
    peak: usize,
}

/// Names are never used again, so each is created once in all.
fn created_twice(writes: &[Request]) -> Vec<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.method == "POST" && write.status == Some(201)) {
        let body = write.body.clone().unwrap_or_default();
        let name = body["id"].as_str().or(body["name"].as_str()).unwrap_or_default().to_owned();
        *times.entry(format!("{}/{name}", write.path)).or_default() += 1;
    }
    let twice = times.into_iter().filter(|(_, times)| *times > 1);
    twice.map(|(path, times)| format!("{path} was created {times} times")).collect()
}

/// Kills by what they interrupted.
#[derive(Default)]
struct Survived {
    moments: BTreeMap<&'static str, Vec<Tally>>,
    /// Kills since the server was last in the desired state, and how often the operator was started since.
    open: Vec<(&'static str, usize)>,
    requests: usize,
    violations: Vec<String>,
}

impl Survived {
    /// The operator was killed and started again.
    fn kill(&mut self, moment: &'static str) {
        self.open.push((moment, 0));
        for (_, launches) in &mut self.open {
            *launches += 1;
        }
    }

    fn settle(&mut self, settled: Settled) {
        // Several kills may share the way to the desired state; its figures are counted once.
        let mut requests = settled.requests - self.requests;
        let (mut duplicates, mut lost_deletes) = (settled.duplicates, settled.lost_deletes);
        for (moment, launches) in self.open.drain(..) {
            let tally = Tally {
                requests: take(&mut requests),
                injected: 1,
                runs: launches,
                duplicates: take(&mut duplicates),
                lost_deletes: take(&mut lost_deletes),
                peak: settled.peak,
                budget: CONCURRENCY,
            };
            self.moments.entry(moment).or_default().push(tally);
        }
        self.requests = settled.requests;
        self.violations.extend(settled.violations);
    }

    /// Adds what another scene survived.
    fn merge(&mut self, other: Self) {
        for (moment, tallies) in other.moments {
            self.moments.entry(moment).or_default().extend(tallies);
        }
        self.violations.extend(other.violations);
    }

    fn publish(&self) {
        for (moment, tallies) in &self.moments {
            let mut row = Row::new(&format!("`kill -9` while {moment}"));
            for tally in tallies {
                row.add(tally.clone());
            }
            row.publish();
        }
    }
}
