//! The columns of tables, and their cells.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;
use serde_json::{Value, json};

/// A column in addition to the name.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i32,
    path: Vec<Step>,
}

/// One step of a simple JSON path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    /// `[?(@.field=="value")]`: the first item that matches.
    Where(String, String),
    /// A path that this API does not support; the cell is empty.
    Unsupported,
}

impl From<&CustomResourceColumnDefinition> for Column {
    fn from(definition: &CustomResourceColumnDefinition) -> Self {
        Self {
            name: definition.name.clone(),
            kind: definition.type_.clone(),
            format: definition.format.clone().unwrap_or_default(),
            description: definition.description.clone().unwrap_or_default(),
            priority: definition.priority.unwrap_or(0),
            path: parse_path(&definition.json_path),
        }
    }
}

impl Column {
    pub(crate) fn new(name: &str, kind: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: parse_path(path),
        }
    }

    /// Returns the column with the age of an object.
    pub(crate) fn age() -> Self {
        Self::new("Age", "date", ".metadata.creationTimestamp")
    }

    /// Returns the column as the header of a table shows it.
    pub(crate) fn definition(&self) -> Value {
        let kind = if self.kind == "date" { "string" } else { &self.kind };
        json!({
            "name": self.name,
            "type": kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// Returns the value of `object` in this column.
    pub(crate) fn cell(&self, object: &Value) -> Value {
        let Some(value) = follow(object, &self.path) else { return Value::Null };
        match (self.kind.as_str(), value) {
            ("date", Value::String(text)) => json!(age(text)),
            ("date", _) => json!("<unknown>"),
            ("string", Value::String(text)) => json!(text),
            ("string", other) => json!(other.to_string()),
            ("integer" | "number" | "boolean", value) if !value.is_object() && !value.is_array() => {
                value.clone()
            }
            _ => Value::Null,
        }
    }
}

/// Returns the time since a timestamp in the format of kubectl: one or two units.
fn age(timestamp: &str) -> String {
    let Ok(then) = timestamp.parse::<jiff::Timestamp>() else { return "<invalid>".to_owned() };
    let seconds = (jiff::Timestamp::now().as_second() - then.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => two(days / 365, "y", days % 365, "d"),
    }
}

/// Parses the JSON paths of columns: fields, indices and one equality filter.
fn parse_path(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.trim_matches(['{', '}']);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = closing(after) else { return vec![Step::Unsupported] };
            steps.push(bracket(&after[..end]));
            rest = &after[end + 1..];
        } else {
            let name_start = rest.strip_prefix('.').unwrap_or(rest);
            let (name, after) = field_name(name_start);
            if name.is_empty() && !after.starts_with('[') {
                return vec![Step::Unsupported];
            }
            if !name.is_empty() {
                steps.push(Step::Field(name));
            }
            rest = after;
        }
    }
    steps
}

/// Returns the position of the closing bracket, outside of quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices().find_map(|(position, letter)| {
        match (quote, letter) {
            (None, ']') => return Some(position),
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
        None
    })
}

/// Returns the field name up to the next step, and the rest. `\.` is a dot in the name.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((position, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[position..]),
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

fn bracket(content: &str) -> Step {
    let unquote = |text: &str| {
        let text = text.trim();
        let inner = text.strip_prefix(['\'', '"']).and_then(|text| text.strip_suffix(['\'', '"']));
        inner.map(str::to_owned)
    };
    if let Ok(index) = content.parse() {
        return Step::Index(index);
    }
    if let Some(filter) = content.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let parsed = filter
            .split_once("==")
            .and_then(|(path, value)| Some((path.trim().strip_prefix("@.")?.to_owned(), unquote(value)?)));
        return parsed.map_or(Step::Unsupported, |(field, value)| Step::Where(field, value));
    }
    unquote(content).map_or(Step::Unsupported, Step::Field)
}

fn follow<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Index(index) => value.get(index),
        Step::Where(field, wanted) => value.as_array()?.iter().find(|item| item[field] == wanted.as_str()),
        Step::Unsupported => None,
    })
}
