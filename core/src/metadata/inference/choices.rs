//! Choices that answers show with a label, such as `{"value": "active", "label": "Active"}`, and that requests
//! state as the value only, as `NetBox` does.

use crate::metadata::openapi::OpenApi;
use crate::metadata::transform::member_expression;
use crate::payload::pointer::Pointer;

/// The members of a choice in answers.
const MEMBERS: [&str; 3] = ["id", "label", "value"];

/// Returns the attributes of `resource` in answers that are choices, and that the schemas of requests have as values.
pub fn choices(document: &OpenApi, resource: &Pointer, sent: impl Iterator<Item = Pointer>) -> Vec<String> {
    let is_choice = |schema: &Pointer| {
        let members = document.members(schema);
        members.contains_key("label")
            && members.contains_key("value")
            && members.keys().all(|name| MEMBERS.contains(&name.as_str()))
    };
    let mut shown = document.members(resource);
    shown.retain(|_, schema| is_choice(schema));
    let sent: Vec<(String, Pointer)> = sent.flat_map(|schema| document.members(&schema)).collect();
    let is_value = |name: &String| {
        let mut schemas = sent.iter().filter(|(sent, _)| sent == name).map(|(_, schema)| schema).peekable();
        schemas.peek().is_some() && schemas.all(|schema| !document.is_object(schema))
    };
    shown.into_keys().filter(is_value).collect()
}

/// Returns the jq expression that replaces choices by their values; `None` without choices. Null stays.
pub fn values(choices: &[String]) -> Option<String> {
    let members: Vec<String> = choices.iter().map(|name| member_expression(name)).collect();
    (!members.is_empty()).then(|| format!("({} | objects) |= .value", members.join(", ")))
}
