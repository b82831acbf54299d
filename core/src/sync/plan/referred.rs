//! Deletions of resources to which declared ones refer.

use std::collections::{HashMap, HashSet};

use super::Plan;
use crate::path::LogicalPath;
use crate::sync::model::{Action, Resource, Session, Step, SyncError};
use crate::sync::observe::reserved_at;

/// Returns a declared resource that refers to the one at `path`, as far as the session has seen it, and that `stays`. The
/// resources in `given` have other payloads than their files.
pub async fn referrer(
    session: &Session,
    given: &HashMap<LogicalPath, Resource>,
    path: &LogicalPath,
    stays: impl Fn(&LogicalPath) -> bool,
) -> Option<LogicalPath> {
    for (referrer, _) in session.knowledge.referrers(path).into_iter().filter(|(path, _)| stays(path)) {
        // It may have referred to it in an earlier revision only.
        let declared = match given.get(&referrer) {
            Some(given) => Some(given.clone()),
            None => reserved_at(session, &referrer).await.ok().flatten(),
        };
        if declared.is_some_and(|it| it.depends_on().is_ok_and(|paths| paths.contains(path))) {
            return Some(referrer);
        }
    }
    None
}

/// Returns the error of a deletion that is not sent, because the resource at `by` refers to its resource.
pub fn referred(path: &LogicalPath, by: &LogicalPath) -> SyncError {
    SyncError::NotDeleted(format!("{path}: {by} refers to it; remove the reference first"))
}

/// Returns the error of a deletion that is not sent, because what depends on its resource is not deleted.
pub fn still_needed(path: &LogicalPath, by: &LogicalPath) -> SyncError {
    SyncError::NotDeleted(format!("{path}: {by}, which depends on it, is not deleted"))
}

/// Whether a deletion at `path`, which `needs` others, is sent before the one at `later`: it is below it, or depends on it.
pub fn precedes(path: &LogicalPath, needs: &[LogicalPath], later: &LogicalPath) -> bool {
    path != later && (path.is_within(later) || needs.iter().any(|needed| later.is_within(needed)))
}

impl Plan {
    /// Fails the deletions of resources to which declared ones refer, and those that wait for them. The execution does it in
    /// any case, so only plans that are shown need it.
    pub async fn refuse_referred(&mut self, session: &Session) {
        let is_deletion = |action: &&Action| action.step == Step::Delete;
        let doomed = self.actions.iter().filter(is_deletion).map(|action| action.path.clone());
        let doomed: HashSet<LogicalPath> = doomed.collect();
        let mut refused = Vec::new();
        for action in self.actions.iter().filter(is_deletion).filter(|action| !action.replaces()) {
            let by = referrer(session, &self.given, &action.path, |path| !doomed.contains(path)).await;
            refused.extend(by.map(|by| (action.path.clone(), referred(&action.path, &by))));
        }
        while let Some((path, error)) = refused.pop() {
            let is_it = |action: &Action| action.step == Step::Delete && action.path == path;
            let Some(place) = self.actions.iter().position(is_it) else { continue };
            let action = self.actions.remove(place);
            self.failures.push(action.failed(&error));
            let waits = |later: &&Action| precedes(&path, action.depends_on(), &later.path);
            let waiting = self.actions.iter().filter(is_deletion).filter(waits);
            refused.extend(waiting.map(|later| (later.path.clone(), still_needed(&later.path, &path))));
        }
    }
}
