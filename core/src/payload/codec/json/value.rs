//! Conversion from and to the values of `serde_json`.

use super::super::check_tree;
use crate::payload::pointer::Pointer;
use crate::payload::{PayloadError, PayloadType, Value};

impl Value {
    /// Converts a parsed JSON value. Integers outside of `i64` cause [`PayloadError::WideInteger`].
    pub fn from_json(json: &serde_json::Value) -> Result<Self, PayloadError> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::String(text) => Self::String(text.clone()),
            Json::Number(number) => match (number.as_i64(), number.is_u64(), number.as_f64()) {
                (Some(integer), _, _) => Self::Int(integer),
                (None, false, Some(float)) => Self::Float(float),
                _ => return Err(PayloadError::WideInteger(Pointer::default())),
            },
            Json::Array(items) => {
                let convert = |(index, item): (usize, &Json)| {
                    Self::from_json(item).map_err(|error| error.below(&index.to_string()))
                };
                Self::Array(items.iter().enumerate().map(convert).collect::<Result<_, _>>()?)
            }
            Json::Object(members) => {
                let convert = |(key, member): (&String, &Json)| match Self::from_json(member) {
                    Ok(member) => Ok((key.clone(), member)),
                    Err(error) => Err(error.below(key)),
                };
                Self::Object(members.iter().map(convert).collect::<Result<_, _>>()?)
            }
        })
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
        let json = serde_json::json!({"a": [null, true, -1, 1.5, "x"], "b": {}});
        let value = Value::from_json(&json).unwrap();
        assert_eq!(value.get("a").and_then(Value::as_array).map(<[Value]>::len), Some(5));
        assert_eq!(value.to_json().unwrap(), json);
        assert_eq!(Value::Float(2.0).to_json().unwrap(), serde_json::json!(2));
    }

    #[test]
    fn json_values_outside_of_the_model_are_rejected() {
        let wide =
            Value::from_json(&serde_json::json!({"a": [0, 9_223_372_036_854_775_808_u64]})).unwrap_err();
        assert_eq!(wide.to_string(), "the number at \"/a/1\" is outside of the 64-bit signed integers");
        assert!(matches!(Value::Float(f64::NAN).to_json(), Err(PayloadError::Encode { .. })));
        assert!(matches!(Value::Bytes(vec![]).to_json(), Err(PayloadError::Encode { .. })));
    }
}
