//! Finds files whose name suggests an effect that they do not have.

use std::fmt;

use super::metadata_files::is_wildcard;
use super::payload_name::{is_defaults, is_inert, is_metadata, is_payload, is_reserved_directory};
use super::{Entry, EntryKind, RepositoryError, Tree};
use crate::payload::{Descriptor, PayloadType};

/// Returns the defaults files that the content of a metadata document includes; `None` if it cannot be decoded.
pub type Includes<'f> = &'f dyn Fn(PayloadType, &[u8]) -> Option<Vec<String>>;

/// A file that has no effect in its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedFile {
    /// The file relative to the root of the tree.
    pub file: String,
    /// The reason.
    pub reason: Unused,
}

/// The reason why a file has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// A payload in the root, which is never a resource.
    RootPayload,
    /// A metadata document with the extension `yml`, which is not supported.
    MetadataName,
    /// A metadata document of a resource below `_` or a glob. Only those of collections match several paths.
    ResourceOfSeveral,
    /// A defaults file that the metadata document next to it does not include.
    Defaults,
    /// A link in place of a payload, a metadata document or a directory, or another special file.
    Special,
}

impl fmt::Display for UnusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            Unused::RootPayload => "the root is never a resource; move it into a directory of its own",
            Unused::MetadataName => "metadata is read from metadata.yaml and metadata.json; rename it",
            Unused::ResourceOfSeveral => {
                "below \"_\" or a glob, only the documents of collections apply; move it into the directory _ beside it"
            }
            Unused::Defaults => "no metadata document next to it includes it; include it, or remove it",
            Unused::Special => {
                "links to directories, payloads and metadata are not followed, and special files are not read; replace it"
            }
        };
        write!(f, "{} has no effect: {reason}", self.file)
    }
}

/// Returns the files of a tree that have no effect although their name suggests one, sorted.
///
/// Directories whose name starts with a dot are skipped, because they belong to other tools. Defaults next to a
/// metadata document that cannot be read are skipped, because its includes are unknown.
pub fn unused_files(tree: &dyn Tree, includes: Includes<'_>) -> Result<Vec<UnusedFile>, RepositoryError> {
    let (mut unused, mut pending) = (Vec::new(), vec![String::new()]);
    while let Some(directory) = pending.pop() {
        let entries = tree.entries(&directory)?.unwrap_or_default();
        let place =
            |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        let names = entries.iter().filter(|entry| entry.kind == EntryKind::File);
        let names: Vec<&str> = names.map(|entry| entry.name.as_str()).collect();
        let is_of_several =
            directory.split('/').any(is_wildcard) && directory.rsplit('/').next() != Some("_");
        let included = included(tree, &names, &place, includes)?;
        let is_included =
            |name: &str| included.as_ref().is_none_or(|files| files.iter().any(|file| file == name));
        for name in names {
            let reason = match name {
                "metadata.yml" => Unused::MetadataName,
                "metadata.yaml" | "metadata.json" if is_of_several => Unused::ResourceOfSeveral,
                name if directory.is_empty() && is_payload(name) => Unused::RootPayload,
                name if looks_like_defaults(name) && !is_included(name) => Unused::Defaults,
                _ => continue,
            };
            unused.push(UnusedFile { file: place(name), reason });
        }
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Other && !is_inert(&entry.name)) {
            let file = place(&entry.name);
            let is_named = is_payload(&entry.name) || is_metadata(&entry.name);
            // A link to a file may be included by a payload.
            if is_named || matches!(tree.read(&file), Ok(None) | Err(RepositoryError::SymlinkEscape(_))) {
                unused.push(UnusedFile { file, reason: Unused::Special });
            }
        }
        pending.extend(entries.iter().filter(|entry| is_ours(entry)).map(|entry| place(&entry.name)));
    }
    unused.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(unused)
}

fn is_ours(entry: &Entry) -> bool {
    let reserved = is_reserved_directory(&entry.name) && entry.name != "_";
    entry.kind == EntryKind::Directory && !entry.name.starts_with('.') && !reserved
}

/// Returns whether `name` looks like a defaults file, even with an unsupported extension.
fn looks_like_defaults(name: &str) -> bool {
    name.starts_with("defaults.") || is_defaults(name)
}

/// Returns the defaults files that the metadata document in a directory includes; `None` if it cannot be read.
fn included(
    tree: &dyn Tree,
    names: &[&str],
    place: &dyn Fn(&str) -> String,
    includes: Includes<'_>,
) -> Result<Option<Vec<String>>, RepositoryError> {
    let found = ["metadata.yaml", "metadata.json"].into_iter().find(|name| names.contains(name));
    let Some(name) = found else { return Ok(Some(Vec::new())) };
    let content = tree.read(&place(name))?.unwrap_or_default();
    let extension = name.trim_start_matches("metadata.");
    Ok(includes(Descriptor::from_extension(extension).payload_type, &content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::document::Document;
    use crate::repository::DirTree;

    #[test]
    fn only_files_without_effect_are_found() {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in [
            ("resource.yaml", ""),
            ("metadata.yml", ""),
            ("README.md", ""),
            (".github/metadata.yml", ""),
            (".git/defaults.yaml", ""),
            ("shops/_/metadata.yaml", "resource: {defaults: {value: '{{include defaults.yaml}}'}}"),
            ("shops/_/defaults.yaml", "a: 1"),
            ("shops/_/defaults-prod.json", "{}"),
            ("shops/rio/resource.yaml", ""),
            (
                "shops/rio/metadata.json",
                r#"{"resource": {"defaults": {"profiles": {"prod": "{{include defaults-prod.json}}"}}}}"#,
            ),
            ("shops/rio/defaults-prod.json", "{}"),
            ("shops/rio/defaults.ini", ""),
            ("shops/ava/defaults.yaml", ""),
            ("shops/ava/defaultsx.yaml", ""),
            ("shops/_/tills/_/metadata.yml", ""),
            ("shops/_/profile/metadata.yaml", "resource: {singleton: true}"),
            ("shops/r*/metadata.json", "{}"),
            ("shops/r*/_/metadata.json", "{}"),
            ("shops/broken/metadata.yaml", "resource: ["),
            ("shops/broken/defaults.yaml", ""),
        ] {
            let place = root.path().join(file);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, content).unwrap();
        }
        let includes = |payload_type: PayloadType, content: &[u8]| {
            Document::decode(payload_type, content).ok().map(|document| document.defaults_files())
        };
        let unused = unused_files(&DirTree::open(root.path()).unwrap(), &includes).unwrap();
        let lines: Vec<_> = unused.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        metadata.yml has no effect: metadata is read from metadata.yaml and metadata.json; rename it
        resource.yaml has no effect: the root is never a resource; move it into a directory of its own
        shops/_/defaults-prod.json has no effect: no metadata document next to it includes it; include it, or remove it
        shops/_/profile/metadata.yaml has no effect: below "_" or a glob, only the documents of collections apply; move it into the directory _ beside it
        shops/_/tills/_/metadata.yml has no effect: metadata is read from metadata.yaml and metadata.json; rename it
        shops/ava/defaults.yaml has no effect: no metadata document next to it includes it; include it, or remove it
        shops/r*/metadata.json has no effect: below "_" or a glob, only the documents of collections apply; move it into the directory _ beside it
        shops/rio/defaults.ini has no effect: no metadata document next to it includes it; include it, or remove it
        "#);
    }
}
