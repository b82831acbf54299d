//! A repository, a server, and what an operator does with both, run by run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, Value as Payload, decode};
use declarest_core::repository::{ApplyTarget, Tree};
use declarest_core::server::Client;
use declarest_core::sync::{
    self, Candidate, Knowledge, Options, Outcome, PRUNE, Reading, Recurrences, Report, Selection, Session,
    Stop,
};
use serde_json::Value;
use tempfile::TempDir;

use super::desired::{Desired, Place, Store};
use super::judge::Judge;
use crate::api_server::ApiServer;
use crate::client;

/// How a run looks at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At everything, one by one.
    Full,
    /// At everything, by lists where that is enough.
    Bulk,
    /// At what changed in Git and what failed.
    Incremental,
}

/// A commit as a run works on it.
struct Attempt {
    desired: Desired,
    tree: Arc<dyn Tree>,
    /// Holds the files of `tree`.
    _directory: TempDir,
}

pub struct World {
    pub server: ApiServer,
    client: Client,
    knowledge: Arc<Knowledge>,
    recurrences: Recurrences,
    /// The last one is the tip of the branch.
    attempts: Vec<Attempt>,
    /// How many of them some run has worked on.
    attempted: usize,
    last: Option<Report>,
    judge: Judge,
    rng: fastrand::Rng,
    runs: usize,
    /// Runs since something was done to Git or to the server, until one succeeded.
    since: Option<usize>,
    /// The most of them.
    pub slowest: usize,
    /// What was done to Git and to the server.
    pub steps: usize,
    pub violations: Vec<String>,
}

impl World {
    pub fn new(server: ApiServer, seed: u64) -> Self {
        let client = client::client(server.url());
        Self {
            server,
            client,
            knowledge: Arc::default(),
            recurrences: Recurrences::default(),
            attempts: Vec::new(),
            attempted: 0,
            last: None,
            judge: Judge::default(),
            rng: fastrand::Rng::with_seed(seed),
            runs: 0,
            since: None,
            slowest: 0,
            steps: 0,
            violations: Vec::new(),
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        self.since = Some(0);
    }

    /// How long the client waits for an answer.
    pub fn patience(&mut self, timeout: Duration) {
        self.client = self.client.clone().with_attempt_timeout(timeout);
    }

    /// A resource that is made by hand and that nothing may touch.
    pub fn foreign(&mut self, path: &str, body: Value) {
        self.step();
        self.judge.foreign.insert(path.to_owned(), body.clone());
        self.server.put(path, body);
    }

    /// A resource that Git declares, as others made it or left it.
    pub fn existing(&mut self, path: &str, body: Value) {
        self.step();
        self.judge.disturbed = true;
        self.server.put(path, body);
    }

    /// Removes a resource by hand.
    pub fn remove(&mut self, place: &Place) {
        self.step();
        self.judge.disturbed = true;
        for path in place.find(&self.server.all()) {
            self.server.remove(&path);
        }
    }

    pub fn mode(&mut self, mode: &str) {
        self.step();
        self.server.mode(mode);
    }

    /// Adds a commit.
    pub fn commit(&mut self, desired: &Desired) {
        self.step();
        let number = u32::try_from(self.attempts.len()).unwrap() + 1;
        let (directory, tree) = desired.tree(number);
        self.attempts.push(Attempt { desired: desired.clone(), tree, _directory: directory });
    }

    /// Adds a commit and runs as the operator does: what changed first, unless the seed says otherwise, and then
    /// everything some times.
    pub async fn push(&mut self, desired: &Desired) {
        self.commit(desired);
        let first = [Kind::Incremental, Kind::Incremental, Kind::Full, Kind::Bulk][self.rng.usize(..4)];
        self.run(first).await;
        for _ in 0..self.rng.usize(..3) {
            self.again().await;
        }
    }

    /// One more run over everything.
    pub async fn again(&mut self) -> Outcome {
        let kind = if self.rng.bool() { Kind::Full } else { Kind::Bulk };
        self.run(kind).await
    }

    /// Runs over everything until one succeeds, which one of `runs` must, and then finds nothing to do.
    pub async fn converges(&mut self, runs: usize) {
        for run in 1..=runs {
            if self.again().await == Outcome::Succeeded {
                break;
            }
            if run == runs {
                self.violations.push(format!("not converged after {runs} runs: {}", self.account()));
                return;
            }
        }
        for kind in [Kind::Full, Kind::Bulk] {
            let before = self.server.writes().len();
            self.run(kind).await;
            if self.server.writes().len() > before || !self.succeeded() {
                self.violations.push(format!("something was left to do ({kind:?}): {}", self.account()));
            }
        }
    }

    /// The last run must have found something wrong.
    pub fn expect_failure(&mut self) {
        if self.succeeded() {
            self.violations.push(format!("nothing is reported: {}", self.account()));
        }
    }

    pub fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.violations.push(format!("{what}: {}", self.account()));
        }
    }

    pub fn succeeded(&self) -> bool {
        self.last.as_ref().is_some_and(|report| report.outcome == Outcome::Succeeded)
    }

    pub async fn run(&mut self, kind: Kind) -> Outcome {
        self.runs += 1;
        let kind = if self.last.is_none() { Kind::Full } else { kind };
        let selection = self.selection(kind);
        let kind = if selection.is_whole_scope() && kind == Kind::Incremental { Kind::Full } else { kind };
        let reading = if kind == Kind::Bulk { Reading::Bulk } else { Reading::Each };
        let options = Options {
            reading,
            first: self.last.is_none(),
            recurrences: Some(Arc::new(self.recurrences.clone())),
            ..Options::default()
        };
        let attempt = self.attempts.last().unwrap();
        let (tree, metadata) =
            (Arc::clone(&attempt.tree), Arc::new(Metadata::new(Arc::clone(&attempt.tree))));
        let knowledge = Arc::clone(&self.knowledge);
        // Its lists are never late.
        let list_delay = Duration::ZERO;
        let session = Session { knowledge, list_delay, ..Session::new(tree, metadata, self.client.clone()) };
        let (before, logged) = (self.server.all(), self.server.log().len());
        let report = sync::run(&session, selection, &options, &Stop::default()).await;
        let attempted = self.attempts.iter().map(|attempt| &attempt.desired);
        self.judge.attempted(attempted);
        if kind != Kind::Incremental {
            self.judge.disturbed = false;
        }
        let log = self.server.log().split_off(logged);
        let found = self.judge.violations(&before, &self.server.all(), &log, &report);
        self.attempted = self.attempts.len();
        if let Some(recurrences) = &report.recurrences {
            self.recurrences = recurrences.clone();
        }
        let outcome = report.outcome;
        self.since = self.since.map(|runs| runs + 1);
        if outcome == Outcome::Succeeded {
            self.slowest = self.slowest.max(self.since.take().unwrap_or_default());
        }
        self.last = Some(report);
        if !found.is_empty() {
            let account = self.account();
            let found = found.join("; ");
            self.violations.push(format!("run {} ({kind:?}): {found}: {account}", self.runs));
        }
        outcome
    }

    pub fn store(&self) -> Store {
        self.server.all()
    }

    pub fn duplicates(&self) -> usize {
        self.judge.duplicates(&self.server.all())
    }

    /// How often something was left that a successful run should have deleted.
    pub fn lost_deletes(&self) -> usize {
        self.judge.lost_deletes
    }

    /// The last report and all requests, for people.
    fn account(&self) -> String {
        let log: Vec<String> =
            self.server.log().iter().map(|request| format!("{request} {}", request.status)).collect();
        let report = self.last.as_ref().map(|report| {
            let failures = report.failures.iter().chain(&report.unsettled);
            let failures: Vec<String> = failures
                .map(|failure| format!("{} {}: {}", failure.operation, failure.path, failure.message))
                .collect();
            format!("{:?} {:?} failures {failures:#?} kept {:?}", report.outcome, report.stats, report.kept)
        });
        let tip = self.attempts.last().map(|attempt| &attempt.desired);
        format!(
            "{}\nGit: {tip:#?}\nstore: {:#?}\nrequests: {log:#?}",
            report.unwrap_or_default(),
            self.server.all()
        )
    }

    fn selection(&self, kind: Kind) -> Selection {
        let tip = self.attempts.last().unwrap();
        let candidates = self.candidates();
        if let Some(selection) = self.incremental(&candidates).filter(|_| kind == Kind::Incremental) {
            return selection;
        }
        let full = Selection::full(tip.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        Selection { prune: candidates, ..full }
    }

    /// What earlier commits declared and the last one does not, each with the last commit that did.
    fn candidates(&self) -> Vec<Candidate> {
        let (tip, earlier) = self.attempts.split_last().unwrap();
        let mut found: BTreeMap<&String, Candidate> = BTreeMap::new();
        for attempt in earlier {
            for (path, declared) in &attempt.desired.declared {
                let payload = decode(PayloadType::Json, declared.body.to_string().as_bytes()).unwrap();
                let declared_in = Some(Arc::clone(&attempt.tree));
                found.insert(
                    path,
                    Candidate { path: LogicalPath::parse(path).unwrap(), payload, declared_in },
                );
            }
        }
        found.retain(|path, _| !tip.desired.declared.contains_key(*path));
        found.into_values().collect()
    }

    /// What changed since the last run and what failed in it, unless that is not enough to know.
    fn incremental(&self, candidates: &[Candidate]) -> Option<Selection> {
        let (tip, last) = (self.attempts.last()?, self.last.as_ref()?);
        let base = &self.attempts[self.attempted.checked_sub(1)?].desired;
        if base.metadata != tip.desired.metadata {
            return None;
        }
        let changed = tip.desired.declared.iter().filter(|(path, declared)| {
            base.declared.get(*path).is_none_or(|before| before.body != declared.body)
        });
        let mut applied: Vec<LogicalPath> =
            changed.map(|(path, _)| LogicalPath::parse(path).unwrap()).collect();
        let (prunes, applies): (Vec<_>, Vec<_>) =
            last.failures.iter().partition(|failure| failure.operation == PRUNE);
        applied.extend(applies.iter().map(|failure| failure.path.clone()));
        let targets: Vec<ApplyTarget> =
            applied.into_iter().map(|path| ApplyTarget { path, recursive: false }).collect();
        let wanted = |candidate: &&Candidate| {
            base.declared.contains_key(candidate.path.as_str())
                || prunes.iter().any(|failure| failure.path == candidate.path)
        };
        let prune: Vec<Candidate> = candidates.iter().filter(wanted).cloned().collect();
        // Two paths can mean one resource if ids are not names; a full run compares all of them.
        let renamed = |candidate: &Candidate| {
            let id = candidate.payload.get("id").and_then(Payload::scalar_text);
            id.is_some_and(|id| id.trim() != candidate.path.name())
        };
        if prune.iter().any(renamed) {
            return None;
        }
        let declared = Some(tip.desired.declared.len());
        Some(Selection { prune, declared, ..Selection::targets(tip.tree.as_ref(), &targets).unwrap() })
    }
}
