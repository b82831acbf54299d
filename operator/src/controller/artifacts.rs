//! The artifacts of a ManagedServer: its metadata bundle and its `OpenAPI` document.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use declarest_core::bundle::{
    Bundle, BundleError, BundleSource, BundleWarning, OpenApiHint, Options, Reference,
};
use declarest_core::error::with_causes;
use declarest_core::memory::{self, Pool, Share, Shortage};
use declarest_core::metadata::{Api, Metadata, Source};
use declarest_core::repository::Tree;
use declarest_core::server::{Client, FetchedOpenApi, OpenApiSource};
use parking_lot::Mutex;

use super::connections;
use super::context::Context;
use super::error::Failure;
use super::kind::{Key, Kind as _};
use super::outcome::Reason;
use super::references::SecretReader;
use crate::crd::ManagedServer;
use crate::crd::managed_server::{ArtifactDigests, local_bundle};

/// The memory of metadata documents with their rules, as a multiple of their text.
const PARSED: u64 = 4;

/// The artifacts of all servers that were fetched last.
#[derive(Default)]
pub struct Artifacts {
    known: Mutex<HashMap<Key, Known>>,
    /// The documents of bundles in use, by the digests of the bundles.
    bundles: Bundles,
}

type Bundles = Mutex<HashMap<String, Weak<Documents>>>;

/// The documents of a bundle. Servers with the same bundle share them.
struct Documents {
    source: Arc<Source>,
    #[expect(dead_code, reason = "held until the documents are dropped")]
    held: Share,
}

struct Known {
    /// The generation of the spec, because another spec may need other artifacts.
    generation: Option<i64>,
    artifacts: Arc<ArtifactSet>,
}

/// The artifacts of one server. They do not change while they are in use.
#[derive(Clone, Default)]
pub struct ArtifactSet {
    bundle: Option<(Bundle, Arc<Documents>)>,
    api: Option<Arc<Api>>,
    openapi: Option<FetchedOpenApi>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Errors of artifacts that could not be fetched again; their last versions are used.
    pub stale: Vec<String>,
}

impl Artifacts {
    /// Returns the artifacts of `server`, which is expanded. Fetches them if they are not known.
    pub async fn get(
        &self,
        context: &Context,
        server: &ManagedServer,
        client: &Client,
    ) -> Result<Arc<ArtifactSet>, Failure> {
        self.refresh(context, server, client, false).await
    }

    /// Returns the artifacts that were fetched last for the current spec.
    fn last(&self, server: &ManagedServer) -> Option<Arc<ArtifactSet>> {
        let known = self.known.lock();
        let known = known.get(&server.key())?;
        (known.generation == server.metadata.generation).then(|| Arc::clone(&known.artifacts))
    }

    /// Returns the artifacts of `server`. Fetches them if that is due or they are not known. If they cannot be fetched
    /// again, the last ones are kept with the error.
    pub async fn refresh(
        &self,
        context: &Context,
        server: &ManagedServer,
        client: &Client,
        due: bool,
    ) -> Result<Arc<ArtifactSet>, Failure> {
        let Some(last) = self.last(server) else { return self.fetch(context, server, client).await };
        if !due {
            return Ok(last);
        }
        match self.fetch(context, server, client).await {
            Err(failure) => {
                let stale = ArtifactSet { stale: vec![failure.message], ..last.as_ref().clone() };
                Ok(self.keep(server, stale))
            }
            fetched => fetched,
        }
    }

    /// Fetches the artifacts of `server` and keeps them.
    async fn fetch(
        &self,
        context: &Context,
        server: &ManagedServer,
        client: &Client,
    ) -> Result<Arc<ArtifactSet>, Failure> {
        let known = self.last(server).and_then(|known| known.openapi.clone());
        let artifacts = Box::pin(fetch(&self.bundles, context, server, client, known)).await?;
        Ok(self.keep(server, artifacts))
    }

    fn keep(&self, server: &ManagedServer, artifacts: ArtifactSet) -> Arc<ArtifactSet> {
        let artifacts = Arc::new(artifacts);
        let known = Known { generation: server.metadata.generation, artifacts: Arc::clone(&artifacts) };
        self.known.lock().insert(server.key(), known);
        artifacts
    }

    /// Forgets the artifacts of a deleted server.
    pub fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
    }
}

impl ArtifactSet {
    /// Returns the metadata of `tree`, layered over that of the bundle and the API document.
    pub fn metadata(&self, tree: Arc<dyn Tree>) -> Metadata {
        let shared = self.bundle.iter().map(|(_, documents)| Arc::clone(&documents.source));
        let metadata = Metadata::layered(shared.chain([Arc::new(Source::repository(tree))]).collect());
        match &self.api {
            Some(api) => metadata.with_api(Arc::clone(api)),
            None => metadata,
        }
    }

    /// Returns the digests for the status, or `None` if there are no artifacts.
    pub fn digests(&self) -> Option<ArtifactDigests> {
        let digests = ArtifactDigests {
            openapi: self.openapi.as_ref().map(|fetched| fetched.document.digest().to_owned()),
            metadata: self.bundle.as_ref().map(|(bundle, _)| bundle.digest.clone()),
        };
        (digests != ArtifactDigests::default()).then_some(digests)
    }

    /// Returns the path of the `OpenAPI` document in the operator.
    pub fn openapi_path(&self) -> Option<String> {
        let file = self.openapi.as_ref().and_then(FetchedOpenApi::file);
        file.map(|file| file.display().to_string())
    }

    /// Returns the path of the bundle in the operator.
    pub fn metadata_path(&self) -> Option<String> {
        self.bundle.as_ref().map(|(bundle, _)| bundle.metadata_root.display().to_string())
    }
}

async fn fetch(
    bundles: &Bundles,
    context: &Context,
    server: &ManagedServer,
    client: &Client,
    known: Option<FetchedOpenApi>,
) -> Result<ArtifactSet, Failure> {
    // Fetch the bundle.
    let mut artifacts = ArtifactSet::default();
    let mut secrets = SecretReader::new(&context.client, &server.key().namespace);
    let proxy = connections::proxy(&mut secrets, "spec.http.proxy", server.spec.http.proxy.as_ref()).await?;
    if let Some((field, reference)) = reference(context, server).await? {
        let pull_secret =
            server.spec.metadata.as_ref().and_then(|metadata| metadata.pull_secret_ref.as_ref());
        let login = connections::login(&mut secrets, "spec.metadata.pullSecretRef", pull_secret).await?;
        let cache = context.directories.bundle_cache(&ManagedServer::owner(&server.key()));
        let options = Options { login, revalidates: true, ..Options::new(cache).through(proxy) };
        let bundle = open(client, options, field, &reference).await?;
        for warning in &bundle.warnings {
            match warning {
                BundleWarning::Stale { .. } => artifacts.stale.push(format!("{field}: {warning}")),
                BundleWarning::Deprecated { .. } => artifacts.warnings.push(warning.to_string()),
            }
        }
        let documents = documents(bundles, field, &bundle).await?;
        artifacts.bundle = Some((bundle, documents));
    }
    // Find the OpenAPI document: the spec takes precedence over the bundle.
    let configured = server.spec.openapi.as_ref().map(|openapi| OpenApiSource::url(&openapi.url));
    let hint = artifacts.bundle.as_ref().and_then(|(bundle, _)| bundle.openapi.as_ref());
    let source = match (configured, hint) {
        (Some(configured), _) => Some(configured),
        (None, Some(OpenApiHint::File(file))) => Some(OpenApiSource::parse(&file.to_string_lossy())),
        (None, Some(OpenApiHint::Url(url))) => Some(OpenApiSource::url(url.as_str())),
        (None, None) => None,
    };
    if let Some(source) = source {
        let source = source.map_err(|error| Failure::spec_invalid(format!("spec.openapi.url: {error}")))?;
        let directory = context.directories.cache(&ManagedServer::owner(&server.key())).join("openapi");
        let (fetched, stale) = document(client, source, known, directory).await?;
        artifacts.stale.extend(stale);
        artifacts.api = Some(Arc::new(Api::new(Arc::clone(&fetched.document), client.base_path())));
        artifacts.openapi = Some(fetched);
    }
    Ok(artifacts)
}

/// Fetches the `OpenAPI` document. If that fails, returns the last one and the error.
async fn document(
    client: &Client,
    source: OpenApiSource,
    known: Option<FetchedOpenApi>,
    directory: PathBuf,
) -> Result<(FetchedOpenApi, Option<String>), Failure> {
    let known = match known.filter(|known| known.is_of(&source)) {
        Some(known) => Some(known),
        // The document that an earlier process stored.
        None => FetchedOpenApi::kept(directory.clone(), source.clone()).await,
    };
    match (FetchedOpenApi::fetch(client, source, known.clone(), Some(directory)).await, known) {
        (Ok(fetched), _) => Ok((fetched, None)),
        (Err(error), Some(known)) => Ok((known, Some(format!("spec.openapi: {}", with_causes(&error))))),
        (Err(error), None) => {
            let message = format!("spec.openapi: {}", with_causes(&error));
            Err(unavailable(message))
        }
    }
}

/// Returns the reference to the bundle, and the field that holds it.
async fn reference(
    context: &Context,
    server: &ManagedServer,
) -> Result<Option<(&'static str, Reference)>, Failure> {
    let Some(metadata) = &server.spec.metadata else { return Ok(None) };
    let (field, text) = match (&metadata.bundle, &metadata.url) {
        (Some(bundle), _) => ("spec.metadata.bundle", bundle),
        (None, Some(url)) => ("spec.metadata.url", url),
        (None, None) => return Ok(None),
    };
    let invalid = |error: &dyn std::fmt::Display| Failure::spec_invalid(format!("{field}: {error}"));
    match Reference::parse(text).map_err(|error| invalid(&error))? {
        Reference::Path(path) => {
            let directory = context.directories.bundles();
            let place = local_bundle(directory, &path).map_err(|error| invalid(&error))?;
            // The removal of a link changes no object, so the operator has to try again.
            check_links(directory, &place).await.map_err(|error| unavailable(format!("{field}: {error}")))?;
            Ok(Some((field, Reference::Path(place))))
        }
        other => Ok(Some((field, other))),
    }
}

/// Checks that `place` is below `directory` also after symbolic links are resolved.
async fn check_links(directory: &Path, place: &Path) -> Result<(), String> {
    // A path that cannot be resolved is reported when the bundle is opened.
    let Ok(target) = tokio::fs::canonicalize(place).await else { return Ok(()) };
    match tokio::fs::canonicalize(directory).await {
        Ok(directory) if target.starts_with(&directory) => Ok(()),
        _ => Err(format!(
            "{} is outside of {} because of a symbolic link; remove the link",
            place.display(),
            directory.display()
        )),
    }
}

/// Opens the bundle.
async fn open(
    client: &Client,
    options: Options,
    field: &str,
    reference: &Reference,
) -> Result<Bundle, Failure> {
    let opened = if matches!(reference, Reference::Url(url) if client.serves(url)) {
        open_at_server(client, options, field, reference).await?
    } else {
        BundleSource::new(options).open(reference).await
    };
    opened.map_err(|error| bundle_failure(field, &error))
}

/// Returns a copy of the documents of a bundle. A bundle in use is not copied again.
async fn documents(bundles: &Bundles, field: &str, bundle: &Bundle) -> Result<Arc<Documents>, Failure> {
    let known = || bundles.lock().get(&bundle.digest)?.upgrade();
    if let Some(known) = known() {
        return Ok(known);
    }
    let short = |shortage: Shortage| unavailable(format!("{field}: {shortage}"));
    // Documents that are parsed need more memory than their text.
    let most = memory::capacity(Pool::Artifacts).map_or(u64::MAX, |capacity| capacity as u64 / PARSED);
    let files = bundle.clone();
    let tree = tokio::task::spawn_blocking(move || files.documents(most))
        .await
        .map_err(|error| Failure::new(Reason::ReconcileFailed, format!("{field}: {error}")))?
        .map_err(|error| bundle_failure(field, &error))?;
    let weight = tree.size().saturating_mul(usize::try_from(PARSED).unwrap_or(usize::MAX));
    let held = memory::reserve_now(Pool::Artifacts, weight).map_err(short)?;
    let label = format!("bundle {} {}", bundle.manifest.name, bundle.manifest.version);
    let documents = Arc::new(Documents { source: Arc::new(Source::shared(Arc::new(tree), label)), held });
    let mut bundles = bundles.lock();
    bundles.retain(|_, documents| documents.strong_count() > 0);
    bundles.insert(bundle.digest.clone(), Arc::downgrade(&documents));
    Ok(documents)
}

/// Opens a bundle on the managed server itself, with the server's credentials. If they are not available, the bundle
/// that was fetched last is used.
async fn open_at_server(
    client: &Client,
    options: Options,
    field: &str,
    reference: &Reference,
) -> Result<Result<Bundle, BundleError>, Failure> {
    let access = match client.access().await {
        Ok(access) => access,
        Err(error) => {
            let reason = with_causes(&error);
            let kept = BundleSource::new(options).kept(reference, &reason).await;
            return kept.transpose().ok_or_else(|| unavailable(format!("{field}: {reason}")));
        }
    };
    let opened = BundleSource::new(Options { access: Some(access), ..options }).open(reference).await;
    let is_stale = |warning: &BundleWarning| matches!(warning, BundleWarning::Stale { .. });
    if opened.as_ref().map_or(true, |bundle| bundle.warnings.iter().any(is_stale)) {
        // The server may have rejected the current token.
        client.invalidate_token();
    }
    Ok(opened)
}

/// Returns the failure of an artifact that cannot be fetched, or is invalid.
fn unavailable(message: String) -> Failure {
    Failure::new(Reason::ArtifactUnavailable, message).with_event("DownloadFailed")
}

/// Returns the failure of a bundle that cannot be used. What a server sent is not the spec, and may be valid at the next
/// fetch.
fn bundle_failure(field: &str, error: &BundleError) -> Failure {
    let message = format!("{field}: {}", with_causes(error));
    match error {
        BundleError::Reference { .. } => Failure::spec_invalid(message),
        _ => unavailable(message),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::inside("shop", Ok("shop"))]
    #[case::absolute("ROOT/bundles/shop", Ok("shop"))]
    #[case::missing("none.tar.gz", Ok("none.tar.gz"))]
    #[case::link_inside("current", Ok("current"))]
    #[case::parent("../cache", Err("a local bundle must be below ROOT/bundles"))]
    #[case::sibling("ROOT/cache", Err("a local bundle must be below ROOT/bundles"))]
    #[case::link_outside(
        "leak/shop",
        Err("ROOT/bundles/leak/shop is outside of ROOT/bundles because of a symbolic link; remove the link")
    )]
    #[tokio::test]
    async fn local_bundles_stay_in_their_directory(#[case] path: &str, #[case] expected: Result<&str, &str>) {
        let root = tempfile::tempdir().unwrap();
        let (bundles, cache) = (root.path().join("bundles"), root.path().join("cache"));
        std::fs::create_dir_all(bundles.join("shop")).unwrap();
        std::fs::create_dir_all(cache.join("shop")).unwrap();
        symlink("shop", bundles.join("current")).unwrap();
        symlink("../cache", bundles.join("leak")).unwrap();
        let rooted = |text: &str| text.replace("ROOT", &root.path().display().to_string());
        let found = match local_bundle(&bundles, Path::new(&rooted(path))) {
            Ok(place) => check_links(&bundles, &place).await.map(|()| place),
            Err(error) => Err(error),
        };
        assert_eq!(found, expected.map(|name| bundles.join(name)).map_err(rooted));
    }
}
