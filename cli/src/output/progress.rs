//! The progress of commands on several resources, on standard error.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use declarest_core::control::one_line;
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Step};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use parking_lot::Mutex;

use super::applied::Effect;
use super::stderr;
use crate::settings::{ProgressForm, Settings};

/// Plain progress prints one line per this fraction of the resources.
const PARTS: usize = 10;

/// Shows the progress of one command, and records its results.
#[derive(Debug)]
pub struct Progress {
    display: Display,
    state: Mutex<State>,
}

#[derive(Debug)]
enum Display {
    Bar(ProgressBar),
    Plain,
    Off,
}

/// The current phase, and all results.
#[derive(Debug, Default)]
struct State {
    phase: &'static str,
    total: usize,
    done: usize,
    failed: usize,
    results: BTreeMap<LogicalPath, Effect>,
}

impl Progress {
    /// Starts to compare `total` resources. One resource needs no progress.
    pub fn new(settings: &Settings, total: usize) -> Self {
        let display = match settings.progress {
            ProgressForm::Auto if total > 1 && settings.is_smart && std::io::stderr().is_terminal() => {
                let bar = ProgressBar::new(0).with_style(style()).with_finish(ProgressFinish::AndClear);
                Display::Bar(stderr::show(bar))
            }
            ProgressForm::Plain if total > 1 => Display::Plain,
            _ => Display::Off,
        };
        let progress = Self { display, state: Mutex::default() };
        progress.enter("Comparing", total);
        progress
    }

    /// Starts to apply `total` actions.
    pub fn applies(&self, total: usize) {
        self.enter("Applying", total);
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }

    /// Returns the executed actions, by path.
    pub fn results(&self) -> BTreeMap<LogicalPath, Effect> {
        self.state.lock().results.clone()
    }

    fn enter(&self, phase: &'static str, total: usize) {
        let mut state = self.state.lock();
        (state.phase, state.total, state.done, state.failed) = (phase, total, 0, 0);
        if let Display::Bar(bar) = &self.display {
            bar.reset();
            bar.set_length(u64::try_from(total).unwrap_or(u64::MAX));
            bar.set_prefix(phase);
        }
    }

    fn advance(&self, path: &LogicalPath, failed: bool) {
        let mut state = self.state.lock();
        state.done += 1;
        state.failed += usize::from(failed);
        let State { phase, total, done, failed, .. } = *state;
        match &self.display {
            Display::Bar(bar) => {
                let failures = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
                bar.set_message(format!("{}{failures}", one_line(path.as_str())));
                bar.inc(1);
            }
            Display::Plain if done % total.div_ceil(PARTS).max(1) == 0 || done == total => {
                stderr::to_stderr(&format!("{phase}: {done} of {total}"));
            }
            Display::Plain | Display::Off => {}
        }
    }
}

impl sync::Progress for Progress {
    fn compared(&self, path: &LogicalPath) {
        self.advance(path, false);
    }

    fn executed(&self, path: &LogicalPath, effect: Option<Step>) {
        if let Some(step) = effect.filter(|step| *step != Step::Skip) {
            let mut state = self.state.lock();
            let entry = state.results.entry(path.clone());
            entry.and_modify(|effect| *effect = effect.followed_by(step)).or_insert(Effect::Done(step));
        }
        self.advance(path, effect.is_none());
    }
}

fn style() -> ProgressStyle {
    let template = "{prefix} [{bar:24}] {pos}/{len} {wide_msg}";
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
