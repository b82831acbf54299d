//! Determines properties of a filter's outputs from its syntax.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

/// Functions of the library that have at most one output.
const SINGLE: [&str; 30] = [
    "add", "all", "any", "ascii_downcase", "ascii_upcase", "empty", "error", "false", "first",
    "from_entries", "group_by", "has", "join", "keys", "last", "length", "map", "not", "null", "select",
    "sort", "sort_by", "to_entries", "tojson", "tonumber", "tostring", "true", "type", "unique",
    "with_entries",
];

/// Returns whether a filter certainly has at most one output.
pub(super) fn single(term: &Term<&str>) -> bool {
    match term {
        Term::Id | Term::Num(_) | Term::Var(_) | Term::Break(_) | Term::Arr(_) => true,
        Term::Recurse | Term::Def(..) => false,
        Term::Str(_, parts) => parts.iter().all(|part| match part {
            StrPart::Term(term) => single(term),
            StrPart::Str(_) | StrPart::Char(_) => true,
        }),
        Term::Obj(members) => {
            members.iter().all(|(key, value)| single(key) && value.as_ref().is_none_or(single))
        }
        Term::Neg(term) | Term::Label(_, term) => single(term),
        Term::BinOp(left, operator, right) => match operator {
            BinaryOp::Comma | BinaryOp::Pipe(Some(Pattern::Arr(_) | Pattern::Obj(_))) => false,
            BinaryOp::Update => true,
            BinaryOp::Assign | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => single(right),
            _ => single(left) && single(right),
        },
        Term::Fold(name, _, pattern, arguments) => {
            *name == "reduce" && matches!(pattern, Pattern::Var(_)) && arguments.iter().all(single)
        }
        Term::TryCatch(body, catch) => single(body) && catch.as_deref().is_none_or(single),
        Term::IfThenElse(branches, otherwise) => {
            branches.iter().all(|(condition, body)| single(condition) && single(body))
                && otherwise.as_deref().is_none_or(single)
        }
        // An expression may redefine these names; then each call still has the toll of a definition.
        Term::Call(name, _) => SINGLE.contains(name),
        Term::Path(head, Path(parts)) => {
            single(head)
                && parts.iter().all(|(part, _)| match part {
                    Part::Index(index) => single(index),
                    Part::Range(None, None) => false,
                    Part::Range(from, to) => [from, to].into_iter().flatten().all(single),
                })
        }
    }
}

/// Returns whether the last step of a filter may be a call that `is_it` accepts by its name and arity, also within the
/// arguments of other calls and the definitions of the filter. The interpreter uses no stack for such calls.
pub(super) fn tail_calls(term: &Term<&str>, is_it: &dyn Fn(&str, usize) -> bool) -> bool {
    let of = |term: &Term<&str>| tail_calls(term, is_it);
    match term {
        Term::Call(name, arguments) => is_it(name, arguments.len()) || arguments.iter().any(of),
        Term::BinOp(_, BinaryOp::Pipe(_), right) => of(right),
        Term::BinOp(left, BinaryOp::Comma | BinaryOp::Alt, right) => of(left) || of(right),
        Term::IfThenElse(branches, otherwise) => {
            branches.iter().any(|(_, body)| of(body)) || otherwise.as_deref().is_some_and(of)
        }
        Term::Def(definitions, body) => definitions.iter().any(|def| of(&def.body)) || of(body),
        Term::Label(_, body) => of(body),
        Term::TryCatch(body, catch) => of(body) || catch.as_deref().is_some_and(of),
        _ => false,
    }
}

/// Returns whether the output of a filter is its own input, changed by operators that charge for added values.
pub(super) fn in_place(term: &Term<&str>) -> bool {
    match term {
        Term::Id => true,
        Term::BinOp(left, BinaryOp::Math(Math::Add | Math::Sub), _) => in_place(left),
        Term::BinOp(left, BinaryOp::Pipe(None), right) => in_place(left) && in_place(right),
        Term::BinOp(_, operator, _) => matches!(
            operator,
            BinaryOp::Update | BinaryOp::Assign | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt
        ),
        Term::IfThenElse(branches, otherwise) => {
            branches.iter().all(|(_, body)| in_place(body)) && otherwise.as_deref().is_none_or(in_place)
        }
        _ => false,
    }
}

/// Returns whether a filter does not keep its input, because it starts from a constant or a variable.
pub(super) fn headed_by_constant(term: &Term<&str>) -> bool {
    match term {
        Term::Var(_) | Term::Num(_) => true,
        Term::Str(_, parts) => !parts.iter().any(|part| matches!(part, StrPart::Term(_))),
        Term::BinOp(left, BinaryOp::Pipe(None), _) => headed_by_constant(left),
        Term::Path(head, Path(parts)) => {
            let constant = |(part, _): &(Part<Term<&str>>, _)| match part {
                Part::Index(index) => headed_by_constant(index),
                Part::Range(from, to) => [from, to].into_iter().flatten().all(headed_by_constant),
            };
            headed_by_constant(head) && parts.iter().all(constant)
        }
        _ => false,
    }
}
