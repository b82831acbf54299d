//! Sidecars: files beside a payload that hold the text of some of its attributes.

use super::layout::check_content;
use super::payload_name::is_reserved_directory;
use super::tree::join;
use super::{RepositoryError, Tree};
use crate::path::LogicalPath;

/// The text of one attribute, stored in a separate file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    /// The file relative to the directory of the payload.
    pub file: String,
    /// The content.
    pub content: Vec<u8>,
}

/// Returns the content of a sidecar of the resource at `path`; `None` if there is no such file. `file` is relative to
/// the directory of the payload and must be one that [`sidecar_file`] accepts.
pub fn read_sidecar(
    tree: &dyn Tree,
    path: &LogicalPath,
    file: &str,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    let file = beside(path, file)?;
    let content = tree.read(&file)?;
    content.map(|content| check_content(&file, &content).map(|()| content)).transpose()
}

/// Returns the name of a sidecar relative to the root.
pub(super) fn beside(path: &LogicalPath, file: &str) -> Result<String, RepositoryError> {
    let clean = sidecar_file(file).map_err(|reason| RepositoryError::SidecarName {
        path: path.clone(),
        file: file.to_owned(),
        reason,
    })?;
    Ok(join(path.relative(), &clean))
}

/// Returns the path of a sidecar relative to its payload: trimmed, without `.`, `..` and empty segments. `Err` is the
/// reason why it is rejected: it leaves the directory, or its name is reserved in the repository.
pub fn sidecar_file(file: &str) -> Result<String, &'static str> {
    let file = file.trim();
    if file.is_empty() {
        return Err("is empty");
    }
    if file.starts_with('/') {
        return Err("is absolute; write it relative to the payload");
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in file.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop().ok_or("leaves the directory of the payload")?;
            }
            "_" => return Err("has the segment \"_\", which is reserved"),
            _ if is_reserved_directory(segment) => {
                return Err("has the segment \".git\", which belongs to Git");
            }
            _ => segments.push(segment),
        }
    }
    let base = segments.last().ok_or("is not the name of a file")?.to_ascii_lowercase();
    if base.starts_with("resource.") || base.starts_with("defaults") {
        return Err("is named like a payload or a defaults file");
    }
    if matches!(base.as_str(), "metadata.yaml" | "metadata.json") {
        return Err("is named like a metadata document");
    }
    Ok(segments.join("/"))
}
