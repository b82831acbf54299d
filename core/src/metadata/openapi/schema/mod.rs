//! Schemas of request bodies, compiled from a document.
//!
//! Understood are local `$ref`, `nullable`, `allOf`, `anyOf`, `oneOf`, `enum`, `type`, `required`,
//! `properties`, `additionalProperties` and `items`; every other keyword is ignored, so that a body is refused
//! only for what its author can see in the document. General validators know no `nullable`, check more
//! keywords than these, and follow references without a bound on the work that a hostile document makes.

mod check;
mod compile;

use std::collections::{BTreeMap, BTreeSet};

use super::{OpenApi, OpenApiError, ReferenceError};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

pub use check::SchemaViolation;

/// How many schemas may apply within each other: deeper ones are an error of the document or the body.
pub const MAX_DEPTH: usize = 96;

/// A compiled schema; independent of the document it comes from.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Parts refer to each other by index, since schemas may contain themselves.
    nodes: Vec<Node>,
    root: usize,
    /// The properties that the top level names, itself and through `$ref` and `allOf`.
    named: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// A reference that leads nowhere. It matters only when a value gets here.
    fault: Option<ReferenceError>,
    /// The schema `false`.
    never: bool,
    nullable: bool,
    /// Empty: any.
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

/// What properties without a schema of their own may be.
#[derive(Clone, Copy, Debug, Default)]
enum Additional {
    #[default]
    Any,
    Forbidden,
    Schema(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Compiles the schema at a place of a document. Fails with [`OpenApiError::Schema`] if nothing that can
    /// be a schema is there.
    pub fn compile(document: &OpenApi, at: &Pointer) -> Result<Self, OpenApiError> {
        let (nodes, root) =
            compile::nodes(document, at).map_err(|source| OpenApiError::Schema { at: at.clone(), source })?;
        Ok(Self { nodes, root, named: document.named_properties(at) })
    }

    /// Checks a value. The first violation is told, without values.
    pub fn check(&self, value: &Value) -> Result<(), SchemaViolation> {
        check::value(self, value)
    }

    /// `body` with those of `fields` that it lacks and that the top level of the schema names; `None` if
    /// nothing is to be added.
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
mod tests;
