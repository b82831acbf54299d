//! Workflow commands of GitHub Actions.

use std::fmt::Write as _;

use super::{Outcome, Report, joined};

/// Returns a command for each case that is a warning or an error.
pub fn encode(report: &Report<'_>) -> String {
    let mut text = String::new();
    for case in report.cases {
        let severity = match case.outcome {
            Outcome::Passed | Outcome::Skipped => continue,
            Outcome::Warning => "warning",
            Outcome::Error => "error",
        };
        let _ = write!(text, "::{severity} ");
        if let Some(file) = &case.file {
            let _ = write!(text, "file={},", property(&joined(report.root, file)));
        }
        if let Some(line) = case.line {
            let _ = write!(text, "line={line},");
        }
        if let Some(column) = case.column {
            let _ = write!(text, "col={column},");
        }
        let hint = case.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        let message = escaped(&format!("{}{hint}", case.message));
        let _ = writeln!(text, "title=declarest {}::{message}", case.rule);
    }
    text
}

/// Escapes the message of a workflow command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}
