//! Adds inferred metadata to the document that stores the metadata of a path.

use std::collections::BTreeSet;

use super::AuthoringError;
use super::declare::{stored, undeclarable};
use crate::metadata::Metadata;
use crate::metadata::document::{Document, merge};
use crate::path::{LogicalPath, Selector};
use crate::payload::PayloadType;
use crate::payload::pointer::Pointer;
use crate::repository::{DefaultsEdit, Store};

/// Adds `inferred` metadata to the document of `selector` in `store`, writes the document, and returns it. Blocks.
///
/// Values that the document already states are kept. Lists of secret attributes are united, also with the list that
/// `metadata` states for `governed`, a path that the selector matches: the list of a document replaces the inherited
/// list, so that a shorter list would show secrets.
pub fn add_inferred(
    store: &Store,
    metadata: &Metadata,
    selector: &Selector,
    governed: &LogicalPath,
    inferred: &Document,
) -> Result<Document, AuthoringError> {
    let failed = |error: &dyn std::error::Error| undeclarable(selector, error);
    let before = stored(store, selector)?;
    if *inferred == Document::default() {
        return Ok(before);
    }
    let merged = merge(inferred.to_value(), before.to_value());
    let encoded = crate::payload::encode(PayloadType::Yaml, &merged).map_err(|error| failed(&error))?;
    let mut document = Document::decode(PayloadType::Yaml, &encoded).map_err(|error| failed(&error))?;
    if let Some(resource) = &mut document.resource
        && resource.secret_attributes.is_some()
    {
        let inherited = metadata.rules(governed)?;
        let of = |document: &Document| document.resource.clone().and_then(|known| known.secret_attributes);
        let lists = [of(inferred), of(&before), Some(inherited.resolved().secret_attributes.clone())];
        let all: BTreeSet<Pointer> = lists.into_iter().flatten().flatten().collect();
        resource.secret_attributes = Some(all.into_iter().collect());
    }
    document.validate(selector.is_collection()).map_err(|error| failed(&error))?;
    let yaml = document.encode_yaml().map_err(|error| failed(&error))?;
    store.write_metadata(selector, &yaml, &DefaultsEdit::default())?;
    Ok(document)
}
