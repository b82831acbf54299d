//! Deletions that may delete a declared resource of another collection, because some servers show one resource in several
//! collections and delete it in all of them.
//!
//! Reads cannot distinguish this from a member of several groups, which each group shows alike. So the run deletes one
//! resource of each such collection first, and then reads the declared one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::{Execution, save};
use crate::path::LogicalPath;
use crate::sync::model::{Action, SyncError};

/// The first deletion of a collection, and the declared resource of another collection that it may delete.
struct Probe {
    action: Arc<Action>,
    collection: LogicalPath,
    twin: LogicalPath,
}

impl Execution {
    /// Sends the first deletion of each collection whose resources may be declared in another collection, until one succeeds.
    /// If this deletes the declared one, fails the deletions of this collection, and creates the declared one again in the
    /// next pass.
    pub(super) async fn probe(&mut self, deletions: &mut Vec<Arc<Action>>) {
        let mut probed = HashSet::new();
        while self.sender.stop.reason().is_none() {
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
            let mut exist = BTreeMap::new();
            for twin in succeeded.iter().map(|probe| &probe.twin).collect::<BTreeSet<_>>() {
                exist.insert(twin.clone(), self.still_exists(twin).await);
            }
            // Fail the deletions that would delete others.
            for probe in failed {
                self.spare(&probe.action, deletions);
            }
            for probe in succeeded {
                probed.insert(probe.collection.clone());
                match &exist[&probe.twin] {
                    Ok(true) => {}
                    Ok(false) => self.refuse(probe, deletions).await,
                    Err(error) => {
                        self.refuse_unknown(&probe.collection, &probe.twin, error, deletions);
                        self.endangered.insert(probe.twin);
                    }
                }
            }
        }
    }

    /// Fails the deletions of the collection of `probe`, which deleted a declared resource of another one. That is read
    /// again in the next pass.
    async fn refuse(&mut self, probe: Probe, deletions: &mut Vec<Arc<Action>>) {
        let Probe { action, collection, twin } = probe;
        let rules = action.call().and_then(|call| call.declared.as_ref()).map(|declared| &declared.rules);
        if let Some((written, rules)) = self.sender.writer.session.written.clone().zip(rules) {
            written.share(&action.path, rules, &twin);
            save(written).await;
        }
        if !self.selects(&twin) && !self.endangered.contains(&twin) {
            self.report.stats.targeted += 1;
            self.report.stats.unchanged += 1;
        }
        let error = |path: &LogicalPath| SyncError::Shared(path.clone(), twin.to_string());
        // The server has it again as soon as the declared one is created again.
        self.report.stats.pruned -= 1;
        self.report.failures.push(action.failed(&error(&action.path)));
        self.spare(&action, deletions);
        self.refuse_all(&collection, deletions, error);
        self.endangered.insert(twin);
    }

    /// Fails the deletions in `collection`, because the server does not answer whether it has `twin`.
    fn refuse_unknown(
        &mut self,
        collection: &LogicalPath,
        twin: &LogicalPath,
        error: &SyncError,
        deletions: &mut Vec<Arc<Action>>,
    ) {
        let why = format!("cannot determine whether the server also deletes {twin}: {error}");
        self.refuse_all(collection, deletions, |path| SyncError::NotDeleted(format!("{path}: {why}")));
    }

    /// Fails the deletions in `collection` that may delete a declared resource of another one.
    fn refuse_all(
        &mut self,
        collection: &LogicalPath,
        deletions: &mut Vec<Arc<Action>>,
        error: impl Fn(&LogicalPath) -> SyncError,
    ) {
        let is_alike = |action: &mut Arc<Action>| {
            self.twins.contains_key(&action.path) && action.path.parent().as_ref() == Some(collection)
        };
        for action in deletions.extract_if(.., is_alike).collect::<Vec<_>>() {
            self.report.failures.push(action.failed(&error(&action.path)));
            self.spare(&action, deletions);
        }
    }

    /// Fails the deletions that wait for `failed`, which was not deleted.
    fn spare(&mut self, failed: &Action, deletions: &mut Vec<Arc<Action>>) {
        for action in deletions.extract_if(.., |action| precedes(failed, action)) {
            let reason = format!("{}: {}, which depends on it, is not deleted", action.path, failed.path);
            self.report.failures.push(action.failed(&SyncError::NotDeleted(reason)));
        }
    }

    /// Whether the run reads all resources of a scope, and the one at `path` is in it.
    fn selects(&self, path: &LogicalPath) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.contains(path))
    }

    /// Whether the server showed the declared resource at `path` before the run deleted others. One that the run has created
    /// is not one that was shown elsewhere.
    async fn existed(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        if self.missing.contains(path) || self.sender.writer.has_created(path) {
            return Ok(false);
        }
        // The run has read those of its scope.
        let is_failed = || self.report.failures.iter().any(|failure| failure.path == *path);
        if self.selects(path) && !is_failed() { Ok(true) } else { self.still_exists(path).await }
    }

    /// Whether the server shows the declared resource at `path`.
    async fn still_exists(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let writer = &self.sender.writer;
        let Some(declared) = writer.declared(path).await? else { return Ok(false) };
        Ok(writer.referred.with_references_only().read(&declared).await?.payload.is_some())
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
            let twin = self.twins.get(&action.path).cloned();
            let Some((twin, collection)) = twin.zip(action.path.parent()) else { continue };
            if found.contains(&collection) || deletions.iter().any(|other| precedes(other, &action)) {
                continue;
            }
            let existed = self.existed(&twin).await;
            if existed.as_ref().is_ok_and(|existed| !existed) {
                continue;
            }
            found.insert(collection.clone());
            match existed {
                Ok(_) => probes.push(Probe { action, collection, twin }),
                Err(error) => self.refuse_unknown(&collection, &twin, &error, deletions),
            }
        }
        probes
    }
}

/// Whether the deletion `other` is sent before `action`: its resource is below that of `action`, or depends on it.
fn precedes(other: &Action, action: &Action) -> bool {
    let depends = other.depends_on().iter().any(|path| action.path.is_within(path));
    other.path != action.path && (depends || other.path.is_within(&action.path))
}
