//! The pager for long text on a terminal, as `git` uses one.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::error::Failure;
use crate::interrupt;
use crate::invocation::Invocation;
use crate::output::Output;
use crate::terminal;

/// The default pager.
const DEFAULT: &str = "less";
/// The default options of less: end at once if the text fits on the screen, show colours, and keep the text on the screen.
const LESS: &str = "FRX";

/// Prints a result like [`Output::show_about`]. Text that is longer than the terminal goes through the pager.
pub fn show<T: Serialize>(
    output: &Output,
    paths: &[&str],
    value: &T,
    text: &str,
    invocation: &Invocation,
) -> Result<(), Failure> {
    match command(text, output, invocation) {
        Some(command) if page(&command, text, invocation) => Ok(()),
        _ => Ok(output.show_about(paths, value, Some(text))?),
    }
}

/// Returns the words of the pager for `text`, if it needs one.
fn command(text: &str, output: &Output, invocation: &Invocation) -> Option<Vec<String>> {
    let settings = &invocation.settings;
    if settings.no_pager || !settings.is_smart || !output.is_text() {
        return None;
    }
    if text.lines().count() < usize::from(terminal::rows()?) {
        return None;
    }
    let environment = &invocation.environment;
    let chosen = ["DECLAREST_PAGER", "PAGER"].into_iter().find_map(|name| environment.raw(name));
    let words: Vec<String> = chosen.unwrap_or(DEFAULT).split_whitespace().map(str::to_owned).collect();
    // As for git, an empty pager and cat are none.
    (!words.is_empty() && words != ["cat"]).then_some(words)
}

/// Shows `text` in the pager, and returns whether that could be started.
fn page(words: &[String], text: &str, invocation: &Invocation) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let mut pager = Command::new(program);
    pager.args(arguments).stdin(Stdio::piped());
    if invocation.environment.raw("LESS").is_none() {
        pager.env("LESS", LESS);
    }
    interrupt::ignored(|| {
        let Ok(mut pager) = pager.spawn() else { return false };
        if let Some(mut input) = pager.stdin.take() {
            // A user may end the pager before it has read everything.
            let _ = input.write_all(text.as_bytes()).and_then(|()| writeln!(input));
        }
        // It has shown the text, or reported why not.
        let _ = pager.wait();
        true
    })
}
