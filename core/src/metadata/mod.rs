//! Metadata: the rules for the identity of a resource, the HTTP request of each operation, and the comparison of
//! payloads.
//!
//! [`Metadata`] holds the documents of a revision. It compiles [`Rules`] once per set of applicable documents, and
//! shares them between all resources that they govern. An [`Evaluation`] applies the rules to one resource without
//! parsing anything.
//!
//! If no document exists, the conventions apply: `GET` of a collection returns its members, and `POST` adds one. A
//! member is at `<collection>/<id>` and supports `GET`, `PUT` and `DELETE`. Its id is the payload's `id`, otherwise
//! the last segment of its path.

mod api;
mod body;
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
mod overlay;
mod page_members;
mod pagination;
mod rendered;
mod resolve;
mod rules;
mod source;
mod steps;
pub mod transform;
mod validation;

pub use api::Api;
pub use body::Body;
pub use compare::{Change, Comparison, Difference, differences};
pub use document::{OperationName, read};
pub use error::MetadataError;
pub use evaluation::{Evaluation, Rendered, Subject};
pub use identity::{Identity, is_assigned};
pub use list::{Entries, Entry, Listing, Shape, Stated, is_named, well_known};
pub use origin::Origin;
pub use pagination::{NextPage, PageParameters, PageView, Pager, is_usual_page};
pub use resolve::Metadata;
pub use rules::Rules;
pub use source::Source;
pub use validation::{Validation, ValidationError};
