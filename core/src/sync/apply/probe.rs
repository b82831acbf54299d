//! Deletions that may delete a declared resource of another collection, because some servers show one resource in several
//! collections and delete it in all of them.
//!
//! Reads cannot distinguish this from a member of several groups, which each group shows alike. So the run deletes one
//! resource of each such collection first, and then reads the declared one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::{Execution, is_refusal, save};
use crate::path::LogicalPath;
use crate::sync::model::{Action, SyncError};
use crate::sync::plan::referred::{precedes, still_needed};

/// The first deletion of a collection, and the declared resources of other collections that it may delete.
struct Probe {
    action: Arc<Action>,
    collection: LogicalPath,
    twins: Vec<LogicalPath>,
}

impl Execution {
    /// Sends the first deletion of each collection whose resources may be declared in another collection, until one succeeds.
    /// If this deletes the declared one, fails the deletions of this collection, and creates the declared one again in the
    /// next pass.
    pub(super) async fn probe(&mut self, deletions: &mut Vec<Arc<Action>>) {
        let mut probed = HashSet::new();
        while self.writer.stop.reason().is_none() {
            // Find a deletion of each collection.
            let probes = self.probes(deletions, &probed).await;
            if probes.is_empty() {
                return;
            }
            // Send them.
            let sent: HashSet<&LogicalPath> = probes.iter().map(|probe| &probe.action.path).collect();
            deletions.retain(|action| !sent.contains(&action.path));
            self.send_deletions(probes.iter().map(|probe| Arc::clone(&probe.action)).collect()).await;
            // Read the declared resources.
            let is_failed =
                |probe: &Probe| self.report.failures.iter().any(|it| it.path == probe.action.path);
            let (failed, succeeded): (Vec<_>, Vec<_>) = probes.into_iter().partition(is_failed);
            let twins: BTreeSet<_> = succeeded.iter().flat_map(|probe| &probe.twins).collect();
            let mut exist = BTreeMap::new();
            for twin in twins {
                exist.insert(twin.clone(), self.still_exists(twin).await);
            }
            // Fail the deletions that would delete others.
            for probe in failed {
                self.spare_needed(&probe.action, deletions);
            }
            for probe in succeeded {
                probed.insert(probe.collection.clone());
                let lost: Vec<_> =
                    probe.twins.iter().filter(|twin| matches!(exist[*twin], Ok(false))).collect();
                let unknown = probe.twins.iter().find_map(|twin| Some((twin, exist[twin].as_ref().err()?)));
                if let Some(twin) = lost.first() {
                    self.restore(&probe, twin, deletions).await;
                } else if let Some((twin, error)) = unknown {
                    self.refuse_unknown(&probe.collection, twin, error, deletions);
                    self.endanger(twin.clone());
                }
                for twin in lost {
                    self.endanger(twin.clone());
                }
            }
        }
    }

    /// Fails the deletions that wait for `failed`, which the server did not delete.
    fn spare_needed(&mut self, failed: &Action, deletions: &mut Vec<Arc<Action>>) {
        if self.report.failures.iter().any(|it| it.path == failed.path && is_refusal(it)) {
            return self.spare(&failed.path, failed.depends_on(), deletions);
        }
        // Some servers delete children only together with their parent.
        let needs =
            |action: &&Arc<Action>| failed.depends_on().iter().any(|path| action.path.is_within(path));
        for needed in deletions.iter().filter(needs).cloned().collect::<Vec<_>>() {
            self.refuse(&needed, &still_needed(&needed.path, &failed.path), deletions);
        }
    }

    /// Fails the deletions of the collection of `probe`, which deleted the declared resource `twin` of another one.
    async fn restore(&mut self, probe: &Probe, twin: &LogicalPath, deletions: &mut Vec<Arc<Action>>) {
        let Probe { action, collection, .. } = probe;
        let rules = action.call().and_then(|call| call.declared.as_ref()).map(|declared| &declared.rules);
        if let Some((written, rules)) = self.writer.session.written.clone().zip(rules) {
            written.share(&action.path, rules, twin);
            save(written).await;
        }
        // The server has the deleted one again as soon as the declared one is created again.
        self.report.stats.pruned -= 1;
        deletions.push(Arc::clone(action));
        self.refuse_all(collection, deletions, |path| SyncError::Shared(path.clone(), twin.to_string()));
    }

    /// Lets the next pass read the declared resource at `path`, which the run may not have selected.
    fn endanger(&mut self, path: LogicalPath) {
        if !self.selects(&path) {
            self.target(path.clone());
        }
        self.endangered.insert(path);
    }

    /// Fails the deletions in `collection`, because the server does not answer whether it has `twin`.
    fn refuse_unknown(
        &mut self,
        collection: &LogicalPath,
        twin: &LogicalPath,
        error: &SyncError,
        deletions: &mut Vec<Arc<Action>>,
    ) {
        let why =
            format!("it may delete declared resources such as {twin}, too, which cannot be read: {error}");
        let error = |path: &LogicalPath| SyncError::NotDeleted(format!("{path}: {why}"));
        self.refuse_all(collection, deletions, error);
    }

    /// Fails the deletions in `collection` that may delete a declared resource of another one.
    fn refuse_all(
        &mut self,
        collection: &LogicalPath,
        deletions: &mut Vec<Arc<Action>>,
        error: impl Fn(&LogicalPath) -> SyncError,
    ) {
        let is_alike = |action: &&Arc<Action>| {
            self.pruning.twins.contains_key(&action.path) && action.path.parent().as_ref() == Some(collection)
        };
        for action in deletions.iter().filter(is_alike).cloned().collect::<Vec<_>>() {
            self.refuse(&action, &error(&action.path), deletions);
        }
    }

    /// Whether the run reads all resources of a scope, and the one at `path` is in it.
    fn selects(&self, path: &LogicalPath) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.contains(path))
    }

    /// Whether the server showed the declared resource at `path` before the run deleted others. One that the run has created
    /// is not one that was shown elsewhere.
    async fn existed(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        if self.missing.contains(path) || self.writer.has_created(path) {
            return Ok(false);
        }
        // The run has read those of its scope. Others may belong to another server.
        let is_failed = self.report.failures.iter().any(|failure| failure.path == *path);
        match self.selects(path) {
            true if !is_failed => Ok(true),
            true => self.still_exists(path).await,
            false => Ok(self.still_exists(path).await.unwrap_or(false)),
        }
    }

    /// Whether the server shows the declared resource at `path`.
    async fn still_exists(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let writer = &self.writer;
        let Some(declared) = writer.declared(path).await? else { return Ok(false) };
        Ok(writer.read(&declared).await?.payload.is_some())
    }

    /// Returns the first deletion of each collection that may delete a declared resource of another collection which the
    /// server shows. No other deletion precedes it. Leaves out collections of which one was `probed`, and fails the
    /// deletions of those about which the server does not answer.
    async fn probes(
        &mut self,
        deletions: &mut Vec<Arc<Action>>,
        probed: &HashSet<LogicalPath>,
    ) -> Vec<Probe> {
        let (mut probes, mut found) = (Vec::new(), probed.clone());
        for action in deletions.clone() {
            let twins = self.pruning.twins.get(&action.path).cloned();
            let Some((twins, collection)) = twins.zip(action.path.parent()) else { continue };
            let is_preceded = |it: &Arc<Action>| precedes(&it.path, it.depends_on(), &action.path);
            let is_refused = !deletions.iter().any(|it| it.path == action.path);
            if found.contains(&collection) || is_refused || deletions.iter().any(is_preceded) {
                continue;
            }
            let mut existing = Vec::new();
            for twin in twins {
                match self.existed(&twin).await {
                    Ok(false) => {}
                    Ok(true) => existing.push(twin),
                    Err(error) => {
                        self.refuse_unknown(&collection, &twin, &error, deletions);
                        found.insert(collection.clone());
                    }
                }
            }
            if !existing.is_empty() && found.insert(collection.clone()) {
                probes.push(Probe { action, collection, twins: existing });
            }
        }
        probes
    }
}
