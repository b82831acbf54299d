//! Where the parents of a resource are on the server: their ids in the place of their names.
//!
//! A segment of a path is looked up only if it is a member of a collection: the repository declares a resource there,
//! or the `_` of a metadata document that states id or alias binds it. All else is a part of the API itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::desired;
use super::lists::Lists;
use super::server::Server;
use crate::error::{Categorized, Category};
use crate::path::LogicalPath;
use crate::repository;
use crate::sync::model::absence::{Doubt, ListAnswer};
use crate::sync::model::error::SyncError;
use crate::sync::model::identity::{Match, Wanted};
use crate::sync::model::resource::Resource;
use crate::sync::tasks::blocking;

type Located = Result<LogicalPath, Arc<SyncError>>;

/// The parents of one run, each located once.
#[derive(Default)]
pub struct Parents {
    located: Mutex<HashMap<LogicalPath, Arc<OnceCell<Located>>>>,
    absent: Mutex<HashMap<LogicalPath, Arc<OnceCell<bool>>>>,
}

impl Parents {
    /// Whether the parent at `path` surely does not exist, once that was found out.
    pub fn absence(&self, path: &LogicalPath) -> Arc<OnceCell<bool>> {
        let mut known = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(path.clone()).or_default())
    }

    /// `resource` below the ids of its parents; `None` if they are where its path says.
    pub async fn relocated(&self, lists: &Lists, resource: &Resource) -> Result<Option<Resource>, SyncError> {
        let Some(parent) = resource.path.parent().filter(|parent| !parent.is_root()) else { return Ok(None) };
        let located = self
            .located(lists, &parent)
            .await
            .map_err(|source| SyncError::Parent { path: resource.path.clone(), source })?;
        if located == parent {
            return Ok(None);
        }
        let Ok(path) = located.child(resource.path.name()) else { return Ok(None) };
        let rules = lists.server.rules(&path).await?;
        let moved =
            if resource.seeded { Resource::by_path(path, rules)? } else { resource.moved(path, rules) };
        Ok(Some(moved))
    }

    /// `path` with the ids of its members in the place of their names.
    pub async fn located(&self, lists: &Lists, path: &LogicalPath) -> Located {
        if path.is_root() {
            return Ok(path.clone());
        }
        let cell = {
            let mut known = self.located.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(path.clone()).or_default())
        };
        cell.get_or_init(|| Box::pin(self.locate(lists, path))).await.clone()
    }

    async fn locate(&self, lists: &Lists, path: &LogicalPath) -> Located {
        let parent = path.parent().unwrap_or_else(LogicalPath::root);
        let above = self.located(lists, &parent).await?;
        let as_named = || above.child(path.name()).map_err(|_| Arc::new(absent(path)));
        let Some(member) = member(&lists.server, path).await? else { return as_named() };
        let wanted = Wanted::of(&member);
        let stated = || match wanted.id {
            Some(id) => above.child(id).or_else(|_| as_named()),
            None => as_named(),
        };
        if wanted.one_name {
            return stated();
        }
        let shown = |answer: &ListAnswer| match answer {
            ListAnswer::Listed { listing, .. } => match wanted.find(listing) {
                Match::Entry(entry) => Ok(Some(entry.remote_id.clone())),
                Match::Several(ids) => {
                    let ids = ids.into_iter().map(str::to_owned).collect();
                    Err(undecided(path, Doubt::Several(ids)))
                }
                Match::Member(_) | Match::Nothing => Ok(None),
            },
            // Without the id of a parent, everything below it would seem to be absent.
            ListAnswer::Failed { category, unauthorized, unreachable, message }
                if !matches!(category, Category::Validation) =>
            {
                let (category, unauthorized, unreachable) = (*category, *unauthorized, *unreachable);
                let doubt = Doubt::Failed { category, unauthorized, unreachable, message: message.clone() };
                Err(undecided(path, doubt))
            }
            _ => Ok(None),
        };
        match lists.with(&above, shown).await? {
            Some(id) => above.child(&id).or_else(|_| as_named()),
            None => stated(),
        }
    }
}

fn undecided(path: &LogicalPath, doubt: Doubt) -> Arc<SyncError> {
    Arc::new(SyncError::Undecided { path: path.clone(), doubt: Box::new(doubt) })
}

fn absent(path: &LogicalPath) -> SyncError {
    SyncError::Absent { path: path.clone() }
}

/// The resource at `path` as it is declared or as its path says, if it is a member of a collection.
pub async fn member(server: &Server, path: &LogicalPath) -> Result<Option<Resource>, Arc<SyncError>> {
    let (session, path) = (server.session.clone(), path.clone());
    let found = blocking(path.clone(), move || {
        match repository::resource_file(session.tree.as_ref(), &path) {
            Ok(Some(file)) => return desired::desired(&session, file).map(Some),
            Ok(None) => {}
            Err(error) => return Err(error.into()),
        }
        if !session.metadata.binds(&path)? {
            return Ok(None);
        }
        let rules = session.metadata.rules(&path)?;
        match Resource::by_path(path, rules) {
            Ok(member) => Ok(Some(member)),
            // Its names cannot be taken from its path.
            Err(error) if error.category() == Category::Validation => Ok(None),
            Err(error) => Err(error),
        }
    });
    found.await.map_err(Arc::new)
}
