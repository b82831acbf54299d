//! Infers which attributes only the server states, and which only some requests may state.

use std::collections::BTreeSet;

use http::Method;

use super::identity::IdentityFields;
use crate::metadata::openapi::{ApiOperation, OpenApi, PathItem};
use crate::payload::pointer::Pointer;

/// The methods of updates, in order.
pub const UPDATES: [Method; 3] = [Method::PUT, Method::PATCH, Method::POST];

/// The attributes that do not travel in both directions, without those of the identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// Attributes of answers that no request can set.
    pub fixed: BTreeSet<String>,
    /// Attributes that answers do not show.
    pub hidden: BTreeSet<String>,
    /// Attributes that the schema of a create names and that of an update forbids.
    pub initial: BTreeSet<String>,
}

/// Returns the update that the document describes.
pub fn update(item: Option<&PathItem>) -> Option<&ApiOperation> {
    item.and_then(|path| UPDATES.iter().find_map(|method| path.operation(method)))
}

/// Infers the attributes from the flags of properties, and from the requests whose schemas forbid other properties.
/// `answer` is the schema of a resource in answers.
pub fn one_way(
    document: &OpenApi,
    collection: Option<&PathItem>,
    item: Option<&PathItem>,
    answer: Option<&Pointer>,
    identity: &IdentityFields,
) -> OneWay {
    let create = collection.and_then(|path| path.operation(&Method::POST)?.structured_request_schema());
    let update = update(item).and_then(|operation| operation.structured_request_schema());
    let names = |schema: Option<&Pointer>| {
        schema.map(|schema| document.writable_properties(schema)).unwrap_or_default()
    };
    let (created, updated) = (names(create), names(update));
    let forbids = |schema: Option<&Pointer>| schema.is_some_and(|schema| document.is_closed(schema));

    let mut fixed = BTreeSet::new();
    if let Some(answer) = answer {
        fixed = document.flagged_properties(answer, "readOnly");
        let shown = document.properties(answer);
        // An answer about something else does not have the attributes of a request.
        if created.contains(&identity.alias) && shown.contains(&identity.alias) {
            // Many documents do not name all attributes of a request, but a time that none names is the server's.
            fixed.extend(if forbids(create) { shown } else { document.times(answer) });
        }
    }
    fixed.retain(|name| !created.contains(name) && !updated.contains(name));
    fixed.retain(|name| *name != identity.id && *name != identity.alias);

    let flagged = |schema: &Pointer| document.flagged_properties(schema, "writeOnly");
    let hidden = create.into_iter().chain(update).flat_map(flagged).collect();
    let initial = if forbids(update) { &created - &updated } else { BTreeSet::new() };
    OneWay { fixed, hidden, initial }
}
