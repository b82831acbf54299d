//! Resolves plain scalars: the YAML 1.2 core schema, plus the integer notations of YAML 1.1.

use std::num::IntErrorKind;

use crate::payload::Value;
use crate::payload::error::{NOT_FINITE, WIDE_INTEGER};

/// Returns null, a boolean, a number or a string; `Err` if a number is outside of the value model.
pub fn resolve(text: &str) -> Result<Value, &'static str> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Err(NOT_FINITE),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return Ok(Value::from(text));
    }
    if matches!(text.trim_start_matches(['+', '-']), ".inf" | ".Inf" | ".INF") {
        return Err(NOT_FINITE);
    }
    let digits = text.replace('_', "");
    if let Some(integer) = integer(&digits) {
        return integer;
    }
    if is_float(&digits) {
        return match digits.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => Err(NOT_FINITE),
        };
    }
    Ok(Value::from(text))
}

/// Whether a plain scalar with this text would not be decoded as this string, by us or by a YAML 1.1 parser (`yes`,
/// dates, sexagesimal numbers).
pub fn is_ambiguous(text: &str) -> bool {
    const LEGACY_BOOLEANS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];
    let date_or_time = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-'))
        && text.contains(['-', ':'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"-+:.TtZz _".contains(&byte));
    !matches!(resolve(text), Ok(Value::String(_)))
        || LEGACY_BOOLEANS.iter().any(|boolean| boolean.eq_ignore_ascii_case(text))
        || date_or_time
        || matches!(text, "<<" | "=")
}

fn integer(text: &str) -> Option<Result<Value, &'static str>> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    match i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        Ok(integer) => Some(Ok(Value::Int(integer))),
        Err(error) if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
            let unsigned = u64::from_str_radix(digits, radix).ok().filter(|_| sign.is_empty());
            // Overflow is reported before a later character is checked.
            let is_integer = digits.chars().all(|digit| digit.is_digit(radix));
            is_integer.then(|| unsigned.map(Value::Unsigned).ok_or(WIDE_INTEGER))
        }
        Err(_) => None,
    }
}

/// Matches `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, the rule of the core schema.
fn is_float(text: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && is_digits(exponent))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Value::Null)]
    #[case("~", Value::Null)]
    #[case("NULL", Value::Null)]
    #[case("True", Value::Bool(true))]
    #[case("FALSE", Value::Bool(false))]
    #[case("12", Value::Int(12))]
    #[case("+12", Value::Int(12))]
    #[case("-0", Value::Int(0))]
    #[case("1_000", Value::Int(1000))]
    #[case("0x1F", Value::Int(31))]
    #[case("-0x10", Value::Int(-16))]
    #[case("0o17", Value::Int(15))]
    #[case("017", Value::Int(15))]
    #[case("0b101", Value::Int(5))]
    #[case("-9223372036854775808", Value::Int(i64::MIN))]
    #[case("9223372036854775807", Value::Int(i64::MAX))]
    #[case("9223372036854775808", Value::Unsigned(1 << 63))]
    #[case("+0xffffffffffffffff", Value::Unsigned(u64::MAX))]
    #[case("1e3", Value::Float(1000.0))]
    #[case("1.0", Value::Float(1.0))]
    #[case("-.5", Value::Float(-0.5))]
    #[case("1.", Value::Float(1.0))]
    #[case("6.02E+23", Value::Float(6.02e23))]
    #[case("08", Value::Float(8.0))]
    fn means_something(#[case] text: &str, #[case] expected: Value) {
        let value = resolve(text).unwrap();
        assert_eq!(value, expected);
        assert_eq!(value.kind(), expected.kind());
        assert!(is_ambiguous(text));
    }

    #[rstest]
    #[case("yes")]
    #[case("tRUE")]
    #[case("nULL")]
    #[case("2024-01-31")]
    #[case("2024-01-31T10:00:00Z")]
    #[case("12:30")]
    #[case("1.2.3")]
    #[case("10.0.0.1")]
    #[case("0x")]
    #[case("0o8")]
    #[case("0b2")]
    #[case("1e")]
    #[case(".")]
    #[case("-")]
    #[case("+-1")]
    #[case("_1")]
    #[case("99999999999999999999z")]
    fn is_a_string(#[case] text: &str) {
        assert_eq!(resolve(text), Ok(Value::from(text)));
    }

    #[rstest]
    #[case("18446744073709551616", WIDE_INTEGER)]
    #[case("-9223372036854775809", WIDE_INTEGER)]
    #[case("0x10000000000000000", WIDE_INTEGER)]
    #[case(".nan", NOT_FINITE)]
    #[case("-.Inf", NOT_FINITE)]
    #[case("1e999", NOT_FINITE)]
    fn is_outside_of_the_model(#[case] text: &str, #[case] reason: &str) {
        assert_eq!(resolve(text), Err(reason));
        assert!(is_ambiguous(text));
    }

    #[rstest]
    #[case("on", true)]
    #[case("N", true)]
    #[case("2024-01-31", true)]
    #[case("190:20:30", true)]
    #[case("<<", true)]
    #[case("http://x", false)]
    #[case("1.2.3", false)]
    #[case("only", false)]
    fn other_readers(#[case] text: &str, #[case] ambiguous: bool) {
        assert_eq!(is_ambiguous(text), ambiguous);
    }
}
