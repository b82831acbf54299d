//! Declared resources that an earlier revision does not declare, as the server shows them.
//!
//! A server may show one resource under its id and under its name. If Git declared it under one of them and now declares
//! it under the other, only the answers show that both are the same one.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, PoisonError};

use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, Revision, Tree};
use crate::sync::model::SyncError;
use crate::sync::observe::{Remote, desired_at};
use crate::sync::tasks::blocking;

/// What identifies an answer: the id under some rules, and the hash of the content.
type Shown = (Option<String>, u64);

/// The paths in a collection that an earlier revision does not declare.
type Paths = HashMap<(Revision, LogicalPath), Arc<[LogicalPath]>>;
/// The answers to reads of paths, by the digest of the rules that state the id; `None` if the server does not have the
/// resource.
type Answers = HashMap<(LogicalPath, [u8; 32]), Option<Shown>>;

/// The newly declared resources of one run.
#[derive(Default)]
pub struct Fresh {
    paths: Mutex<Paths>,
    shown: Mutex<Answers>,
    keys: RandomState,
}

impl Fresh {
    /// Returns the first of `members`, all in `collection`, that the revision of `former` does not declare and for which
    /// the server shows the resource with the content `observed`: the same id under `rules` or the same content.
    pub async fn find(
        &self,
        remote: &Remote,
        (collection, members): (&LogicalPath, &[LogicalPath]),
        former: &Arc<dyn Tree>,
        (rules, observed): (&Rules, &Value),
    ) -> Result<Option<LogicalPath>, SyncError> {
        let wanted = self.identify(rules, observed);
        for path in self.paths(collection, members, former).await?.iter() {
            let key = (path.clone(), *rules.digest());
            let known = self.shown.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
            let shown = if let Some(shown) = known {
                shown
            } else {
                let read = self.read(remote, path, rules).await?;
                self.shown.lock().unwrap_or_else(PoisonError::into_inner).insert(key, read.clone());
                read
            };
            let is_same = |(id, content): Shown| content == wanted.1 || (id.is_some() && id == wanted.0);
            if shown.is_some_and(is_same) {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    async fn read(
        &self,
        remote: &Remote,
        path: &LogicalPath,
        rules: &Rules,
    ) -> Result<Option<Shown>, SyncError> {
        let (session, at) = (remote.session.clone(), path.clone());
        let declared = blocking(path.clone(), move || desired_at(&session, &at)).await?;
        let Some(declared) = declared else { return Ok(None) };
        let read = remote.read(&declared).await?;
        Ok(read.payload.map(|payload| self.identify(rules, &payload)))
    }

    fn identify(&self, rules: &Rules, payload: &Value) -> Shown {
        (rules.identity().id().evaluate(payload).ok(), self.keys.hash_one(payload))
    }

    /// Returns those of `members` that the revision of `former` does not declare.
    async fn paths(
        &self,
        collection: &LogicalPath,
        members: &[LogicalPath],
        former: &Arc<dyn Tree>,
    ) -> Result<Arc<[LogicalPath]>, SyncError> {
        let key = former.revision().map(|revision| (revision.clone(), collection.clone()));
        let known = || self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = key.as_ref().and_then(|key| known().get(key).cloned()) {
            return Ok(found);
        }
        let (tree, members) = (Arc::clone(former), members.to_vec());
        let find = move || {
            let mut fresh = Vec::new();
            for path in members {
                if repository::resource_file(tree.as_ref(), &path)?.is_none() {
                    fresh.push(path);
                }
            }
            Ok(fresh)
        };
        let found: Arc<[_]> = blocking(collection.clone(), find).await?.into();
        if let Some(key) = key {
            known().insert(key, Arc::clone(&found));
        }
        Ok(found)
    }
}
