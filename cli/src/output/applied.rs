//! The results of a command that changes resources, on standard error.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use declarest_core::path::LogicalPath;
use declarest_core::sync::{FailureReason, Report, Step};

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was created, updated or deleted.
    Done(Step),
    /// It was deleted and created again.
    Replaced,
}

impl Effect {
    /// Returns the effect of this action and a later one.
    pub fn followed_by(self, step: Step) -> Self {
        match (self, step) {
            (Self::Done(Step::Delete), Step::Create) => Self::Replaced,
            // A resource that is created may also be updated, with its deferred attributes.
            (first, _) => first,
        }
    }

    /// Returns whether a request of this kind had an effect.
    fn includes(self, step: Step) -> bool {
        match self {
            Self::Done(done) => done == step,
            Self::Replaced => matches!(step, Step::Delete | Step::Create),
        }
    }
}

/// The results of one command.
#[derive(Debug)]
pub struct Applied<'r> {
    /// The executed actions.
    pub results: &'r BTreeMap<LogicalPath, Effect>,
    pub report: &'r Report,
}

impl Applied<'_> {
    /// Returns the number of resources that the command did not reach before it was ended.
    pub fn not_attempted(&self) -> usize {
        let failures = self.report.failures.iter();
        failures.filter(|failure| failure.reason == FailureReason::NotAttempted).count()
    }

    /// Returns the counts, such as `1 created, 2 updated, 0 deleted, 14 unchanged, 0 failed`.
    pub fn counts(&self) -> String {
        // A resource that was created, but not completed, has failed.
        let failures: HashSet<_> = self.report.failures.iter().map(|failure| &failure.path).collect();
        let count = |step| {
            let counts = |(path, effect): &(&LogicalPath, &Effect)| {
                effect.includes(step) && (step == Step::Delete || !failures.contains(path))
            };
            self.results.iter().filter(counts).count()
        };
        let [created, updated, deleted] = [Step::Create, Step::Update, Step::Delete].map(count);
        let (unchanged, not_attempted) = (self.report.stats.unchanged, self.not_attempted());
        let failed = self.report.failures.len() - not_attempted;
        let mut counts = format!(
            "{created} created, {updated} updated, {deleted} deleted, {unchanged} unchanged, {failed} failed"
        );
        if not_attempted > 0 {
            let _ = write!(counts, ", {not_attempted} not attempted");
        }
        counts
    }

    /// Returns a line for each changed resource, such as `+ /shops/oslo created`.
    pub fn lines(&self) -> Vec<(Step, String)> {
        let line = |(path, effect): (&LogicalPath, &Effect)| {
            let (step, sign, done) = match effect {
                Effect::Done(Step::Skip) => return None,
                Effect::Done(step @ Step::Create) => (*step, "+", "created"),
                Effect::Done(step @ Step::Update) => (*step, "~", "updated"),
                Effect::Done(step @ Step::Delete) => (*step, "-", "deleted"),
                Effect::Replaced => (Step::Delete, "-/+", "replaced"),
            };
            Some((step, format!("{sign} {path} {done}")))
        };
        self.results.iter().filter_map(line).collect()
    }
}
