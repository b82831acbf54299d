//! Request bodies: the payload after its transforms, in the format of its media type.

use super::document::{OperationName, ResolvedValidation};
use super::transform::Context;
use super::{Evaluation, MetadataError, Rendered};
use crate::payload::{Class, Descriptor, Value, encode};

/// An encoded request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The `Content-Type`.
    pub media_type: String,
    /// The bytes on the wire.
    pub bytes: Vec<u8>,
}

impl Evaluation<'_> {
    /// The body of `operation`, whose request is `rendered`; `None` where it sends none.
    ///
    /// A body that metadata states is sent literally. Else create and update send `payload`: structured ones
    /// after their transforms and if nothing required is missing, text and binary ones untouched.
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

    /// Checks what metadata demands of the body.
    fn validate(
        &self,
        operation: OperationName,
        rendered: &Rendered,
        body: &Value,
    ) -> Result<(), MetadataError> {
        // Nearly always nothing is demanded, and then nothing has to be looked up.
        if self.rules.resolved.operation(operation).validation == ResolvedValidation::default() {
            return Ok(());
        }
        let invalid = |source| MetadataError::Validation {
            path: self.subject.path.clone(),
            operation,
            source: Box::new(source),
        };
        let validation = self.rules.validation(operation, rendered).map_err(invalid)?;
        validation.check(body, &self.path_fields()).map_err(invalid)
    }

    /// What is required must be in the payload as templates see it: an update knows the id that the server
    /// gave, though the body does not have it.
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

    /// Encodes for the media type of the request; an unknown one leaves the payload's own format. Text that
    /// transforms made of a structured payload goes out as it is, unless the media type is structured:
    /// quoting it would corrupt keys and certificates.
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
