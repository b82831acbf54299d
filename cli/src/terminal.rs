//! Prompts on the terminal.

#[cfg(windows)]
#[path = "terminal/console.rs"]
mod keys;
#[cfg(unix)]
mod keys;

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};

use declarest_core::error::categories;
use declarest_core::secrets::Secret;

/// A prompt failed.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error("cannot ask for {0} without a terminal on standard input and output")]
    None(String),
    #[error("cannot ask for {0} with --no-input")]
    Refused(String),
    #[error("interrupted; nothing was changed")]
    Interrupted,
    #[cfg_attr(windows, expect(dead_code, reason = "a console returns text"))]
    #[error("the answer is not UTF-8; set the locale of the terminal to UTF-8")]
    NotUtf8,
    #[error("cannot read from the terminal: {0}")]
    Read(std::io::Error),
}

categories!(TerminalError {
    Validation: None, Refused, Interrupted, NotUtf8;
    Internal: Read;
});

/// Whether prompts are allowed, and standard input is read even if no argument names it. A global of the process, like
/// the terminal.
static TAKES_INPUT: AtomicBool = AtomicBool::new(true);

/// Disables prompts, and the reading of standard input that no argument names (`--no-input`).
pub fn refuse_input() {
    TAKES_INPUT.store(false, Ordering::Relaxed);
}

/// Returns whether input was not disabled.
pub fn takes_input() -> bool {
    TAKES_INPUT.load(Ordering::Relaxed)
}

/// Returns whether prompts are possible.
pub fn is_interactive() -> bool {
    takes_input() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Returns why a prompt for `what` is not possible.
pub fn cannot_ask(what: &str) -> TerminalError {
    if takes_input() { TerminalError::None(what.to_owned()) } else { TerminalError::Refused(what.to_owned()) }
}

/// Prints a prompt to standard error and reads one line. The input is shown unless `hidden`.
pub fn ask(question: &str, hidden: bool) -> Result<Secret, TerminalError> {
    if !is_interactive() {
        return Err(cannot_ask(question));
    }
    keys::ask(question, hidden)
}

/// Returns the number of rows of the terminal on standard output, if it is one and has a size.
pub fn rows() -> Option<u16> {
    keys::rows()
}
