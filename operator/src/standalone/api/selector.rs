//! Label and field selectors.

use serde_json::Value;

use super::status_error::StatusError;

/// One condition on one label.
#[derive(Debug, PartialEq)]
enum LabelTerm {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// The selectors of a list or watch.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelTerm>,
    /// Path, value, and whether the field must equal the value (or must differ).
    fields: Vec<(String, String, bool)>,
}

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, StatusError> {
        let mut selector = Self::default();
        for term in split_terms(labels) {
            selector.labels.push(label_term(term).ok_or_else(|| {
                StatusError::bad_request(format!(
                    "unable to parse requirement: {term:?} of the label selector"
                ))
            })?);
        }
        for term in fields.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            let (path, value, wanted) = equality(term).ok_or_else(|| {
                StatusError::bad_request(format!("invalid selector: '{term}'; can't understand it"))
            })?;
            selector.fields.push((path.to_owned(), value.to_owned(), wanted));
        }
        Ok(selector)
    }

    /// Returns an error if a field path is not in `supported`.
    pub(crate) fn check_fields(&self, supported: &[&str]) -> Result<(), StatusError> {
        match self.fields.iter().find(|(path, _, _)| !supported.contains(&path.as_str())) {
            Some((path, _, _)) => Err(StatusError::bad_request(format!("field label not supported: {path}"))),
            None => Ok(()),
        }
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &str| labels[key].as_str();
        self.labels.iter().all(|term| match term {
            LabelTerm::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value))
            }
            LabelTerm::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|unwanted| unwanted != value))
            }
            LabelTerm::Exists(key) => label(key).is_some(),
            LabelTerm::Absent(key) => label(key).is_none(),
        }) && self.fields.iter().all(|(path, value, wanted)| (text_at(object, path) == *value) == *wanted)
    }
}

fn text_at(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, field| &value[field]) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Splits at commas outside of parentheses.
fn split_terms(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    selector
        .split(move |letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            letter == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|term| !term.is_empty())
}

fn equality(term: &str) -> Option<(&str, &str, bool)> {
    let (key, value, wanted) = if let Some((key, value)) = term.split_once("!=") {
        (key, value, false)
    } else if let Some((key, value)) = term.split_once("==") {
        (key, value, true)
    } else {
        let (key, value) = term.split_once('=')?;
        (key, value, true)
    };
    let key = key.trim();
    (!key.is_empty()).then_some((key, value.trim(), wanted))
}

fn label_term(term: &str) -> Option<LabelTerm> {
    let is_key = |key: &str| !key.is_empty() && !key.contains([' ', '(', ')', '=', '!']);
    if let Some((key, value, wanted)) = equality(term) {
        let (key, values) = (key.to_owned(), vec![value.to_owned()]);
        let term =
            if wanted { LabelTerm::In(key.clone(), values) } else { LabelTerm::NotIn(key.clone(), values) };
        return is_key(&key).then_some(term);
    }
    if let Some(key) = term.strip_prefix('!') {
        return is_key(key.trim()).then(|| LabelTerm::Absent(key.trim().to_owned()));
    }
    let Some((head, values)) = term.split_once('(') else {
        return is_key(term).then(|| LabelTerm::Exists(term.to_owned()));
    };
    let values = values.trim().strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    let mut words = head.split_whitespace();
    let (key, operator) = (words.next()?, words.next()?);
    if words.next().is_some() || !is_key(key) {
        return None;
    }
    match operator {
        "in" => Some(LabelTerm::In(key.to_owned(), values)),
        "notin" => Some(LabelTerm::NotIn(key.to_owned(), values)),
        _ => None,
    }
}
