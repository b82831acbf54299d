//! `operations.list.pagination`: how the pages of a list are asked for.

use crate::payload::fields::Keyword;
use crate::payload::pointer::Pointer;

/// How the pages after the first one are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pagination {
    /// The first answer is the whole list, whatever it looks like.
    Whole,
    /// A `Link` header with the relation `next` tells the URL (RFC 8288).
    Link,
    /// The body tells the URL.
    Next {
        /// Where; what is absent, null, false or empty there ends the list.
        pointer: Pointer,
    },
    /// The body tells a text or number that a query parameter takes back.
    Cursor {
        /// Where; what is absent, null, false or empty there ends the list.
        pointer: Pointer,
        /// The query parameter.
        parameter: String,
    },
    /// A query parameter takes how many entries are skipped.
    Offset(Numbered),
    /// A query parameter takes the number of the page.
    Page(Numbered),
}

/// Pages that are asked for one after the other, up to the first one that is not full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The query parameter.
    pub parameter: String,
    /// The query parameter that takes the size; `None` where the server has a fixed one.
    pub size_parameter: Option<String>,
    /// How many entries a full page has, from 1 to [`Numbered::MAX_SIZE`].
    pub size: u32,
    /// What the parameter is for the first page.
    pub start: u32,
    /// Where an answer has its entries, before transforms; `None` where it is an array, or an object with
    /// `items` or one array.
    pub items: Option<Pointer>,
}

impl Numbered {
    /// The largest size of a page.
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
    /// The keys that mean something besides `style`.
    pub(super) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::None | Self::Link => &[],
            Self::Next => &["pointer"],
            Self::Cursor => &["pointer", "parameter"],
            Self::Offset | Self::Page => &["parameter", "sizeParameter", "size", "start", "items"],
        }
    }

    /// The `start` where none is stated.
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

    /// How its pages are numbered, if they are.
    pub const fn numbered(&self) -> Option<&Numbered> {
        match self {
            Self::Offset(numbered) | Self::Page(numbered) => Some(numbered),
            _ => None,
        }
    }
}
