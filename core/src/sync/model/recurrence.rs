//! Resources that never converge, because the server changes what was written.
//!
//! If a resource differs in the same way as before the last run wrote it, another client changed it, or the server does
//! not keep the written state. To distinguish these cases, the run reads the resource directly after the second write.
//! If it still differs in the same way, both writes had no effect, and the run reports it. After [`WRITES`] writes in a
//! row without effect, the resource is no longer written.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::{Action, Failure, FailureReason, Mark, Reason, Resource, Step};
use crate::digest::hex;
use crate::metadata::transform::member_expression;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::{Pointer, array_index};
use crate::repository::metadata_place;

/// After this number of writes in a row without effect, a resource is no longer written.
const WRITES: u32 = 3;
/// The maximum number of places in a message.
const NAMED: usize = 5;

/// Resources that did not converge in earlier runs. Each run returns the value for the next run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recurrences {
    /// Differences that the last run corrected for the first time.
    corrected: HashSet<Mark>,
    unsettled: BTreeMap<LogicalPath, Unsettled>,
    epoch: String,
}

/// A resource that differed in the same way right after it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// The places of the differences, as JSON Pointers.
    pub pointers: Vec<String>,
    /// Identifies the difference, the desired payload and the metadata; shows no secrets.
    pub digest: String,
    /// The number of runs in a row that wrote it without effect.
    pub writes: u32,
}

/// The executed step, and the state of the resource directly afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub step: Step,
    /// Whether the resource differs in the same way as before the write; `None` if it was not read again.
    pub without_effect: Option<bool>,
    /// Whether a further pass completes the created resource: the create left out attributes, or the server failed to
    /// show the result.
    pub deferred: bool,
}

impl Done {
    pub const NOTHING: Self = Self { step: Step::Skip, without_effect: None, deferred: false };
}

impl Unsettled {
    /// Whether the resource is no longer written.
    pub const fn is_held(&self) -> bool {
        self.writes >= WRITES
    }

    /// Returns the message about the resource at `path`, with the correction.
    pub fn message(&self, path: &LogicalPath) -> String {
        let mut places: Vec<&str> = self.pointers.iter().take(NAMED).map(String::as_str).collect();
        let whole = places.iter().any(|place| place.is_empty());
        let (step, array) = (excluding(&places), array_in(&places));
        if self.pointers.len() > NAMED {
            places.push("…");
        }
        let parent = path.collection();
        let file = metadata_place(&parent);
        let (at, advice) = if whole {
            let advice = format!("remove them in operations.compare.transforms in {file}");
            ("as a whole".to_owned(), advice)
        } else {
            let rule = format!("add {step} to operations.compare.transforms in {file}");
            (format!("at {}", places.join(", ")), rule)
        };
        let order = array.filter(|_| !whole).map(|array| order_advice(&array, &places)).unwrap_or_default();
        let rest =
            if self.is_held() { ", and is no longer written until Git or the metadata changes" } else { "" };
        format!(
            "{path}: differs again {at} after each of {} updates{rest}{order}; if the server sets these values, {advice}",
            self.writes
        )
    }
}

/// Returns the advice for a server that changes the order of the array. Several entries that differ as a whole are probably
/// texts, which have no key; but if the first one does not differ, the server may have appended the others.
fn order_advice(array: &str, places: &[&str]) -> String {
    let entries: Vec<&str> =
        places.iter().filter_map(|place| place.strip_prefix(array)?.strip_prefix('/')).collect();
    let are_whole = entries.len() > 1 && entries.iter().all(|entry| !entry.contains('/'));
    if are_whole && entries.contains(&"0") {
        return format!(
            "; if the server reorders the entries of {array}, state {{{array}: set}} in operations.compare.arrays"
        );
    }
    let set = if are_whole { format!("{{{array}: set}}, or ") } else { String::new() };
    format!(
        "; if the server adds or reorders entries, state {set}their key in operations.compare.arrays, for example \
         {{{array}: /name}}, with operations.compare.mode: declared"
    )
}

/// Returns the pointer of the first array that contains some of these places.
fn array_in(places: &[&str]) -> Option<String> {
    places.iter().find_map(|place| {
        let (above, _) = place.match_indices('/').find_map(|(at, _)| {
            let token = place[at + 1..].split('/').next().unwrap_or_default();
            array_index(token).map(|_| place.split_at(at))
        })?;
        (!above.is_empty()).then(|| above.to_owned())
    })
}

/// Returns the transform step that removes these places, with a pattern for the indices of arrays, which change.
fn excluding(places: &[&str]) -> String {
    let indexed = |place: &&str| place.split('/').any(|token| array_index(token).is_some());
    if !places.iter().any(indexed) {
        return format!("{{excludeAttributes: [{}]}}", places.join(", "));
    }
    let mut paths: Vec<String> = places.iter().map(|place| jq_path(place)).collect();
    paths.sort();
    paths.dedup();
    let is_below =
        |path: &str, other: &str| path.strip_prefix(other).is_some_and(|rest| rest.starts_with(['.', '[']));
    let outer = paths.iter().filter(|path| !paths.iter().any(|other| is_below(path, other)));
    let paths: Vec<&str> = outer.map(String::as_str).collect();
    format!("{{jqExpression: 'del({})'}}", paths.join(", "))
}

/// Returns the jq path of a pointer: `.hooks[]?.["run-at"]` for `/hooks/0/run-at`. For an entry of an array,
/// returns the path of the array.
fn jq_path(pointer: &str) -> String {
    let pointer = Pointer::parse(pointer).unwrap_or_default();
    let tokens = pointer.tokens();
    let length = tokens.iter().rposition(|token| array_index(token).is_none()).map_or(0, |last| last + 1);
    let mut path = String::new();
    for token in &tokens[..length] {
        let part = match token.as_str() {
            token if array_index(token).is_some() => "[]?".to_owned(),
            token => member_expression(token).replace('\'', "\\u0027"),
        };
        path.push_str(&part);
    }
    path
}

impl Recurrences {
    /// Returns the recurrences that an earlier process stored.
    pub fn recorded(unsettled: impl IntoIterator<Item = (LogicalPath, Unsettled)>) -> Self {
        Self { unsettled: unsettled.into_iter().collect(), ..Self::default() }
    }

    /// Returns the recurrences for a run in which secrets have the values of `epoch`. Digests do not contain the values
    /// of secrets. In another epoch, every difference of a secret is a new one.
    #[must_use]
    pub fn in_epoch(self, epoch: impl Into<String>) -> Self {
        Self { epoch: epoch.into(), ..self }
    }

    /// Returns the resources that the last runs wrote without effect, including those that are no longer written.
    pub fn unsettled(&self) -> impl Iterator<Item = (&LogicalPath, &Unsettled)> {
        self.unsettled.iter()
    }

    /// Removes the record of the resource at `path`, which is no longer declared.
    pub fn forget(&mut self, path: &LogicalPath) {
        self.unsettled.remove(path);
    }

    /// Returns the mark of the differences of `action` for `desired`, whose payload without secrets is `payload`.
    /// `hides` means that the differences would show secrets.
    pub(crate) fn mark(&self, desired: &Resource, payload: &Value, action: &Action, hides: bool) -> Mark {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        add(desired.path.as_str());
        for difference in &action.differences {
            add(&difference.path);
            // The observed value may be a time or a counter that changes with every read.
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

    /// Returns the resource at `path`, if the last runs wrote it without effect because of this difference.
    fn without_effect(&self, path: &LogicalPath, mark: &Mark) -> Option<&Unsettled> {
        self.unsettled.get(path).filter(|unsettled| *unsettled.digest == **mark)
    }

    /// Whether the resource at `path` is no longer written because of this difference.
    pub(crate) fn holds(&self, path: &LogicalPath, mark: &Mark) -> bool {
        self.without_effect(path, mark).is_some_and(Unsettled::is_held)
    }

    /// Whether the last run wrote the resource at `path` because of this difference, with or without effect.
    pub(crate) fn has_corrected(&self, path: &LogicalPath, mark: &Mark) -> bool {
        self.corrected.contains(mark) || self.without_effect(path, mark).is_some()
    }

    /// Returns the resources that were written without effect, as failures.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        let failure = |(path, unsettled): (&LogicalPath, &Unsettled)| {
            let (reason, message) = (FailureReason::NeverConverges, unsettled.message(path));
            Failure::local(path.clone(), "update", reason, message)
        };
        self.unsettled.iter().map(failure).collect()
    }
}

/// The recurrences of one run, based on those of earlier runs.
pub(crate) struct Tally {
    earlier: Recurrences,
    /// The recurrences for the next run.
    pub seen: Recurrences,
}

impl Tally {
    /// Returns an empty tally. `whole_scope` means that a resource that the run does not read is no longer declared.
    pub fn new(earlier: Recurrences, whole_scope: bool) -> Self {
        let mut seen = if whole_scope { Recurrences::default() } else { earlier.clone() };
        seen.epoch.clone_from(&earlier.epoch);
        Self { earlier, seen }
    }

    /// Keeps the record of the resource at `path`, which could not be read or written.
    pub fn skipped(&mut self, path: &LogicalPath) {
        if let Some(unsettled) = self.earlier.unsettled.get(path) {
            // If its create failed after its deletion, the deletion counts.
            self.seen.unsettled.entry(path.clone()).or_insert_with(|| unsettled.clone());
        }
    }

    /// Records that `action` was done. Returns whether its resource still differs: the write had no effect, or it is no
    /// longer written.
    pub fn done(&mut self, action: &Action, done: Done) -> bool {
        if action.reason == Reason::Unsettled {
            self.skipped(&action.path);
            return true;
        }
        // A create may be the second half of a replacement.
        if action.step != Step::Create {
            self.seen.unsettled.remove(&action.path);
        }
        let replaces = action.replaces();
        let mark = action.mark.as_ref().filter(|_| replaces || done.step == Step::Update);
        let Some(mark) = mark else { return false };
        let is_repeated = replaces && self.earlier.has_corrected(&action.path, mark);
        if is_repeated || done.without_effect == Some(true) {
            self.without_effect(action, mark);
            return true;
        }
        self.seen.corrected.insert(mark.clone());
        if done.without_effect.is_none() && !replaces {
            self.skipped(&action.path);
        }
        false
    }

    fn without_effect(&mut self, action: &Action, mark: &Mark) {
        let before = self.earlier.without_effect(&action.path, mark);
        // The first of these writes is the second one for this difference.
        let writes = before.map_or(1, |before| before.writes).saturating_add(1);
        let unsettled = Unsettled { pointers: action.pointers(), digest: mark.to_string(), writes };
        self.seen.unsettled.insert(action.path.clone(), unsettled);
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

    /// The write that fails after it is the create.
    #[test]
    fn a_deletion_without_effect_counts_if_the_create_fails() {
        let path = LogicalPath::parse("/shops/rio").unwrap();
        let mark: Mark = "0".into();
        let before = Unsettled { digest: "0".to_owned(), writes: 1, ..unsettled(&["/kind"]) };
        let mut tally = Tally::new(Recurrences::recorded([(path.clone(), before)]), true);
        let deletion =
            Action { mark: Some(mark), ..Action::new(path.clone(), Step::Delete, Reason::Replaced) };
        assert!(tally.done(&deletion, Done { step: Step::Delete, ..Done::NOTHING }));
        tally.skipped(&path);
        assert_eq!(tally.seen.unsettled[&path].writes, 2);
    }

    #[rstest]
    #[case::one("/shops/rio", &["/updatedAt"], "/shops/rio: differs again at /updatedAt after each of 3 updates, and is no longer written until Git or the metadata changes; if the server sets these values, add {excludeAttributes: [/updatedAt]} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::at_the_top("/rio", &["/a", "/b"], "/rio: differs again at /a, /b after each of 3 updates, and is no longer written until Git or the metadata changes; if the server sets these values, add {excludeAttributes: [/a, /b]} to operations.compare.transforms in _/metadata.yaml")]
    #[case::entries("/shops/rio", &["/hooks/0/run-at", "/hooks/1/run-at", "/tags/2"], "/shops/rio: differs again at /hooks/0/run-at, /hooks/1/run-at, /tags/2 after each of 3 updates, and is no longer written until Git or the metadata changes; if the server adds or reorders entries, state their key in operations.compare.arrays, for example {/hooks: /name}, with operations.compare.mode: declared; if the server sets these values, add {jqExpression: 'del(.hooks[]?.[\"run-at\"], .tags)'} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::added("/shops/rio", &["/hooks/1"], "/shops/rio: differs again at /hooks/1 after each of 3 updates, and is no longer written until Git or the metadata changes; if the server adds or reorders entries, state their key in operations.compare.arrays, for example {/hooks: /name}, with operations.compare.mode: declared; if the server sets these values, add {jqExpression: 'del(.hooks)'} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::appended("/shops/rio", &["/hooks/1", "/hooks/2"], "/shops/rio: differs again at /hooks/1, /hooks/2 after each of 3 updates, and is no longer written until Git or the metadata changes; if the server adds or reorders entries, state {/hooks: set}, or their key in operations.compare.arrays, for example {/hooks: /name}, with operations.compare.mode: declared; if the server sets these values, add {jqExpression: 'del(.hooks)'} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::texts("/shops/rio", &["/tags/0", "/tags/1"], "/shops/rio: differs again at /tags/0, /tags/1 after each of 3 updates, and is no longer written until Git or the metadata changes; if the server reorders the entries of /tags, state {/tags: set} in operations.compare.arrays; if the server sets these values, add {jqExpression: 'del(.tags)'} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::entry("/shops/rio", &["/hooks/0", "/hooks/1/id", "/hooksize"], "/shops/rio: differs again at /hooks/0, /hooks/1/id, /hooksize after each of 3 updates, and is no longer written until Git or the metadata changes; if the server adds or reorders entries, state their key in operations.compare.arrays, for example {/hooks: /name}, with operations.compare.mode: declared; if the server sets these values, add {jqExpression: 'del(.hooks, .hooksize)'} to operations.compare.transforms in shops/_/metadata.yaml")]
    #[case::whole("/shops/rio", &[""], "/shops/rio: differs again as a whole after each of 3 updates, and is no longer written until Git or the metadata changes; if the server sets these values, remove them in operations.compare.transforms in shops/_/metadata.yaml")]
    fn messages(#[case] path: &str, #[case] pointers: &[&str], #[case] expected: &str) {
        let path = LogicalPath::parse(path).unwrap();
        assert_eq!(unsettled(pointers).message(&path), expected);
    }

    #[test]
    fn an_advice_is_a_valid_step() {
        let advice = excluding(&["/hooks/0/run-at", "/o'neil/1/x", "/tags/2"]);
        let document = format!("operations: {{compare: {{transforms: [{advice}]}}}}");
        crate::metadata::read(crate::payload::PayloadType::Yaml, document.as_bytes(), true).unwrap();
    }

    #[test]
    fn a_message_names_some_places_of_many() {
        let message =
            unsettled(&["/a", "/b", "/c", "/d", "/e", "/f"]).message(&LogicalPath::parse("/x").unwrap());
        assert!(message.contains("at /a, /b, /c, /d, /e, … after"), "{message}");
    }
}
