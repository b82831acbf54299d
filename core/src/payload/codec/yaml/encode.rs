//! Encodes a value as block-style text.

use std::cmp::Ordering;
use std::fmt::Write;

use super::super::check_tree;
use super::scalar;
use crate::payload::value::exact_integer;
use crate::payload::{Object, PayloadError, PayloadType, Value};

const INDENT: usize = 4;
/// Longer keys have the form `? key`. A key in the form `key: value` may have at most 1024 characters including
/// quotes (YAML 1.2.2, section 7.4).
const MAX_SIMPLE_KEY: usize = 1000;

/// Encodes in block style, keys in natural order, with a final newline.
pub fn encode(value: &Value) -> Result<Vec<u8>, PayloadError> {
    check_tree(PayloadType::Yaml, value, 0)?;
    let mut writer = Writer { out: String::new() };
    match value {
        Value::Object(members) if !members.is_empty() => writer.mapping(members, 0, Start::Line),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0, Start::Line),
        leaf => writer.leaf(leaf, INDENT),
    }
    Ok(writer.out.into_bytes())
}

/// The text before the first entry of a collection.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// The start of a line; the entry must be indented.
    Line,
    /// The dash of a list item.
    Dash,
}

struct Writer {
    out: String,
}

impl Writer {
    fn mapping(&mut self, members: &Object, indent: usize, start: Start) {
        let mut entries: Vec<_> = members.iter().collect();
        entries.sort_by(|(a, _), (b, _)| natural_order(a, b));
        for (at, (key, member)) in entries.into_iter().enumerate() {
            if at > 0 || start == Start::Line {
                self.pad(indent);
            }
            self.key(key, indent);
            match member {
                Value::Object(members) if !members.is_empty() => {
                    self.out.push('\n');
                    self.mapping(members, deeper(indent), Start::Line);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.out.push('\n');
                    self.sequence(items, deeper(indent), Start::Line);
                }
                leaf => {
                    self.out.push(' ');
                    self.leaf(leaf, deeper(indent));
                }
            }
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize, start: Start) {
        // A collection after the dash is aligned with its first entry.
        let inner = indent + 2;
        for (at, item) in items.iter().enumerate() {
            if at > 0 || start == Start::Line {
                self.pad(indent);
            }
            self.out.push_str("- ");
            match item {
                Value::Object(members) if !members.is_empty() => self.mapping(members, inner, Start::Dash),
                Value::Array(items) if !items.is_empty() => self.sequence(items, inner, Start::Dash),
                leaf => self.leaf(leaf, deeper(indent)),
            }
        }
    }

    fn key(&mut self, key: &str, indent: usize) {
        let text = flow_text(key);
        if text.chars().count() > MAX_SIMPLE_KEY {
            self.out.push_str("? ");
            self.out.push_str(&text);
            self.out.push('\n');
            self.pad(indent);
        } else {
            self.out.push_str(&text);
        }
        self.out.push(':');
    }

    /// Writes a scalar or an empty collection, and the end of the line.
    fn leaf(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(value) => self.show(value),
            Value::Unsigned(value) => self.show(value),
            Value::Float(value) => match exact_integer(*value) {
                Some(integer) => self.show(integer),
                // The debug form has an exponent if the plain form has hundreds of digits.
                None => self.show(format_args!("{value:?}")),
            },
            Value::String(text) if fits_literal(text) => return self.literal(text, indent),
            Value::String(text) => self.out.push_str(&flow_text(text)),
            Value::Array(_) => self.out.push_str("[]"),
            // `check_tree` has rejected bytes.
            Value::Object(_) | Value::Bytes(_) => self.out.push_str("{}"),
        }
        self.out.push('\n');
    }

    /// Writes a literal block. The header determines which of the final newlines belong to the text.
    fn literal(&mut self, text: &str, indent: usize) {
        let (body, chomping) = match text.strip_suffix('\n') {
            None => (text, "|-"),
            Some(body) if body.ends_with('\n') => (body, "|+"),
            Some(body) => (body, "|"),
        };
        self.out.push_str(chomping);
        self.out.push('\n');
        for line in body.split('\n') {
            if !line.is_empty() {
                self.pad(indent);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn show(&mut self, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{value}");
    }
}

/// Returns the next multiple of the indentation. A collection after the dash of a list item starts two columns in, so
/// the levels below it are realigned.
fn deeper(indent: usize) -> usize {
    (indent / INDENT + 1) * INDENT
}

/// Compares runs of digits by their number, other characters before letters, and the rest by code point.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        let order;
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (x, y);
            (x, left) = split_digits(left);
            (y, right) = split_digits(right);
            order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
        } else {
            order = x.is_alphabetic().cmp(&y.is_alphabetic()).then_with(|| x.cmp(&y));
            (left, right) = (&left[x.len_utf8()..], &right[y.len_utf8()..]);
        }
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Returns the leading digits without leading zeros, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.trim_start_matches('0'), rest)
}

/// Whether a literal block with this text of several lines is decoded as the same text.
fn fits_literal(text: &str) -> bool {
    let mut lines = text.split('\n');
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|char| matches!(char, '\n' | '\t') || is_printable(char))
        && lines
            .all(|line| !line.starts_with('\t') && (line.is_empty() || !line.trim_matches(' ').is_empty()))
}

/// Returns a text on one line: plain if it is neither syntax nor another type, quoted otherwise.
fn flow_text(text: &str) -> String {
    if !text.chars().all(is_printable) || scalar::is_ambiguous(text) {
        return double_quoted(text);
    }
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let starts_plain = match chars.next() {
        // A dash is syntax before a space, and three dashes begin a document.
        Some('-') => chars.next().is_some_and(char::is_alphanumeric),
        Some(first) => !"?:,[]{}#&*!|>'\"%@`".contains(first),
        None => false,
    };
    starts_plain
        && !text.starts_with("...")
        && !text.starts_with(' ')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
}

/// Whether YAML keeps the character unchanged in a quoted or plain text on one line.
fn is_printable(char: char) -> bool {
    matches!(char, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        || char >= '\u{10000}'
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if is_printable(char) => quoted.push(char),
            _ => {
                // Writing to a string cannot fail. Every unprintable character is below U+10000.
                let _ = write!(quoted, "\\u{:04X}", u32::from(char));
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["a1", "a2", "a10"])]
    #[case(&["1", "02", "2", "10", "_x", "a"])]
    #[case(&["-", "A", "B", "a"])]
    #[case(&["v1", "v1.9", "v1.10", "v1a"])]
    #[case(&["", "a", "a b", "aa"])]
    fn keys_in_natural_order(#[case] expected: &[&str]) {
        let mut keys = expected.to_vec();
        keys.reverse();
        keys.sort_by(|a, b| natural_order(a, b));
        assert_eq!(keys, expected);
    }

    proptest! {
        #[test]
        fn natural_order_is_total(a in "[a0-9A._é]{0,5}", b in "[a0-9A._é]{0,5}", c in "[a0-9A._é]{0,5}") {
            prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
            prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
            if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
                prop_assert!(natural_order(&a, &c).is_le());
            }
        }
    }
}
