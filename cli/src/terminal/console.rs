//! The keyboard of a console of Windows.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use console::Term;
use declarest_core::secrets::Secret;

use super::TerminalError;

/// Returns the number of rows of the console on standard output.
pub fn rows() -> Option<u16> {
    std::io::stdout().is_terminal().then(|| Term::stdout().size_checked()).flatten().map(|(rows, _)| rows)
}

/// Prints a prompt to standard error and reads one line.
pub fn ask(question: &str, hidden: bool) -> Result<Secret, TerminalError> {
    let terminal = Term::stderr();
    let mut stderr = std::io::stderr();
    // If the prompt cannot be written, the console is closed, and the read returns an error.
    let _ = write!(stderr, "{question}: ").and_then(|()| stderr.flush());
    let answer = if hidden { terminal.read_secure_line() } else { terminal.read_line() };
    answer.map(Secret::from).map_err(|error| match error.kind() {
        ErrorKind::Interrupted | ErrorKind::UnexpectedEof => TerminalError::Interrupted,
        _ => TerminalError::Read(error),
    })
}
