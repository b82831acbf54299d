//! Relates the payload that Git declares to the larger one that a server shows.

use std::collections::BTreeMap;

use super::document::{ArrayRule, OperationMode, OperationName, Resolved};
use crate::payload::pointer::{Pointer, escape};
use crate::payload::{Object, Value};

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
        self.aligned(&mut Vec::new(), desired, observed)
    }

    fn aligned(self, at: &mut Vec<String>, desired: &Value, observed: Value) -> Value {
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

    fn aligned_entries(self, at: &mut Vec<String>, desired: &[Value], observed: Vec<Value>) -> Vec<Value> {
        let rule = self.rule(at);
        let mut left: Vec<Option<Value>> = observed.into_iter().map(Some).collect();
        let mut aligned = Vec::with_capacity(left.len());
        for (index, entry) in desired.iter().enumerate() {
            let matching = match rule {
                ArrayRule::Ordered if index < left.len() => Some(index),
                ArrayRule::Ordered => break,
                ArrayRule::Set => left.iter().position(|candidate| {
                    candidate.as_ref().is_some_and(|candidate| {
                        below(at, "*", |at| self.aligned(at, entry, candidate.clone())) == *entry
                    })
                }),
                ArrayRule::Keyed(key) => key.get(entry).and_then(|name| {
                    left.iter()
                        .position(|candidate| candidate.as_ref().and_then(|it| key.get(it)) == Some(name))
                }),
            };
            let found = matching.and_then(|index| left[index].take());
            let found = found.map(|found| below(at, "*", |at| self.aligned(at, entry, found)));
            aligned.push(found.unwrap_or_default());
        }
        if !(self.declared && matches!(rule, ArrayRule::Keyed(_))) {
            aligned.extend(left.into_iter().flatten());
        }
        aligned
    }

    /// Returns `observed` with the values of `desired` over it: objects and keyed arrays are merged, and other values
    /// are replaced if they differ.
    pub fn overlay(self, desired: Value, observed: Value) -> Value {
        self.overlaid(&mut Vec::new(), desired, observed)
    }

    fn overlaid(self, at: &mut Vec<String>, desired: Value, observed: Value) -> Value {
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
            (Value::Array(desired), Value::Array(observed)) => match self.rule(at) {
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
        at: &mut Vec<String>,
        key: &Pointer,
        mut desired: Vec<Value>,
        observed: Vec<Value>,
    ) -> Vec<Value> {
        let mut merged = Vec::with_capacity(observed.len());
        for entry in observed {
            let name = key.get(&entry);
            match name.and_then(|name| desired.iter().position(|declared| key.get(declared) == Some(name))) {
                Some(place) => {
                    let declared = desired.remove(place);
                    merged.push(below(at, "*", |at| self.overlaid(at, declared, entry)));
                }
                None => merged.push(entry),
            }
        }
        merged.extend(desired);
        merged
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

/// Calls `work` with `token` at the end of `at`.
fn below<T>(at: &mut Vec<String>, token: &str, work: impl FnOnce(&mut Vec<String>) -> T) -> T {
    at.push(token.to_owned());
    let done = work(at);
    at.pop();
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
        text.iter().map(|(at, rule)| (Pointer::parse(at).unwrap(), rule.parse().unwrap())).collect()
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
}
