//! Infers how the pages of a list are requested.

use http::Method;

use super::hal;
use super::shape::Shape;
use crate::metadata::document::{Numbered, Pagination};
use crate::metadata::openapi::{OpenApi, PathItem};
use crate::metadata::page_members::URLS;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The usual names of the query parameter for the number of entries to skip.
const OFFSETS: [&str; 3] = ["offset", "skip", "startAt"];
/// The usual names of that for the maximum number of entries.
const SIZES: [&str; 6] = ["limit", "max", "maxResults", "pageSize", "page_size", "size"];
/// The size of pages if the document states no maximum, and the largest size.
const SIZE: u32 = 100;
const LARGEST_SIZE: u32 = 1000;

/// Returns the pagination by offset, if the list has the parameters and its answers have no URL of the next page.
///
/// Numbers of pages are not inferred: documents rarely state whether they begin with 0, and a list without its first page
/// would lack resources.
pub fn pagination(document: &OpenApi, list: &PathItem, shape: &Shape) -> Option<Pagination> {
    let answer = list.operation(&Method::GET)?.response_schema();
    let members = answer.map(|answer| document.members(answer)).unwrap_or_default();
    if URLS.iter().chain(&[hal::LINKS]).any(|name| members.contains_key(*name)) {
        return None;
    }
    let parameters = document.query_parameters(list, &Method::GET);
    let named = |names: &[&'static str]| names.iter().find_map(|name| parameters.get_key_value(name));
    let ((offset, position), (limit, schema)) = (named(&OFFSETS)?, named(&SIZES)?);
    // A position that is text is a cursor.
    if [position, schema].into_iter().any(|schema| is_text(schema)) {
        return None;
    }
    let maximum = match schema.get("maximum") {
        Some(Value::Int(maximum)) => u32::try_from(*maximum).ok(),
        _ => None,
    };
    let size = maximum.filter(|size| *size > 0).map_or(SIZE, |size| size.min(LARGEST_SIZE));
    Some(Pagination::Offset(Numbered {
        parameter: (*offset).to_owned(),
        size_parameter: Some((*limit).to_owned()),
        size,
        start: 0,
        items: shape.entries.as_deref().map(Pointer::from_token),
    }))
}

fn is_text(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("string")
}
