//! Decodes metadata documents from YAML and JSON.

use std::collections::BTreeMap;

use super::{
    Assertion, DefaultsSection, DefaultsSource, Document, DocumentError, ExternalizedAttribute, Format,
    Headers, Numbered, OperationDefaultsSection, OperationName, OperationSection, OperationsSection,
    Pagination, PaginationStyle, ResourceSection, SchemaRef, SelectorSection, Step, ValidateSection,
};
use crate::payload::PayloadType;
use crate::payload::fields::{Field, FieldError, Fields, Keyword, read_document};

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
            Some(root) => Ok(document(root)?),
            None => Ok(Self::default()),
        }
    }
}

fn document(root: Field) -> Result<Document, FieldError> {
    let mut fields = root.fields(&["selector", "resource", "operations"])?;
    Ok(Document {
        selector: fields.read("selector", |field| {
            let descendants = field.fields(&["descendants"])?.read("descendants", Field::boolean)?;
            Ok(SelectorSection { descendants })
        })?,
        resource: fields.read("resource", resource)?,
        operations: fields.read("operations", operations)?,
    })
}

fn resource(field: Field) -> Result<ResourceSection, FieldError> {
    let mut fields = field.fields(&[
        "id",
        "alias",
        "remoteCollectionPath",
        "format",
        "requiredAttributes",
        "secret",
        "secretAttributes",
        "externalizedAttributes",
        "defaults",
    ])?;
    Ok(ResourceSection {
        id: fields.read("id", Field::text)?,
        alias: fields.read("alias", Field::text)?,
        remote_collection_path: fields.read("remoteCollectionPath", Field::text)?,
        format: parsed_unless_blank(&mut fields, "format", format)?,
        required_attributes: fields.read("requiredAttributes", Field::pointers)?,
        secret: fields.read("secret", Field::boolean)?,
        secret_attributes: fields.read("secretAttributes", Field::pointers)?,
        externalized_attributes: fields
            .read("externalizedAttributes", |field| field.items()?.into_iter().map(externalized).collect())?,
        defaults: fields.read("defaults", defaults)?,
    })
}

/// Reads a field whose blank text means the same as its absence.
fn parsed_unless_blank<T>(
    fields: &mut Fields,
    key: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, FieldError> {
    let unless_blank = |text: &str| if text.trim().is_empty() { Ok(None) } else { parse(text).map(Some) };
    Ok(fields.read(key, |field| field.parsed(unless_blank))?.flatten())
}

fn format(name: &str) -> Result<Format, String> {
    Format::parse(name).ok_or_else(|| {
        format!(
            "\"{name}\" is not supported; use json, yaml, ini, properties, xml, hcl, text, octet-stream or any"
        )
    })
}

fn externalized(item: Field) -> Result<ExternalizedAttribute, FieldError> {
    let mut fields =
        item.fields(&["path", "file", "template", "mode", "saveBehavior", "renderBehavior", "enabled"])?;
    Ok(ExternalizedAttribute {
        path: fields.require("path", Field::pointer)?,
        file: fields.require("file", Field::text)?,
        template: fields.read("template", Field::text)?,
        mode: fields.read("mode", Field::keyword)?,
        save_behavior: fields.read("saveBehavior", Field::keyword)?,
        render_behavior: fields.read("renderBehavior", Field::keyword)?,
        enabled: fields.read("enabled", Field::boolean)?,
    })
}

fn defaults(field: Field) -> Result<DefaultsSection, FieldError> {
    let mut fields = field.fields(&["mode", "useProfiles", "value", "profiles"])?;
    Ok(DefaultsSection {
        mode: fields.read("mode", Field::keyword)?,
        use_profiles: fields
            .read("useProfiles", |field| field.items()?.into_iter().map(Field::text).collect())?,
        value: fields.read("value", |field| defaults_source(field, "defaults"))?,
        profiles: fields
            .read("profiles", |field| {
                field.map(|name, field| defaults_source(field, &format!("defaults-{name}")))
            })?
            .flatten(),
    })
}

/// Reads an object, or an include of a file whose name without its extension is `stem`.
fn defaults_source(field: Field, stem: &str) -> Result<DefaultsSource, FieldError> {
    if field.is_scalar() {
        return field.parsed(|text| DefaultsSource::parse_include(text, stem));
    }
    Ok(DefaultsSource::Inline(field.object()?))
}

const OPERATIONS: &[&str] = &["defaults", "create", "get", "update", "delete", "list", "compare"];

fn operations(field: Field) -> Result<OperationsSection, FieldError> {
    let mut fields = field.fields(OPERATIONS)?;
    let defaults = fields.read("defaults", |field| {
        let transforms = field.fields(&["transforms"])?.read("transforms", transforms)?;
        Ok(OperationDefaultsSection { transforms })
    })?;
    let mut operations = BTreeMap::new();
    for name in OperationName::ALL {
        if let Some(section) = fields.read(name.key(), |field| operation(name, field))? {
            operations.insert(name, section);
        }
    }
    Ok(OperationsSection { defaults, operations })
}

const OPERATION: &[&str] = &["method", "path", "query", "headers", "body", "transforms", "validate"];
const LIST: &[&str] = &["method", "path", "query", "headers", "body", "transforms", "validate", "pagination"];

fn operation(name: OperationName, field: Field) -> Result<OperationSection, FieldError> {
    let mut fields = field.fields(if name == OperationName::List { LIST } else { OPERATION })?;
    Ok(OperationSection {
        method: fields.read("method", Field::text)?,
        path: fields.read("path", Field::text)?,
        query: fields.read("query", |field| field.map(|_, field| field.text()))?.flatten(),
        headers: fields.read("headers", headers)?.flatten(),
        body: fields.read("body", Field::value)?,
        transforms: fields.read("transforms", transforms)?,
        validate: fields.read("validate", validate)?,
        pagination: fields.read("pagination", pagination)?,
    })
}

/// Reads a map, or a list of maps in which later ones take precedence.
fn headers(field: Field) -> Result<Option<Headers>, FieldError> {
    let maps = if field.is_list() { field.items()? } else { vec![field] };
    let mut headers = maps.is_empty().then(Headers::default);
    for map in maps.into_iter().filter(|map| !map.is_null()) {
        let Some(entries) = map.entries()? else { continue };
        let headers = headers.get_or_insert_default();
        let mut seen = Headers::default();
        for (name, field) in entries {
            let duplicate =
                field.fail(format!("the header \"{name}\" is duplicated; names are not case-sensitive"));
            let value = field.text()?;
            headers.insert(&name, value.clone());
            if seen.insert(&name, value).is_some() {
                return Err(duplicate);
            }
        }
    }
    Ok(headers)
}

fn transforms(field: Field) -> Result<Vec<Step>, FieldError> {
    field.items()?.into_iter().map(step).collect()
}

fn step(item: Field) -> Result<Step, FieldError> {
    let mut fields = item.fields(&["selectAttributes", "excludeAttributes", "jqExpression"])?;
    let select = fields.read("selectAttributes", Field::pointers_or_one)?;
    let exclude = fields.read("excludeAttributes", Field::pointers_or_one)?;
    let jq = fields.read("jqExpression", Field::text)?.filter(|text| !text.trim().is_empty());
    match (select, exclude, jq) {
        (Some(pointers), None, None) => Ok(Step::Select(pointers)),
        (None, Some(pointers), None) => Ok(Step::Exclude(pointers)),
        (None, None, Some(expression)) => Ok(Step::Jq(expression)),
        _ => {
            Err(fields.fail("a step has exactly one of selectAttributes, excludeAttributes and jqExpression"))
        }
    }
}

fn validate(field: Field) -> Result<ValidateSection, FieldError> {
    let mut fields = field.fields(&["requiredAttributes", "schemaRef", "assertions"])?;
    Ok(ValidateSection {
        required_attributes: fields.read("requiredAttributes", Field::pointers_or_one)?,
        schema_ref: parsed_unless_blank(&mut fields, "schemaRef", SchemaRef::parse)?,
        assertions: fields.read("assertions", |field| field.items()?.into_iter().map(assertion).collect())?,
    })
}

fn assertion(item: Field) -> Result<Assertion, FieldError> {
    let mut fields = item.fields(&["jq", "message"])?;
    Ok(Assertion { jq: fields.require("jq", Field::text)?, message: fields.read("message", Field::text)? })
}

const PAGINATION: &[&str] = &["style", "pointer", "parameter", "sizeParameter", "size", "start", "items"];

fn pagination(field: Field) -> Result<Pagination, FieldError> {
    let mut fields = field.fields(PAGINATION)?;
    let style: PaginationStyle = fields.require("style", Field::keyword)?;
    for key in PAGINATION.iter().filter(|key| !style.keys().contains(key)) {
        let foreign =
            format!("is not allowed with style: {}; remove it, or choose another style", style.word());
        fields.read(key, |field| Err::<(), _>(field.fail(foreign)))?;
    }
    Ok(match style {
        PaginationStyle::None => Pagination::Whole,
        PaginationStyle::Link => Pagination::Link,
        PaginationStyle::Next => Pagination::Next { pointer: fields.require("pointer", Field::pointer)? },
        PaginationStyle::Cursor => Pagination::Cursor {
            pointer: fields.require("pointer", Field::pointer)?,
            parameter: fields.require("parameter", Field::text)?,
        },
        PaginationStyle::Offset => Pagination::Offset(numbered(style, &mut fields)?),
        PaginationStyle::Page => Pagination::Page(numbered(style, &mut fields)?),
    })
}

fn numbered(style: PaginationStyle, fields: &mut Fields) -> Result<Numbered, FieldError> {
    Ok(Numbered {
        parameter: fields.require("parameter", Field::text)?,
        size_parameter: fields.read("sizeParameter", Field::text)?,
        size: fields.require("size", |field| within(field, 1, Numbered::MAX_SIZE))?,
        start: fields.read("start", |field| within(field, 0, u32::MAX))?.unwrap_or(style.start()),
        items: fields.read("items", Field::pointer)?,
    })
}

fn within(field: Field, least: u32, most: u32) -> Result<u32, FieldError> {
    let outside = field.fail(format!("must be from {least} to {most}"));
    let number = u32::try_from(field.integer()?).ok().filter(|number| (least..=most).contains(number));
    number.ok_or(outside)
}
