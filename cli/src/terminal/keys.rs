//! The keyboard of a terminal of Unix.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;

use declarest_core::secrets::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::TerminalError;

/// Returns the number of rows of the terminal on standard output.
pub fn rows() -> Option<u16> {
    // This fails if standard output is not a terminal. A terminal without a size has 0 rows.
    let rows = tcgetwinsize(std::io::stdout().as_fd()).ok()?.ws_row;
    (rows > 0).then_some(rows)
}

/// Prints a prompt to standard error and reads one line.
pub fn ask(question: &str, hidden: bool) -> Result<Secret, TerminalError> {
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
            b'\r' | b'\n' => {
                // The bytes of the line become the secret, so that no copy of them is left.
                let text = String::from_utf8(line);
                return Ok(Secret::from(
                    text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
                ));
            }
            INTERRUPT | END => break,
            BACKSPACE | DELETE => {
                if line.is_empty() {
                    continue;
                }
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
