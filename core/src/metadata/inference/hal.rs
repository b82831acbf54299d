//! Answers in the format of HAL (draft-kelly-json-hal): lists are in `_embedded`, and the id of a resource may be only the
//! end of the link to itself.

use crate::metadata::openapi::OpenApi;
use crate::metadata::transform::member_expression;
use crate::payload::pointer::Pointer;

/// The member that holds links, such as those to other pages.
pub const LINKS: &str = "_links";

/// The members that HAL reserves.
pub const RESERVED: [&str; 2] = ["_embedded", LINKS];

/// The jq expression that takes the id from the link, which may be a URI template (RFC 6570). Requests encode the id again.
pub const ID: &str = r#". + {id: (._links.self.href | split("{")[0] | split("?")[0] | rtrimstr("/") | split("/")[-1] | @urid)}"#;

/// Returns the array in `_embedded` of a list, and the schema of its entries.
pub fn embedded(document: &OpenApi, list: &Pointer) -> Option<(String, Pointer)> {
    let embedded = document.members(list).remove("_embedded")?;
    let mut arrays = document.arrays(&embedded);
    arrays.pop().filter(|_| arrays.is_empty())
}

/// Returns whether the id of a resource is only in its link.
pub fn is_linked(document: &OpenApi, resource: &Pointer) -> bool {
    let attributes = document.properties(resource);
    attributes.contains(LINKS) && !attributes.contains("id")
}

/// Returns the jq expression that selects the entries of a list: those of an array in `_embedded`, which empty lists may
/// lack, otherwise those of the answer.
pub fn entries(embedded: Option<&str>, linked: bool) -> String {
    let array = embedded.map(|name| format!("._embedded{}[]?", member_expression(name)));
    let array = array.as_deref().unwrap_or(".[]");
    if linked { format!("[{array} | {ID} | del(._links, ._embedded)]") } else { format!("[{array}]") }
}
