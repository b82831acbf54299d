//! The template language of metadata, for paths, methods, queries, headers and jq expressions. An
//! [`IdentityTemplate`] is a simpler kind of template, for the names of resources.
//!
//! A [`Template`] is compiled once and rendered for every resource it governs. Rendering reads a [`Scope`]
//! that borrows the payload. It does no I/O, and its result and work are limited.
//!
//! ```text
//! template = { text | "{{" body "}}" }              "{{- " and " -}}" also trim adjacent white space
//! body     = pointer | name | "." name              placeholder
//!          | "if" P | "else if" P | "else" | "with" P | "range" [$k "," $v ":="] P | "end" | $v ":=" P | P
//! P        = command { "|" command }                the result is the last operand of the next command
//! command  = function operand* | operand
//! operand  = "str" | `raw` | number | true | false | nil | "." | "."name{"."name} | $ | $v | "(" P ")" | pointer
//! ```
//!
//! Pointers (`/a/b`) and bare names always start from the root. `.a.b` starts from the dot, which `with` and `range`
//! set, and `$.a` from the root; both may also follow a variable or parenthesis.
//!
//! | function | result |
//! |---|---|
//! | `eq a b…` | whether `a` equals one of `b`; a missing value equals no value; different types are an error |
//! | `ne lt le gt ge not and or` | as named; `and` and `or` return the operand that decides |
//! | `index x k…` | member or element; a missing member is missing, an invalid array index is an error |
//! | `len slice print printf println` | as named; strings are counted in bytes; formats support `%s %d %v %q %t %f %.2f` |
//! | `urlquery html js` | the operands, escaped for a query, HTML or a JavaScript string |
//! | `payload_type .` `payload_media_type .` `payload_extension .` | type, media type and extension of the payload |
//! | `json_pointer "/a"` | the same as `/a`, for keys that a pointer operand cannot contain |
//! | `uppercase` `lowercase` `trim` | the text in upper case, in lower case, or without surrounding white space |
//! | `substring v start [len]` | code points of a text |
//! | `default a b…` | the first operand that is neither missing, null nor blank |
//! | `ref path pointer` | the value at a pointer into the payload of another resource |
//!
//! Missing and empty values, null, `false` and zero are false.
//!
//! ```
//! use declarest_core::language::template::{DerivedFields, Kind, Observed, Scope, Target, Template};
//! use declarest_core::path::{LogicalPath, PathNames};
//! use declarest_core::payload::{PayloadType, decode};
//!
//! let template = Template::parse("/v2/{{/shop}}/tills{{if .size}}/{{.size}}{{end}}", Kind::Path)?;
//! let payload = decode(PayloadType::Yaml, b"shop: rio\nsize: 3\n")?;
//! let (path, collection) = (LogicalPath::parse("/tills/t1")?, LogicalPath::parse("/tills")?);
//! let scope = Scope {
//!     target: Target { path: &path, collection: &collection, descendants: None, names: PathNames::Literal },
//!     payload: Some(&payload),
//!     descriptor: None,
//!     remote_collection: None,
//!     alias: "t1",
//!     remote_id: "t1",
//!     derived: &DerivedFields::default(),
//!     values: None,
//!     observed: Observed::Nothing,
//! };
//! assert_eq!(template.render(&scope)?, "/v2/rio/tills/3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ast;
mod call;
mod derive;
mod error;
mod escape;
mod expression;
mod field;
mod function;
mod identity;
mod jq;
mod lexer;
mod literal;
mod operand;
mod parser;
mod pattern;
mod print;
mod render;
mod scope;
mod sink;
mod target;
#[cfg(test)]
mod tests;

use crate::payload::pointer::Pointer;

pub(crate) use derive::singular;
pub use derive::{DerivedFields, derive_fields};
pub use error::{Place, TemplateError};
pub use identity::{IdentityError, IdentityTemplate};
pub use pattern::{OperationSources, PathPattern, PatternSources, path_patterns};
pub use scope::{Observed, Scope};
pub use target::{Descendants, Target};

/// The maximum length of a rendered text, in bytes.
pub const MAX_OUTPUT: usize = 1 << 20;

/// The maximum nesting of blocks and parentheses.
pub const MAX_NESTING: usize = 64;

/// The maximum work of one rendering: the number of evaluations plus the bytes of texts that functions return.
const MAX_WORK: usize = 1 << 21;

/// The use of a template, which determines the checks of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The path of an operation: unencoded, or percent-encoded if the names in paths are. Then each value is one
    /// segment, or a part of one. A value must not be empty, consist of slashes, or make a `.` or `..`
    /// segment. Only `descendantPath` and `descendantCollectionPath` may be empty.
    Path,
    /// `remoteCollectionPath`, with the rules of [`Kind::Path`].
    RemoteCollectionPath,
    /// The path of a resource in the repository, with the rules of [`Kind::Path`].
    ResourcePath,
    /// The method of an operation; values are not changed.
    Method,
    /// The value of a query parameter; values are not changed here, but encoded when they are sent.
    Query,
    /// The value of a header; template and values must not have line breaks.
    Header,
    /// A jq expression. Values are escaped as in JSON inside of a string literal; elsewhere they are jq.
    Jq,
}

impl Kind {
    /// Whether the text is a path. White space around it is not a part of the path.
    const fn is_path(self) -> bool {
        matches!(self, Self::Path | Self::RemoteCollectionPath | Self::ResourcePath)
    }
}

/// A compiled template.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
    kind: Kind,
    parsed: parser::Parsed,
}

impl Template {
    /// Compiles `text`. Fails with [`TemplateError::Syntax`], or with [`TemplateError::Limit`] if it exceeds
    /// [`MAX_NESTING`].
    pub fn parse(text: &str, kind: Kind) -> Result<Self, TemplateError> {
        Ok(Self { text: text.to_owned(), kind, parsed: parser::parse(text, kind)? })
    }

    /// Renders the template. Errors depend only on the template and the scope, so a retry has the same result.
    pub fn render(&self, scope: &Scope<'_>) -> Result<String, TemplateError> {
        render::render(self, scope)
    }

    /// The template as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The use of the template.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the template has no actions.
    pub fn is_static(&self) -> bool {
        self.static_text().is_some()
    }

    /// Returns the text that the template renders to if it has no actions.
    pub fn static_text(&self) -> Option<&str> {
        let is_text = self.parsed.nodes.iter().all(|node| matches!(node, ast::Node::Text(_)));
        is_text.then(|| if self.kind.is_path() { self.text.trim() } else { &*self.text })
    }

    /// Returns whether the template refers to other resources.
    pub fn refers(&self) -> bool {
        self.parsed.refers
    }

    /// Returns whether the template uses `$observed`.
    pub fn observes(&self) -> bool {
        self.parsed.observes
    }

    /// The fields of the root that the template names literally, in order and without duplicates. Not all of them have
    /// to exist, because some may be in a branch that is not rendered.
    pub fn pointers(&self) -> &[Pointer] {
        &self.parsed.pointers
    }
}
