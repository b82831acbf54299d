//! Runs until nothing is left to do, with what the operator does in between.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::secrets::Secret;
use declarest_core::server::{Auth, BaseUrl, Client, Gate, Settings, Throttling};
use declarest_core::sync::{self, Knowledge, Options, Outcome, Reading, Report, Selection, Session, Stop};

use crate::fault::{Chance, Fault};
use crate::proxy::Proxy;
use crate::scene::{PASSWORD, Scene, USER};
use crate::table::Tally;

/// How long one attempt may take where answers are withheld, and elsewhere, where a request that times out because
/// the machine is busy would prove nothing.
const SHORT_TIMEOUT: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

/// What one server is to be asked at once, per second, and in one go.
const CONCURRENCY: usize = 8;
const RATE: u32 = 100;
const BURST: u32 = 10;

/// Maximum number of runs until convergence.
const MOST_RUNS: usize = 40;

/// The pause between two runs. The operator's is longer.
const BACKOFF: Duration = Duration::from_millis(100);

/// One scene under faults.
pub struct Trial {
    pub seed: u64,
    pub percent: u8,
    pub faults: &'static [Fault],
    pub resources: usize,
}

/// Brings a server to its desired state in spite of `trial.faults`; returns the faults that it found, and the effort.
pub async fn converge(trial: Trial) -> (Vec<String>, Tally) {
    let scene = Scene::new(trial.resources);
    let server = scene.server.url().trim_start_matches("http://").parse().unwrap();
    let timeout = if trial.faults.contains(&Fault::Timeout) { SHORT_TIMEOUT } else { TIMEOUT };
    let proxy = Proxy::start(server, timeout, Chance::new(trial.seed, trial.percent, trial.faults)).await;
    let engine = Engine::new(&scene, client(&proxy, timeout), trial.seed);
    let mut violations = Vec::new();
    let mut runs = 0;
    let tree = engine.session.tree.as_ref();
    // Where nothing is to be deleted, requests are made when they are sent.
    let mut prunes = !engine.options.first;
    let mut selection = if prunes { scene.everything(tree) } else { Scene::declared(tree) };
    loop {
        runs += 1;
        let report = engine.run(selection).await;
        if report.outcome == Outcome::Succeeded && report.prune_refused.is_none() {
            if std::mem::replace(&mut prunes, true) {
                break;
            }
            selection = scene.everything(tree);
            continue;
        }
        if runs == MOST_RUNS {
            violations.push(format!("not converged after {MOST_RUNS} runs: {report:#?}"));
            break;
        }
        selection = scene.failed(tree, &report);
        tokio::time::sleep(BACKOFF).await;
    }
    violations.extend(scene.violations());
    violations.extend(proxy.leaks());
    violations.extend(over_budget(&proxy));
    let traffic = proxy.traffic();
    let tally = Tally {
        requests: traffic.requests(),
        injected: traffic.injected(),
        runs,
        duplicates: scene.duplicates(),
        lost_deletes: scene.lost_deletes(),
        peak: traffic.peak(),
        budget: CONCURRENCY,
    };
    proxy.calm();
    let report = engine.run(scene.everything(tree)).await;
    let stats = report.stats;
    if report.outcome != Outcome::Succeeded || stats.unchanged != stats.targeted || stats.pruned > 0 {
        violations.push(format!("something was left to do: {report:#?}"));
    }
    (violations, tally)
}

fn client(proxy: &Proxy, timeout: Duration) -> Client {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = Settings {
        auth: Auth::Basic {
            username: Secret::from(USER.to_owned()),
            password: Secret::from(PASSWORD.to_owned()),
        },
        default_headers: vec![("X-Team".to_owned(), "platform".to_owned())],
        ..Settings::new(BaseUrl::parse(&format!("http://{}", proxy.address)).unwrap())
    };
    let gate = Gate::new(&Throttling {
        max_concurrent_requests: Some(CONCURRENCY),
        queue_size: None,
        requests_per_second: Some(f64::from(RATE)),
        burst: Some(BURST),
    });
    Client::new(settings, Arc::new(gate.unwrap()), None).unwrap().with_attempt_timeout(timeout)
}

/// Requests beyond what was agreed. Those under way when a second begins may arrive late, in it.
fn over_budget(proxy: &Proxy) -> Vec<String> {
    let (peak, fastest) = (proxy.traffic().peak(), proxy.traffic().most_within(Duration::from_secs(1)));
    let allowed = usize::try_from(RATE + BURST).unwrap() + 2 * CONCURRENCY;
    let mut found = Vec::new();
    if peak > CONCURRENCY {
        found.push(format!("{peak} requests at once, {CONCURRENCY} are allowed"));
    }
    if fastest > allowed {
        found.push(format!("{fastest} requests within a second, {allowed} are allowed"));
    }
    found
}

struct Engine {
    session: Session,
    options: Options,
}

impl Engine {
    /// Every other seed looks from afar where that is enough, and begins as a policy that was made just now.
    fn new(scene: &Scene, client: Client, seed: u64) -> Self {
        let (tree, metadata) = scene.tree();
        let knowledge = Arc::<Knowledge>::default();
        // Its lists are never late.
        let list_delay = Duration::ZERO;
        let session = Session { knowledge, list_delay, ..Session::new(tree, metadata, client) };
        let first = !seed.is_multiple_of(2);
        let reading = if first { Reading::Bulk } else { Reading::Each };
        Self { session, options: Options { reading, first, ..Options::default() } }
    }

    async fn run(&self, selection: Selection) -> Report {
        sync::run(&self.session, selection, &self.options, &Stop::default()).await
    }
}
