//! Masks such as `***`, which a server shows in place of secrets, also within texts: of a URL, or of another document.

use super::{Draft, stored};
use crate::payload::Value;
use crate::payload::pointer::{Pointer, array_index, places};
use crate::repository::{RepositoryError, Store};
use crate::secrets::is_placeholder;

impl Draft {
    /// Replaces masks with the values that the existing file has at the same places, and returns the places of all masks.
    /// Places within arrays stay as they are, because the entries may have another order. Blocks.
    pub(super) fn keep_masked(&mut self, store: &Store) -> Result<Vec<Pointer>, RepositoryError> {
        let found = masks(&self.payload);
        let before = if found.is_empty() { None } else { stored(store, &self.path)? };
        for at in &found {
            let is_in_array = at.tokens().iter().any(|token| array_index(token).is_some());
            let kept = before.as_ref().and_then(|before| at.get(before)).filter(|_| !is_in_array);
            if let (Some(value), Some(place)) = (kept, at.get_mut(&mut self.payload))
                && place.as_str().is_some_and(|masked| may_hide(masked, value))
            {
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
    places(payload, &|part| part.as_str().is_some_and(has_mask))
}

/// Whether a text consists of three or more asterisks or bullets.
pub(super) fn is_mask(text: &str) -> bool {
    text.chars().all(is_of_mask) && text.chars().count() >= SHORTEST
}

/// Whether a text is a mask, or has one in place of a value.
pub(super) fn has_mask(text: &str) -> bool {
    is_mask(text) || around_masks(text).len() > 1
}

/// Whether the server may show `masked` for `value`: all around the masks is the same.
fn may_hide(masked: &str, value: &Value) -> bool {
    let Some(text) = value.as_str().filter(|text| !is_mask(masked) && !is_placeholder(text)) else {
        return true;
    };
    let around = around_masks(masked);
    let (Some((first, inner)), Some(last)) = (around.split_first(), around.last()) else { return false };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in inner {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    text.ends_with(last)
}

const SHORTEST: usize = 3;

fn is_of_mask(character: char) -> bool {
    matches!(character, '*' | '•' | '●')
}

/// Returns the parts of a text around the masks in it. Runs of asterisks that are not in place of a value, as in Markdown, are
/// not masks.
fn around_masks(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some(start) = text[at..].find(is_of_mask).map(|found| at + found) {
        let end = text[start..].find(|it| !is_of_mask(it)).map_or(text.len(), |length| start + length);
        let is_long = text[start..end].chars().count() >= SHORTEST;
        if is_long && is_value(&text[..start], &text[end..]) {
            parts.push(&text[begin..start]);
            begin = end;
        }
        at = end;
    }
    parts.push(&text[begin..]);
    parts
}

/// Whether what is between these texts is a value: the password or the user of a URL, a quoted text, or behind an equals
/// sign.
fn is_value(before: &str, after: &str) -> bool {
    let ends = |marks: &[char]| after.starts_with(marks);
    match before.chars().next_back() {
        Some('"' | '\'') => ends(&['"', '\'', '\\']),
        Some('=') => after.chars().next().is_none_or(|next| next.is_whitespace() || "&;,".contains(next)),
        Some(':') => ends(&['@']),
        Some('/') => ends(&['@', ':']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole("***", true)]
    #[case::short("**", false)]
    #[case::password("postgres://ana:***@db/x", true)]
    #[case::user("https://•••@db/x", true)]
    #[case::json(r#"{"user": "ana", "password": "******"}"#, true)]
    #[case::escaped(r#""{\"password\":\"***\"}""#, true)]
    #[case::properties("user=ana\npassword=***\nsize=1", true)]
    #[case::parameters("Server=db;Password=***;Ssl=1", true)]
    #[case::bold("a ***very*** bold text", false)]
    #[case::rule("one\n***\ntwo", false)]
    #[case::pattern("/shops/***/tills", false)]
    #[case::schedule("0 0 * * *", false)]
    fn masks_in_texts(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(has_mask(text), expected);
    }

    #[rstest]
    #[case::same("postgres://ana:***@db", "postgres://ana:s3cret@db", true)]
    #[case::other_user("postgres://ana:***@db", "postgres://bo:s3cret@db", false)]
    #[case::other_end("postgres://ana:***@db", "postgres://ana:s3cret@db2", false)]
    #[case::two("a=*** b=*** c", "a=1 b=2 c", true)]
    #[case::two_in_another_order("a=*** b=*** c", "b=2 a=1 c", false)]
    #[case::at_the_end("a=***", "a=1", true)]
    #[case::placeholder("a=***", "{{secret .}}", true)]
    #[case::whole("***", "anything", true)]
    fn values_behind_masks(#[case] masked: &str, #[case] value: &str, #[case] expected: bool) {
        assert_eq!(may_hide(masked, &Value::String(value.to_owned())), expected);
    }
}
