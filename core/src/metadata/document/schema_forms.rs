//! JSON Schemas of the forms that types do not show.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::payload::pointer::Pointer;

/// A list of pointers, or one of them.
pub(super) fn pointers(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": [
        generator.subschema_for::<Pointer>(),
        generator.subschema_for::<Vec<Pointer>>(),
    ]})
}

/// A map, or a list of maps.
pub(super) fn headers(_: &mut SchemaGenerator) -> Schema {
    let map = json_schema!({"type": "object", "additionalProperties": {"type": "string"}});
    json_schema!({"oneOf": [map, {"type": "array", "items": map}]})
}

/// Any value.
pub(super) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// An object, or an include.
pub(super) fn source(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "string"]})
}

pub(super) fn sources(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": source(generator)})
}
