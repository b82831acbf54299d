//! The cases of reports about resources.

use std::collections::{BTreeMap, BTreeSet};

use declarest_core::path::LogicalPath;
use declarest_core::sync::{Failure as Failed, FailureReason, Plan, Selection, Step};

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::applied::Effect;
use crate::output::plan::{change, differences};
use crate::report::{Case, Outcome, ReportArguments};

const DRIFT: &str = "drift";
const CHANGE: &str = "change";
const FAILURE: &str = "failure";

/// The rules of reports about resources, with their help.
const RULES: [(&str, &str); 3] = [
    (DRIFT, "the server differs from the repository; see \"declarest resource diff\""),
    (CHANGE, "an apply changes the resource; see \"declarest plan\""),
    (FAILURE, "the resource could not be read, compared or written"),
];

/// The target resources with their files, for a report that is written later.
pub struct Reported<'a> {
    arguments: &'a ReportArguments,
    title: &'static str,
    files: BTreeMap<LogicalPath, String>,
}

impl<'a> Reported<'a> {
    /// Returns the report of a command about `selection`.
    pub fn new(arguments: &'a ReportArguments, title: &'static str, selection: &Selection) -> Self {
        let files = if arguments.is_empty() { &[][..] } else { &selection.resources[..] };
        let files = files.iter().map(|file| (file.path.clone(), file.file.clone())).collect();
        Self { arguments, title, files }
    }

    /// Reports a plan. A resource that would change is a warning.
    pub fn plan(&self, plan: &Plan, invocation: &Invocation) -> Result<(), Failure> {
        let changing = plan.actions.iter().filter(|action| action.step != Step::Skip);
        let cases = changing.map(|action| {
            let path = action.path.as_str();
            let lines = differences(action);
            let message = std::iter::once(format!("{path}: {}", change(action))).chain(lines);
            let message = message.collect::<Vec<_>>().join("\n");
            (action.path.clone(), Case::new(path, CHANGE, Outcome::Warning, message))
        });
        self.write(cases, &plan.failures, invocation)
    }

    /// Reports a comparison, with the lines about each resource that differs.
    pub fn differences(
        &self,
        differing: impl Iterator<Item = (LogicalPath, Vec<String>)>,
        failures: &[Failed],
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let cases = differing.map(|(path, lines)| {
            let message = format!("{path} differs on the server\n{}", lines.join("\n"));
            let case = Case::new(path.as_str(), DRIFT, Outcome::Warning, message.trim_end().to_owned());
            (path, case)
        });
        self.write(cases, failures, invocation)
    }

    /// Reports the result of an apply.
    pub fn applied(
        &self,
        results: &BTreeMap<LogicalPath, Effect>,
        failures: &[Failed],
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let passed = |path: &LogicalPath| {
            (path.clone(), Case::new(path.as_str(), CHANGE, Outcome::Passed, String::new()))
        };
        self.write(results.keys().map(passed), failures, invocation)
    }

    /// Writes the report: `cases`, the failures, and all other targets as passed.
    fn write(
        &self,
        cases: impl Iterator<Item = (LogicalPath, Case)>,
        failures: &[Failed],
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        if self.arguments.is_empty() {
            return Ok(());
        }
        let mut cases: BTreeMap<_, _> = cases.collect();
        for failure in failures {
            let outcome = match failure.reason {
                FailureReason::NotAttempted => Outcome::Skipped,
                _ => Outcome::Error,
            };
            let case = Case::new(failure.path.as_str(), FAILURE, outcome, failure.message.clone());
            cases.insert(failure.path.clone(), case);
        }
        let paths: BTreeSet<LogicalPath> = self.files.keys().chain(cases.keys()).cloned().collect();
        let cases: Vec<Case> = paths
            .iter()
            .map(|path| {
                let case = cases.remove(path);
                let case =
                    case.unwrap_or_else(|| Case::new(path.as_str(), CHANGE, Outcome::Passed, String::new()));
                let message = invocation.messages.redacted(&case.message);
                Case { message, ..case }.in_file(self.files.get(path).cloned())
            })
            .collect();
        self.arguments.publish(self.title, &cases, &RULES)
    }
}
