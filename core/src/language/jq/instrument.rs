//! Inserts tolls into syntax trees.
//!
//! In jq, work repeats by recursion, which always calls a definition, and by filters with several outputs, whose
//! combinations multiply. Variables, arrays, objects, accumulators and updates keep values alive. Each of these places
//! gets a toll; see [`toll`]. A recursion that has filters as arguments is limited, because each call keeps those of
//! the calls before it. Operators whose results may be much larger than their operands become calls of functions that
//! check the size first.
//!
//! Two rules keep the cost of ordinary expressions low. A filter that has at most one output by its syntax does not
//! need its own toll. If `.` has no other user, as in the body of `reduce` and on the right side of `|=`, jaq changes
//! it in place, so no copy is counted.

use std::collections::HashMap;
use std::sync::OnceLock;

use jaq_core::Bind;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Opt, Part, Path};

use super::alternatives;
use super::natives::{self, toll};
use super::shape::{headed_by_constant, in_place, single, tail_calls};

/// The maximum nesting of filters.
const MAX_DEPTH: usize = 400;

/// An internal variable, whose name is not valid in expressions.
const OPERAND: &str = "$!operand";

/// Native functions that cost one step for any input.
const CHEAP: [&str; 16] = [
    "first", "last", "limit", "skip", "range", "path", "path_value", "error_empty", "length", "now", "has",
    "floor", "round", "ceil", "resource", "keys_unsorted",
];
/// Native functions that split their input.
const CUTTING: [&str; 6] = ["explode", "key_values", "matches", "split_matches", "split_", "keys_unsorted"];

/// The nesting of filters exceeds [`MAX_DEPTH`].
#[derive(Debug)]
pub(super) struct TooDeep;

type Rewritten<T> = Result<T, TooDeep>;

/// Inserts tolls into a filter.
pub(super) fn term(term: Term<&str>) -> Rewritten<Term<&str>> {
    Instrument::default().term(term, false)
}

/// Inserts tolls into a definition: one for each call, and one for each value that a parameter keeps.
pub(super) fn definition(def: Def<&str>) -> Rewritten<Def<&str>> {
    Instrument::default().definition(def)
}

#[derive(Default)]
struct Instrument {
    depth: usize,
    /// The numbers of parameters, variables and labels of the definitions around the current filter, from the outermost one.
    bindings: Vec<usize>,
}

/// `left | name`
fn through<'s>(left: Term<&'s str>, name: &'s str) -> Term<&'s str> {
    pipe(left, Term::Call(name, Vec::new()))
}

fn pipe<'s>(left: Term<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}

/// `value as $operand | right`
fn bind_operand<'s>(value: Term<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    let pattern = Pattern::Var(OPERAND);
    Term::BinOp(Box::new(through(value, toll::COPY)), BinaryOp::Pipe(Some(pattern)), Box::new(right))
}

fn held_operand<'s>() -> Term<&'s str> {
    through(Term::Var(OPERAND), toll::HOLD)
}

fn modify<'s>(paths: Term<&'s str>, update: Term<&'s str>) -> Term<&'s str> {
    Term::Call(toll::MODIFY, vec![paths, update])
}

/// Returns the operator on operands that are already charged.
fn math<'s>(left: Term<&'s str>, operator: Math, right: Term<&'s str>) -> Term<&'s str> {
    let result = match operator {
        Math::Mul => Term::Call(toll::TIMES, vec![left, right]),
        Math::Div => Term::Call(toll::OVER, vec![left, right]),
        Math::Rem => Term::Call(toll::REST, vec![left, right]),
        Math::Add | Math::Sub => Term::BinOp(Box::new(left), BinaryOp::Math(operator), Box::new(right)),
    };
    through(result, toll::NARROW)
}

impl Instrument {
    fn boxed<'s>(&mut self, term: Term<&'s str>, owned: bool) -> Rewritten<Box<Term<&'s str>>> {
        Ok(Box::new(self.term(term, owned)?))
    }

    fn all<'s>(&mut self, terms: Vec<Term<&'s str>>) -> Rewritten<Vec<Term<&'s str>>> {
        terms.into_iter().map(|term| self.term(term, false)).collect()
    }

    /// Rewrites a filter, and charges a copy for each output unless it has at most one.
    fn paced<'s>(&mut self, term: Term<&'s str>, owned: bool) -> Rewritten<Term<&'s str>> {
        let quiet = single(&term);
        let term = self.term(term, owned)?;
        Ok(if quiet { term } else { through(term, toll::COPY) })
    }

    fn held<'s>(&mut self, term: Term<&'s str>) -> Rewritten<Term<&'s str>> {
        Ok(through(self.term(term, false)?, toll::HOLD))
    }

    fn copied<'s>(&mut self, term: Term<&'s str>) -> Rewritten<Term<&'s str>> {
        Ok(through(self.term(term, false)?, toll::COPY))
    }

    /// Rewrites a filter. `owned` is whether the input has no other user, so it is changed in place.
    fn term<'s>(&mut self, term: Term<&'s str>, owned: bool) -> Rewritten<Term<&'s str>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TooDeep);
        }
        let rewritten = self.by_kind(term, owned);
        self.depth -= 1;
        rewritten
    }

    fn by_kind<'s>(&mut self, term: Term<&'s str>, owned: bool) -> Rewritten<Term<&'s str>> {
        Ok(match term {
            Term::Id | Term::Var(_) | Term::Break(_) | Term::Arr(None) => term,
            Term::Recurse => through(term, toll::COPY),
            Term::Num(digits) if digits.parse::<i64>().is_ok() => term,
            Term::Num(_) => through(term, toll::NARROW),
            Term::Str(format, parts) => self.text(format, parts)?,
            Term::Arr(Some(items)) => Term::Arr(Some(Box::new(self.held(*items)?))),
            Term::Obj(members) => self.object(members)?,
            Term::Neg(operand) => through(Term::Neg(self.boxed(*operand, false)?), toll::NARROW),
            Term::BinOp(left, operator, right) => self.operator(*left, operator, *right, owned)?,
            Term::Label(name, body) => {
                self.bind();
                Term::Label(name, self.boxed(*body, false)?)
            }
            Term::Fold(name, stream, pattern, arguments) => self.fold(name, *stream, pattern, arguments)?,
            Term::TryCatch(body, catch) => {
                let catch = catch.map(|catch| self.boxed(*catch, false)).transpose()?;
                Term::TryCatch(self.boxed(*body, false)?, catch)
            }
            Term::IfThenElse(branches, otherwise) => {
                let mut rewrite =
                    |(condition, body)| Ok((self.paced(condition, false)?, self.term(body, owned)?));
                let branches = branches.into_iter().map(&mut rewrite).collect::<Rewritten<_>>()?;
                let otherwise = otherwise.map(|body| self.boxed(*body, owned)).transpose()?;
                Term::IfThenElse(branches, otherwise)
            }
            Term::Def(definitions, body) => {
                let definitions = definitions.into_iter().map(|def| self.definition(def));
                let definitions = definitions.collect::<Rewritten<_>>()?;
                Term::Def(definitions, self.boxed(*body, owned)?)
            }
            Term::Call(name, arguments) => self.call(name, arguments)?,
            Term::Path(head, path) => self.path(*head, path)?,
        })
    }

    /// Counts a variable or a label for all definitions around it.
    fn bind(&mut self) {
        self.bindings.iter_mut().for_each(|count| *count += 1);
    }

    fn definition<'s>(&mut self, def: Def<&'s str>) -> Rewritten<Def<&'s str>> {
        let arity = def.args.len();
        let recurs = tail_calls(&def.body, &|name, count| name == def.name && count == arity);
        self.bindings.push(arity);
        let body = self.term(def.body, false)?;
        // A filter that is an argument keeps all bindings of the call before.
        let has_filters = def.args.iter().any(|parameter| !parameter.starts_with('$'));
        let call = match self.bindings.pop().filter(|_| recurs && has_filters) {
            Some(bindings) => Term::Call(toll::NEST, vec![Term::Num(at_least(bindings))]),
            None => Term::Call(toll::STEP, Vec::new()),
        };
        let keep = |body, parameter: &&'s str| {
            let value = through(Term::Var(parameter), toll::COPY);
            Term::BinOp(Box::new(value), BinaryOp::Pipe(Some(Pattern::Var(OPERAND))), Box::new(body))
        };
        let body = def.args.iter().filter(|parameter| parameter.starts_with('$')).fold(body, keep);
        Ok(Def { body: pipe(call, body), ..def })
    }

    fn text<'s>(
        &mut self,
        format: Option<&'s str>,
        parts: Vec<StrPart<&'s str, Term<&'s str>>>,
    ) -> Rewritten<Term<&'s str>> {
        let constant = !parts.iter().any(|part| matches!(part, StrPart::Term(_)));
        let rewrite = |part| {
            Ok(match part {
                StrPart::Term(term) => StrPart::Term(self.held(term)?),
                constant => constant,
            })
        };
        let text = Term::Str(format, parts.into_iter().map(rewrite).collect::<Rewritten<_>>()?);
        Ok(if constant { text } else { through(text, toll::MADE) })
    }

    fn object<'s>(
        &mut self,
        members: Vec<(Term<&'s str>, Option<Term<&'s str>>)>,
    ) -> Rewritten<Term<&'s str>> {
        let rewrite = |(key, value)| {
            let (key, value) = match (key, value) {
                (key, Some(value)) => (self.term(key, false)?, self.term(value, false)?),
                // `{$x}` is `{x: $x}`, `{a}` is `{a: .a}`.
                (Term::Var(name), None) => (Term::Str(None, vec![StrPart::Str(&name[1..])]), Term::Var(name)),
                (key, None) => {
                    let key = self.term(key, false)?;
                    let path = Path(vec![(Part::Index(key.clone()), Opt::Essential)]);
                    (key, Term::Path(Box::new(Term::Id), path))
                }
            };
            Ok((through(key, toll::COPY), Some(through(value, toll::HOLD))))
        };
        Ok(Term::Obj(members.into_iter().map(rewrite).collect::<Rewritten<_>>()?))
    }

    fn operator<'s>(
        &mut self,
        left: Term<&'s str>,
        operator: BinaryOp<&'s str>,
        right: Term<&'s str>,
        owned: bool,
    ) -> Rewritten<Term<&'s str>> {
        let (left, right) = match operator {
            BinaryOp::Pipe(None) => {
                let owned_by_right = owned && in_place(&left);
                (self.paced(left, owned)?, self.term(right, owned_by_right)?)
            }
            BinaryOp::Pipe(Some(pattern)) => {
                if let Some(patterns) = alternatives::of_pattern(&pattern) {
                    return self.term(alternatives::expanded(left, patterns, right), false);
                }
                let owned = owned && headed_by_constant(&left);
                let pattern = self.pattern(pattern)?;
                let (left, right) = (self.copied(left)?, self.term(right, owned)?);
                return Ok(Term::BinOp(Box::new(left), BinaryOp::Pipe(Some(pattern)), Box::new(right)));
            }
            BinaryOp::Math(operator) => return self.arithmetic(left, operator, right, owned),
            BinaryOp::Cmp(_) | BinaryOp::Or | BinaryOp::And => {
                let (left, right) = (self.term(left, false)?, self.term(right, false)?);
                let result = Term::BinOp(Box::new(left), operator, Box::new(right));
                return Ok(through(result, toll::STEP));
            }
            BinaryOp::Comma | BinaryOp::Alt => (self.term(left, false)?, self.term(right, false)?),
            BinaryOp::Update => {
                let quiet = in_place(&right);
                let (left, right) = (self.term(left, false)?, self.term(right, true)?);
                let right = if quiet { right } else { through(right, toll::HOLD) };
                return Ok(changed(modify(left, right), owned));
            }
            BinaryOp::Assign | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                let update = match operator {
                    BinaryOp::UpdateMath(operator) => math(Term::Id, operator, held_operand()),
                    BinaryOp::UpdateAlt => {
                        Term::BinOp(Box::new(Term::Id), BinaryOp::Alt, Box::new(held_operand()))
                    }
                    _ => held_operand(),
                };
                let (left, right) = (self.term(left, false)?, self.term(right, false)?);
                return Ok(changed(bind_operand(right, modify(left, update)), owned));
            }
        };
        Ok(Term::BinOp(Box::new(left), operator, Box::new(right)))
    }

    fn arithmetic<'s>(
        &mut self,
        left: Term<&'s str>,
        operator: Math,
        right: Term<&'s str>,
        owned: bool,
    ) -> Rewritten<Term<&'s str>> {
        let right = self.held(right)?;
        let left = match (operator, left) {
            (Math::Mul | Math::Div, left) => self.held(left)?,
            (_, Term::Id) if owned => Term::Id,
            // A sum that was just computed has no other user.
            (_, left @ Term::BinOp(_, BinaryOp::Math(_), _)) => self.term(left, owned)?,
            (_, left) => self.copied(left)?,
        };
        Ok(math(left, operator, right))
    }

    fn pattern<'s>(&mut self, pattern: Pattern<&'s str>) -> Rewritten<Pattern<&'s str>> {
        Ok(match pattern {
            Pattern::Var(name) => {
                self.bind();
                Pattern::Var(name)
            }
            Pattern::Arr(items) => {
                Pattern::Arr(items.into_iter().map(|item| self.pattern(item)).collect::<Rewritten<_>>()?)
            }
            Pattern::Obj(members) => {
                let rewrite = |(key, member)| Ok((self.paced(key, false)?, self.pattern(member)?));
                Pattern::Obj(members.into_iter().map(rewrite).collect::<Rewritten<_>>()?)
            }
        })
    }

    fn fold<'s>(
        &mut self,
        name: &'s str,
        stream: Term<&'s str>,
        pattern: Pattern<&'s str>,
        arguments: Vec<Term<&'s str>>,
    ) -> Rewritten<Term<&'s str>> {
        if let Some(patterns) = alternatives::of_pattern(&pattern) {
            return self.term(alternatives::folded(name, stream, patterns, arguments), false);
        }
        let stream = self.copied(stream)?;
        let pattern = self.pattern(pattern)?;
        let owned = name == "reduce";
        let rewrite = |(place, argument)| match place {
            1 if owned && single(&argument) => Ok(through(self.term(argument, true)?, toll::STEP)),
            0 | 1 => self.copied(argument),
            _ => self.term(argument, false),
        };
        let arguments = arguments.into_iter().enumerate().map(rewrite).collect::<Rewritten<_>>()?;
        Ok(Term::Fold(name, Box::new(stream), pattern, arguments))
    }

    fn call<'s>(&mut self, name: &'s str, arguments: Vec<Term<&'s str>>) -> Rewritten<Term<&'s str>> {
        let Some(parameters) = signatures().get(&(name, arguments.len())) else {
            // An argument may need the arguments of the calls before it, one within the other.
            let stepped = |argument| match argument {
                Term::Id | Term::Var(_) | Term::Num(_) => argument,
                argument => pipe(Term::Call(toll::STEP, Vec::new()), argument),
            };
            return Ok(Term::Call(name, self.all(arguments)?.into_iter().map(stepped).collect()));
        };
        let rewrite = |(parameter, argument): (&Bind, _)| match parameter {
            Bind::Var(()) => self.held(argument),
            Bind::Fun(()) => self.term(argument, false),
        };
        let arguments = parameters.iter().zip(arguments).map(rewrite).collect::<Rewritten<_>>()?;
        let call = through(Term::Call(name, arguments), toll::MADE);
        let input = if CUTTING.contains(&name) {
            toll::CUT
        } else if CHEAP.contains(&name) {
            return Ok(call);
        } else {
            toll::HOLD
        };
        Ok(pipe(Term::Call(input, Vec::new()), call))
    }

    /// Rewrites a path. Iterating and slicing copy the container, so it is charged before each such part.
    fn path<'s>(&mut self, head: Term<&'s str>, path: Path<Term<&'s str>>) -> Rewritten<Term<&'s str>> {
        let mut head = self.paced(head, false)?;
        let mut run = Vec::new();
        let mut several = false;
        for (part, optional) in path.0 {
            let part = match part {
                Part::Index(index) => {
                    several |= !single(&index);
                    let whole = matches!(&index, Term::Str(..))
                        || matches!(&index, Term::Num(digits) if digits.parse::<i64>().is_ok());
                    let index = self.term(index, false)?;
                    Part::Index(if whole { index } else { through(index, toll::INDEX) })
                }
                Part::Range(from, to) => {
                    several = true;
                    head = through(followed(head, std::mem::take(&mut run)), toll::COPY);
                    let mut bound =
                        |bound: Option<_>| bound.map(|bound| self.paced(bound, false)).transpose();
                    Part::Range(bound(from)?, bound(to)?)
                }
            };
            run.push((part, optional));
        }
        let path = followed(head, run);
        Ok(if several { through(path, toll::COPY) } else { path })
    }
}

/// Returns the text of the smallest power of two that is at least `count`.
fn at_least(count: usize) -> &'static str {
    const POWERS: [&str; 9] = ["1", "2", "4", "8", "16", "32", "64", "128", "256"];
    let exponent = count.next_power_of_two().trailing_zeros();
    // An expression has at most 32 KiB, so no definition has more.
    POWERS.get(exponent as usize).copied().unwrap_or("16384")
}

fn followed<'s>(head: Term<&'s str>, parts: Vec<(Part<Term<&'s str>>, Opt)>) -> Term<&'s str> {
    if parts.is_empty() { head } else { Term::Path(Box::new(head), Path(parts)) }
}

/// Charges a copy for a changed document, unless it was changed in place.
fn changed(result: Term<&str>, owned: bool) -> Term<&str> {
    through(result, if owned { toll::STEP } else { toll::COPY })
}

/// The parameters of functions by their name and arity.
type Signatures = HashMap<(&'static str, usize), Box<[Bind]>>;

/// The native functions.
fn signatures() -> &'static Signatures {
    static SIGNATURES: OnceLock<Signatures> = OnceLock::new();
    SIGNATURES.get_or_init(|| {
        natives::public().map(|(name, parameters, _)| ((name, parameters.len()), parameters)).collect()
    })
}
