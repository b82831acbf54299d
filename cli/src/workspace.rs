//! The workspace of commands on resources: the repository of the context, its metadata, and the managed server.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use declarest_core::authoring::Declaration;
use declarest_core::bundle::{
    Bundle, BundleSource, OpenApiHint, Options, Reference, cache_directory, registry_login,
};
use declarest_core::error::{Categorized as _, Category};
use declarest_core::metadata::document::Document;
use declarest_core::metadata::openapi::OpenApi;
use declarest_core::metadata::{Api, Metadata, Source};
use declarest_core::path::LogicalPath;
use declarest_core::repository::{DirTree, EmptyTree, Store, Tree};
use declarest_core::server::{Client, FetchedOpenApi, OpenApiSource};
use declarest_core::sync::{self, Remote, Resource, Session, SyncError, WrittenValues};

use crate::context::{MetadataSource, ProxiedComponent, ResolvedContext};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::lock::{Lock, LockError};
use crate::output::Messages;
use crate::repository::{Contact, Repository};

/// The directory of the state of earlier commands, below the home directory.
const STATE: &str = ".declarest/state";

/// The workspace of one command.
pub struct Workspace<'a> {
    /// The context.
    pub context: &'a ResolvedContext,
    /// The files of the repository; empty if the context has no repository.
    pub tree: Arc<dyn Tree>,
    /// The metadata. It includes the server's `OpenAPI` document if the workspace is connected.
    pub metadata: Arc<Metadata>,
    root: Option<PathBuf>,
    /// The directory of the state of earlier commands.
    state: Option<PathBuf>,
    client: Option<Client>,
    /// The messages on standard error.
    pub messages: &'a Messages,
}

impl<'a> Workspace<'a> {
    /// Opens the repository and its metadata. Contacts no server, except to download a bundle.
    pub async fn local(invocation: &'a Invocation) -> Result<Self, Failure> {
        Self::open(invocation, None, Document::default()).await
    }

    /// Like [`Self::local`], for a command that reads declared resources. A context without a repository is an error.
    pub async fn of_repository(invocation: &'a Invocation) -> Result<Self, Failure> {
        invocation.context()?.repository()?;
        Self::local(invocation).await
    }

    /// Opens the repository, its metadata, and the managed server.
    pub async fn connected(invocation: &'a Invocation) -> Result<Self, Failure> {
        Self::connected_with(invocation, Document::default(), None).await
    }

    /// Like [`Self::connected`] if the context has a server, because its `OpenAPI` document may be needed, otherwise
    /// like [`Self::local`].
    pub async fn connected_if_possible(invocation: &'a Invocation) -> Result<Self, Failure> {
        match invocation.context()?.context.managed_server {
            Some(_) => Self::connected(invocation).await,
            None => Self::local(invocation).await,
        }
    }

    /// Like [`Self::connected`], with `overrides` of all metadata, and another number of concurrent requests.
    pub async fn connected_with(
        invocation: &'a Invocation,
        overrides: Document,
        parallel: Option<NonZero<u32>>,
    ) -> Result<Self, Failure> {
        let client = invocation.client(invocation.context()?, parallel)?;
        Self::open(invocation, Some(client), overrides).await
    }

    async fn open(
        invocation: &'a Invocation,
        client: Option<Client>,
        overrides: Document,
    ) -> Result<Self, Failure> {
        let context = invocation.context()?;
        let root = repository_root(context)?;
        let tree: Arc<dyn Tree> = match &root {
            Some(root) => Arc::new(DirTree::open(root)?),
            None => Arc::new(EmptyTree),
        };
        let mut sources = Vec::new();
        let bundle = open_metadata(invocation, context, root.as_deref(), &mut sources).await?;
        sources.push(Arc::new(Source::repository(Arc::clone(&tree))));
        let mut metadata = Metadata::layered(sources).with_overrides(overrides);
        if let Some(client) = &client
            && let Some(document) = open_api(context, bundle.as_ref(), client).await?
        {
            metadata = metadata.with_api(Arc::new(Api::new(document, client.base_path())));
        }
        let (metadata, messages) = (Arc::new(metadata), &invocation.messages);
        let state = invocation.environment.home().map(|home| home.join(STATE));
        Ok(Self { context, tree, metadata, root, state, client, messages })
    }

    /// Returns the resource with this path or name that the repository declares, with its placeholders, if there is one.
    pub fn declared(&self, path: &LogicalPath) -> Result<Option<Resource>, SyncError> {
        match sync::lookup(self.tree.as_ref(), &self.metadata, path) {
            Err(error) if error.category() == Category::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Locks the repository, if the context has one, for a change that the command does not commit.
    pub fn lock_repository(&self) -> Result<Option<Lock>, Failure> {
        if self.root.is_none() {
            return Ok(None);
        }
        Ok(Repository::open(self.context, Contact::None)?.lock()?)
    }

    /// Returns the store of the repository, for writes.
    pub fn store(&self) -> Result<Store, Failure> {
        match &self.root {
            Some(root) => Ok(Store::open(root)?),
            None => Err(Failure::invalid("repository is not configured in this context")),
        }
    }

    /// Returns the store of metadata, for writes: the directory of the context, which is created if it is missing,
    /// otherwise the repository. A bundle is never changed.
    pub fn metadata_store(&self) -> Result<Store, Failure> {
        match self.context.metadata() {
            MetadataSource::Directory(directory) => Ok(Store::init(&directory)?),
            MetadataSource::Bundle(_) | MetadataSource::BundleFile(_) | MetadataSource::None => self.store(),
        }
    }

    /// Declares secrets in metadata. The context needs a place for metadata only if there are declarations.
    pub fn declare(&self, declarations: &[Declaration]) -> Result<(), Failure> {
        if declarations.is_empty() {
            return Ok(());
        }
        let store = self.metadata_store()?;
        Ok(declarations.iter().try_for_each(|declaration| declaration.write(&store))?)
    }

    /// Returns whether the workspace is connected to the managed server.
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Returns a session of the engine. Placeholders are resolved if the context has a secret store.
    pub fn session(&self) -> Result<Session, Failure> {
        Ok(Session { secrets: self.context.secret_reader()?, ..self.session_without_secrets()? })
    }

    /// Returns a session for commands that show or delete resources, which do not need secrets.
    pub fn session_without_secrets(&self) -> Result<Session, Failure> {
        let client = self.client.clone();
        let client = client.ok_or_else(|| Failure::internal("the command did not connect to the server"))?;
        let written = self.state.as_ref().map(|state| Arc::new(WrittenValues::open(state, client.address())));
        Ok(Session { written, ..Session::new(Arc::clone(&self.tree), Arc::clone(&self.metadata), client) })
    }

    /// Prevents that other commands of this user change the managed server until the result is dropped.
    pub fn lock_server(&self) -> Result<Option<Lock>, LockError> {
        let Some((state, client)) = self.state.as_ref().zip(self.client.as_ref()) else { return Ok(None) };
        Lock::of_server(state, &client.address(), self.messages)
    }

    /// Returns the managed server.
    pub fn remote(&self) -> Result<Arc<Remote>, Failure> {
        Ok(Remote::new(&self.session_without_secrets()?))
    }
}

/// Returns the directory of the repository, or `None` if the context has no repository.
fn repository_root(context: &ResolvedContext) -> Result<Option<PathBuf>, Failure> {
    if context.context.repository.is_none() {
        return Ok(None);
    }
    Ok(Some(match Repository::open(context, Contact::None)? {
        Repository::Filesystem(directory) => directory,
        Repository::Git(worktree) => worktree.directory().to_owned(),
    }))
}

/// Adds metadata outside of the repository to `sources`. Returns its bundle, if there is one.
async fn open_metadata(
    invocation: &Invocation,
    context: &ResolvedContext,
    root: Option<&Path>,
    sources: &mut Vec<Arc<Source>>,
) -> Result<Option<Bundle>, Failure> {
    let reference = match context.metadata() {
        MetadataSource::None => return Ok(None),
        MetadataSource::Directory(directory) => {
            if root.is_none_or(|root| !is_same(root, &directory)) {
                let tree = Arc::new(DirTree::open(&directory)?);
                sources.push(Arc::new(Source::shared(tree, directory.display().to_string())));
            }
            return Ok(None);
        }
        MetadataSource::Bundle(text) => Reference::parse(&text)?,
        MetadataSource::BundleFile(file) => Reference::parse_file(&file.to_string_lossy())?,
    };
    let bundle = open_bundle(invocation, context, &reference).await?;
    for warning in &bundle.warnings {
        invocation.messages.warn(&warning.to_string());
    }
    let label = format!("bundle {} {}", bundle.manifest.name, bundle.manifest.version);
    sources.push(Arc::new(Source::shared(Arc::new(bundle.documents(u64::MAX)?), label)));
    Ok(Some(bundle))
}

/// Opens a bundle, from the cache if possible.
pub async fn open_bundle(
    invocation: &Invocation,
    context: &ResolvedContext,
    reference: &Reference,
) -> Result<Bundle, Failure> {
    let variable = |name: &str| invocation.environment.raw(name).map(Into::into);
    let cache = cache_directory(variable).ok_or_else(|| {
        Failure::invalid("no directory for bundles; set DECLAREST_BUNDLE_CACHE_DIR or HOME")
    })?;
    let options = Options { login: registry_login(variable), ..Options::new(cache) };
    let source = BundleSource::new(options.through(context.proxy(ProxiedComponent::Metadata)?));
    Ok(source.open(reference).await?)
}

/// Loads the `OpenAPI` document of the server that the context names, otherwise the one that the bundle names.
async fn open_api(
    context: &ResolvedContext,
    bundle: Option<&Bundle>,
    client: &Client,
) -> Result<Option<Arc<OpenApi>>, Failure> {
    let configured = context.context.managed_server.as_ref().and_then(|server| server.http.openapi.as_ref());
    let source = match (configured, bundle.and_then(|bundle| bundle.openapi.as_ref())) {
        (Some(configured), _) => OpenApiSource::parse(&configured.0)?,
        (None, Some(OpenApiHint::File(file))) => OpenApiSource::parse(&file.to_string_lossy())?,
        (None, Some(OpenApiHint::Url(url))) => OpenApiSource::parse(url.as_str())?,
        (None, None) => return Ok(None),
    };
    let fetched = FetchedOpenApi::fetch(client, source, None, None).await?;
    // The document may be at another path of the server than its API.
    context.statuses.forget();
    Ok(Some(fetched.document))
}

fn is_same(a: &Path, b: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    canonical(a) == canonical(b)
}
