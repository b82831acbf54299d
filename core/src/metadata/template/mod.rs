//! The template language of metadata: what paths, queries, headers and jq expressions are written in.
//!
//! A [`Template`] is compiled once and rendered for every resource it governs. Rendering reads a [`Scope`]
//! that borrows the payload; it does no I/O and its result is bounded.
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
//! Pointers (`/a/b`) and bare names always start from the root. `.a.b` starts from what `with` and `range`
//! made of the dot, and `$.a` from the root; both may follow a variable or parenthesis as well.
//!
//! | function | result |
//! |---|---|
//! | `eq a b…` | whether `a` equals some `b`; nothing equals a missing value; different kinds fail |
//! | `ne lt le gt ge not and or` | as named; `and` and `or` return the operand that decides |
//! | `index x k…` | member or element; a missing member is missing, a bad array index fails |
//! | `len slice print printf println` | as named; strings are counted in bytes; formats know `%s %d %v %q %t` |
//! | `urlquery html js` | the operands, escaped for a query, HTML or a JavaScript string |
//! | `payload_type .` `payload_media_type .` `payload_extension .` | what the active payload format is |
//! | `json_pointer "/a"` | the same as `/a`, for keys that a pointer operand cannot hold |
//! | `uppercase` `lowercase` `trim` | the text changed so |
//! | `substring v start [len]` | code points of a text |
//! | `default a b…` | the first operand that is neither missing, null nor blank |
//!
//! False are missing values, null, `false`, zero, and everything empty.
//!
//! ```
//! use declarest_core::metadata::template::{DerivedFields, Kind, Scope, Target, Template};
//! use declarest_core::path::LogicalPath;
//! use declarest_core::payload::{PayloadType, decode};
//!
//! let template = Template::parse("/v2/{{/shop}}/tills{{if .size}}/{{.size}}{{end}}", Kind::Path)?;
//! let payload = decode(PayloadType::Yaml, b"shop: rio\nsize: 3\n")?;
//! let (path, collection) = (LogicalPath::parse("/tills/t1")?, LogicalPath::parse("/tills")?);
//! let scope = Scope {
//!     target: Target { path: &path, collection: &collection, descendants: None },
//!     payload: Some(&payload),
//!     descriptor: None,
//!     remote_collection: None,
//!     alias: "t1",
//!     remote_id: "t1",
//!     derived: &DerivedFields::default(),
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
mod function;
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
#[cfg(test)]
mod tests;

use crate::payload::pointer::Pointer;

pub(super) use derive::singular;
pub use derive::{DerivedFields, Descendants, derive_fields};
pub use error::{Place, TemplateError};
pub use pattern::{OperationSources, PathPattern, PatternSources, path_patterns};
pub use scope::{Scope, Target};

/// The longest text a template may render to, in bytes.
pub const MAX_OUTPUT: usize = 1 << 20;

/// How deep blocks and parentheses may nest.
pub const MAX_NESTING: usize = 64;

/// How much one rendering may do: evaluations plus the bytes of the texts that functions make.
const MAX_WORK: usize = 1 << 21;

/// Where a template is used; decides how values are guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The path of an operation, unencoded. A value must not be empty, nothing but slashes, or make a `.`
    /// or `..` segment; only `descendantPath` and `descendantCollectionPath` may be empty.
    Path,
    /// `remoteCollectionPath`, with the rules of [`Kind::Path`].
    RemoteCollectionPath,
    /// The method of an operation; values are taken as they are.
    Method,
    /// The value of a query parameter; values are taken as they are and encoded when sent.
    Query,
    /// The value of a header: one line, in the template as in its values.
    Header,
    /// A jq expression. Inside of a string literal values are escaped as in JSON, elsewhere they are jq.
    Jq,
}

/// A compiled template.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
    kind: Kind,
    parsed: parser::Parsed,
}

impl Template {
    /// Compiles `text`. Fails with [`TemplateError::Syntax`], or [`TemplateError::Limit`] where it nests
    /// deeper than [`MAX_NESTING`].
    pub fn parse(text: &str, kind: Kind) -> Result<Self, TemplateError> {
        Ok(Self { text: text.to_owned(), kind, parsed: parser::parse(text, kind)? })
    }

    /// Renders the template. Every failure is the fault of template or payload and will happen again.
    pub fn render(&self, scope: &Scope<'_>) -> Result<String, TemplateError> {
        render::render(self, scope)
    }

    /// The template as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the template is used.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it is mere text, which renders to itself in every scope.
    pub fn is_static(&self) -> bool {
        self.static_text().is_some()
    }

    /// The text, if the template is mere text.
    pub fn static_text(&self) -> Option<&str> {
        let is_text = self.parsed.nodes.iter().all(|node| matches!(node, ast::Node::Text(_)));
        is_text.then_some(&*self.text)
    }

    /// The fields of the root that the template names, as far as they are written out, each once and in
    /// order. Not all of them need to exist: a branch not taken asks for nothing.
    pub fn pointers(&self) -> &[Pointer] {
        &self.parsed.pointers
    }
}
