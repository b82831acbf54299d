//! The values of other resources that templates refer to.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::reference::Reference;
use crate::payload::Value;

/// Returns values for `ref` in templates.
pub trait ReferenceValues: fmt::Debug + Send + Sync {
    /// Returns the value of `reference`. The error is the reason why it has none.
    fn value(&self, reference: &Reference) -> Result<Value, Cow<'static, str>>;
}

/// Values that were read before.
#[derive(Clone, Default)]
pub struct KnownValues(Vec<(Reference, Value)>);

impl KnownValues {
    /// Adds a value.
    pub fn add(&mut self, reference: Reference, value: Value) {
        self.0.push((reference, value));
    }
}

impl fmt::Debug for KnownValues {
    /// Shows the references only, because a value may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(reference, _)| reference)).finish()
    }
}

impl ReferenceValues for KnownValues {
    fn value(&self, reference: &Reference) -> Result<Value, Cow<'static, str>> {
        let known = self.0.iter().find(|(known, _)| known == reference);
        known.map(|(_, value)| value.clone()).ok_or_else(|| format!("{reference} was not read").into())
    }
}

/// Records the references that a template needs. Each one has a placeholder as its value.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Vec<Reference>>);

impl Recorder {
    /// Returns the references, without duplicates.
    pub fn into_references(self) -> Vec<Reference> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReferenceValues for Recorder {
    fn value(&self, reference: &Reference) -> Result<Value, Cow<'static, str>> {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !recorded.contains(reference) {
            recorded.push(reference.clone());
        }
        Ok(Value::from("ref"))
    }
}

/// Shows the references themselves, for output without a server.
#[derive(Debug)]
pub struct Unread;

impl ReferenceValues for Unread {
    fn value(&self, reference: &Reference) -> Result<Value, Cow<'static, str>> {
        Ok(Value::from(reference.to_string()))
    }
}
