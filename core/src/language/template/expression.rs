//! Parses expressions: pipelines, commands and operands.

use std::borrow::Cow;

use super::ast::{Call, Command, Expression, Pipeline, Slot, Term};
use super::error::{Place, TemplateError};
use super::function::{Function, Signature, unknown};
use super::lexer::{Action, Token, TokenKind};
use super::{Kind, MAX_NESTING, print};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// A cursor over the tokens of an action.
struct Cursor<'a> {
    action: &'a Action,
    next: usize,
}

impl<'a> Cursor<'a> {
    fn new(action: &'a Action, skip: usize) -> Self {
        Self { action, next: skip }
    }

    fn peek(&self) -> Option<&'a Token> {
        self.action.tokens.get(self.next)
    }

    fn peek_kind(&self) -> Option<&'a TokenKind> {
        self.peek().map(|token| &token.kind)
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    /// Returns the start of the next token, or the end of the action.
    fn at(&self) -> usize {
        self.peek().map_or(self.action.span.end - 2, |token| token.at)
    }

    /// Returns whether a command ends here.
    fn command_ends(&self) -> bool {
        matches!(self.peek_kind(), None | Some(TokenKind::Pipe | TokenKind::Close))
    }
}

/// The parser of expressions, with the names that are visible to them.
pub(super) struct Expressions<'t> {
    pub(super) text: &'t str,
    kind: Kind,
    /// The names of the visible variables, by slot.
    pub(super) variables: Vec<String>,
    /// The maximum number of variables that were visible at the same time.
    pub(super) slots: usize,
    /// The fields of the root that the expressions name, in order and without duplicates.
    pub(super) pointers: Vec<Pointer>,
    /// The number of enclosing blocks that set `.`.
    pub(super) rebound: usize,
    pub(super) nesting: usize,
    /// Whether an expression refers to another resource.
    pub(super) refers: bool,
    /// Whether an expression uses what the server has.
    pub(super) observes: bool,
}

impl<'t> Expressions<'t> {
    pub(super) fn new(text: &'t str, kind: Kind) -> Self {
        Self {
            text,
            kind,
            variables: Vec::new(),
            slots: 0,
            pointers: Vec::new(),
            rebound: 0,
            refers: false,
            observes: false,
            nesting: 0,
        }
    }

    /// Parses the pipeline from token `skip` to the end of the action.
    pub(super) fn expression(&mut self, action: &Action, skip: usize) -> Result<Expression, TemplateError> {
        let mut cursor = Cursor::new(action, skip);
        let pipeline = self.pipeline(&mut cursor)?;
        match cursor.peek() {
            None => Ok(Expression { span: action.span.clone(), pipeline }),
            Some(token) => {
                Err(self.error_at(action, token.at, "nothing can follow here; is a \"(\" missing?"))
            }
        }
    }

    fn pipeline(&mut self, cursor: &mut Cursor<'_>) -> Result<Pipeline, TemplateError> {
        let first = self.command(cursor)?;
        let mut rest = Vec::new();
        while cursor.peek_kind() == Some(&TokenKind::Pipe) {
            cursor.advance();
            let at = cursor.at();
            match cursor.peek_kind() {
                Some(TokenKind::Name(name)) if !is_literal(name) => rest.push(self.call(cursor, name, 1)?),
                _ => {
                    return Err(self.error_at(cursor.action, at, "a function must follow a |"));
                }
            }
        }
        Ok(Pipeline { first, rest })
    }

    fn command(&mut self, cursor: &mut Cursor<'_>) -> Result<Command, TemplateError> {
        match cursor.peek_kind() {
            Some(TokenKind::Name(name)) if !is_literal(name) => {
                let call = self.call(cursor, name, 0)?;
                match (call.function, call.operands.as_slice()) {
                    (Function::JsonPointer, [Term::Literal(Value::String(text))]) => {
                        let pointer = Pointer::parse(text)
                            .map_err(|error| self.error(cursor.action, error.to_string()))?;
                        Ok(Command::Term(self.pointer(pointer)))
                    }
                    _ => Ok(Command::Call(call)),
                }
            }
            _ => {
                let term = self.term(cursor)?;
                if cursor.command_ends() {
                    return Ok(Command::Term(term));
                }
                Err(self.error_at(
                    cursor.action,
                    cursor.at(),
                    "a value takes no operands; only a function does",
                ))
            }
        }
    }

    /// Parses a call of `name`, which is the next token, with `piped` operands from the previous command.
    fn call(&mut self, cursor: &mut Cursor<'_>, name: &str, piped: usize) -> Result<Call, TemplateError> {
        let at = cursor.at();
        let Some(signature) = Signature::find(name) else {
            return Err(self.error_at(cursor.action, at, unknown(name)));
        };
        cursor.advance();
        let mut operands = Vec::new();
        while !cursor.command_ends() {
            operands.push(self.term(cursor)?);
        }
        signature
            .check_count(name, operands.len() + piped)
            .map_err(|reason| self.error_at(cursor.action, at, reason))?;
        let function = signature.function;
        self.refers |= function == Function::Ref;
        match (function, operands.as_slice()) {
            (Function::Printf, [Term::Literal(Value::String(format)), ..]) => {
                print::check_format(format).map_err(|reason| self.error_at(cursor.action, at, reason))?;
            }
            (Function::Index, [root, keys @ ..]) if root.is_root(self.rebound == 0) => {
                let literals = keys.iter().map_while(|key| match key {
                    Term::Literal(Value::String(key)) => Some(key.clone()),
                    _ => None,
                });
                self.remember(literals.collect());
            }
            _ => {}
        }
        Ok(Call { function, operands })
    }

    fn term(&mut self, cursor: &mut Cursor<'_>) -> Result<Term, TemplateError> {
        let at = cursor.at();
        let Some(token) = cursor.peek() else {
            return Err(self.error_at(cursor.action, at, "a value is missing here"));
        };
        cursor.advance();
        let term = match &token.kind {
            TokenKind::Literal(value) => Term::Literal(value.clone()),
            TokenKind::Pointer(pointer) => self.pointer(pointer.clone()),
            TokenKind::Dot => Term::Dot,
            TokenKind::Fields(names) => self.fields(Term::Dot, names),
            TokenKind::Variable(name) => {
                let term = self.variable(cursor.action, name, at)?;
                self.chained(cursor, term)
            }
            TokenKind::Open => {
                self.enter(cursor.action)?;
                let group = Term::Group(Box::new(self.pipeline(cursor)?));
                self.nesting -= 1;
                if cursor.peek_kind() != Some(&TokenKind::Close) {
                    return Err(self.error_at(cursor.action, cursor.at(), "a \")\" is missing"));
                }
                cursor.advance();
                self.chained(cursor, group)
            }
            TokenKind::Name(name) => return self.named_term(cursor, name, at),
            TokenKind::Close
            | TokenKind::Pipe
            | TokenKind::Comma
            | TokenKind::Declare
            | TokenKind::Assign => {
                return Err(self.error_at(cursor.action, at, "a value is missing here"));
            }
        };
        Ok(term)
    }

    /// Parses a literal that is spelled like a name.
    fn named_term(&self, cursor: &Cursor<'_>, name: &str, at: usize) -> Result<Term, TemplateError> {
        let value = match name {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "nil" => Value::Null,
            _ if Signature::find(name).is_some() => {
                let reason =
                    format!("put the call of `{name}` into parentheses; for the field, write /{name}");
                return Err(self.error_at(cursor.action, at, reason));
            }
            _ => {
                let reason = format!("write the field as /{name} or .{name}");
                return Err(self.error_at(cursor.action, at, reason));
            }
        };
        Ok(Term::Literal(value))
    }

    fn variable(&mut self, action: &Action, name: &str, at: usize) -> Result<Term, TemplateError> {
        if name.is_empty() {
            return Ok(Term::Root);
        }
        match self.declared(action, name, at) {
            Err(_) if name == "observed" => {
                let reason = match self.kind {
                    Kind::Query | Kind::Header => {
                        self.observes = true;
                        return Ok(Term::Observed);
                    }
                    Kind::Jq => "write $observed outside of {{ }}, as a variable of jq",
                    // A user of the server could let the request address another resource.
                    Kind::Path | Kind::RemoteCollectionPath | Kind::ResourcePath | Kind::Method => {
                        "$observed can only be used in the query, the headers and the body"
                    }
                };
                Err(self.error_at(action, at, reason))
            }
            slot => slot.map(Term::Variable),
        }
    }

    /// Returns the slot of a variable that is set before.
    pub(super) fn declared(&self, action: &Action, name: &str, at: usize) -> Result<Slot, TemplateError> {
        // If several variables have the same name, the innermost one applies.
        match self.variables.iter().rposition(|known| known == name) {
            Some(slot) => Ok(slot),
            None => Err(self.error_at(
                action,
                at,
                format!("the variable ${name} is not set; set it before with {{{{${name} := …}}}}"),
            )),
        }
    }

    /// Returns `term`, or its field if one follows without white space.
    fn chained(&mut self, cursor: &mut Cursor<'_>, term: Term) -> Term {
        match cursor.peek() {
            Some(Token { kind: TokenKind::Fields(names), spaced: false, .. }) => {
                cursor.advance();
                self.fields(term, names)
            }
            _ => term,
        }
    }

    fn fields(&mut self, of: Term, names: &[String]) -> Term {
        if of.is_root(self.rebound == 0) {
            self.remember(names.to_vec());
        }
        Term::Fields { of: Box::new(of), names: names.to_vec() }
    }

    fn pointer(&mut self, pointer: Pointer) -> Term {
        self.remember(pointer.tokens().to_vec());
        Term::Pointer(pointer)
    }

    fn remember(&mut self, tokens: Vec<String>) {
        let pointer: Pointer = tokens.into_iter().collect();
        if !pointer.is_root() && !self.pointers.contains(&pointer) {
            self.pointers.push(pointer);
        }
    }

    /// Enters a block or parenthesis. Fails if the nesting exceeds [`MAX_NESTING`].
    pub(super) fn enter(&mut self, action: &Action) -> Result<(), TemplateError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let limit = format!("blocks and parentheses nest at most {MAX_NESTING} deep");
            return Err(TemplateError::Limit {
                at: self.place(action, action.span.start),
                limit: limit.into(),
            });
        }
        Ok(())
    }

    pub(super) fn declare(&mut self, action: &Action, name: &str, at: usize) -> Result<Slot, TemplateError> {
        if name.is_empty() {
            return Err(self.error_at(
                action,
                at,
                "$ is the root and cannot be set; give the variable a name",
            ));
        }
        self.variables.push(name.to_owned());
        self.slots = self.slots.max(self.variables.len());
        Ok(self.variables.len() - 1)
    }

    pub(super) fn error(&self, action: &Action, reason: impl Into<Cow<'static, str>>) -> TemplateError {
        self.error_at(action, action.span.start, reason)
    }

    pub(super) fn error_at(
        &self,
        action: &Action,
        at: usize,
        reason: impl Into<Cow<'static, str>>,
    ) -> TemplateError {
        TemplateError::Syntax { at: self.place(action, at), reason: reason.into() }
    }

    fn place(&self, action: &Action, at: usize) -> Place {
        Place::new(self.text, action.span.clone(), at)
    }
}

fn is_literal(name: &str) -> bool {
    matches!(name, "true" | "false" | "nil")
}
