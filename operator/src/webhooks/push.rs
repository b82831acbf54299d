//! What a push is about.

use serde::Deserialize;
use url::form_urlencoded;

/// The part of a push that all providers state alike.
#[derive(Debug, Deserialize)]
pub struct Push {
    /// The full name of the Git reference.
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    deleted: Option<bool>,
    /// The commit that the reference points to after the push; only zeros if it was deleted.
    #[serde(default)]
    after: Option<String>,
}

/// The body is not a push.
#[derive(Debug, thiserror::Error)]
pub enum InvalidPush {
    #[error("the form has no field payload")]
    NoPayload,
    #[error("the body is not a JSON object with a member ref: {0}")]
    Json(#[from] serde_json::Error),
}

impl Push {
    /// Parses a body: JSON, or a form with JSON in the field `payload`, which GitHub sends if it is configured so.
    pub fn parse(content_type: &str, body: &[u8]) -> Result<Self, InvalidPush> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let mut fields = form_urlencoded::parse(body);
            let (_, payload) = fields.find(|(name, _)| name == "payload").ok_or(InvalidPush::NoPayload)?;
            return Ok(serde_json::from_str(&payload)?);
        }
        Ok(serde_json::from_slice(body)?)
    }

    /// Returns the branch that has new commits; `None` for a tag or a deleted branch.
    pub fn branch(&self) -> Option<&str> {
        let is_zero = |commit: &str| !commit.is_empty() && commit.bytes().all(|digit| digit == b'0');
        let deleted = self.deleted == Some(true) || self.after.as_deref().is_some_and(is_zero);
        self.reference.strip_prefix("refs/heads/").filter(|branch| !deleted && !branch.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"ref":"refs/heads/main"}"#, Some("main"))]
    #[case(
        r#"{"ref":"refs/heads/release/1.2","after":"07","deleted":false,"more":[1]}"#,
        Some("release/1.2")
    )]
    #[case(r#"{"ref":"refs/heads/main","deleted":null,"after":null}"#, Some("main"))]
    #[case(r#"{"ref":"refs/heads/main","deleted":true}"#, None)]
    #[case(r#"{"ref":"refs/heads/main","after":"0000000000000000000000000000000000000000"}"#, None)]
    #[case(r#"{"ref":"refs/tags/v1"}"#, None)]
    #[case(r#"{"ref":"refs/heads/"}"#, None)]
    #[case(r#"{"ref":"main"}"#, None)]
    fn branches(#[case] json: &str, #[case] expected: Option<&str>) {
        assert_eq!(
            Push::parse("application/json; charset=utf-8", json.as_bytes()).unwrap().branch(),
            expected
        );
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("other", "x")
            .append_pair("payload", json)
            .finish();
        let push = Push::parse("application/x-www-form-urlencoded", form.as_bytes()).unwrap();
        assert_eq!(push.branch(), expected);
    }

    #[rstest]
    #[case("application/json", "")]
    #[case("application/json", "{}")]
    #[case("application/json", r#"{"ref":7}"#)]
    #[case("application/json", "payload=%7B%7D")]
    #[case("application/x-www-form-urlencoded", r#"{"ref":"refs/heads/main"}"#)]
    fn bodies_without_a_reference_are_rejected(#[case] content_type: &str, #[case] body: &str) {
        assert!(Push::parse(content_type, body.as_bytes()).is_err());
    }
}
