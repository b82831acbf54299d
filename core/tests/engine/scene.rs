//! A revision of a repository, and a server that is brought to its state.

use std::sync::Arc;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{DirTree, Entry, RepositoryError, Revision, Tree};
use declarest_core::server::{Auth, BaseUrl, Client, Gate, Settings, Throttling, TlsSettings};
use declarest_core::sync::{self, Knowledge, Options, Reading, Report, Selection, Session, Stop};
use serde_json::Value;
use tempfile::TempDir;

use crate::rest_server::{Config, RestServer};

/// A repository, the server it is about, and what runs learned about that.
pub struct Scene {
    pub server: RestServer,
    directory: TempDir,
    knowledge: Arc<Knowledge>,
    client: Client,
    revision: u32,
}

/// A directory that claims to be a commit.
struct Commit {
    files: DirTree,
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
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = RestServer::start(config).unwrap();
        let settings = Settings {
            base_url: BaseUrl::parse(&server.url()).unwrap(),
            auth: Auth::None,
            tls: TlsSettings::default(),
            default_headers: Vec::new(),
            health_check: None,
        };
        let gate = Arc::new(Gate::new(&Throttling::default()).unwrap());
        let client = Client::new(settings, gate, None).unwrap();
        let directory = tempfile::tempdir().unwrap();
        Self { server, directory, knowledge: Arc::default(), client, revision: 0 }
    }

    /// Declares a resource in the next revision.
    pub fn declare(&mut self, path: &str, body: &Value) {
        self.write(&format!("{}/resource.json", path.trim_start_matches('/')), &body.to_string());
    }

    /// Writes a file of the next revision.
    pub fn write(&mut self, file: &str, content: &str) {
        let file = self.directory.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
        self.revision += 1;
    }

    fn session(&self) -> Session {
        let files = DirTree::open(self.directory.path()).unwrap();
        let revision = format!("{:040x}", self.revision).parse().unwrap();
        let tree: Arc<dyn Tree> = Arc::new(Commit { files, revision });
        let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
        let session = Session::new(tree, metadata, self.client.clone());
        Session { knowledge: Arc::clone(&self.knowledge), ..session }
    }

    /// A run over everything that is declared; the requests of earlier runs are forgotten.
    pub async fn run(&self, reading: Reading) -> Report {
        self.server.reset_counts();
        self.run_with(&self.session(), reading).await
    }

    async fn run_with(&self, session: &Session, reading: Reading) -> Report {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let options = Options { reading, ..Options::default() };
        sync::run(session, selection, &options, &Stop::default()).await
    }

    /// What happens at the end of each interval: a recheck, and a closer look where that is not enough.
    pub async fn interval(&self) -> Report {
        self.server.reset_counts();
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
        let counts = self.server.counts();
        counts.iter().map(|(method, path, count)| format!("{count} {method} {path}")).collect()
    }
}
