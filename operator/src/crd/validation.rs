//! Validation of specs: field errors, and the checks that several kinds share.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use super::{SecretKeyRef, secret_refs};

pub(super) use declarest_core::contract::{HTTP_URL, without_credentials};

/// Schema pattern of a remote Git repository. The code decides which of these schemes are allowed.
pub(super) const GIT_URL: &str = concat!(
    r"^((https?|ssh)://[^/?#\s][^\s]*|file:///[^\s]+|[^@:/\s]+@[^:/\s]+:[^\s]+",
    r"|\$\{[A-Za-z_][A-Za-z0-9_]*\})$"
);

/// Schema pattern of a Kubernetes quantity of storage.
pub(super) const QUANTITY: &str =
    r"^([0-9]+(\.[0-9]+)?([KMGTPE]i|[kMGTPE]|[eE][0-9]+)?|\$\{[A-Za-z_][A-Za-z0-9_]*\})$";

/// Schema pattern of five cron fields.
pub(super) const CRON: &str = r"\s*([0-9*,/-]+\s+){4}[0-9*,/-]+\s*";

/// Returns a pattern for strings that match `pattern` as a whole, or are one `${NAME}` placeholder.
pub(super) fn or_placeholder(pattern: &str) -> String {
    format!(r"^({pattern}|\$\{{[A-Za-z_][A-Za-z0-9_]*\}})$")
}

/// Schema rule (CEL) of an [`Interval`](super::Interval) that is at least `minimum`.
pub(super) fn at_least(minimum: Duration) -> Value {
    let seconds = minimum.as_secs();
    let rule = format!("self.contains('${{') || duration(self) >= duration('{seconds}s')");
    json!([{ "rule": rule, "message": format!("the minimum is {seconds}s, and the maximum 290 years") }])
}

/// Schema rule (CEL) of a URL that may have a user, but not a password. Errors with its reason do not repeat the value.
pub(super) fn without_password() -> Value {
    json!([{
        "rule": "!self.matches('^[^/?#]*://[^/?#@]*:[^/?#]*@')",
        "reason": "FieldValueForbidden",
        "message": "contains a password; remove it and set git.auth",
    }])
}

/// Returns whether `name` is a DNS label (RFC 1123), as names of namespaces are.
pub fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_part(name)
}

/// Returns whether `name` is a DNS subdomain (RFC 1123), as names of objects are. Such a name is also safe as a file name
/// and in the path of a URL.
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_part)
}

/// The API server does not limit the length of a part of a name.
fn is_part(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// Limits of this operator that are not part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Whether `spec.git.url` may be a `file:///` URL.
    pub allow_file_repositories: bool,
    /// The directory of local metadata bundles.
    pub bundle_dir: PathBuf,
    /// The directory of file stores.
    pub secrets_base_dir: PathBuf,
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field in the object: `spec.git.url`.
    pub field: String,
    /// The fault and the correction. Never holds a credential.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// All invalid fields of an object, in the order of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Returns the paths of the invalid fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|error| error.field.as_str())
    }

    pub(super) fn push(&mut self, field: &str, message: impl Into<String>) {
        self.0.push(FieldError { field: field.to_owned(), message: message.into() });
    }

    /// Records the error of `result` under `field`, and returns its value.
    pub(super) fn check<T>(&mut self, field: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.push(field, message)).ok()
    }

    pub(super) fn check_secret_refs(&mut self, spec: &impl Serialize) {
        for (field, SecretKeyRef { name, key }) in secret_refs(spec) {
            for (part, text) in [("name", name), ("key", key)] {
                if text.trim().is_empty() {
                    self.push(&format!("{field}.{part}"), "must not be empty");
                }
            }
        }
    }

    /// Returns `Ok` if no error was recorded.
    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for FieldErrors {}

/// Parses an http or https URL with a host and without credentials and fragment.
pub(super) fn http_url(text: &str) -> Result<Url, String> {
    // Errors do not repeat the text, because it may hold a password.
    let url = Url::parse(text.trim())
        .map_err(|error| format!("is not a URL ({error}); write https://host/path"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("has the scheme {:?}; write an http or https URL", url.scheme()));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("has no host; write https://host/path".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("contains credentials; remove them and refer to a Secret".to_owned());
    }
    if url.fragment().is_some() {
        return Err("has a fragment; remove # and the text after it".to_owned());
    }
    Ok(url)
}

/// Checks the syntax of a quantity of storage.
pub(super) fn quantity(text: &str) -> Result<(), String> {
    let is_valid = bytes(text).is_some_and(|bytes| bytes > 0.0);
    is_valid
        .then_some(())
        .ok_or_else(|| format!("{text:?} is not a size; write a quantity above zero such as 10Gi"))
}

/// Returns the value of a Kubernetes quantity of storage. The API server writes sizes that are not whole numbers of bytes,
/// such as 1.1Gi, in thousandths.
pub fn bytes(quantity: &str) -> Option<f64> {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    const BINARY_UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(thousandths) = quantity.strip_suffix('m') {
        return Some(thousandths.parse::<f64>().ok()? / 1000.0);
    }
    let digits = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(digits);
    let exponent = suffix.strip_prefix(['e', 'E']).and_then(|digits| digits.parse::<u8>().ok());
    let power = |base: f64, units: [&str; 7]| {
        let power = (0..).zip(units).find(|(_, unit)| *unit == suffix);
        power.map(|(power, _)| base.powi(power))
    };
    let factor = exponent.map(|exponent| 10_f64.powi(exponent.into()));
    let factor = factor.or_else(|| power(1000.0, UNITS)).or_else(|| power(1024.0, BINARY_UNITS));
    Some(number.parse::<f64>().ok()? * factor?)
}

/// Checks a branch name against the rules of git-check-ref-format(1) for `--branch`.
pub(super) fn branch_name(name: &str) -> Result<(), String> {
    let problem = if name.is_empty() {
        Some("is empty")
    } else if name.starts_with('-') || matches!(name, "@" | "HEAD") {
        Some("is reserved by Git")
    } else if name.contains("..") || name.contains("@{") || name.ends_with('.') {
        Some("contains .. or @{, or ends in a dot")
    } else if name.chars().any(|c| c.is_ascii_control() || " ~^:?*[\\".contains(c)) {
        Some("contains a space, a control character or one of ~^:?*[\\")
    } else if name
        .split('/')
        .any(|part| part.is_empty() || part.starts_with('.') || part.strip_suffix(".lock").is_some())
    {
        Some("has a part that is empty, starts with a dot or ends in .lock")
    } else {
        None
    };
    problem.map_or(Ok(()), |problem| Err(format!("{name:?} is not a branch name: it {problem}")))
}

/// Returns the part of `path` below `base`, or `None` if it is outside. A relative path starts at `base`, an
/// absolute path must start with it, and `..` is not allowed.
pub(super) fn confined(base: &Path, path: &Path) -> Option<PathBuf> {
    let relative = if path.is_absolute() { path.strip_prefix(base).ok()? } else { path };
    let plain =
        relative.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    let clean: PathBuf = relative.components().filter(|component| *component != Component::CurDir).collect();
    (plain && !clean.as_os_str().is_empty()).then_some(clean)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a", true, true)]
    #[case("a-1", true, true)]
    #[case("a.b", false, true)]
    #[case("a..b", false, false)]
    #[case("a.-b", false, false)]
    #[case("-a", false, false)]
    #[case("A", false, false)]
    #[case("", false, false)]
    #[case(&"a".repeat(64), false, true)]
    #[case(&"a".repeat(254), false, false)]
    fn names_are_labels_or_subdomains(#[case] name: &str, #[case] label: bool, #[case] subdomain: bool) {
        assert_eq!((is_label(name), is_subdomain(name)), (label, subdomain));
    }

    #[rstest]
    #[case("1.5Gi", "1536Mi")]
    #[case("1Ki", "1024")]
    #[case("2k", "2e3")]
    #[case("3E", "3000P")]
    #[case("1.5", "1500m")]
    fn equal_quantities_have_the_same_value(#[case] one: &str, #[case] other: &str) {
        assert!(bytes(one).is_some());
        assert_eq!(bytes(one), bytes(other));
    }
}
