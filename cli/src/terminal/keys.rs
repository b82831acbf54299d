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

const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const ERASE_LINE: u8 = 0x15;
const ERASE_WORD: u8 = 0x17;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;
const BELL: &[u8] = b"\x07";

/// Reads the keys up to the end of a line. `echo` writes to the terminal: what is typed, and its removal.
fn read_line(mut echo: impl FnMut(&[u8])) -> Result<Secret, TerminalError> {
    let mut line = Line::default();
    let mut keys = std::io::stdin().lock().bytes().peekable();
    while let Some(key) = keys.next() {
        match key.map_err(TerminalError::Read)? {
            b'\r' | b'\n' => return line.into_secret(),
            INTERRUPT => break,
            END if line.typed.is_empty() => break,
            BACKSPACE | DELETE => line.erase(1, &mut echo),
            ERASE_LINE => line.erase(usize::MAX, &mut echo),
            ERASE_WORD => line.erase(line.last_word(), &mut echo),
            ESCAPE => {
                // A terminal sends the other keys, such as arrows, as an escape sequence (ECMA-48, 5.4).
                let starts = |key: &std::io::Result<u8>| matches!(key, Ok(b'[' | b'O'));
                if keys.next_if(starts).is_some() {
                    while keys.next_if(|key| matches!(key, Ok(b' '..=b'?'))).is_some() {}
                    keys.next();
                }
            }
            b'\t' => line.push(b'\t', &mut echo),
            key if key.is_ascii_control() => echo(BELL),
            key => line.push(key, &mut echo),
        }
    }
    Err(TerminalError::Interrupted)
}

/// The bytes of a line that is typed.
#[derive(Default)]
struct Line {
    typed: Vec<u8>,
}

impl Line {
    fn push(&mut self, byte: u8, echo: &mut impl FnMut(&[u8])) {
        self.typed.push(byte);
        echo(&[byte]);
    }

    /// Removes up to `count` characters from the end.
    fn erase(&mut self, count: usize, echo: &mut impl FnMut(&[u8])) {
        for _ in 0..count {
            if self.typed.is_empty() {
                return;
            }
            // Remove one character: its continuation bytes and its first byte.
            while self.typed.pop().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {}
            echo(b"\x08 \x08");
        }
    }

    /// Returns the number of characters of the last word and the spaces after it.
    fn last_word(&self) -> usize {
        let text = String::from_utf8_lossy(&self.typed);
        let before =
            text.trim_end().rfind(char::is_whitespace).map_or(0, |at| text[..at].chars().count() + 1);
        text.chars().count() - before
    }

    /// The bytes of the line become the secret, so that no copy of them is left.
    fn into_secret(self) -> Result<Secret, TerminalError> {
        String::from_utf8(self.typed).map(Secret::from).map_err(|_| TerminalError::NotUtf8)
    }
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
