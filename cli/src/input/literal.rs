//! Classifies a payload argument that is not an existing file.

use declarest_core::payload::Object;

use super::{InputError, Literals, assignment};

/// The meaning of an argument.
#[derive(Debug, PartialEq)]
pub enum Literal {
    /// The name of a missing file.
    File,
    /// An object from assignments.
    Assignments(Object),
    /// The text of the payload.
    Text,
}

/// Returns the first match: assignments, inline JSON, a text that looks like a file name, and a literal if its type was
/// given. A missing file is never used as a literal.
pub fn classify(
    text: &str,
    literals: Literals,
    structured: bool,
    declared: bool,
) -> Result<Literal, InputError> {
    if literals == Literals::Refused {
        return Ok(Literal::File);
    }
    if literals == Literals::WithAssignments && structured {
        if let Some(members) = assignment::pointers(text) {
            return members.map(Literal::Assignments);
        }
        if let Some(members) = assignment::dotted(text) {
            return members.map(Literal::Assignments);
        }
    }
    if text.trim_start().starts_with(['{', '[']) {
        return Ok(Literal::Text);
    }
    if looks_like_a_file(text) {
        return Ok(Literal::File);
    }
    if declared { Ok(Literal::Text) } else { Err(InputError::NotUnderstood(text.to_owned())) }
}

fn looks_like_a_file(text: &str) -> bool {
    text.starts_with(['.', '~']) || text.contains('/') || std::path::Path::new(text).extension().is_some()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn name(literal: &Result<Literal, InputError>) -> &'static str {
        match literal {
            Ok(Literal::File) => "file",
            Ok(Literal::Assignments(_)) => "assignments",
            Ok(Literal::Text) => "text",
            Err(InputError::NotUnderstood(_)) => "not understood",
            Err(InputError::Assignment { .. }) => "bad assignment",
            Err(_) => "another error",
        }
    }

    /// The expected meaning with a missing or structured type, and with a text type.
    #[rstest]
    #[case("/a=b,/c/d=e", "assignments", "file")]
    #[case("a.b=x,\"k.1\".c=y", "assignments", "file")]
    #[case("a=b", "assignments", "text")]
    #[case("a=b=c", "assignments", "text")]
    #[case("a..b=x", "bad assignment", "file")]
    #[case("{\"a\": \"b=c\"}", "text", "text")]
    #[case("[\"/x.y\"]", "text", "text")]
    #[case("{\"a\": \"/b\"}", "text", "text")]
    #[case("/etc/none", "file", "file")]
    #[case("./none", "file", "file")]
    #[case("~none", "file", "file")]
    #[case("dir/none=x", "file", "file")]
    #[case("none.json", "file", "file")]
    #[case("hello", "not understood", "text")]
    fn meanings(#[case] text: &str, #[case] undeclared: &str, #[case] as_text: &str) {
        assert_eq!(name(&classify(text, Literals::WithAssignments, true, false)), undeclared);
        assert_eq!(name(&classify(text, Literals::WithAssignments, false, true)), as_text);
    }

    #[rstest]
    #[case(Literals::Refused, "{}", "file")]
    fn without_literals_an_argument_is_always_a_file(
        #[case] literals: Literals,
        #[case] text: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(name(&classify(text, literals, true, false)), expected);
    }
}
