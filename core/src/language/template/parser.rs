//! Parses blocks and actions into nodes.

use super::Kind;
use super::ast::{Branch, Expression, Node, Slot};
use super::error::{Place, TemplateError};
use super::expression::Expressions;
use super::function::is_field_name;
use super::lexer::{Action, Piece, Token, TokenKind, lex};
use crate::payload::pointer::Pointer;

/// The result of parsing.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub(super) nodes: Vec<Node>,
    /// The maximum number of variables that are visible at the same time.
    pub(super) slots: usize,
    /// The fields of the root that the template names, in order and without duplicates.
    pub(super) pointers: Vec<Pointer>,
    /// Whether the template refers to other resources.
    pub(super) refers: bool,
    /// Whether the template uses what the server has.
    pub(super) observes: bool,
}

/// Parses `text`.
pub(super) fn parse(text: &str, kind: Kind) -> Result<Parsed, TemplateError> {
    let mut parser =
        Parser { expressions: Expressions::new(text, kind), kind, pieces: lex(text)?.into_iter() };
    let (nodes, ending) = parser.nodes()?;
    let expressions = parser.expressions;
    match ending {
        Ending::Text => {
            let Expressions { slots, pointers, refers, observes, .. } = expressions;
            Ok(Parsed { nodes, slots, pointers, refers, observes })
        }
        Ending::End(action) => Err(expressions.error(&action, "this end has no block")),
        Ending::Else(action) => Err(expressions.error(&action, "this else is not in a block")),
    }
}

struct Parser<'t> {
    expressions: Expressions<'t>,
    kind: Kind,
    pieces: std::vec::IntoIter<Piece<'t>>,
}

/// The end of a sequence of nodes.
enum Ending {
    Text,
    End(Action),
    Else(Action),
}

/// The result of parsing one action.
enum Step {
    Node(Node),
    Ending(Ending),
}

impl<'t> Parser<'t> {
    fn nodes(&mut self) -> Result<(Vec<Node>, Ending), TemplateError> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            match piece {
                Piece::Text(text) => nodes.push(self.text_node(text)?),
                Piece::Action(action) => match self.action(action)? {
                    Step::Node(node) => nodes.push(node),
                    Step::Ending(ending) => return Ok((nodes, ending)),
                },
            }
        }
        Ok((nodes, Ending::Text))
    }

    fn text_node(&self, text: &'t str) -> Result<Node, TemplateError> {
        if self.kind == Kind::Header
            && let Some(at) = text.find(['\r', '\n'])
        {
            let start = text.as_ptr() as usize - self.expressions.text.as_ptr() as usize;
            let at = Place::new(self.expressions.text, start..start + at, start + at);
            return Err(TemplateError::Syntax { at, reason: "a header value is one line".into() });
        }
        Ok(Node::Text(text.to_owned()))
    }

    fn action(&mut self, action: Action) -> Result<Step, TemplateError> {
        let keyword = match action.tokens.first() {
            Some(Token { kind: TokenKind::Name(name), .. }) => name.as_str(),
            Some(_) => "",
            None => {
                return Err(self
                    .expressions
                    .error(&action, "it is empty; write the pointer of a field, such as {{/id}}"));
            }
        };
        Ok(match keyword {
            "if" => Step::Node(self.if_block(&action)?),
            "with" => Step::Node(self.with_block(&action)?),
            "range" => Step::Node(self.range_block(&action)?),
            "else" => Step::Ending(Ending::Else(action)),
            "end" => {
                self.nothing_after(&action, 1)?;
                Step::Ending(Ending::End(action))
            }
            _ => Step::Node(self.output(&action)?),
        })
    }

    /// Parses `{{name}}`, `{{$v := P}}`, `{{$v = P}}` or `{{P}}`.
    fn output(&mut self, action: &Action) -> Result<Node, TemplateError> {
        match action.tokens.as_slice() {
            [Token { kind: TokenKind::Name(name), .. }] if is_field_name(name) => self.field(action, name),
            [Token { kind: TokenKind::Fields(names), .. }] if names.len() == 1 => {
                self.field(action, names.first().map_or("", String::as_str))
            }
            [
                Token { kind: TokenKind::Variable(name), at, .. },
                Token { kind: TokenKind::Declare, .. },
                ..,
            ] => {
                let value = self.expressions.expression(action, 2)?;
                let slot = self.expressions.declare(action, name, *at)?;
                Ok(Node::Assign { slot, value })
            }
            [
                Token { kind: TokenKind::Variable(name), at, .. },
                Token { kind: TokenKind::Assign, .. },
                ..,
            ] => {
                let value = self.expressions.expression(action, 2)?;
                let slot = self.expressions.declared(action, name, *at)?;
                Ok(Node::Assign { slot, value })
            }
            _ => Ok(Node::Output(self.expressions.expression(action, 0)?)),
        }
    }

    /// Returns the node of `{{name}}` or `{{.name}}`: a field of the root, also within `with` and `range`. Metadata for
    /// v0.3.8 relies on it.
    fn field(&mut self, action: &Action, name: &str) -> Result<Node, TemplateError> {
        let pointer: Pointer = std::iter::once(name.to_owned()).collect();
        let name = Token { kind: TokenKind::Pointer(pointer), at: action.span.start, spaced: true };
        let named = Action { span: action.span.clone(), tokens: vec![name] };
        Ok(Node::Output(self.expressions.expression(&named, 0)?))
    }

    fn if_block(&mut self, action: &Action) -> Result<Node, TemplateError> {
        let mut branches = Vec::new();
        let visible = self.expressions.variables.len();
        let (mut variable, mut expression) = self.condition(action, 1)?;
        loop {
            let (body, ending) = self.body(action)?;
            branches.push(Branch { expression, variable, body });
            match ending {
                Ending::Else(again) if starts_with_if(&again) => {
                    (variable, expression) = self.condition(&again, 2)?;
                }
                ending => {
                    let otherwise = self.otherwise(action, ending)?;
                    self.expressions.variables.truncate(visible);
                    return Ok(Node::If { branches, otherwise });
                }
            }
        }
    }

    fn with_block(&mut self, action: &Action) -> Result<Node, TemplateError> {
        let visible = self.expressions.variables.len();
        let (variable, expression) = self.condition(action, 1)?;
        self.expressions.rebound += 1;
        let (body, ending) = self.body(action)?;
        self.expressions.rebound -= 1;
        let otherwise = self.otherwise(action, ending)?;
        self.expressions.variables.truncate(visible);
        Ok(Node::With { branch: Branch { expression, variable, body }, otherwise })
    }

    /// Parses `P` or `$v := P` after `skip` tokens. The variable is visible up to the end of the block.
    fn condition(
        &mut self,
        action: &Action,
        skip: usize,
    ) -> Result<(Option<Slot>, Expression), TemplateError> {
        let variable = match action.tokens.get(skip..).unwrap_or_default() {
            [
                Token { kind: TokenKind::Variable(name), at, .. },
                Token { kind: TokenKind::Declare, .. },
                ..,
            ] => Some((name.clone(), *at)),
            _ => None,
        };
        let skip = if variable.is_some() { skip + 2 } else { skip };
        let expression = self.expressions.expression(action, skip)?;
        let slot = variable.map(|(name, at)| self.expressions.declare(action, &name, at));
        Ok((slot.transpose()?, expression))
    }

    fn range_block(&mut self, action: &Action) -> Result<Node, TemplateError> {
        let (names, skip) = self.range_variables(action)?;
        let expression = self.expressions.expression(action, 1 + skip)?;
        let visible = self.expressions.variables.len();
        let mut slots = Vec::new();
        for (name, at) in &names {
            slots.push(self.expressions.declare(action, name, *at)?);
        }
        let item = slots.pop();
        let key = slots.pop();
        self.expressions.rebound += 1;
        let (body, ending) = self.body(action)?;
        self.expressions.rebound -= 1;
        self.expressions.variables.truncate(visible);
        let otherwise = self.otherwise(action, ending)?;
        Ok(Node::Range { branch: Branch { expression, variable: None, body }, key, item, otherwise })
    }

    /// Returns the variables of a range, and the number of tokens that declare them.
    fn range_variables(&self, action: &Action) -> Result<(Vec<(String, usize)>, usize), TemplateError> {
        let kinds: Vec<&TokenKind> = action.tokens.iter().skip(1).take(4).map(|token| &token.kind).collect();
        let at = |index: usize| action.tokens.get(index + 1).map_or(action.span.start, |token| token.at);
        match kinds.as_slice() {
            [TokenKind::Variable(key), TokenKind::Comma, TokenKind::Variable(item), TokenKind::Declare] => {
                Ok((vec![(key.clone(), at(0)), (item.clone(), at(2))], 4))
            }
            [TokenKind::Variable(item), TokenKind::Declare, ..] => Ok((vec![(item.clone(), at(0))], 2)),
            [TokenKind::Variable(_), TokenKind::Comma, ..] => Err(self
                .expressions
                .error(action, "write the variables as in {{range $key, $value := /items}}")),
            _ => Ok((Vec::new(), 0)),
        }
    }

    /// Parses the nodes up to the `else` or `end` of the block that `action` opens.
    fn body(&mut self, action: &Action) -> Result<(Vec<Node>, Ending), TemplateError> {
        let visible = self.expressions.variables.len();
        self.expressions.enter(action)?;
        let (nodes, ending) = self.nodes()?;
        self.expressions.nesting -= 1;
        self.expressions.variables.truncate(visible);
        match ending {
            Ending::Text => Err(self.expressions.error(action, "its {{end}} is missing")),
            ending => Ok((nodes, ending)),
        }
    }

    /// Parses the nodes of a last `else` up to the `end`; returns none if the block has already ended.
    fn otherwise(&mut self, opener: &Action, ending: Ending) -> Result<Vec<Node>, TemplateError> {
        let Ending::Else(action) = ending else { return Ok(Vec::new()) };
        self.nothing_after(&action, 1)?;
        match self.body(opener)? {
            (_, Ending::Else(second)) => {
                Err(self.expressions.error(&second, "the block already has a last else"))
            }
            (nodes, _) => Ok(nodes),
        }
    }

    fn nothing_after(&self, action: &Action, count: usize) -> Result<(), TemplateError> {
        match action.tokens.get(count) {
            None => Ok(()),
            Some(token) => Err(self.expressions.error_at(action, token.at, "nothing can follow here")),
        }
    }
}

fn starts_with_if(action: &Action) -> bool {
    matches!(action.tokens.get(1), Some(Token { kind: TokenKind::Name(name), .. }) if name == "if")
}
