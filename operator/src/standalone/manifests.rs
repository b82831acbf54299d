//! Keeps a directory of manifests applied, like `kubectl apply --server-side --prune`.
//!
//! Each document is applied independently: an invalid one is reported, and the others are applied. Objects that
//! the directory no longer declares are deleted, but only those that this module applied. `metadata.managedFields`
//! records them, also across restarts. While a document cannot be read, nothing is deleted, because the document
//! may declare one of the objects.

mod document;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::discovery::Scope;
use kube::{Client, Discovery, ResourceExt as _};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use document::{Document, ScanError};

/// The field manager of everything that comes from manifests.
const MANAGER: &str = "declarest-manifests";
/// The time without changes before manifests are read, because editors write in several steps.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The longest wait for the end of changes.
const SETTLE: Duration = Duration::from_secs(2);
/// Interval at which all manifests are applied again. This also reverts changes by other clients.
const REAPPLY_INTERVAL: Duration = Duration::from_secs(30);

/// The manifests could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The directory, or one below it, cannot be listed.
    #[error("cannot read manifests directory {}: {source}; check that it exists and is readable", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The discovery of the API failed.
    #[error("cannot discover the types to apply manifests to: {source}")]
    Discover {
        /// The cause.
        source: kube::Error,
    },
    /// The objects applied earlier cannot be listed.
    #[error("cannot list {kind} objects to find those without a manifest: {source}")]
    List {
        /// The kind.
        kind: String,
        /// The cause.
        source: kube::Error,
    },
}

/// A document that was not applied, or an object that was not deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, relative to the manifests directory.
    pub file: PathBuf,
    /// Number of the document in the file, from 1.
    pub document: usize,
    /// The line of the file, from 1: that of the error if it is known, otherwise the first line of the document.
    pub line: usize,
    /// The fault and the correction. Never holds a value of a Secret.
    pub message: String,
}

/// The result of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Number of objects that now match their manifests.
    pub applied: usize,
    /// Number of objects that were deleted because no manifest declares them.
    pub deleted: usize,
    /// Whether deletions were skipped because a document could not be read.
    pub deletions_withheld: bool,
    /// Documents that were not applied, and objects that were not deleted.
    pub problems: Vec<Problem>,
}

/// A directory of YAML and JSON manifests.
#[derive(Clone)]
pub struct Manifests {
    dir: PathBuf,
    client: Client,
    /// The problems of the last load, which the log shows once.
    reported: BTreeSet<Problem>,
}

/// Kind, namespace and name.
type Identity = (String, String, String);

impl Manifests {
    /// Uses the manifests below `dir`: `*.yaml`, `*.yml` and `*.json`, except for hidden ones.
    pub fn new(dir: PathBuf, client: Client) -> Self {
        Self { dir, client, reported: BTreeSet::new() }
    }

    /// Applies all manifests, and deletes objects that no longer have one.
    pub async fn load(&self) -> Result<LoadReport, ManifestsError> {
        // Read the served types and all documents.
        let discovery = Discovery::new(self.client.clone())
            .run()
            .await
            .map_err(|source| ManifestsError::Discover { source })?;
        let mut scan = self.scan().await?;
        let mut report =
            LoadReport { deletions_withheld: !scan.problems.is_empty(), ..LoadReport::default() };
        report.problems.append(&mut scan.problems);
        // Apply Secrets first, because other objects refer to them.
        scan.documents.sort_by_key(|document| match document.kind() {
            "Namespace" => 0,
            "Secret" => 1,
            _ => 2,
        });
        let mut declared: HashSet<Identity> = HashSet::new();
        for document in scan.documents {
            let known = declared.len();
            if let Err(message) = self.apply(&discovery, &document, &mut declared).await {
                // Without its type, it is not known which object must stay.
                report.deletions_withheld |= declared.len() == known;
                report.problems.push(document.problem(message));
            } else {
                report.applied += 1;
            }
        }
        // Delete objects without a manifest.
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
        // An unknown field is usually misspelt, and dropping it would change the meaning of the manifest.
        let params = PatchParams::apply(MANAGER).force().validation_strict();
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
        for resource in deletable(discovery) {
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
                        "cannot delete an object that no manifest declares"
                    ),
                }
            }
        }
        Ok(())
    }

    /// Like [`Self::load`], and logs the problems that the last load did not have.
    pub async fn load_and_report(&mut self) -> Result<LoadReport, ManifestsError> {
        let report = self.load().await?;
        let current: BTreeSet<Problem> = report.problems.iter().cloned().collect();
        for problem in current.difference(&self.reported) {
            tracing::warn!(
                file = %problem.file.display(),
                line = problem.line,
                document = problem.document,
                "a manifest is not applied: {}",
                problem.message
            );
        }
        if report.deletions_withheld && current != self.reported {
            tracing::warn!("nothing is deleted while a manifest cannot be read");
        }
        if report.deleted > 0 {
            tracing::info!(deleted = report.deleted, "deleted objects whose manifests were removed");
        }
        self.reported = current;
        Ok(report)
    }

    /// Applies the directory on every change and every 30 seconds, until `shutdown` is cancelled.
    pub async fn watch(mut self, mut changes: Changes, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(()) = changes.received.recv() => changes.settle().await,
                () = tokio::time::sleep(REAPPLY_INTERVAL) => {}
            }
            if let Err(error) = self.load_and_report().await {
                tracing::warn!(%error, "cannot load manifests");
            }
        }
    }

    /// Begins to receive the changes of the directory. A load after that misses no change, if [`Manifests::watch`]
    /// follows.
    pub fn changes(&self) -> Changes {
        let (changed, received) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reads of files are events too. If the channel is full, it already holds a change.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = changed.try_send(());
            }
        });
        let watcher = watcher.and_then(|mut watcher| {
            watcher.watch(&self.dir, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(
                directory = %self.dir.display(), %error,
                "cannot watch the manifests directory; changes are seen only every 30 seconds"
            );
        });
        Changes { received, _watcher: watcher.ok() }
    }
}

/// Changes of the directory of manifests.
pub struct Changes {
    received: mpsc::Receiver<()>,
    /// Dropping it would end the notifications.
    _watcher: Option<notify::RecommendedWatcher>,
}

impl Changes {
    /// Waits until no change has arrived for the debounce time, but not much longer: a process may write all the time.
    async fn settle(&mut self) {
        let quiet =
            async { while let Ok(Some(())) = tokio::time::timeout(DEBOUNCE, self.received.recv()).await {} };
        let _ = tokio::time::timeout(SETTLE, quiet).await;
    }
}

/// Returns the served types whose objects can be declared in manifests.
fn deletable(discovery: &Discovery) -> Vec<ApiResource> {
    let types = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let types = types.map(|(resource, _)| resource);
    types.filter(|resource| !matches!(resource.kind.as_str(), "Event" | "Lease" | "Namespace")).collect()
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
