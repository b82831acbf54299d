//! Writes defaults to files next to their document.

use super::{DefaultsSection, DefaultsSource, Document, DocumentError};
use crate::payload::{Descriptor, Object, Value, encode};
use crate::repository::{DEFAULTS_EXTENSIONS, DefaultsEdit, DefaultsFile, is_profile_name};

/// The field of errors about defaults.
const FIELD: &str = "resource.defaults";

impl Document {
    /// Sets the baseline defaults, or those of `profile`, to `members`, in a file next to the document, which includes
    /// it. Changes the document, and returns the changes of files, which the caller has to carry out.
    ///
    /// The file that is already included is used again. Otherwise the name is `defaults` or `defaults-<profile>` with
    /// `extension`, which should be that of the payloads, or `.yaml` if defaults files do not support it. Files of
    /// other formats for the same defaults become obsolete. If `members` is empty, the file becomes obsolete, and these
    /// defaults are removed from the document.
    ///
    /// Fails without a change of the document: with [`DocumentError::Invalid`] if the name of the profile is not valid,
    /// and with [`DocumentError::Encode`] if the format of the file cannot represent the members.
    pub fn keep_defaults(
        &mut self,
        profile: Option<&str>,
        members: Object,
        extension: &str,
    ) -> Result<DefaultsEdit, DocumentError> {
        if let Some(name) = profile.filter(|name| !is_profile_name(name)) {
            return Err(DocumentError::invalid(
                format!("{FIELD}.profiles"),
                format!("\"{name}\" is not a profile name"),
            ));
        }
        let stem = profile.map_or_else(|| "defaults".to_owned(), |name| format!("defaults-{name}"));
        let siblings = DEFAULTS_EXTENSIONS.map(|extension| format!("{stem}.{extension}"));
        if members.is_empty() {
            self.set_defaults_source(profile, None);
            return Ok(DefaultsEdit { write: None, obsolete: siblings.into() });
        }
        let included = self.defaults_source(profile).and_then(DefaultsSource::file).map(str::to_owned);
        let name = included.unwrap_or_else(|| format!("{stem}.{}", supported(extension)));
        let descriptor = Descriptor::from_extension(name.rsplit('.').next().unwrap_or_default());
        let content = encode(descriptor.payload_type, &Value::Object(members))?;
        let obsolete = siblings.into_iter().filter(|sibling| *sibling != name).collect();
        self.set_defaults_source(profile, Some(DefaultsSource::Include(name.clone())));
        Ok(DefaultsEdit { write: Some(DefaultsFile { name, content }), obsolete })
    }

    /// Replaces `resource.defaults` as a whole. Files that are no longer included become obsolete.
    pub fn replace_defaults(&mut self, section: Option<DefaultsSection>) -> DefaultsEdit {
        let before = self.defaults_files();
        self.set_defaults_section(section);
        let after = self.defaults_files();
        let obsolete = before.into_iter().filter(|file| !after.contains(file)).collect();
        DefaultsEdit { write: None, obsolete }
    }

    /// Returns the names of the defaults files that the document includes, sorted.
    pub fn defaults_files(&self) -> Vec<String> {
        let section = self.resource.as_ref().and_then(|resource| resource.defaults.as_ref());
        let profiles = section.and_then(|section| section.profiles.as_ref()).into_iter().flatten();
        let sources = profiles.map(|(_, source)| source);
        let value = section.and_then(|section| section.value.as_ref());
        let mut files: Vec<String> =
            sources.chain(value).filter_map(DefaultsSource::file).map(str::to_owned).collect();
        files.sort();
        files
    }

    /// Returns the source of the baseline, or of `profile`, if the document states it.
    pub fn defaults_source(&self, profile: Option<&str>) -> Option<&DefaultsSource> {
        let section = self.resource.as_ref()?.defaults.as_ref()?;
        match profile {
            None => section.value.as_ref(),
            Some(name) => section.profiles.as_ref()?.get(name),
        }
    }

    fn set_defaults_source(&mut self, profile: Option<&str>, source: Option<DefaultsSource>) {
        let resource = self.resource.as_ref();
        let mut section = resource.and_then(|resource| resource.defaults.clone()).unwrap_or_default();
        match (profile, source) {
            (None, source) => section.value = source,
            (Some(name), Some(source)) => {
                section.profiles.get_or_insert_default().insert(name.to_owned(), source);
            }
            (Some(name), None) => {
                let profiles = section.profiles.as_mut();
                // A map that was empty before is kept; it has the same meaning as an absent one.
                if profiles.is_some_and(|profiles| profiles.remove(name).is_some() && profiles.is_empty()) {
                    section.profiles = None;
                }
            }
        }
        self.set_defaults_section(Some(section));
    }

    /// Sets `resource.defaults`. An empty section is removed, and so is a `resource` that becomes empty.
    fn set_defaults_section(&mut self, section: Option<DefaultsSection>) {
        let section = section.filter(|section| *section != DefaultsSection::default());
        if section.is_none() && self.resource.as_ref().is_none_or(|resource| resource.defaults.is_none()) {
            return;
        }
        let resource = self.resource.get_or_insert_default();
        resource.defaults = section;
        if *resource == super::ResourceSection::default() {
            self.resource = None;
        }
    }
}

/// Returns the extension, without its dot, of defaults files for payloads with this extension.
fn supported(extension: &str) -> String {
    let extension = extension.trim_start_matches('.').to_ascii_lowercase();
    if DEFAULTS_EXTENSIONS.contains(&&*extension) { extension } else { "yaml".to_owned() }
}
