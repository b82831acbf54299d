//! Request bodies: the payload after its transforms, in the format of its media type.

use std::borrow::Cow;

use super::document::{OperationMode, OperationName, ResolvedValidation};
use super::overlay::{Relation, json_patch, merge_patch};
use super::pagination::{member, replace_members};
use super::{Evaluation, MetadataError, Rendered};
use crate::language::template::{Kind, Template};
use crate::payload::{Class, Descriptor, Object, Value, encode, form};

/// An encoded request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The `Content-Type`.
    pub media_type: String,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}

impl Evaluation<'_> {
    /// Returns the body of `operation`, whose request is `rendered`; `None` if the operation sends none.
    ///
    /// A body that metadata states is sent, with the templates in its texts rendered. Otherwise create and update send
    /// `payload`; by its mode, an update sends the merge of both, or a patch. A structured payload is transformed, and it
    /// is an error if a required attribute is missing. Null sends no body. Text and bytes are sent unchanged. A delete
    /// sends the payload of its resource if it has transforms of its own.
    pub fn body(
        &self,
        operation: OperationName,
        rendered: &Rendered,
        payload: &Value,
    ) -> Result<Option<Body>, MetadataError> {
        let stated = self.rules.resolved.operation(operation).body.clone();
        let is_paged =
            operation == OperationName::List && self.page.iter().any(|(name, _)| member(name).is_some());
        let stated = stated.or_else(|| is_paged.then(|| Value::Object(Object::new())));
        let transforms_delete = operation == OperationName::Delete
            && !self.rules.resolved.operation(operation).transforms.is_empty();
        let writes = matches!(operation, OperationName::Create | OperationName::Update) || transforms_delete;
        let payload = self.subject.payload.filter(|_| transforms_delete).unwrap_or(payload);
        let body = match stated {
            Some(stated) => {
                let field = || format!("operations.{operation}.body");
                let filled = self.filled(stated, &field)?;
                let body = if is_paged { replace_members(filled, &self.page) } else { filled };
                self.encode(rendered, &body, false)?
            }
            None if !writes
                || payload.is_null() && (transforms_delete || self.class() != Class::Structured) =>
            {
                return Ok(None);
            }
            // An empty file sends no body. It lacks the same attributes as an empty object.
            None if payload.is_null() => {
                self.require(operation, payload)?;
                self.validate(operation, rendered, &Value::Object(Object::new()))?;
                return Ok(None);
            }
            None if self.class() != Class::Structured => {
                self.validate(operation, rendered, &Value::Bytes(Vec::new()))?;
                self.encode(rendered, payload, false)?
            }
            None => {
                self.require(operation, payload)?;
                let steps = !self.rules.operation(operation).steps.is_empty();
                let content = self.content(operation, payload)?.into_owned();
                let value = self.transform(operation, content)?;
                self.validate(operation, rendered, &value)?;
                if value.is_null() {
                    return Ok(None);
                }
                self.encode(rendered, &value, steps)?
            }
        };
        Ok(Some(body))
    }

    /// Returns `stated` with the templates in its texts rendered.
    pub(super) fn filled(&self, stated: Value, field: &dyn Fn() -> String) -> Result<Value, MetadataError> {
        match stated {
            Value::String(text) if text.contains("{{") => match Template::parse(&text, Kind::Query) {
                Ok(template) => Ok(Value::String(self.text(&template, field)?)),
                // A text that is not a template is sent unchanged, because bodies were literal before.
                Err(_) => Ok(Value::String(text)),
            },
            other => other.try_map_children(|child| self.filled(child, field)),
        }
    }

    /// Returns the content that `operation` sends for `payload`, before its transforms.
    fn content<'v>(
        &self,
        operation: OperationName,
        payload: &'v Value,
    ) -> Result<Cow<'v, Value>, MetadataError> {
        static ABSENT: Value = Value::Null;
        let mode =
            self.rules.resolved.operation(operation).mode.filter(|_| operation == OperationName::Update);
        let observed = self.observed.content().unwrap_or(&ABSENT);
        let relation = Relation::of(&self.rules.resolved);
        Ok(Cow::Owned(match mode {
            Some(OperationMode::Merge) => relation.overlay(payload.clone(), observed.clone()),
            Some(OperationMode::MergePatch) => {
                let (desired, observed) = self.patched(payload, observed)?;
                merge_patch(desired, &observed)
            }
            Some(OperationMode::JsonPatch) => {
                let (desired, observed) = self.patched(payload, observed)?;
                json_patch(&desired, &observed)
            }
            _ => return Ok(Cow::Borrowed(payload)),
        }))
    }

    /// Checks the body against the `validate` rules of the operation.
    fn validate(
        &self,
        operation: OperationName,
        rendered: &Rendered,
        body: &Value,
    ) -> Result<(), MetadataError> {
        // Most operations have no rules; skip the lookup for them.
        if self.rules.resolved.operation(operation).validation == ResolvedValidation::default() {
            return Ok(());
        }
        let invalid = |source| MetadataError::Validation {
            path: self.subject.path.clone(),
            operation,
            source: Box::new(source),
        };
        let validation =
            self.rules.validation(operation, &rendered.method, &rendered.path).map_err(invalid)?;
        validation.check(body, &self.path_fields()).map_err(invalid)
    }

    /// Fails if a required attribute is missing in the payload that templates see. This payload has the id that the
    /// server assigned, even if the body of an update does not.
    fn require(&self, operation: OperationName, payload: &Value) -> Result<(), MetadataError> {
        let missing = self.rules.missing_in(self.subject.payload.unwrap_or(payload), operation);
        if missing.is_empty() {
            return Ok(());
        }
        let id = self.rules.identity().id().simple().map(ToString::to_string);
        Err(MetadataError::MissingAttributes {
            path: self.subject.path.clone(),
            operation,
            only_id: operation == OperationName::Create && missing.iter().eq(&id),
            missing: missing.join(", "),
        })
    }

    /// Encodes `value` for the media type of the request, such as a form; if it is unknown, in the payload's own format. A string that
    /// transforms made of a structured payload is sent without quotes, unless the media type is structured: quotes
    /// would corrupt keys and certificates. A text is sent as its bytes if the media type is binary.
    fn encode(&self, rendered: &Rendered, value: &Value, transformed: bool) -> Result<Body, MetadataError> {
        let media_type = rendered.content_type.clone();
        let known = Descriptor::from_media_type(&media_type);
        let class = known.as_ref().map(|known| known.payload_type.class());
        if let Value::String(text) = value
            && (transformed && class != Some(Class::Structured) || class == Some(Class::Binary))
        {
            return Ok(Body { media_type, bytes: text.clone().into_bytes() });
        }
        if form::is_form(&media_type) && matches!(value, Value::Object(_) | Value::Array(_)) {
            let path = || self.subject.path.clone();
            let bytes = form::encode(value).map_err(|reason| MetadataError::Form(path(), reason))?;
            return Ok(Body { media_type, bytes });
        }
        let format = known.unwrap_or_else(|| self.body_descriptor()).payload_type;
        match encode(format, value) {
            Ok(bytes) => Ok(Body { media_type, bytes }),
            Err(source) => Err(MetadataError::Encode { path: self.subject.path.clone(), media_type, source }),
        }
    }
}
