//! Commit ids.

use std::fmt;
use std::str::FromStr;

use super::RepositoryError;

/// The id of a commit: 40 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Revision(String);

impl Revision {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of(id: git2::Oid) -> Self {
        Self(id.to_string())
    }

    pub(super) fn oid(&self) -> Result<git2::Oid, RepositoryError> {
        git2::Oid::from_str(&self.0).map_err(|_| RepositoryError::InvalidRevision(self.0.clone()))
    }
}

impl FromStr for Revision {
    type Err = RepositoryError;

    fn from_str(text: &str) -> Result<Self, RepositoryError> {
        let id = text.to_ascii_lowercase();
        if id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(id))
        } else {
            Err(RepositoryError::InvalidRevision(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Revision {
    type Error = RepositoryError;

    fn try_from(text: String) -> Result<Self, RepositoryError> {
        text.parse()
    }
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_commit_ids_are_parsed() {
        let text = "0123456789abcdef0123456789ABCDEF01234567";
        let revision: Revision = text.parse().unwrap();
        assert_eq!(revision.as_str(), text.to_lowercase());
        assert_eq!(serde_json::to_string(&revision).unwrap(), format!("\"{revision}\""));
        assert!("0123".parse::<Revision>().is_err());
        assert!(serde_json::from_str::<Revision>("\"main\"").is_err());
    }
}
