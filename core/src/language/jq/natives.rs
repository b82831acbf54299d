//! The native functions of expressions: those of jaq that do not access the environment, and our own.

use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, v};
use jaq_core::{Bind, Cv, Error, Exn, Native, ValXs};
use jaq_json::{Num, Val};

use super::machine::{Machine, end};
use super::meter::{Ended, Meter, PIECE, shallow_size};
use super::{EvaluationError, convert, regex, search, update};
use crate::path::LogicalPath;
use crate::payload::{PayloadType, decode};

/// The names of the functions that [`super::instrument`] inserts. They are not valid in expressions.
pub(super) mod toll {
    /// Counts a step.
    pub(crate) const STEP: &str = "!step";
    /// Counts a step, and as many kept bindings as its argument states.
    pub(crate) const NEST: &str = "!nest";
    /// Counts a step and a copy of the value that shares its parts.
    pub(crate) const COPY: &str = "!copy";
    /// Counts a step and the value with all of its parts.
    pub(crate) const HOLD: &str = "!hold";
    /// Counts a step and a multiple of the value, for functions that split it.
    pub(crate) const CUT: &str = "!cut";
    /// Counts a step and a copy of a value that was just computed, and narrows numbers.
    pub(crate) const MADE: &str = "!made";
    /// Counts a step and narrows numbers.
    pub(crate) const NARROW: &str = "!narrow";
    /// The operator `|=`.
    pub(crate) const MODIFY: &str = "!modify";
    /// The operator `*`.
    pub(crate) const TIMES: &str = "!times";
    /// The operator `/`.
    pub(crate) const OVER: &str = "!over";
    /// The operator `%`.
    pub(crate) const REST: &str = "!rest";
    /// Rounds an index down.
    pub(crate) const INDEX: &str = "!index";
    /// The number `nan`.
    pub(crate) const NAN: &str = "!nan";
    /// The infinite number.
    pub(crate) const INFINITE: &str = "!infinite";
}

/// The errors that our functions raise, without values.
pub(super) const DIVISION_BY_ZERO: &str = "cannot divide by zero";
pub(super) const NOT_JSON: &str = "cannot parse the text as JSON";
pub(super) const NOT_TEXT: &str = "only text can be parsed as JSON";

/// Functions of jaq that access the environment, or that our functions replace.
const LEFT_OUT: [&str; 13] = [
    "env", "halt", "debug_empty", "stderr_empty", "localtime", "strflocaltime", "fromjson", "input",
    "contains", "indices", "matches", "split_", "split_matches",
];

/// The function `strptime` of jaq, which requires a whole date.
const STRPTIME: &str = "strptime_";

/// Returns the functions that expressions may call, without tolls.
pub(super) fn public() -> impl Iterator<Item = Fun<Machine>> {
    let jaq = jaq_core::funs::<Machine>().chain(jaq_std::funs()).chain(jaq_json::funs());
    let jaq = jaq.map(|(name, parameters, run)| match name {
        // The library calls it, and supplies a date if the format has none.
        "strptime" => (STRPTIME, parameters, run),
        _ => (name, parameters, run),
    });
    let ours: [Fun<Machine>; 8] = [
        ("contains", v(1), Native::<Machine>::new(search::contains)),
        ("delpaths", v(1), Native::<Machine>::new(update::delete_paths)),
        ("fromjson", v(0), Native::<Machine>::new(from_json)),
        ("indices", v(1), Native::<Machine>::new(search::indices)),
        ("matches", v(2), Native::<Machine>::new(regex::matches)),
        ("resource", v(1), Native::<Machine>::new(resource)),
        ("split_", v(2), Native::<Machine>::new(regex::split)),
        ("split_matches", v(2), Native::<Machine>::new(regex::split_matches)),
    ];
    jaq.filter(|(name, ..)| !LEFT_OUT.contains(name)).chain(ours)
}

/// Returns the functions that only [`super::instrument`] calls.
pub(super) fn tolls() -> impl Iterator<Item = Fun<Machine>> {
    let filters = || [Bind::Fun(()), Bind::Fun(())].into();
    let tolls: [Fun<Machine>; 14] = [
        (toll::STEP, v(0), pass::<Step>()),
        (toll::NEST, v(1), nest()),
        (toll::COPY, v(0), pass::<Copy>()),
        (toll::HOLD, v(0), pass::<Hold>()),
        (toll::CUT, v(0), pass::<Cut>()),
        (toll::MADE, v(0), pass::<Made>()),
        (toll::NARROW, v(0), pass::<Narrow>()),
        (toll::MODIFY, filters(), Native::<Machine>::new(update::modify)),
        (toll::TIMES, v(2), Native::<Machine>::new(times)),
        (toll::OVER, v(2), Native::<Machine>::new(over)),
        (toll::REST, v(2), Native::<Machine>::new(rest)),
        (toll::INDEX, v(0), pass::<Index>()),
        (toll::NAN, v(0), Native::<Machine>::new(|_| box_once(Ok(Val::from(f64::NAN))))),
        (toll::INFINITE, v(0), Native::<Machine>::new(|_| box_once(Ok(Val::from(f64::INFINITY))))),
    ];
    tolls.into_iter()
}

/// A charge for a value.
trait Toll {
    fn pay(meter: &Meter<'_>, _: &Val) -> Result<(), Ended> {
        meter.step()
    }

    /// Returns the value to continue with.
    fn pass(value: Val) -> Val {
        value
    }
}

struct Step;
struct Copy;
struct Hold;
struct Cut;
struct Made;
struct Narrow;
struct Index;

impl Toll for Step {}

impl Toll for Copy {
    fn pay(meter: &Meter<'_>, value: &Val) -> Result<(), Ended> {
        meter.step()?;
        meter.charge(shallow_size(value))
    }
}

impl Toll for Hold {
    fn pay(meter: &Meter<'_>, value: &Val) -> Result<(), Ended> {
        meter.step()?;
        meter.hold(value)
    }
}

impl Toll for Cut {
    fn pay(meter: &Meter<'_>, value: &Val) -> Result<(), Ended> {
        meter.step()?;
        meter.charge(shallow_size(value).saturating_mul(PIECE))
    }
}

impl Toll for Made {
    fn pay(meter: &Meter<'_>, value: &Val) -> Result<(), Ended> {
        Copy::pay(meter, value)
    }

    fn pass(value: Val) -> Val {
        Narrow::pass(value)
    }
}

impl Toll for Narrow {
    fn pass(value: Val) -> Val {
        match value {
            Val::Num(number) => convert::narrow(number),
            other => other,
        }
    }
}

impl Toll for Index {
    fn pay(meter: &Meter<'_>, value: &Val) -> Result<(), Ended> {
        meter.step()?;
        match value {
            // The index searches the array.
            Val::Arr(part) => meter.look_for(part.len()),
            _ => Ok(()),
        }
    }

    fn pass(value: Val) -> Val {
        match value {
            Val::Num(Num::Float(number)) => convert::narrow(Num::Float(number.floor())),
            other => other,
        }
    }
}

/// Returns the function that charges `T` and returns its input, for values and for paths.
fn pass<T: Toll>() -> Native<Machine> {
    Native::<Machine>::new(|(context, value)| match T::pay(context.data().meter, &value) {
        Ok(()) => box_once(Ok(T::pass(value))),
        Err(ended) => end(&ended),
    })
    .with_paths(|(context, (value, path))| {
        let meter = context.data().meter;
        match meter.path(path.iter()).and_then(|()| T::pay(meter, &value)) {
            Ok(()) => box_once(Ok((value, path))),
            Err(_) => box_once(Err(Exn::halt(0))),
        }
    })
}

/// Returns the function that charges bindings that calls keep, and returns its input.
fn nest() -> Native<Machine> {
    fn pay(context: &mut jaq_core::Ctx<'_, Machine>) -> Result<(), Ended> {
        let count = match context.pop_var() {
            Val::Num(count) => count.as_isize().and_then(|count| usize::try_from(count).ok()),
            _ => None,
        };
        let meter = context.data().meter;
        meter.step()?;
        meter.keep_bindings(count.unwrap_or(usize::MAX))
    }
    Native::<Machine>::new(|(mut context, value)| match pay(&mut context) {
        Ok(()) => box_once(Ok(value)),
        Err(ended) => end(&ended),
    })
    .with_paths(|(mut context, place)| match pay(&mut context) {
        Ok(()) => box_once(Ok(place)),
        Err(_) => box_once(Err(Exn::halt(0))),
    })
}

fn fail<'a>(message: &str) -> ValXs<'a, Val> {
    box_once(Err(Exn::from(Error::str(message))))
}

fn operands(context: &mut jaq_core::Ctx<'_, Machine>) -> (Val, Val) {
    let right = context.pop_var();
    (context.pop_var(), right)
}

/// `l * r`. The size of repeated text is charged before the text is created.
fn times((mut context, _): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let (left, right) = operands(&mut context);
    let repeated = match (&left, &right) {
        (Val::TStr(text) | Val::BStr(text), Val::Num(count))
        | (Val::Num(count), Val::TStr(text) | Val::BStr(text)) => {
            count.as_isize().map(|count| text.len().saturating_mul(usize::try_from(count).unwrap_or(0)))
        }
        _ => None,
    };
    match context.data().meter.charge(repeated.unwrap_or(0)) {
        Ok(()) => box_once((left * right).map_err(Exn::from)),
        Err(ended) => end(&ended),
    }
}

/// `l / r`. The pieces of split text are charged before they are created. A division by zero is an error.
fn over((mut context, _): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let (left, right) = operands(&mut context);
    let pieces = match (&left, &right) {
        (Val::TStr(text) | Val::BStr(text), Val::TStr(separator) | Val::BStr(separator)) => {
            text.len() / separator.len().max(1)
        }
        (Val::Num(_), Val::Num(divisor)) if is_zero(divisor) => return fail(DIVISION_BY_ZERO),
        _ => 0,
    };
    match context.data().meter.charge(pieces.saturating_mul(PIECE)) {
        Ok(()) => box_once((left / right).map_err(Exn::from)),
        Err(ended) => end(&ended),
    }
}

/// `l % r`, of the integers that remain without the digits after the point, as in jq.
fn rest((mut context, _): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let whole = |value| match value {
        Val::Num(Num::Float(number)) => convert::narrow(Num::Float(number.trunc())),
        other => other,
    };
    let (left, right) = operands(&mut context);
    match (whole(left), whole(right)) {
        (Val::Num(_), Val::Num(divisor)) if is_zero(&divisor) => fail(DIVISION_BY_ZERO),
        (left, right) => box_once((left % right).map_err(Exn::from)),
    }
}

fn is_zero(number: &Num) -> bool {
    jaq_std::ValT::as_f64(&Val::Num(number.clone())) == Some(0.0)
}

/// `fromjson`, with the JSON decoder of payloads and its limits.
fn from_json((context, value): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let Val::TStr(text) = &value else { return fail(NOT_TEXT) };
    // Charge a multiple of the text, because the parsed tree and the converted one exist at the same time.
    if let Err(ended) = context.data().meter.charge(text.len().saturating_mul(PIECE)) {
        return end(&ended);
    }
    match decode(PayloadType::Json, text).ok().and_then(|value| convert::to_jq(&value).ok()) {
        Some(value) => box_once(Ok(value)),
        None => fail(NOT_JSON),
    }
}

/// `resource("/path")`: the payload of another resource.
fn resource((mut context, _): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let argument = context.pop_var();
    match read(context.data().meter, &argument) {
        Ok(value) => box_once(Ok(value)),
        Err(ended) => end(&ended),
    }
}

fn read(meter: &Meter<'_>, argument: &Val) -> Result<Val, Ended> {
    let Some(reader) = meter.resources else { return Err(meter.end(EvaluationError::NoReader)) };
    let text = match argument {
        Val::TStr(text) => std::str::from_utf8(text).ok(),
        _ => None,
    };
    let path = text.ok_or(None).and_then(|text| LogicalPath::parse(text.trim()).map_err(Some));
    let path = path.map_err(|source| meter.end(EvaluationError::ResourcePath(source)))?;
    let value = meter
        .without_clock(|| reader.read(&path))
        .map_err(|failure| meter.end(EvaluationError::Resource(path.clone(), failure)))?;
    let value = convert::to_jq(&value)
        .map_err(|_| meter.end(EvaluationError::Failed(format!("resource(\"{path}\") is not structured"))))?;
    meter.hold(&value)?;
    Ok(value)
}
