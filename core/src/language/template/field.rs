//! The names of fields that the engine defines.

/// Names that are defined for every payload.
pub(super) const FIXED_FIELDS: [&str; 14] = [
    "payload",
    "value",
    "payloadType",
    "payloadMediaType",
    "payloadExtension",
    "remoteCollectionPath",
    "descendantPath",
    "descendantCollectionPath",
    "logicalPath",
    "logicalCollectionPath",
    "alias",
    "remoteID",
    "id",
    "contentType",
];

/// Returns whether the engine sets this name, so it is not derived from a path segment.
pub(super) fn is_engine_name(name: &str) -> bool {
    FIXED_FIELDS.contains(&name) && !matches!(name, "alias" | "id")
}

/// Returns whether the field is a path, whose text may be `/`.
pub(super) fn is_path_field(name: &str) -> bool {
    is_descendant_field(name)
        || matches!(name, "remoteCollectionPath" | "logicalPath" | "logicalCollectionPath")
}

/// Returns whether the field may be empty in a path.
pub(super) fn is_descendant_field(name: &str) -> bool {
    matches!(name, "descendantPath" | "descendantCollectionPath")
}
