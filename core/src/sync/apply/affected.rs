//! Finds the resources that the deletion of others may concern: many servers delete them together.

use std::collections::{BTreeSet, HashSet};

use crate::path::LogicalPath;
use crate::repository;
use crate::sync::model::{Scope, Session, SyncError, WrittenValues};
use crate::sync::observe::desired;

/// Returns the resources that `scope` declares below those that are `replaced`, or that depend on them, directly or by
/// others of the result. Blocks.
pub fn affected(
    session: &Session,
    scope: &Scope,
    replaced: BTreeSet<LogicalPath>,
) -> Result<BTreeSet<LogicalPath>, SyncError> {
    let listing = repository::resources(session.tree.as_ref(), &scope.path, scope.recursive)?;
    let mut others = Vec::new();
    for file in listing.resources {
        if !replaced.contains(&file.path) {
            let path = file.path.clone();
            // What cannot be read was not applied.
            let dependencies = desired(session, file).and_then(|desired| desired.depends_on());
            others.push((path, dependencies.unwrap_or_default()));
        }
    }
    let mut touched: HashSet<LogicalPath> = HashSet::new();
    // A path of a collection stands for everything below it.
    let mut above: HashSet<LogicalPath> = HashSet::new();
    let mut result = BTreeSet::new();
    let mut next: Vec<LogicalPath> = replaced.into_iter().collect();
    while !next.is_empty() {
        for path in next.drain(..) {
            above.extend(path.ancestors());
            touched.insert(path);
        }
        others.retain(|(path, dependencies)| {
            let is_below = path.ancestors().any(|ancestor| touched.contains(&ancestor));
            // A path above the resource itself stands for its parents.
            let mut stated = dependencies.iter().filter(|on| !path.is_within(on));
            let depends = stated.any(|on| touched.contains(on) || above.contains(on));
            if is_below || depends {
                next.push(path.clone());
            }
            !is_below && !depends
        });
        result.extend(next.iter().cloned());
    }
    Ok(result)
}

/// Removes the records of the resource at `path`, which was deleted, and of those that are declared below it: the server may
/// have deleted them, too, and a new parent may get others. Blocks.
pub fn forget_written(session: &Session, written: &WrittenValues, path: &LogicalPath) {
    written.forget(path);
    // What cannot be listed was not applied.
    let below = repository::resources(session.tree.as_ref(), path, true).unwrap_or_default();
    for file in below.resources {
        written.forget(&file.path);
    }
}
