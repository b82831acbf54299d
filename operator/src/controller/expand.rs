//! Expands `${NAME}` in a spec: a string that consists of one placeholder is replaced with the value of the operator's
//! environment variable. Expanded specs are never written back, and messages and logs do not show the values. Users of
//! every namespace can still find out a value, for example by sending it to a server of their own.

use declarest_core::variable::referred;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::Value;

/// Names that are never allowed, because they configure the operator itself or hold its credentials.
const NEVER: [&str; 4] = ["OTEL_*", "*_PROXY", "KUBERNETES_*", "DECLAREST_OPERATOR_*"];

/// A pattern of `--env-expand-allow` is not a glob.
#[derive(Debug, thiserror::Error)]
#[error("--env-expand-allow: {0}")]
pub struct InvalidPattern(#[from] globset::Error);

/// A spec uses a variable that is not allowed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: environment variable {name} is not allowed in a spec; see --env-expand-allow")]
pub struct NotAllowed {
    pub field: String,
    pub name: String,
}

/// The variables that a spec may use.
#[derive(Clone, Debug)]
pub struct Expansion {
    allowed: GlobSet,
    never: GlobSet,
}

impl Expansion {
    pub fn new<S: AsRef<str>>(allow: &[S]) -> Result<Self, InvalidPattern> {
        Ok(Self { allowed: globs(allow)?, never: globs(&NEVER)? })
    }

    /// Replaces placeholders in every string of `spec`, also in list items and map values. `variable` looks up a
    /// variable; one that is not set is empty. `root` is the name of `spec` in errors.
    pub fn expand(
        &self,
        root: &str,
        spec: &mut Value,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), NotAllowed> {
        match spec {
            Value::String(text) => {
                let Some(name) = referred(text) else { return Ok(()) };
                // Proxy variables are also read in lower case.
                let allowed = self.allowed.is_match(name) && !self.never.is_match(name.to_uppercase());
                if !allowed {
                    return Err(NotAllowed { field: root.to_owned(), name: name.to_owned() });
                }
                *text = variable(name).unwrap_or_default();
                Ok(())
            }
            Value::Array(items) => items
                .iter_mut()
                .enumerate()
                .try_for_each(|(index, item)| self.expand(&format!("{root}[{index}]"), item, variable)),
            Value::Object(fields) => fields
                .iter_mut()
                .try_for_each(|(field, value)| self.expand(&format!("{root}.{field}"), value, variable)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
}

fn globs<S: AsRef<str>>(patterns: &[S]) -> Result<GlobSet, InvalidPattern> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern.as_ref().trim())?);
    }
    Ok(set.build()?)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        (name == "HOST").then(|| "api.example.test".to_owned())
    }

    #[rstest]
    #[case("${HOST}", "api.example.test")]
    #[case(" ${HOST} ", "api.example.test")]
    #[case("${UNSET}", "")]
    #[case("https://${HOST}", "https://${HOST}")]
    #[case("${HOST}${HOST}", "${HOST}${HOST}")]
    fn only_a_whole_placeholder_is_replaced(#[case] text: &str, #[case] expected: &str) {
        let mut spec = json!(text);
        Expansion::new(&["*"]).unwrap().expand("spec", &mut spec, &environment).unwrap();
        assert_eq!(spec, json!(expected));
    }

    #[test]
    fn list_items_and_map_values_are_expanded_but_not_keys() {
        let mut spec = json!({"list": ["${HOST}", 1, null], "map": {"${HOST}": "${HOST}"}});
        Expansion::new(&["*"]).unwrap().expand("spec", &mut spec, &environment).unwrap();
        assert_eq!(
            spec,
            json!({"list": ["api.example.test", 1, null], "map": {"${HOST}": "api.example.test"}})
        );
    }

    #[rstest]
    #[case(&["*"], "OTEL_EXPORTER_OTLP_HEADERS")]
    #[case(&["*"], "HTTPS_PROXY")]
    #[case(&["*"], "https_proxy")]
    #[case(&["KUBERNETES_*"], "KUBERNETES_SERVICE_HOST")]
    #[case(&["*"], "DECLAREST_OPERATOR_REPO_BASE_DIR")]
    #[case(&["DECLAREST_VAR_*"], "HOST")]
    #[case(&[], "HOST")]
    fn names_that_are_not_allowed_are_rejected_with_their_field(#[case] allow: &[&str], #[case] name: &str) {
        let mut spec = json!({"git": {"urls": ["x", format!("${{{name}}}")]}});
        let refused = Expansion::new(allow).unwrap().expand("spec", &mut spec, &environment);
        let expected = NotAllowed { field: "spec.git.urls[1]".to_owned(), name: name.to_owned() };
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn a_list_allows_the_names_that_match() {
        let mut spec = json!("${DECLAREST_VAR_HOST}");
        let found = |name: &str| Some(name.to_lowercase());
        Expansion::new(&["DECLAREST_VAR_*"]).unwrap().expand("spec", &mut spec, &found).unwrap();
        assert_eq!(spec, json!("declarest_var_host"));
    }
}
