//! `operations.list.pagination`: how the pages of a list are requested.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::payload::pointer::Pointer;

/// How the pages after the first one are found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PaginationFields")]
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
    /// The body has a text or number that is sent in a parameter of the next request.
    Cursor {
        /// The pointer of the value. If it is absent, null, false or empty, the list ends.
        pointer: Pointer,
        /// The query parameter, or the pointer of the member of the request's body.
        parameter: String,
    },
    /// A parameter is the number of entries to skip.
    Offset(Numbered),
    /// A parameter is the number of the page.
    Page(Numbered),
}

/// Pages that are requested in sequence, up to the first one that is not full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The query parameter, or the pointer of the member of the request's body.
    pub parameter: String,
    /// The same for the size; `None` if the server has a fixed size.
    pub size_parameter: Option<String>,
    /// The number of entries on a full page, from 1 to [`Numbered::MAX_SIZE`].
    pub size: u32,
    /// The value of the parameter for the first page.
    pub start: u32,
    /// The pointer of the entries in a response, before transforms; `None` if the response is an array, or an object
    /// with `items` or one array.
    pub items: Option<Pointer>,
}

impl Numbered {
    /// The maximum size of a page.
    pub const MAX_SIZE: u32 = 1_000_000;
}

/// The `style` of a pagination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PaginationStyle {
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
    /// [`Pagination::Whole`].
    None,
}

/// How the pages after the first one are requested. By default, this is taken from the responses.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PaginationFields {
    /// How the next page is found. none: the list has only one page.
    style: PaginationStyle,
    /// The pointer of the URL (style next) or of the cursor of the next page in a response.
    pointer: Option<Pointer>,
    /// The query parameter for the cursor, the offset or the number of the page, or a pointer to a member of the body.
    parameter: Option<String>,
    /// The query parameter for the size, or a pointer to a member of the body; unless the server has a fixed size.
    size_parameter: Option<String>,
    /// The number of entries on a full page.
    #[serde(default, deserialize_with = "size")]
    #[schemars(range(min = 1, max = Numbered::MAX_SIZE))]
    size: Option<u32>,
    /// The first offset (default 0) or page (default 1).
    #[serde(default, deserialize_with = "start")]
    #[schemars(range(min = 0, max = u32::MAX))]
    start: Option<u32>,
    /// The pointer of the entries in a response, if it is not a common list.
    items: Option<Pointer>,
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1, Numbered::MAX_SIZE)
}

fn start<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 0, u32::MAX)
}

fn within<'de, D: Deserializer<'de>>(
    deserializer: D,
    least: u32,
    most: u32,
) -> Result<Option<u32>, D::Error> {
    let number = u32::try_from(i64::deserialize(deserializer)?).ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.map(Some).ok_or_else(|| Error::custom(format_args!("must be from {least} to {most}")))
}

impl TryFrom<PaginationFields> for Pagination {
    type Error = String;

    fn try_from(fields: PaginationFields) -> Result<Self, String> {
        let missing = |key| move || format!("\"{key}\" is missing");
        let style = fields.style;
        let pointer = fields.pointer.ok_or_else(missing("pointer"));
        let parameter = fields.parameter.ok_or_else(missing("parameter"));
        let numbered = |parameter| {
            Ok::<_, String>(Numbered {
                parameter,
                size_parameter: fields.size_parameter,
                size: fields.size.ok_or_else(missing("size"))?,
                start: fields.start.unwrap_or(style.start()),
                items: fields.items,
            })
        };
        Ok(match style {
            PaginationStyle::None => Self::Whole,
            PaginationStyle::Link => Self::Link,
            PaginationStyle::Next => Self::Next { pointer: pointer? },
            PaginationStyle::Cursor => Self::Cursor { pointer: pointer?, parameter: parameter? },
            PaginationStyle::Offset => Self::Offset(numbered(parameter?)?),
            PaginationStyle::Page => Self::Page(numbered(parameter?)?),
        })
    }
}

impl Serialize for Pagination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let style = self.style();
        let json = match self {
            Self::Whole | Self::Link => json!({"style": style}),
            Self::Next { pointer } => json!({"style": style, "pointer": pointer}),
            Self::Cursor { pointer, parameter } => {
                json!({"style": style, "pointer": pointer, "parameter": parameter})
            }
            Self::Offset(numbered) | Self::Page(numbered) => json!({
                "style": style,
                "parameter": numbered.parameter,
                "sizeParameter": numbered.size_parameter,
                "size": numbered.size,
                "start": (numbered.start != style.start()).then_some(numbered.start),
                "items": numbered.items,
            }),
        };
        json.serialize(serializer)
    }
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
