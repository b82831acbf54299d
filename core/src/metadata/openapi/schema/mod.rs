//! Schemas of request bodies, compiled from a document.
//!
//! Supported keywords are local `$ref`, `nullable`, `allOf`, `anyOf`, `oneOf`, `enum`, `type`, `required`,
//! `properties`, `additionalProperties` and `items`; others are ignored. Documents are not trusted, so the work of a
//! check is limited. `docs/decisions.md` explains why general validators are not used.

mod check;
mod compile;

use std::collections::{BTreeMap, BTreeSet};

use super::{OpenApi, OpenApiError, ReferenceError};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

pub use check::SchemaViolation;

/// The maximum nesting of schemas. A deeper one is an error of the document or the body.
pub const MAX_DEPTH: usize = 96;

/// A compiled schema. It does not refer to its document.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The parts, which refer to each other by index, because schemas may be recursive.
    nodes: Vec<Node>,
    root: usize,
    /// The properties that the top level names, directly and through `$ref` and `allOf`.
    named: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// A reference that cannot be resolved. It is an error only if the node is applied to a value.
    fault: Option<ReferenceError>,
    /// The schema `false`.
    never: bool,
    nullable: bool,
    /// The allowed types; if empty, any.
    types: Vec<Type>,
    allowed: Option<Vec<Value>>,
    required: Vec<String>,
    properties: BTreeMap<String, usize>,
    additional: Additional,
    items: Option<usize>,
    all_of: Vec<usize>,
    any_of: Vec<usize>,
    one_of: Vec<usize>,
}

/// The rule for properties that have no schema.
#[derive(Clone, Copy, Debug, Default)]
enum Additional {
    #[default]
    Any,
    Forbidden,
    Schema(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Schema {
    /// Compiles the schema at a pointer of a document. Fails with [`OpenApiError::Schema`] if it is not a schema.
    pub fn compile(document: &OpenApi, at: &Pointer) -> Result<Self, OpenApiError> {
        let (nodes, root) =
            compile::nodes(document, at).map_err(|source| OpenApiError::Schema { at: at.clone(), source })?;
        Ok(Self { nodes, root, named: document.named_properties(at) })
    }

    /// Checks a value. Returns the first violation, which does not contain values.
    pub fn check(&self, value: &Value) -> Result<(), SchemaViolation> {
        check::value(self, value)
    }

    /// Adds the fields that `body` lacks and that the top level of the schema names; returns `None` if there are none.
    pub fn complete(&self, body: &Value, fields: &Object) -> Option<Value> {
        let members = body.as_object()?;
        let lacking = |name: &&String| self.named.contains(*name) && !members.contains_key(*name);
        let mut completed = None;
        for name in fields.keys().filter(lacking) {
            let members = completed.get_or_insert_with(|| members.clone());
            members.insert(name.clone(), fields.get(name).cloned().unwrap_or_default());
        }
        completed.map(Value::Object)
    }
}

#[cfg(test)]
mod jsonschema_tests;
#[cfg(test)]
mod tests;
