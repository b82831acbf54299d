//! Resources that earlier runs created and that reads do not show, so that each run would create one more.
//!
//! Many servers assign ids and ignore the id in the body of a create. If Git names a resource by such an id, no run finds
//! it. Without an id in Git, only the list of the collection proves absence, and metadata may state a wrong list.

use super::undeclared::Candidates;
use crate::error::{Categorized as _, Category};
use crate::metadata::{Entry, is_assigned};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::sync::model::{Doubt, ListAnswer, Resource, SyncError, Wanted, Witness};
use crate::sync::observe::Remote;

/// Members that name a resource for people.
const NAMES: [&str; 5] = ["name", "alias", "clientId", "username", "key"];

impl Candidates {
    /// Fails if an earlier create may have made `absent`: the list lacks a created resource, or a server that may assign
    /// ids lists a resource with another id and the same name, and no file declares that one.
    pub async fn check_not_created(&self, absent: &Resource) -> Result<(), SyncError> {
        let Some(collection) = absent.path.parent() else { return Ok(()) };
        let Some(id) = Wanted::of(absent).id else {
            return check_list(&self.remote, &collection, absent).await;
        };
        if !is_assigned(id) || !absent.is_created_by_post() {
            return Ok(());
        }
        let list = self.remote.list_for(absent, &collection).await;
        for other in with_another_id(absent, id, &list) {
            let path = other.path(&collection, absent.rules.path_names())?;
            if self.declared_at(&path, other).await?.is_none() {
                let doubt = Doubt::AssignedId(id.to_owned(), other.remote_id.clone());
                return Err(SyncError::Undecided(absent.path.clone(), doubt));
            }
        }
        Ok(())
    }
}

/// Fails if the list of `collection` does not show the resource that was created in it for `absent`, or the last one,
/// although that exists. Then the list does not prove that the server lacks `absent`.
async fn check_list(remote: &Remote, collection: &LogicalPath, absent: &Resource) -> Result<(), SyncError> {
    let knowledge = &remote.session.knowledge;
    let declared = absent.declared.as_ref().unwrap_or(&absent.path);
    let recorded = || {
        let (path, id) = remote.session.written.as_ref()?.lost_beside(declared)?;
        Some(Witness { path, alias: id.clone(), id, hides_id: false })
    };
    let known = knowledge.witness(collection, declared);
    let witness = known.or_else(recorded).filter(|_| absent.is_created_by_post());
    let Some(witness) = witness else { return Ok(()) };
    let list = remote.list_for(absent, collection).await;
    if !matches!(&*list, ListAnswer::Listed { listing, .. } if witness.is_in(listing)) {
        let Ok(path) = collection.child(witness.path.name()) else { return Ok(()) };
        let created = Resource::by_path(path.clone(), remote.rules(&path).await?)?;
        match remote.read_at(&created.with_remote_id(&witness.id)).await {
            Err(error) if error.category() == Category::NotFound => {
                if let Some(written) = &remote.session.written {
                    written.find(&witness.path);
                }
            }
            Err(error) => return Err(error),
            Ok(_) => {
                // For later processes.
                if let Some(written) = &remote.session.written
                    && witness.path == *declared
                    && !written.has_lost(declared)
                {
                    written.lose(&Resource { path: declared.clone(), ..absent.clone() }, &witness.id);
                }
                let id = witness.shown_id().map(str::to_owned);
                let doubt = Doubt::Unlisted(witness.path, id);
                return Err(SyncError::Undecided(absent.path.clone(), doubt));
            }
        }
    }
    knowledge.shown_in_list(collection, &witness.path);
    Ok(())
}

/// Returns the entries of `list` that have another assigned id than `id`, and a name of `absent`.
fn with_another_id<'l>(
    absent: &'l Resource,
    id: &'l str,
    list: &'l ListAnswer,
) -> impl Iterator<Item = &'l Entry> {
    let listing = match list {
        ListAnswer::Listed { listing, .. } => Some(listing),
        ListAnswer::Unknown(_) => None,
    };
    let names = NAMES.iter().filter_map(|member| Some((*member, absent.payload.get(member)?.as_str()?)));
    let named = listing.into_iter().flat_map(move |listing| {
        let entries = names.clone().map(|(member, name)| {
            let has_it =
                move |entry: &&Entry| entry.payload.get(member).and_then(Value::as_str) == Some(name);
            listing.with_member(name).filter(has_it)
        });
        entries.flatten()
    });
    named.filter(move |entry| entry.remote_id != id && is_assigned(&entry.remote_id))
}
