//! The path prefixes of a document: `basePath` and `servers`.

use percent_encoding::percent_decode_str;

use crate::payload::Value;

/// The maximum number of prefixes that are read.
const MAX_PREFIXES: usize = 32;
/// The maximum number of variables of one URL that are read.
const MAX_VARIABLES: usize = 16;
/// The maximum length of a URL and of the default of a variable, in bytes. Longer ones are ignored.
const MAX_URL: usize = 1024;

/// Returns the `basePath` of Swagger 2 and the paths of `servers`, without trailing slashes, the longest first.
pub fn prefixes(root: &Value) -> Vec<String> {
    let base = root.get("basePath").and_then(Value::as_str).map(str::to_owned);
    let servers = root.get("servers").and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<String> = base
        .into_iter()
        .chain(servers.filter_map(server_url))
        .filter_map(|url| path(&url))
        .take(MAX_PREFIXES)
        .collect();
    found.sort_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
    found.dedup();
    found
}

/// Returns the path without a prefix; `/` if nothing remains.
pub fn strip<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    match path.strip_prefix(prefix)? {
        "" => Some("/"),
        rest => rest.starts_with('/').then_some(rest),
    }
}

/// Returns the URL of a server with the defaults of its variables; `None` if it is too long.
fn server_url(server: &Value) -> Option<String> {
    let mut url = server.get("url").and_then(Value::as_str)?.to_owned();
    let variables = server.get("variables").and_then(Value::as_object).into_iter().flatten();
    for (name, variable) in variables.take(MAX_VARIABLES) {
        if url.len() > MAX_URL {
            return None;
        }
        let default = variable.get("default").and_then(Value::scalar_text);
        if let Some(default) = default.filter(|default| default.len() <= MAX_URL) {
            url = url.replace(&format!("{{{name}}}"), &default);
        }
    }
    (url.len() <= MAX_URL).then_some(url)
}

/// Returns the path of a URL, which may be relative; `None` for the root.
fn path(url: &str) -> Option<String> {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let after_scheme = url.split_once("://").map(|(_, rest)| rest).or_else(|| url.strip_prefix("//"));
    let path = match after_scheme {
        Some(rest) => rest.find('/').map_or("", |at| &rest[at..]),
        None => url,
    };
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let path = path.trim_matches('/');
    (!path.is_empty() && path != ".").then(|| format!("/{path}"))
}
