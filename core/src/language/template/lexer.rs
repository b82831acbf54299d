//! Splits a template into text and actions, and actions into tokens.

use std::borrow::Cow;
use std::ops::Range;

use super::error::{Place, TemplateError};
use super::function::unknown;
use super::literal;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The white space in actions, which trim markers also remove from text.
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

#[derive(Debug)]
pub(super) enum Piece<'t> {
    /// Text, trimmed by the markers of its neighbours.
    Text(&'t str),
    Action(Action),
}

/// An action: the part between `{{` and `}}`.
#[derive(Debug)]
pub(super) struct Action {
    /// The bytes of the action, including its braces.
    pub(super) span: Range<usize>,
    pub(super) tokens: Vec<Token>,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// The offset of its start.
    pub(super) at: usize,
    /// Whether it is the first token, or white space precedes it.
    pub(super) spaced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A function, keyword or field.
    Name(String),
    Literal(Value),
    Pointer(Pointer),
    /// `.`
    Dot,
    /// `.a.b`
    Fields(Vec<String>),
    /// `$v`; the name of `$` is empty.
    Variable(String),
    Open,
    Close,
    Pipe,
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

/// Splits `text`.
pub(super) fn lex(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let (mut pieces, mut at, mut trim_start) = (Vec::new(), 0, false);
    loop {
        let open = text[at..].find("{{").map(|found| at + found);
        let mut chunk = &text[at..open.unwrap_or(text.len())];
        if trim_start {
            chunk = chunk.trim_start_matches(SPACE);
        }
        let marker = open.is_some_and(|open| starts_with_trim_marker(&text[open + 2..]));
        if marker {
            chunk = chunk.trim_end_matches(SPACE);
        }
        if !chunk.is_empty() {
            pieces.push(Piece::Text(chunk));
        }
        let Some(open) = open else { return Ok(pieces) };
        let mut scanner = Scanner { text, open, at: open + 2 + usize::from(marker) };
        let (tokens, trims) = scanner.tokens()?;
        at = scanner.at;
        trim_start = trims;
        pieces.push(Piece::Action(Action { span: open..at, tokens }));
    }
}

fn starts_with_trim_marker(body: &str) -> bool {
    body.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACE))
}

struct Scanner<'t> {
    text: &'t str,
    /// The offset of the start of the action.
    open: usize,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Reads the tokens up to and including the closing braces. Returns whether the braces have a trim marker.
    fn tokens(&mut self) -> Result<(Vec<Token>, bool), TemplateError> {
        let mut tokens: Vec<Token> = Vec::new();
        loop {
            let rest = self.rest().trim_start_matches(SPACE);
            let spaced = tokens.is_empty() || rest.len() < self.rest().len();
            self.at = self.text.len() - rest.len();
            if rest.starts_with("}}") {
                self.at += 2;
                return Ok((tokens, false));
            }
            if spaced && rest.starts_with("-}}") {
                self.at += 3;
                return Ok((tokens, true));
            }
            self.check_payload_syntax(&tokens)?;
            let at = self.at;
            let kind = self.token()?;
            tokens.push(Token { kind, at, spaced });
        }
    }

    /// Rejects `include` and `secret` before their operands are read, because these may not be valid tokens.
    fn check_payload_syntax(&mut self, before: &[Token]) -> Result<(), TemplateError> {
        match before {
            [Token { kind: TokenKind::Name(name), at, .. }]
                if matches!(name.as_str(), "include" | "secret") =>
            {
                self.at = *at;
                Err(self.error(unknown(name)))
            }
            _ => Ok(()),
        }
    }

    fn token(&mut self) -> Result<TokenKind, TemplateError> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let Some(first) = chars.next() else {
            return Err(self.error("it is not closed; add }} where it ends"));
        };
        let second = chars.next();
        match first {
            '(' => Ok(self.take(1, TokenKind::Open)),
            ')' => Ok(self.take(1, TokenKind::Close)),
            '|' => Ok(self.take(1, TokenKind::Pipe)),
            ',' => Ok(self.take(1, TokenKind::Comma)),
            ':' if second == Some('=') => Ok(self.take(2, TokenKind::Declare)),
            '"' | '`' => self.string(),
            '/' => self.pointer(),
            '.' => self.dot(),
            '$' => {
                let name = leading_name(&rest[1..]);
                self.take_word(1 + name.len(), TokenKind::Variable(name.to_owned()))
            }
            'A'..='Z' | 'a'..='z' | '_' => {
                let name = leading_name(rest);
                self.take_word(name.len(), TokenKind::Name(name.to_owned()))
            }
            '0'..='9' => self.number(),
            '+' | '-' if second.is_some_and(|second| second.is_ascii_digit()) => self.number(),
            '\'' => Err(self.error("write strings in double quotes or backquotes")),
            '=' => Ok(self.take(1, TokenKind::Assign)),
            other => Err(self.error(format!("unexpected {other:?}"))),
        }
    }

    fn take(&mut self, length: usize, kind: TokenKind) -> TokenKind {
        self.at += length;
        kind
    }

    /// Like [`Self::take`], for a token that a delimiter must follow.
    fn take_word(&mut self, length: usize, kind: TokenKind) -> Result<TokenKind, TemplateError> {
        let chains = matches!(kind, TokenKind::Variable(_));
        let start = self.at;
        self.at += length;
        let rest = self.rest();
        let ends = rest.is_empty()
            || rest.starts_with(SPACE)
            || rest.starts_with(['(', ')', '|', ',', ':', '=', '}'])
            || (chains && rest.starts_with('.'));
        if ends {
            return Ok(kind);
        }
        let word: String = self.text[start..].chars().take_while(|char| !ends_pointer(*char)).collect();
        let word = word.split("}}").next().unwrap_or_default();
        if matches!(kind, TokenKind::Literal(_)) {
            return Err(self.error(format!("{word} is not a decimal number")));
        }
        let field = word.trim_start_matches(['.', '$']).replace('.', "/");
        Err(self.error(format!("names consist of letters, digits and _; write this field as /{field}")))
    }

    fn string(&mut self) -> Result<TokenKind, TemplateError> {
        match literal::string(self.rest()) {
            Ok((text, length)) => Ok(self.take(length, TokenKind::Literal(Value::String(text)))),
            Err((reason, offset)) => {
                self.at += offset;
                Err(self.error(reason))
            }
        }
    }

    fn number(&mut self) -> Result<TokenKind, TemplateError> {
        match literal::number(self.rest()) {
            Ok((value, length)) => self.take_word(length, TokenKind::Literal(value)),
            Err(reason) => Err(self.error(reason)),
        }
    }

    fn pointer(&mut self) -> Result<TokenKind, TemplateError> {
        let rest = self.rest();
        let body = rest.split("}}").next().unwrap_or_default();
        if body.starts_with("/*") && body.contains("*/") {
            return Err(self.error("comments are not available in templates; remove it"));
        }
        let length = body.find(ends_pointer).unwrap_or(body.len());
        match Pointer::parse(&body[..length]) {
            Ok(pointer) => Ok(self.take(length, TokenKind::Pointer(pointer))),
            Err(error) => Err(self.error(error.to_string())),
        }
    }

    fn dot(&mut self) -> Result<TokenKind, TemplateError> {
        if self.rest().starts_with("..") {
            return Err(self.error(
                "`../` is reserved for ancestors and not available; for a name from the path, use the \
                 field derived from it, such as {{/shop}}",
            ));
        }
        let (mut names, mut length) = (Vec::new(), 0);
        while let Some(rest) = self.rest()[length..].strip_prefix('.') {
            let name = leading_name(rest);
            if name.is_empty() {
                break;
            }
            length += 1 + name.len();
            names.push(name.to_owned());
        }
        if names.is_empty() {
            self.take_word(1, TokenKind::Dot)
        } else {
            self.take_word(length, TokenKind::Fields(names))
        }
    }

    fn error(&self, reason: impl Into<Cow<'static, str>>) -> TemplateError {
        let end = self.text[self.open..].find("}}").map_or(self.text.len(), |end| self.open + end + 2);
        let action = self.open..end.max(self.at);
        TemplateError::Syntax { at: Place::new(self.text, action, self.at), reason: reason.into() }
    }
}

/// Returns whether a character ends a pointer. Keys with such characters require `json_pointer`.
fn ends_pointer(char: char) -> bool {
    SPACE.contains(&char) || matches!(char, '|' | '(' | ')' | '"' | '`' | ',')
}

/// Returns the name that `text` starts with; empty if it does not start with a name.
fn leading_name(text: &str) -> &str {
    if text.starts_with(|char: char| char.is_ascii_digit()) {
        return "";
    }
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(text.len());
    &text[..end]
}
