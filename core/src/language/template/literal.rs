//! Reads literals of expressions: quoted strings and numbers.

use std::borrow::Cow;

use crate::payload::Value;

/// Reads the string that `text` starts with. Returns it with its length in bytes; the error is the fault and its
/// offset. Backquoted strings are raw.
pub(super) fn string(text: &str) -> Result<(String, usize), (Cow<'static, str>, usize)> {
    const OPEN: &str = "the string is not closed";
    if let Some(rest) = text.strip_prefix('`') {
        let end = rest.find('`').ok_or((OPEN.into(), 0))?;
        return Ok((rest[..end].to_owned(), end + 2));
    }
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, at + 1)),
            '\n' => return Err((OPEN.into(), 0)),
            '\\' => {
                let (_, kind) = chars.next().ok_or((Cow::from(OPEN), 0))?;
                let digits = digits_of_escape(kind);
                let code: String = chars.by_ref().take(digits).map(|(_, digit)| digit).collect();
                value.push(
                    unescape(kind, &code)
                        .ok_or_else(|| (Cow::from("unknown escape; write a backslash as \\\\"), at))?,
                );
            }
            other => value.push(other),
        }
    }
    Err((OPEN.into(), 0))
}

/// Returns the number of hexadecimal digits after the letter of an escape.
const fn digits_of_escape(kind: char) -> usize {
    match kind {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    }
}

fn unescape(kind: char, code: &str) -> Option<char> {
    Some(match kind {
        '"' | '\'' | '\\' => kind,
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        'x' | 'u' | 'U'
            if code.len() == digits_of_escape(kind)
                && code.bytes().all(|digit| digit.is_ascii_hexdigit()) =>
        {
            char::from_u32(u32::from_str_radix(code, 16).ok()?)?
        }
        _ => return None,
    })
}

/// Reads the number that `text` starts with, and returns it with its length in bytes. `text` starts with a digit, or
/// with a sign before a digit.
pub(super) fn number(text: &str) -> Result<(Value, usize), &'static str> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.bytes().take_while(u8::is_ascii_digit).count()
    };
    let mut end = digits(sign);
    let integer_end = end;
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let signed = usize::from(text[end + 1..].starts_with(['+', '-']));
        end = digits(end + 1 + signed);
    }
    let literal = &text[..end];
    let value = if end == integer_end {
        Value::Int(literal.parse().map_err(|_| "the integer is outside of 64 bits")?)
    } else {
        let float: f64 = literal.parse().map_err(|_| "this is not a number")?;
        if !float.is_finite() {
            return Err("the number is too large");
        }
        Value::Float(float)
    };
    Ok((value, end))
}
