//! Structural schemas of custom resources.
//!
//! The stages are those of kube-apiserver: prune unknown fields, remove nulls of fields that are not nullable, set
//! defaults, validate against the schema, run CEL rules.

mod cel;
mod defaults;
mod prune;
mod structural;
mod validate;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::Value;

pub(crate) use prune::prune;
pub(crate) use structural::{ListType, MapType, Structural, item_key};

use super::ApiError;
use super::status_error::FieldError;
use cel::Rules;
use validate::Validator;

/// The compiled schema of one custom resource.
#[derive(Debug)]
pub(crate) struct Schema {
    pub root: Structural,
    validator: Validator,
    rules: Rules,
}

impl Schema {
    /// Compiles the schema of the definition with the name `crd`.
    pub(crate) fn compile(crd: &str, schema: &JSONSchemaProps) -> Result<Self, ApiError> {
        let source = serde_json::to_value(schema)
            .map_err(|error| ApiError::Schema { crd: crd.to_owned(), message: error.to_string() })?;
        let root = Structural::parse(&source);
        let validator = Validator::compile(&source)
            .map_err(|message| ApiError::Schema { crd: crd.to_owned(), message })?;
        let rules = Rules::compile(&source).map_err(|error| ApiError::Rule {
            crd: crd.to_owned(),
            rule: error.rule,
            message: error.message,
        })?;
        Ok(Self { root, validator, rules })
    }

    /// Removes fields that the schema does not declare. Returns their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        prune(object, &self.root)
    }

    /// Removes nulls of fields that are not nullable, and sets defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        defaults::apply(object, &self.root);
    }

    /// Validates `object`. With `old`, this is an update: transition rules run, and errors of unchanged values are
    /// ignored (validation ratcheting).
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = self.validator.check(object, old);
        errors.extend(structural::duplicates(object, &self.root));
        if errors.iter().any(|error| error.cause.blocks_rules()) {
            errors.push(FieldError::invalid(
                "<nil>",
                &Value::Null,
                "some validation rules were not checked because the object was invalid; correct the existing \
                 errors to complete validation",
            ));
            return errors;
        }
        errors.extend(cel::check(&self.rules, &self.root, object, old));
        errors
    }
}
