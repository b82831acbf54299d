//! Stores metadata documents, and the defaults files beside them, without interpreting them.

use super::Store;
use super::disk::{Pending, remove};
use crate::path::Selector;
use crate::payload::PayloadType;
use crate::repository::payload_name::is_defaults;
use crate::repository::tree::join;
use crate::repository::{RepositoryError, Tree};

/// A stored metadata document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFile {
    /// The file relative to the root.
    pub file: String,
    /// YAML or JSON, by the extension.
    pub format: PayloadType,
    /// The content.
    pub content: Vec<u8>,
}

/// A defaults file that a document includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultsFile {
    /// The name of the file, which is in the directory of the document.
    pub name: String,
    /// The content.
    pub content: Vec<u8>,
}

/// The changes to defaults files that belong to a change of their document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultsEdit {
    /// The file to write before the document that includes it.
    pub write: Option<DefaultsFile>,
    /// Names of files to remove after the document no longer includes them. They may be absent.
    pub obsolete: Vec<String>,
}

impl Store {
    /// Reads the document of a selector. `metadata.yaml` takes precedence over `metadata.json`. Fails with
    /// [`RepositoryError::MetadataMissing`] if there is none.
    pub fn read_metadata(&self, selector: &Selector) -> Result<DocumentFile, RepositoryError> {
        let stem = selector.document_stem();
        for (extension, format) in [("yaml", PayloadType::Yaml), ("json", PayloadType::Json)] {
            let file = format!("{stem}.{extension}");
            if let Some(content) = self.tree().read(&file)? {
                return Ok(DocumentFile { file, format, content });
            }
        }
        Err(RepositoryError::MetadataMissing(stem))
    }

    /// Reads a defaults file beside the document of a selector; `None` if it is absent.
    pub fn read_defaults(&self, selector: &Selector, name: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.tree().read(&defaults_beside(selector, name)?)
    }

    /// Writes the document of a selector as `metadata.yaml` and applies `edit` to the defaults files. The defaults
    /// file is written first, and files are removed last, including `metadata.json`. `yaml` gets a final newline if
    /// it has none. Returns the file.
    pub fn write_metadata(
        &self,
        selector: &Selector,
        yaml: &[u8],
        edit: &DefaultsEdit,
    ) -> Result<String, RepositoryError> {
        let stem = selector.document_stem();
        let (file, mut content) = (format!("{stem}.yaml"), yaml.to_vec());
        if content.last() != Some(&b'\n') {
            content.push(b'\n');
        }
        let mut pending = Vec::new();
        if let Some(defaults) = &edit.write {
            let name = defaults_beside(selector, &defaults.name)?;
            pending.push(Pending::new(self.tree(), &name, &defaults.content)?);
        }
        pending.push(Pending::new(self.tree(), &file, &content)?);
        let written = edit.write.as_ref().map(|defaults| &defaults.name);
        let mut obsolete = vec![self.tree().place(&format!("{stem}.json"))?];
        for name in edit.obsolete.iter().filter(|name| Some(*name) != written) {
            obsolete.push(self.tree().place(&defaults_beside(selector, name)?)?);
        }
        pending.iter().try_for_each(Pending::write)?;
        remove(self.tree(), &obsolete)?;
        Ok(file)
    }

    /// Deletes the document of a selector in any format, then the defaults files with these names. Fails with
    /// [`RepositoryError::MetadataMissing`] if there is no document.
    pub fn delete_metadata(&self, selector: &Selector, defaults: &[String]) -> Result<(), RepositoryError> {
        self.read_metadata(selector)?;
        let stem = selector.document_stem();
        let mut obsolete = Vec::new();
        for extension in ["yaml", "json"] {
            obsolete.push(self.tree().place(&format!("{stem}.{extension}"))?);
        }
        for name in defaults {
            obsolete.push(self.tree().place(&defaults_beside(selector, name)?)?);
        }
        remove(self.tree(), &obsolete)
    }
}

/// Returns the name, relative to the root, of a defaults file beside the document of a selector.
fn defaults_beside(selector: &Selector, name: &str) -> Result<String, RepositoryError> {
    if !is_defaults(name) {
        return Err(RepositoryError::DefaultsName(name.to_owned()));
    }
    let stem = selector.document_stem();
    let (directory, _) = stem.rsplit_once('/').unwrap_or_default();
    Ok(join(directory, name))
}
