//! Secrets in the place of placeholders, in memory and only for as long as a resource is worked on.

use std::sync::Arc;

use crate::secrets::Scope;
use crate::sync::model::{Resource, Session, SyncError};

impl Session {
    /// `resource` with secrets in the place of placeholders.
    pub(crate) async fn resolved(&self, resource: Resource) -> Result<Resource, SyncError> {
        let scope = Scope::Resource(resource.path.clone());
        let payload = Arc::clone(&resource.payload);
        let resolved = self.secrets.resolve(&scope, resource.descriptor.as_ref(), payload).await?;
        if resolved.secrets.is_empty() {
            return Ok(Resource { payload: resolved.payload, ..resource });
        }
        Ok(Resource { payload: resolved.payload, secrets: resolved.secrets.into(), ..resource })
    }
}
