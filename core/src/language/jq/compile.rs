//! Compiles the text of an expression into a filter.

use jaq_core::Filter;
use jaq_core::load::lex::{Lexer, Token};
use jaq_core::load::parse::{Def, Expect, Parser};
use jaq_core::load::{Arena, File, Loader};

use super::machine::Machine;
use super::natives;
use super::{Panicked, alternatives, instrument, library, on_stack};
use crate::error::categories;
use crate::payload::Position;

/// The maximum length of an expression, in bytes.
pub(super) const MAX_LENGTH: usize = 32 << 10;
/// The stack for parsing and compiling, in bytes, without the part that depends on the text.
const BASE_STACK: usize = 16 << 20;
/// The additional stack for each byte of the text, because each byte may nest one level deeper.
const STACK_PER_BYTE: usize = 16 << 10;

/// The variable of [`Context::observed`](super::Context::observed).
const OBSERVED: &str = "$observed";

/// The name of the definition that contains the expression.
const MAIN: &str = "transform";

/// A text is not a jq expression. Messages do not quote the text, because a rendered one contains payload values.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ExpressionError {
    /// The text is blank.
    #[error("the jq expression is blank; remove the step or write \".\"")]
    Blank,
    /// The text exceeds the maximum length.
    #[error("the jq expression has {0} bytes; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// The nesting of filters exceeds the maximum.
    #[error("the jq expression is nested too deep; define parts of it with def")]
    TooDeep,
    /// The syntax is not valid, or the text uses a module.
    #[error("the jq expression is not valid at {position}: expected {expected}")]
    Syntax {
        /// The position.
        position: Position,
        /// The expected token.
        expected: String,
    },
    /// A function, variable or label does not exist.
    #[error("the jq expression refers to an unknown {kind} at {position}")]
    Unknown {
        /// The position.
        position: Position,
        /// The kind: "function", "variable", "label" or "module".
        kind: &'static str,
    },
    /// The interpreter of jq failed.
    #[error("cannot compile the jq expression: {0}")]
    Panicked(Panicked),
}

categories!(ExpressionError {
    Validation: Blank, TooLong, TooDeep, Syntax, Unknown;
    Internal: Panicked;
});

/// Compiles `text`. It cannot import modules, because only a term is parsed.
pub(super) fn filter(text: &str) -> Result<Filter<Machine>, ExpressionError> {
    if text.trim().is_empty() {
        return Err(ExpressionError::Blank);
    }
    if text.len() > MAX_LENGTH {
        return Err(ExpressionError::TooLong(text.len()));
    }
    on_stack(BASE_STACK + text.len() * STACK_PER_BYTE, || parse_and_compile(text))
        .map_err(ExpressionError::Panicked)?
}

fn parse_and_compile(text: &str) -> Result<Filter<Machine>, ExpressionError> {
    let tokens = Lexer::new(text).lex().map_err(|errors| match errors.as_slice() {
        [(expected, at), ..] => syntax(text, at, expected.as_str()),
        [] => syntax(text, text, "an expression"),
    })?;
    let tokens = alternatives::joined(tokens);
    let term = Parser::new(&tokens).parse(Parser::term).map_err(|errors| match errors.as_slice() {
        [(Expect::Nothing, found), ..] => syntax(text, Token::opt_as_str(*found, text), "the end"),
        [(expected, found), ..] => syntax(text, Token::opt_as_str(*found, text), expected.as_str()),
        [] => syntax(text, text, "an expression"),
    })?;
    let body = instrument::term(term).map_err(|_| ExpressionError::TooDeep)?;
    let main = Def { name: MAIN, args: Vec::new(), body };
    let arena = Arena::default();
    let modules = Loader::new(library::definitions().iter().cloned().chain([main]))
        .load(&arena, File { code: MAIN, path: () })
        .map_err(|_| syntax(text, text, "an expression"))?;
    jaq_core::Compiler::default()
        .with_global_vars([OBSERVED])
        .with_funs(natives::public().chain(natives::tolls()))
        .compile(modules)
        .map_err(|errors| unknown(text, errors.iter().flat_map(|(_, errors)| errors)))
}

fn unknown<'e>(
    text: &str,
    mut errors: impl Iterator<Item = &'e (&'e str, jaq_core::compile::Undefined)>,
) -> ExpressionError {
    match errors.next() {
        Some((name, undefined)) => {
            let kind = match undefined {
                jaq_core::compile::Undefined::Filter(_) => "function",
                other => other.as_str(),
            };
            ExpressionError::Unknown { position: position(text, name), kind }
        }
        None => syntax(text, text, "an expression"),
    }
}

fn syntax(text: &str, at: &str, expected: &str) -> ExpressionError {
    ExpressionError::Syntax { position: position(text, at), expected: expected.to_owned() }
}

/// Returns the position of `part`, a slice of `text`.
fn position(text: &str, part: &str) -> Position {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count() + 1,
        column: Some(before[line_start..].chars().count() + 1),
    }
}
