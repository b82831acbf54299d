//! Secrets in the place of placeholders, in memory and only for as long as a resource is worked on.

use std::sync::Arc;

use super::resource::{Resource, confidential};
use super::{Session, SyncError};
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::secrets::{Scope, Secret};
use crate::server::Request;

impl Session {
    /// `resource` with secrets in the place of placeholders.
    pub(super) async fn resolved(&self, resource: Resource) -> Result<Resource, SyncError> {
        let scope = Scope::Resource(resource.path.clone());
        let payload = Arc::clone(&resource.payload);
        let resolved = self.secrets.resolve(&scope, resource.descriptor.as_ref(), payload).await?;
        if resolved.secrets.is_empty() {
            return Ok(Resource { payload: resolved.payload, ..resource });
        }
        Ok(Resource { payload: resolved.payload, secrets: resolved.secrets.into(), ..resource })
    }
}

impl Resource {
    /// `request`, whose answer may echo secrets of this resource: those that were put into it, and those that
    /// metadata declares.
    pub(super) fn guarding(&self, request: Request) -> Request {
        let confidential = confidential(self.rules.resolved(), &self.secrets);
        Request { secrets: self.secret_texts().into(), confidential, ..request }
    }

    /// What is secret in the payload: what was put into it, and what metadata declares.
    pub(super) fn secret_texts(&self) -> Vec<Secret> {
        let resolved = self.rules.resolved();
        let whole = resolved.secret || self.secrets.iter().any(Pointer::is_root);
        let mut secrets = Vec::new();
        if whole {
            add_texts(&self.payload, &mut secrets);
        } else {
            let places = self.secrets.iter().chain(&resolved.secret_attributes);
            places.filter_map(|at| at.get(&self.payload)).for_each(|part| add_texts(part, &mut secrets));
        }
        secrets
    }
}

fn add_texts(value: &Value, texts: &mut Vec<Secret>) {
    match value {
        Value::String(text) => texts.push(Secret::from(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| add_texts(member, texts)),
        Value::Bytes(bytes) => {
            texts.extend(std::str::from_utf8(bytes).ok().map(|text| Secret::from(text.to_owned())));
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
    }
}
