//! The transform pipeline of one operation, compiled as far as it does not depend on a resource.

use super::document::{DocumentError, OperationName, Resolved, Step};
use super::transform::{self, Pipeline};
use crate::language::template::{Kind, Template};

/// A transform pipeline, compiled if it does not depend on the resource.
#[derive(Debug)]
pub(super) enum Steps {
    /// The pipeline is the same for all resources.
    Fixed(Pipeline),
    /// Some jq expressions depend on the resource.
    Rendered(Vec<StepRules>),
}

#[derive(Debug)]
pub(super) enum StepRules {
    Fixed(Step),
    Jq(Template),
}

impl Steps {
    pub(super) fn compile(resolved: &Resolved, operation: OperationName) -> Result<Self, DocumentError> {
        let field = |index| step_field(resolved, operation, index);
        let mut steps = Vec::new();
        for (index, step) in resolved.steps(operation).enumerate() {
            steps.push(match step {
                Step::Jq(text) => match Template::parse(text, Kind::Jq) {
                    Ok(template) if template.is_static() => StepRules::Fixed(step.clone()),
                    Ok(template) => StepRules::Jq(template),
                    Err(error) => {
                        return Err(DocumentError::invalid(
                            format!("{}.jqExpression", field(index)),
                            error.to_string(),
                        ));
                    }
                },
                other => StepRules::Fixed(other.clone()),
            });
        }
        if steps.iter().any(|step| matches!(step, StepRules::Jq(_))) {
            return Ok(Self::Rendered(steps));
        }
        let pipeline = Pipeline::compile(resolved.steps(operation).cloned());
        pipeline.map(Self::Fixed).map_err(|error| match error {
            transform::TransformError::Expression { step, source } => {
                DocumentError::invalid(format!("{}.jqExpression", field(step)), source.to_string())
            }
            error => DocumentError::invalid(format!("operations.{operation}.transforms"), error.to_string()),
        })
    }

    /// Returns the pipeline if its steps only take a member of an answer, and remove attributes of the member.
    pub(super) fn only_reducing(&self) -> Option<&Pipeline> {
        match self {
            Self::Fixed(pipeline) => Some(pipeline).filter(|pipeline| pipeline.only_reduces()),
            Self::Rendered(_) => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Fixed(pipeline) => pipeline.is_empty(),
            Self::Rendered(steps) => steps.is_empty(),
        }
    }
}

/// Returns the field of the step of `operation` with this index. The shared steps come first.
pub(super) fn step_field(resolved: &Resolved, operation: OperationName, index: usize) -> String {
    match index.checked_sub(resolved.transforms.len()) {
        None => format!("operations.defaults.transforms[{index}]"),
        Some(own) => format!("operations.{operation}.transforms[{own}]"),
    }
}
