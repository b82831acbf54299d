//! Infers the format of the payloads of a collection.

use std::collections::BTreeSet;

use crate::metadata::document::Format;
use crate::metadata::openapi::{ApiOperation, Media, OpenApi, PathItem};
use crate::payload::{Class, PayloadType};

/// Returns the common format of all bodies and responses of some paths; `None` if none is known.
pub fn of_paths<'d>(document: &OpenApi, paths: impl IntoIterator<Item = &'d PathItem>) -> Option<Format> {
    let operations = paths.into_iter().flat_map(PathItem::operations);
    let bodies = operations.flat_map(|operation: &ApiOperation| [operation.request(), operation.response()]);
    let types: BTreeSet<PayloadType> = bodies.filter_map(|media| preferred(document, media)).collect();
    match types.len() {
        0 => None,
        1 => types.first().copied().map(Format::Concrete),
        _ => Some(Format::Any),
    }
}

fn preferred(document: &OpenApi, media: &[Media]) -> Option<PayloadType> {
    media.iter().map(|media| document.payload_type(media)).min_by_key(|payload_type| rank(*payload_type))?
}

fn rank(payload_type: Option<PayloadType>) -> u8 {
    match payload_type {
        Some(PayloadType::Json) => 0,
        Some(PayloadType::Yaml) => 1,
        Some(PayloadType::Xml) => 2,
        Some(payload_type) if payload_type.class() != Class::Binary => 3,
        Some(_) => 4,
        None => 5,
    }
}
