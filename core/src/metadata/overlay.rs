//! Relates the payload that Git declares to the larger one that a server shows.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::document::{ArrayRule, OperationMode, OperationName, Resolved};
use crate::payload::pointer::{Pointer, escape};
use crate::payload::{Object, Value};

/// The number of pairs of entries that the comparison of two payloads aligns to find those that belong together. Servers are
/// not trusted: without a limit, the time would be quadratic in the length of an array.
const MAX_PAIRS: usize = 100_000;

/// Where the values that are related are, and the work that was done to find them.
#[derive(Default)]
struct Place {
    names: Vec<String>,
    pairs: usize,
}

/// How the members and array entries of two payloads belong together.
#[derive(Clone, Copy)]
pub(super) struct Relation<'r> {
    arrays: &'r BTreeMap<Pointer, ArrayRule>,
    /// Whether members that the payload does not declare are ignored.
    declared: bool,
}

impl<'r> Relation<'r> {
    pub fn of(resolved: &'r Resolved) -> Self {
        let compare = resolved.operation(OperationName::Compare);
        Self { arrays: &compare.arrays, declared: compare.mode == Some(OperationMode::Declared) }
    }

    /// Whether payloads are compared as they are.
    pub fn is_exact(self) -> bool {
        !self.declared && self.arrays.is_empty()
    }

    pub fn ignores_undeclared(self) -> bool {
        self.declared
    }

    /// Returns `observed` in the form of `desired`: entries of sets and keyed arrays are at the index of the declared
    /// entry, with null for a missing one. Undeclared members and keyed entries are left out if they are ignored.
    pub fn align(self, desired: &Value, observed: Value) -> Value {
        self.aligned(&mut Place::default(), desired, observed)
    }

    fn aligned(self, at: &mut Place, desired: &Value, observed: Value) -> Value {
        match (desired, observed) {
            (Value::Object(desired), Value::Object(observed)) => {
                let mut members = Object::new();
                for (key, value) in observed {
                    match desired.get(&key) {
                        Some(declared) => {
                            let value = below(at, &key, |at| self.aligned(at, declared, value));
                            members.insert(key, value);
                        }
                        None if self.declared => {}
                        None => drop(members.insert(key, value)),
                    }
                }
                if self.declared {
                    // A declared null is the only way to declare that a member is absent.
                    for (key, _) in desired.iter().filter(|(_, value)| value.is_null()) {
                        members.entry(key.clone()).or_default();
                    }
                }
                Value::Object(members)
            }
            (Value::Array(desired), Value::Array(observed)) => {
                Value::Array(self.aligned_entries(at, desired, observed))
            }
            (_, observed) => observed,
        }
    }

    fn aligned_entries(self, at: &mut Place, desired: &[Value], observed: Vec<Value>) -> Vec<Value> {
        let rule = self.rule(&at.names);
        let places = match rule {
            // Surplus entries of either side are differences.
            ArrayRule::Ordered => (0..desired.len().min(observed.len())).map(Some).collect(),
            ArrayRule::Set => self.places_in_set(at, desired, &observed),
            ArrayRule::Keyed(key) => {
                let mut by_key = indexes(observed.iter().map(|entry| key.get(entry)));
                desired.iter().map(|entry| by_key.get_mut(&key.get(entry)?)?.pop_front()).collect()
            }
        };
        let mut left: Vec<Option<Value>> = observed.into_iter().map(Some).collect();
        let mut aligned = Vec::with_capacity(left.len());
        for (entry, place) in desired.iter().zip(places) {
            let found = place.and_then(|index| left[index].take());
            let found = found.map(|found| below(at, "*", |at| self.aligned(at, entry, found)));
            aligned.push(found.unwrap_or_default());
        }
        if !(self.declared && matches!(rule, ArrayRule::Keyed(_))) {
            aligned.extend(left.into_iter().flatten());
        }
        aligned
    }

    /// Returns the index in `observed` of each entry of a set: that of an equal entry, otherwise of one that is equal as far
    /// as it is compared.
    fn places_in_set(self, at: &mut Place, desired: &[Value], observed: &[Value]) -> Vec<Option<usize>> {
        let mut equal = indexes(observed.iter().map(Some));
        let mut places: Vec<_> =
            desired.iter().map(|entry| equal.get_mut(entry).and_then(VecDeque::pop_front)).collect();
        let mut left: Vec<usize> = equal.into_values().flatten().collect();
        left.sort_unstable();
        let mut left = Left::new(left, observed);
        for (entry, place) in desired.iter().zip(&mut places).filter(|(_, place)| place.is_none()) {
            if matches!(entry, Value::Object(_) | Value::Array(_)) && at.pairs < MAX_PAIRS {
                *place = left.take(entry, |other| {
                    at.pairs += 1;
                    at.pairs < MAX_PAIRS
                        && below(at, "*", |at| self.aligned(at, entry, other.clone())) == *entry
                });
            }
        }
        places
    }

    /// Returns `observed` with the values of `desired` over it: objects and keyed arrays are merged, and other values
    /// are replaced if they differ.
    pub fn overlay(self, desired: Value, observed: Value) -> Value {
        self.overlaid(&mut Place::default(), desired, observed)
    }

    fn overlaid(self, at: &mut Place, desired: Value, observed: Value) -> Value {
        match (desired, observed) {
            (Value::Object(desired), Value::Object(mut members)) => {
                for (key, value) in desired {
                    let value = match members.remove(&key) {
                        Some(shown) => below(at, &key, |at| self.overlaid(at, value, shown)),
                        None => value,
                    };
                    members.insert(key, value);
                }
                Value::Object(members)
            }
            (Value::Array(desired), Value::Array(observed)) => match self.rule(&at.names) {
                ArrayRule::Keyed(key) => Value::Array(self.merged_entries(at, key, desired, observed)),
                _ if self.aligned_entries(at, &desired, observed.clone()) == desired => {
                    Value::Array(observed)
                }
                _ => Value::Array(desired),
            },
            (desired, _) => desired,
        }
    }

    fn merged_entries(
        self,
        at: &mut Place,
        key: &Pointer,
        desired: Vec<Value>,
        observed: Vec<Value>,
    ) -> Vec<Value> {
        let mut places = indexes(desired.iter().map(|entry| key.get(entry)));
        let places: Vec<_> =
            observed.iter().map(|entry| places.get_mut(key.get(entry)?)?.pop_front()).collect();
        let mut desired: Vec<_> = desired.into_iter().map(Some).collect();
        let mut merged = Vec::with_capacity(observed.len());
        for (entry, place) in observed.into_iter().zip(places) {
            merged.push(match place.and_then(|index| desired[index].take()) {
                Some(declared) => below(at, "*", |at| self.overlaid(at, declared, entry)),
                None => entry,
            });
        }
        merged.extend(desired.into_iter().flatten());
        merged
    }

    /// Returns the place of an entry of a keyed array without a value of its key. No entry of the server could match it, so
    /// each update would add it again.
    pub fn keyless(self, payload: &Value) -> Option<Pointer> {
        let is_keyed = self.arrays.values().any(|rule| matches!(rule, ArrayRule::Keyed(_)));
        if is_keyed { self.keyless_in(&mut Place::default(), &Pointer::default(), payload) } else { None }
    }

    fn keyless_in(self, at: &mut Place, place: &Pointer, value: &Value) -> Option<Pointer> {
        match value {
            Value::Object(members) => members.iter().find_map(|(key, member)| {
                below(at, key, |at| self.keyless_in(at, &place.child(key), member))
            }),
            Value::Array(entries) => {
                let rule = self.rule(&at.names);
                entries.iter().enumerate().find_map(|(index, entry)| {
                    let place = place.child(&index.to_string());
                    match rule {
                        ArrayRule::Keyed(key) if key.get(entry).is_none_or(Value::is_null) => Some(place),
                        _ => below(at, "*", |at| self.keyless_in(at, &place, entry)),
                    }
                })
            }
            _ => None,
        }
    }

    /// Returns the rule of the array at `at`. In the pointers of rules, `*` is any member or entry.
    fn rule(self, at: &[String]) -> &'r ArrayRule {
        let fits = |pattern: &Pointer| {
            let tokens = pattern.tokens();
            tokens.len() == at.len() && tokens.iter().zip(at).all(|(token, at)| token == "*" || token == at)
        };
        let found = self.arrays.iter().find(|(pattern, _)| fits(pattern));
        found.map_or(&ArrayRule::Ordered, |(_, rule)| rule)
    }
}

/// The entries of a set that belong to no declared entry yet.
struct Left<'v> {
    indexes: Vec<usize>,
    observed: &'v [Value],
    is_taken: Vec<bool>,
    /// The indexes by the values of members with these names.
    by_members: HashMap<Vec<&'v str>, HashMap<Vec<&'v Value>, Vec<usize>>>,
}

impl<'v> Left<'v> {
    fn new(indexes: Vec<usize>, observed: &'v [Value]) -> Self {
        let (is_taken, by_members) = (vec![false; observed.len()], HashMap::new());
        Self { indexes, observed, is_taken, by_members }
    }

    /// Takes the first entry that `is_same` as the declared `entry`, which must have the same scalars in its members.
    fn take(&mut self, entry: &'v Value, mut is_same: impl FnMut(&Value) -> bool) -> Option<usize> {
        let members = entry.as_object().into_iter().flatten();
        let (names, values): (Vec<&str>, Vec<&Value>) = members
            .filter(|(_, value)| !matches!(value, Value::Null | Value::Object(_) | Value::Array(_)))
            .map(|(name, value)| (name.as_str(), value))
            .unzip();
        let Self { indexes, observed, is_taken, by_members } = self;
        let with = by_members.entry(names).or_insert_with_key(|names| {
            let mut with: HashMap<Vec<&Value>, Vec<usize>> = HashMap::new();
            for index in &*indexes {
                let shown = names.iter().map(|name| observed[*index].get(name)).collect::<Option<Vec<_>>>();
                with.entry(shown.unwrap_or_default()).or_default().push(*index);
            }
            with
        });
        let candidates = with.get(&values)?.iter().copied();
        let found = candidates.filter(|index| !is_taken[*index]).find(|index| is_same(&observed[*index]))?;
        is_taken[found] = true;
        Some(found)
    }
}

/// Returns the indexes of equal values, in ascending order.
fn indexes<'v>(values: impl Iterator<Item = Option<&'v Value>>) -> HashMap<&'v Value, VecDeque<usize>> {
    let mut indexes: HashMap<_, VecDeque<_>> = HashMap::new();
    for (index, value) in values.enumerate() {
        if let Some(value) = value {
            indexes.entry(value).or_default().push_back(index);
        }
    }
    indexes
}

/// Calls `work` with `token` at the end of `at`.
fn below<T>(at: &mut Place, token: &str, work: impl FnOnce(&mut Place) -> T) -> T {
    at.names.push(token.to_owned());
    let done = work(at);
    at.names.pop();
    done
}

/// Returns the JSON Merge Patch (RFC 7396) that changes `observed` to `desired`.
pub(super) fn merge_patch(desired: Value, observed: &Value) -> Value {
    let (Value::Object(desired), Value::Object(observed)) = (&desired, observed) else { return desired };
    let mut patch = Object::new();
    for (key, value) in desired {
        match observed.get(key) {
            Some(shown) if shown == value => {}
            Some(shown) => drop(patch.insert(key.clone(), merge_patch(value.clone(), shown))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    let removed = observed.keys().filter(|key| !desired.contains_key(*key));
    patch.extend(removed.map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

/// Returns the JSON Patch (RFC 6902) that changes `observed` to `desired`. An array that differs is replaced.
pub(super) fn json_patch(desired: &Value, observed: &Value) -> Value {
    let mut operations = Vec::new();
    add_operations(String::new(), desired, observed, &mut operations);
    Value::Array(operations)
}

fn add_operations(at: String, desired: &Value, observed: &Value, operations: &mut Vec<Value>) {
    let operation = |op: &str, path: String, value: Option<&Value>| {
        let members =
            [("op", Some(Value::from(op))), ("path", Some(Value::from(path))), ("value", value.cloned())];
        let stated = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Value::Object(stated.collect())
    };
    match (desired, observed) {
        _ if desired == observed => {}
        (Value::Object(desired), Value::Object(observed)) => {
            let removed = observed.keys().filter(|key| !desired.contains_key(*key));
            operations.extend(removed.map(|key| operation("remove", format!("{at}/{}", escape(key)), None)));
            for (key, value) in desired {
                let path = format!("{at}/{}", escape(key));
                match observed.get(key) {
                    Some(shown) => add_operations(path, value, shown, operations),
                    None => operations.push(operation("add", path, Some(value))),
                }
            }
        }
        _ => operations.push(operation("replace", at, Some(desired))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    fn json(text: &str) -> Value {
        decode(PayloadType::Json, text.as_bytes()).unwrap()
    }

    fn rules(text: &[(&str, &str)]) -> BTreeMap<Pointer, ArrayRule> {
        text.iter()
            .map(|(at, rule)| (Pointer::parse(at).unwrap(), (*rule).to_owned().try_into().unwrap()))
            .collect()
    }

    #[rstest]
    #[case::undeclared(true, r#"{"a":{"b":1}}"#, r#"{"a":{"b":2,"c":3},"d":4}"#, r#"{"a":{"b":2}}"#)]
    #[case::null_is_absent(true, r#"{"a":null}"#, "{}", r#"{"a":null}"#)]
    #[case::by_index(
        true,
        r#"{"x":[{"a":1}]}"#,
        r#"{"x":[{"a":1,"b":2},{"a":3}]}"#,
        r#"{"x":[{"a":1},{"a":3}]}"#
    )]
    #[case::set(false, r#"{"tags":["a","b"]}"#, r#"{"tags":["b","c","a"]}"#, r#"{"tags":["a","b","c"]}"#)]
    #[case::set_of_objects(
        true,
        r#"{"tags":[{"n":1}]}"#,
        r#"{"tags":[{"n":1,"x":2}]}"#,
        r#"{"tags":[{"n":1}]}"#
    )]
    #[case::equal_entries_first(
        true,
        r#"{"tags":[{"n":1},{"n":1,"x":2}]}"#,
        r#"{"tags":[{"n":1,"x":2},{"n":1,"y":3}]}"#,
        r#"{"tags":[{"n":1},{"n":1,"x":2}]}"#
    )]
    #[case::duplicates(false, r#"{"tags":["a","a"]}"#, r#"{"tags":["a"]}"#, r#"{"tags":["a",null]}"#)]
    #[case::keyed(
        true,
        r#"{"m":[{"k":2,"v":1},{"k":9}]}"#,
        r#"{"m":[{"k":1},{"k":2,"v":1,"w":0}]}"#,
        r#"{"m":[{"k":2,"v":1},null]}"#
    )]
    #[case::keyed_exact(
        false,
        r#"{"m":[{"k":2}]}"#,
        r#"{"m":[{"k":1},{"k":2}]}"#,
        r#"{"m":[{"k":2},{"k":1}]}"#
    )]
    #[case::nested(
        false,
        r#"{"m":[{"k":1,"l":[1,2]}]}"#,
        r#"{"m":[{"k":1,"l":[2,1]}]}"#,
        r#"{"m":[{"k":1,"l":[1,2]}]}"#
    )]
    #[case::set_in_another_order(
        true,
        r#"{"tags":[{"n":1,"m":{"a":1}},{"n":1,"m":{"a":2}},{"m":{"a":3}}]}"#,
        r#"{"tags":[{"n":9,"m":{"a":3}},{"n":1,"m":{"a":2},"x":1},{"n":1,"m":{"a":1}}]}"#,
        r#"{"tags":[{"n":1,"m":{"a":1}},{"n":1,"m":{"a":2}},{"m":{"a":3}}]}"#
    )]
    fn aligns(#[case] declared: bool, #[case] desired: &str, #[case] observed: &str, #[case] expected: &str) {
        let arrays = rules(&[("/tags", "set"), ("/m", "/k"), ("/m/*/l", "set")]);
        let relation = Relation { arrays: &arrays, declared };
        assert_eq!(relation.align(&json(desired), json(observed)), json(expected));
    }

    #[rstest]
    #[case::members(r#"{"a":{"b":1}}"#, r#"{"a":{"b":2,"c":3},"d":4}"#, r#"{"a":{"b":1,"c":3},"d":4}"#)]
    #[case::equal_sets_stay(r#"{"tags":["a","b"]}"#, r#"{"tags":["b","a"]}"#, r#"{"tags":["b","a"]}"#)]
    #[case::sets_are_replaced(r#"{"tags":["a"]}"#, r#"{"tags":["b","a"]}"#, r#"{"tags":["a"]}"#)]
    #[case::keyed(
        r#"{"m":[{"k":2,"v":1},{"k":3}]}"#,
        r#"{"m":[{"k":1},{"k":2,"w":0}]}"#,
        r#"{"m":[{"k":1},{"k":2,"v":1,"w":0},{"k":3}]}"#
    )]
    fn overlays(#[case] desired: &str, #[case] observed: &str, #[case] expected: &str) {
        let arrays = rules(&[("/tags", "set"), ("/m", "/k")]);
        let relation = Relation { arrays: &arrays, declared: true };
        assert_eq!(relation.overlay(json(desired), json(observed)), json(expected));
    }

    #[rstest]
    #[case(r#"{"a":1,"o":{"x":1,"y":3},"l":[1]}"#, r#"{"a":1,"b":2,"o":{"x":1,"y":2},"l":[2]}"#,
        r#"{"b":null,"o":{"y":3},"l":[1]}"#,
        r#"[{"op":"remove","path":"/b"},{"op":"replace","path":"/l","value":[1]},{"op":"replace","path":"/o/y","value":3}]"#)]
    #[case(r#"{"a/b":1}"#, "{}", r#"{"a/b":1}"#, r#"[{"op":"add","path":"/a~1b","value":1}]"#)]
    fn patches(#[case] desired: &str, #[case] observed: &str, #[case] merge: &str, #[case] patch: &str) {
        assert_eq!(merge_patch(json(desired), &json(observed)), json(merge));
        assert_eq!(json_patch(&json(desired), &json(observed)), json(patch));
    }

    /// Entries of a set that have all scalars in common, and those of a nested set: each could be compared with each other one.
    #[test]
    fn the_work_for_sets_is_limited() {
        let entry = |number: usize| format!(r#"{{"n":1,"l":[{{"d":{{"k":{number}}}}},{{"d":{{"k":0}}}}]}}"#);
        let set = |numbers: std::ops::Range<usize>| {
            let entries: Vec<String> = numbers.map(entry).collect();
            json(&format!(r#"{{"tags":[{}]}}"#, entries.join(",")))
        };
        let arrays = rules(&[("/tags", "set"), ("/tags/*/l", "set")]);
        let relation = Relation { arrays: &arrays, declared: true };
        let (desired, observed) = (set(1..5_000), set(5_000..10_000));
        let mut place = Place::default();
        let aligned = relation.aligned(&mut place, &desired, observed);
        assert!(aligned != desired && place.pairs < MAX_PAIRS + 10_000, "{}", place.pairs);
    }

    #[test]
    fn a_large_set_is_found_in_another_order() {
        let set = |entry: fn(u32) -> String, order: &mut dyn Iterator<Item = u32>| {
            let entries: Vec<String> = order.map(entry).collect();
            json(&format!(r#"{{"tags":[{}]}}"#, entries.join(",")))
        };
        let desired = set(|number| format!(r#"{{"n":{number}}}"#), &mut (0..50_000));
        let observed = set(|number| format!(r#"{{"n":{number},"x":1}}"#), &mut (0..50_000).rev());
        let arrays = rules(&[("/tags", "set")]);
        assert_eq!(Relation { arrays: &arrays, declared: true }.align(&desired, observed), desired);
    }
}
