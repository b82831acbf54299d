//! The limit of deletions in one run: a count or a percentage.

use std::borrow::Cow;

use declarest_core::sync::PruneLimit as Limit;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::validation::or_placeholder;

/// `sync.pruneLimit` as written: a count or a percentage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PruneLimit {
    /// A number of resources.
    Count(i64),
    /// A percentage such as `50%`.
    Text(String),
}

impl PruneLimit {
    /// Returns the limit. The error states the valid forms.
    pub fn limit(&self) -> Result<Limit, String> {
        match self {
            Self::Count(count) => u32::try_from(*count)
                .map(|count| Limit::Count(count as usize))
                .map_err(|_| format!("{count} is not from 0 to {}", u32::MAX)),
            Self::Text(text) => text
                .strip_suffix('%')
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse::<u8>().ok())
                .filter(|percent| *percent <= 100)
                .map(Limit::Percent)
                .ok_or_else(|| format!("{text:?} is neither a count nor a percentage from 0% to 100%")),
        }
    }
}

impl Default for PruneLimit {
    fn default() -> Self {
        Self::Text("50%".to_owned())
    }
}

impl JsonSchema for PruneLimit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PruneLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "maximum": i32::MAX,
            "pattern": or_placeholder("(100|[1-9]?[0-9])%"),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!(0), Some(Limit::Count(0)))]
    #[case(json!(25), Some(Limit::Count(25)))]
    #[case(json!(99_999_999_999_i64), None)]
    #[case(json!("50%"), Some(Limit::Percent(50)))]
    #[case(json!("100%"), Some(Limit::Percent(100)))]
    #[case(json!("101%"), None)]
    #[case(json!("+5%"), None)]
    #[case(json!("%"), None)]
    #[case(json!("7"), None)]
    #[case(json!(-1), None)]
    fn reads_counts_and_percentages(#[case] written: Value, #[case] limit: Option<Limit>) {
        let parsed: PruneLimit = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(parsed.limit().ok(), limit);
        assert_eq!(serde_json::to_value(parsed).unwrap(), written);
    }
}
