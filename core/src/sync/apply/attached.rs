//! Candidates to which failed resources still refer on the server: without their update, the server may delete both.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Execution;
use crate::language::reference::references;
use crate::path::LogicalPath;
use crate::repository::Tree;
use crate::sync::model::{Candidate, PRUNE};
use crate::sync::observe::former_payload;
use crate::sync::tasks::blocking;

impl Execution {
    /// Returns the candidates to which a declared resource that failed in this run referred in a revision that declared
    /// candidates, each with the resource.
    pub(super) async fn attached(&self) -> HashMap<LogicalPath, LogicalPath> {
        let failures = self.report.failures.iter().filter(|failure| failure.operation != PRUNE);
        let failed: BTreeSet<LogicalPath> = failures.map(|failure| failure.path.clone()).collect();
        let trees = trees(self.pruning.candidates.values());
        if failed.is_empty() || trees.is_empty() {
            return HashMap::new();
        }
        let referred = blocking(LogicalPath::root(), move || {
            let pairs = failed.iter().flat_map(|path| trees.iter().map(move |tree| (path, tree)));
            let of = |(path, tree): (&LogicalPath, &Arc<dyn Tree>)| {
                let payload = former_payload(tree.as_ref(), path).ok().flatten().unwrap_or_default();
                let paths = references(&payload).unwrap_or_default().into_iter();
                paths.map(|(_, reference)| (reference.path, path.clone())).collect::<Vec<_>>()
            };
            Ok(pairs.flat_map(of).collect::<HashMap<_, _>>())
        });
        let mut attached = referred.await.unwrap_or_default();
        attached.retain(|path, _| self.pruning.candidates.contains_key(path));
        attached
    }
}

/// Returns the revisions that declared these candidates last.
fn trees<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Vec<Arc<dyn Tree>> {
    let trees = candidates.filter_map(|candidate| candidate.declared_in.clone());
    let by_revision: BTreeMap<_, _> =
        trees.map(|tree| (tree.revision().map(|it| it.to_string()), tree)).collect();
    by_revision.into_values().collect()
}
