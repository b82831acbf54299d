//! Recognises redirects to another resource. Servers redirect from the former name of what was renamed, or moved to
//! another owner. The resource there is not the one that Git declares, even if it was in the past.

use super::server::Remote;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::{Detour, Response};
use crate::sync::model::{Doubt, Resource, SyncError, Wanted};

impl Remote {
    /// Fails if a redirect has replaced the name of `at` or of one of its parents in the path of its read. A redirect
    /// from a name to an id is none of these.
    pub(super) async fn check_names(
        &self,
        at: &Resource,
        payload: &Value,
        response: &Response,
    ) -> Result<(), SyncError> {
        let Some(detour) = &response.detour else { return Ok(()) };
        let path = at.declared.as_ref().unwrap_or(&at.path);
        let names = [at.name(), &at.identity.alias, &at.identity.remote_id];
        let shown = at.rules.identity().alias().evaluate(payload).ok();
        let is_same = shown.is_some_and(|shown| Wanted::of(at).answers_to(&shown));
        match names.into_iter().find(|name| detour.replaces(name)) {
            Some(name) if !is_same && !at.rules.resolved().singleton => Err(moved(path, detour, name)),
            _ => self.check_parents(&at.path, response).await,
        }
    }

    /// Fails if a redirect has replaced the name of a parent of `path`.
    pub(super) async fn check_parents(
        &self,
        path: &LogicalPath,
        response: &Response,
    ) -> Result<(), SyncError> {
        let Some(detour) = &response.detour else { return Ok(()) };
        for ancestor in path.ancestors().filter(|ancestor| !ancestor.is_root()) {
            let Some(parent) = self.member(&ancestor).await? else { continue };
            if !detour.replaces(parent.name()) {
                continue;
            }
            let located = Box::pin(self.located(&ancestor)).await?;
            let id = parent.rules.path_names().decode(located.name());
            if !response.answers_at(&id) {
                return Err(moved(path, detour, parent.name()));
            }
        }
        Ok(())
    }
}

fn moved(path: &LogicalPath, detour: &Detour, name: &str) -> SyncError {
    SyncError::Undecided(path.clone(), Doubt::Moved(detour.to.clone(), name.to_owned()))
}
