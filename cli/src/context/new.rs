//! A new context for a server and an empty repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::checks::Problem;
use super::error::CatalogueError;
use super::model::{
    Context, CustomHeader, FileStore, Filesystem, Git, GitLocal, Http, HttpAuth, ManagedServer, Metadata,
    Repository, SecretStore, Tls,
};
use super::value::{HttpUrl, Text};

/// The settings of a new context.
#[derive(Clone, Debug)]
pub struct NewContext {
    pub name: String,
    /// The directory of the repository.
    pub directory: PathBuf,
    /// Whether the repository is a Git checkout.
    pub git: bool,
    /// Base URL of the server.
    pub server: String,
    /// `OpenAPI` document: a local file or an https URL.
    pub openapi: Option<String>,
    /// A metadata bundle.
    pub bundle: Option<String>,
    /// A file with the certificate authorities of the server.
    pub ca_cert: Option<PathBuf>,
    /// Headers with credentials; values may refer to variables.
    pub headers: Vec<CustomHeader>,
    pub secret_store: Option<NewSecretStore>,
}

/// An encrypted file of secrets, and the file with its key.
#[derive(Clone, Debug)]
pub struct NewSecretStore {
    pub file: PathBuf,
    pub key_file: PathBuf,
}

impl NewContext {
    /// Returns the context. Fails if the URL of the server is not valid.
    pub fn build(&self) -> Result<Context, CatalogueError> {
        let url = HttpUrl::try_from(self.server.clone()).map_err(|reason| {
            Problem { field: "managedServer.http.url".to_owned(), reason }.of(self.name.as_str())
        })?;
        let auth = || HttpAuth { custom_headers: Some(self.headers.clone()), ..HttpAuth::default() };
        let http = Http {
            url,
            health_check: None,
            openapi: self.openapi.clone().map(Text),
            default_headers: BTreeMap::new(),
            auth: (!self.headers.is_empty()).then(auth),
            tls: self.ca_cert.as_ref().map(|file| Tls { ca_cert_file: Some(text(file)), ..Tls::default() }),
            proxy: None,
            request_throttling: None,
        };
        let bundle = |bundle: &String| Metadata { bundle: Some(Text(bundle.clone())), ..Metadata::default() };
        Ok(Context {
            name: Text(self.name.clone()),
            repository: Some(self.repository()),
            managed_server: Some(ManagedServer { http }),
            secret_store: self.secret_store.as_ref().map(NewSecretStore::build),
            metadata: self.bundle.as_ref().map(bundle),
            ..Context::default()
        })
    }

    fn repository(&self) -> Repository {
        let base_dir = text(&self.directory);
        if self.git {
            let git = Git { local: GitLocal { base_dir, auto_init: None }, remote: None };
            Repository { git: Some(git), ..Repository::default() }
        } else {
            Repository { filesystem: Some(Filesystem { base_dir }), ..Repository::default() }
        }
    }
}

impl NewSecretStore {
    fn build(&self) -> SecretStore {
        let (path, key_file) = (text(&self.file), Some(text(&self.key_file)));
        let file = FileStore { path, key_file, ..FileStore::default() };
        SecretStore { file: Some(file), ..SecretStore::default() }
    }
}

fn text(path: &Path) -> Text {
    Text(path.display().to_string())
}
