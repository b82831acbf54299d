//! What a run must not have done, by what the server holds before and after it.

use std::collections::BTreeSet;

use declarest_core::sync::{Outcome, Report};
use serde_json::Value;

use super::desired::{Desired, Place, Store};
use crate::api_server::Request;

#[derive(Default)]
pub struct Judge {
    /// What nothing may touch.
    pub foreign: Store,
    /// Whether what Git declares was changed by hand since a run looked at everything.
    pub disturbed: bool,
    /// What the last commit declares.
    tip: Desired,
    /// Where earlier commits had what they declared, by logical path.
    past: Vec<(String, Place)>,
    pub lost_deletes: usize,
}

impl Judge {
    /// A run has worked on the last of these commits.
    pub fn attempted<'d>(&mut self, commits: impl Iterator<Item = &'d Desired>) {
        for commit in commits {
            for (path, declared) in &commit.declared {
                let place = (path.clone(), declared.place.clone());
                if !self.past.contains(&place) {
                    self.past.push(place);
                }
            }
            self.tip = commit.clone();
        }
    }

    /// What is wrong after a run that made the requests in `log`.
    pub fn violations(
        &mut self,
        before: &Store,
        after: &Store,
        log: &[Request],
        report: &Report,
    ) -> Vec<String> {
        let mut found = self.harmed(after);
        found.extend(self.overwrites(log));
        found.extend(self.wrong_deletes(before, after, log));
        found.extend(self.strays(after));
        if report.outcome == Outcome::Succeeded && report.prune_refused.is_none() && !self.disturbed {
            found.extend(self.unfinished(after, report));
        }
        found
    }

    fn harmed(&self, after: &Store) -> Vec<String> {
        let bytes = Value::to_string;
        let harmed = self.foreign.iter().filter_map(|(path, body)| match after.get(path) {
            None => Some(format!("the foreign {path} is gone")),
            Some(now) if bytes(now) != bytes(body) => {
                Some(format!("the foreign {path} was {body} and is {now}"))
            }
            Some(_) => None,
        });
        harmed.collect()
    }

    /// A write to what is not ours is wrong, though it may change nothing.
    fn overwrites(&self, log: &[Request]) -> Vec<String> {
        let writes = log.iter().filter(|request| request.is_write() && request.status < 300);
        let wrong = writes.filter(|request| self.foreign.contains_key(&request.path));
        wrong.map(|request| format!("{request} went to a foreign resource")).collect()
    }

    /// What is declared, or was never declared, and was deleted, if only for a while.
    fn wrong_deletes(&self, before: &Store, after: &Store, log: &[Request]) -> Vec<String> {
        let declared: BTreeSet<String> =
            [before, after].into_iter().flat_map(|store| self.declared_paths(store)).collect();
        let past = |store| self.past.iter().flat_map(move |(_, place)| place.find(store));
        let allowed: BTreeSet<String> = past(before)
            .chain(past(after))
            .filter(|path| !declared.contains(path) && !self.foreign.contains_key(path))
            .collect();
        let lost = before.keys().filter(|path| !after.contains_key(*path));
        let sent = log.iter().filter(|request| request.method == "DELETE" && request.status < 300);
        let deleted: BTreeSet<&String> = lost.chain(sent.map(|request| &request.path)).collect();
        let wrong = deleted.into_iter().filter(|path| !allowed.contains(*path));
        wrong.map(|path| format!("{path} was deleted")).collect()
    }

    fn declared_paths(&self, store: &Store) -> Vec<String> {
        self.tip.declared.values().flat_map(|declared| declared.place.find(store)).collect()
    }

    /// Resources that exist twice, or where neither Git nor another client put them.
    fn strays(&self, after: &Store) -> Vec<String> {
        let past = self.past.iter().flat_map(|(_, place)| place.find(after));
        let known: BTreeSet<String> = past.chain(self.declared_paths(after)).collect();
        let strays = after.keys().filter(|path| !known.contains(*path) && !self.foreign.contains_key(*path));
        let mut found: Vec<String> =
            strays.map(|path| format!("{path} was made and is not declared")).collect();
        if self.duplicates(after) > 0 {
            let twice = self.past.iter().map(|(path, place)| (path, place.find(after)));
            let twice = twice.filter(|(_, paths)| paths.len() > 1);
            found.extend(twice.map(|(path, paths)| format!("{path} exists at {paths:?}")));
        }
        found
    }

    pub fn duplicates(&self, store: &Store) -> usize {
        self.past.iter().map(|(_, place)| place.find(store).len().saturating_sub(1)).sum()
    }

    /// How the server differs from what Git declares, though a run says that it does not.
    fn unfinished(&mut self, after: &Store, report: &Report) -> Vec<String> {
        let mut found = Vec::new();
        for (path, declared) in &self.tip.declared {
            let there = declared.place.find(after);
            match there.first().and_then(|at| after.get(at)) {
                None => found.push(format!("{path} is missing in spite of success")),
                Some(now) if !shows(now, &declared.body) => {
                    found.push(format!("{path} is {now} in spite of success"));
                }
                Some(_) => {}
            }
        }
        let declared = self.declared_paths(after);
        for (path, place) in &self.past {
            let kept = report.kept.iter().any(|kept| kept.path.as_str() == path);
            let left = place.find(after).into_iter().find(|at| !declared.contains(at));
            if let Some(at) = left.filter(|at| !kept && !self.foreign.contains_key(at)) {
                self.lost_deletes += 1;
                found.push(format!("{path} is left at {at} in spite of success"));
            }
        }
        found
    }
}

/// Whether `now` has all members of `declared` as they are declared.
fn shows(now: &Value, declared: &Value) -> bool {
    match declared.as_object() {
        Some(members) => members.iter().all(|(name, value)| now.get(name) == Some(value)),
        None => now == declared,
    }
}
