//! What the fuzz targets check: a function for each parser of `declarest-core` that reads what others write.
//!
//! Whatever the input, none of them may panic, hang or take much memory, and what is read must keep the
//! promises that its parser makes, such as to survive being written. Nothing here needs a fuzzer, so that a
//! test of `declarest-core` feeds them the seeds.

pub mod bundle;
pub mod connection;
pub mod contract;
pub mod metadata;
pub mod openapi;
pub mod path;
pub mod payload;

/// What a target does with an input.
pub type Check = fn(&[u8]);

/// All targets by name, sorted. Each has a program in `fuzz_targets` and a directory in `seeds`.
pub const TARGETS: &[(&str, Check)] = &[
    ("bundle_archive", bundle::archive),
    ("bundle_constraint", bundle::constraint),
    ("bundle_manifest", bundle::manifest),
    ("bundle_reference", bundle::reference),
    ("contract_document", contract::document),
    ("contract_objects", contract::objects),
    ("identity_template", metadata::identity_template),
    ("ini", payload::ini),
    ("jq", metadata::jq),
    ("json", payload::json),
    ("known_hosts", connection::known_hosts),
    ("located", payload::located),
    ("media_type", payload::media_type),
    ("metadata_document", metadata::document),
    ("metadata_rules", metadata::rules),
    ("octet_stream", payload::octet_stream),
    ("openapi", openapi::document),
    ("path", path::path),
    ("pointer", payload::pointer),
    ("properties", payload::properties),
    ("proxy", connection::proxy),
    ("selector", path::selector),
    ("template", metadata::template),
    ("text", payload::text),
    ("url", connection::url),
    ("yaml", payload::yaml),
];

/// The input as text, or nothing: what parsers of text get was found to be UTF-8 before.
fn utf8(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
