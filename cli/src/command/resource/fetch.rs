//! Reads the resources to save from the server.

use std::sync::Arc;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::path::{LogicalPath, RawPath};
use declarest_core::sync::Remote;

use super::read::{self, Read, View};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::target::Target;
use crate::workspace::Workspace;

/// Reads the resources that `target` names. Each `_` matches the members of the collection before it. Paths that do
/// not exist are then skipped; if none exists, this is an error.
pub async fn fetch(
    workspace: &Workspace<'_>,
    target: &RawPath,
    view: View<'_>,
    invocation: &Invocation,
) -> Result<Vec<(LogicalPath, Read)>, Failure> {
    let paths = expand(&workspace.remote()?, target).await?;
    let several = has_wildcard(target);
    let mut fetched = Vec::new();
    for path in paths {
        let one = Target { path, explicit_collection: target.explicit_collection };
        match read::remote(workspace, &one, view, invocation).await {
            Ok(found) => fetched.push((one.path, found)),
            Err(failure) if several && failure.category() == Category::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    if fetched.is_empty() {
        let message = format!("{} not found: no resource of the server matches it", target.as_str());
        return Err(Failure::new(Category::NotFound, message));
    }
    Ok(fetched)
}

/// Returns whether a path has a `_`, which matches resources of the server.
pub fn has_wildcard(target: &RawPath) -> bool {
    target.as_str().split('/').any(|segment| segment == "_")
}

/// Returns the paths that `target` matches, sorted.
async fn expand(remote: &Arc<Remote>, target: &RawPath) -> Result<Vec<LogicalPath>, Failure> {
    let mut paths = vec![LogicalPath::root()];
    for segment in target.as_str().split('/').filter(|segment| !segment.is_empty()) {
        let mut below = Vec::new();
        for path in paths {
            if segment != "_" {
                below.push(path.child(segment)?);
                continue;
            }
            match remote.list(&path).await {
                Ok(members) => {
                    let direct = members.entries.into_keys().filter(|member| path.child_of(member).is_some());
                    below.extend(direct);
                }
                Err(error) if error.category() == Category::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        paths = below;
    }
    Ok(paths)
}
