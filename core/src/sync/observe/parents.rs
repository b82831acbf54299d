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
use crate::sync::model::{Doubt, ListAnswer, Match, Resource, SyncError, Wanted};
use crate::sync::tasks::blocking;

/// Where a path is on the server.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: LogicalPath,
    /// Why the ids of its parents may be other ones after all.
    pub doubt: Option<Doubt>,
}

type Located = Result<Place, Arc<SyncError>>;

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

    /// `resource` below the ids of its parents; `None` if they are where its path says. The doubt is about these ids.
    pub async fn relocated(
        &self,
        lists: &Lists,
        resource: &Resource,
    ) -> Result<(Option<Resource>, Option<Doubt>), SyncError> {
        let Some(parent) = resource.path.parent().filter(|parent| !parent.is_root()) else {
            return Ok((None, None));
        };
        let located = self
            .located(lists, &parent)
            .await
            .map_err(|source| SyncError::Parent(resource.path.clone(), source))?;
        let Place { path: located, doubt } = located;
        let moved = located.child(resource.path.name()).ok().filter(|_| located != parent);
        let Some(path) = moved else { return Ok((None, doubt)) };
        let rules = lists.server.rules(&path).await?;
        let moved =
            if resource.seeded { Resource::by_path(path, rules)? } else { resource.moved(path, rules) };
        Ok((Some(moved), doubt))
    }

    /// `path` with the ids of its members in the place of their names.
    pub async fn located(&self, lists: &Lists, path: &LogicalPath) -> Located {
        if path.is_root() {
            return Ok(Place { path: path.clone(), doubt: None });
        }
        let cell = {
            let mut known = self.located.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(path.clone()).or_default())
        };
        cell.get_or_init(|| Box::pin(self.locate(lists, path))).await.clone()
    }

    async fn locate(&self, lists: &Lists, path: &LogicalPath) -> Located {
        let parent = path.parent().unwrap_or_else(LogicalPath::root);
        let Place { path: above, doubt } = self.located(lists, &parent).await?;
        let place = |name: &str, doubt: Option<Doubt>| {
            let located = above.child(name).or_else(|_| above.child(path.name()));
            let located = located.map_err(|_| Arc::new(SyncError::Absent(path.clone())))?;
            Ok(Place { path: located, doubt })
        };
        let Some(member) = member(&lists.server, path).await? else { return place(path.name(), doubt) };
        let wanted = Wanted::of(&member);
        let stated = wanted.id.unwrap_or(wanted.name);
        let is_named_by_members = wanted.by_members && wanted.id.is_none() && !member.seeded;
        if wanted.one_name && !is_named_by_members {
            return place(stated, doubt);
        }
        let shown = |answer: &ListAnswer| match answer {
            ListAnswer::Listed { listing, .. } => match wanted.find(listing) {
                Match::Entry(entry) | Match::Member(entry) => Ok((Some(entry.remote_id.clone()), None)),
                Match::Several(ids) => Err(undecided(path, Doubt::Several(ids))),
                Match::Nothing => Ok((None, None)),
            },
            // Without the id of a parent, everything below it would seem to be absent.
            ListAnswer::Unknown(doubt @ Doubt::Failed(_)) if doubt.category() != Category::Validation => {
                Err(undecided(path, doubt.clone()))
            }
            ListAnswer::Unknown(doubt) => Ok((None, wanted.id.is_none().then(|| doubt.clone()))),
        };
        let (id, unlisted) = lists.with(&above, shown).await?;
        place(id.as_deref().unwrap_or(stated), doubt.or(unlisted))
    }
}

fn undecided(path: &LogicalPath, doubt: Doubt) -> Arc<SyncError> {
    Arc::new(SyncError::Undecided(path.clone(), doubt))
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
