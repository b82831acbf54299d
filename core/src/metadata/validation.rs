//! Validates request bodies before they are sent.

use super::document::{Assertion, ResolvedValidation, SchemaRef};
use super::openapi::schema::{Schema, SchemaViolation};
use super::openapi::{ApiOperation, OpenApi, OpenApiError};
use crate::error::categories;
use crate::language::jq::{self, EvaluationError, ExpressionError};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// The compiled `validate` of an operation. It is parsed once, and checks any number of bodies.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    required: Vec<Pointer>,
    assertions: Vec<(Assertion, jq::Query)>,
    schema: Option<(SchemaRef, Schema)>,
}

/// A request body is not valid, or a validation cannot be used. Messages never contain values of the body.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ValidationError {
    /// The body has no attributes.
    #[error("validate requires a structured request body, but this one is text or bytes")]
    Unstructured,
    /// Attributes are absent or null.
    #[error("the request body lacks required attributes: {}", listed(.0))]
    Required(Vec<Pointer>),
    /// The condition of an assertion is false.
    #[error("the request body violates an assertion: {0}")]
    Assertion(String),
    /// The condition of an assertion cannot be evaluated.
    #[error("cannot evaluate the assertion {jq}: {source}")]
    Evaluation {
        /// The expression.
        jq: String,
        /// The cause.
        source: EvaluationError,
    },
    /// The condition of an assertion is not a valid jq expression.
    #[error("validate.assertions[{index}].jq: {source}")]
    Expression {
        /// The index of the assertion, from 0.
        index: usize,
        /// The fault.
        source: ExpressionError,
    },
    /// The body does not match its schema.
    #[error("the request body does not match {schema}: {violation}")]
    Schema {
        /// The reference to the schema.
        schema: SchemaRef,
        /// The violation and its location.
        violation: SchemaViolation,
    },
    /// A schema is referenced, but no `OpenAPI` document is configured.
    #[error(
        "validate.schemaRef {0} needs the OpenAPI document of the server; name it in managedServer.http.openapi of the context, or in spec.openapi of the ManagedServer"
    )]
    NoDocument(SchemaRef),
    /// The operation has no schema for its body.
    #[error("validate.schemaRef openapi:request-body: the OpenAPI document has no schema for {0}")]
    NoRequestSchema(String),
    /// The schema is not in the document.
    #[error("validate.schemaRef: {0}")]
    Document(OpenApiError),
}

impl Validation {
    /// Compiles the validation rules of a request. `operation` is its description in `document`, which
    /// `openapi:request-body` refers to.
    pub fn compile(
        rules: &ResolvedValidation,
        document: Option<&OpenApi>,
        operation: Option<&ApiOperation>,
    ) -> Result<Self, ValidationError> {
        let compile = |(index, assertion): (usize, &Assertion)| {
            let condition = jq::Query::compile(&assertion.jq)
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

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.assertions.is_empty() && self.schema.is_none()
    }

    /// Checks a transformed body: required attributes, then assertions, then the schema.
    ///
    /// For the check only, fields that the body lacks are added from `path_fields`, which are derived from the logical
    /// path. For the schema, only those that its top level names are added, because others could be forbidden. Blocks
    /// while assertions run.
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
        // Servers show null for what is not set, and most documents do not state that.
        let fits = |body: &Value| {
            schema.check(body).or_else(|violation| schema.check(&without_nulls(body)).map_err(|_| violation))
        };
        let Err(alone) = fits(body) else { return Ok(()) };
        let is_added = |name: &str| path_fields.contains_key(name) && body.get(name).is_none();
        let violation = match schema.complete(body, path_fields).map(|completed| fits(&completed)) {
            Some(Ok(())) => return Ok(()),
            // A field of the path is not sent.
            Some(Err(violation)) if !violation.at.strip_prefix('/').is_some_and(is_added) => violation,
            _ => alone,
        };
        Err(ValidationError::Schema { schema: reference.clone(), violation })
    }

    fn check_required(&self, body: &Value) -> Result<(), ValidationError> {
        let lacking = |pointer: &&Pointer| pointer.get(body).is_none_or(Value::is_null);
        let missing: Vec<_> = self.required.iter().filter(lacking).cloned().collect();
        if missing.is_empty() { Ok(()) } else { Err(ValidationError::Required(missing)) }
    }

    fn check_assertions(&self, body: &Value) -> Result<(), ValidationError> {
        for (assertion, condition) in &self.assertions {
            let held = condition
                .holds(body)
                .map_err(|source| ValidationError::Evaluation { jq: assertion.jq.clone(), source })?;
            if !held {
                let message = assertion.message.as_ref().filter(|message| !message.trim().is_empty());
                let message = message.unwrap_or(&assertion.jq).clone();
                return Err(ValidationError::Assertion(message));
            }
        }
        Ok(())
    }
}

categories!(ValidationError {
    .source: Evaluation, Expression;
    .0: Document;
    Validation: Unstructured, Required, Assertion, Schema, NoDocument, NoRequestSchema;
});

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
            ValidationError::NoRequestSchema(operation)
        }),
    }
}

/// Returns an object with the fields that it lacks added; `None` if it lacks none.
fn complete(body: &Value, fields: &Object) -> Option<Value> {
    let members = body.as_object()?;
    let lacking: Vec<_> = fields.iter().filter(|(name, _)| !members.contains_key(*name)).collect();
    if lacking.is_empty() {
        return None;
    }
    let lacking = lacking.into_iter().map(|(name, value)| (name.clone(), value.clone()));
    Some(Value::Object(members.clone().into_iter().chain(lacking).collect()))
}

/// Returns the value without members that are null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let stated = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(stated.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        _ => value.clone(),
    }
}

fn listed(pointers: &[Pointer]) -> String {
    pointers.iter().map(Pointer::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "validation_tests.rs"]
mod tests;
