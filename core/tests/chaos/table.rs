//! The table of what was injected and survived.

use std::io::Write as _;
use std::{env, fs};

/// What came of one trial.
#[derive(Clone, Debug)]
pub struct Tally {
    pub requests: usize,
    pub injected: usize,
    /// Runs until nothing was left to do.
    pub runs: usize,
    pub duplicates: usize,
    pub lost_deletes: usize,
    pub peak: usize,
    pub budget: usize,
}

/// A line of the table.
pub struct Row {
    what: String,
    tallies: Vec<Tally>,
}

impl Row {
    pub fn new(what: &str) -> Self {
        Self { what: what.to_owned(), tallies: Vec::new() }
    }

    pub fn add(&mut self, tally: Tally) {
        self.tallies.push(tally);
    }

    pub fn injected(&self) -> usize {
        self.sum(|tally| tally.injected)
    }

    fn sum(&self, of: impl Fn(&Tally) -> usize) -> usize {
        self.tallies.iter().map(of).sum()
    }

    /// Adds the line to the file that `CHAOS_TABLE` names, if one is wanted.
    pub fn publish(&self) {
        let Some(file) = env::var_os("CHAOS_TABLE") else { return };
        let mut file = fs::File::options().append(true).create(true).open(file).unwrap();
        writeln!(file, "{self}").unwrap();
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut runs: Vec<usize> = self.tallies.iter().map(|tally| tally.runs).collect();
        runs.sort_unstable();
        let median = runs.get(runs.len() / 2).copied().unwrap_or(0);
        let worst = runs.last().copied().unwrap_or(0);
        let peak = self.tallies.iter().map(|tally| tally.peak).max().unwrap_or(0);
        let budget = self.tallies.first().map_or(0, |tally| tally.budget);
        // Where no budget was agreed, nothing was measured.
        let peak = if budget == 0 { "-".to_owned() } else { format!("{peak} / {budget}") };
        write!(
            f,
            "| {} | {} | {} | {} | {median} / {worst} | {} | {} | {peak} |",
            self.what,
            self.tallies.len(),
            self.sum(|tally| tally.requests),
            self.injected(),
            self.sum(|tally| tally.duplicates),
            self.sum(|tally| tally.lost_deletes),
        )
    }
}

/// A number from the environment.
pub fn size<N>(variable: &str, otherwise: N) -> N
where
    N: std::str::FromStr<Err: std::fmt::Debug>,
{
    let set = env::var(variable).ok().filter(|text| !text.is_empty());
    set.map_or(otherwise, |text| text.parse().unwrap())
}
