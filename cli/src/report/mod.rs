//! Reports of results for other programs: `JUnit` for test reports, SARIF for code scanning, and annotations of GitHub
//! Actions.

mod annotations;
mod junit;
mod sarif;

use std::path::{Path, PathBuf};

use clap::Args;
use declarest_core::repository::{Mode, write_through};

use crate::error::Failure;
use crate::output::to_stderr;

#[derive(Clone, Debug, Default, Args)]
pub struct ReportArguments {
    /// Also report as "junit=FILE", "sarif=FILE" or "github" (annotations of a workflow); may be repeated
    #[arg(long, value_name = "FORMAT", value_parser = parse)]
    report: Vec<Form>,
}

/// A form of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Github,
    Junit(PathBuf),
    Sarif(PathBuf),
}

fn parse(text: &str) -> Result<Form, String> {
    match text.trim().split_once('=') {
        Some(("junit", file)) if !file.is_empty() => Ok(Form::Junit(file.into())),
        Some(("sarif", file)) if !file.is_empty() => Ok(Form::Sarif(file.into())),
        None if text.trim() == "github" => Ok(Form::Github),
        _ => Err("is not supported; use junit=FILE, sarif=FILE or github".to_owned()),
    }
}

/// The result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it should be.
    Passed,
    /// It was not examined.
    Skipped,
    /// It deserves attention, such as a difference.
    Warning,
    /// It failed.
    Error,
}

/// One case: a resource, a component or a finding.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name, such as the path of a resource.
    pub name: String,
    /// The kind of result, such as `drift`.
    pub rule: &'static str,
    pub outcome: Outcome,
    /// The file, if the case is about one.
    pub file: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// The column in the line, from 1.
    pub column: Option<usize>,
    /// The details; empty if there are none.
    pub message: String,
    pub hint: Option<&'static str>,
}

impl Case {
    /// Returns a case without place.
    pub fn new(name: &str, rule: &'static str, outcome: Outcome, message: String) -> Self {
        let name = name.to_owned();
        Self { name, rule, outcome, file: None, line: None, column: None, message, hint: None }
    }

    /// Returns the case with its file.
    pub fn in_file(self, file: Option<String>) -> Self {
        Self { file, ..self }
    }
}

/// The cases of a command.
#[derive(Debug)]
pub struct Report<'c> {
    /// The command, such as `diff`.
    pub title: &'static str,
    pub cases: &'c [Case],
    /// All rules, with the text of their help.
    pub rules: &'c [(&'static str, &'static str)],
    /// The directory of the repository below that of the workflow; empty if it is the same.
    pub root: &'c str,
}

impl ReportArguments {
    /// Whether no report is wanted.
    pub fn is_empty(&self) -> bool {
        self.report.is_empty()
    }

    /// Whether annotations are wanted.
    pub fn annotates(&self) -> bool {
        self.report.contains(&Form::Github)
    }

    /// Writes the files of a report, and its annotations to standard error, because standard output has the result of the
    /// command.
    pub fn publish(
        &self,
        title: &'static str,
        cases: &[Case],
        rules: &[(&'static str, &'static str)],
    ) -> Result<(), Failure> {
        let report = Report { title, cases, rules, root: "" };
        self.write(&report)?;
        if self.annotates() {
            report.annotations().lines().for_each(to_stderr);
        }
        Ok(())
    }

    /// Writes the files of the report.
    pub fn write(&self, report: &Report<'_>) -> Result<(), Failure> {
        self.report.iter().try_for_each(|form| match form {
            Form::Github => Ok(()),
            Form::Junit(file) => save(file, junit::encode(report).as_bytes()),
            Form::Sarif(file) => {
                let log = serde_json::to_vec_pretty(&sarif::log(report));
                save(file, &log.map_err(|error| Failure::internal(error.to_string()))?)
            }
        })
    }
}

impl Report<'_> {
    /// Returns workflow commands, which GitHub Actions shows beside the files of a pull request.
    pub fn annotations(&self) -> String {
        annotations::encode(self)
    }
}

fn save(file: &Path, content: &[u8]) -> Result<(), Failure> {
    write_through(file, content, Mode::Shared).map_err(Failure::io("write", file))
}

/// Returns a file of the repository below the directory of the workflow.
fn joined(root: &str, file: &str) -> String {
    match root.trim_end_matches('/').trim_start_matches("./") {
        "" | "." => file.to_owned(),
        root => format!("{root}/{file}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case of each outcome, with text that the formats must escape.
    fn cases() -> Vec<Case> {
        let text = "a <b> & \"c\"\n100%: x\u{1}";
        vec![
            Case::new("/shops/rio", "drift", Outcome::Passed, String::new()),
            Case::new("/shops/a,b", "drift", Outcome::Warning, text.to_owned())
                .in_file(Some("shops/a,b/resource.json".to_owned())),
            Case {
                line: Some(3),
                column: Some(4),
                hint: Some("correct it"),
                ..Case::new("/shops/ü", "failure", Outcome::Error, text.to_owned())
                    .in_file(Some("shops/ü/resource.json".to_owned()))
            },
            Case::new("/shops/new", "failure", Outcome::Skipped, "not attempted".to_owned()),
        ]
    }

    fn report(cases: &[Case]) -> Report<'_> {
        Report {
            title: "diff",
            cases,
            rules: &[("drift", "see the diff"), ("failure", "try again")],
            root: "r",
        }
    }

    #[test]
    fn junit_counts_and_escapes() {
        insta::assert_snapshot!(junit::encode(&report(&cases())), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="declarest" tests="4" failures="1" errors="1" skipped="1">
          <testsuite name="declarest diff" tests="4" failures="1" errors="1" skipped="1">
            <testcase classname="declarest.diff" name="/shops/rio"/>
            <testcase classname="declarest.diff" name="/shops/a,b" file="r/shops/a,b/resource.json">
              <failure type="drift" message="a &lt;b&gt; &amp; &quot;c&quot;">a &lt;b&gt; &amp; &quot;c&quot;
        100%: x�</failure>
            </testcase>
            <testcase classname="declarest.diff" name="/shops/ü" file="r/shops/ü/resource.json" line="3">
              <error type="failure" message="a &lt;b&gt; &amp; &quot;c&quot;">a &lt;b&gt; &amp; &quot;c&quot;
        100%: x�
        hint: correct it</error>
            </testcase>
            <testcase classname="declarest.diff" name="/shops/new">
              <skipped message="not attempted"/>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn annotations_escape() {
        insta::assert_snapshot!(report(&cases()).annotations(), @r#"
        ::warning file=r/shops/a%2Cb/resource.json,title=declarest drift::a <b> & "c"%0A100%25: x
        ::error file=r/shops/ü/resource.json,line=3,col=4,title=declarest failure::a <b> & "c"%0A100%25: x%0Ahint: correct it
        "#);
    }

    #[test]
    fn sarif_has_only_problems() {
        insta::assert_snapshot!(serde_json::to_string(&sarif::log(&report(&cases()))["runs"][0]["results"]).unwrap(), @r#"[{"level":"warning","locations":[{"physicalLocation":{"artifactLocation":{"uri":"r/shops/a%2Cb/resource.json"}}}],"message":{"text":"a <b> & \"c\"\n100%: x\u0001"},"ruleId":"drift"},{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"r/shops/%C3%BC/resource.json"},"region":{"startColumn":4,"startLine":3}}}],"message":{"text":"a <b> & \"c\"\n100%: x\u0001"},"ruleId":"failure"}]"#);
    }
}
