//! Runs the engine on one case.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use declarest_core::error::{Categorized, Category};
use declarest_core::metadata::{Change, Metadata, Source};
use declarest_core::path::LogicalPath;
use declarest_core::payload::Value;
use declarest_core::repository::{ApplyTarget, DirTree, Tree};
use declarest_core::sync::{
    self, Candidate, FailureReason, Intent, Options, Remote, Report, Selection, Session, Stop,
};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::client::client;
use crate::server::value;
use crate::table::{Case, Departure, Listed, Operation, Outcome};

/// The metadata of a bundle, compiled once for all cases without metadata of their own.
pub struct Shared {
    tree: Arc<dyn Tree>,
    pub metadata: Arc<Metadata>,
}

impl Shared {
    pub fn new(tree: impl Tree + 'static) -> Self {
        let tree: Arc<dyn Tree> = Arc::new(tree);
        let source = Source::shared(Arc::clone(&tree), "bundle");
        Self { tree, metadata: Arc::new(Metadata::layered(vec![Arc::new(source)])) }
    }
}

/// A repository with the desired resources of a case, and the connection to its server.
pub struct World {
    session: Session,
    path: LogicalPath,
    _directory: TempDir,
}

impl World {
    pub fn new(case: &Case, bundle: &Shared, base_url: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_repository(directory.path(), case);
        let tree: Arc<dyn Tree> = Arc::new(DirTree::open(directory.path()).unwrap());
        let metadata = if case.metadata.is_empty() {
            Arc::clone(&bundle.metadata)
        } else {
            let sources = vec![
                Arc::new(Source::shared(Arc::clone(&bundle.tree), "bundle")),
                Arc::new(Source::repository(Arc::clone(&tree))),
            ];
            Arc::new(Metadata::layered(sources))
        };
        let session = Session::new(tree, metadata, client(base_url));
        Self { session, path: LogicalPath::parse(&case.path).unwrap(), _directory: directory }
    }

    /// Runs the case, and returns its problems, except those of requests.
    pub async fn run(&self, case: &Case) -> Vec<String> {
        match case.operation {
            Operation::List => self.list(case).await,
            Operation::Get => self.get(case).await,
            Operation::Compare => self.compare(case),
            Operation::Delete => {
                let payload = self.session.metadata.rules(&self.path).unwrap().seed(&self.path);
                let candidate = Candidate { path: self.path.clone(), payload, declared_in: None };
                let selection = Selection { prune: vec![candidate], ..Selection::default() };
                let report = self.sync(selection, &Options::default()).await;
                problems_of(&report, report.stats.pruned == 1, "nothing was deleted")
            }
            Operation::Create => {
                let options = Options { intent: Intent::Create, ..Options::default() };
                let report = self.sync(self.selection(case), &options).await;
                problems_of(&report, report.stats.created == 1 + case.with.len(), "not all was created")
            }
            Operation::Update => {
                let options = Options { force: true, ..Options::default() };
                let report = self.sync(self.selection(case), &options).await;
                problems_of(&report, report.stats.updated == 1, "nothing was updated")
            }
            Operation::Apply => self.apply(case).await,
        }
    }

    fn selection(&self, case: &Case) -> Selection {
        let paths = case.with.keys().map(|path| LogicalPath::parse(path).unwrap());
        let targets = paths.chain([self.path.clone()]).map(|path| ApplyTarget { path, recursive: false });
        Selection::targets(self.session.tree.as_ref(), &targets.collect::<Vec<_>>()).unwrap()
    }

    async fn sync(&self, selection: Selection, options: &Options) -> Report {
        sync::run(&self.session, selection, options, &Stop::default()).await
    }

    async fn apply(&self, case: &Case) -> Vec<String> {
        let report = self.sync(self.selection(case), &Options::default()).await;
        let stats = &report.stats;
        let outcome = match (stats.created, stats.updated, stats.unchanged, stats.failed) {
            (1, 0, 0, 0) => Some(Outcome::Created),
            (0, 1, 0, 0) => Some(Outcome::Updated),
            (0, 0, 1, 0) => Some(Outcome::Unchanged),
            (0, 0, 0, 1) => Some(Outcome::Failed),
            _ => None,
        };
        let mut problems = Vec::new();
        if outcome != case.outcome {
            problems.push(format!("{outcome:?}, expected was {:?}: {:?}", case.outcome, report.failures));
        }
        let reported = |text: &str| report.failures.iter().any(|failure| failure.message.contains(text));
        if let Some(message) = case.message.as_ref().filter(|message| !reported(message)) {
            problems.push(format!("no failure contains \"{message}\": {:?}", report.failures));
        }
        let is = |category: Category| {
            report.failures.iter().any(|failure| failure.reason == FailureReason::Category(category))
        };
        if let Some(category) = case.failure.filter(|category| !is(*category)) {
            problems.push(format!("no failure is a {category}: {:?}", report.failures));
        }
        problems
    }

    async fn get(&self, case: &Case) -> Vec<String> {
        let expected = case.payload.as_ref().unwrap();
        match Remote::new(&self.session).get(&self.path).await {
            Ok(observed) => differing("the payload", &observed.payload.unwrap_or_default(), expected),
            Err(error) => vec![format!("the read fails: {error}")],
        }
    }

    async fn list(&self, case: &Case) -> Vec<String> {
        let listed = Remote::new(&self.session).list(&self.path).await;
        match (listed, case.failure) {
            (Ok(found), None) => {
                let listed = found.entries.into_iter().map(|(path, entry)| Listed {
                    path: path.to_string(),
                    alias: entry.alias,
                    id: entry.remote_id,
                    payload: entry.payload.to_json().unwrap(),
                });
                let listed: Vec<Listed> = listed.collect();
                let expected = case.entries.as_ref().unwrap();
                let problem = || format!("lists {listed:?}, expected was {expected:?}");
                (listed != *expected).then(problem).into_iter().collect()
            }
            (Err(error), Some(category)) if error.category() == category => Vec::new(),
            (Err(error), _) => vec![format!("the list fails: {error}")],
            (Ok(_), Some(category)) => vec![format!("the list does not fail with a {category}")],
        }
    }

    fn compare(&self, case: &Case) -> Vec<String> {
        let file = self.selection(case).resources.remove(0);
        let desired = sync::desired(&self.session, file).unwrap();
        let observed = value(case.observed.as_ref().unwrap());
        let found = desired.evaluation().unwrap().compare(&observed).unwrap();
        let found = found.into_iter().map(|difference| Departure {
            operation: match difference.change {
                Change::Add => "add",
                Change::Remove => "remove",
                Change::Replace => "replace",
            }
            .to_owned(),
            path: difference.path,
            local: difference.desired.to_json().unwrap(),
            remote: difference.observed.to_json().unwrap(),
        });
        let (found, expected): (Vec<Departure>, _) = (found.collect(), case.differences.as_ref().unwrap());
        let problem = || format!("finds {found:?}, expected was {expected:?}");
        (found != *expected).then(problem).into_iter().collect()
    }
}

fn write_repository(root: &Path, case: &Case) {
    let write = |file: String, content: &[u8]| {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    };
    let directory = case.path.trim_start_matches('/');
    let own = case.desired.as_ref().map(|payload| (&case.path, payload));
    for (path, payload) in own.into_iter().chain(&case.with) {
        let file = format!("{}/resource.json", path.trim_start_matches('/'));
        write(file, payload.to_string().as_bytes());
    }
    for (name, content) in &case.files {
        write(format!("{directory}/{name}"), &content.bytes());
    }
    for (file, document) in &case.metadata {
        write(file.clone(), document.as_bytes());
    }
}

fn problems_of(report: &Report, done: bool, otherwise: &str) -> Vec<String> {
    let failures = report.failures.iter().map(|failure| failure.message.clone());
    let undone = (!done).then(|| otherwise.to_owned());
    failures.chain(undone).collect()
}

fn differing(what: &str, found: &Value, expected: &Json) -> Vec<String> {
    let problem = || format!("{what} is {}, expected was {expected}", found.to_json().unwrap());
    (*found != value(expected)).then(problem).into_iter().collect()
}
