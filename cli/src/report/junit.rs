//! Reports in the XML format of `JUnit`, which CI systems show as test results.

use std::fmt::Write as _;

use super::{Case, Outcome, Report, joined};

/// Returns the report. A warning is a failure of the case, an error is an error.
pub fn encode(report: &Report<'_>) -> String {
    let count = |outcome| report.cases.iter().filter(|case| case.outcome == outcome).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        report.cases.len(),
        count(Outcome::Warning),
        count(Outcome::Error),
        count(Outcome::Skipped),
    );
    let title = report.title;
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"declarest\" {counts}>\n  <testsuite \
         name=\"declarest {title}\" {counts}>\n"
    );
    for case in report.cases {
        push(&mut xml, case, report);
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

fn push(xml: &mut String, case: &Case, report: &Report<'_>) {
    let name = escaped(&case.name);
    let _ = write!(xml, "    <testcase classname=\"declarest.{}\" name=\"{name}\"", report.title);
    if let Some(file) = &case.file {
        let _ = write!(xml, " file=\"{}\"", escaped(&joined(report.root, file)));
    }
    if let Some(line) = case.line {
        let _ = write!(xml, " line=\"{line}\"");
    }
    let element = match case.outcome {
        Outcome::Passed => {
            xml.push_str("/>\n");
            return;
        }
        Outcome::Skipped => "skipped",
        Outcome::Warning => "failure",
        Outcome::Error => "error",
    };
    let first = escaped(case.message.lines().next().unwrap_or_default());
    let _ = writeln!(xml, ">");
    if case.outcome == Outcome::Skipped {
        let _ = writeln!(xml, "      <skipped message=\"{first}\"/>");
    } else {
        let hint = case.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        let text = escaped(&format!("{}{hint}", case.message));
        let rule = case.rule;
        let _ = writeln!(xml, "      <{element} type=\"{rule}\" message=\"{first}\">{text}</{element}>");
    }
    xml.push_str("    </testcase>\n");
}

/// Escapes text for elements and attributes. Characters that XML 1.0 excludes become `U+FFFD`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(character),
            control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}
