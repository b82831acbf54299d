//! `operations.list.pagination`: how the pages of a list are requested.

use crate::payload::fields::Keyword;
use crate::payload::pointer::Pointer;

/// How the pages after the first one are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pagination {
    /// The first response is always the whole list.
    Whole,
    /// A `Link` header with the relation `next` has the URL of the next page (RFC 8288).
    Link,
    /// The body has the URL of the next page.
    Next {
        /// The pointer of the value. If it is absent, null, false or empty, the list ends.
        pointer: Pointer,
    },
    /// The body has a text or number that is sent in a query parameter of the next request.
    Cursor {
        /// The pointer of the value. If it is absent, null, false or empty, the list ends.
        pointer: Pointer,
        /// The query parameter.
        parameter: String,
    },
    /// A query parameter is the number of entries to skip.
    Offset(Numbered),
    /// A query parameter is the number of the page.
    Page(Numbered),
}

/// Pages that are requested in sequence, up to the first one that is not full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The query parameter.
    pub parameter: String,
    /// The query parameter for the size; `None` if the server has a fixed size.
    pub size_parameter: Option<String>,
    /// The number of entries on a full page, from 1 to [`Numbered::MAX_SIZE`].
    pub size: u32,
    /// The value of the parameter for the first page.
    pub start: u32,
    /// The pointer of the entries in a response, before transforms; `None` if the response is an array, or an object
    /// with
    /// `items` or one array.
    pub items: Option<Pointer>,
}

impl Numbered {
    /// The maximum size of a page.
    pub const MAX_SIZE: u32 = 1_000_000;
}

/// The `style` of a pagination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaginationStyle {
    /// [`Pagination::Whole`].
    None,
    /// [`Pagination::Link`].
    Link,
    /// [`Pagination::Next`].
    Next,
    /// [`Pagination::Cursor`].
    Cursor,
    /// [`Pagination::Offset`].
    Offset,
    /// [`Pagination::Page`].
    Page,
}

impl Keyword for PaginationStyle {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("link", Self::Link),
        ("next", Self::Next),
        ("cursor", Self::Cursor),
        ("offset", Self::Offset),
        ("page", Self::Page),
        ("none", Self::None),
    ];
}

impl PaginationStyle {
    /// The keys that are allowed in addition to `style`.
    pub(super) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::None | Self::Link => &[],
            Self::Next => &["pointer"],
            Self::Cursor => &["pointer", "parameter"],
            Self::Offset | Self::Page => &["parameter", "sizeParameter", "size", "start", "items"],
        }
    }

    /// The default of `start`.
    pub(super) const fn start(self) -> u32 {
        if matches!(self, Self::Page) { 1 } else { 0 }
    }
}

impl Pagination {
    /// The style.
    pub const fn style(&self) -> PaginationStyle {
        match self {
            Self::Whole => PaginationStyle::None,
            Self::Link => PaginationStyle::Link,
            Self::Next { .. } => PaginationStyle::Next,
            Self::Cursor { .. } => PaginationStyle::Cursor,
            Self::Offset(_) => PaginationStyle::Offset,
            Self::Page(_) => PaginationStyle::Page,
        }
    }

    /// The rules of offset or page numbers, if the style has them.
    pub const fn numbered(&self) -> Option<&Numbered> {
        match self {
            Self::Offset(numbered) | Self::Page(numbered) => Some(numbered),
            _ => None,
        }
    }
}
