//! Masks such as `***`, which a server shows in place of secrets.

use super::{Draft, stored};
use crate::payload::Value;
use crate::payload::pointer::{Pointer, array_index, places};
use crate::repository::{RepositoryError, Store};

impl Draft {
    /// Replaces masks with the values that the existing file has at the same places, and returns the places of all masks.
    /// Places within arrays stay as they are, because the entries may have another order. Blocks.
    pub(super) fn keep_masked(&mut self, store: &Store) -> Result<Vec<Pointer>, RepositoryError> {
        let found = masks(&self.payload);
        let before = if found.is_empty() { None } else { stored(store, &self.path)? };
        for at in &found {
            let is_in_array = at.tokens().iter().any(|token| array_index(token).is_some());
            let kept = before.as_ref().and_then(|before| at.get(before)).filter(|_| !is_in_array);
            if let (Some(value), Some(place)) = (kept, at.get_mut(&mut self.payload)) {
                *place = value.clone();
            }
        }
        Ok(found)
    }
}

/// Whether a part of `payload` is a mask.
pub(super) fn holds_mask(payload: &Value) -> bool {
    !masks(payload).is_empty()
}

fn masks(payload: &Value) -> Vec<Pointer> {
    places(payload, &|part| part.as_str().is_some_and(is_mask))
}

/// Whether a text consists of three or more asterisks or bullets.
pub(super) fn is_mask(text: &str) -> bool {
    text.chars().all(|character| matches!(character, '*' | '•' | '●')) && text.chars().count() >= 3
}
