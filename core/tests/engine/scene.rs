//! A world whose repository has revisions, and what runs learn about its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::repository::ApplyTarget;
use declarest_core::sync::{self, Knowledge, Options, Reading, Report, Selection, Session, Stop};
use serde_json::Value;

use crate::commit::Commit;
use crate::rest_server::{Config, RestServer};
use crate::world::{World, selected};

/// A repository, the server it is about, and what runs learned about that.
pub struct Scene {
    world: World,
    knowledge: Arc<Knowledge>,
    revision: u32,
    /// The number of payloads that the last run read from Git.
    read: Arc<AtomicUsize>,
}

impl Scene {
    /// A scene in which nothing is declared and the server is empty.
    pub fn new(config: Config) -> Self {
        Self { world: World::new(config, &[]), knowledge: Arc::default(), revision: 0, read: Arc::default() }
    }

    /// The same scene with an encrypted file of these secrets.
    pub async fn with_secrets(self, secrets: &[(&str, &str)]) -> Self {
        Self { world: self.world.with_secrets(secrets).await, ..self }
    }

    pub fn server(&self) -> &RestServer {
        &self.world.server
    }

    /// Declares a resource in the next revision.
    pub fn declare(&mut self, path: &str, body: &Value) {
        self.write(&format!("{}/resource.json", path.trim_start_matches('/')), &body.to_string());
    }

    /// Writes a file of the next revision.
    pub fn write(&mut self, file: &str, content: &str) {
        self.world.declare(file, content);
        self.revision += 1;
    }

    /// Removes a resource in the next revision.
    pub fn remove(&mut self, path: &str) {
        self.world.remove(path.trim_start_matches('/'));
        self.revision += 1;
    }

    /// A run that also deletes what was declared at `path` once, with this payload.
    pub async fn run_pruning(&self, path: &str, payload: &str) -> Report {
        let session = self.session();
        let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let selection = Selection { prune: selected(&[(path, payload)]).prune, ..everything };
        sync::run(&session, selection, &Options::default(), &Stop::default()).await
    }

    /// An incremental run over the resources at `paths`.
    pub async fn run_over(&self, paths: &[&str]) -> Report {
        self.forget();
        let session = self.session();
        let target = |path: &&str| ApplyTarget { path: LogicalPath::parse(path).unwrap(), recursive: false };
        let targets: Vec<_> = paths.iter().map(target).collect();
        let selection = Selection::targets(session.tree.as_ref(), &targets).unwrap();
        sync::run(&session, selection, &Options::default(), &Stop::default()).await
    }

    pub fn session(&self) -> Session {
        let Session { tree: files, client, secrets, .. } = self.world.session();
        let tree = Commit::numbered(files, self.revision, Arc::clone(&self.read));
        let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
        let knowledge = Arc::clone(&self.knowledge);
        Session { knowledge, secrets, ..Session::new(tree, metadata, client) }
    }

    /// A run over everything that is declared; what earlier runs asked and read is forgotten.
    pub async fn run(&self, reading: Reading) -> Report {
        self.forget();
        self.run_with(&self.session(), &Options { reading, ..Options::default() }).await
    }

    /// The same, as the first run of a policy.
    pub async fn first(&self) -> Report {
        self.forget();
        self.run_with(&self.session(), &Options { first: true, ..Options::default() }).await
    }

    /// The same, and how many secrets it read.
    pub async fn first_with_secrets(&self) -> (Report, usize) {
        self.forget();
        let session = self.session();
        let report = self.run_with(&session, &Options { first: true, ..Options::default() }).await;
        (report, session.secrets.values().len())
    }

    async fn run_with(&self, session: &Session, options: &Options) -> Report {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        sync::run(session, selection, options, &Stop::default()).await
    }

    /// What happens at the end of each interval: a recheck, and a closer look where that is not enough.
    pub async fn interval(&self) -> Report {
        self.again(Reading::Bulk).await
    }

    /// A recheck of what earlier runs found, and a closer look where that is not enough. What earlier runs asked and
    /// read is forgotten.
    pub async fn again(&self, reading: Reading) -> Report {
        self.forget();
        let session = self.session();
        let options = Options { reading, ..Options::default() };
        match sync::recheck(&session, &options, &Stop::default()).await {
            Ok(report) => report,
            Err(answers) => {
                let session = Session { answers, ..session };
                self.run_with(&session, &options).await
            }
        }
    }

    fn forget(&self) {
        self.server().reset_counts();
        self.read.store(0, Ordering::Relaxed);
    }

    /// The number of payloads that were read from Git since the last run began.
    pub fn read_from_git(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }

    /// What was asked since the last run began, in the order of paths.
    pub fn asked(&self) -> Vec<String> {
        let counts = self.server().counts();
        counts.iter().map(|(method, path, count)| format!("{count} {method} {path}")).collect()
    }
}
