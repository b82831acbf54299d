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
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desired;
use crate::rest::{Rest, read, send_all};
use crate::table::{Figure, ROUNDS, median, milliseconds, timed};
use crate::vault::{PASSWORD, Vault, key, secret};

/// Members of the collection that is compared with its list.
const LISTED: usize = 10_000;
/// Secrets in each resource that has any.
const SECRETS: usize = 5;
/// Resources that are created.
const CREATED: u32 = 1_000;
const LATENCY_MS: u32 = 10;
/// What a product with a database needs for a creation.
const TYPICAL_LATENCY_MS: u32 = 50;

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

    /// The same engine, of which nothing was learned yet.
    fn unlearned(&self) -> Self {
        Self { knowledge: Arc::default(), ..self.clone() }
    }

    /// A full run as the operator makes it: on a task of its own, with everything new except connections and knowledge.
    /// Git is only read if the server's answers are new.
    async fn full(&self) -> Report {
        self.check(Options::default()).await
    }

    /// A full run that is the first one of its policy.
    async fn first(&self) -> Report {
        self.check(Options { first: true, ..Options::default() }).await
    }

    /// A drift check at the interval, likewise.
    async fn drift_check(&self) -> Report {
        self.check(Options { reading: Reading::Bulk, ..Options::default() }).await
    }

    async fn check(&self, options: Options) -> Report {
        let engine = self.clone();
        let check = async move {
            let mut session = engine.session().await;
            match sync::recheck(&session, &options, &Stop::default()).await {
                Ok(report) => return report,
                Err(answers) => session.answers = answers,
            }
            engine.compare(session, options).await
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

    async fn compare(&self, session: Session, options: Options) -> Report {
        let tree = Arc::clone(&session.tree);
        let select = move || Selection::full(tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let selection = tokio::task::spawn_blocking(select).await.unwrap();
        sync::run(&session, selection, &options, &Stop::default()).await
    }
}

async fn spawned(run: impl Future<Output = Report> + Send + 'static) -> Report {
    let report = tokio::spawn(run).await.unwrap();
    assert_eq!(report.outcome, Outcome::Succeeded, "{:?}", report.failures.first());
    report
}

/// Full runs beside a bare client that requests the same URLs. Each run reads, decodes and compares every resource, as
/// the first run of a process does; the very first one, with cold caches, counts as well.
pub async fn one_by_one() -> Figure {
    let (count, members) = (10_000, 1_000);
    let server = Rest::start(&desired::collections(count, members), 0);
    let engine = Engine::new(&server, desired::spread(count, members));
    let urls = (0..count).map(|index| format!("{}/{}", server.url, desired::member(index, members)));
    let (client, urls) = (reqwest::Client::new(), urls.collect::<Vec<_>>());
    // Created by the bare client, so that the first run that is measured is the first one of the process.
    let (creator, collections) = (client.clone(), desired::collections(count, members));
    let address = server.url.clone();
    let create = move |index: usize| {
        let collection = format!("{address}{}", collections[index / members]);
        creator.post(collection).body(desired::payload(&format!("i{index}"), 1))
    };
    send_all(count, DEFAULT_CONCURRENCY, create).await;
    let request = Arc::new(move |index: usize| client.get(&urls[index]));
    let (mut floors, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        server.reset_counts().await;
        let request = Arc::clone(&request);
        floors.push(timed(send_all(count, DEFAULT_CONCURRENCY, move |index| request(index))).await.0);
        assert_eq!(server.counts().await.total, count);
        server.reset_counts().await;
        let (time, report) = timed(engine.unlearned().full()).await;
        assert_eq!(report.stats.unchanged, count);
        runs.push(time);
        let counts = server.counts().await;
        assert!(counts.total >= count && counts.writes == 0, "every resource is read by itself");
        assert!(counts.peak <= DEFAULT_CONCURRENCY);
    }
    let what = "full run, 10,000 read one by one, decoded and compared / bare client".to_owned();
    Figure::ratio("a", what, (runs, floors), |run, floor| format!("{run} / {floor}")).at_most(1.5)
}

/// Drift checks at the interval beside getting the list and decoding it: when nothing changed, and when
/// another client changed one resource.
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
            let body = read(client.get(&list)).await;
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
        let what = format!("drift check of 10,000 in one collection, {what} / its list decoded");
        let raw = |check, floor| format!("{check} in {requests} requests / {floor}");
        Figure::ratio("b", what, (checks, floors.clone()), raw)
    };
    vec![
        figure("settled", settled, of_settled).at_most(2.0),
        figure("one drifted", drifted, of_drifted).at_most(3.0),
    ]
}

/// A first sync beside the time that its creations take if each starts when the last one of its slot ends.
pub async fn create() -> Figure {
    let count = usize::try_from(CREATED).unwrap();
    let (mut runs, mut floors, mut requests) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let server = Rest::start(&["/c0".to_owned()], LATENCY_MS.into());
        let (client, url) = (reqwest::Client::new(), format!("{}/c0", server.url));
        let creation = move |index| client.post(&url).body(desired::payload(&format!("i{index}"), 1));
        floors.push(timed(send_all(count, DEFAULT_CONCURRENCY, creation)).await.0);

        let server = Rest::start(&["/c0".to_owned()], LATENCY_MS.into());
        let engine = Engine::new(&server, desired::spread(count, count));
        let (time, report) = timed(engine.first()).await;
        assert_eq!(report.stats.created, count);
        runs.push(time);
        let counts = server.counts().await;
        assert!(counts.peak <= DEFAULT_CONCURRENCY && counts.writes == count);
        requests = counts.total;
    }
    let ideal =
        Duration::from_millis(u64::from(CREATED * LATENCY_MS)) / u32::try_from(DEFAULT_CONCURRENCY).unwrap();
    let bare = milliseconds(median(floors));
    let what = "first sync, 1,000 created at 10 ms, 16 at once / creations alone".to_owned();
    let raw = |run, ideal| {
        format!("{run} in {requests} requests / {ideal}; a bare client takes {bare} for the creations")
    };
    Figure::ratio("c", what, (runs, vec![ideal]), raw).at_most(1.15)
}

/// First syncs of resources with secrets in a Vault beside the same resources written out, to servers that take their
/// time and to fast ones.
pub async fn with_secrets() -> Vec<Figure> {
    let count = usize::try_from(CREATED).unwrap();
    let vault = Vault::start().await;
    // Vault evaluates the policy "default" again for each request, which takes longer than all else.
    let user = json!({"password": PASSWORD, "token_policies": "declarest", "token_no_default_policy": true});
    vault.admin(Method::POST, "auth/userpass/users/ops", user).await;
    let stored = vault.store(KvVersion::V2);
    let keys = (0..count).flat_map(|index| (0..SECRETS).map(move |secret| format!("c0/i{index}:/s{secret}")));
    futures::stream::iter(keys.map(|text| (key(&text), secret(&format!("value of {text}")))))
        .for_each_concurrent(DEFAULT_CONCURRENCY, |(key, value)| {
            let stored = &stored;
            async move { stored.set(&key, &value).await.unwrap() }
        })
        .await;
    vec![
        Box::pin(with_secrets_of(&vault, count, TYPICAL_LATENCY_MS)).await.at_most(1.5),
        Box::pin(with_secrets_of(&vault, count, LATENCY_MS)).await,
    ]
}

async fn with_secrets_of(vault: &Vault, count: usize, latency_ms: u32) -> Figure {
    let (mut resolved, mut written, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(timed(read_secrets(vault, count)).await.0);
        for (times, store) in [(&mut written, None), (&mut resolved, Some(vault.store(KvVersion::V2)))] {
            let server = Rest::start(&["/c0".to_owned()], latency_ms.into());
            let placeholders = store.is_some();
            let payloads = desired::spread(count, count).map(|(path, _)| secretive(path, placeholders));
            let mut engine =
                Engine::following(&server, |repository| desired::commit_payloads(repository, payloads));
            engine.store = store.map(SecretStore::from);
            let (time, report) = timed(engine.first()).await;
            assert_eq!(report.stats.created, count);
            times.push(time);
        }
    }
    let bare = milliseconds(median(floors));
    let what = format!("first sync at {latency_ms} ms, 1,000 with 5 secrets each in Vault / written out");
    let raw = |resolved, written| {
        format!("{resolved} / {written}; a bare client takes {bare} for the secrets alone")
    };
    Figure::ratio("h", what, (resolved, written), raw)
}

/// A resource with secrets by its path: what it holds, or placeholders for that.
fn secretive(path: String, placeholders: bool) -> (String, String) {
    let value = |member: usize| {
        if placeholders { "{{secret .}}".to_owned() } else { format!("value of {path}:/s{member}") }
    };
    let secrets = (0..SECRETS).map(|member| (format!("s{member}"), value(member).into()));
    let id = path.rsplit_once('/').unwrap().1;
    let members: serde_json::Map<_, Value> = secrets.chain([("id".to_owned(), id.into())]).collect();
    let body = Value::from(members).to_string();
    (path, body)
}

/// What a bare client needs to read the secrets of `count` resources.
async fn read_secrets(vault: &Vault, count: usize) {
    let (client, url) = (reqwest::Client::new(), format!("{}/v1/two/data", vault.url()));
    let properties = json!({"policies": ["declarest"], "no_default_policy": true});
    let token = vault.token(properties).await;
    let read = move |index: usize| {
        let (resource, secret) = (index / SECRETS, index % SECRETS);
        client.get(format!("{url}/c0/i{resource}:/s{secret}")).header("x-vault-token", &token)
    };
    send_all(count * SECRETS, DEFAULT_CONCURRENCY, read).await;
}
