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
    let wanted = parts.iter().filter(|part| matches!(part, Part::Verb(_))).count();
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

enum Part<'f> {
    Text(&'f str),
    Verb(char),
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
            _ => return Err("the verbs of a format are %s %d %v %q %t, and %% for a percent sign".to_owned()),
        };
    }
    parts.push(Part::Text(rest));
    Ok(parts)
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
