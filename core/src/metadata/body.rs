//! Request bodies: the payload after its transforms, in the format of its media type.

use super::document::{OperationName, ResolvedValidation};
use super::{Evaluation, MetadataError, Rendered};
use crate::language::jq::Context;
use crate::payload::{Class, Descriptor, Value, encode};

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
    /// A body that metadata states is sent literally. Otherwise create and update send `payload`. A structured payload
    /// is transformed, and it is an error if a required attribute is missing. Text and bytes are sent unchanged.
    pub fn body(
        &self,
        operation: OperationName,
        rendered: &Rendered,
        payload: &Value,
    ) -> Result<Option<Body>, MetadataError> {
        let stated = self.rules.resolved.operation(operation).body.as_ref();
        let writes = matches!(operation, OperationName::Create | OperationName::Update);
        let body = match stated {
            Some(stated) => self.encode(rendered, stated, false)?,
            None if !writes || payload.is_null() => return Ok(None),
            None if self.class() != Class::Structured => {
                self.validate(operation, rendered, &Value::Bytes(Vec::new()))?;
                self.encode(rendered, payload, false)?
            }
            None => {
                self.require(operation, payload)?;
                let steps = !self.rules.operation(operation).steps.is_empty();
                let value = self.transform(operation, payload.clone(), Context::default())?;
                self.validate(operation, rendered, &value)?;
                if value.is_null() {
                    return Ok(None);
                }
                self.encode(rendered, &value, steps)?
            }
        };
        Ok(Some(body))
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
        Err(MetadataError::MissingAttributes {
            path: self.subject.path.clone(),
            operation,
            missing: missing.join(", "),
        })
    }

    /// Encodes `value` for the media type of the request; if it is unknown, in the payload's own format. A string that
    /// transforms made of a structured payload is sent without quotes, unless the media type is structured: quotes
    /// would corrupt keys and certificates.
    fn encode(&self, rendered: &Rendered, value: &Value, transformed: bool) -> Result<Body, MetadataError> {
        let media_type = rendered.content_type.clone();
        let known = Descriptor::from_media_type(&media_type);
        let structured = known.as_ref().is_some_and(|known| known.payload_type.class() == Class::Structured);
        if let Value::String(text) = value
            && transformed
            && !structured
        {
            return Ok(Body { media_type, bytes: text.clone().into_bytes() });
        }
        let format = known.unwrap_or_else(|| self.body_descriptor()).payload_type;
        match encode(format, value) {
            Ok(bytes) => Ok(Body { media_type, bytes }),
            Err(source) => Err(MetadataError::Encode { path: self.subject.path.clone(), media_type, source }),
        }
    }
}
