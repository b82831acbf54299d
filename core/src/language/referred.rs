//! The values of other resources that templates refer to.

use std::borrow::Cow;
use std::fmt;

use parking_lot::Mutex;

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

/// Records the references without known values that a template needs.
///
/// Without any known values, each one has a placeholder as its value. So one rendering finds most of them, but not those
/// that depend on the value of another one. With known values, it has none.
#[derive(Debug, Default)]
pub struct Recorder<'v> {
    known: Option<&'v KnownValues>,
    recorded: Mutex<Vec<Reference>>,
}

impl<'v> Recorder<'v> {
    /// Returns a recorder of the references that are not in `known`.
    pub fn beyond(known: &'v KnownValues) -> Self {
        Self { known: Some(known), recorded: Mutex::default() }
    }

    /// Returns the references, without duplicates.
    pub fn into_references(self) -> Vec<Reference> {
        self.recorded.into_inner()
    }
}

impl ReferenceValues for Recorder<'_> {
    fn value(&self, reference: &Reference) -> Result<Value, Cow<'static, str>> {
        let value = match self.known.map(|known| known.value(reference)) {
            Some(Ok(value)) => return Ok(value),
            Some(unknown) => unknown,
            None => Ok(Value::from("ref")),
        };
        let mut recorded = self.recorded.lock();
        if !recorded.contains(reference) {
            recorded.push(reference.clone());
        }
        value
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
