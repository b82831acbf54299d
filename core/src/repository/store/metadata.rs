//! Metadata documents, and the defaults files beside them. What they say is for others to know.

use super::Store;
use super::disk::{Pending, remove};
use crate::path::Selector;
use crate::payload::PayloadType;
use crate::repository::payload_name::is_defaults;
use crate::repository::tree::join;
use crate::repository::{RepositoryError, Tree};

/// A metadata document as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFile {
    /// The file relative to the root.
    pub file: String,
    /// YAML or JSON, as the extension says.
    pub format: PayloadType,
    /// What it holds.
    pub content: Vec<u8>,
}

/// A file of defaults that a document includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultsFile {
    /// The name beside the document.
    pub name: String,
    /// What it holds.
    pub content: Vec<u8>,
}

/// What a change of a document means for the defaults files beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultsEdit {
    /// What to write before the document that includes it.
    pub write: Option<DefaultsFile>,
    /// Names of files to remove once nothing includes them; they need not exist.
    pub obsolete: Vec<String>,
}

impl Store {
    /// The document of a selector; `metadata.yaml` wins over `metadata.json`. Fails with
    /// [`RepositoryError::MetadataMissing`] if there is none.
    pub fn read_metadata(&self, selector: &Selector) -> Result<DocumentFile, RepositoryError> {
        let stem = selector.document_stem();
        for (extension, format) in [("yaml", PayloadType::Yaml), ("json", PayloadType::Json)] {
            let file = format!("{stem}.{extension}");
            if let Some(content) = self.tree().read(&file)? {
                return Ok(DocumentFile { file, format, content });
            }
        }
        Err(RepositoryError::MetadataMissing { stem })
    }

    /// What a defaults file beside the document of a selector holds; `None` if there is none.
    pub fn read_defaults(&self, selector: &Selector, name: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.tree().read(&defaults_beside(selector, name)?)
    }

    /// Writes the document of a selector as `metadata.yaml` and does to defaults files what `edit` says. The
    /// defaults file comes first and the removals, a `metadata.json` among them, last. `yaml` gets a
    /// newline at its end if it has none. Returns the file.
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

    /// Deletes the document of a selector, whatever its format, then the defaults files of these names. Fails
    /// with [`RepositoryError::MetadataMissing`] if there is no document.
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

/// The name, relative to the root, of a defaults file beside the document of a selector.
fn defaults_beside(selector: &Selector, name: &str) -> Result<String, RepositoryError> {
    if !is_defaults(name) {
        return Err(RepositoryError::DefaultsName { name: name.to_owned() });
    }
    let stem = selector.document_stem();
    let (directory, _) = stem.rsplit_once('/').unwrap_or_default();
    Ok(join(directory, name))
}
