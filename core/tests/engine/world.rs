//! A repository in a directory, and a server that is brought to its state.

use std::sync::Arc;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::repository::{DirTree, Tree};
use declarest_core::secrets::file::{FileStore, FileStoreSettings, Kdf, KeyMaterial};
use declarest_core::secrets::{Secret, SecretKey, SecretReader, SecretStore};
use declarest_core::server::Client;
use declarest_core::sync::{self, Candidate, Options, Plan, Report, Selection, Session, Stop};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::client;
use crate::rest_server::{Config, RestServer};

pub struct World {
    pub server: RestServer,
    directory: TempDir,
    secrets: TempDir,
    client: Client,
    store: Option<SecretStore>,
}

impl World {
    /// A server without resources, and a repository with these files.
    pub fn new(config: Config, files: &[(&str, &str)]) -> Self {
        let server = RestServer::start(config).unwrap();
        let client = client(&server.url());
        let (directory, secrets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let world = Self { server, directory, secrets, client, store: None };
        for (file, content) in files {
            world.declare(file, content);
        }
        world
    }

    /// The same world with an encrypted file of these secrets.
    pub async fn with_secrets(mut self, secrets: &[(&str, &str)]) -> Self {
        self.store = Some(
            FileStore::new(FileStoreSettings {
                beneath: None,
                path: self.secrets.path().join("secrets.json"),
                key: KeyMaterial::key(&Secret::from("42".repeat(32))).unwrap(),
                kdf: Kdf::default(),
            })
            .into(),
        );
        self.store_secrets(secrets).await;
        self
    }

    /// Stores a secret.
    pub async fn store_secret(&self, key: &str, value: &str) {
        self.store_secrets(&[(key, value)]).await;
    }

    async fn store_secrets(&self, secrets: &[(&str, &str)]) {
        let parsed =
            |(key, value): &(&str, &str)| (SecretKey::parse(key).unwrap(), Secret::from((*value).to_owned()));
        let entries = secrets.iter().map(parsed).collect();
        self.store.as_ref().unwrap().set_all(entries).await.unwrap();
    }

    /// Writes a file of the repository.
    pub fn declare(&self, file: &str, content: &str) {
        let file = self.directory.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// Removes a directory of the repository.
    pub fn remove(&self, directory: &str) {
        std::fs::remove_dir_all(self.directory.path().join(directory)).unwrap();
    }

    pub fn session(&self) -> Session {
        let tree: Arc<dyn Tree> = Arc::new(DirTree::open(self.directory.path()).unwrap());
        let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
        let secrets = SecretReader::new(self.store.clone());
        Session { secrets, ..Session::new(tree, metadata, self.client.clone()) }
    }

    pub async fn plan(&self, options: &Options) -> Plan {
        let session = self.session();
        let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        sync::plan(&session, everything, options, &Stop::default()).await
    }

    pub async fn apply(&self, plan: Plan) -> Report {
        sync::apply(&self.session(), plan, &Stop::default()).await
    }

    /// Brings everything to its desired state.
    pub async fn sync(&self) -> Report {
        self.apply(self.plan(&Options::default()).await).await
    }

    /// Brings everything on the server at `url` to its desired state, and deletes what was declared at these paths once,
    /// with these payloads.
    pub async fn sync_on(&self, url: &str, candidates: &[(&str, &str)]) -> Report {
        self.sync_with(url, candidates, &Options::default()).await
    }

    /// The same, with these options.
    pub async fn sync_with(&self, url: &str, candidates: &[(&str, &str)], options: &Options) -> Report {
        let session = Session { client: client(url), ..self.session() };
        let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let selection = Selection { prune: selected(candidates).prune, ..everything };
        sync::run(&session, selection, options, &Stop::default()).await
    }

    /// Deletes what was declared at `path` once.
    pub async fn prune(&self, path: &str) -> Report {
        self.prune_declared(path, "null").await
    }

    /// Deletes what was declared at `path` once, with this payload.
    pub async fn prune_declared(&self, path: &str, payload: &str) -> Report {
        let selection = selected(&[(path, payload)]);
        sync::run(&self.session(), selection, &Options::default(), &Stop::default()).await
    }

    /// Plans the deletion of what was declared at these paths once, with these payloads.
    pub async fn plan_prune(&self, candidates: &[(&str, &str)]) -> Plan {
        sync::plan(&self.session(), selected(candidates), &Options::default(), &Stop::default()).await
    }

    /// A resource of the server as text.
    pub fn live(&self, path: &str) -> String {
        self.server.get(path).map_or_else(|| "absent".to_owned(), |resource| resource.to_string())
    }

    /// What was written, such as `PUT /shops/rio 200`, in order.
    pub fn writes(&self) -> Vec<String> {
        let writes = self.server.writes();
        let described = writes.iter().map(|request| match request.status {
            Some(status) => format!("{request} {status}"),
            None => request.to_string(),
        });
        described.collect()
    }
}

/// Selects the deletion of what was declared at these paths once, with these payloads.
pub fn selected(candidates: &[(&str, &str)]) -> Selection {
    let candidate = |(path, payload): &(&str, &str)| Candidate {
        path: LogicalPath::parse(path).unwrap(),
        payload: decode(PayloadType::Json, payload.as_bytes()).unwrap(),
        declared_in: None,
    };
    Selection { prune: candidates.iter().map(candidate).collect(), ..Selection::default() }
}

/// The only failure of a run.
#[track_caller]
pub fn failure(report: &Report) -> (&'static str, String) {
    assert_eq!(report.failures.len(), 1, "{report:?}");
    (report.failures[0].reason.as_str(), report.failures[0].message.clone())
}

/// JSON as the server writes it.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
