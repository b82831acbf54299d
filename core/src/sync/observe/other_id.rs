//! Resources with two ids: the member `id` of an issue of GitLab is a number of the whole server, and its address has the
//! `iid`. The default path `./{{/id}}` may then lead to another resource.

use super::server::Remote;
use crate::error::{Categorized as _, Category};
use crate::metadata::{Identity, OperationName};
use crate::sync::model::{Observed, Resource, SyncError, Wanted, is_alike};

/// The result of a read.
pub(super) type Read = Result<Observed, SyncError>;

impl Remote {
    /// Reads the entry `listed` of a list. Begins with its remote id, unless `wanted` was read at it.
    pub(super) async fn read_entry_by_either_id(&self, listed: &Resource, wanted: &Resource) -> Read {
        if listed.identity.remote_id != wanted.identity.remote_id
            && let Some(by_remote_id) = at_remote_id(listed)
        {
            let read = self.read_at(&by_remote_id).await;
            if read.as_ref().is_ok_and(|observed| has_names(observed, &listed.identity)) {
                return read;
            }
        }
        Box::pin(self.read_at(listed)).await
    }

    /// Reads `at`, also by its id on the server if only that may show the resource with its names.
    pub(super) async fn read_by_either_id(&self, at: &Resource) -> Read {
        let read = self.read_at(at).await;
        // Most resources have one id.
        let Some(by_remote_id) = at_remote_id(at) else { return read };
        let shows_it = |read: &Read| read.as_ref().is_ok_and(|observed| has_names(observed, &at.identity));
        let has_answer = read.is_ok() || is_not_found(&read) || rejects_address(&read);
        if !has_answer || shows_it(&read) {
            return read;
        }
        let again = Box::pin(self.read_at(&by_remote_id)).await;
        // A PUT would replace the other one.
        let is_absent = read.is_ok() && is_not_found(&again) && !at.is_created_by_put();
        if is_absent || shows_it(&again) { again } else { read }
    }
}

/// Returns `resource` with the address of its id on the server, if its member `id` leads to another one.
fn at_remote_id(resource: &Resource) -> Option<Resource> {
    let place = |at: &Resource| at.render(OperationName::Get).map(|get| (get.path, get.query)).ok();
    let by_remote_id = resource.has_other_id().then(|| resource.without_other_id())?;
    (place(resource) != place(&by_remote_id)).then_some(by_remote_id)
}

/// Whether the answer shows the resource with these names: its id or, if the answer shows none, its alias. Some servers
/// change the case of names.
fn has_names(observed: &Observed, names: &Identity) -> bool {
    let Some(payload) = &observed.payload else { return false };
    let alias = || observed.at.rules.identity().alias().evaluate(payload);
    let has_alias = || alias().map_or(true, |alias| is_alike(&alias, &names.alias));
    observed.at.rules.observed_id(payload).map_or_else(has_alias, |id| is_alike(&id, &names.remote_id))
}

/// Whether the answer shows another resource than the one with these names.
pub(super) fn is_another(observed: &Observed, names: &Identity) -> bool {
    let alias = |payload| observed.at.rules.identity().alias().evaluate(payload);
    let has_alias = |payload| alias(payload).is_ok_and(|alias| is_alike(&alias, &names.alias));
    observed.payload.as_ref().is_some_and(|payload| !has_names(observed, names) && !has_alias(payload))
}

/// Whether the member `id` of `wanted`, which states its id elsewhere, has led to another resource.
pub(super) fn is_at_other_id(wanted: &Resource, observed: &Observed) -> bool {
    wanted.has_other_id() && Wanted::of(wanted).id.is_some() && is_another(observed, &wanted.identity)
}

pub(super) fn is_not_found(read: &Read) -> bool {
    read.as_ref().is_err_and(|error| error.category() == Category::NotFound)
}

pub(super) fn rejects_address(read: &Read) -> bool {
    read.as_ref().is_err_and(SyncError::rejects_address)
}
