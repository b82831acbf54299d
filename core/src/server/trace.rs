//! Traces requests and answers for debugging. Texts are redacted, and higher levels show more details.

use std::fmt;
use std::sync::Arc;

use crate::secrets::Redactor;

/// The bodies of errors.
pub const ERRORS: u8 = 1;
/// Also the request line, the status, the duration and the kind of authentication.
pub const LINES: u8 = 2;
/// Also headers and bodies, and the source of the TLS settings.
pub const ALL: u8 = 3;

type Print = dyn Fn(u8, &str) + Send + Sync;
type Hidden = dyn Fn() -> Redactor + Send + Sync;

/// Logs requests and answers, up to a level.
#[derive(Clone)]
pub struct Trace {
    level: u8,
    pub(super) reveal: bool,
    print: Arc<Print>,
    hidden: Option<Arc<Hidden>>,
}

impl Trace {
    /// Returns a trace that passes lines up to `level` to `print`, from 0 for nothing to [`ALL`], each with its level.
    /// With `reveal` the lines contain credentials, except for requests to token endpoints.
    pub fn new(level: u8, reveal: bool, print: impl Fn(u8, &str) + Send + Sync + 'static) -> Self {
        Self { level, reveal, print: Arc::new(print), hidden: None }
    }

    /// Returns the trace with further secrets, for callers that know more than the client. `hidden` is called for
    /// each line and each error of the client; its secrets are redacted before the text is shortened.
    #[must_use]
    pub fn hiding(self, hidden: impl Fn() -> Redactor + Send + Sync + 'static) -> Self {
        Self { hidden: Some(Arc::new(hidden)), ..self }
    }

    /// Returns the redactor of the further secrets.
    pub(super) fn hidden(&self) -> Option<Redactor> {
        self.hidden.as_ref().map(|hidden| hidden())
    }

    pub(super) fn includes(&self, level: u8) -> bool {
        self.level >= level
    }

    /// Logs a line if the trace includes its level.
    pub(super) fn line(&self, level: u8, text: impl FnOnce() -> String) {
        if self.includes(level) {
            (self.print)(level, &text());
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("level", &self.level)
            .field("reveal", &self.reveal)
            .finish_non_exhaustive()
    }
}
