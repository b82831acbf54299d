//! What a file name says by itself.

/// Names starting like this are payloads; the extension decides nothing (case-sensitive).
const PREFIX: &str = "resource.";

/// Whether a regular file of this name is the payload of its directory.
pub(super) fn is_payload(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The part from the last dot on, dot included.
pub(super) fn extension(name: &str) -> &str {
    name.rfind('.').map_or("", |at| &name[at..])
}

/// Whether a directory of this name holds no logical path: collection metadata, or Git's own files.
pub(super) fn is_reserved_directory(name: &str) -> bool {
    name == "_" || name.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
