//! What is secret in requests about a resource and in their answers.

use super::resource::Resource;
use crate::metadata::document::Resolved;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::secrets::{Confidential, Secret};
use crate::server::Request;

/// What of the bodies of requests is secret: what metadata declares, and what is at these places.
pub(crate) fn confidential(declared: &Resolved, places: &[Pointer]) -> Confidential {
    if declared.secret {
        Confidential::Everything
    } else {
        Confidential::at(places.iter().chain(&declared.secret_attributes))
    }
}

impl Resource {
    /// `request`, whose answer may echo secrets of this resource: those that were put into it, and those that
    /// metadata declares.
    pub(crate) fn guarding(&self, request: Request) -> Request {
        let confidential = confidential(self.rules.resolved(), &self.secrets);
        Request { secrets: self.secret_texts().into(), confidential, ..request }
    }

    /// What is secret in the payload: what was put into it, and what metadata declares.
    pub(crate) fn secret_texts(&self) -> Vec<Secret> {
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
