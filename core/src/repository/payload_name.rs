//! The meaning of file names.

/// The prefix of payload files, case-sensitive. Any extension is allowed.
const PREFIX: &str = "resource.";

/// Whether a regular file of this name is the payload of its directory.
pub(crate) fn is_payload(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the extension from the last dot on, dot included.
pub(super) fn extension(name: &str) -> &str {
    name.rfind('.').map_or("", |at| &name[at..])
}

/// Whether this is the name of a metadata document.
pub(super) fn is_metadata(name: &str) -> bool {
    matches!(name, "metadata.yaml" | "metadata.json")
}

/// The extensions of defaults files, without their dot.
pub const DEFAULTS_EXTENSIONS: [&str; 4] = ["json", "yaml", "yml", "properties"];

/// Whether this is the name of a defaults file: `defaults.<ext>` or `defaults-<profile>.<ext>`.
pub(crate) fn is_defaults(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("defaults") else { return false };
    let Some((profile, extension)) = rest.rsplit_once('.') else { return false };
    if !DEFAULTS_EXTENSIONS.contains(&extension) {
        return false;
    }
    profile.is_empty() || profile.strip_prefix('-').is_some_and(is_profile_name)
}

/// Whether a defaults profile can have this name: letters, digits, `.`, `_` and `-`, beginning with a letter or
/// digit. It becomes part of a file name.
pub fn is_profile_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether a file of this name outside of a resource has no effect: our temporary files, hidden files, and common
/// files for users and tools.
pub(super) fn is_inert(name: &str) -> bool {
    name.starts_with('.')
        || ["README", "LICENSE", "CHANGELOG"].iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "CODEOWNERS" | "Makefile")
        || extension(name) == ".md"
}

/// Whether a directory of this name is not a logical path: collection metadata, or Git's own files.
pub(crate) fn is_reserved_directory(name: &str) -> bool {
    name == "_" || name.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("defaults.yaml", true)]
    #[case("defaults.properties", true)]
    #[case("defaults-prod.json", true)]
    #[case("defaults-prod.eu-1.yml", true)]
    #[case("defaults.ini", false)]
    #[case("defaults-.yaml", false)]
    #[case("defaults--x.yaml", false)]
    #[case("defaultsx.yaml", false)]
    #[case("defaults", false)]
    #[case("Defaults.yaml", false)]
    fn defaults_names(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_defaults(name), expected);
    }

    #[rstest]
    #[case("resource.yaml", true, ".yaml")]
    #[case("resource.tar.gz", true, ".gz")]
    #[case("resource.", true, ".")]
    #[case("Resource.yaml", false, ".yaml")]
    #[case("resources.yaml", false, ".yaml")]
    fn payload_names(#[case] name: &str, #[case] expected: bool, #[case] suffix: &str) {
        assert_eq!((is_payload(name), extension(name)), (expected, suffix));
    }
}
