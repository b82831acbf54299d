//! What the engine alone takes: runs of `declarest_core::sync` on a mirror, as the operator makes them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{Mirror, Revision, Tree};
use declarest_core::secrets::vault::KvVersion;
use declarest_core::secrets::{SecretReader, SecretStore};
use declarest_core::server::{BaseUrl, Client, DEFAULT_CONCURRENCY, Gate, Settings, Throttling};
use declarest_core::sync::{self, Knowledge, Options, Outcome, Reading, Report, Selection, Session, Stop};
use futures::StreamExt as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::desired;
use crate::rest::{Rest, read, read_all};
use crate::table::{Figure, ROUNDS, milliseconds, ratio, timed};
use crate::vault::{Vault, key, secret};

/// Members of the one collection that is compared with its list.
const LISTED: usize = 10_000;
/// Secrets in each resource that has any.
const SECRETS: usize = 5;
/// Resources that are created.
const CREATED: u32 = 1_000;
const LATENCY_MS: u32 = 10;

/// A mirror, a client, and what a policy remembers of its runs.
#[derive(Clone)]
struct Engine {
    mirror: Mirror,
    revision: Revision,
    client: Client,
    knowledge: Arc<Knowledge>,
    store: Option<SecretStore>,
    _directory: Arc<TempDir>,
}

impl Engine {
    fn new(server: &Rest, resources: impl Iterator<Item = (String, usize)>) -> Self {
        Self::following(server, |repository| desired::commit(repository, resources))
    }

    /// Follows what `commit` commits.
    fn following(server: &Rest, commit: impl FnOnce(&Path) -> String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(directory.path(), "benchmark").unwrap();
        let revision = commit(&directory.path().join("git")).parse().unwrap();
        let settings = Settings::new(BaseUrl::parse(&server.url).unwrap());
        let throttling =
            Throttling { max_concurrent_requests: Some(DEFAULT_CONCURRENCY), ..Throttling::default() };
        let client = Client::new(settings, Arc::new(Gate::new(&throttling).unwrap()), None).unwrap();
        let directory = Arc::new(directory);
        Self { mirror, revision, client, knowledge: Arc::default(), store: None, _directory: directory }
    }

    /// A full run as the operator makes it: on a task of its own, with tree, metadata and selection made
    /// anew, over connections that are kept.
    async fn full(&self) -> Report {
        let engine = self.clone();
        spawned(async move { engine.compare(engine.session().await, Reading::Each).await }).await
    }

    /// A drift check at the interval, likewise: Git is only read if the server's answers are new.
    async fn drift_check(&self) -> Report {
        let engine = self.clone();
        let check = async move {
            let mut session = engine.session().await;
            if engine.knowledge.is_settled_at(&engine.revision) {
                match sync::recheck(&session, &Stop::default()).await {
                    Ok(report) => return report,
                    Err(answers) => session.answers = Arc::new(answers),
                }
            }
            engine.compare(session, Reading::Bulk).await
        };
        spawned(check).await
    }

    async fn session(&self) -> Session {
        let engine = self.clone();
        let tree = tokio::task::spawn_blocking(move || engine.mirror.tree(&engine.revision).unwrap());
        let tree: Arc<dyn Tree> = Arc::new(tree.await.unwrap());
        let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
        let knowledge = Arc::clone(&self.knowledge);
        let secrets = SecretReader::new(self.store.clone());
        Session { knowledge, secrets, ..Session::new(tree, metadata, self.client.clone()) }
    }

    async fn compare(&self, session: Session, reading: Reading) -> Report {
        let tree = Arc::clone(&session.tree);
        let select = move || Selection::full(tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let selection = tokio::task::spawn_blocking(select).await.unwrap();
        let options = Options { reading, ..Options::default() };
        sync::run(&session, selection, &options, &Stop::default()).await
    }
}

async fn spawned(run: impl Future<Output = Report> + Send + 'static) -> Report {
    let report = tokio::spawn(run).await.unwrap();
    assert_eq!(report.outcome, Outcome::Succeeded, "{:?}", report.failures.first());
    report
}

/// A full run beside a bare client that requests the same URLs.
pub async fn one_by_one() -> Figure {
    let (count, members) = (10_000, 1_000);
    let server = Rest::start(&desired::collections(count, members), 0);
    let engine = Engine::new(&server, desired::spread(count, members));
    let urls = (0..count).map(|index| format!("{}/{}", server.url, desired::member(index, members)));
    let (client, urls) = (reqwest::Client::new(), Arc::new(urls.collect::<Vec<_>>()));
    engine.full().await;
    let (mut floors, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        server.reset_counts().await;
        floors.push(timed(read_all(&client, &urls, DEFAULT_CONCURRENCY)).await.0);
        assert_eq!(server.counts().await.total, count);
        server.reset_counts().await;
        let (time, report) = timed(engine.full()).await;
        assert_eq!(report.stats.unchanged, count);
        runs.push(time);
        let counts = server.counts().await;
        assert!(counts.total >= count && counts.writes == 0, "every resource is read by itself");
        assert!(counts.peak <= DEFAULT_CONCURRENCY);
    }
    let (run, floor, measured) = ratio(runs, floors);
    Figure {
        row: "a",
        what: "full run, 10,000 read one by one, nothing to do / bare client".to_owned(),
        target: 1.25,
        measured,
        unit: "",
        raw: format!("{} / {}", milliseconds(run), milliseconds(floor)),
    }
}

/// Drift checks at the interval beside getting the list and decoding it: when nothing changed, and when
/// somebody changed one resource.
pub async fn in_bulk() -> Vec<Figure> {
    let server = Rest::start(&["/c0".to_owned()], 0);
    let engine = Engine::new(&server, desired::spread(LISTED, LISTED));
    let (client, list) = (reqwest::Client::new(), format!("{}/c0", server.url));
    engine.full().await;
    // One to learn what the list is good for, one to settle on it.
    engine.drift_check().await;
    engine.drift_check().await;
    let (mut floors, mut settled, mut drifted) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of_settled, mut of_drifted) = (0, 0);
    for _ in 0..ROUNDS {
        let floor = async {
            let body = read(&client, &list).await;
            serde_json::from_slice::<Value>(&body).unwrap().as_array().unwrap().len()
        };
        let (time, listed) = timed(floor).await;
        assert_eq!(listed, LISTED);
        floors.push(time);
        server.reset_counts().await;
        let (time, report) = timed(engine.drift_check()).await;
        assert_eq!(report.stats.unchanged, LISTED);
        settled.push(time);
        of_settled = server.counts().await.total;

        let changed = client.put(format!("{list}/i77")).body(desired::payload("i77", 0)).send().await;
        assert!(changed.unwrap().status().is_success());
        server.reset_counts().await;
        let (time, report) = timed(engine.drift_check()).await;
        assert_eq!(report.stats.updated, 1);
        drifted.push(time);
        of_drifted = server.counts().await.total;
        engine.drift_check().await;
    }
    let figure = |what: &str, checks: Vec<Duration>, requests: usize| {
        let (check, floor, measured) = ratio(checks, floors.clone());
        Figure {
            row: "b",
            what: format!("drift check of 10,000 in one collection, {what} / its list decoded"),
            target: 3.0,
            measured,
            unit: "",
            raw: format!("{} in {requests} requests / {}", milliseconds(check), milliseconds(floor)),
        }
    };
    vec![figure("settled", settled, of_settled), figure("one drifted", drifted, of_drifted)]
}

/// A first sync beside the time that its creations take if each starts when the last one of its slot ends.
pub async fn create() -> Figure {
    let count = usize::try_from(CREATED).unwrap();
    let (mut runs, mut requests) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let server = Rest::start(&["/c0".to_owned()], LATENCY_MS.into());
        let engine = Engine::new(&server, desired::spread(count, count));
        let (time, report) = timed(engine.full()).await;
        assert_eq!(report.stats.created, count);
        runs.push(time);
        let counts = server.counts().await;
        assert!(counts.peak <= DEFAULT_CONCURRENCY && counts.writes == count);
        requests = counts.total;
    }
    let ideal =
        Duration::from_millis(u64::from(CREATED * LATENCY_MS)) / u32::try_from(DEFAULT_CONCURRENCY).unwrap();
    let (run, ideal, measured) = ratio(runs, vec![ideal]);
    Figure {
        row: "c",
        what: "first sync, 1,000 created at 10 ms, 16 at once / creations alone".to_owned(),
        target: 1.15,
        measured,
        unit: "",
        raw: format!("{} in {requests} requests / {}", milliseconds(run), milliseconds(ideal)),
    }
}

/// A first sync of resources with secrets in a Vault beside the same resources written out.
pub async fn with_secrets() -> Figure {
    let count = usize::try_from(CREATED).unwrap();
    let vault = Vault::start().await;
    let stored = vault.store(KvVersion::V2);
    let keys = (0..count).flat_map(|index| (0..SECRETS).map(move |secret| format!("c0/i{index}:/s{secret}")));
    futures::stream::iter(keys.map(|text| (key(&text), secret(&format!("value of {text}")))))
        .for_each_concurrent(DEFAULT_CONCURRENCY, |(key, value)| {
            let stored = &stored;
            async move { stored.set(&key, &value).await.unwrap() }
        })
        .await;
    let (mut resolved, mut written) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (times, store) in [(&mut written, None), (&mut resolved, Some(vault.store(KvVersion::V2)))] {
            let server = Rest::start(&["/c0".to_owned()], LATENCY_MS.into());
            let value = |path: &str, member: usize| match store {
                Some(_) => "{{secret .}}".to_owned(),
                None => format!("value of {path}:/s{member}"),
            };
            let payload = |(path, _): (String, usize)| {
                let members = (0..SECRETS).map(|member| (format!("s{member}"), value(&path, member).into()));
                let id = path.rsplit_once('/').unwrap().1;
                let members: serde_json::Map<_, Value> =
                    members.chain([("id".to_owned(), id.into())]).collect();
                let body = Value::from(members).to_string();
                (path, body)
            };
            let payloads = desired::spread(count, count).map(payload);
            let mut engine =
                Engine::following(&server, |repository| desired::commit_payloads(repository, payloads));
            engine.store = store.map(SecretStore::from);
            let (time, report) = timed(engine.full()).await;
            assert_eq!(report.stats.created, count);
            times.push(time);
        }
    }
    let (resolved, written, measured) = ratio(resolved, written);
    Figure {
        row: "h",
        what: "first sync, 1,000 with 5 secrets each in Vault / the same written out".to_owned(),
        target: 1.5,
        measured,
        unit: "",
        raw: format!("{} / {}", milliseconds(resolved), milliseconds(written)),
    }
}
