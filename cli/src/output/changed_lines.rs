//! The lines in which two long values differ, for plans.

use declarest_core::control::one_line;
use declarest_core::payload::{PayloadType, Value};
use similar::{DiffOp, TextDiff};

use super::diff::document;

/// The maximum number of characters of a line.
const WIDTH: usize = 100;
/// The number of characters that are shown before the first difference of a long line.
const LEAD: usize = 20;

/// Returns the lines that differ: with `-` those of the server, with `+` the desired ones. Of a long line, shows the part
/// around the first difference. Values that are not texts have the lines of their JSON.
pub fn changed_lines(observed: &Value, desired: &Value) -> Vec<String> {
    let [old, new] = [observed, desired].map(|value| document(Some(value), PayloadType::Json));
    let diff = TextDiff::from_lines(old.as_str(), new.as_str());
    let line = |text: Option<&str>| text.unwrap_or_default().trim_end_matches('\n').to_owned();
    let mut lines = Vec::new();
    for op in diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let old: Vec<String> = op.old_range().map(|index| line(diff.old_slice(index))).collect();
        let new: Vec<String> = op.new_range().map(|index| line(diff.new_slice(index))).collect();
        let equal = |index: usize| old.get(index).zip(new.get(index)).map_or(0, |(a, b)| common_start(a, b));
        lines
            .extend(old.iter().enumerate().map(|(index, text)| format!("- {}", excerpt(text, equal(index)))));
        lines
            .extend(new.iter().enumerate().map(|(index, text)| format!("+ {}", excerpt(text, equal(index)))));
    }
    lines
}

/// Returns the number of equal characters at the start.
fn common_start(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// Returns a line, or the part of a long one around the character at the index `differs`.
fn excerpt(line: &str, differs: usize) -> String {
    let length = line.chars().count();
    if length <= WIDTH {
        return one_line(line).into_owned();
    }
    let start = differs.saturating_sub(LEAD).min(length - WIDTH);
    let part: String = line.chars().skip(start).take(WIDTH).collect();
    let [before, after] = [start > 0, start + WIDTH < length].map(|cut| if cut { "..." } else { "" });
    format!("{before}{}{after}", one_line(&part))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_line("a\nb\nc\n".into(), "a\nB\nc\n".into(), &["- b", "+ B"])]
    #[case::more_lines("a\n".into(), "a\nb\nc".into(), &["+ b", "+ c"])]
    #[case::items(
        Value::Array((1..=6).map(|n| n.to_string().into()).collect()),
        Value::Array((2..=7).map(|n| n.to_string().into()).collect()),
        &["-   \"1\",", "-   \"6\"", "+   \"6\",", "+   \"7\""]
    )]
    #[case::control_characters("\x1b[2Ja\n".into(), "b\n".into(), &["- \\u{1b}[2Ja", "+ b"])]
    fn only_lines_that_differ_are_shown(
        #[case] observed: Value,
        #[case] desired: Value,
        #[case] expected: &[&str],
    ) {
        assert_eq!(changed_lines(&observed, &desired), expected);
    }

    #[test]
    fn a_long_line_is_shown_around_its_first_difference() {
        let line = |middle: &str| Value::from(format!("{}{middle}{}", "x".repeat(500), "y".repeat(500)));
        let lines = changed_lines(&line("old"), &line("new"));
        let shown = |sign, middle| format!("{sign} ...{}{middle}{}...", "x".repeat(20), "y".repeat(77));
        assert_eq!(lines, [shown('-', "old"), shown('+', "new")]);
        let (short, long) = (Value::from("a"), Value::from("b".repeat(200)));
        assert_eq!(changed_lines(&short, &long), ["- a".to_owned(), format!("+ {}...", "b".repeat(100))]);
    }
}
