//! The compiled form of a template.

use std::ops::Range;

use super::function::Function;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The index of a variable while rendering. Variables that are visible at the same time have different slots.
pub(super) type Slot = usize;

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Text, already trimmed.
    Text(String),
    /// `{{P}}`.
    Output(Expression),
    /// `{{$v := P}}` or `{{$v = P}}`.
    Assign { slot: Slot, value: Expression },
    /// `{{if P}}…{{else if P}}…{{else}}…{{end}}`.
    If { branches: Vec<Branch>, otherwise: Vec<Node> },
    /// `{{with P}}…{{else}}…{{end}}`.
    With { branch: Branch, otherwise: Vec<Node> },
    /// `{{range $k, $v := P}}…{{else}}…{{end}}`.
    Range { branch: Branch, key: Option<Slot>, item: Option<Slot>, otherwise: Vec<Node> },
}

/// An expression, and the nodes that it controls.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) expression: Expression,
    /// The variable of `if` or `with` that is set to the value.
    pub(super) variable: Option<Slot>,
    pub(super) body: Vec<Node>,
}

/// A pipeline, and the span of its action for messages.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) span: Range<usize>,
    pub(super) pipeline: Pipeline,
}

/// A sequence of commands. Each has the result of the previous one as its last operand.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    pub(super) first: Command,
    pub(super) rest: Vec<Call>,
}

#[derive(Clone, Debug)]
pub(super) enum Command {
    Term(Term),
    Call(Call),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) operands: Vec<Term>,
}

#[derive(Clone, Debug)]
pub(super) enum Term {
    Literal(Value),
    /// `.`: the root, or the value that `with` or `range` set.
    Dot,
    /// `$`.
    Root,
    Variable(Slot),
    /// `$observed`: what the server has.
    Observed,
    /// A pointer from the root. If a part is missing, the value is missing.
    Pointer(Pointer),
    Group(Box<Pipeline>),
    /// `.a.b` of a term. It is an error if a parent is missing.
    Fields {
        of: Box<Term>,
        names: Vec<String>,
    },
}

impl Expression {
    /// Returns the key if the expression is only a field of the root. `root_dot` is whether `.` is the root.
    pub(super) fn single_key(&self, root_dot: bool) -> Option<&str> {
        match &self.pipeline {
            Pipeline { first: Command::Term(term), rest } if rest.is_empty() => term.single_key(root_dot),
            _ => None,
        }
    }
}

impl Term {
    fn single_key(&self, root_dot: bool) -> Option<&str> {
        match self {
            Self::Pointer(pointer) => match pointer.tokens() {
                [key] => Some(key),
                _ => None,
            },
            Self::Fields { of, names } if names.len() == 1 && of.is_root(root_dot) => {
                names.first().map(String::as_str)
            }
            _ => None,
        }
    }

    /// Returns whether this is the root object.
    pub(super) fn is_root(&self, root_dot: bool) -> bool {
        matches!(self, Self::Root) || (root_dot && matches!(self, Self::Dot))
    }
}
