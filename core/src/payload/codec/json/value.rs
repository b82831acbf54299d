//! Conversion from and to the values of `serde_json`.

use super::super::check_tree;
use crate::payload::{PayloadError, PayloadType, Value};

impl Value {
    /// Converts a parsed JSON value.
    pub fn from_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::String(text) => Self::String(text.clone()),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) => Self::Int(integer),
                (None, Some(integer)) => Self::Unsigned(integer),
                (None, None) => number.as_f64().map_or(Self::Null, Self::Float),
            },
            Json::Array(items) => Self::Array(items.iter().map(Self::from_json).collect()),
            Json::Object(members) => {
                let convert = |(key, member): (&String, &Json)| (key.clone(), Self::from_json(member));
                Self::Object(members.iter().map(convert).collect())
            }
        }
    }

    /// Converts to a JSON value. Bytes, non-finite floats and nesting beyond [`MAX_DEPTH`](crate::payload::MAX_DEPTH) cause
    /// [`PayloadError::Encode`].
    pub fn to_json(&self) -> Result<serde_json::Value, PayloadError> {
        check_tree(PayloadType::Json, self, 0)?;
        serde_json::to_value(self).map_err(|error| PayloadError::encode(PayloadType::Json, error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_convert_both_ways() {
        let json = serde_json::json!({"a": [null, true, -1, 1.5, u64::MAX, "x"], "b": {}});
        let value = Value::from_json(&json);
        assert_eq!(value.get("a").and_then(Value::as_array).map(<[Value]>::len), Some(6));
        assert_eq!(value.to_json().unwrap(), json);
        assert_eq!(Value::Float(2.0).to_json().unwrap(), serde_json::json!(2));
    }

    #[test]
    fn json_values_outside_of_the_model_are_rejected() {
        assert!(matches!(Value::Float(f64::NAN).to_json(), Err(PayloadError::Encode { .. })));
        assert!(matches!(Value::Bytes(vec![]).to_json(), Err(PayloadError::Encode { .. })));
    }
}
