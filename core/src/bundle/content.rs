//! Reads and validates the content of an unpacked bundle.

use std::path::{Path, PathBuf};

use semver::Version;
use sha2::{Digest, Sha256};
use url::Url;

use super::archive::MAX_FILE;
use super::manifest::{Manifest, OpenApiSource};
use super::{Build, BundleError};
use crate::digest::sha256;
use crate::metadata::read;
use crate::payload::PayloadType;
use crate::repository::{DirTree, EntryKind, RepositoryError, Tree};

/// The file name of the manifest.
pub const MANIFEST: &str = "bundle.yaml";

const DOCUMENTS: [(&str, PayloadType); 2] =
    [("metadata.yaml", PayloadType::Yaml), ("metadata.json", PayloadType::Json)];
const OPENAPI: [&str; 3] = ["openapi.yaml", "openapi.yml", "openapi.json"];

/// The location of the server's `OpenAPI` document, as the bundle states it. The server's own setting takes
/// precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenApiHint {
    /// A file of the bundle.
    File(PathBuf),
    /// An http or https URL.
    Url(Url),
}

/// The values that a bundle is checked against.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The reference, for messages.
    pub bundle: String,
    /// The requested name and version, if the reference states them.
    pub identity: Option<(String, Version)>,
    /// The build of `DeclaREST` that uses the bundle.
    pub build: Build,
}

/// A bundle's files, with a valid and compatible manifest.
#[derive(Debug)]
pub(super) struct Content {
    pub manifest: Manifest,
    pub root: PathBuf,
    pub metadata_root: PathBuf,
    pub openapi: Option<OpenApiHint>,
    tree: DirTree,
}

impl Content {
    /// Reads and checks the manifest of the bundle in the directory `root`. At least one metadata document must exist;
    /// documents are not read.
    pub fn read(root: &Path, expected: &Expected) -> Result<Self, BundleError> {
        let files = |source| BundleError::Files { bundle: expected.bundle.clone(), source };
        let tree = DirTree::open(root).map_err(files)?;
        let bytes = tree.read(MANIFEST).map_err(files)?;
        let bytes = bytes.ok_or_else(|| BundleError::NoManifest(expected.bundle.clone()))?;
        let manifest = Manifest::decode(&bytes).map_err(|source| BundleError::Manifest {
            bundle: expected.bundle.clone(),
            source: source.into(),
        })?;
        expected.check(&manifest)?;
        if tree.entries(&manifest.metadata_root).map_err(files)?.is_none() {
            let reason =
                format!("metadataRoot \"{}\" is not a directory in the bundle", manifest.metadata_root);
            return Err(expected.refuse(reason));
        }
        let mut documents = Walk::new(&tree, &manifest.metadata_root)
            .filter(|file| file.as_ref().map_or(true, |file| document_type(file).is_some()));
        if documents.next().transpose().map_err(files)?.is_none() {
            let reason = format!(
                "metadataRoot \"{}\" holds no metadata.yaml or metadata.json",
                manifest.metadata_root
            );
            return Err(expected.refuse(reason));
        }
        drop(documents);
        let openapi = openapi(&tree, root, &manifest, expected)?;
        let metadata_root = root.join(&manifest.metadata_root);
        Ok(Self { manifest, root: root.to_owned(), metadata_root, openapi, tree })
    }

    /// Decodes and validates every metadata document.
    pub fn validate(&self, expected: &Expected) -> Result<(), BundleError> {
        let root = &self.manifest.metadata_root;
        for file in Walk::new(&self.tree, root) {
            let file = expected.readable(file)?;
            let Some(payload_type) = document_type(&file) else { continue };
            let bytes = expected.readable(self.tree.read(&file))?.unwrap_or_default();
            let directory = file.rsplit('/').nth(1);
            read(payload_type, &bytes, directory == Some("_")).map_err(|source| {
                let file = file.strip_prefix(root.as_str()).unwrap_or(&file).trim_start_matches('/');
                BundleError::Document {
                    bundle: expected.bundle.clone(),
                    file: file.to_owned(),
                    source: source.into(),
                }
            })?;
        }
        Ok(())
    }

    /// Returns a digest of the files that have an effect: the manifest, the metadata tree and the `OpenAPI` file.
    pub fn digest(&self, expected: &Expected) -> Result<String, BundleError> {
        let mut digest = Sha256::new();
        let mut add = |name: &str, bytes: &[u8]| {
            for part in [name.as_bytes(), bytes] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
        };
        let own = [Ok(MANIFEST.to_owned())].into_iter();
        for file in own.chain(Walk::new(&self.tree, &self.manifest.metadata_root)) {
            let file = expected.readable(file)?;
            add(&file, &expected.readable(self.tree.read_within(&file, MAX_FILE))?.unwrap_or_default());
        }
        if let Some(OpenApiHint::File(file)) = &self.openapi {
            add("openapi", &std::fs::read(file).map_err(BundleError::io("read", file))?);
        }
        Ok(sha256(digest))
    }
}

impl Expected {
    fn readable<T>(&self, read: Result<T, RepositoryError>) -> Result<T, BundleError> {
        read.map_err(|source| BundleError::Files { bundle: self.bundle.clone(), source })
    }

    fn check(&self, manifest: &Manifest) -> Result<(), BundleError> {
        if let Some((name, version)) = &self.identity
            && (name, version) != (&manifest.name, &manifest.version)
        {
            let reason = format!("its manifest states {} {}", manifest.name, manifest.version);
            return Err(self.refuse(reason));
        }
        match (&manifest.compatible_declarest, self.build.compared()) {
            (Some(constraint), Some(version)) if !constraint.matches(&version) => {
                Err(BundleError::Incompatible {
                    bundle: self.bundle.clone(),
                    constraint: constraint.text().to_owned(),
                    version: version.to_string(),
                })
            }
            _ => Ok(()),
        }
    }

    fn refuse(&self, reason: String) -> BundleError {
        BundleError::Content { bundle: self.bundle.clone(), reason }
    }
}

/// Returns the manifest's hint, otherwise the first `OpenAPI` document at the root, in metadataRoot, or elsewhere.
fn openapi(
    tree: &DirTree,
    root: &Path,
    manifest: &Manifest,
    expected: &Expected,
) -> Result<Option<OpenApiHint>, BundleError> {
    let files = |source| BundleError::Files { bundle: expected.bundle.clone(), source };
    match &manifest.openapi {
        Some(OpenApiSource::Url(url)) => return Ok(Some(OpenApiHint::Url(url.clone()))),
        Some(OpenApiSource::File(file)) => {
            let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
            if !has_file(tree, directory, name).map_err(files)? {
                return Err(
                    expected.refuse(format!("declarest.openapi \"{file}\" is not a file in the bundle"))
                );
            }
            return Ok(Some(OpenApiHint::File(root.join(file))));
        }
        None => {}
    }
    for directory in ["", &manifest.metadata_root] {
        for name in OPENAPI {
            if has_file(tree, directory, name).map_err(files)? {
                return Ok(Some(OpenApiHint::File(root.join(directory).join(name))));
            }
        }
    }
    for file in Walk::new(tree, "") {
        let file = file.map_err(files)?;
        if OPENAPI.contains(&file.rsplit('/').next().unwrap_or_default()) {
            return Ok(Some(OpenApiHint::File(root.join(file))));
        }
    }
    Ok(None)
}

fn has_file(tree: &DirTree, directory: &str, name: &str) -> Result<bool, RepositoryError> {
    let entries = tree.entries(directory)?.unwrap_or_default();
    Ok(entries.iter().any(|entry| entry.kind == EntryKind::File && entry.name == name))
}

fn document_type(file: &str) -> Option<PayloadType> {
    let name = file.rsplit('/').next().unwrap_or_default();
    DOCUMENTS.iter().find(|(document, _)| *document == name).map(|(_, payload_type)| *payload_type)
}

/// An iterator over the regular files below a directory, in lexicographic order. Links are not followed.
struct Walk<'t> {
    tree: &'t DirTree,
    /// The files and directories still to visit; the last one is next.
    pending: Vec<(String, EntryKind)>,
}

impl<'t> Walk<'t> {
    fn new(tree: &'t DirTree, directory: &str) -> Self {
        Self { tree, pending: vec![(directory.to_owned(), EntryKind::Directory)] }
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<String, RepositoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((name, kind)) = self.pending.pop() {
            match kind {
                EntryKind::File => return Some(Ok(name)),
                EntryKind::Directory => match self.tree.entries(&name) {
                    Ok(entries) => {
                        let child = |entry: crate::repository::Entry| {
                            let path =
                                if name.is_empty() { entry.name } else { format!("{name}/{}", entry.name) };
                            (path, entry.kind)
                        };
                        self.pending.extend(entries.unwrap_or_default().into_iter().rev().map(child));
                    }
                    Err(error) => return Some(Err(error)),
                },
                EntryKind::Other | EntryKind::NotUtf8 { .. } => {}
            }
        }
        None
    }
}
