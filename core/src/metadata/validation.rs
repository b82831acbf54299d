//! What a request body must satisfy before it is sent.

use super::document::{Assertion, ResolvedValidation, SchemaRef};
use super::openapi::schema::{Schema, SchemaViolation};
use super::openapi::{ApiOperation, OpenApi, OpenApiError};
use super::transform::{Condition, ConditionError, ExpressionError};
use crate::error::{Categorized, Category};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// The compiled `validate` of an operation. Checking a body parses nothing.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    required: Vec<Pointer>,
    assertions: Vec<(Assertion, Condition)>,
    schema: Option<(SchemaRef, Schema)>,
}

/// Why a body must not be sent, or a validation cannot be used. No message contains a value of the body.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ValidationError {
    /// The body has no attributes.
    #[error("validate needs a structured request body, and this one is text or bytes")]
    Unstructured,
    /// Attributes are absent or null.
    #[error("the request body lacks required attributes: {}", listed(.missing))]
    Required {
        /// All of them.
        missing: Vec<Pointer>,
    },
    /// A condition does not hold.
    #[error("the request body violates an assertion: {message}")]
    Assertion {
        /// The message of the assertion, else its expression.
        message: String,
    },
    /// It cannot be told whether a condition holds.
    #[error("cannot evaluate the assertion {jq}: {source}")]
    Evaluation {
        /// The expression.
        jq: String,
        /// What failed.
        source: ConditionError,
    },
    /// A condition is no jq expression.
    #[error("validate.assertions[{index}].jq: {source}")]
    Expression {
        /// Its place in the list, from 0.
        index: usize,
        /// What is wrong with it.
        source: ExpressionError,
    },
    /// The body does not fit its schema.
    #[error("the request body does not fit {schema}: {violation}")]
    Schema {
        /// Which schema.
        schema: SchemaRef,
        /// Where and why.
        violation: SchemaViolation,
    },
    /// A schema is asked for, and there is no document.
    #[error("validate.schemaRef {0} needs the OpenAPI document of the server; configure http.openapi")]
    NoDocument(SchemaRef),
    /// The operation has no schema for its body.
    #[error("validate.schemaRef openapi:request-body: the OpenAPI document has no schema for {operation}")]
    NoRequestSchema {
        /// The operation.
        operation: String,
    },
    /// The schema is not in the document.
    #[error("validate.schemaRef: {0}")]
    Document(OpenApiError),
}

impl Validation {
    /// Compiles what metadata demands of the body of a request. `operation` is what `document` says about
    /// that request, which `openapi:request-body` refers to.
    pub fn compile(
        rules: &ResolvedValidation,
        document: Option<&OpenApi>,
        operation: Option<&ApiOperation>,
    ) -> Result<Self, ValidationError> {
        let compile = |(index, assertion): (usize, &Assertion)| {
            let condition = Condition::compile(&assertion.jq)
                .map_err(|source| ValidationError::Expression { index, source })?;
            Ok((assertion.clone(), condition))
        };
        let schema = rules.schema_ref.as_ref().map(|reference| {
            let document = document.ok_or_else(|| ValidationError::NoDocument(reference.clone()))?;
            let schema = Schema::compile(document, place(reference, operation)?);
            Ok((reference.clone(), schema.map_err(ValidationError::Document)?))
        });
        Ok(Self {
            required: rules.required_attributes.clone(),
            assertions: rules.assertions.iter().enumerate().map(compile).collect::<Result<_, _>>()?,
            schema: schema.transpose()?,
        })
    }

    /// Whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.assertions.is_empty() && self.schema.is_none()
    }

    /// Checks a transformed body: required attributes, then assertions, then the schema.
    ///
    /// Those of `path_fields`, which the logical path tells, that the body lacks are laid under it, for
    /// checking only; for the schema only those that its top level names, so that they cannot be too many.
    /// Blocks for as long as assertions compute.
    pub fn check(&self, body: &Value, path_fields: &Object) -> Result<(), ValidationError> {
        if self.is_empty() {
            return Ok(());
        }
        if matches!(body, Value::Bytes(_)) {
            return Err(ValidationError::Unstructured);
        }
        if !self.required.is_empty() || !self.assertions.is_empty() {
            let completed = complete(body, path_fields);
            let completed = completed.as_ref().unwrap_or(body);
            self.check_required(completed)?;
            self.check_assertions(completed)?;
        }
        let Some((reference, schema)) = &self.schema else { return Ok(()) };
        let completed = schema.complete(body, path_fields);
        schema
            .check(completed.as_ref().unwrap_or(body))
            .map_err(|violation| ValidationError::Schema { schema: reference.clone(), violation })
    }

    fn check_required(&self, body: &Value) -> Result<(), ValidationError> {
        let lacking = |pointer: &&Pointer| pointer.get(body).is_none_or(Value::is_null);
        let missing: Vec<_> = self.required.iter().filter(lacking).cloned().collect();
        if missing.is_empty() { Ok(()) } else { Err(ValidationError::Required { missing }) }
    }

    fn check_assertions(&self, body: &Value) -> Result<(), ValidationError> {
        for (assertion, condition) in &self.assertions {
            let held = condition
                .holds(body)
                .map_err(|source| ValidationError::Evaluation { jq: assertion.jq.clone(), source })?;
            if !held {
                let message = assertion.message.as_ref().filter(|message| !message.trim().is_empty());
                let message = message.unwrap_or(&assertion.jq).clone();
                return Err(ValidationError::Assertion { message });
            }
        }
        Ok(())
    }
}

impl Categorized for ValidationError {
    fn category(&self) -> Category {
        match self {
            Self::Evaluation { source, .. } => source.category(),
            Self::Expression { source, .. } => source.category(),
            Self::Document(source) => source.category(),
            Self::Unstructured
            | Self::Required { .. }
            | Self::Assertion { .. }
            | Self::Schema { .. }
            | Self::NoDocument(_)
            | Self::NoRequestSchema { .. } => Category::Validation,
        }
    }
}

fn place<'a>(
    reference: &'a SchemaRef,
    operation: Option<&'a ApiOperation>,
) -> Result<&'a Pointer, ValidationError> {
    match reference {
        SchemaRef::At(pointer) => Ok(pointer),
        SchemaRef::RequestBody => operation.and_then(ApiOperation::request_schema).ok_or_else(|| {
            let operation = operation.map_or_else(
                || "this path".to_owned(),
                |operation| format!("the body of its {}", operation.method()),
            );
            ValidationError::NoRequestSchema { operation }
        }),
    }
}

/// An object with the fields that it lacks; `None` if it lacks none.
fn complete(body: &Value, fields: &Object) -> Option<Value> {
    let members = body.as_object()?;
    let lacking: Vec<_> = fields.iter().filter(|(name, _)| !members.contains_key(*name)).collect();
    if lacking.is_empty() {
        return None;
    }
    let lacking = lacking.into_iter().map(|(name, value)| (name.clone(), value.clone()));
    Some(Value::Object(members.clone().into_iter().chain(lacking).collect()))
}

fn listed(pointers: &[Pointer]) -> String {
    pointers.iter().map(Pointer::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
