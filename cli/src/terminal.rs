//! Prompts on the terminal.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use declarest_core::error::{Categorized, Category};
use declarest_core::secrets::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// A prompt failed.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error("cannot ask for {0} without a terminal on standard input and output")]
    None(String),
    #[error("cannot ask for {0} with --no-input")]
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
    // Disable the echo before the prompt, so that input after the prompt is never shown.
    let raw = RawMode::enter().map_err(TerminalError::Read)?;
    let mut stderr = std::io::stderr();
    // If the prompt cannot be written, the terminal is closed, and the read returns an error.
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
                // Remove one character: its continuation bytes and its first byte.
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

/// Raw mode of the terminal: every key is read at once and not shown. Interrupts are also read as keys, so that the
/// previous mode is always restored.
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
        // There is no way to handle a terminal that rejects its previous settings.
        let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.before);
    }
}
