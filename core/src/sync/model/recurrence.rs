//! Resources that never converge: the server makes something else of what is written, again and again.
//!
//! A resource that differs as it did before the last run wrote it may have been changed by another client
//! in between, or the server does not keep what it is sent. To distinguish the two it is read once more right
//! after the second write. What differs in the same way even then, [`WRITES`] times in a row, is left alone.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::{Action, Failure, FailureReason, Reason, Resource, Step};
use crate::digest::hex;
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

/// Stands for one way in which one resource differs, as [`Unsettled::digest`] does.
pub(crate) type Mark = Box<str>;

/// What was done in the end, and how the resource was right afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub step: Step,
    /// Whether the resource differs just as before it was written; `None` where it was not read again.
    pub without_effect: Option<bool>,
}

impl Done {
    pub const NOTHING: Self = Self { step: Step::Skip, without_effect: None };
}

impl Unsettled {
    /// Whether the resource is left alone.
    pub const fn is_held(&self) -> bool {
        self.writes >= WRITES
    }

    /// What people should know of the resource at `path`, and what they can do.
    pub fn message(&self, path: &LogicalPath) -> String {
        let mut places: Vec<&str> = self.pointers.iter().take(NAMED).map(String::as_str).collect();
        let whole = places.iter().any(|place| place.is_empty());
        let excluded = places.join(", ");
        if self.pointers.len() > NAMED {
            places.push("…");
        }
        let parent = path.parent().unwrap_or_else(LogicalPath::root);
        let file = format!("{parent}/_/metadata.yaml");
        let file = file.trim_start_matches('/');
        let (at, advice) = if whole {
            let advice = format!("make operations.compare.transforms in {file} drop what the server changes");
            ("as a whole".to_owned(), advice)
        } else {
            let rule =
                format!("add {{excludeAttributes: [{excluded}]}} to operations.compare.transforms in {file}");
            (format!("at {}", places.join(", ")), rule)
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

    /// The mark of how `desired`, whose payload without secrets is `payload`, differs by `action`. `hides` says that
    /// the differences would show secrets.
    pub(crate) fn mark(&self, desired: &Resource, payload: &Value, action: &Action, hides: bool) -> Mark {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        add(desired.path.as_str());
        for difference in &action.differences {
            add(&difference.path);
            // What the server has may be another time or count whenever it is asked.
            add(&format!("{:?}", difference.change));
        }
        add(&serde_json::to_string(payload).unwrap_or_default());
        for document in desired.rules.stated() {
            add(&format!("{document:?}"));
        }
        if hides {
            add(&self.epoch);
        }
        hex(&hash.finalize()[..8]).into_boxed_str()
    }

    /// The resource at `path`, if the last runs wrote it in vain because of this very difference.
    fn without_effect(&self, path: &LogicalPath, mark: &Mark) -> Option<&Unsettled> {
        self.unsettled.get(path).filter(|unsettled| *unsettled.digest == **mark)
    }

    /// Whether writing the resource at `path` because of this difference is pointless.
    pub(crate) fn holds(&self, path: &LogicalPath, mark: &Mark) -> bool {
        self.without_effect(path, mark).is_some_and(Unsettled::is_held)
    }

    /// Whether the last run corrected this difference of the resource at `path`, in vain or not.
    pub(crate) fn has_corrected(&self, path: &LogicalPath, mark: &Mark) -> bool {
        self.corrected.contains(mark) || self.without_effect(path, mark).is_some()
    }

    /// Resources that are left alone, as failures.
    pub(crate) fn held(&self) -> Vec<Failure> {
        let held = self.unsettled.iter().filter(|(_, unsettled)| unsettled.is_held());
        let failure = |(path, unsettled): (&LogicalPath, &Unsettled)| {
            let (reason, message) = (FailureReason::NeverConverges, unsettled.message(path));
            Failure { path: path.clone(), operation: "update", reason, message }
        };
        held.map(failure).collect()
    }
}

/// What one run saw, on top of what earlier ones did.
pub(crate) struct Tally {
    earlier: Recurrences,
    /// What the next run is to know.
    pub seen: Recurrences,
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
        let Some(mark) = action.mark.as_ref().filter(|_| done.step == Step::Update) else { return false };
        if done.without_effect == Some(true) {
            return self.without_effect(action, mark);
        }
        self.seen.corrected.insert(mark.clone());
        if done.without_effect.is_none() {
            self.skipped(&action.path);
        }
        false
    }

    fn without_effect(&mut self, action: &Action, mark: &Mark) -> bool {
        let before = self.earlier.without_effect(&action.path, mark);
        // The write before the first one of these made the difference known.
        let writes = before.map_or(1, |before| before.writes).saturating_add(1);
        let pointers = action.differences.iter().map(|difference| difference.path.clone()).collect();
        let unsettled = Unsettled { pointers, digest: mark.to_string(), writes };
        let held = unsettled.is_held();
        self.seen.unsettled.insert(action.path.clone(), unsettled);
        held
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
