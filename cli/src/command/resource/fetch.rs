//! Reading from the server what is to be kept.

use std::sync::Arc;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::metadata::MetadataError;
use declarest_core::path::{LogicalPath, RawPath};
use declarest_core::payload::Value;
use declarest_core::sync::{Remote, SyncError};

use crate::error::Failure;

/// What the server has at a path.
pub enum Fetched {
    /// A resource, or a collection as one value.
    Payload(Value),
    /// The members of a collection by their paths.
    Members(Vec<(LogicalPath, Value)>),
}

/// Reads what `target` names. Each `_` in it stands for the members of the collection before it; what then does
/// not exist is left out, unless nothing does.
pub async fn fetch(remote: &Arc<Remote>, target: &RawPath) -> Result<Vec<(LogicalPath, Fetched)>, Failure> {
    let paths = expand(remote, target).await?;
    let several = target.as_str().split('/').any(|segment| segment == "_");
    let mut fetched = Vec::new();
    for path in paths {
        match fetch_one(remote, &path, target.explicit_collection).await {
            Ok(found) => fetched.push((path, found)),
            Err(error) if several && error.category() == Category::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    if fetched.is_empty() {
        let message = format!("{} not found: the server has nothing that it stands for", target.as_str());
        return Err(Failure::Failed { category: Category::NotFound, message });
    }
    Ok(fetched)
}

async fn fetch_one(
    remote: &Arc<Remote>,
    path: &LogicalPath,
    explicit_collection: bool,
) -> Result<Fetched, SyncError> {
    if explicit_collection {
        match remote.list(path).await {
            Ok(members) => {
                let members = members.entries.into_iter().map(|(path, entry)| (path, entry.payload));
                return Ok(Fetched::Members(members.collect()));
            }
            // It may be a resource after all.
            Err(SyncError::Metadata(MetadataError::ListShape { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Fetched::Payload(remote.get(path).await?.payload.unwrap_or_default()))
}

/// The paths that `target` stands for, sorted.
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
