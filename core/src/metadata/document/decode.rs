//! Decodes metadata documents from YAML and JSON. The types derive it, except for the rules here.

use super::{DefaultsSource, Document, DocumentError, Headers, OperationName, PaginationStyle};
use crate::payload::PayloadType;
use crate::payload::fields::{Field, FieldError, read_document};

impl Document {
    /// Reads a document from YAML or JSON. An empty one, or null, is the empty document.
    ///
    /// Unknown keys, keys in wrong case, duplicate keys, a second document, and malformed pointers, formats, references
    /// and includes are errors that name their location. Null means absent, except inside of `body` and of defaults.
    /// If a string is expected, YAML accepts any scalar as its source text; JSON accepts strings only.
    pub fn decode(format: PayloadType, bytes: &[u8]) -> Result<Self, DocumentError> {
        if !matches!(format, PayloadType::Yaml | PayloadType::Json) {
            return Err(DocumentError::Format(format));
        }
        match read_document(format, bytes)? {
            Some(root) => Ok(root.decode(rules)?),
            None => Ok(Self::default()),
        }
    }
}

impl OperationName {
    /// The values of `mode` in documents.
    pub(super) const fn modes(self) -> &'static [&'static str] {
        match self {
            Self::Compare => &["exact", "declared"],
            Self::Update => &["replace", "merge", "merge-patch", "json-patch"],
            Self::List => &["payloads", "names"],
            _ => &[],
        }
    }

    /// The keys of the operation in documents.
    pub(super) const fn keys(self) -> &'static [&'static str] {
        /// Those of all operations, and these.
        macro_rules! keys {
            ($($own:literal),*) => {
                &["method", "path", "query", "headers", "body", "transforms", "validate", $($own),*]
            };
        }
        match self {
            Self::List => keys!["failed", "mode", "pagination", "absent"],
            Self::Update => keys!["failed", "mode"],
            Self::Compare => keys!["mode", "arrays"],
            Self::Get => keys!["failed", "from", "absent"],
            Self::Create | Self::Delete => keys!["failed"],
        }
    }
}

/// Checks keys, and the rules that concern several of them.
fn rules(section: &str, object: &Field, known: &'static [&'static str]) -> Result<(), FieldError> {
    let is_operation = |name: &OperationName| {
        section == "OperationSection" && object.name().strip_prefix("operations.") == Some(name.key())
    };
    let operation = OperationName::ALL.into_iter().find(is_operation);
    object.check_keys(operation.map_or(known, OperationName::keys))?;
    if let Some(operation) = operation {
        mode(object, operation)?;
    }
    match section {
        "OperationSection" => headers(object),
        "AbsentSection" if object.member("status").is_none() && object.member("jq").is_none() => {
            Err(object.fail("needs status or jq"))
        }
        "DefaultsSection" => includes(object),
        "PaginationFields" => keys_of_style(object),
        _ => Ok(()),
    }
}

/// Rejects a mode of another operation.
fn mode(object: &Field, operation: OperationName) -> Result<(), FieldError> {
    let words = operation.modes();
    match object
        .member("mode")
        .and_then(|field| field.scalar_text().map(|text| (text.to_owned(), field.clone())))
    {
        Some((text, field)) if !words.contains(&text.trim()) => {
            Err(field.fail(format!("\"{text}\" is not supported; use {}", words.join(" or "))))
        }
        _ => Ok(()),
    }
}

/// Rejects a header that one map has twice. Later maps of a list may replace headers of earlier ones.
fn headers(object: &Field) -> Result<(), FieldError> {
    let Some(headers) = object.member("headers") else { return Ok(()) };
    let maps = if headers.is_list() { headers.items()? } else { vec![headers] };
    for map in maps {
        let mut seen = Headers::default();
        for (name, field) in map.members() {
            if seen.insert(&name, String::new()).is_some() {
                let fault = format!("the header \"{name}\" is duplicated; names are not case-sensitive");
                return Err(field.fail(fault));
            }
        }
    }
    Ok(())
}

/// Checks that an included file is named after its field or profile.
fn includes(object: &Field) -> Result<(), FieldError> {
    let baseline = object.member("value").map(|field| ("defaults".to_owned(), field));
    let profiles = object.member("profiles").map(Field::members).unwrap_or_default();
    let profiles = profiles.into_iter().map(|(name, field)| (format!("defaults-{name}"), field));
    for (stem, field) in baseline.into_iter().chain(profiles) {
        if let Some(text) = field.scalar_text() {
            DefaultsSource::parse_include(text, &stem).map_err(|reason| field.fail(reason))?;
        }
    }
    Ok(())
}

/// Rejects keys that the style of a pagination does not have.
fn keys_of_style(object: &Field) -> Result<(), FieldError> {
    let style = object.member("style").and_then(|field| field.decode::<PaginationStyle>(rules).ok());
    let Some(style) = style else { return Ok(()) };
    let foreign = |(key, _): &(String, Field)| key != "style" && !style.keys().contains(&key.as_str());
    match object.clone().members().into_iter().find(foreign) {
        Some((_, field)) => {
            let style = object.member_text("style").unwrap_or_default();
            Err(field.fail(format!("is not allowed with style: {style}; remove it, or choose another style")))
        }
        None => Ok(()),
    }
}
