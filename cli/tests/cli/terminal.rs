//! A pseudo terminal that runs a program, and methods for the reading and typing of a user.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A long time, because builds and other tests may run at the same time.
const PATIENCE: Duration = Duration::from_mins(1);

/// The control keys.
pub const ENTER: &str = "\r";
pub const INTERRUPT: &str = "\x03";
pub const END: &str = "\x04";
pub const BACKSPACE: &str = "\x7f";

pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// The output so far, and the length of the part that was already matched.
    shown: Vec<u8>,
    seen: usize,
}

impl Terminal {
    /// Starts a program whose input, output and errors are a terminal.
    pub fn start(command: Command) -> Self {
        Self::start_with(command, |command, terminal| {
            command.stdin(terminal()).stdout(terminal()).stderr(terminal());
        })
    }

    /// [`Terminal::start`], with this number of rows, of 100 columns.
    pub fn start_with_rows(command: Command, rows: u16) -> Self {
        Self::start_with(command, |command, terminal| {
            let size = Winsize { ws_row: rows, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(terminal(), size).unwrap();
            command.stdin(terminal()).stdout(terminal()).stderr(terminal());
        })
    }

    /// Starts a program. `attach` selects the streams that are attached to the terminal.
    pub fn start_with(mut command: Command, attach: impl FnOnce(&mut Command, &dyn Fn() -> File)) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
        attach(&mut command, &|| theirs.try_clone().unwrap());
        let child = command.spawn().unwrap();
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        // Ends with an error (EIO) when no process has the other side open.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = read(&mut reader, &mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, screen, shown: Vec::new(), seen: 0 }
    }

    /// Waits until `text` is shown after the part that was already matched.
    pub fn expect(&mut self, text: &str) {
        loop {
            let new = &self.shown[self.seen..];
            if let Some(at) = new.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.seen += at + text.len();
                return;
            }
            assert!(self.more(), "it ended without {text:?}:\n{}", self.text());
        }
    }

    /// Types `text`.
    pub fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.keyboard.write_all(keys.as_ref()).unwrap();
    }

    /// Sends the signal of Ctrl-C. The terminal does not, because it is not that of a session.
    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Kills the program, as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for a question, and answers it.
    pub fn answer(&mut self, question: &str, answer: &str) {
        self.expect(question);
        self.press(format!("{answer}{ENTER}"));
    }

    /// Whether the terminal shows what is typed.
    pub fn echoes(&self) -> bool {
        tcgetattr(&self.keyboard).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Waits for the end of the program. Returns the exit code and the whole output.
    pub fn end(mut self) -> (i32, String) {
        while self.more() {}
        let code = self.child.wait().unwrap().code().unwrap();
        (code, self.text())
    }

    /// Waits for more output. Returns false at the end of the output.
    fn more(&mut self) -> bool {
        let news = self.screen.recv_timeout(PATIENCE);
        if news == Err(RecvTimeoutError::Timeout) {
            let _ = self.child.kill();
        }
        assert_ne!(news, Err(RecvTimeoutError::Timeout), "nothing more is shown after:\n{}", self.text());
        self.shown.extend(news.iter().flatten());
        news.is_ok()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).replace("\r\n", "\n")
    }
}

fn read(reader: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
