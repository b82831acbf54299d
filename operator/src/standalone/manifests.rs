//! A directory of manifests kept applied, as `kubectl apply --server-side --prune` would.
//!
//! Every document is applied by itself: a bad one is reported and the others still count. What the
//! directory no longer declares is deleted, but only objects this module applied, which
//! `metadata.managedFields` records and a restart therefore remembers. While a document cannot be read at
//! all, nothing is deleted: it might be what declares the object.

mod document;

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use declarest_core::error::{Categorized, Category};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::discovery::{ApiCapabilities, Scope};
use kube::{Client, Discovery, ResourceExt as _};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use document::{Document, ScanError};

/// The field manager of everything that comes from manifests.
const MANAGER: &str = "declarest-manifests";
/// How long the directory has to be quiet before a change is taken in: editors write in several steps.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often everything is applied again, which also undoes changes made past the manifests.
const REAPPLY_INTERVAL: Duration = Duration::from_secs(30);

/// Why manifests could not be taken in at all.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The directory, or one below it, cannot be listed.
    #[error("cannot read manifests directory {}: {source}; check that it exists and is readable", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The API does not say what it serves.
    #[error("cannot discover the types to apply manifests to: {source}")]
    Discover {
        /// Why.
        source: kube::Error,
    },
    /// The objects applied earlier cannot be listed.
    #[error("cannot list {kind} objects to find those without a manifest: {source}")]
    List {
        /// The kind.
        kind: String,
        /// Why.
        source: kube::Error,
    },
}

impl Categorized for ManifestsError {
    fn category(&self) -> Category {
        match self {
            Self::Directory { .. } => Category::Validation,
            Self::Discover { .. } | Self::List { .. } => Category::Internal,
        }
    }
}

/// A document that could not be applied, or an object that could not be deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, relative to the manifests directory.
    pub file: PathBuf,
    /// Which document of the file, from 1.
    pub document: usize,
    /// The line of the file, from 1: of the error if known, else of the document's start.
    pub line: usize,
    /// What is wrong and what to do. Never a value of a Secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: document {}: {}", self.file.display(), self.line, self.document, self.message)
    }
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// How many objects are now as their manifests say.
    pub applied: usize,
    /// How many objects were deleted because no manifest declares them any more.
    pub deleted: usize,
    /// Deletions were put off because a document could not be read.
    pub deletions_withheld: bool,
    /// What could not be applied.
    pub problems: Vec<Problem>,
}

/// A directory of YAML and JSON manifests.
#[derive(Clone)]
pub struct Manifests {
    dir: PathBuf,
    client: Client,
}

/// Kind, namespace and name.
type Identity = (String, String, String);

impl Manifests {
    /// Manifests below `dir`: `*.yaml`, `*.yml` and `*.json`, hidden ones excepted.
    pub fn new(dir: PathBuf, client: Client) -> Self {
        Self { dir, client }
    }

    /// Applies all manifests and deletes what has none any more.
    pub async fn load(&self) -> Result<LoadReport, ManifestsError> {
        let discovery = Discovery::new(self.client.clone())
            .run()
            .await
            .map_err(|source| ManifestsError::Discover { source })?;
        let mut scan = self.scan().await?;
        let mut report =
            LoadReport { deletions_withheld: !scan.problems.is_empty(), ..LoadReport::default() };
        report.problems.append(&mut scan.problems);
        // Secrets first, so that what refers to them finds them.
        scan.documents.sort_by_key(|document| match document.kind() {
            "Namespace" => 0,
            "Secret" => 1,
            _ => 2,
        });
        let mut declared: HashSet<Identity> = HashSet::new();
        for document in scan.documents {
            if let Err(message) = self.apply(&discovery, &document, &mut declared).await {
                report.problems.push(document.problem(message));
            } else {
                report.applied += 1;
            }
        }
        if !report.deletions_withheld {
            self.delete_undeclared(&discovery, &declared, &mut report).await?;
        }
        report.problems.sort();
        Ok(report)
    }

    async fn scan(&self) -> Result<document::Scan, ManifestsError> {
        let dir = self.dir.clone();
        let scanned = tokio::task::spawn_blocking(move || document::scan(&dir)).await;
        let failed = |path: &Path, source| ManifestsError::Directory { path: path.to_owned(), source };
        match scanned {
            Ok(Ok(scan)) => Ok(scan),
            Ok(Err(ScanError { path, source })) => Err(failed(&path, source)),
            Err(error) => Err(failed(&self.dir, std::io::Error::other(error))),
        }
    }

    async fn apply(
        &self,
        discovery: &Discovery,
        document: &Document,
        declared: &mut HashSet<Identity>,
    ) -> Result<(), String> {
        let gvk = GroupVersionKind::try_from(document.types())
            .map_err(|_| format!("apiVersion {:?} is malformed", document.types().api_version))?;
        let (resource, capabilities) = discovery
            .resolve_gvk(&gvk)
            .ok_or_else(|| format!("{} {} is not served in standalone mode", gvk.api_version(), gvk.kind))?;
        let namespace = match capabilities.scope {
            Scope::Namespaced => document.namespace().to_owned(),
            Scope::Cluster => String::new(),
        };
        let identity = (qualified_kind(&resource), namespace.clone(), document.name().to_owned());
        if !declared.insert(identity) {
            return Err(format!("{} {}/{} is declared twice", gvk.kind, namespace, document.name()));
        }
        let api = self.api(&resource, &namespace);
        let params = PatchParams::apply(MANAGER).force();
        let object = document.object(&namespace);
        api.patch(document.name(), &params, &Patch::Apply(&object)).await.map(drop).map_err(describe)
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> kube::Api<DynamicObject> {
        if namespace.is_empty() {
            kube::Api::all_with(self.client.clone(), resource)
        } else {
            kube::Api::namespaced_with(self.client.clone(), namespace, resource)
        }
    }

    async fn delete_undeclared(
        &self,
        discovery: &Discovery,
        declared: &HashSet<Identity>,
        report: &mut LoadReport,
    ) -> Result<(), ManifestsError> {
        for (resource, _) in deletable(discovery) {
            let all = self.api(&resource, "");
            let objects = all
                .list_metadata(&ListParams::default())
                .await
                .map_err(|source| ManifestsError::List { kind: resource.kind.clone(), source })?;
            for object in objects {
                let namespace = object.namespace().unwrap_or_default();
                let identity = (qualified_kind(&resource), namespace.clone(), object.name_any());
                let is_ours = object.managed_fields().iter().any(|entry| {
                    entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply")
                });
                if !is_ours || declared.contains(&identity) || object.metadata.deletion_timestamp.is_some() {
                    continue;
                }
                let deleted = self
                    .api(&resource, &namespace)
                    .delete(&object.name_any(), &DeleteParams::default())
                    .await;
                match deleted {
                    Ok(_) => report.deleted += 1,
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => tracing::warn!(
                        kind = resource.kind,
                        namespace,
                        name = object.name_any(),
                        error = describe(error),
                        "cannot delete an object that no manifest declares any more"
                    ),
                }
            }
        }
        Ok(())
    }

    /// Keeps the directory applied until `shutdown`: at every change, and every 30 seconds.
    pub async fn watch(self, shutdown: CancellationToken) {
        let (sender, mut changes) = mpsc::channel(1);
        // Kept until the end of this function: dropping it ends the notifications.
        let _watcher = self.notify(sender);
        let mut reported = BTreeSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(()) = changes.recv() => settle(&mut changes).await,
                () = tokio::time::sleep(REAPPLY_INTERVAL) => {}
            }
            match self.load().await {
                Ok(report) => report_once(&report, &mut reported),
                Err(error) => tracing::warn!(%error, "manifests are not taken in"),
            }
        }
    }

    fn notify(&self, changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading the files is an event, too. A full channel already holds a change.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = changed.try_send(());
            }
        });
        let watcher = watcher.and_then(|mut watcher| {
            watcher.watch(&self.dir, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        watcher
            .inspect_err(|error| {
                tracing::warn!(
                    directory = %self.dir.display(), %error,
                    "cannot watch the manifests directory; changes are seen only every 30 seconds"
                );
            })
            .ok()
    }
}

/// The served types whose objects can come from manifests.
fn deletable(discovery: &Discovery) -> Vec<(ApiResource, ApiCapabilities)> {
    let types = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    types.filter(|(resource, _)| !matches!(resource.kind.as_str(), "Event" | "Lease" | "Namespace")).collect()
}

fn qualified_kind(resource: &ApiResource) -> String {
    format!("{}.{}", resource.kind, resource.group)
}

fn describe(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    }
}

/// Waits until no change came for the debounce time.
async fn settle(changes: &mut mpsc::Receiver<()>) {
    while let Ok(Some(())) = tokio::time::timeout(DEBOUNCE, changes.recv()).await {}
}

/// Logs problems that were not there at the last load.
fn report_once(report: &LoadReport, reported: &mut BTreeSet<Problem>) {
    let current: BTreeSet<Problem> = report.problems.iter().cloned().collect();
    for problem in current.difference(reported) {
        tracing::warn!(
            file = %problem.file.display(),
            line = problem.line,
            document = problem.document,
            "a manifest is not applied: {}",
            problem.message
        );
    }
    if report.deletions_withheld && current != *reported {
        tracing::warn!("nothing is deleted while a manifest cannot be read");
    }
    if report.deleted > 0 {
        tracing::info!(deleted = report.deleted, "deleted objects whose manifests are gone");
    }
    *reported = current;
}
