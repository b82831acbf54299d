//! Strict access to the fields of configuration documents. Every mistake is reported with its place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Located, Part, PayloadError, PayloadType, Position, Value, decode_located};
use crate::error::categories;
use crate::secret::is_secret_name;

mod deserializer;
mod schema;
mod types;

pub use deserializer::{Rules, Unset};
pub use schema::json_schema_of;
pub use types::{AnyValue, TextOr, members, one_or_many, parsed, unless_blank, value};

/// A fault of a document or one of its fields. Messages do not show values, except misspelt keywords, nor keys that
/// may be a part of a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The bytes are not exactly one document of the format.
    #[error(transparent)]
    Syntax(#[from] PayloadError),
    /// A key that is not allowed at its place.
    #[error("{position}: {}{}", unknown(.key.as_deref(), .parent), hint(*.suggestion, .known))]
    UnknownKey {
        /// The place of the key.
        position: Position,
        /// The field that contains the key.
        parent: String,
        /// The key as written; `None` if it may be a part of a value, which must not be shown.
        key: Option<String>,
        /// The known key that is most similar.
        suggestion: Option<&'static str>,
        /// All allowed keys.
        known: &'static [&'static str],
    },
    /// A field whose value has the wrong type or is not allowed.
    #[error("{position}: {field}: {reason}")]
    Value {
        /// The place of the field's key, or of the item of a list.
        position: Position,
        /// The field.
        field: String,
        /// The fault.
        reason: Cow<'static, str>,
    },
}

categories!(FieldError: Validation);

fn unknown(key: Option<&str>, parent: &str) -> String {
    match key {
        Some(key) => format!("unknown key \"{key}\" in {parent}"),
        None => format!(
            "unknown key in {parent}, not shown because it may be part of a value; \
             put text with a comma, a colon or braces in quotes"
        ),
    }
}

/// The largest number of keys that a message lists.
const LISTED: usize = 10;

/// The longest key, in bytes, that is treated as a misspelt name.
const LONGEST_NAME: usize = 64;

/// The shortest start of a known key, in bytes, that is recognised as this key.
const SHORTEST_START: usize = 3;

fn hint(suggestion: Option<&'static str>, known: &[&'static str]) -> String {
    match suggestion {
        Some(key) => format!("; did you mean \"{key}\"?"),
        None if known.len() <= LISTED => format!("; use {}", known.join(", ")),
        None => String::new(),
    }
}

/// Returns the root of a YAML or JSON document; `None` if it is empty or null. Duplicate keys in one object and a
/// second document are errors.
pub fn read_document(format: PayloadType, bytes: &[u8]) -> Result<Option<Field>, FieldError> {
    let root = decode_located(format, bytes)?;
    Ok(root.filter(|root| !root.is_null()).map(|node| Field { name: String::new(), node }))
}

/// A value, the name of its field, and its place.
#[derive(Clone, Debug)]
pub struct Field {
    name: String,
    node: Located,
}

impl Field {
    /// Returns the name that errors use, such as `operations.get.transforms[0]`; empty for the document.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an error about this field.
    pub fn fail(&self, reason: impl Into<Cow<'static, str>>) -> FieldError {
        failure(self.node.at, &self.name, reason)
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        self.node.is_null()
    }

    /// Whether this is a blank string, or an empty list.
    pub fn is_blank(&self) -> bool {
        match &self.node.part {
            Part::Scalar { text, .. } => text.as_deref().is_some_and(|text| text.trim().is_empty()),
            Part::Sequence(items) => items.is_empty(),
            Part::Mapping(_) => false,
        }
    }

    /// Whether this is null, blank, the number 0, or an object without members that are not null.
    pub fn is_unset(&self) -> bool {
        match &self.node.part {
            Part::Scalar { value: Ok(Value::Int(0)), .. } => true,
            Part::Mapping(members) => members.values().all(Located::is_null),
            _ => self.is_null() || self.is_blank(),
        }
    }

    /// Returns the value of the field; the error is about the first scalar that has none.
    pub fn into_value(self) -> Result<Value, FieldError> {
        let name = self.name;
        self.node.into_value().map_err(|(at, reason)| failure(at, &name, reason))
    }

    /// Whether this is a scalar, which may replace a list with one item.
    pub fn is_scalar(&self) -> bool {
        matches!(self.node.part, Part::Scalar { .. })
    }

    /// Whether this is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.part, Part::Sequence(_))
    }

    /// Whether this is an object with the member `key`.
    pub fn has_member(&self, key: &str) -> bool {
        matches!(&self.node.part, Part::Mapping(members) if members.contains_key(key))
    }

    /// Returns the member `key`, if this is an object that has it and it is not null.
    pub fn member(&self, key: &str) -> Option<Self> {
        let Part::Mapping(members) = &self.node.part else { return None };
        let node = members.get(key).filter(|node| !node.is_null())?.clone();
        Some(Self { name: member_name(&self.name, key), node })
    }

    /// Returns the field without the member `key`.
    #[must_use]
    pub fn without_member(mut self, key: &str) -> Self {
        if let Part::Mapping(members) = &mut self.node.part {
            members.remove(key);
        }
        self
    }

    /// Returns the text of the member `key`, if this is an object that has one.
    pub fn member_text(&self, key: &str) -> Option<&str> {
        let Part::Mapping(members) = &self.node.part else { return None };
        text_of(members.get(key)?)
    }

    /// Returns the members that are not null, if this is an object.
    pub fn members(self) -> Vec<(String, Self)> {
        let Part::Mapping(members) = self.node.part else { return Vec::new() };
        let present = members.into_iter().filter(|(_, node)| !node.is_null());
        let named = present.map(|(key, node)| {
            let name = member_name(&self.name, &key);
            (key, Self { name, node })
        });
        named.collect()
    }

    /// Returns the text of a scalar; `None` for a list, an object, and a scalar of JSON that is not a string.
    pub fn scalar_text(&self) -> Option<&str> {
        text_of(&self.node)
    }

    /// Returns the text of the part with the name that errors use, if it is a scalar with a text.
    pub fn text_at(&self, name: &str) -> Option<&str> {
        find(&self.name, &self.node, name).and_then(text_of)
    }

    /// Returns the places of all parts, by the names that errors use.
    pub fn places(&self) -> BTreeMap<String, Position> {
        let mut places = BTreeMap::new();
        collect_places(&self.name, &self.node, &mut places);
        places
    }

    /// Returns the field with every string replaced for which `replace` returns a text. Keys stay.
    #[must_use]
    pub fn with_texts(mut self, replace: &dyn Fn(&str) -> Option<String>) -> Self {
        replace_texts(&mut self.node, replace);
        self
    }

    /// Returns the items of a list.
    pub fn items(self) -> Result<Vec<Self>, FieldError> {
        let Part::Sequence(items) = self.node.part else {
            return Err(self.fail(format!("expected a list, found {}", self.node.kind())));
        };
        let named = |(index, node)| Self { name: format!("{}[{index}]", self.name), node };
        Ok(items.into_iter().enumerate().map(named).collect())
    }

    /// Rejects an object with other keys than `known`.
    pub fn check_keys(&self, known: &'static [&'static str]) -> Result<(), FieldError> {
        let Part::Mapping(members) = &self.node.part else { return Ok(()) };
        let unknown = members.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        let Some((key, node)) = unknown.min_by_key(|(_, node)| (node.at.line, node.at.column)) else {
            return Ok(());
        };
        let parent = if self.name.is_empty() { "the document".to_owned() } else { self.name.clone() };
        let suggestion = nearest(key, known.iter().copied());
        let shown = is_name(key) && (suggestion.is_some() || !may_be_value(node, &parent, members, known));
        let key = shown.then(|| key.clone());
        Err(FieldError::UnknownKey { position: node.at, parent, key, suggestion, known })
    }
}

fn text_of(node: &Located) -> Option<&str> {
    match &node.part {
        Part::Scalar { text, .. } => text.as_deref(),
        _ => None,
    }
}

/// Whether a key looks like a name, possibly an invented or misspelt one.
fn is_name(key: &str) -> bool {
    let name = key.strip_prefix('$').unwrap_or(key);
    key.len() <= LONGEST_NAME
        && name.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '.'))
}

/// Whether the unknown key of `node`, a member of `parent`, may be a part of an unquoted value. YAML parses `{text}`
/// as a mapping, and `{id: 1, secret: some,text}` as one with the key `text`.
fn may_be_value(
    node: &Located,
    parent: &str,
    members: &BTreeMap<String, Located>,
    known: &[&'static str],
) -> bool {
    let name = parent.rsplit('.').next().unwrap_or_default();
    let in_secret = is_secret_name(name.split('[').next().unwrap_or_default());
    // If there is also a known key, the author wrote an object and not a text with braces.
    let expected = || members.keys().any(|key| known.contains(&key.as_str()));
    let behind_secret = || {
        members.iter().any(|(key, member)| {
            member.at.line == node.at.line && member.at.column < node.at.column && is_secret_name(key)
        })
    };
    node.is_left_out() || behind_secret() || (in_secret && !expected())
}

fn find<'n>(name: &str, node: &'n Located, wanted: &str) -> Option<&'n Located> {
    match &node.part {
        _ if name == wanted => Some(node),
        Part::Scalar { .. } => None,
        Part::Sequence(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| find(&format!("{name}[{index}]"), item, wanted))
        }
        Part::Mapping(members) => {
            members.iter().find_map(|(key, member)| find(&member_name(name, key), member, wanted))
        }
    }
}

fn collect_places(name: &str, node: &Located, places: &mut BTreeMap<String, Position>) {
    places.insert(name.to_owned(), node.at);
    match &node.part {
        Part::Scalar { .. } => {}
        Part::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_places(&format!("{name}[{index}]"), item, places);
            }
        }
        Part::Mapping(members) => {
            for (key, member) in members {
                collect_places(&member_name(name, key), member, places);
            }
        }
    }
}

fn replace_texts(node: &mut Located, replace: &dyn Fn(&str) -> Option<String>) {
    match &mut node.part {
        Part::Scalar { text: Some(text), value: Ok(Value::String(value)) } => {
            if let Some(replacement) = replace(value) {
                text.clone_from(&replacement);
                *value = replacement;
            }
        }
        Part::Scalar { .. } => {}
        Part::Sequence(items) => items.iter_mut().for_each(|item| replace_texts(item, replace)),
        Part::Mapping(members) => members.values_mut().for_each(|member| replace_texts(member, replace)),
    }
}

fn member_name(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

fn failure(position: Position, field: &str, reason: impl Into<Cow<'static, str>>) -> FieldError {
    let field = if field.is_empty() { "the document" } else { field };
    FieldError::Value { position, field: field.to_owned(), reason: reason.into() }
}

/// Returns the known name that the author of `key` probably meant: the same in another case, else one with few edits,
/// else one that begins with it.
pub fn nearest<'k>(key: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let key_in_lower_case = key.to_ascii_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&key_in_lower_case, &name.to_ascii_lowercase());
    let begins = |name: &str| {
        key.len() >= SHORTEST_START
            && name.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key))
    };
    let near = |name: &'k str| {
        let edits = distance(name);
        (edits <= name.len().max(key.len()) / 3 || begins(name)).then_some((edits, name))
    };
    known.into_iter().filter_map(near).min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::Deserialize;
    use serde::de::IgnoredAny;

    use super::*;

    const KNOWN: &[&str] = &["grantType", "clientId", "clientSecret", "tokenURL"];
    const BENEATH: &[&str] = &["prompt", "persistInSession"];

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only keys are checked")]
    struct Root {
        oauth2: Option<OAuth2>,
        password: Option<Prompt>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only keys are checked")]
    struct OAuth2 {
        grant_type: Option<IgnoredAny>,
        client_id: Option<IgnoredAny>,
        client_secret: Option<IgnoredAny>,
        #[serde(rename = "tokenURL")]
        token_url: Option<IgnoredAny>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only keys are checked")]
    struct Prompt {
        prompt: Option<IgnoredAny>,
        persist_in_session: Option<IgnoredAny>,
    }

    /// Returns the error of a document.
    fn refusal(text: &str) -> String {
        let format = if text.starts_with("{\"") { PayloadType::Json } else { PayloadType::Yaml };
        let root = read_document(format, text.as_bytes()).unwrap().unwrap();
        root.decode::<Root>(|_, object, known| object.check_keys(known)).unwrap_err().to_string()
    }

    const HIDDEN: &str =
        "not shown because it may be part of a value; put text with a comma, a colon or braces in quotes";

    #[rstest]
    #[case::colon("oauth2: {clientId: a, clientSecret:CANARY}", "line 1, column 23", "oauth2")]
    #[case::colon_on_its_line("oauth2:\n  clientSecret:CANARY: x", "line 2, column 3", "oauth2")]
    #[case::comma("oauth2: {clientId: a, clientSecret: abc,CANARY}", "line 1, column 41", "oauth2")]
    #[case::comma_and_value("oauth2: {clientSecret: abc,CANARY: 1}", "line 1, column 28", "oauth2")]
    #[case::next_line("oauth2: {clientId: a,\n  CANARY}", "line 2, column 3", "oauth2")]
    #[case::braces("password: {CANARY}", "line 1, column 12", "password")]
    #[case::braces_and_colon("password: {CANARY: }", "line 1, column 12", "password")]
    #[case::braces_and_value("password: {CANARY: 1}", "line 1, column 12", "password")]
    #[case::no_name("oauth2:\n  'CANARY/+=': x", "line 2, column 3", "oauth2")]
    #[case::of_json("{\"password\": {\"CANARY\": 1}}", "line 1, column 15", "password")]
    fn keys_that_may_be_values_are_not_shown(#[case] text: &str, #[case] at: &str, #[case] parent: &str) {
        let hint = hint(None, if parent == "oauth2" { KNOWN } else { BENEATH });
        assert_eq!(refusal(text), format!("{at}: unknown key in {parent}, {HIDDEN}{hint}"));
    }

    #[rstest]
    #[case::line(
        "oauth2:\n  scpoe: x",
        "\"scpoe\" in oauth2; use grantType, clientId, clientSecret, tokenURL"
    )]
    #[case::line_without_value(
        "oauth2:\n  bearer:",
        "\"bearer\" in oauth2; use grantType, clientId, clientSecret, tokenURL"
    )]
    #[case::line_behind_a_secret(
        "oauth2:\n  clientSecret: x\n  scope: x",
        "\"scope\" in oauth2; use grantType, clientId, clientSecret, tokenURL"
    )]
    #[case::flow(
        "oauth2: {scope: x}",
        "\"scope\" in oauth2; use grantType, clientId, clientSecret, tokenURL"
    )]
    #[case::near_in_flow(
        "oauth2: {clientSecret: x, clientid: y}",
        "\"clientid\" in oauth2; did you mean \"clientId\"?"
    )]
    #[case::near_in_a_secret("password: {promt: true}", "\"promt\" in password; did you mean \"prompt\"?")]
    #[case::start_of_another(
        "password: {persist: true}",
        "\"persist\" in password; did you mean \"persistInSession\"?"
    )]
    #[case::beside_a_known(
        "password: {prompt: true, ask: x}",
        "\"ask\" in password; use prompt, persistInSession"
    )]
    #[case::dollar(
        "{\"oauth2\": {\"$schema\": 1}}",
        "\"$schema\" in oauth2; use grantType, clientId, clientSecret, tokenURL"
    )]
    fn misspelt_keys_are_shown(#[case] text: &str, #[case] expected: &str) {
        let message = refusal(text);
        assert!(message.ends_with(&format!("unknown key {expected}")), "{message}");
    }
}
