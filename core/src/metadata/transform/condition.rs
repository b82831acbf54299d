//! Conditions on payloads, written in jq.

use std::sync::Arc;

use crate::error::{Categorized, Category};
use crate::language::jq::{self, ExpressionError, Failure, Origin, Panicked, Program, StopReason};
use crate::payload::Value;

/// A compiled condition. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Condition {
    program: Arc<Program>,
}

/// A condition cannot be evaluated. Messages never contain values of the payload.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConditionError {
    /// The expression does not support a value, or raised an error itself.
    #[error("jq failed: {0}")]
    Evaluation(String),
    /// The expression exceeded a limit.
    #[error("jq was stopped: {0}")]
    Stopped(StopReason),
    /// The interpreter of jq failed.
    #[error("cannot evaluate jq: {0}")]
    Panicked(Panicked),
}

impl Condition {
    /// Compiles a condition whose text is from metadata, without rendered values.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        Program::compile(text, Origin::Metadata).map(|program| Self { program: Arc::new(program) })
    }

    /// Returns whether the expression has an output that is neither null nor false. Blocks while it runs.
    pub fn holds(&self, value: &Value) -> Result<bool, ConditionError> {
        let held = jq::on_large_stack(|| self.program.holds(value)).map_err(ConditionError::Panicked)?;
        held.map_err(|failure| match failure {
            Failure::Evaluation(reason) => ConditionError::Evaluation(reason),
            Failure::Stopped(reason) => ConditionError::Stopped(reason),
            Failure::Result(reason) => ConditionError::Evaluation(reason.to_owned()),
            Failure::NoReader | Failure::ResourcePath(_) | Failure::Resource(..) => {
                let reason = "resource() works in transforms only".to_owned();
                ConditionError::Evaluation(reason)
            }
        })
    }
}

impl Categorized for ConditionError {
    fn category(&self) -> Category {
        match self {
            Self::Evaluation(_) | Self::Stopped(_) => Category::Validation,
            Self::Panicked(_) => Category::Internal,
        }
    }
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
        assert_eq!(Condition::compile(jq).unwrap().holds(&value).unwrap(), expected);
    }

    #[rstest]
    #[case::error("error(\"too small\")", "jq failed: too small")]
    #[case::early_error("error(\"first\"), true", "jq failed: first")]
    #[case::kinds(".secret + 1", "jq failed: cannot calculate with a string and a number")]
    #[case::too_deep("def f: [f]; f", "jq was stopped: its recursion or nesting is too deep")]
    #[case::resource("resource(\"/a\")", "jq failed: resource() works in transforms only")]
    fn fails(#[case] jq: &str, #[case] message: &str) {
        let value = decode(PayloadType::Json, br#"{"secret": "hush"}"#).unwrap();
        assert_eq!(Condition::compile(jq).unwrap().holds(&value).unwrap_err().to_string(), message);
    }
}
