//! Standard error, which messages and the bar of progress share.

use std::io::Write as _;
use std::sync::OnceLock;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};

/// The bar on standard error. A global of the process, like the terminal.
static BARS: OnceLock<MultiProgress> = OnceLock::new();

/// Writes a line to standard error, above a bar. Errors are ignored: if it is closed, only the exit code reports the
/// result.
pub fn to_stderr(line: &str) {
    let print = || {
        let _ = writeln!(std::io::stderr(), "{line}");
    };
    match BARS.get() {
        Some(bars) => bars.suspend(print),
        None => print(),
    }
}

/// Shows a bar on standard error.
pub fn show(bar: ProgressBar) -> ProgressBar {
    BARS.get_or_init(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr())).add(bar)
}
