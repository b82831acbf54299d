//! Formats operands: `print`, `println` and `printf`.

use super::error::Fault;
use super::escape;
use super::operand::{Operand, View};

/// Returns the operands as text, with a space between two neighbours if neither is a string.
pub(super) fn print(operands: &[Operand<'_>]) -> Result<String, Fault> {
    let mut text = String::new();
    let mut after_string = true;
    for operand in operands {
        let is_string = matches!(operand.view(), View::Text(_));
        if !after_string && !is_string {
            text.push(' ');
        }
        text.push_str(&operand.text()?);
        after_string = is_string;
    }
    Ok(text)
}

/// Returns the operands as text, with spaces between all of them and a line break at the end.
pub(super) fn println(operands: &[Operand<'_>]) -> Result<String, Fault> {
    let texts = operands.iter().map(Operand::text).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join(" ") + "\n")
}

/// Returns the operands, formatted according to `format`.
pub(super) fn printf(format: &str, operands: &[Operand<'_>]) -> Result<String, Fault> {
    let parts = parts(format).map_err(Fault::evaluate)?;
    let wanted = parts.iter().filter(|part| !matches!(part, Part::Text(_))).count();
    if wanted != operands.len() {
        return Err(Fault::evaluate(format!(
            "the format has {wanted} verb(s), but {} operand(s) follow",
            operands.len()
        )));
    }
    let mut operands = operands.iter();
    let mut text = String::with_capacity(format.len());
    for part in parts {
        match part {
            Part::Text(plain) => text.push_str(plain),
            Part::Decimal(digits) => {
                if let Some(operand) = operands.next() {
                    text.push_str(&decimal(operand, digits)?);
                }
            }
            Part::Verb(verb) => {
                if let Some(operand) = operands.next() {
                    push(&mut text, verb, operand)?;
                }
            }
        }
    }
    Ok(text)
}

/// Checks a format. The error is the fault.
pub(super) fn check_format(format: &str) -> Result<(), String> {
    parts(format).map(|_| ())
}

const VERBS: &str = "the verbs of a format are %s %d %v %q %t %f, %.2f, and %% for a percent sign";

/// The digits after the point of `%f`.
const DIGITS: usize = 6;

/// The most digits after the point. A double has fewer that matter.
const MAX_DIGITS: usize = 99;

enum Part<'f> {
    Text(&'f str),
    Verb(char),
    /// `%f`, or `%.2f` with 2 digits after the point.
    Decimal(usize),
}

fn parts(format: &str) -> Result<Vec<Part<'_>>, String> {
    let (mut parts, mut rest) = (Vec::new(), format);
    while let Some((plain, after)) = rest.split_once('%') {
        parts.push(Part::Text(plain));
        rest = match after.chars().next() {
            Some('%') => {
                parts.push(Part::Text("%"));
                &after[1..]
            }
            Some(verb @ ('s' | 'd' | 'v' | 'q' | 't')) => {
                parts.push(Part::Verb(verb));
                &after[1..]
            }
            _ => {
                let (digits, after) = decimal_verb(after).ok_or(VERBS)?;
                parts.push(Part::Decimal(digits));
                after
            }
        };
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// Returns the digits of the verb `f` at the start of a text, and the rest of the text.
fn decimal_verb(text: &str) -> Option<(usize, &str)> {
    if let Some(rest) = text.strip_prefix('f') {
        return Some((DIGITS, rest));
    }
    let (digits, rest) = text.strip_prefix('.')?.split_once('f')?;
    if digits.is_empty() {
        return Some((0, rest));
    }
    let digits = digits.parse().ok().filter(|count| *count <= MAX_DIGITS && digits.len() <= 2)?;
    Some((digits, rest))
}

/// Returns a number with so many digits after the point.
fn decimal(operand: &Operand<'_>, digits: usize) -> Result<String, Fault> {
    match operand.view() {
        View::Float(number) => Ok(format!("{number:.digits$}")),
        View::Int(number) if digits == 0 => Ok(number.to_string()),
        View::Int(number) => Ok(format!("{number}.{}", "0".repeat(digits))),
        _ => Err(Fault::evaluate(format!("%f cannot format {}", operand.kind()))),
    }
}

fn push(text: &mut String, verb: char, operand: &Operand<'_>) -> Result<(), Fault> {
    let content = operand.text()?;
    match (verb, operand.view()) {
        ('s' | 'v', _) | ('d', View::Int(_)) | ('t', View::Bool(_)) => text.push_str(&content),
        ('d', View::Float(_)) if operand.integer().is_some() => text.push_str(&content),
        ('q', View::Text(_)) => text.push_str(&escape::quoted(&content)),
        _ => return Err(Fault::evaluate(format!("%{verb} cannot format {}", operand.kind()))),
    }
    Ok(())
}
