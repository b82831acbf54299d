//! Metadata: who a resource is, which HTTP request each operation becomes, what counts as equal.
//!
//! [`Metadata`] answers for a revision; it compiles [`Rules`] once per set of applicable documents and
//! shares them between all resources they govern. An [`Evaluation`] applies them to one resource and parses
//! nothing.
//!
//! Where no document exists the conventions hold: a collection answers `GET` with its members and takes
//! new ones by `POST`; a member lives at `<collection>/<id>` and takes `GET`, `PUT` and `DELETE`; its id
//! is the payload's `id`, else the last segment of its path.

mod api;
mod body;
pub mod bundle;
mod check;
#[cfg(test)]
mod check_tests;
mod compare;
pub mod document;
mod error;
mod evaluation;
pub mod identity;
pub mod includes;
pub mod inference;
mod list;
pub mod openapi;
mod origin;
mod pagination;
mod rendered;
mod resolve;
mod rules;
mod source;
pub mod template;
pub mod transform;
mod unused;
mod validation;

pub use api::Api;
pub use body::Body;
pub use check::{check, read};
pub use compare::{Change, Comparison, Difference, differences};
pub use document::OperationName;
pub use error::MetadataError;
pub use evaluation::{Evaluation, Rendered, Subject};
pub use identity::Identity;
pub use list::{Entries, Entry, Listing, Shape, Stated, is_named};
pub use origin::Origin;
pub(crate) use pagination::replace_parameters;
pub use pagination::{NextPage, PageView, Pager};
pub use resolve::Metadata;
pub use rules::Rules;
pub use source::Source;
pub use unused::{Unused, UnusedFile, unused_files};
pub use validation::{Validation, ValidationError};
