//! Messages on standard error: warnings, the output of `--verbose`, failures, and the final line.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::sync::Arc;

use declarest_core::control::{one_line, visible};
use declarest_core::error::{Category, clause};
use declarest_core::secrets::{Redactor, Secret, SecretReader};
use declarest_core::server::Trace;
use declarest_core::sync::Step;
use parking_lot::Mutex;
use serde::Serialize;

use super::render::escaped;
use super::stderr::to_stderr;
use crate::error::{Cause, Failure};
use crate::settings::{ErrorFormat, Settings};

/// Standard error of a command. Secrets that the command knows are redacted in all messages, except in verbose output
/// with `--verbose-insecure`.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Messages {
    colour: bool,
    ignore_warnings: bool,
    errors: ErrorFormat,
    skip_results: bool,
    verbosity: u8,
    verbose_insecure: bool,
    known: Arc<Mutex<Known>>,
}

/// The secrets of a command: its credentials, and the secrets that it stores or reads.
#[derive(Debug, Default)]
struct Known {
    given: Vec<Secret>,
    readers: Vec<SecretReader>,
    /// The warnings that were printed.
    warned: HashSet<String>,
    /// The redactor, and the number of secrets that it was built from.
    redactor: (usize, Redactor),
}

impl Known {
    fn redactor(&mut self) -> &Redactor {
        let read: Vec<Secret> = self.readers.iter().flat_map(SecretReader::values).collect();
        let count = self.given.len() + read.len();
        if self.redactor.0 != count {
            self.redactor = (count, Redactor::new(self.given.iter().chain(&read)));
        }
        &self.redactor.1
    }
}

fn cause(failure: &Failure) -> Cause {
    failure.cause().cloned().unwrap_or_else(|| Cause::new(failure.category(), failure.message()))
}

/// Returns the record of a failure, on one line.
pub fn error_record(exit_code: u8, cause: &Cause) -> String {
    let record = ErrorRecord {
        category: cause.category,
        exit_code,
        message: &cause.message,
        hint: cause.hint.as_deref(),
        path: cause.path.as_deref(),
        http_status: cause.http_status,
    };
    // Texts and numbers can be encoded.
    escaped(serde_json::to_string(&record).unwrap_or_default())
}

/// A failure for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorRecord<'c> {
    category: Category,
    exit_code: u8,
    message: &'c str,
    hint: Option<&'c str>,
    path: Option<&'c str>,
    http_status: Option<u16>,
}

/// SGR parameters (ECMA-48) of the labels.
const GREEN: &str = "1;32";
const RED: &str = "1;31";
const YELLOW: &str = "1;33";

impl Messages {
    pub fn new(settings: &Settings) -> Self {
        Self {
            colour: settings.colour && std::io::stderr().is_terminal(),
            ignore_warnings: settings.ignore_warnings,
            errors: settings.errors,
            skip_results: settings.skip_result_message,
            verbosity: settings.verbosity,
            verbose_insecure: settings.verbose_insecure,
            known: Arc::default(),
        }
    }

    /// Redacts these secrets from now on.
    pub fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.known.lock().given.extend(secrets);
    }

    /// Returns the secrets that are redacted, without those of readers.
    pub fn hidden(&self) -> Vec<Secret> {
        self.known.lock().given.clone()
    }

    /// Redacts all secrets that this reader reads from now on.
    pub fn hide_read(&self, reader: &SecretReader) {
        self.known.lock().readers.push(reader.clone());
    }

    /// Drops the secrets of readers that nothing else uses, for commands that repeat their work without an end.
    pub fn end_round(&self) {
        let mut known = self.known.lock();
        known.readers.retain(SecretReader::is_in_use);
        known.redactor = Default::default();
    }

    /// Returns the first failure of these results, the most important first, and prints the others.
    pub fn first(&self, results: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
        let mut failures = results.into_iter().filter_map(Result::err);
        let Some(first) = failures.next() else { return Ok(()) };
        failures.for_each(|failure| self.attempt(&failure));
        Err(first)
    }

    /// Prints one of several failures of a command.
    pub fn problem(&self, cause: &Cause) {
        match self.errors {
            ErrorFormat::Text => to_stderr(&self.line(&cause.message)),
            ErrorFormat::Json => self.record(cause.category.exit_code(), cause),
        }
    }

    /// Prints the failure of an attempt that is repeated.
    pub fn attempt(&self, failure: &Failure) {
        self.problem(&cause(failure));
    }

    /// Returns whether failures are printed for programs.
    pub fn are_records(&self) -> bool {
        self.errors == ErrorFormat::Json
    }

    fn record(&self, exit_code: u8, cause: &Cause) {
        let message = self.redacted(cause.message.trim_end());
        let hint = cause.hint.as_deref().map(|hint| self.redacted(hint));
        to_stderr(&error_record(exit_code, &Cause { message, hint, ..cause.clone() }));
    }

    /// Returns a text without secrets and control characters.
    pub fn redacted(&self, text: &str) -> String {
        visible(&self.known.lock().redactor().redact(text)).into_owned()
    }

    /// Returns a message without secrets and control characters. Its further lines are indented, so that a line break in
    /// a name cannot forge a message.
    fn line(&self, text: &str) -> String {
        let redacted = self.redacted(text);
        let Some((first, further)) = redacted.split_once('\n') else { return redacted };
        further.split('\n').fold(first.to_owned(), |lines, line| {
            lines + if line.starts_with("  ") { "\n" } else { "\\n" } + line
        })
    }

    /// Prints a warning once, unless `--ignore-warnings` is set.
    pub fn warn(&self, warning: &str) {
        if !self.ignore_warnings && self.known.lock().warned.insert(warning.to_owned()) {
            to_stderr(&format!("{} {}", self.label("WARNING", YELLOW), self.line(warning)));
        }
    }

    /// Prints a line if the level of `--verbose` is at least `level`.
    pub fn verbose(&self, level: u8, line: &str) {
        if self.verbosity >= level {
            let kind = if level >= 3 { "debug" } else { "verbose" };
            let line = if self.verbose_insecure { visible(line).into_owned() } else { self.redacted(line) };
            to_stderr(&format!("{kind}: {line}"));
        }
    }

    /// Returns the trace of requests for `--verbose`, or `None` without it.
    pub fn trace(&self) -> Option<Trace> {
        if self.verbosity == 0 {
            if self.verbose_insecure {
                self.warn("--verbose-insecure has no effect without --verbose");
            }
            return None;
        }
        if self.verbose_insecure {
            self.warn("--verbose-insecure: the output of --verbose contains credentials");
        }
        let (messages, hiding) = (self.clone(), self.clone());
        let print = move |level, line: &str| messages.verbose(level, line);
        let trace = Trace::new(self.verbosity, self.verbose_insecure, print);
        Some(trace.hiding(move || hiding.known.lock().redactor().clone()))
    }

    /// Prints that a result is not complete or may not be as requested. No option hides it.
    pub fn note(&self, line: &str) {
        to_stderr(&self.line(line));
    }

    /// Prints what a command did to a resource, unless `--skip-result-message` is set.
    pub fn result(&self, step: Option<Step>, line: &str) {
        if self.skip_results {
            return;
        }
        let colour = match step {
            _ if !self.colour => None,
            Some(Step::Create) => Some("32"),
            Some(Step::Update) => Some("33"),
            Some(Step::Delete) => Some("31"),
            Some(Step::Skip) | None => None,
        };
        let line = self.redacted(line);
        let line = one_line(&line);
        match colour {
            Some(colour) => to_stderr(&format!("\x1b[{colour}m{line}\x1b[0m")),
            None => to_stderr(&line),
        }
    }

    /// Prints the final line of a successful command.
    pub fn success(&self) {
        to_stderr(&format!("{} command executed successfully.", self.label("OK", GREEN)));
    }

    /// Prints the failure of a command, as its final line or without a label. A hint precedes the final line, but
    /// follows a message without a label.
    pub fn failure(&self, failure: &Failure, footer: bool) {
        if self.errors == ErrorFormat::Json {
            return self.record(failure.code(), &cause(failure));
        }
        if let Some(usage) = failure.usage() {
            to_stderr(usage);
        }
        let message = self.line(failure.message());
        let hint = failure.cause().and_then(|cause| cause.hint.as_deref());
        let hint = hint.map(|hint| format!("hint: {}", self.line(hint)));
        let line = if footer {
            format!("{} command execution failed: {}.", self.label("ERROR", RED), clause(message))
        } else {
            message
        };
        let (first, last) = if footer { (hint, Some(line)) } else { (Some(line), hint) };
        first.iter().chain(&last).for_each(|line| to_stderr(line));
    }

    fn label(&self, label: &str, parameters: &str) -> String {
        if self.colour { format!("\x1b[{parameters}m[{label}]\x1b[0m") } else { format!("[{label}]") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_coloured_on_demand() {
        let mut messages = Messages::new(&Settings::default());
        assert_eq!(messages.label("OK", GREEN), "[OK]");
        messages.colour = true;
        assert_eq!(messages.label("OK", GREEN), "\x1b[1;32m[OK]\x1b[0m");
    }
}
