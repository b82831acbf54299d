//! What goes to standard error: warnings, what `--verbose` tells, failures, and the line at the end.

use std::io::{IsTerminal as _, Write as _};

use declarest_core::server::Trace;

use crate::error::Failure;
use crate::settings::Settings;

/// Writes a line to standard error. Nothing can be told any more if that is closed; the exit code still
/// says it.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Standard error of a command.
#[derive(Clone, Debug)]
pub struct Messages {
    colour: bool,
    ignore_warnings: bool,
    verbosity: u8,
    verbose_insecure: bool,
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
        }
    }

    /// A warning; nothing with `--ignore-warnings`.
    pub fn warn(&self, warning: &str) {
        if !self.ignore_warnings {
            tell(&format!("{} {warning}", self.label("WARNING", YELLOW)));
        }
    }

    /// What is told from this level of `--verbose` on.
    pub fn verbose(&self, level: u8, line: &str) {
        if self.verbosity >= level {
            let kind = if level >= 3 { "debug" } else { "verbose" };
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
        let messages = self.clone();
        Some(Trace::new(self.verbosity, self.verbose_insecure, move |level, line| {
            messages.verbose(level, line);
        }))
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
        if footer {
            let message = failure.message();
            tell(&format!("{} command execution failed: {message}.", self.label("ERROR", RED)));
        } else {
            tell(failure.message());
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
