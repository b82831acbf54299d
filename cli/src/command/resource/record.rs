//! Records of resources after a command, which `--verbose` prints.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, PayloadType, Value};
use declarest_core::secrets::placeholder_places;
use declarest_core::sync::{Observed, Remote, Resource};
use serde::Serialize;

use crate::error::Failure;
use crate::output::{Output, lines};

/// One resource of the server and its names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Record {
    logical_path: String,
    collection_path: String,
    local_alias: String,
    #[serde(rename = "RemoteID")]
    remote_id: String,
    resolved_remote_path: String,
    payload: Value,
    payload_descriptor: RecordDescriptor,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RecordDescriptor {
    payload_type: &'static str,
    media_type: &'static str,
    extension: Cow<'static, str>,
}

impl Record {
    /// Creates the record of `resource` with the state of the server. Declared secrets and values of placeholders are
    /// masked.
    pub fn new(resource: &Resource, observed: &Observed) -> Self {
        let payload = observed.payload.clone().unwrap_or_default();
        let rules = &observed.at.rules;
        let remote_id = rules.observed_id(&payload).unwrap_or_else(|| observed.at.identity.remote_id.clone());
        let mut secrets = resource.rules.resolved().declared_secrets();
        secrets.add(&placeholder_places(&resource.payload));
        let descriptor = resource.descriptor.clone();
        let descriptor = descriptor.unwrap_or_else(|| Descriptor::of(PayloadType::Json));
        Self {
            logical_path: resource.path.to_string(),
            collection_path: resource.path.parent().map(|parent| parent.to_string()).unwrap_or_default(),
            local_alias: resource.identity.alias.clone(),
            resolved_remote_path: observed.address(),
            remote_id,
            payload: secrets.conceal(payload),
            payload_descriptor: RecordDescriptor {
                payload_type: descriptor.payload_type.name(),
                media_type: descriptor.media_type,
                extension: descriptor.extension,
            },
        }
    }
}

/// Reads the current state of `resources` from the server. `ids` are those that it assigned to created resources.
pub async fn observe(
    remote: &Arc<Remote>,
    resources: Vec<Resource>,
    ids: &HashMap<LogicalPath, String>,
) -> Result<Vec<(Resource, Observed)>, Failure> {
    let mut observed = Vec::with_capacity(resources.len());
    for resource in resources {
        let found = match ids.get(&resource.path) {
            Some(id) => remote.read_created(&resource, id).await?,
            None => remote.read(&resource).await?,
        };
        observed.push((resource, found));
    }
    Ok(observed)
}

/// Prints the records: a single one, a list, or, as text, their paths.
pub fn show(output: &Output, observed: &[(Resource, Observed)], single: bool) -> Result<(), Failure> {
    let records: Vec<Record> =
        observed.iter().map(|(resource, observed)| Record::new(resource, observed)).collect();
    let paths: Vec<&str> = observed.iter().map(|(resource, _)| resource.path.as_str()).collect();
    let text = output.is_text().then(|| lines(&paths));
    match (&records[..], single) {
        ([record], true) => Ok(output.show_about(&paths, record, text.as_deref())?),
        _ => Ok(output.show_about(&paths, &records, text.as_deref())?),
    }
}
