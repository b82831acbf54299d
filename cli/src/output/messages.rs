//! What goes to standard error: warnings, what `--verbose` tells, failures, and the line at the end.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use declarest_core::control::visible;
use declarest_core::secrets::{Redactor, Secret, SecretReader};
use declarest_core::server::Trace;

use crate::error::Failure;
use crate::settings::Settings;

/// Writes a line to standard error. Nothing can be told any more if that is closed; the exit code still
/// says it.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Standard error of a command. What the command knows to be secret is taken out of all that is told, except for what
/// `--verbose-insecure` asks for.
#[derive(Clone, Debug)]
pub struct Messages {
    colour: bool,
    ignore_warnings: bool,
    verbosity: u8,
    verbose_insecure: bool,
    known: Arc<Mutex<Known>>,
}

/// The secrets of a command: its credentials, what it stores, and what it reads from its store.
#[derive(Debug, Default)]
struct Known {
    given: Vec<Secret>,
    readers: Vec<SecretReader>,
    /// What takes out so many of them.
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

/// SGR parameters (ECMA-48) of the labels.
const GREEN: &str = "1;32";
const RED: &str = "1;31";
const YELLOW: &str = "1;33";

impl Messages {
    pub fn new(settings: &Settings) -> Self {
        Self {
            colour: settings.colour && std::io::stderr().is_terminal(),
            ignore_warnings: settings.ignore_warnings,
            verbosity: settings.verbosity,
            verbose_insecure: settings.verbose_insecure,
            known: Arc::default(),
        }
    }

    /// From now on these are told as `<redacted>`.
    pub fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.known().given.extend(secrets);
    }

    /// From now on all that this reader has read is told as `<redacted>`.
    pub fn hide_read(&self, reader: &SecretReader) {
        self.known().readers.push(reader.clone());
    }

    /// A line of a command of which several things failed.
    pub fn problem(&self, line: &str) {
        tell(&self.redacted(line));
    }

    /// A text as it may be shown.
    pub fn redacted(&self, text: &str) -> String {
        visible(&self.known().redactor().redact(text)).into_owned()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // Nobody panics while holding the lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A warning; nothing with `--ignore-warnings`.
    pub fn warn(&self, warning: &str) {
        if !self.ignore_warnings {
            tell(&format!("{} {}", self.label("WARNING", YELLOW), self.redacted(warning)));
        }
    }

    /// What is told from this level of `--verbose` on.
    pub fn verbose(&self, level: u8, line: &str) {
        if self.verbosity >= level {
            let kind = if level >= 3 { "debug" } else { "verbose" };
            let line = if self.verbose_insecure { visible(line).into_owned() } else { self.redacted(line) };
            tell(&format!("{kind}: {line}"));
        }
    }

    /// What `--verbose` tells about requests; nothing without it.
    pub fn trace(&self) -> Option<Trace> {
        if self.verbosity == 0 {
            return None;
        }
        if self.verbose_insecure {
            self.warn("--verbose-insecure: credentials are shown in what --verbose tells");
        }
        let (messages, hiding) = (self.clone(), self.clone());
        let tell = move |level, line: &str| messages.verbose(level, line);
        let trace = Trace::new(self.verbosity, self.verbose_insecure, tell);
        Some(trace.hiding(move || hiding.known().redactor().clone()))
    }

    /// The last line of a command that changed something.
    pub fn success(&self) {
        tell(&format!("{} command executed successfully.", self.label("OK", GREEN)));
    }

    /// How a command failed; as its last line, or plainly.
    pub fn failure(&self, failure: &Failure, footer: bool) {
        if let Some(usage) = failure.usage() {
            tell(usage);
        }
        let message = self.redacted(failure.message());
        if footer {
            tell(&format!("{} command execution failed: {message}.", self.label("ERROR", RED)));
        } else {
            tell(&message);
        }
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
