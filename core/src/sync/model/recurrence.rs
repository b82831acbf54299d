//! Resources that never converge: the server makes something else of what is written, again and again.
//!
//! A resource that differs as it did before the last run wrote it may have been changed by another client
//! in between, or the server does not keep what it is sent. To distinguish the two it is read once more right
//! after the second write. What differs in the same way even then, [`WRITES`] times in a row, is left alone.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU64;

use sha2::{Digest as _, Sha256};

use super::action::{Action, Reason, Step};
use super::error::FailureReason;
use super::report::Failure;
use super::resource::Resource;
use crate::metadata::Difference;
use crate::path::LogicalPath;
use crate::payload::Value;

/// After so many writes in a row without effect a resource is left alone.
const WRITES: u32 = 3;
/// How many places a message names.
const NAMED: usize = 5;

/// What earlier runs saw of resources that do not converge. The next run is given what the last one
/// returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recurrences {
    /// Differences that the last run corrected, without having seen them before.
    corrected: HashSet<Mark>,
    unsettled: BTreeMap<LogicalPath, Unsettled>,
    epoch: String,
}

/// A resource that differed in the same way right after it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Where it differs, as JSON Pointers.
    pub pointers: Vec<String>,
    /// Stands for the difference, the desired payload and the metadata; shows no secrets.
    pub digest: String,
    /// How many runs in a row wrote it in vain.
    pub writes: u32,
}

/// Stands for one way in which one resource differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark(NonZeroU64);

/// A difference as it may be shown.
pub(crate) struct Shown<'a> {
    /// The desired payload without secrets.
    pub payload: &'a Value,
    pub differences: &'a [Difference],
    /// Whether the differences would show secrets.
    pub hides: bool,
}

/// What was done in the end, and how the resource was right afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub step: Step,
    pub after: After,
}

impl Done {
    pub const NOTHING: Self = Self { step: Step::Skip, after: After::Unknown };
}

/// How a resource was right after it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It was not read, or nothing was to be seen.
    Unknown,
    /// It differed so, if at all.
    Known(Option<Mark>),
}

/// What is known of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was not there in the last run.
    New,
    /// The last run corrected it, in vain or not.
    Again,
    /// Writing the resource is pointless.
    Held,
}

impl Unsettled {
    /// Whether the resource is left alone.
    pub const fn is_held(&self) -> bool {
        self.writes >= WRITES
    }

    /// What people should know of the resource at `path`, and what they can do.
    pub fn message(&self, path: &LogicalPath) -> String {
        let mut places: Vec<&str> = self.pointers.iter().take(NAMED).map(String::as_str).collect();
        let rule = format!("{{excludeAttributes: [{}]}}", places.join(", "));
        let whole = places.iter().any(|place| place.is_empty());
        if self.pointers.len() > NAMED {
            places.push("…");
        }
        let at = if whole { "as a whole".to_owned() } else { format!("at {}", places.join(", ")) };
        let parent = path.parent().unwrap_or_else(LogicalPath::root);
        let directory = if parent.is_root() { String::new() } else { format!("{}/", parent.relative()) };
        let advice = if whole {
            format!(
                "make operations.compare.transforms in {directory}_/metadata.yaml drop what the server changes"
            )
        } else {
            format!("add {rule} to operations.compare.transforms in {directory}_/metadata.yaml")
        };
        format!(
            "{path}: differs again {at} after each of {} updates, and is not written any more until Git or the metadata changes; if the server decides what is there, {advice}",
            self.writes
        )
    }
}

impl Recurrences {
    /// What an earlier process left on record.
    pub fn recorded(unsettled: impl IntoIterator<Item = (LogicalPath, Unsettled)>) -> Self {
        Self { unsettled: unsettled.into_iter().collect(), ..Self::default() }
    }

    /// The same for a run in which secrets have the values of `epoch`. Their values take no part in digests;
    /// in another epoch every difference that touches one is a new one.
    #[must_use]
    pub fn in_epoch(self, epoch: impl Into<String>) -> Self {
        Self { epoch: epoch.into(), ..self }
    }

    /// Resources that were written in vain in the last runs, those that are left alone included.
    pub fn unsettled(&self) -> impl Iterator<Item = (&LogicalPath, &Unsettled)> {
        self.unsettled.iter()
    }

    /// The mark of how `desired` differs.
    pub(crate) fn mark(&self, desired: &Resource, shown: &Shown<'_>) -> Mark {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        add(desired.path.as_str());
        for difference in shown.differences {
            add(&difference.path);
            // What the server has may be another time or count whenever it is asked.
            add(&format!("{:?}", difference.change));
        }
        add(&serde_json::to_string(shown.payload).unwrap_or_default());
        for document in desired.rules.stated() {
            add(&format!("{document:?}"));
        }
        if shown.hides {
            add(&self.epoch);
        }
        let digest = hash.finalize();
        let first = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        Mark(NonZeroU64::new(first).unwrap_or(NonZeroU64::MIN))
    }

    /// What is known of a difference of the resource at `path`.
    pub(crate) fn known(&self, path: &LogicalPath, mark: Mark) -> Known {
        match self.unsettled.get(path).filter(|unsettled| unsettled.digest == mark.to_string()) {
            Some(unsettled) if unsettled.is_held() => Known::Held,
            Some(_) => Known::Again,
            None if self.corrected.contains(&mark) => Known::Again,
            None => Known::New,
        }
    }

    /// Resources that are left alone, as failures.
    pub(crate) fn held(&self) -> Vec<Failure> {
        let held = self.unsettled.iter().filter(|(_, unsettled)| unsettled.is_held());
        held.map(|(path, unsettled)| Failure {
            path: path.clone(),
            operation: "update",
            reason: FailureReason::NeverConverges,
            message: unsettled.message(path),
        })
        .collect()
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What one run saw, on top of what earlier ones did.
pub(crate) struct Tally {
    earlier: Recurrences,
    seen: Recurrences,
}

impl Tally {
    /// `whole_scope` means that a resource that the run does not look at is not declared any more.
    pub fn new(earlier: Recurrences, whole_scope: bool) -> Self {
        let mut seen = if whole_scope { Recurrences::default() } else { earlier.clone() };
        seen.epoch.clone_from(&earlier.epoch);
        Self { earlier, seen }
    }

    /// The resource at `path` could not be looked at, or not be written.
    pub fn skipped(&mut self, path: &LogicalPath) {
        if let Some(unsettled) = self.earlier.unsettled.get(path) {
            self.seen.unsettled.insert(path.clone(), unsettled.clone());
        }
    }

    /// `action` was done. Returns whether its resource is left alone from now on, or was before.
    pub fn done(&mut self, action: &Action, done: Done) -> bool {
        if action.reason == Reason::Unsettled {
            self.skipped(&action.path);
            return true;
        }
        self.seen.unsettled.remove(&action.path);
        let Some(mark) = action.mark.filter(|_| done.step == Step::Update) else { return false };
        match done.after {
            After::Unknown => {
                self.seen.corrected.insert(mark);
                self.skipped(&action.path);
                false
            }
            After::Known(now) if now == Some(mark) => self.in_vain(action, mark),
            After::Known(_) => {
                self.seen.corrected.insert(mark);
                false
            }
        }
    }

    fn in_vain(&mut self, action: &Action, mark: Mark) -> bool {
        let digest = mark.to_string();
        let before = self.earlier.unsettled.get(&action.path).filter(|before| before.digest == digest);
        // The write before the first one of these made the difference known.
        let writes = before.map_or(1, |before| before.writes).saturating_add(1);
        let pointers = action.differences.iter().map(|difference| difference.path.clone()).collect();
        let unsettled = Unsettled { pointers, digest, writes };
        let held = unsettled.is_held();
        self.seen.unsettled.insert(action.path.clone(), unsettled);
        held
    }

    /// What the next run is to know.
    pub fn finish(self) -> Recurrences {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn unsettled(pointers: &[&str]) -> Unsettled {
        let pointers = pointers.iter().map(|pointer| (*pointer).to_owned()).collect();
        Unsettled { pointers, digest: String::new(), writes: 3 }
    }

    #[rstest]
    #[case::one("/shops/rio", &["/updatedAt"], "/shops/rio: differs again at /updatedAt after each of 3 updates, and is not written any more until Git or the metadata changes; if the server decides what is there, add {excludeAttributes: [/updatedAt]} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::at_the_top("/rio", &["/a", "/b"], "/rio: differs again at /a, /b after each of 3 updates, and is not written any more until Git or the metadata changes; if the server decides what is there, add {excludeAttributes: [/a, /b]} to operations.compare.transforms in _/metadata.yaml")]
    #[case::whole("/shops/rio", &[""], "/shops/rio: differs again as a whole after each of 3 updates, and is not written any more until Git or the metadata changes; if the server decides what is there, make operations.compare.transforms in shops/_/metadata.yaml drop what the server changes")]
    fn messages(#[case] path: &str, #[case] pointers: &[&str], #[case] expected: &str) {
        let path = LogicalPath::parse(path).unwrap();
        assert_eq!(unsettled(pointers).message(&path), expected);
    }

    #[test]
    fn a_message_names_some_places_of_many() {
        let message =
            unsettled(&["/a", "/b", "/c", "/d", "/e", "/f"]).message(&LogicalPath::parse("/x").unwrap());
        assert!(message.contains("at /a, /b, /c, /d, /e, … after"), "{message}");
    }
}
