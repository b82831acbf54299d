//! The functions that search a value in another one, in place of those of jaq: their comparisons may multiply, and a native
//! function cannot be stopped. Here each comparison is a step.

use jaq_core::box_iter::box_once;
use jaq_core::{Cv, Error, Exn, ValXs};
use jaq_json::Val;

use super::machine::{Machine, end};
use super::meter::{Ended, Meter, shallow_size};

/// `contains(part)`: whether each part of `part` is in the input.
pub(super) fn contains((mut context, whole): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let part = context.pop_var();
    match holds(context.data().meter, &whole, &part) {
        Ok(found) => box_once(Ok(Val::from(found))),
        Err(ended) => end(&ended),
    }
}

/// `indices(part)`: the places in the input where `part` begins. Places in a text are numbers of characters.
pub(super) fn indices((mut context, whole): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let part = context.pop_var();
    let meter = context.data().meter;
    let found = match (&whole, &part) {
        (Val::TStr(text), Val::TStr(part)) => places(meter, text, part).map(|at| characters(text, at)),
        (Val::BStr(bytes), Val::BStr(part)) => places(meter, bytes, part),
        (Val::Arr(items), Val::Arr(part)) => places(meter, items, part),
        (Val::Arr(items), item) => places(meter, items, std::slice::from_ref(item)),
        _ => return box_once(Err(Exn::from(Error::index(whole, part)))),
    };
    match found {
        Ok(places) => box_once(Ok(places.into_iter().map(Val::from).collect())),
        Err(ended) => end(&ended),
    }
}

fn holds(meter: &Meter<'_>, whole: &Val, part: &Val) -> Result<bool, Ended> {
    meter.step()?;
    match (whole, part) {
        (Val::BStr(whole), Val::BStr(part)) | (Val::TStr(whole), Val::TStr(part)) => {
            if part.is_empty() {
                return Ok(true);
            }
            first_place(meter, whole, part)
        }
        (Val::Arr(items), Val::Arr(parts)) => {
            for part in parts.iter() {
                if !any(items.iter(), |item| holds(meter, item, part))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Val::Obj(members), Val::Obj(parts)) => {
            for (key, part) in parts.iter() {
                let Some(member) = members.get(key) else { return Ok(false) };
                if !holds(meter, member, part)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(whole == part),
    }
}

fn any<T>(
    items: impl Iterator<Item = T>,
    is_found: impl Fn(T) -> Result<bool, Ended>,
) -> Result<bool, Ended> {
    for item in items {
        if is_found(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn first_place(meter: &Meter<'_>, whole: &[u8], part: &[u8]) -> Result<bool, Ended> {
    any(whole.windows(part.len()), |window| meter.step().map(|()| window == part))
}

/// Returns the places in `whole` where `part` begins; none if it is empty.
fn places<T: PartialEq>(meter: &Meter<'_>, whole: &[T], part: &[T]) -> Result<Vec<usize>, Ended> {
    let mut places = Vec::new();
    if part.is_empty() {
        return Ok(places);
    }
    for (place, window) in whole.windows(part.len()).enumerate() {
        meter.step()?;
        if window == part {
            meter.charge(shallow_size(&Val::Null))?;
            places.push(place);
        }
    }
    Ok(places)
}

/// Returns the numbers of characters before the places in `text`, which are in ascending order.
fn characters(text: &[u8], places: Vec<usize>) -> Vec<usize> {
    let (mut read, mut count) = (0, 0);
    let mut count_to = |place| {
        // The bytes of a character after the first one begin with the bits 10.
        count += text[read..place].iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        read = place;
        count
    };
    places.into_iter().map(&mut count_to).collect()
}
