//! Splits lists into the resources that they hold.

use std::collections::BTreeSet;

use super::{AuthoringError, Draft};
use crate::metadata::{Metadata, MetadataError, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;

/// Members that name an item if metadata does not, in order.
const NAMES: [&str; 7] = ["clientId", "id", "name", "alias", "key", "uuid", "uid"];

/// Returns whether a payload at `path` is a list: an array, or an object with an array called `items`, unless it has the
/// name of the resource at `path`, and metadata describes no members.
pub fn is_list(metadata: &Metadata, path: &LogicalPath, payload: &Value) -> Result<bool, AuthoringError> {
    if items_of(payload).is_none() {
        return Ok(false);
    }
    Ok(metadata.has_wildcard_child(path)? || !names_itself(metadata, path, payload)?)
}

/// Whether an object has the name of the resource at `path`.
pub(super) fn names_itself(
    metadata: &Metadata,
    path: &LogicalPath,
    payload: &Value,
) -> Result<bool, AuthoringError> {
    let rules = metadata.rules(path)?;
    let own_name = rules.path_names().decode(path.name());
    Ok(stated_names(&rules, payload).chain(well_known_names(payload)).any(|name| name == own_name))
}

pub(super) fn items_of(payload: &Value) -> Option<&[Value]> {
    payload.as_array().or_else(|| payload.get("items")?.as_array())
}

/// Returns one draft for each item of the list `payload`, sorted by path.
///
/// The path of an item is the collection and the item's name. The name is its alias, otherwise its id, if metadata
/// defines them and the item has them; otherwise the first of some well-known members. An item of the form
/// `{LogicalPath, Payload}` states its path itself.
pub fn drafts_of(
    metadata: &Metadata,
    collection: &LogicalPath,
    payload: &Value,
) -> Result<Vec<Draft>, AuthoringError> {
    let not_a_list = || AuthoringError::NotAList(collection.clone());
    let items = items_of(payload).ok_or_else(not_a_list)?;
    let rules = metadata.rules(collection)?;
    let drafts = items.iter().enumerate().map(|(index, item)| draft(&rules, collection, index, item));
    let mut drafts: Vec<Draft> = drafts.collect::<Result<_, _>>()?;
    drafts.sort_by(|a, b| a.path.cmp(&b.path));
    let mut paths = BTreeSet::new();
    match drafts.iter().find(|draft| !paths.insert(&draft.path)) {
        Some(second) => Err(AuthoringError::SeveralItems(second.path.clone())),
        None => Ok(drafts),
    }
}

fn draft(
    rules: &Rules,
    collection: &LogicalPath,
    index: usize,
    item: &Value,
) -> Result<Draft, AuthoringError> {
    let unusable = |error: &dyn std::error::Error| AuthoringError::ItemPath {
        collection: collection.clone(),
        index,
        reason: error.to_string(),
    };
    if let (Some(path), Some(payload)) =
        (item.get("LogicalPath").and_then(Value::as_str), item.get("Payload"))
    {
        let path = LogicalPath::parse(path).map_err(|error| unusable(&error))?;
        return Ok(Draft::new(path, payload.clone()));
    }
    let name = name(rules, item).ok_or_else(|| AuthoringError::Nameless {
        collection: collection.clone(),
        index,
        names: NAMES.join(", "),
    })?;
    let path = collection.join(&name).map_err(|source| MetadataError::EntryPath {
        collection: collection.clone(),
        alias: name,
        source,
    })?;
    Ok(Draft::new(path, item.clone()))
}

pub(super) fn name(rules: &Rules, item: &Value) -> Option<String> {
    stated_names(rules, item).next().or_else(|| well_known_names(item).next())
}

/// Returns the alias and the id of an item, as far as metadata defines them and the item has them.
fn stated_names(rules: &Rules, item: &Value) -> impl Iterator<Item = String> {
    let (resolved, identity) = (rules.resolved(), rules.identity());
    let stated =
        [resolved.alias.as_ref().map(|_| identity.alias()), resolved.id.as_ref().map(|_| identity.id())];
    stated.into_iter().flatten().filter_map(|template| template.evaluate(item).ok())
}

fn well_known_names(item: &Value) -> impl Iterator<Item = String> {
    let text = |name: &&str| Some(item.get(name)?.scalar_text()?.trim().to_owned());
    NAMES.iter().filter_map(text).filter(|text| !text.is_empty())
}
