//! Tests that need root.

#![allow(clippy::print_stderr, reason = "why nothing was tested")]

/// Prints why a test is skipped, and returns `None`.
///
/// # Panics
/// With `NEEDS_ROOT`, which `make test-root` sets, so that its tests cannot be skipped.
pub fn skip<T>(cause: &str) -> Option<T> {
    assert!(std::env::var_os("NEEDS_ROOT").is_none(), "{cause}");
    eprintln!("skipped: {cause}");
    None
}
