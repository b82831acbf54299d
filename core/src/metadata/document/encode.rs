//! Encodes metadata documents as YAML.

use super::{
    Assertion, DefaultsSection, DefaultsSource, Document, DocumentError, ExternalizedAttribute, Headers,
    OperationSection, OperationsSection, Pagination, ResourceSection, SelectorSection, Step, ValidateSection,
};
use crate::payload::fields::Keyword;
use crate::payload::pointer::Pointer;
use crate::payload::{Object, PayloadType, Value, encode};

impl Document {
    /// Returns the document as `metadata.yaml`: absent fields are omitted, empty lists and maps are kept, and includes
    /// are written as includes. Equal documents have equal bytes, and decoding restores the document. Fails with
    /// [`DocumentError::Encode`] for a body or defaults that YAML cannot represent.
    pub fn encode_yaml(&self) -> Result<Vec<u8>, DocumentError> {
        Ok(encode(PayloadType::Yaml, &self.to_value())?)
    }

    /// Returns the document as a value, for other encodings.
    pub fn to_value(&self) -> Value {
        object([
            ("selector", self.selector.as_ref().map(selector)),
            ("resource", self.resource.as_ref().map(resource)),
            ("operations", self.operations.as_ref().map(operations)),
        ])
    }
}

impl OperationSection {
    /// Returns the section as a value, in the form of documents.
    pub fn to_value(&self) -> Value {
        operation(self)
    }
}

fn selector(section: &SelectorSection) -> Value {
    object([("descendants", section.descendants.map(Value::Bool))])
}

fn resource(section: &ResourceSection) -> Value {
    object([
        ("id", text(section.id.as_ref())),
        ("alias", text(section.alias.as_ref())),
        ("remoteCollectionPath", text(section.remote_collection_path.as_ref())),
        ("format", section.format.map(|format| Value::from(format.name()))),
        ("requiredAttributes", section.required_attributes.as_deref().map(pointers)),
        ("secret", section.secret.map(Value::Bool)),
        ("secretAttributes", section.secret_attributes.as_deref().map(pointers)),
        ("externalizedAttributes", list(section.externalized_attributes.as_ref(), externalized)),
        ("defaults", section.defaults.as_ref().map(defaults)),
    ])
}

fn externalized(entry: &ExternalizedAttribute) -> Value {
    object([
        ("path", Some(Value::from(entry.path.to_string()))),
        ("file", text(Some(&entry.file))),
        ("template", text(entry.template.as_ref())),
        ("mode", keyword(entry.mode)),
        ("saveBehavior", keyword(entry.save_behavior)),
        ("renderBehavior", keyword(entry.render_behavior)),
        ("enabled", entry.enabled.map(Value::Bool)),
    ])
}

fn defaults(section: &DefaultsSection) -> Value {
    let profiles = section.profiles.as_ref().map(|profiles| {
        Value::Object(profiles.iter().map(|(name, source)| (name.clone(), defaults_source(source))).collect())
    });
    object([
        ("mode", keyword(section.mode)),
        ("useProfiles", list(section.use_profiles.as_ref(), |name| Value::from(name.as_str()))),
        ("value", section.value.as_ref().map(defaults_source)),
        ("profiles", profiles),
    ])
}

fn defaults_source(source: &DefaultsSource) -> Value {
    match source {
        DefaultsSource::Inline(members) => Value::Object(members.clone()),
        DefaultsSource::Include(_) => source.include_text().map(Value::String).unwrap_or_default(),
    }
}

fn operations(section: &OperationsSection) -> Value {
    let shared = section
        .defaults
        .as_ref()
        .map(|defaults| object([("transforms", list(defaults.transforms.as_ref(), step))]));
    let named = section.operations.iter().map(|(name, section)| (name.key(), Some(operation(section))));
    object(std::iter::once(("defaults", shared)).chain(named))
}

fn operation(section: &OperationSection) -> Value {
    let query = section.query.as_ref().map(|query| {
        Value::Object(query.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect())
    });
    object([
        ("method", text(section.method.as_ref())),
        ("path", text(section.path.as_ref())),
        ("query", query),
        ("headers", section.headers.as_ref().map(headers)),
        ("body", section.body.clone()),
        ("transforms", list(section.transforms.as_ref(), step)),
        ("validate", section.validate.as_ref().map(validate)),
        ("pagination", section.pagination.as_ref().map(pagination)),
    ])
}

fn pagination(pagination: &Pagination) -> Value {
    let style = pagination.style();
    let pointer = |pointer: &Pointer| Value::from(pointer.to_string());
    let own = match pagination {
        Pagination::Whole | Pagination::Link => Vec::new(),
        Pagination::Next { pointer: at } => vec![("pointer", Some(pointer(at)))],
        Pagination::Cursor { pointer: at, parameter } => {
            vec![("pointer", Some(pointer(at))), ("parameter", text(Some(parameter)))]
        }
        Pagination::Offset(numbered) | Pagination::Page(numbered) => vec![
            ("parameter", text(Some(&numbered.parameter))),
            ("sizeParameter", text(numbered.size_parameter.as_ref())),
            ("size", Some(Value::Int(numbered.size.into()))),
            ("start", (numbered.start != style.start()).then(|| Value::Int(numbered.start.into()))),
            ("items", numbered.items.as_ref().map(pointer)),
        ],
    };
    object([("style", keyword(Some(style)))].into_iter().chain(own))
}

fn headers(headers: &Headers) -> Value {
    Value::Object(headers.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect())
}

fn step(step: &Step) -> Value {
    let (key, value) = match step {
        Step::Select(list) => ("selectAttributes", pointers(list)),
        Step::Exclude(list) => ("excludeAttributes", pointers(list)),
        Step::Jq(expression) => ("jqExpression", Value::from(expression.as_str())),
    };
    object([(key, Some(value))])
}

fn validate(section: &ValidateSection) -> Value {
    object([
        ("requiredAttributes", section.required_attributes.as_deref().map(pointers)),
        ("schemaRef", section.schema_ref.as_ref().map(|reference| Value::from(reference.to_string()))),
        ("assertions", list(section.assertions.as_ref(), assertion)),
    ])
}

fn assertion(assertion: &Assertion) -> Value {
    object([("jq", text(Some(&assertion.jq))), ("message", text(assertion.message.as_ref()))])
}

fn object<'k>(members: impl IntoIterator<Item = (&'k str, Option<Value>)>) -> Value {
    let present = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Object>())
}

fn text(text: Option<&String>) -> Option<Value> {
    text.map(|text| Value::from(text.as_str()))
}

fn keyword<K: Keyword + PartialEq>(value: Option<K>) -> Option<Value> {
    value.map(|value| Value::from(value.word()))
}

fn list<T>(items: Option<&Vec<T>>, item: impl Fn(&T) -> Value) -> Option<Value> {
    items.map(|items| Value::Array(items.iter().map(item).collect()))
}

fn pointers(list: &[Pointer]) -> Value {
    Value::Array(list.iter().map(|pointer| Value::from(pointer.to_string())).collect())
}
