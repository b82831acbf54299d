//! Selects and excludes parts of a document.

use std::collections::BTreeMap;

use crate::payload::pointer::{Pointer, array_index};
use crate::payload::{Object, Value};

/// The parts that a set of pointers refers to, as a tree. All pointers refer to the original document, and each part is
/// looked up once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Whether a pointer refers to this part as a whole.
    whole: bool,
    below: BTreeMap<String, Parts>,
}

impl Parts {
    pub(super) fn new(pointers: &[Pointer]) -> Self {
        let mut root = Self::default();
        for pointer in pointers {
            let place = pointer
                .tokens()
                .iter()
                .fold(&mut root, |parts, token| parts.below.entry(token.clone()).or_default());
            place.whole = true;
        }
        root
    }

    /// Returns a new document of the selected parts, each at its original position and in containers of the same type.
    /// Array items before a selected one become null. If no part exists, the result is an empty object for an object,
    /// an empty array for an array, otherwise null.
    pub(super) fn select(&self, document: Value) -> Value {
        let nothing = match &document {
            Value::Object(_) => Value::Object(Object::new()),
            Value::Array(_) => Value::Array(Vec::new()),
            _ => Value::Null,
        };
        self.pick(document).unwrap_or(nothing)
    }

    fn pick(&self, value: Value) -> Option<Value> {
        if self.whole {
            return Some(value);
        }
        match value {
            Value::Object(mut members) => {
                let pick = |(key, parts): (&String, &Self)| {
                    Some((key.clone(), members.remove(key).and_then(|member| parts.pick(member))?))
                };
                let kept: Object = self.below.iter().filter_map(pick).collect();
                (!kept.is_empty()).then_some(Value::Object(kept))
            }
            Value::Array(mut items) => {
                let mut kept: Vec<Value> = Vec::new();
                for (token, parts) in &self.below {
                    let Some((index, item)) =
                        array_index(token).and_then(|at| Some((at, items.get_mut(at)?)))
                    else {
                        continue;
                    };
                    if let Some(part) = parts.pick(std::mem::take(item)) {
                        kept.resize_with(kept.len().max(index + 1), || Value::Null);
                        kept[index] = part;
                    }
                }
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            _ => None,
        }
    }

    /// Returns the document without the selected parts. Missing parts are ignored, and empty containers are kept. Array
    /// items after a removed one move up. If the whole document is removed, the result is null.
    pub(super) fn exclude(&self, mut document: Value) -> Value {
        if self.whole {
            return Value::Null;
        }
        self.delete_below(&mut document);
        document
    }

    fn delete_below(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (key, parts) in &self.below {
                    if parts.whole {
                        members.remove(key);
                    } else if let Some(member) = members.get_mut(key) {
                        parts.delete_below(member);
                    }
                }
            }
            Value::Array(items) => {
                let mut index = 0;
                items.retain_mut(|item| {
                    let parts = self.below.get(&index.to_string());
                    index += 1;
                    match parts {
                        Some(parts) if parts.whole => false,
                        Some(parts) => {
                            parts.delete_below(item);
                            true
                        }
                        None => true,
                    }
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    fn parse(json: &str) -> Value {
        decode(PayloadType::Json, json.as_bytes()).unwrap()
    }

    fn parts(pointers: &[&str]) -> Parts {
        Parts::new(&pointers.iter().map(|pointer| pointer.parse().unwrap()).collect::<Vec<_>>())
    }

    #[rstest]
    #[case::member(r#"{"a":1,"b":2}"#, &["/a"], r#"{"a":1}"#)]
    #[case::nested(r#"{"a":{"b":1,"c":2},"d":3}"#, &["/a/c"], r#"{"a":{"c":2}}"#)]
    #[case::skipped_slots(r#"{"a":[1,2,3]}"#, &["/a/2"], r#"{"a":[null,null,3]}"#)]
    #[case::two_slots("[1,2,3,4]", &["/2", "/0"], "[1,null,3]")]
    #[case::ten_after_nine("[0,1,2,3,4,5,6,7,8,9,10]", &["/10", "/9"], "[null,null,null,null,null,null,null,null,null,9,10]")]
    #[case::digits_of_an_object(r#"{"ports":{"80":"web","443":"tls"}}"#, &["/ports/80"], r#"{"ports":{"80":"web"}}"#)]
    #[case::null_exists(r#"{"a":null}"#, &["/a"], r#"{"a":null}"#)]
    #[case::whole_over_part(r#"{"a":{"b":1,"c":2}}"#, &["/a/b", "/a"], r#"{"a":{"b":1,"c":2}}"#)]
    #[case::some_missing(r#"{"a":{"x":1}}"#, &["/a/y", "/a/x/z", "/b"], "{}")]
    #[case::nothing_of_an_array("[1]", &["/1", "/-", "/00", "/a"], "[]")]
    #[case::nothing_of_text(r#""a""#, &["/a"], "null")]
    #[case::nothing_of_null("null", &["/a"], "null")]
    #[case::no_pointers_object(r#"{"a":1}"#, &[], "{}")]
    #[case::no_pointers_array("[1]", &[], "[]")]
    #[case::no_pointers_scalar("1", &[], "null")]
    #[case::star_is_a_key(r#"{"*":1,"a":2}"#, &["/*"], r#"{"*":1}"#)]
    #[case::dash_is_a_key(r#"{"-":1,"a":2}"#, &["/-"], r#"{"-":1}"#)]
    #[case::escapes(r#"{"a/b":1,"m~n":2,"c":3}"#, &["/a~1b", "/m~0n"], r#"{"a/b":1,"m~n":2}"#)]
    #[case::everything(r#"{"a":1}"#, &[""], r#"{"a":1}"#)]
    fn selects(#[case] input: &str, #[case] pointers: &[&str], #[case] expected: &str) {
        assert_eq!(parts(pointers).select(parse(input)), parse(expected));
    }

    #[rstest]
    #[case::member(r#"{"a":1,"b":2}"#, &["/a"], r#"{"b":2}"#)]
    #[case::emptied_parent(r#"{"a":{"b":1}}"#, &["/a/b"], r#"{"a":{}}"#)]
    #[case::items_shift("[1,2,3]", &["/0"], "[2,3]")]
    #[case::all_address_the_input("[1,2,3]", &["/0", "/1"], "[3]")]
    #[case::below_a_shifted_item(r#"[1,{"a":1,"b":2}]"#, &["/0", "/1/a"], r#"[{"b":2}]"#)]
    #[case::digits_of_an_object(r#"{"ports":{"80":"web"}}"#, &["/ports/80"], r#"{"ports":{}}"#)]
    #[case::null_on_the_way(r#"{"a":null}"#, &["/a/b"], r#"{"a":null}"#)]
    #[case::null_itself(r#"{"a":null}"#, &["/a"], "{}")]
    #[case::missing(r#"{"a":{"x":1}}"#, &["/a/y", "/a/x/z", "/b"], r#"{"a":{"x":1}}"#)]
    #[case::no_index("[1]", &["/1", "/-", "/00", "/a"], "[1]")]
    #[case::no_pointers("[1]", &[], "[1]")]
    #[case::star_is_a_key(r#"{"*":1,"a":2}"#, &["/*"], r#"{"a":2}"#)]
    #[case::scalar("1", &["/a"], "1")]
    #[case::part_and_whole(r#"{"a":{"b":1},"c":2}"#, &["/a", "/a/b"], r#"{"c":2}"#)]
    #[case::everything(r#"{"a":1}"#, &[""], "null")]
    fn excludes(#[case] input: &str, #[case] pointers: &[&str], #[case] expected: &str) {
        assert_eq!(parts(pointers).exclude(parse(input)), parse(expected));
    }
}
