//! Header templates: names are not case-sensitive, and `Accept` and `Content-Type` have special rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::payload::fields::{members, one_or_many};

/// Header templates by name. Names are not case-sensitive (RFC 9110, section 5.1); the last spelling is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The name as written and the value, by lower-case name.
    entries: BTreeMap<String, (String, String)>,
}

impl Headers {
    /// Sets a header, and returns the replaced value.
    pub fn insert(&mut self, name: &str, value: String) -> Option<String> {
        let previous = self.entries.insert(name.to_ascii_lowercase(), (name.to_owned(), value));
        previous.map(|(_, value)| value)
    }

    /// Returns the value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.get(&name.to_ascii_lowercase()).map(|(_, value)| value.as_str())
    }

    /// Iterates over names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.values().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Merges `later` into these headers by name. An empty `later` removes all headers except `Accept` and
    /// `Content-Type`, which are never removed, nor replaced with a blank value.
    pub fn overlay(&mut self, later: &Self) {
        if later.is_empty() {
            self.entries.retain(|name, _| describes_media(name));
        }
        for (name, (spelling, value)) in &later.entries {
            if !(describes_media(name) && value.trim().is_empty()) {
                self.entries.insert(name.clone(), (spelling.clone(), value.clone()));
            }
        }
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(headers: I) -> Self {
        let mut collected = Self::default();
        for (name, value) in headers {
            collected.insert(name, value.to_owned());
        }
        collected
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Reads a map, or a list of maps in which later ones take precedence.
pub(super) fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Headers>, D::Error> {
    let maps: Vec<Option<HeaderMap>> = one_or_many(deserializer)?.unwrap_or_default();
    let mut headers = maps.is_empty().then(Headers::default);
    for map in maps.into_iter().flatten().filter_map(|map| map.0) {
        let headers = headers.get_or_insert_default();
        for (name, value) in map {
            headers.insert(&name, value);
        }
    }
    Ok(headers)
}

#[derive(Deserialize)]
struct HeaderMap(#[serde(deserialize_with = "members")] Option<BTreeMap<String, String>>);

fn describes_media(lower_case_name: &str) -> bool {
    matches!(lower_case_name, "accept" | "content-type")
}
