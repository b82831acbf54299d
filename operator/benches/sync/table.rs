//! What was measured beside what it should be.

use std::fs;
use std::time::{Duration, Instant};

/// How often anything is measured; the median counts.
pub const ROUNDS: usize = 5;

/// One line of the table.
pub struct Figure {
    /// The letter to ask for it by.
    pub row: &'static str,
    pub what: String,
    /// A figure without a target bounds or explains another figure.
    pub target: Option<f64>,
    pub measured: f64,
    /// What both are in; a ratio has none.
    pub unit: &'static str,
    /// Where the figure comes from.
    pub raw: String,
}

impl Figure {
    /// How many times as long `measured` took as `reference`, by their medians, of which `raw` shows more.
    pub fn ratio(
        row: &'static str,
        what: String,
        (measured, reference): (Vec<Duration>, Vec<Duration>),
        raw: impl FnOnce(String, String) -> String,
    ) -> Self {
        let (measured, reference) = (median(measured), median(reference));
        Self {
            row,
            what,
            target: None,
            measured: measured / reference,
            unit: "",
            raw: raw(milliseconds(measured), milliseconds(reference)),
        }
    }

    pub fn at_most(self, target: f64) -> Self {
        Self { target: Some(target), ..self }
    }
}

/// Prints its lines as they come, since later ones take minutes.
pub struct Table {
    missed: usize,
}

impl Table {
    pub fn begin() -> Self {
        println!("\n    {:<76} {:>10} {:>10}         from", "figure", "target", "measured");
        Self { missed: 0 }
    }

    pub fn add(&mut self, figure: Figure) {
        let Figure { row, what, target, measured, unit, raw } = figure;
        let (bound, verdict) = match target {
            Some(target) if measured <= target => (format!("<= {}", number(target, unit)), "ok"),
            Some(target) => (format!("<= {}", number(target, unit)), "MISSED"),
            None => (String::new(), ""),
        };
        self.missed += usize::from(verdict == "MISSED");
        println!("{row:<3} {what:<76} {bound:>10} {:>10}  {verdict:<6} {raw}", number(measured, unit));
    }

    pub fn missed(&self) -> usize {
        self.missed
    }
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        "" => format!("{value:.2}"),
        "s" => format!("{value:.1} s"),
        "%" => format!("{value:.1} %"),
        unit => format!("{value:.0} {unit}").trim_end().to_owned(),
    }
}

/// In seconds.
pub fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

pub fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

/// How long `work` takes.
pub async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let started = Instant::now();
    let result = work.await;
    (started.elapsed(), result)
}

/// What this ran on.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let busy = load.split(' ').next().unwrap_or("?");
    format!("{cores} cores, {}; load average at the start {busy}", model.map_or("?", |(_, name)| name))
}
