//! Findings of a validation.

use serde::Serialize;

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Severity {
    /// A sync or an apply fails because of it.
    Error,
    /// It is allowed, and usually a mistake.
    Warning,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Rule {
    /// A payload cannot be read.
    Payload,
    /// A metadata document is not valid.
    Metadata,
    /// A resource has no usable name, or the name of another one.
    Identity,
    /// A request cannot be made, or violates the validation of metadata.
    Request,
    /// A secret is stored in plain text.
    Secret,
    /// A file has no effect.
    Unused,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The file relative to the root of the repository; empty if it is not known.
    pub file: String,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    pub severity: Severity,
    pub rule: Rule,
    /// The resource, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub message: String,
    pub hint: &'static str,
}

impl Rule {
    pub const ALL: [Self; 6] =
        [Self::Payload, Self::Metadata, Self::Identity, Self::Request, Self::Secret, Self::Unused];

    /// Returns the correction of a finding.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Payload => "correct the file; its extension determines the format",
            Self::Metadata => "see \"resource metadata resolve\" for the metadata of a path",
            Self::Identity => "names come from resource.id and resource.alias of the metadata",
            Self::Request => "see \"resource metadata render\" for the request",
            Self::Secret => {
                "declare it with \"secret detect --fix\", then save the resource again with \"resource save --force\""
            }
            Self::Unused => "move, rename or remove the file",
        }
    }
}

impl Finding {
    /// Returns a finding. The position is taken from the message, which contains `line 2, column 3`.
    pub fn new(rule: Rule, severity: Severity, file: &str, message: String) -> Self {
        let (line, column) = position(&message);
        let (file, hint) = (file.to_owned(), rule.hint());
        Self { file, line, column, severity, rule, path: None, message, hint }
    }
}

fn position(message: &str) -> (Option<usize>, Option<usize>) {
    let number = |text: &str| {
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let Some((_, after)) = message.split_once("line ") else { return (None, None) };
    let Some(line) = number(after) else { return (None, None) };
    let column = after.split_once(", column ").filter(|(line, _)| line.parse::<usize>().is_ok());
    (Some(line), column.and_then(|(_, column)| number(column)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("cannot decode json, line 3, column 12: x", Some(3), Some(12))]
    #[case("cannot decode ini, line 3: x, column 2", Some(3), None)]
    #[case("the deadline is over", None, None)]
    #[case("no position", None, None)]
    fn positions(#[case] message: &str, #[case] line: Option<usize>, #[case] column: Option<usize>) {
        assert_eq!(position(message), (line, column));
    }
}
