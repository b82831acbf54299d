//! Infers how the pages of a list are requested.

use http::Method;

use super::hal;
use super::shape::Shape;
use crate::metadata::document::{Numbered, Pagination};
use crate::metadata::openapi::{OpenApi, PathItem};
use crate::metadata::page_members::is_next_url;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The usual names of the query parameter for the number of entries to skip.
const OFFSETS: [&str; 3] = ["offset", "skip", "startAt"];
/// The usual names of that for the number of the page.
const PAGES: [&str; 3] = ["page", "pageNumber", "page_number"];
/// The usual names of that for the maximum number of entries.
const SIZES: [&str; 8] =
    ["limit", "max", "maxResults", "pageSize", "page_size", "perPage", "per_page", "size"];
/// The size of pages if the document states no maximum, and the largest size.
const SIZE: u32 = 100;
const LARGEST_SIZE: u32 = 1000;

/// Returns the pagination by offset or by number of the page, if the list has the parameters and its answers have no URL of
/// the next page.
///
/// Numbers of pages are inferred only if the document states the first one: a list without its first page would lack
/// resources.
pub fn pagination(document: &OpenApi, list: &PathItem, shape: &Shape) -> Option<Pagination> {
    let answer = list.operation(&Method::GET)?.response_schema();
    let members = answer.map(|answer| document.members(answer)).unwrap_or_default();
    if members.keys().any(|name| is_next_url(name) || name == hal::LINKS) {
        return None;
    }
    let parameters = document.query_parameters(list, &Method::GET);
    let named = |names: &[&'static str]| names.iter().find_map(|name| parameters.get_key_value(name));
    let by_number = || {
        let (name, schema) = named(&PAGES)?;
        Some((name, schema, Some(first_page(schema)?)))
    };
    let by_offset = named(&OFFSETS).map(|(name, schema)| (name, schema, None));
    let ((parameter, position, first), (limit, schema)) = (by_offset.or_else(by_number)?, named(&SIZES)?);
    // A position that is text is a cursor.
    if [position, schema].into_iter().any(|schema| is_text(schema)) {
        return None;
    }
    let maximum = match schema.get("maximum") {
        Some(Value::Int(maximum)) => u32::try_from(*maximum).ok(),
        _ => None,
    };
    let size = maximum.filter(|size| *size > 0).map_or(SIZE, |size| size.min(LARGEST_SIZE));
    let numbered = Numbered {
        parameter: (*parameter).to_owned(),
        size_parameter: Some((*limit).to_owned()),
        size,
        start: first.unwrap_or_default(),
        items: shape.entries.as_deref().map(Pointer::from_token),
    };
    Some(if first.is_some() { Pagination::Page(numbered) } else { Pagination::Offset(numbered) })
}

/// Returns the number of the first page: that of a request without the parameter, otherwise the lowest one.
fn first_page(schema: &Value) -> Option<u32> {
    match schema.get("default").or_else(|| schema.get("minimum")) {
        Some(Value::Int(0)) => Some(0),
        Some(Value::Int(1)) => Some(1),
        _ => None,
    }
}

fn is_text(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("string")
}
