//! The forms of a validation: text, JSON, and the cases of its reports.

use std::fmt::Write as _;

use declarest_core::control;
use serde::Serialize;

use super::check::Checked;
use super::finding::{Finding, Rule, Severity};
use crate::report::{Case, Outcome};

/// A validation for programs.
#[derive(Debug, Serialize)]
pub struct Report<'c> {
    resources: usize,
    pub errors: usize,
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

    /// Returns one line and one hint per finding, and a summary.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in self.findings {
            let (severity, rule) = (finding.severity.into_str(), finding.rule.into_str());
            let line = format!("{}: {severity}: {} [{rule}]", place(finding), one_line(&finding.message));
            let _ = writeln!(text, "{}", control::one_line(&line));
            let _ = writeln!(text, "    hint: {}", finding.hint);
        }
        let Self { resources, errors, warnings, .. } = self;
        text + &format!("Validated resources: {resources}. Errors: {errors}. Warnings: {warnings}.")
    }

    /// Returns a case for each finding, or one that passed.
    pub fn cases(&self) -> Vec<Case> {
        if self.findings.is_empty() {
            return vec![Case::new("repository", "validation", Outcome::Passed, String::new())];
        }
        self.findings.iter().map(case).collect()
    }
}

/// Returns the rules with their hints.
pub fn rules() -> Vec<(&'static str, &'static str)> {
    Rule::ALL.iter().map(|rule| (rule.into_str(), rule.hint())).collect()
}

fn case(finding: &Finding) -> Case {
    let outcome = match finding.severity {
        Severity::Error => Outcome::Error,
        Severity::Warning => Outcome::Warning,
    };
    let name = finding.path.as_ref().unwrap_or(&finding.file);
    Case {
        line: finding.line,
        column: finding.column,
        hint: Some(finding.hint),
        ..Case::new(name, finding.rule.into_str(), outcome, finding.message.clone())
            .in_file(Some(finding.file.clone()))
    }
}

/// Returns the place of a finding, such as `shops/rio/resource.json:3:1`.
fn place(finding: &Finding) -> String {
    let numbers = [finding.line, finding.column].into_iter().flatten();
    numbers.fold(finding.file.clone(), |place, number| format!("{place}:{number}"))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
