//! `resource.defaults`: the default values of payloads, and how documents are merged.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::schema_forms as schema;
use super::{DocumentError, IncludeError};
use crate::payload::fields::{AnyValue, TextOr, members};
use crate::payload::{Object, Value};
use crate::repository::DEFAULTS_EXTENSIONS;

/// Default values of payloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DefaultsSection {
    /// How inherited defaults are handled (default: inherit).
    pub mode: Option<DefaultsMode>,
    /// The profiles to apply, in order.
    pub use_profiles: Option<Vec<String>>,
    /// The baseline: an object, or an include of a file.
    #[schemars(schema_with = "schema::source")]
    pub value: Option<DefaultsSource>,
    /// Named defaults that useProfiles selects.
    #[schemars(schema_with = "schema::sources")]
    #[serde(deserialize_with = "members")]
    pub profiles: Option<BTreeMap<String, DefaultsSource>>,
}

/// How a layer handles the defaults of earlier layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DefaultsMode {
    /// Adds to the inherited defaults.
    Inherit,
    /// Drops the inherited baseline and selection. Inherited profiles can still be selected.
    Ignore,
    /// Drops all inherited defaults.
    Replace,
}

/// The source of defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "TextOr<AnyValue>")]
pub enum DefaultsSource {
    /// The defaults are in the document.
    Inline(Object),
    /// The defaults are the content of this file next to the document.
    Include(String),
}

impl DefaultsSource {
    /// Parses `{{include <stem>.<extension>}}`; surrounding white space is ignored. The error is the fault.
    pub(super) fn parse_include(text: &str, stem: &str) -> Result<Self, String> {
        let file = included(text);
        let extension = file.and_then(|file| file.strip_prefix(stem)?.strip_prefix('.'));
        match (file, extension) {
            (Some(file), Some(extension)) if DEFAULTS_EXTENSIONS.contains(&extension) => {
                Ok(Self::Include(file.to_owned()))
            }
            _ => Err(format!(
                "a string here must be exactly \"{{{{include {stem}.<extension>}}}}\", \
                 with the extension {}",
                DEFAULTS_EXTENSIONS.join(", ")
            )),
        }
    }

    /// Returns the included file; `None` for inline defaults.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::Include(file) => Some(file),
        }
    }
}

/// Returns the file of `{{include <file>}}`.
fn included(text: &str) -> Option<&str> {
    text.trim().strip_prefix("{{include ")?.strip_suffix("}}")
}

impl TryFrom<TextOr<AnyValue>> for DefaultsSource {
    type Error = String;

    fn try_from(written: TextOr<AnyValue>) -> Result<Self, String> {
        match written {
            TextOr::Other(AnyValue(Value::Object(members))) => Ok(Self::Inline(members)),
            TextOr::Other(AnyValue(other)) => Err(format!("expected an object, found {}", other.kind())),
            TextOr::Text(text) => included(&text)
                .map(|file| Self::Include(file.to_owned()))
                .ok_or_else(|| "a string here must include a file".to_owned()),
        }
    }
}

impl Serialize for DefaultsSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(members) => members.serialize(serializer),
            Self::Include(file) => serializer.collect_str(&format_args!("{{{{include {file}}}}}")),
        }
    }
}

/// The merged defaults of all layers so far.
#[derive(Clone, Debug, Default)]
pub(super) struct FoldedDefaults {
    value: Object,
    selection: Vec<String>,
    catalog: BTreeMap<String, Object>,
}

/// Reads an included file by its name next to the document, and decodes it.
type Include<'f> = &'f dyn Fn(&str) -> Result<Value, IncludeError>;

impl FoldedDefaults {
    /// Merges a later layer. All of its includes are read, also those of profiles that are not selected, so a document
    /// that names a missing file is always invalid.
    pub fn push(&mut self, layer: &DefaultsSection, include: Include<'_>) -> Result<(), DocumentError> {
        const FIELD: &str = "resource.defaults";
        match layer.mode.unwrap_or(DefaultsMode::Inherit) {
            DefaultsMode::Inherit => {}
            DefaultsMode::Ignore => {
                self.value.clear();
                self.selection.clear();
            }
            DefaultsMode::Replace => *self = Self::default(),
        }
        for (name, source) in layer.profiles.iter().flatten() {
            let members = members_of(source, &format!("{FIELD}.profiles.{name}"), include)?;
            merge_members(self.catalog.entry(name.clone()).or_default(), members);
        }
        if let Some(selection) = &layer.use_profiles {
            self.selection.clone_from(selection);
        }
        if let Some(source) = &layer.value {
            merge_members(&mut self.value, members_of(source, &format!("{FIELD}.value"), include)?);
        }
        Ok(())
    }

    /// Returns the baseline merged with the selected profiles, in their order.
    pub fn effective(mut self) -> Result<Object, DocumentError> {
        for name in self.selection {
            let Some(profile) = self.catalog.get(&name) else {
                let known = self.catalog.into_keys().collect();
                return Err(DocumentError::UnknownProfile { position: None, profile: name, known });
            };
            merge_members(&mut self.value, profile.clone());
        }
        Ok(self.value)
    }
}

fn members_of(source: &DefaultsSource, field: &str, include: Include<'_>) -> Result<Object, DocumentError> {
    let file = match source {
        DefaultsSource::Inline(members) => return Ok(members.clone()),
        DefaultsSource::Include(file) => file,
    };
    let failed = |source| DocumentError::Include {
        position: None,
        field: field.to_owned(),
        file: file.clone(),
        source,
    };
    match include(file).map_err(failed)? {
        Value::Object(members) => Ok(members),
        other => {
            Err(DocumentError::invalid(field, format!("{file} must hold an object, not {}", other.kind())))
        }
    }
}

/// Merges `over` into `defaults`. Objects are merged by member; other values, and values of another type, are replaced.
/// A member that is null in `over` is null in the result, which lets a payload override a default with null. If `over`
/// itself is null, the result is `defaults`.
pub fn merge(defaults: Value, over: Value) -> Value {
    match (defaults, over) {
        (Value::Object(mut members), Value::Object(over)) => {
            merge_members(&mut members, over);
            Value::Object(members)
        }
        (defaults, Value::Null) => defaults,
        (_, over) => over,
    }
}

fn merge_members(members: &mut Object, over: Object) {
    for (key, over) in over {
        match (members.get_mut(&key), over) {
            (Some(Value::Object(below)), Value::Object(over)) => merge_members(below, over),
            (_, over) => {
                members.insert(key, over);
            }
        }
    }
}

/// Removes the members of `value` that equal their default, and objects that become empty, so that [`merge`] with
/// `defaults` returns the same result.
///
/// A member that `value` lacks but `defaults` has is part of the merged result; only null overrides it.
pub fn compact(value: Value, defaults: &Value) -> Value {
    match (value, defaults) {
        (Value::Object(members), Value::Object(defaults)) => {
            Value::Object(compact_members(members, defaults))
        }
        (value, _) => value,
    }
}

fn compact_members(members: Object, defaults: &Object) -> Object {
    let needed = members.into_iter().filter_map(|(key, member)| match (member, defaults.get(&key)) {
        (Value::Object(members), Some(Value::Object(defaults))) => {
            let rest = compact_members(members, defaults);
            (!rest.is_empty()).then_some((key, Value::Object(rest)))
        }
        (member, Some(default)) if member == *default => None,
        (member, _) => Some((key, member)),
    });
    needed.collect()
}
