//! Where the answers of a server hold a resource: in an envelope, and in the lists of its collection.

use std::collections::BTreeSet;

use http::Method;

use super::choices::{self, choices};
use super::hal;
use super::target::Target;
use crate::metadata::openapi::{ApiOperation, OpenApi, PathItem, only};
use crate::metadata::transform::member_expression;
use crate::payload::pointer::Pointer;

/// The methods whose response describes a resource, in order.
const DESCRIBING: [Method; 4] = [Method::GET, Method::PUT, Method::PATCH, Method::POST];

/// Members that commonly name a resource.
const NAMES: [&str; 4] = ["id", "uuid", "key", "name"];

/// Members beside a resource that describe an answer.
const DESCRIPTIVE: [&str; 13] = [
    "meta", "links", "jsonapi", "included", "status", "success", "message", "messages", "error", "errors",
    "code", "warnings", "version",
];

/// The places of a resource in the answers that a document describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The schema of a resource, without envelopes.
    pub resource: Option<Pointer>,
    /// The member of a read that holds the resource.
    pub envelope: Option<String>,
    /// The member that holds the resource in reads and in requests, as `data` of JSON:API and `volume` of `OpenStack`.
    pub wrapper: Option<String>,
    /// The member of a list that holds its entries, if several members are arrays.
    pub entries: Option<String>,
    /// The array in `_embedded` that holds the entries of a list.
    pub embedded: Option<String>,
    /// Whether a list is an object with a member for each resource, whose name is the id.
    pub is_keyed: bool,
    /// Whether a list only has the names of its members.
    pub lists_names: bool,
    /// Whether the id of a resource is only in its link.
    pub is_linked: bool,
    /// The attributes that answers show as choices with labels.
    pub choices: Vec<String>,
}

impl Shape {
    pub fn of(
        document: &OpenApi,
        target: &Target,
        collection: Option<&PathItem>,
        item: Option<&PathItem>,
        create: Option<&ApiOperation>,
    ) -> Self {
        let answer = |path: Option<&'_ PathItem>, method| path?.operation(method)?.response_schema().cloned();
        let describes = |schema: &Pointer| !document.properties(schema).is_empty();
        let requests = || create.into_iter().chain(item.and_then(PathItem::update));
        let single = answer(item, &Method::GET);
        let enveloped = single.as_ref().and_then(|read| envelope(document, read, requests()));
        let wrapped = single.as_ref().and_then(|read| wrapper(document, read, requests()));
        let (wrapper, wrapped) = wrapped.unzip();
        let (envelope, inner) = enveloped.unzip();
        let inner = inner.or(wrapped);
        let read = || DESCRIBING.iter().filter_map(|method| answer(item, method)).find(describes);
        let read = inner.or_else(read);
        let list = answer(collection, &Method::GET);
        let (embedded, embedded_entry) = list.as_ref().and_then(|list| hal::embedded(document, list)).unzip();
        let (entries, entry) =
            list.as_ref().map(|list| entries(document, target, list, read.as_ref())).unwrap_or_default();
        let keyed = list.as_ref().and_then(|list| document.values(list));
        let is_keyed = keyed.is_some();
        let other = || DESCRIBING.iter().filter_map(|method| answer(collection, method)).find(describes);
        let resource = read.or(embedded_entry.or(entry).or(keyed).filter(describes)).or_else(other);
        let lists_names = list.as_ref().is_some_and(|list| is_list_of_names(document, list));
        let lists_directly = embedded.is_some() || list.is_some_and(|list| document.items(&list).is_some());
        let is_linked =
            lists_directly && resource.as_ref().is_some_and(|resource| hal::is_linked(document, resource));
        let sent = || requests().filter_map(|request| sent(document, request, wrapper.as_deref()));
        let choices = resource.as_ref().map(|resource| choices(document, resource, sent()));
        let choices = choices.unwrap_or_default();
        Self { resource, envelope, wrapper, entries, embedded, is_keyed, lists_names, is_linked, choices }
    }

    /// Returns the schema of a resource in a structured request.
    pub fn sent(&self, document: &OpenApi, request: &ApiOperation) -> Option<Pointer> {
        sent(document, request, self.wrapper.as_deref())
    }

    /// Returns the jq expression that makes the body of a request.
    pub fn write_expression(&self, document: &OpenApi, request: &ApiOperation) -> Option<String> {
        let name = self.wrapper.as_deref().filter(|_| self.sent(document, request).is_some())?;
        Some(format!("{{{}: .}}", serde_json::Value::from(name)))
    }

    /// Returns the jq expression that selects the entries of a list of resources with this attribute as their id.
    pub fn list_expression(&self, document: Option<&OpenApi>, id: &str) -> Option<String> {
        let schema = document.zip(self.resource.as_ref());
        let states_id = schema.is_some_and(|(document, at)| document.members(at).contains_key(id));
        if self.is_keyed && (states_id || id == "id") {
            return Some(format!("[to_entries[] | {{{}: .key}} + .value]", serde_json::Value::from(id)));
        }
        if self.embedded.is_some() || self.is_linked {
            return Some(hal::entries(self.embedded.as_deref(), self.is_linked));
        }
        self.entries.as_deref().map(member_expression)
    }

    /// Returns the jq expression that selects the resource of a read, as requests state it.
    pub fn read_expression(&self) -> Option<String> {
        let held = self.envelope.as_deref().or(self.wrapper.as_deref()).map(member_expression);
        let id = self.is_linked.then(|| hal::ID.to_owned());
        let steps = held.into_iter().chain(id).chain(choices::values(&self.choices));
        steps.reduce(|before, step| format!("{before} | {step}"))
    }
}

/// Returns the member of a read that holds the resource, and its schema: the read has no attribute of a request, and one
/// of its members has some.
fn envelope<'o>(
    document: &OpenApi,
    read: &Pointer,
    requests: impl Iterator<Item = &'o ApiOperation>,
) -> Option<(String, Pointer)> {
    let written: BTreeSet<String> = requests
        .filter_map(|operation| operation.structured_request_schema())
        .flat_map(|schema| document.properties(schema))
        .collect();
    let members = document.members(read);
    if members.keys().any(|name| written.contains(name)) {
        return None;
    }
    let holds = |schema: &Pointer| document.members(schema).keys().any(|name| written.contains(name));
    only(members.into_iter().filter(|(_, schema)| holds(schema)))
}

/// Returns the member of a read and of each request that holds the resource, and its schema in the read: the other
/// members of the read only describe it.
fn wrapper<'o>(
    document: &OpenApi,
    read: &Pointer,
    requests: impl Iterator<Item = &'o ApiOperation>,
) -> Option<(String, Pointer)> {
    let requests: Vec<_> = requests.filter_map(ApiOperation::structured_request_schema).collect();
    let name = only(document.properties(requests.first()?).into_iter())?;
    let is_wrapped = requests.iter().all(|request| document.properties(request).iter().eq([&name]));
    let mut members = document.members(read);
    let inner = members.remove(&name).filter(|_| is_wrapped)?;
    let is_resource = NAMES.iter().any(|name| document.members(&inner).contains_key(*name));
    (is_resource && members.keys().all(|name| DESCRIPTIVE.contains(&name.as_str()))).then_some((name, inner))
}

fn sent(document: &OpenApi, request: &ApiOperation, wrapper: Option<&str>) -> Option<Pointer> {
    let schema = request.structured_request_schema()?;
    match wrapper {
        Some(name) => document.members(schema).remove(name),
        None => Some(schema.clone()),
    }
}

/// Returns whether the entries of a list are texts.
fn is_list_of_names(document: &OpenApi, list: &Pointer) -> bool {
    let entry =
        document.items(list).or_else(|| only(document.arrays(list).into_iter().map(|(_, entry)| entry)));
    entry.is_some_and(|entry| document.is_text(&entry))
}

/// Returns the member of a list that holds its entries, if it is one of several arrays, and the schema of an entry: that
/// of a read, or the one of the array that has the name of the collection, or the only one of objects.
fn entries(
    document: &OpenApi,
    target: &Target,
    list: &Pointer,
    read: Option<&Pointer>,
) -> (Option<String>, Option<Pointer>) {
    if let Some(entry) = document.items(list) {
        return (None, Some(entry));
    }
    let arrays = document.arrays(list);
    if let [(_, entry)] = &arrays[..] {
        return (None, Some(entry.clone()));
    }
    let read = read.and_then(|read| document.resolved(read));
    let is_read = |(_, entry): &&(String, Pointer)| read.as_ref() == Some(entry);
    let is_named = |(name, _): &&(String, Pointer)| Some(name.as_str()) == target.last_literal();
    // An object with an id of its own is a resource, which may have an array of others.
    let is_resource = document.members(list).contains_key("id");
    let only_objects = || only(arrays.iter().filter(|(_, entry)| !is_resource && document.is_object(entry)));
    let found = arrays.iter().find(is_read).or_else(|| arrays.iter().find(is_named)).or_else(only_objects);
    found.map(|(name, entry)| (Some(name.clone()), Some(entry.clone()))).unwrap_or_default()
}
