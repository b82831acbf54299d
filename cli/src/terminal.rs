//! Questions to the person at the terminal.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use declarest_core::error::{Categorized, Category};
use declarest_core::secrets::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Why a question got no answer.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error("{0} cannot be asked for without a terminal on standard input and output")]
    None(String),
    #[error("{0} cannot be asked for with --no-input")]
    Refused(String),
    #[error("interrupted; nothing was changed")]
    Interrupted,
    #[error("cannot read from the terminal: {0}")]
    Read(std::io::Error),
}

impl Categorized for TerminalError {
    fn category(&self) -> Category {
        match self {
            Self::None(_) | Self::Refused(_) | Self::Interrupted => Category::Validation,
            Self::Read(_) => Category::Internal,
        }
    }
}

/// Whether input counts that no argument names. Of the process, like the terminal and the standard input themselves.
static TAKES_INPUT: AtomicBool = AtomicBool::new(true);

/// From now on nobody is asked, and standard input is read only where an argument says so (`--no-input`).
pub fn refuse_input() {
    TAKES_INPUT.store(false, Ordering::Relaxed);
}

/// Whether nobody has refused input.
pub fn takes_input() -> bool {
    TAKES_INPUT.load(Ordering::Relaxed)
}

/// Whether somebody can be asked.
pub fn is_interactive() -> bool {
    takes_input() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Why nobody can be asked for `what`.
pub fn nobody_to_ask(what: &str) -> TerminalError {
    if takes_input() { TerminalError::None(what.to_owned()) } else { TerminalError::Refused(what.to_owned()) }
}

/// Asks on standard error and reads one line; what is typed shows unless `hidden`.
pub fn ask(question: &str, hidden: bool) -> Result<Secret, TerminalError> {
    if !is_interactive() {
        return Err(nobody_to_ask(question));
    }
    // Before the question: what is typed once it shows must not show any more.
    let raw = RawMode::enter().map_err(TerminalError::Read)?;
    let mut stderr = std::io::stderr();
    // If the question cannot be shown the terminal is gone, which reading will tell.
    let _ = write!(stderr, "{question}: ").and_then(|()| stderr.flush());
    let answer = read_line(|bytes| {
        if !hidden {
            let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
        }
    });
    drop(raw);
    let _ = writeln!(std::io::stderr());
    answer
}

const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;

fn read_line(mut echo: impl FnMut(&[u8])) -> Result<Secret, TerminalError> {
    let mut line: Vec<u8> = Vec::new();
    for byte in std::io::stdin().lock().bytes() {
        match byte.map_err(TerminalError::Read)? {
            b'\r' | b'\n' => return Ok(Secret::from(String::from_utf8_lossy(&line).into_owned())),
            INTERRUPT | END => break,
            BACKSPACE | DELETE => {
                // A character may have several bytes, of which all but the first are continuations.
                while line.pop().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {}
                echo(b"\x08 \x08");
            }
            byte => {
                line.push(byte);
                echo(&[byte]);
            }
        }
    }
    Err(TerminalError::Interrupted)
}

/// The terminal gives every key at once and shows none, also not to the shell: an interrupt is a key, so
/// that the terminal never stays like this.
struct RawMode {
    before: Termios,
}

impl RawMode {
    fn enter() -> std::io::Result<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut raw = before.clone();
        raw.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that does not take its own settings back.
        let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.before);
    }
}
