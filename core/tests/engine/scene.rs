//! A world whose repository has revisions, and what runs learn about its server.

use std::sync::Arc;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{Entry, RepositoryError, Revision, Tree};
use declarest_core::sync::{self, Knowledge, Options, Reading, Report, Selection, Session, Stop};
use serde_json::Value;

use crate::rest_server::{Config, RestServer};
use crate::world::World;

/// A repository, the server it is about, and what runs learned about that.
pub struct Scene {
    world: World,
    knowledge: Arc<Knowledge>,
    revision: u32,
}

/// A directory that claims to be a commit.
struct Commit {
    files: Arc<dyn Tree>,
    revision: Revision,
}

impl Tree for Commit {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.files.entries(directory)
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.files.read(file)
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}

impl Scene {
    /// A scene in which nothing is declared and the server is empty.
    pub fn new(config: Config) -> Self {
        Self { world: World::new(config, &[]), knowledge: Arc::default(), revision: 0 }
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

    fn session(&self) -> Session {
        let Session { tree: files, client, .. } = self.world.session();
        let revision = format!("{:040x}", self.revision).parse().unwrap();
        let tree: Arc<dyn Tree> = Arc::new(Commit { files, revision });
        let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
        Session { knowledge: Arc::clone(&self.knowledge), ..Session::new(tree, metadata, client) }
    }

    /// A run over everything that is declared; the requests of earlier runs are forgotten.
    pub async fn run(&self, reading: Reading) -> Report {
        self.server().reset_counts();
        self.run_with(&self.session(), reading).await
    }

    async fn run_with(&self, session: &Session, reading: Reading) -> Report {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let options = Options { reading, ..Options::default() };
        sync::run(session, selection, &options, &Stop::default()).await
    }

    /// What happens at the end of each interval: a recheck, and a closer look where that is not enough.
    pub async fn interval(&self) -> Report {
        self.server().reset_counts();
        let session = self.session();
        match sync::recheck(&session, &Stop::default()).await {
            Ok(report) => report,
            Err(answers) => {
                let session = Session { answers: Arc::new(answers), ..session };
                self.run_with(&session, Reading::Bulk).await
            }
        }
    }

    /// What was asked since the last run began, in the order of paths.
    pub fn asked(&self) -> Vec<String> {
        let counts = self.server().counts();
        counts.iter().map(|(method, path, count)| format!("{count} {method} {path}")).collect()
    }
}
