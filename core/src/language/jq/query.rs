//! Expressions that answer a question about a value.

use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;

use jaq_json::Val;

use super::meter::Meter;
use super::{EvaluationError, ExpressionError, Origin, Program, TIME_LIMIT, on_large_stack};
use crate::payload::Value;

/// A compiled expression about a value: a condition of metadata, or a query of a user. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Query(Arc<Program>);

impl PartialEq for Query {
    /// Whether both have the same text.
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Query {}

impl Hash for Query {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.source.hash(state);
    }
}

impl Query {
    /// Compiles an expression that contains no rendered values, so that messages may quote it.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        Program::compile(text, Origin::Metadata).map(|program| Self(Arc::new(program)))
    }

    /// Returns all outputs for `input`. Blocks while the expression runs.
    pub fn outputs(&self, input: &Value) -> Result<Vec<Value>, EvaluationError> {
        on_large_stack(|| self.0.outputs(input, None, &meter()))?
    }

    /// Returns whether an output for `input` is neither null nor false. Further outputs are not computed. Blocks while
    /// the expression runs.
    pub fn holds(&self, input: &Value) -> Result<bool, EvaluationError> {
        let mut holds = false;
        let run = || {
            self.0.each_output(input, None, &meter(), |output| {
                holds = !matches!(output, Val::Null | Val::Bool(false));
                Ok(if holds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
        };
        on_large_stack(run)??;
        Ok(holds)
    }
}

fn meter() -> Meter<'static> {
    Meter::start(None, TIME_LIMIT)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case::truth(".size > 0", true)]
    #[case::falsehood(".size > 9", false)]
    #[case::null(".none", false)]
    #[case::no_output("empty", false)]
    #[case::zero_is_true("0", true)]
    #[case::empty_text_is_true("\"\"", true)]
    #[case::some_output("false, null, 1", true)]
    #[case::no_true_output("false, null", false)]
    #[case::array_of_false("[false]", true)]
    #[case::evaluation_stops_at_the_first_true("true, error(\"late\")", true)]
    fn holds(#[case] jq: &str, #[case] expected: bool) {
        let value = decode(PayloadType::Json, br#"{"size": 3}"#).unwrap();
        assert_eq!(Query::compile(jq).unwrap().holds(&value).unwrap(), expected);
    }

    #[rstest]
    #[case::error("error(\"too small\")", "jq failed: too small")]
    #[case::early_error("error(\"first\"), true", "jq failed: first")]
    #[case::kinds(".secret + 1", "jq failed: cannot calculate with a string and a number")]
    #[case::too_deep("def f: [f]; f", "jq was stopped: its recursion or nesting is too deep")]
    #[case::resource("resource(\"/a\")", "resource() cannot be used here, because the server is not read")]
    fn fails(#[case] jq: &str, #[case] message: &str) {
        let value = decode(PayloadType::Json, br#"{"secret": "hush"}"#).unwrap();
        assert_eq!(Query::compile(jq).unwrap().holds(&value).unwrap_err().to_string(), message);
    }
}
