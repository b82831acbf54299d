//! `resource.defaults`: what payloads inherit, and how layers of it fold.

use std::collections::BTreeMap;

use super::{DocumentError, IncludeError};
use crate::payload::fields::Keyword;
use crate::payload::{Object, Value};
use crate::repository::DEFAULTS_EXTENSIONS;

/// `resource.defaults`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefaultsSection {
    /// What happens to what earlier layers say; [`DefaultsMode::Inherit`] if absent.
    pub mode: Option<DefaultsMode>,
    /// The profiles to apply, in order; absent inherits the selection, empty selects none.
    pub use_profiles: Option<Vec<String>>,
    /// The baseline.
    pub value: Option<DefaultsSource>,
    /// Alternatives to select from, by name.
    pub profiles: Option<BTreeMap<String, DefaultsSource>>,
}

/// What a layer does to the defaults of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultsMode {
    /// Adds to them.
    Inherit,
    /// Drops their baseline and selection; their profiles can still be selected.
    Ignore,
    /// Drops all of them.
    Replace,
}

impl Keyword for DefaultsMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("inherit", Self::Inherit), ("ignore", Self::Ignore), ("replace", Self::Replace)];
}

/// Where defaults come from.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultsSource {
    /// They stand in the document.
    Inline(Object),
    /// They are the content of this file next to the document.
    Include(String),
}

impl DefaultsSource {
    /// Parses `{{include <stem>.<extension>}}`, ignoring white space around it; `Err` says what is wrong.
    pub(super) fn parse_include(text: &str, stem: &str) -> Result<Self, String> {
        let file = text.trim().strip_prefix("{{include ").and_then(|rest| rest.strip_suffix("}}"));
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

    /// The included file; `None` for inline defaults.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::Include(file) => Some(file),
        }
    }

    /// The include as documents have it; `None` for inline defaults.
    pub fn include_text(&self) -> Option<String> {
        self.file().map(|file| format!("{{{{include {file}}}}}"))
    }
}

/// The defaults of all layers so far.
#[derive(Clone, Debug, Default)]
pub(super) struct FoldedDefaults {
    value: Object,
    selection: Vec<String>,
    catalog: BTreeMap<String, Object>,
}

/// Reads an included file, by its name next to the document, as a value.
type Include<'f> = &'f dyn Fn(&str) -> Result<Value, IncludeError>;

impl FoldedDefaults {
    /// Lays a later layer over these. All of its includes are read, also of profiles that nothing selects:
    /// a document that names a missing file is invalid wherever it applies.
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

    /// The baseline with the selected profiles over it, in their order.
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

/// Lays `over` over `defaults`: objects member by member; anything else, and a change of kind, replaces. A
/// null member stays, it is how a payload says that it wants none of a default; a null as a whole gives the
/// defaults.
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

/// What of `value` has to be stored so that [`merge`] with `defaults` gives the same as with all of it:
/// members equal to their default are left out, and so are objects of which nothing is left.
///
/// A member that `value` lacks and `defaults` has comes back; only null overrides by absence.
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
