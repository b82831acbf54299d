//! Updates and deletions as in jq 1.7: all paths are found in the input first, updates create missing containers and
//! array items, and deletions go from the last path to the first.
//!
//! The definitions of jaq differ: they update while they follow a path, so null cannot become a container, and the
//! deletion of several items of an array deletes the wrong ones.

use jaq_core::box_iter::box_once;
use jaq_core::path::Opt;
use jaq_core::{Cv, Error, Exn, ValT, ValX, ValXs};
use jaq_json::{Map, Num, Rc, Val};

use super::machine::Machine;
use super::meter::{Meter, shallow_size};

/// The keys of a path from the root: text, integers, and `{"start", "end"}` for slices.
type Keys = Vec<Val>;

/// `modify(paths; update)`, which is `paths |= update`. Only the first output of `update` is used; without an output,
/// the value is deleted.
pub(super) fn modify<'a>((mut context, value): Cv<'a, Machine>) -> ValXs<'a, Val> {
    let (update, update_context) = context.pop_fun();
    let (paths, paths_context) = context.pop_fun();
    let meter = context.data().meter;
    let found = paths.paths((paths_context, (value.clone(), <_>::default())));
    let found = found.map(|found| {
        let (_, path) = found?;
        let mut keys: Keys = path.iter().cloned().collect();
        keys.reverse();
        pay_for(meter, &keys)?;
        Ok(keys)
    });
    let found = match found.collect::<Result<Vec<Keys>, Exn<'a, Val>>>() {
        Ok(found) => found,
        Err(exception) => return box_once(Err(exception)),
    };
    let mut root = value;
    let mut emptied = Vec::new();
    for keys in found {
        // Take the old value out, so that the update is its only user and can change it in place.
        let old = match existing(&mut root, &keys) {
            Some(place) => Ok(std::mem::take(place)),
            None => lookup(&root, &keys),
        };
        let new = old
            .map_err(Exn::from)
            .and_then(|old| update.run((update_context.clone(), old)).next().transpose());
        let done = match new {
            Ok(Some(new)) => set(meter, &mut root, &keys, new),
            Ok(None) => {
                emptied.push(keys);
                Ok(())
            }
            Err(exception) => Err(exception),
        };
        if let Err(exception) = done {
            return box_once(Err(exception));
        }
    }
    box_once(delete_all(meter, root, emptied))
}

/// `delpaths(paths)`
pub(super) fn delete_paths((mut context, value): Cv<'_, Machine>) -> ValXs<'_, Val> {
    let paths = context.pop_var();
    let Val::Arr(paths) = paths else { return box_once(Err(Error::typ(paths, "array").into())) };
    let keys = |path: &Val| match path {
        Val::Arr(keys) => Ok(keys.to_vec()),
        other => Err(Exn::from(Error::typ(other.clone(), "array"))),
    };
    match paths.iter().map(keys).collect() {
        Ok(paths) => box_once(delete_all(context.data().meter, value, paths)),
        Err(exception) => box_once(Err(exception)),
    }
}

fn pay_for<'a>(meter: &Meter<'_>, keys: &[Val]) -> Result<(), Exn<'a, Val>> {
    let size = keys.iter().map(shallow_size).sum();
    let paid = meter.path(keys.iter()).and_then(|()| meter.step()).and_then(|()| meter.charge(size));
    paid.map_err(|_| Exn::halt(0))
}

fn delete_all<'a>(meter: &Meter<'_>, mut root: Val, mut paths: Vec<Keys>) -> ValX<'a, Val> {
    paths.sort_unstable();
    paths.dedup();
    for keys in paths.iter().rev() {
        pay_for(meter, keys)?;
        delete(&mut root, keys)?;
    }
    Ok(root)
}

fn lookup(root: &Val, keys: &[Val]) -> Result<Val, Error<Val>> {
    keys.iter().try_fold(root.clone(), Val::index)
}

/// Returns the value at `keys`, if the whole path exists.
fn existing<'v>(root: &'v mut Val, keys: &[Val]) -> Option<&'v mut Val> {
    keys.iter().try_fold(root, |place, key| match (place, key) {
        (Val::Obj(members), Val::TStr(_)) => Rc::make_mut(members).get_mut(key),
        (Val::Arr(items), Val::Num(index)) => {
            let index = position(index, items.len()).filter(|index| *index < items.len())?;
            Rc::make_mut(items).get_mut(index)
        }
        _ => None,
    })
}

/// Returns the position of an index in an array of `length`; negative indexes count from the end.
fn position(index: &Num, length: usize) -> Option<usize> {
    let index = index.as_isize()?;
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(index.unsigned_abs()),
    }
}

/// Sets the value at `keys` to `new`, and creates missing parents.
fn set<'a>(meter: &Meter<'_>, root: &mut Val, keys: &[Val], new: Val) -> Result<(), Exn<'a, Val>> {
    let mut place = root;
    for (depth, key) in keys.iter().enumerate() {
        if let (Val::Arr(_) | Val::Null, Val::Obj(_)) = (&*place, key) {
            return set_slice(meter, place, key, &keys[depth + 1..], new);
        }
        place = match (key, &mut *place) {
            (Val::TStr(_), Val::Null) => {
                *place = Val::obj(Map::default());
                member(place, key)?
            }
            (Val::Num(_), Val::Null) => {
                *place = Val::from_iter([]);
                item(meter, place, key)?
            }
            (Val::TStr(_), Val::Obj(_)) => member(place, key)?,
            (Val::Num(_), Val::Arr(_)) => item(meter, place, key)?,
            _ => return Err(Error::index(place.clone(), key.clone()).into()),
        };
    }
    *place = new;
    Ok(())
}

fn member<'v, 'a>(place: &'v mut Val, key: &Val) -> Result<&'v mut Val, Exn<'a, Val>> {
    match place {
        Val::Obj(members) => Ok(Rc::make_mut(members).entry(key.clone()).or_insert(Val::Null)),
        other => Err(Error::index(other.clone(), key.clone()).into()),
    }
}

fn item<'v, 'a>(meter: &Meter<'_>, place: &'v mut Val, key: &Val) -> Result<&'v mut Val, Exn<'a, Val>> {
    let (Val::Arr(items), Val::Num(number)) = (place, key) else {
        return Err(Error::index(Val::Null, key.clone()).into());
    };
    let out_of_bounds = || Exn::from(Error::str(format_args!("index {key} out of bounds")));
    let index = position(number, items.len()).ok_or_else(out_of_bounds)?;
    if index >= items.len() {
        let missing = (index - items.len()).saturating_add(1);
        meter.charge(missing.saturating_mul(size_of::<Val>())).map_err(|_| Exn::halt(0))?;
        Rc::make_mut(items).resize(index + 1, Val::Null);
    }
    Rc::make_mut(items).get_mut(index).ok_or_else(out_of_bounds)
}

fn set_slice<'a>(
    meter: &Meter<'_>,
    place: &mut Val,
    range: &Val,
    rest: &[Val],
    new: Val,
) -> Result<(), Exn<'a, Val>> {
    let Val::Obj(bounds) = range else { return Err(Error::index(place.clone(), range.clone()).into()) };
    if matches!(place, Val::Null) {
        *place = Val::from_iter([]);
    }
    let mut slice = std::mem::take(place);
    let whole = slice.clone();
    slice = slice.index(range)?;
    set(meter, &mut slice, rest, new)?;
    let range = bounds.get(&Val::utf8_str("start"))..bounds.get(&Val::utf8_str("end"));
    *place = whole.map_range(range, Opt::Essential, |_| std::iter::once(Ok(slice.clone())))?;
    Ok(())
}

fn delete<'a>(root: &mut Val, keys: &[Val]) -> Result<(), Exn<'a, Val>> {
    let Some((key, parents)) = keys.split_last() else {
        *root = Val::Null;
        return Ok(());
    };
    let Some(parent) = existing(root, parents) else { return Ok(()) };
    match (&mut *parent, key) {
        (Val::Null, _) => {}
        (Val::Obj(members), Val::TStr(_)) => {
            Rc::make_mut(members).shift_remove(key);
        }
        (Val::Arr(items), Val::Num(index)) => {
            if let Some(index) = position(index, items.len()).filter(|index| *index < items.len()) {
                Rc::make_mut(items).remove(index);
            }
        }
        (Val::Arr(_), Val::Obj(bounds)) => {
            let range = bounds.get(&Val::utf8_str("start"))..bounds.get(&Val::utf8_str("end"));
            let array = std::mem::take(parent);
            *parent = array.map_range(range, Opt::Essential, |_| std::iter::empty())?;
        }
        _ => return Err(Error::index(parent.clone(), key.clone()).into()),
    }
    Ok(())
}
