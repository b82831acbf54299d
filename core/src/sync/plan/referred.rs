//! Deletions that are not sent because of declared resources, such as those that refer to a deleted one.

use std::collections::{HashMap, HashSet};

use super::Plan;
use crate::path::LogicalPath;
use crate::sync::model::{Action, Resource, Sending, Session, Step, SyncError};
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

/// Returns the error of a deletion that is not sent, because the run has not created its resource at its new path.
pub fn not_moved(path: &LogicalPath, new: &LogicalPath) -> SyncError {
    SyncError::NotDeleted(format!("{path}: this run does not create {new}, which may be the same resource"))
}

/// Whether a deletion at `path`, which `needs` others, is sent before the one at `later`: it is below it, or depends on it.
pub fn precedes(path: &LogicalPath, needs: &[LogicalPath], later: &LogicalPath) -> bool {
    path != later && (path.is_within(later) || needs.iter().any(|needed| later.is_within(needed)))
}

impl Plan {
    /// Fails the actions that the execution would not send: creates below parents that the server does not have and the
    /// plan does not create, and deletions of resources that were not moved yet, or to which declared ones refer. The
    /// execution does it in any case, so only plans that are shown need it.
    pub async fn refuse_unsendable(&mut self, session: &Session) {
        self.refuse_orphans();
        self.refuse_referred(session).await;
        self.failures.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Fails the creates below parents that the server does not have and the plan does not create.
    fn refuse_orphans(&mut self) {
        // Parents come before their children.
        for place in 0..self.actions.len() {
            let action = &self.actions[place];
            let Sending::BelowNewParent(parent) = &action.sending else { continue };
            if !self.creates(&parent.path) {
                let error = SyncError::NoParent(action.path.clone(), parent.path.clone());
                self.failures.push(action.failed(&error));
                self.actions[place].sending = Sending::Impossible(Box::new(error));
            }
        }
    }

    /// Whether the plan creates the resource at `path`. Its actions are sorted by path.
    fn creates(&self, path: &LogicalPath) -> bool {
        let place = self.actions.binary_search_by(|action| action.path.cmp(path));
        let action = place.ok().map(|place| &self.actions[place]);
        action.is_some_and(|action| action.step == Step::Create && !action.is_impossible())
    }

    /// Fails the deletions of resources that were not moved yet, or to which declared ones refer, and those that wait for
    /// them.
    async fn refuse_referred(&mut self, session: &Session) {
        let is_deletion = |action: &&Action| action.step == Step::Delete;
        let doomed = self.actions.iter().filter(is_deletion).map(|action| action.path.clone());
        let doomed: HashSet<LogicalPath> = doomed.collect();
        let mut refused = Vec::new();
        for action in self.actions.iter().filter(is_deletion).filter(|action| !action.replaces()) {
            let by = referrer(session, &self.given, &action.path, |path| !doomed.contains(path)).await;
            refused.extend(by.map(|by| (action.path.clone(), referred(&action.path, &by))));
            let new = self.pruning.moved.get(&action.path).filter(|new| !self.creates(new));
            refused.extend(new.map(|new| (action.path.clone(), not_moved(&action.path, new))));
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
