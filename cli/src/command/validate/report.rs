//! The forms of a validation: text, JSON, SARIF and annotations of GitHub Actions.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::check::Checked;
use super::finding::{Finding, Rule, Severity};

/// A validation for programs.
#[derive(Debug, Serialize)]
pub struct Report<'c> {
    resources: usize,
    errors: usize,
    warnings: usize,
    findings: &'c [Finding],
}

impl<'c> Report<'c> {
    pub fn new(checked: &'c Checked) -> Self {
        let count = |severity| checked.findings.iter().filter(|found| found.severity == severity).count();
        Self {
            resources: checked.resources,
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            findings: &checked.findings,
        }
    }

    /// Returns the number of errors.
    pub const fn errors(&self) -> usize {
        self.errors
    }

    /// Returns one line and one hint per finding, and a summary.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in self.findings {
            let (severity, rule) = (finding.severity.name(), finding.rule.name());
            let _ = writeln!(text, "{}: {severity}: {} [{rule}]", place(finding), one_line(&finding.message));
            let _ = writeln!(text, "    hint: {}", finding.hint);
        }
        let Self { resources, errors, warnings, .. } = self;
        text + &format!("Validated resources: {resources}. Errors: {errors}. Warnings: {warnings}.")
    }

    /// Returns workflow commands, which GitHub Actions shows beside the lines of a pull request. `root` is the
    /// directory of the repository below that of the workflow.
    pub fn github(&self, root: &str) -> String {
        let mut text = String::new();
        for finding in self.findings {
            let severity = finding.severity.name();
            let file = property(&joined(root, &finding.file));
            let _ = write!(text, "::{severity} file={file}");
            if let Some(line) = finding.line {
                let _ = write!(text, ",line={line}");
            }
            if let Some(column) = finding.column {
                let _ = write!(text, ",col={column}");
            }
            let message = format!("{}\nhint: {}", finding.message, finding.hint);
            let _ = writeln!(text, ",title=declarest {}::{}", finding.rule.name(), escaped(&message));
        }
        text
    }

    /// Returns a log in SARIF 2.1.0 (OASIS), which code scanning services read.
    pub fn sarif(&self, root: &str) -> Json {
        let rules: Vec<Json> =
            Rule::ALL.iter().map(|rule| json!({"id": rule.name(), "help": {"text": rule.hint()}})).collect();
        let results: Vec<Json> = self.findings.iter().map(|finding| result(finding, root)).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "declarest",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                }},
                "results": results,
            }],
        })
    }
}

fn result(finding: &Finding, root: &str) -> Json {
    let mut location = json!({"artifactLocation": {"uri": uri(&joined(root, &finding.file))}});
    if let Some(line) = finding.line {
        location["region"] = match finding.column {
            Some(column) => json!({"startLine": line, "startColumn": column}),
            None => json!({"startLine": line}),
        };
    }
    json!({
        "ruleId": finding.rule.name(),
        "level": finding.severity.name(),
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": location}],
    })
}

/// Returns the place of a finding, such as `shops/rio/resource.json:3:1`.
fn place(finding: &Finding) -> String {
    let numbers = [finding.line, finding.column].into_iter().flatten();
    numbers.fold(finding.file.clone(), |place, number| format!("{place}:{number}"))
}

fn joined(root: &str, file: &str) -> String {
    match root.trim_end_matches('/').trim_start_matches("./") {
        "" | "." => file.to_owned(),
        root => format!("{root}/{file}"),
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Escapes the message of a workflow command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns a path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    path.bytes().fold(String::new(), |mut uri, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
        uri
    })
}
