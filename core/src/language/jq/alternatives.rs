//! The destructuring alternative operator `?//`, which jaq lacks.
//!
//! `E as P ?// Q | F` binds `P`. If that or `F` fails, `Q` is bound and `F` is evaluated again, with the original input.
//! Variables of the other pattern are null. Before parsing, the patterns become one array pattern, which starts with a
//! variable whose name is not valid in expressions. After parsing, this pattern becomes
//!
//! ```jq
//! . as $input | E as $value | def body($bound): $bound as {$a, $b} | F;
//! try ($value as P | body({$a})) catch ($input | $value as Q | body({$b}))
//! ```
//!
//! In `reduce` and `foreach`, `F` is the update together with the extraction. In contrast to jq, a failed `F` does not
//! change the state that the next alternative gets.

use jaq_core::load::lex::{StrPart, Tok, Token};
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Opt, Part, Path};

/// The first variable of the array pattern, which is also bound to the value.
const VALUE: &str = "$!value";
const INPUT: &str = "$!input";
const BOUND: &str = "$!bound";
const BODY: &str = "!body";
/// The current value of a fold.
const ITEM: &str = "$!item";

/// Joins the patterns of `as P ?// Q |`, or with the arguments of a fold instead of `|`, to one array pattern, in all
/// nested tokens. An operator that is not complete stays in the tokens, so the parser reports it.
pub(super) fn joined<'s>(tokens: Vec<Token<&'s str>>) -> Vec<Token<&'s str>> {
    let mut tokens = tokens.into_iter().map(nested).peekable();
    let mut done: Vec<Token<&'s str>> = Vec::new();
    while let Some(token) = tokens.next() {
        let binds = matches!(done.last(), Some(Token("as", Tok::Word)));
        done.push(token);
        if !binds {
            continue;
        }
        let (first, mut valid) = (done.len() - 1, true);
        while let Some(question) = tokens.next_if(|token| is_symbol(token, "?")) {
            done.push(question);
            let operator = tokens.next_if(|token| is_symbol(token, "//"));
            valid &= operator.is_some();
            done.extend(operator);
            done.extend(tokens.next());
        }
        let complete = valid && done[first..].len() > 1 && tokens.peek().is_some_and(follows);
        if complete {
            let patterns =
                done.drain(first..).filter(|token| !is_symbol(token, "?") && !is_symbol(token, "//"));
            let items = patterns.flat_map(|pattern| [Token(",", Tok::Sym), pattern]);
            let ends =
                [Token(VALUE, Tok::Var)].into_iter().chain(items).chain([Token("]", Tok::Sym)]).collect();
            done.push(Token("[", Tok::Block(ends)));
        }
    }
    done
}

/// Whether a token follows the patterns: `|`, or the arguments of `reduce` and `foreach`.
fn follows(token: &Token<&str>) -> bool {
    is_symbol(token, "|") || matches!(token, Token(text, Tok::Block(_)) if text.starts_with('('))
}

fn is_symbol(token: &Token<&str>, symbol: &str) -> bool {
    token.0 == symbol && matches!(token.1, Tok::Sym)
}

fn nested(Token(text, token): Token<&str>) -> Token<&str> {
    let token = match token {
        Tok::Block(tokens) => Tok::Block(joined(tokens)),
        Tok::Str(parts) => Tok::Str(
            parts
                .into_iter()
                .map(|part| match part {
                    StrPart::Term(term) => StrPart::Term(nested(term)),
                    constant => constant,
                })
                .collect(),
        ),
        other => other,
    };
    Token(text, token)
}

/// Returns the alternatives of a joined pattern.
pub(super) fn of_pattern<'p, 's>(pattern: &'p Pattern<&'s str>) -> Option<&'p [Pattern<&'s str>]> {
    match pattern {
        Pattern::Arr(items) => match items.as_slice() {
            [Pattern::Var(VALUE), alternatives @ ..] => Some(alternatives),
            _ => None,
        },
        _ => None,
    }
}

/// Returns `value as ALTERNATIVES | body` without the operator.
pub(super) fn expanded<'s>(
    value: Term<&'s str>,
    alternatives: &[Pattern<&'s str>],
    body: Term<&'s str>,
) -> Term<&'s str> {
    let mut names = Vec::new();
    for pattern in alternatives {
        variables(pattern, &mut names);
    }
    let bound = names.iter().map(|name| (key(name), Pattern::Var(*name))).collect();
    let body = bind(Term::Var(BOUND), Pattern::Obj(bound), body);
    let mut attempts = alternatives.iter().rev().map(|pattern| {
        let mut names = Vec::new();
        variables(pattern, &mut names);
        let bound = names.into_iter().map(|name| (key(name), Some(Term::Var(name)))).collect();
        bind(value_for(pattern), pattern.clone(), Term::Call(BODY, vec![Term::Obj(bound)]))
    });
    let last = attempts.next().unwrap_or(Term::Id);
    let attempts = attempts.fold(last, |next, attempt| {
        Term::TryCatch(Box::new(attempt), Some(Box::new(pipe(Term::Var(INPUT), next))))
    });
    let defined = Term::Def(vec![Def { name: BODY, args: vec![BOUND], body }], Box::new(attempts));
    bind(Term::Id, Pattern::Var(INPUT), bind(value, Pattern::Var(VALUE), defined))
}

/// Returns `NAME stream as ALTERNATIVES (arguments)` without the operator. An extraction moves into the update, whose
/// output becomes the pair of the state and the extracted values.
pub(super) fn folded<'s>(
    name: &'s str,
    stream: Term<&'s str>,
    alternatives: &[Pattern<&'s str>],
    arguments: Vec<Term<&'s str>>,
) -> Term<&'s str> {
    let bound = |body| expanded(Term::Var(ITEM), alternatives, body);
    let mut arguments = arguments.into_iter();
    let (initial, update) = (arguments.next().unwrap_or(Term::Id), arguments.next().unwrap_or(Term::Id));
    let arguments = match arguments.next() {
        None => vec![initial, bound(update)],
        Some(extract) => {
            let pair = Term::BinOp(Box::new(Term::Id), BinaryOp::Comma, Box::new(list(extract)));
            let state = Term::Path(Box::new(Term::Id), Path(vec![index("0")]));
            let extracted = Path(vec![index("1"), (Part::Range(None, None), Opt::Essential)]);
            vec![
                pipe(initial, list(Term::Id)),
                pipe(state, bound(pipe(update, list(pair)))),
                Term::Path(Box::new(Term::Id), extracted),
            ]
        }
    };
    Term::Fold(name, Box::new(stream), Pattern::Var(ITEM), arguments)
}

fn list(items: Term<&str>) -> Term<&str> {
    Term::Arr(Some(Box::new(items)))
}

fn index(digits: &str) -> (Part<Term<&str>>, Opt) {
    (Part::Index(Term::Num(digits)), Opt::Essential)
}

fn pipe<'s>(left: Term<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}

/// Returns the value to bind `pattern` to. In jaq, an object has no members for numbers; in jq, this is an error.
fn value_for<'s>(pattern: &Pattern<&'s str>) -> Term<&'s str> {
    match pattern {
        Pattern::Arr(_) => {
            let all = (Part::Range(Some(Term::Num("0")), None), Opt::Essential);
            Term::Path(Box::new(Term::Var(VALUE)), Path(vec![all]))
        }
        Pattern::Var(_) | Pattern::Obj(_) => Term::Var(VALUE),
    }
}

/// `value as pattern | body`
fn bind<'s>(value: Term<&'s str>, pattern: Pattern<&'s str>, body: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(value), BinaryOp::Pipe(Some(pattern)), Box::new(body))
}

/// Returns the name of a variable as text.
fn key(name: &str) -> Term<&str> {
    Term::Str(None, vec![StrPart::Str(name.trim_start_matches('$'))])
}

/// Adds the variables of a pattern to `names`, each once.
fn variables<'s>(pattern: &Pattern<&'s str>, names: &mut Vec<&'s str>) {
    match pattern {
        Pattern::Var(name) if names.contains(name) => {}
        Pattern::Var(name) => names.push(name),
        Pattern::Arr(items) => items.iter().for_each(|item| variables(item, names)),
        Pattern::Obj(members) => members.iter().for_each(|(_, member)| variables(member, names)),
    }
}
