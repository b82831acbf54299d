//! Deletions that may delete a declared resource of another collection, because some servers show one resource in several
//! collections and delete it in all of them.
//!
//! Reads cannot distinguish this from a member of several groups, which each group shows alike. So the run deletes one
//! resource of each such collection first, and then reads the declared one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Execution;
use crate::path::LogicalPath;
use crate::sync::model::{Action, SyncError};

/// The number of resources in one collection that are read to find one that the server shows.
const READS: usize = 3;

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
            let probes = self.probes(deletions, &probed).await;
            if probes.is_empty() {
                return;
            }
            deletions.retain(|action| probes.iter().all(|probe| probe.action.path != action.path));
            self.send_deletions(probes.iter().map(|probe| Arc::clone(&probe.action)).collect()).await;
            for probe in probes {
                if self.report.failures.iter().any(|failure| failure.path == probe.action.path) {
                    self.spare(&probe.action, deletions);
                    continue;
                }
                probed.insert(probe.collection.clone());
                if !self.exists(&probe.twin, true).await {
                    self.refuse(probe, deletions);
                }
            }
        }
    }

    /// Fails the deletions of the collection of `probe`, which deleted a declared resource of another one. That is read
    /// again in the next pass.
    fn refuse(&mut self, Probe { action, collection, twin }: Probe, deletions: &mut Vec<Arc<Action>>) {
        let rules = action.call().and_then(|call| call.declared.as_ref()).map(|declared| &declared.rules);
        if let Some((written, rules)) = self.sender.writer.session.written.as_ref().zip(rules) {
            written.share(&action.path, rules, &twin);
        }
        if !self.selects(&twin) {
            self.report.stats.targeted += 1;
            self.report.stats.unchanged += 1;
        }
        let is_alike = |other: &mut Arc<Action>| {
            self.twins.contains_key(&other.path) && other.path.parent().as_ref() == Some(&collection)
        };
        let others: Vec<Arc<Action>> = deletions.extract_if(.., is_alike).collect();
        for refused in std::iter::once(&action).chain(&others) {
            let error = SyncError::Shared(refused.path.clone(), twin.to_string());
            self.report.failures.push(refused.failed(&error));
            self.spare(refused, deletions);
        }
        self.endangered.insert(twin);
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

    /// Whether the server shows the declared resource at `path`, or does not answer. The run knows that about those of its
    /// scope that it could read, unless it looks `again`. One that it has created is not one that was shown elsewhere.
    async fn exists(&self, path: &LogicalPath, again: bool) -> bool {
        let writer = &self.sender.writer;
        if self.missing.contains(path) || writer.has_created(path) {
            return again;
        }
        let is_failed = || self.report.failures.iter().any(|failure| failure.path == *path);
        if !again && self.selects(path) && !is_failed() {
            return true;
        }
        let Ok(Some(declared)) = writer.declared(path).await else { return again };
        let read = writer.referred.with_references_only().read(&declared).await;
        read.map_or(again, |observed| observed.payload.is_some())
    }

    /// Returns the first deletion of each collection that may delete a declared resource of another collection which the
    /// server shows. No other deletion precedes it. Leaves out collections of which one was `probed`.
    async fn probes(&self, deletions: &[Arc<Action>], probed: &HashSet<LogicalPath>) -> Vec<Probe> {
        let (mut probes, mut reads) = (Vec::new(), HashMap::<LogicalPath, usize>::new());
        for action in deletions {
            let twin = self.twins.get(&action.path);
            let Some((twin, collection)) = twin.cloned().zip(action.path.parent()) else { continue };
            let read = reads.entry(collection.clone()).or_default();
            if *read == READS
                || probed.contains(&collection)
                || deletions.iter().any(|other| precedes(other, action))
            {
                continue;
            }
            *read += 1;
            if self.exists(&twin, false).await {
                *read = READS;
                probes.push(Probe { action: Arc::clone(action), collection, twin });
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
