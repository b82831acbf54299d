//! Refs that keep commits of the mirror readable after changes of the branch.

use super::git_tree::root_of;
use super::objects::{check_history, tips};
use super::{Mirror, RepositoryError, Revision, handles};

/// The prefix of the refs of pins.
const PINS: &str = "refs/declarest/pins/";

/// The digits of a number in a series. They make names sort like numbers.
const WIDTH: usize = 8;

/// A pin of a series: its number, its name and its commit.
type Numbered = (u64, String, Revision);

impl Mirror {
    /// Keeps `revision` readable under `name` during later fetches and garbage collections. An existing pin of this
    /// name moves.
    pub fn pin(&self, name: &str, revision: &Revision) -> Result<(), RepositoryError> {
        let reference = pin_ref(name)?;
        self.with(|repository| {
            let (id, failed) =
                (revision.oid()?, || RepositoryError::git(format!("pin revision {revision} as {name}")));
            root_of(repository, revision)?;
            check_history(repository, id, &tips(repository).map_err(failed())?)?;
            repository.reference(&reference, id, true, "pin").map(drop).map_err(failed())
        })
    }

    /// Removes a pin. An absent pin is not an error.
    pub fn unpin(&self, name: &str) -> Result<(), RepositoryError> {
        let reference = pin_ref(name)?;
        self.with(|repository| {
            let removed = repository.find_reference(&reference).and_then(|mut found| found.delete());
            handles::found(removed).map(drop).map_err(RepositoryError::git(format!("remove the pin {name}")))
        })
    }

    /// Returns all pins, sorted by name.
    pub fn pins(&self) -> Result<Vec<(String, Revision)>, RepositoryError> {
        self.pins_below("")
    }

    /// Returns the pins whose names begin with `prefix`, sorted by name.
    pub fn pins_below(&self, prefix: &str) -> Result<Vec<(String, Revision)>, RepositoryError> {
        // An invalid name must not be part of the pattern, either.
        pin_ref(&format!("{prefix}x"))?;
        let glob = format!("{PINS}{prefix}*");
        self.with(|repository| {
            let failed = || RepositoryError::git("list the pins of the mirror");
            let mut pins = Vec::new();
            for reference in repository.references_glob(&glob).map_err(failed())? {
                let reference = reference.map_err(failed())?;
                let name = String::from_utf8_lossy(reference.name_bytes());
                if let (Some(name), Some(id)) = (name.strip_prefix(PINS), reference.target()) {
                    pins.push((name.to_owned(), Revision::of(id)));
                }
            }
            pins.sort();
            Ok(pins)
        })
    }

    /// Pins `revision` as the newest of a series. The `keep` newest revisions of the series stay pinned. A revision
    /// that is already in the series moves to its end.
    pub fn pin_newest(&self, series: &str, revision: &Revision, keep: usize) -> Result<(), RepositoryError> {
        let pinned = self.numbered(series)?;
        if pinned.last().is_some_and(|(_, _, newest)| newest == revision) {
            return Ok(());
        }
        let number = pinned.last().map_or(0, |(number, _, _)| number.saturating_add(1));
        self.pin(&format!("{series}/{number:0WIDTH$}-{revision}"), revision)?;
        let (again, others): (Vec<_>, Vec<_>) =
            pinned.into_iter().partition(|(_, _, pinned)| pinned == revision);
        let surplus = (others.len() + 1).saturating_sub(keep);
        again.iter().chain(others.iter().take(surplus)).try_for_each(|(_, name, _)| self.unpin(name))
    }

    /// Returns the revisions of a series, newest first.
    pub fn series(&self, series: &str) -> Result<Vec<Revision>, RepositoryError> {
        Ok(self.numbered(series)?.into_iter().rev().map(|(_, _, revision)| revision).collect())
    }

    /// Removes all pins whose names begin with `prefix` and a slash.
    pub fn unpin_below(&self, prefix: &str) -> Result<(), RepositoryError> {
        self.pins_below(&format!("{prefix}/"))?.iter().try_for_each(|(name, _)| self.unpin(name))
    }

    /// Returns the pins of a series, oldest first.
    fn numbered(&self, series: &str) -> Result<Vec<Numbered>, RepositoryError> {
        let prefix = format!("{series}/");
        let pins = self.pins_below(&prefix)?.into_iter();
        let mut numbered: Vec<Numbered> = pins
            .filter_map(|(name, revision)| {
                let (number, _) = name.strip_prefix(&prefix)?.split_once('-')?;
                Some((number.parse().ok()?, name, revision))
            })
            .collect();
        numbered.sort();
        Ok(numbered)
    }
}

/// Returns the ref of a pin.
fn pin_ref(name: &str) -> Result<String, RepositoryError> {
    let reference = format!("{PINS}{name}");
    if git2::Reference::is_valid_name(&reference) {
        Ok(reference)
    } else {
        Err(RepositoryError::InvalidPin(name.to_owned()))
    }
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
