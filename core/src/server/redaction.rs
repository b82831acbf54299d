//! Removes the credentials of a client from texts.

use parking_lot::RwLock;

use super::trace::Trace;
use crate::secrets::{Confidential, Redactor, Secret};

/// Removes the credentials of a client from texts, including credentials that are obtained later, such as tokens.
pub(super) struct Redaction {
    configured: Redactor,
    learnt: RwLock<Learnt>,
    /// Also hides the secrets that this trace knows.
    wider: Option<Trace>,
}

#[derive(Default)]
struct Learnt {
    secrets: Vec<Secret>,
    redactor: Redactor,
}

impl Redaction {
    pub fn new(configured: &[Secret], wider: Option<Trace>) -> Self {
        Self { configured: Redactor::new(configured), learnt: RwLock::default(), wider }
    }

    /// Adds a secret to remove. The last two are kept, because requests with the previous one may still be running.
    pub fn learn(&self, secret: Secret) {
        // No thread panics while it holds the lock.
        let mut learnt = self.learnt.write();
        let mut secrets = vec![secret];
        secrets.extend(learnt.secrets.drain(..).take(1));
        *learnt = Learnt { redactor: Redactor::new(&secrets), secrets };
    }

    pub fn redact(&self, text: &str) -> String {
        self.redact_with(&[], text)
    }

    /// Returns `text` without known secrets and without `secrets`.
    pub fn redact_with(&self, secrets: &[Secret], text: &str) -> String {
        self.with(secrets, |redactors| Redactor::redact_all(redactors, text))
    }

    /// Returns `body` without known secrets, without `secrets` and without the members that are `confidential`.
    pub fn redact_body(&self, secrets: &[Secret], body: &str, confidential: &Confidential) -> String {
        self.with(secrets, |redactors| Redactor::redact_body_all(redactors, body, confidential))
    }

    fn with(&self, secrets: &[Secret], redact: impl FnOnce(&[&Redactor]) -> String) -> String {
        let own = Redactor::new(secrets);
        let wider = self.wider.as_ref().and_then(Trace::hidden).unwrap_or_default();
        let learnt = self.learnt.read();
        redact(&[&self.configured, &learnt.redactor, &own, &wider])
    }
}
