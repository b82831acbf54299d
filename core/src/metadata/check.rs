//! Validates a document, including the templates and jq expressions in it.

use super::document::{Checks, Document, DocumentError, TemplateField};
use super::transform::Pipeline;
use super::transform::Step;
use crate::language::template::IdentityTemplate;
use crate::language::template::{Kind, Template};
use crate::payload::PayloadType;

/// Checks `document` with [`Document::validate`], and the templates and jq expressions in it. `collection` is whether
/// the document is in a directory `_`.
pub fn check(document: &Document, collection: bool) -> Result<(), DocumentError> {
    document.validate(Checks { collection, template: &template, jq: &jq })
}

/// Reads and checks a document. Errors name their location in it.
pub fn read(payload_type: PayloadType, bytes: &[u8], collection: bool) -> Result<Document, DocumentError> {
    let document = Document::decode(payload_type, bytes)?;
    check(&document, collection).map_err(|error| error.located(payload_type, bytes))?;
    Ok(document)
}

fn template(field: TemplateField, text: &str) -> Result<(), String> {
    let kind = match field {
        TemplateField::Id | TemplateField::Alias => {
            return IdentityTemplate::parse(text).map(drop).map_err(|error| error.to_string());
        }
        TemplateField::RemoteCollectionPath => Kind::RemoteCollectionPath,
        TemplateField::Method => Kind::Method,
        TemplateField::Path => Kind::Path,
        TemplateField::Query => Kind::Query,
        TemplateField::Header => Kind::Header,
        TemplateField::Jq => Kind::Jq,
    };
    Template::parse(text, kind).map(drop).map_err(|error| error.to_string())
}

fn jq(text: &str) -> Result<(), String> {
    match Pipeline::compile([Step::Jq(text.to_owned())]) {
        Ok(_) => Ok(()),
        Err(super::transform::TransformError::Expression { source, .. }) => Err(source.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
