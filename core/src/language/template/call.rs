//! Evaluates the functions of templates.

use std::cmp::Ordering;

use super::error::Fault;
use super::function::Function;
use super::operand::{Operand, View};
use super::scope::Scope;
use super::{escape, print};
use crate::language::reference::Reference;
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::payload::{Value, pointer};

/// Evaluates `function`. The parser has checked the number of operands. The caller handles the short circuit of `and`
/// and `or`.
pub(super) fn call<'r>(
    function: Function,
    operands: &[Operand<'r>],
    scope: &Scope<'r>,
) -> Result<Operand<'r>, Fault> {
    let first = operands.first().unwrap_or(&Operand::Missing);
    let second = operands.get(1).unwrap_or(&Operand::Missing);
    let ordered =
        |wanted: &[Ordering]| first.compare(second).map(|ordering| Operand::Bool(wanted.contains(&ordering)));
    match function {
        Function::Eq => equals_any(first, &operands[1..]).map(Operand::Bool),
        Function::Ne => first.equals(second).map(|equal| Operand::Bool(!equal)),
        Function::Lt => ordered(&[Ordering::Less]),
        Function::Le => ordered(&[Ordering::Less, Ordering::Equal]),
        Function::Gt => ordered(&[Ordering::Greater]),
        Function::Ge => ordered(&[Ordering::Greater, Ordering::Equal]),
        Function::Not => Ok(Operand::Bool(!is_true(first, scope))),
        Function::And | Function::Or => Ok(operands.last().cloned().unwrap_or(Operand::Missing)),
        Function::Index => operands[1..].iter().try_fold(first.clone(), |of, key| index(&of, key, scope)),
        Function::Len => length(first, scope),
        Function::Slice => slice(first, &operands[1..]),
        Function::Print => print::print(operands).map(text),
        Function::Println => print::println(operands).map(text),
        Function::Printf => print::printf(format_of(first)?, &operands[1..]).map(text),
        Function::UrlQuery => print::print(operands).map(|plain| text(escape::query(&plain))),
        Function::Html => print::print(operands).map(|plain| text(escape::html(&plain))),
        Function::Js => print::print(operands).map(|plain| text(escape::js(&plain))),
        Function::PayloadType | Function::PayloadMediaType | Function::PayloadExtension => {
            describe(function, first, scope)
        }
        Function::JsonPointer => json_pointer(first, scope),
        Function::Uppercase => first.text().map(|plain| text(plain.to_uppercase())),
        Function::Lowercase => first.text().map(|plain| text(plain.to_lowercase())),
        Function::Trim => first.text().map(|plain| text(plain.trim())),
        Function::Substring => substring(first, second, operands.get(2)),
        Function::Default => Ok(first_non_blank(operands)),
        Function::Ref => referred(first, second, scope),
    }
}

/// Returns whether an operand is true. Missing and empty values, null, false and zero are false.
pub(super) fn is_true(operand: &Operand<'_>, scope: &Scope<'_>) -> bool {
    match operand.view() {
        View::Nothing => false,
        View::Bool(value) => value,
        View::Int(value) => value != 0,
        View::Float(value) => value != 0.0,
        View::Text(text) => !text.is_empty(),
        View::Bytes(bytes) => !bytes.is_empty(),
        View::Items(items) => !items.is_empty(),
        View::Members(members) => !members.is_empty(),
        View::Scope => match operand {
            Operand::Payload => !scope.payload_fields().is_empty(),
            _ => true,
        },
    }
}

/// Returns the field `name` of `of`, for `.a.b`. Unlike with a pointer, a parent that is not an object is an error.
pub(super) fn field<'r>(of: &Operand<'r>, name: &str, scope: &Scope<'r>) -> Result<Operand<'r>, Fault> {
    match member(of, name, scope) {
        Some(field) => Ok(field),
        None => Err(Fault::evaluate(format!(
            "the parent of \"{name}\" is {}, not an object; use a pointer such as /a/{name} if it may be missing",
            of.kind()
        ))),
    }
}

/// Returns the value at `pointer`, from the root.
pub(super) fn at_pointer<'r>(pointer: &Pointer, scope: &Scope<'r>) -> Operand<'r> {
    pointer.tokens().iter().fold(Operand::Root, |of, token| match of.view() {
        View::Items(_) => {
            pointer::array_index(token).and_then(|index| item(&of, index)).unwrap_or(Operand::Missing)
        }
        _ => member(&of, token, scope).unwrap_or(Operand::Missing),
    })
}

/// Returns the member `name`; `None` if `of` is not an object.
fn member<'r>(of: &Operand<'r>, name: &str, scope: &Scope<'r>) -> Option<Operand<'r>> {
    match of {
        Operand::Root => Some(scope.field(name)),
        Operand::Payload => Some(scope.payload_field(name)),
        Operand::Value(Value::Object(members)) => {
            Some(members.get(name).map_or(Operand::Missing, Operand::Value))
        }
        _ => None,
    }
}

fn item<'r>(of: &Operand<'r>, index: usize) -> Option<Operand<'r>> {
    items(of)?.get(index).map(Operand::Value)
}

/// Returns the items of an array.
pub(super) fn items<'r>(of: &Operand<'r>) -> Option<&'r [Value]> {
    match of {
        Operand::Items(items) => Some(items),
        Operand::Value(value) => value.as_array(),
        _ => None,
    }
}

fn equals_any(first: &Operand<'_>, others: &[Operand<'_>]) -> Result<bool, Fault> {
    for other in others {
        if first.equals(other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn index<'r>(of: &Operand<'r>, key: &Operand<'r>, scope: &Scope<'r>) -> Result<Operand<'r>, Fault> {
    match (of.view(), key.view()) {
        (View::Nothing, _) => Ok(Operand::Missing),
        (View::Members(_) | View::Scope, View::Text(name)) => {
            Ok(member(of, name, scope).unwrap_or(Operand::Missing))
        }
        (View::Members(_) | View::Scope, _) => {
            Err(Fault::evaluate(format!("the key of an object is a string, not {}", key.kind())))
        }
        (View::Items(items), _) => {
            let index = key.integer().and_then(|index| usize::try_from(index).ok());
            index.and_then(|index| item(of, index)).ok_or_else(|| {
                Fault::evaluate(format!(
                    "the index of this array must be an integer from 0 below {}",
                    items.len()
                ))
            })
        }
        _ => Err(Fault::evaluate(format!("{} has neither members nor elements", of.kind()))),
    }
}

fn length<'r>(of: &Operand<'r>, scope: &Scope<'r>) -> Result<Operand<'r>, Fault> {
    let length = match of.view() {
        View::Text(text) => text.len(),
        View::Bytes(bytes) => bytes.len(),
        View::Items(items) => items.len(),
        View::Members(members) => members.len(),
        View::Scope if matches!(of, Operand::Payload) => scope.payload_fields().len(),
        View::Scope => scope.fields().len(),
        View::Nothing | View::Bool(_) | View::Int(_) | View::Float(_) => {
            return Err(Fault::evaluate(format!("a value that is {} has no length", of.kind())));
        }
    };
    Ok(Operand::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// Returns a part of a string or array. `len` and `slice` count bytes of strings, as in the
/// language that this one is derived from.
fn slice<'r>(of: &Operand<'r>, bounds: &[Operand<'r>]) -> Result<Operand<'r>, Fault> {
    let bound = |index: usize, default: usize| match bounds.get(index) {
        None => Ok(default),
        Some(bound) => bound
            .integer()
            .and_then(|bound| usize::try_from(bound).ok())
            .ok_or_else(|| Fault::evaluate("the bounds of a slice are integers from 0")),
    };
    let outside = || Fault::evaluate("the bounds are outside of the value, or inside of a character");
    if let Some(items) = items(of) {
        let range = bound(0, 0)?..bound(1, items.len())?;
        return items.get(range).map(Operand::Items).ok_or_else(outside);
    }
    let View::Text(plain) = of.view() else {
        return Err(Fault::evaluate(format!("a value that is {} cannot be sliced", of.kind())));
    };
    let range = bound(0, 0)?..bound(1, plain.len())?;
    plain.get(range).map(text).ok_or_else(outside)
}

fn describe<'r>(function: Function, of: &Operand<'_>, scope: &Scope<'r>) -> Result<Operand<'r>, Fault> {
    if !matches!(of, Operand::Root) {
        return Err(Fault::evaluate("the operand must be the root, written $"));
    }
    Ok(Operand::Field(match function {
        Function::PayloadMediaType => scope.media_type(),
        Function::PayloadExtension => scope.extension(),
        _ => scope.payload_type().name(),
    }))
}

fn json_pointer<'r>(of: &Operand<'_>, scope: &Scope<'r>) -> Result<Operand<'r>, Fault> {
    let View::Text(written) = of.view() else {
        return Err(Fault::evaluate(format!("a JSON Pointer is a string, not {}", of.kind())));
    };
    // Do not show the text in the message, because it may come from the payload.
    let pointer = Pointer::parse(written).map_err(|_| {
        Fault::evaluate(
            "the operand is not a JSON Pointer, which starts with a slash and has ~ only as ~0 or ~1",
        )
    })?;
    Ok(at_pointer(&pointer, scope))
}

fn format_of<'o>(operand: &'o Operand<'_>) -> Result<&'o str, Fault> {
    match operand.view() {
        View::Text(format) => Ok(format),
        _ => Err(Fault::evaluate(format!("the format is a string, not {}", operand.kind()))),
    }
}

/// Returns `length` code points of `of` from `start`, or all remaining ones.
fn substring<'r>(
    of: &Operand<'_>,
    start: &Operand<'_>,
    length: Option<&Operand<'_>>,
) -> Result<Operand<'r>, Fault> {
    let plain = of.text()?;
    let count = |operand: &Operand<'_>| {
        let number = operand.integer().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| Fault::evaluate("start and length of a substring are integers from 0"))
    };
    let outside = || Fault::evaluate("the substring is outside of the text");
    let offset = |text: &str, chars: usize| {
        text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(chars).ok_or_else(outside)
    };
    let rest = &plain[offset(&plain, count(start)?)?..];
    let end = length.map(count).transpose()?.map_or(Ok(rest.len()), |length| offset(rest, length))?;
    Ok(text(&rest[..end]))
}

/// Returns the value at a pointer into the payload of another resource.
fn referred<'r>(path: &Operand<'_>, pointer: &Operand<'_>, scope: &Scope<'_>) -> Result<Operand<'r>, Fault> {
    let path = LogicalPath::parse(&path.text()?).map_err(|_| {
        Fault::evaluate("the first operand of `ref` is the path of a resource in the repository")
    })?;
    let pointer = Pointer::parse(&pointer.text()?)
        .map_err(|_| Fault::evaluate("the second operand of `ref` is a JSON Pointer, such as \"/id\""))?;
    let none = || Fault::evaluate("`ref` cannot be used here, because no values of other resources are read");
    let reference = Reference { path, pointer };
    match scope.values.ok_or_else(none)?.value(&reference).map_err(Fault::evaluate)? {
        Value::Bool(value) => Ok(Operand::Bool(value)),
        Value::Int(value) => Ok(Operand::Int(value)),
        value => match value.scalar_text() {
            Some(plain) => Ok(text(plain)),
            None => Err(Fault::evaluate(format!("the value is {}, not a text or a number", value.kind()))),
        },
    }
}

fn first_non_blank<'r>(operands: &[Operand<'r>]) -> Operand<'r> {
    let blank = |operand: &Operand<'_>| match operand.view() {
        View::Nothing => true,
        View::Text(text) => text.trim().is_empty(),
        _ => false,
    };
    operands.iter().find(|operand| !blank(operand)).cloned().unwrap_or(Operand::Missing)
}

fn text<'r>(text: impl AsRef<str>) -> Operand<'r> {
    Operand::Text(text.as_ref().into())
}
