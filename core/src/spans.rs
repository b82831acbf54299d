//! Spans of distributed traces: fetches, the phases of a run, the resources that it writes, and its requests.
//!
//! Their target is not a module of the crate, so filters of logs leave them out. Without a subscriber that exports
//! traces, they are disabled: nothing is allocated, and their fields are not evaluated.

use std::borrow::Cow;
use std::fmt::Debug;

use tracing::{Level, Span};

use crate::path::LogicalPath;

/// The target of the spans.
pub const TARGET: &str = "declarest_spans";

/// The longest text in a span, in bytes.
const LONGEST: usize = 256;

/// Returns the span of a fetch of a repository.
pub fn fetch() -> Span {
    tracing::span!(
        target: TARGET,
        Level::INFO,
        "fetch",
        otel.kind = "client",
        error.type = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    )
}

/// Returns the span of the part of a run that reads the server and decides.
pub(crate) fn plan() -> Span {
    tracing::span!(target: TARGET, Level::INFO, "plan")
}

/// Returns the span of the part of a run that writes.
pub(crate) fn apply() -> Span {
    tracing::span!(target: TARGET, Level::INFO, "apply")
}

/// Returns the span of one resource that is written, a child of `parent`.
pub(crate) fn resource(parent: &Span, path: &LogicalPath, step: impl Debug) -> Span {
    tracing::span!(
        target: TARGET,
        parent: parent,
        Level::INFO,
        "resource",
        declarest.resource.path = %bounded(path.as_str()),
        declarest.step = ?step,
        error.type = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    )
}

/// Records a failure of the work of `span`. `kind` has few values.
pub fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// Returns the beginning of a long text.
pub(crate) fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(LONGEST)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(bounded("/short"), "/short");
        let long = bounded(&"ä".repeat(300)).into_owned();
        assert_eq!(long, format!("{}…", "ä".repeat(128)));
    }
}
