//! Values of `${NAME}` in specs. Messages, events, statuses and log lines show the placeholder in their place.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use parking_lot::RwLock;

/// The names by their values, longest value first.
type Names = BTreeMap<(std::cmp::Reverse<usize>, String), String>;

/// The values in use, by the namespaces whose objects use them.
static IN_USE: RwLock<BTreeMap<String, Names>> = RwLock::new(BTreeMap::new());

/// A log line hides values of all namespaces, so it does not hide values that occur in other words anyway.
const SHORTEST_IN_LOGS: usize = 4;

/// Records that an object of `namespace` uses the `value` of the variable `name`.
pub fn remember(namespace: &str, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    let key = (std::cmp::Reverse(value.len()), value.to_owned());
    let is_known = |names: &Names| names.contains_key(&key);
    if IN_USE.read().get(namespace).is_some_and(is_known) {
        return;
    }
    let mut in_use = IN_USE.write();
    in_use.entry(namespace.to_owned()).or_default().insert(key, name.to_owned());
}

/// Returns `text` about an object of `namespace` with `${NAME}` in the place of values.
pub fn conceal<'t>(namespace: &str, text: &'t str) -> Cow<'t, str> {
    let in_use = IN_USE.read();
    match in_use.get(namespace) {
        Some(names) => replaced(text, names.iter().map(|((_, value), name)| (value.as_str(), name.as_str()))),
        None => Cow::Borrowed(text),
    }
}

/// Returns `line` with `${NAME}` in the place of values of all namespaces.
pub fn conceal_in_log(line: &str) -> Cow<'_, str> {
    let in_use = IN_USE.read();
    let all: BTreeSet<_> =
        in_use.values().flatten().filter(|((size, _), _)| size.0 >= SHORTEST_IN_LOGS).collect();
    replaced(line, all.into_iter().map(|((_, value), name)| (value.as_str(), name.as_str())))
}

/// Replaces values that are not a part of a longer word.
fn replaced<'t, 'v>(text: &'t str, values: impl Iterator<Item = (&'v str, &'v str)>) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for (value, name) in values {
        let mut found = String::new();
        let mut rest = 0;
        for (at, _) in shown.match_indices(value) {
            let end = at + value.len();
            let joins = |outer: Option<char>, inner: Option<char>| {
                [outer, inner].iter().all(|side| side.is_some_and(char::is_alphanumeric))
            };
            let is_inside = joins(shown[..at].chars().next_back(), value.chars().next())
                || joins(shown[end..].chars().next(), value.chars().next_back());
            if !is_inside {
                found.push_str(&shown[rest..at]);
                found.push_str("${");
                found.push_str(name);
                found.push('}');
                rest = end;
            }
        }
        if rest > 0 {
            found.push_str(&shown[rest..]);
            shown = Cow::Owned(found);
        }
    }
    shown
}

/// Writes log lines to standard error, without values.
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        io::stderr().write_all(conceal_in_log(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("branch main is missing", "branch ${BRANCH} is missing")]
    #[case("the domain is unknown", "the domain is unknown")]
    #[case("\"main\"", "\"${BRANCH}\"")]
    #[case("https://api.example.test/main/x", "https://${HOST}/${BRANCH}/x")]
    #[case("nothing", "nothing")]
    fn values_are_hidden(#[case] text: &str, #[case] expected: &str) {
        remember("hidden", "BRANCH", "main");
        remember("hidden", "HOST", "api.example.test");
        remember("hidden", "UNSET", "");
        assert_eq!(conceal("hidden", text), expected);
        assert_eq!(conceal("other", text), text);
        assert_eq!(conceal_in_log(text), expected);
    }
}
