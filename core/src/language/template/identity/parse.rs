//! Parses identity templates.

use super::template::{Argument, Expression, Function, Part};
use super::{IdentityError, IdentityTemplate};
use crate::payload::pointer::Pointer;

impl IdentityTemplate {
    /// Parses a template.
    ///
    /// Without `{{`, it is a pointer if it starts with `/`, otherwise a constant. An expression is a pointer, a
    /// name (`name` and `.name` are `/name`), a quoted string, or one of these helpers with arguments:
    /// `uppercase`, `lowercase` and `trim` of a value; `substring` of a value, a start and optionally a
    /// length, counted in code points; `default`, the first of its values that is not blank.
    ///
    /// ```
    /// use declarest_core::language::template::IdentityTemplate;
    /// use declarest_core::payload::{PayloadType, decode};
    ///
    /// let template = IdentityTemplate::parse("{{lowercase /name}}-{{default /ext code}}")?;
    /// let payload = decode(PayloadType::Json, br#"{"name": "Rio", "code": "K9"}"#)?;
    /// assert_eq!(template.evaluate(&payload)?, "rio-K9");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(source: &str) -> Result<Self, IdentityError> {
        let parser = Parser { source };
        let trimmed = source.trim();
        if trimmed.is_empty() {
            return Err(parser.error(source, "it is blank; write a pointer such as /name"));
        }
        let parts = if trimmed.contains("{{") {
            parser.parts(trimmed)?
        } else if trimmed.starts_with('/') {
            vec![Part::Expression(Expression::Value(Argument::Pointer(parser.pointer(trimmed)?)))]
        } else {
            vec![Part::Text(trimmed.to_owned())]
        };
        Ok(Self::new(source.to_owned(), parts))
    }
}

/// The parser. All texts that its functions receive are slices of `source`, which is how errors get their column.
#[derive(Clone, Copy)]
struct Parser<'s> {
    source: &'s str,
}

/// A word of an expression, or a quoted string: its source, and its content without quotes and escapes.
enum Token<'s> {
    Word(&'s str),
    Quoted(&'s str, String),
}

impl<'s> Token<'s> {
    fn text(&self) -> &'s str {
        match self {
            Self::Word(text) | Self::Quoted(text, _) => text,
        }
    }
}

impl<'s> Parser<'s> {
    fn error(self, at: &str, reason: impl Into<String>) -> IdentityError {
        let offset = (at.as_ptr() as usize).saturating_sub(self.source.as_ptr() as usize);
        let before = self.source.get(..offset).unwrap_or_default();
        IdentityError::Syntax {
            template: self.source.to_owned(),
            column: before.chars().count() + 1,
            reason: reason.into(),
        }
    }

    fn parts(self, mut rest: &'s str) -> Result<Vec<Part>, IdentityError> {
        let mut parts = Vec::new();
        while let Some(open) = rest.find("{{") {
            if open > 0 {
                parts.push(Part::Text(rest[..open].to_owned()));
            }
            let body = &rest[open + 2..];
            let Some(close) = closing(body) else {
                return Err(self.error(&rest[open..], "\"{{\" is not closed by \"}}\""));
            };
            parts.push(Part::Expression(self.expression(&body[..close])?));
            rest = &body[close + 2..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(parts)
    }

    fn expression(self, body: &'s str) -> Result<Expression, IdentityError> {
        let tokens = self.tokens(body)?;
        let Some((head, rest)) = tokens.split_first() else {
            return Err(self.error(body, "the braces are empty; write a pointer such as {{/name}}"));
        };
        if let Token::Word(name) = head {
            if let Some(function) = Function::named(name) {
                return self.call(function, head.text(), rest);
            }
            if !rest.is_empty() && is_name(name) {
                let known = "uppercase, lowercase, trim, substring and default";
                return Err(self.error(name, format!("unknown helper \"{name}\"; known are {known}")));
            }
        }
        if let Some(extra) = rest.first() {
            return Err(self.error(extra.text(), "only one value is expected within the braces"));
        }
        match self.argument(head)? {
            Argument::Number(_) => {
                Err(self.error(head.text(), "a number alone is not a value of the payload"))
            }
            value => Ok(Expression::Value(value)),
        }
    }

    fn call(self, function: Function, name: &str, rest: &[Token<'s>]) -> Result<Expression, IdentityError> {
        let arguments = rest.iter().map(|token| self.argument(token)).collect::<Result<Vec<_>, _>>()?;
        let (fits, wanted) = match function {
            Function::Uppercase | Function::Lowercase | Function::Trim => (arguments.len() == 1, "one value"),
            Function::Substring => {
                (matches!(arguments.len(), 2 | 3), "a value, a start and optionally a length")
            }
            Function::Default => (arguments.len() >= 2, "at least two values"),
        };
        if !fits {
            return Err(self.error(name, format!("{name} takes {wanted}, not {}", arguments.len())));
        }
        Ok(Expression::Call(function, arguments))
    }

    fn argument(self, token: &Token<'s>) -> Result<Argument, IdentityError> {
        let word = match token {
            Token::Quoted(_, text) => return Ok(Argument::Text(text.clone())),
            Token::Word(word) => *word,
        };
        if word.starts_with('/') {
            return self.pointer(word).map(Argument::Pointer);
        }
        let name = word.strip_prefix('.').unwrap_or(word);
        if is_name(name) {
            return self.pointer_to(name, word).map(Argument::Pointer);
        }
        let digits = word.strip_prefix('-').unwrap_or(word);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && digits.parse::<f64>().is_ok();
        if is_number {
            return Ok(Argument::Number(word.to_owned()));
        }
        let name = name.trim_start_matches('.');
        Err(self.error(
            word,
            format!("\"{word}\" is neither a name nor a pointer; write such a key as a pointer: /{name}"),
        ))
    }

    fn pointer(self, text: &str) -> Result<Pointer, IdentityError> {
        Pointer::parse(text).map_err(|error| self.error(text, error.to_string()))
    }

    fn pointer_to(self, name: &str, at: &str) -> Result<Pointer, IdentityError> {
        Pointer::parse(&format!("/{name}")).map_err(|error| self.error(at, error.to_string()))
    }

    fn tokens(self, body: &'s str) -> Result<Vec<Token<'s>>, IdentityError> {
        let mut tokens = Vec::new();
        let mut rest = body.trim_start();
        while let Some(first) = rest.chars().next() {
            let end = if matches!(first, '"' | '\'') {
                let Some((end, text)) = quoted(rest, first) else {
                    return Err(self.error(rest, "the quotes are not closed"));
                };
                if rest[end..].starts_with(|c: char| !c.is_whitespace()) {
                    return Err(self.error(&rest[end..], "white space is expected after the quotes"));
                }
                tokens.push(Token::Quoted(&rest[..end], text));
                end
            } else {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                tokens.push(Token::Word(&rest[..end]));
                end
            };
            rest = rest[end..].trim_start();
        }
        Ok(tokens)
    }
}

/// Returns the offset of the closing braces: the first `}}` outside of quotes.
fn closing(body: &str) -> Option<usize> {
    let mut at = 0;
    // A quote within a word, as in the pointer /it's, does not start a string.
    let mut word_starts = true;
    while let Some(next) = body[at..].chars().next() {
        if body[at..].starts_with("}}") {
            return Some(at);
        }
        at += match next {
            '"' | '\'' if word_starts => quoted(&body[at..], next)?.0,
            _ => next.len_utf8(),
        };
        word_starts = next.is_whitespace();
    }
    None
}

/// Returns the end and the content of the quoted string that `text` starts with. A backslash escapes the next
/// character; `\n` and `\t` are newline and tab.
fn quoted(text: &str, quote: char) -> Option<(usize, String)> {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, next)) = chars.next() {
        match next {
            '\\' => content.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            _ if next == quote => return Some((at + next.len_utf8(), content)),
            _ => content.push(next),
        }
    }
    None
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
