//! Infers which attributes only the server states, and which only some requests may state.

use std::collections::BTreeSet;

use super::hal;
use super::identity::{IdentityFields, letters};
use super::shape::Shape;
use crate::metadata::openapi::{ApiOperation, OpenApi, PathItem};
use crate::payload::pointer::Pointer;
use crate::secret::is_secret_name;

/// The letters of attributes with the author or the time of a change.
const CHANGES: [&str; 14] = [
    "createdby", "modifiedby", "updatedby", "changedby", "lastmodifiedby", "createdat", "modifiedat",
    "updatedat", "changedat", "createdon", "modifiedon", "updatedon", "changedon", "lastmodified",
];

/// The attributes that do not travel in both directions, without those of the identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// Attributes of answers that no request can set.
    pub fixed: BTreeSet<String>,
    /// Attributes that answers do not show.
    pub hidden: BTreeSet<String>,
    /// Attributes with `format: password`, and hidden ones with a name of secrets.
    pub secret: BTreeSet<String>,
    /// Attributes of answers, or of the other request, that the schema of a create forbids.
    pub not_created: BTreeSet<String>,
    /// The same for an update.
    pub not_updated: BTreeSet<String>,
}

/// Infers the attributes from the flags of properties, and from the requests whose schemas forbid other properties.
/// `shape` states the schema of a resource in answers.
pub fn one_way(
    document: &OpenApi,
    create: Option<&ApiOperation>,
    item: Option<&PathItem>,
    shape: &Shape,
    identity: &IdentityFields,
) -> OneWay {
    let answer = shape.resource.as_ref();
    let create = create.and_then(|operation| shape.sent(document, operation));
    let update = item.and_then(PathItem::update).and_then(|operation| shape.sent(document, operation));
    let (create, update) = (create.as_ref(), update.as_ref());
    let names = |schema: Option<&Pointer>| {
        schema.map(|schema| document.writable_properties(schema)).unwrap_or_default()
    };
    let (created, updated) = (names(create), names(update));
    let forbids = |schema: Option<&Pointer>| schema.is_some_and(|schema| document.is_closed(schema));
    let shown = answer.map(|answer| document.properties(answer)).unwrap_or_default();
    // An answer about something else has few attributes of a request.
    let is_same = !created.is_empty() && created.intersection(&shown).count() * 2 >= created.len();
    let mut fixed = answer.map(|answer| document.flagged_properties(answer, "readOnly")).unwrap_or_default();
    if let Some(answer) = answer.filter(|_| is_same) {
        // Many documents do not name all attributes of a request, but a time that none names is the server's.
        fixed.extend(if forbids(create) { shown.clone() } else { document.times(answer) });
    }
    fixed.extend(hal::RESERVED.iter().filter(|name| shown.contains(**name)).map(|name| (*name).to_owned()));
    fixed.retain(|name| !created.contains(name) && !updated.contains(name));
    // Many documents have one schema for requests and answers. Of its attributes, the server sets these.
    let required: BTreeSet<String> =
        create.into_iter().chain(update).flat_map(|schema| document.required_properties(schema)).collect();
    let is_change = |name: &&String| CHANGES.iter().any(|change| letters(name).eq(change.bytes()));
    fixed.extend(shown.difference(&required).filter(is_change).cloned());
    fixed.retain(|name| *name != identity.id && *name != identity.alias);

    let flagged = |schema: &Pointer| document.flagged_properties(schema, "writeOnly");
    let hidden: BTreeSet<String> = create.into_iter().chain(update).flat_map(flagged).collect();
    let passwords =
        create.into_iter().chain(update).chain(answer).flat_map(|schema| document.passwords(schema));
    let secret = hidden.iter().filter(|name| is_secret_name(name)).cloned().chain(passwords).collect();
    let mut stated = &created | &updated;
    if is_same {
        // Files have the attributes of answers.
        stated.extend(shown.difference(&fixed).cloned());
    }
    let forbidden = |schema, names| if forbids(schema) { &stated - names } else { BTreeSet::new() };
    let (mut not_created, mut not_updated) = (forbidden(create, &created), forbidden(update, &updated));
    if shape.is_linked {
        not_created.insert(identity.id.clone());
        not_updated.insert(identity.id.clone());
    }
    OneWay { fixed, hidden, secret, not_created, not_updated }
}
