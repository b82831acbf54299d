//! CEL rules of custom resources (`x-kubernetes-validations`).
//!
//! A rule has the variable `self`, the value of its schema node. In an update, it also has `oldSelf` if the node is
//! found in the old object: fields by name, items of list maps by their keys. A rule that uses `oldSelf` is a
//! transition rule, which is skipped if there is no old value.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Program, extensions};
use serde_json::Value;

use super::structural::{ListType, Structural, item_key};
use crate::crd::parse_duration;
use crate::standalone::api::status_error::{Cause, FieldError};

/// The standard library, and the string and list functions that Kubernetes adds to it.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    for extension in [extensions::strings, extensions::lists] {
        if let Err(error) = env.add_extension(extension) {
            tracing::error!(%error, "a CEL extension could not be added");
        }
    }
    Arc::new(env)
});

/// A rule that could not be compiled.
#[derive(Debug)]
pub(crate) struct RuleError {
    pub rule: String,
    pub message: String,
}

/// The rules of a schema, as a tree of the same shape. Nodes without rules at or below them are missing.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    here: Vec<Rule>,
    properties: BTreeMap<String, Rules>,
    additional: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
}

#[derive(Debug)]
struct Rule {
    source: String,
    program: Program,
    is_transition: bool,
    message: Option<String>,
    message_expression: Option<Program>,
    cause: Cause,
    field_path: Option<String>,
}

impl Rules {
    /// Compiles all rules of the schema of a definition.
    pub(crate) fn compile(source: &Value) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        for rule in source["x-kubernetes-validations"].as_array().into_iter().flatten() {
            rules.here.push(Rule::compile(rule)?);
        }
        for (name, schema) in source["properties"].as_object().into_iter().flatten() {
            let below = Self::compile(schema)?;
            if !below.is_empty() {
                rules.properties.insert(name.clone(), below);
            }
        }
        let below = |schema: &Value| -> Result<Option<Box<Self>>, RuleError> {
            if !schema.is_object() {
                return Ok(None);
            }
            let below = Self::compile(schema)?;
            Ok((!below.is_empty()).then(|| Box::new(below)))
        };
        rules.additional = below(&source["additionalProperties"])?;
        rules.items = below(&source["items"])?;
        Ok(rules)
    }

    fn is_empty(&self) -> bool {
        self.here.is_empty()
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.items.is_none()
    }
}

impl Rule {
    fn compile(source: &Value) -> Result<Self, RuleError> {
        let text = |key: &str| source[key].as_str().map(str::to_owned);
        let rule = text("rule").unwrap_or_default();
        let program = |expression: &str| {
            ENVIRONMENT
                .compile(expression)
                .map_err(|error| RuleError { rule: expression.to_owned(), message: error.to_string() })
        };
        if source["optionalOldSelf"] == true {
            return Err(RuleError { rule, message: "optionalOldSelf is not supported".to_owned() });
        }
        let compiled = program(&rule)?;
        Ok(Self {
            is_transition: compiled.references().has_variable("oldSelf"),
            program: compiled,
            message: text("message"),
            message_expression: text("messageExpression").as_deref().map(program).transpose()?,
            cause: match source["reason"].as_str() {
                Some("FieldValueForbidden") => Cause::Forbidden,
                Some("FieldValueRequired") => Cause::Required,
                Some("FieldValueDuplicate") => Cause::Duplicate,
                _ => Cause::Invalid,
            },
            field_path: text("fieldPath"),
            source: rule,
        })
    }

    /// Returns an error if the value violates the rule.
    fn check(&self, context: &Context<'_, '_>, path: &str, value: &Value) -> Option<FieldError> {
        let described = self.message.clone().unwrap_or_else(|| format!("failed rule: {}", self.source));
        let detail = match self.program.execute(context) {
            Ok(cel::Value::Bool(true)) => return None,
            Ok(cel::Value::Bool(false)) => match self.evaluate_message(context) {
                Some(message) => message,
                None => described,
            },
            Ok(other) => {
                format!("rule evaluated to {:?}, not to a boolean: {}", other.type_of(), self.source)
            }
            Err(error) => format!("{error} evaluating rule: {described}"),
        };
        let field = match &self.field_path {
            Some(below) => format!("{path}{below}").trim_start_matches('.').to_owned(),
            None => path.to_owned(),
        };
        Some(FieldError::new(field, self.cause, value, &detail))
    }

    fn evaluate_message(&self, context: &Context<'_, '_>) -> Option<String> {
        match self.message_expression.as_ref()?.execute(context) {
            Ok(cel::Value::String(text)) if !text.trim().is_empty() => Some(text.to_string()),
            _ => None,
        }
    }
}

/// Runs all rules on `object`.
pub(crate) fn check(
    rules: &Rules,
    schema: &Structural,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(rules, schema, object, old, "", &mut errors);
    errors
}

fn walk(
    rules: &Rules,
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if value.is_null() {
        return;
    }
    if !rules.here.is_empty() {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        if let Err(error) = context.add_function("duration", duration) {
            tracing::error!(%error, "a CEL function could not be added");
        }
        context.add_variable_from_value("self", to_cel(value, Some(schema)));
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", to_cel(old, Some(schema)));
        }
        let runs = |rule: &&Rule| !rule.is_transition || old.is_some();
        errors.extend(rules.here.iter().filter(runs).filter_map(|rule| rule.check(&context, path, value)));
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = rules.properties.get(name).or(rules.additional.as_deref());
                if let (Some(below), Some(schema)) = (below, schema.field(name)) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    let old = old.and_then(|old| old.get(name));
                    walk(below, schema, field, old, &path, errors);
                }
            }
        }
        Value::Array(items) => {
            let (Some(below), Some(item_schema)) = (&rules.items, &schema.items) else { return };
            for (index, item) in items.iter().enumerate() {
                let old = old.and_then(|old| old_item(schema, item, old));
                walk(below, item_schema, item, old, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

/// Returns the item of the old list with the same key. Only list maps have such keys.
fn old_item<'a>(schema: &Structural, item: &Value, old: &'a Value) -> Option<&'a Value> {
    if !matches!(schema.list, ListType::Map(_)) {
        return None;
    }
    let items = schema.items.as_deref();
    let key = item_key(&schema.list, items, item);
    old.as_array()?.iter().find(|candidate| item_key(&schema.list, items, candidate) == key)
}

/// `duration()` of the standard library, in nanoseconds. In `cel`, it is part of the feature `chrono`, which contains the
/// time zones of the world.
#[expect(clippy::needless_pass_by_value, reason = "`cel` passes values")]
fn duration(text: Arc<String>) -> Result<i64, ExecutionError> {
    let nanoseconds = parse_duration(&text).and_then(|duration| i64::try_from(duration.as_nanos()).ok());
    nanoseconds
        .ok_or_else(|| ExecutionError::function_error("duration", format!("{text:?} is not a duration")))
}

/// Converts a JSON value to CEL like Kubernetes: integers are `int`, declared names are escaped.
fn to_cel(value: &Value, schema: Option<&Structural>) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(flag) => cel::Value::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) if !schema.is_some_and(|schema| schema.number) => cel::Value::Int(integer),
            _ => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            items.iter().map(|item| to_cel(item, schema)).collect::<Vec<cel::Value>>().into()
        }
        Value::Object(fields) => {
            let entries = fields.iter().map(|(name, field)| {
                let declared = schema.is_some_and(|schema| schema.declares(name));
                let key = if declared { escape(name) } else { name.clone() };
                (key, to_cel(field, schema.and_then(|schema| schema.field(name))))
            });
            entries.collect::<HashMap<String, cel::Value>>().into()
        }
    }
}

/// Words that are not identifiers in CEL and are escaped as `__word__` (Kubernetes, "Validation rules").
const RESERVED: [&str; 21] = [
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
];

fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
