//! Saves payloads in a store.

use super::Store;
use super::disk::{Pending, remove};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, PayloadType, Value};
use crate::repository::MAX_PAYLOAD;
use crate::repository::payload_name::extension;
use crate::repository::sidecar::beside;
use crate::repository::tree::join;
use crate::repository::{RepositoryError, ResourceFile, Sidecar, Tree};
use crate::secrets::{decode_file, encode_file};

/// The options of a save. By default the existing file determines the format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Save<'a> {
    /// The requested format.
    pub descriptor: Option<&'a Descriptor>,
    /// The format that metadata requires. An existing payload file of this format keeps its extension.
    pub format: Option<PayloadType>,
    /// The content of the file, if it decodes to the value.
    pub text: Option<&'a [u8]>,
    /// Files to write before the payload that includes them.
    pub sidecars: &'a [Sidecar],
    /// Sidecars that only the old payload included. They are removed at the end, except for those in `sidecars`.
    pub stale: &'a [String],
}

impl Store {
    /// Stores `value` as the payload of `path` and returns its file. Null removes the payload file and returns
    /// `None`. A payload file in another format is removed at the end.
    ///
    /// The format is the requested one, else that of the metadata, else that of the existing file, else plain bytes
    /// for bytes and JSON for other values. An extension of another format is replaced by the canonical one, because
    /// the extension alone determines the format when the file is read. If the existing file has the same value in
    /// the same format, its bytes stay, unless the text of the value is given.
    ///
    /// No file is written if the value cannot be encoded in the format, or if a file cannot be created at its place.
    pub fn save(
        &self,
        path: &LogicalPath,
        value: &Value,
        save: &Save<'_>,
    ) -> Result<Option<ResourceFile>, RepositoryError> {
        // Stage 1: determine file and content.
        let existing = self.written_file(path)?;
        let stored =
            if value.is_null() { None } else { Some(save.target(path, value, existing.as_ref())?) };
        let content = stored
            .as_ref()
            .map(|stored| self.content(stored, value, existing.as_ref(), save.text))
            .transpose()?;

        // Stage 2: check all files before any is written.
        let mut pending = Vec::new();
        for sidecar in save.sidecars {
            pending.push(Pending::new(self.tree(), &beside(path, &sidecar.file)?, &sidecar.content)?);
        }
        if let (Some(stored), Some(Some(content))) = (&stored, &content) {
            pending.push(Pending::new(self.tree(), &stored.file, content)?);
        }
        let mut obsolete = Vec::new();
        if let Some(old) = existing.filter(|old| stored.as_ref().is_none_or(|new| new.file != old.file)) {
            obsolete.push(self.tree().place(&old.file)?);
        }
        for file in save.stale {
            let name = beside(path, file)?;
            let written = save.sidecars.iter().any(|new| beside(path, &new.file).as_ref() == Ok(&name));
            if !written {
                obsolete.push(self.tree().place(&name)?);
            }
        }
        // Stage 3: write, then remove what is obsolete.
        pending.iter().try_for_each(Pending::write)?;
        remove(self.tree(), &obsolete)?;
        Ok(stored)
    }

    /// Returns the file to which [`Store::save`] would write `value`.
    pub fn target(
        &self,
        path: &LogicalPath,
        value: &Value,
        save: &Save<'_>,
    ) -> Result<ResourceFile, RepositoryError> {
        save.target(path, value, self.written_file(path)?.as_ref())
    }

    /// Returns the files that [`Store::save`] would write, relative to the root.
    pub fn files(
        &self,
        path: &LogicalPath,
        value: &Value,
        save: &Save<'_>,
    ) -> Result<Vec<String>, RepositoryError> {
        let sidecars = save.sidecars.iter().map(|sidecar| beside(path, &sidecar.file));
        let payload = (!value.is_null()).then(|| self.target(path, value, save).map(|stored| stored.file));
        sidecars.chain(payload).collect()
    }

    /// Returns the bytes to write; `None` if the existing file has the same value.
    fn content(
        &self,
        stored: &ResourceFile,
        value: &Value,
        existing: Option<&ResourceFile>,
        text: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, RepositoryError> {
        let payload_type = stored.descriptor.payload_type;
        let states = |text: &&[u8]| decode_file(payload_type, text).is_ok_and(|stated| stated == *value);
        if let Some(text) = text.filter(states) {
            return Ok(Some(text.to_owned()));
        }
        let content = encode_file(payload_type, value)
            .map_err(|source| RepositoryError::Payload { file: stored.file.clone(), source })?;
        if existing.is_none_or(|old| old.file != stored.file) {
            return Ok(Some(content));
        }
        let before = self.tree().read_within(&stored.file, MAX_PAYLOAD)?;
        let before = before.and_then(|bytes| decode_file(payload_type, &bytes).ok());
        // Formats that hold only strings decode a number as its text.
        let same = before.is_some_and(|before| {
            before == *value || decode_file(payload_type, &content).is_ok_and(|after| before == after)
        });
        Ok((!same).then_some(content))
    }
}

impl Save<'_> {
    /// Returns the file of the payload.
    fn target(
        &self,
        path: &LogicalPath,
        value: &Value,
        existing: Option<&ResourceFile>,
    ) -> Result<ResourceFile, RepositoryError> {
        let descriptor = self.choose(value, existing.map(|old| &old.descriptor));
        let given = &descriptor.extension;
        if given.len() < 2 || !given.starts_with('.') || given.contains(['/', '\\', '\0']) {
            return Err(RepositoryError::Extension(given.to_string()));
        }
        let read_as = Descriptor::from_extension(extension(given)).payload_type;
        let descriptor = if read_as == descriptor.payload_type {
            descriptor
        } else {
            Descriptor::of(descriptor.payload_type)
        };
        let name = format!("resource{}", descriptor.extension);
        let file = join(path.relative(), &name);
        // On a file system that ignores case these are the same file.
        match existing.filter(|old| old.file.eq_ignore_ascii_case(&file)) {
            Some(old) => Ok(old.clone()),
            None => Ok(ResourceFile { path: path.clone(), file, descriptor }),
        }
    }

    fn choose(&self, value: &Value, existing: Option<&Descriptor>) -> Descriptor {
        if let Some(descriptor) = self.descriptor {
            return descriptor.clone();
        }
        match (self.format, existing) {
            (Some(format), Some(existing)) if existing.payload_type == format => existing.clone(),
            (Some(format), _) => Descriptor::of(format),
            (None, Some(existing)) => existing.clone(),
            (None, None) if matches!(value, Value::Bytes(_)) => Descriptor::of(PayloadType::OctetStream),
            (None, None) => Descriptor::of(PayloadType::Json),
        }
    }
}
