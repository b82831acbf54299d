//! How an observed payload departs from the desired one.

use serde::Serialize;

use crate::payload::Value;
use crate::payload::pointer::escape;

/// One place where the server departs from what is desired.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Where, as a JSON Pointer (RFC 6901); `""` is the whole payload.
    pub path: String,
    /// In which way.
    pub change: Change,
    /// The desired value; null where there is none.
    pub desired: Value,
    /// The observed value; null where there is none.
    pub observed: Value,
}

/// The way in which the server departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Only the server has it.
    Add,
    /// Only the desired state has it.
    Remove,
    /// Both have it, with different values.
    Replace,
}

/// All differences, sorted by path. Objects are compared member by member; arrays by index, surplus
/// elements are added or removed; everything else as a whole.
pub fn differences(desired: &Value, observed: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(&mut String::new(), desired, observed, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(at: &mut String, desired: &Value, observed: &Value, found: &mut Vec<Difference>) {
    match (desired, observed) {
        (Value::Object(desired), Value::Object(observed)) => {
            for (key, value) in desired {
                step(at, &escape(key), Some(value), observed.get(key), found);
            }
            for (key, value) in observed.iter().filter(|(key, _)| !desired.contains_key(*key)) {
                step(at, &escape(key), None, Some(value), found);
            }
        }
        (Value::Array(desired), Value::Array(observed)) => {
            for index in 0..desired.len().max(observed.len()) {
                step(at, &index.to_string(), desired.get(index), observed.get(index), found);
            }
        }
        _ if desired == observed => {}
        _ => found.push(Difference {
            path: at.clone(),
            change: Change::Replace,
            desired: desired.clone(),
            observed: observed.clone(),
        }),
    }
}

fn step(
    at: &mut String,
    token: &str,
    desired: Option<&Value>,
    observed: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let above = at.len();
    at.push('/');
    at.push_str(token);
    let one_sided = |change, desired: Option<&Value>, observed: Option<&Value>| Difference {
        path: at.clone(),
        change,
        desired: desired.cloned().unwrap_or_default(),
        observed: observed.cloned().unwrap_or_default(),
    };
    match (desired, observed) {
        (Some(desired), Some(observed)) => walk(at, desired, observed, found),
        (None, observed) => found.push(one_sided(Change::Add, None, observed)),
        (desired, None) => found.push(one_sided(Change::Remove, desired, None)),
    }
    at.truncate(above);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case(
        r#"{"a":1,"t":["x"],"p/q":0}"#,
        r#"{"a":1.0,"t":["x","y"],"z":null}"#,
        &["Remove /p~1q", "Add /t/1", "Add /z"]
    )]
    #[case("{}", "{}", &[])]
    #[case(r#"{"a":{"b":1}}"#, r#"{"a":[1]}"#, &["Replace /a"])]
    #[case("[1,2]", "[1]", &["Remove /1"])]
    #[case("1", "\"1\"", &["Replace "])]
    #[case(r#"{"a":null}"#, "{}", &["Remove /a"])]
    fn finds(#[case] desired: &str, #[case] observed: &str, #[case] expected: &[&str]) {
        let parse = |json: &str| decode(PayloadType::Json, json.as_bytes()).unwrap();
        let found: Vec<String> = differences(&parse(desired), &parse(observed))
            .iter()
            .map(|difference| format!("{:?} {}", difference.change, difference.path))
            .collect();
        assert_eq!(found, expected);
    }
}
