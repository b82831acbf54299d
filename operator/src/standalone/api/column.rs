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
    path: String,
}

impl From<&CustomResourceColumnDefinition> for Column {
    fn from(definition: &CustomResourceColumnDefinition) -> Self {
        Self {
            name: definition.name.clone(),
            kind: definition.type_.clone(),
            format: definition.format.clone().unwrap_or_default(),
            description: definition.description.clone().unwrap_or_default(),
            priority: definition.priority.unwrap_or(0),
            path: definition.json_path.clone(),
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
            path: path.to_owned(),
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

/// Returns the value at a path of fields, which may contain one filter: `.list[?(@.field=='value')].field`. The columns of
/// the kinds have no other paths.
fn follow<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let Some((list, filtered)) = path.split_once("[?(@.") else { return member(object, path) };
    let (filter, rest) = filtered.split_once(")]")?;
    let (field, wanted) = filter.split_once("==")?;
    let wanted = wanted.trim_matches(['\'', '"']);
    let item = member(object, list)?.as_array()?.iter().find(|item| item[field] == wanted)?;
    member(item, rest)
}

/// Returns the value at a path such as `.spec.mode`.
fn member<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|name| !name.is_empty()).try_fold(value, |value, name| value.get(name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::fields(".spec.mode", Some("observe"))]
    #[case::filter(".status.conditions[?(@.type=='Ready')].status", Some("True"))]
    #[case::double_quotes(".status.conditions[?(@.type==\"Ready\")].status", Some("True"))]
    #[case::absent(".spec.path", None)]
    #[case::no_match(".status.conditions[?(@.type=='Drifted')].status", None)]
    #[case::not_a_list(".spec[?(@.type=='Ready')].status", None)]
    fn paths(#[case] path: &str, #[case] expected: Option<&str>) {
        let conditions = json!([{"type": "Stalled", "status": "False"}, {"type": "Ready", "status": "True"}]);
        let object = json!({"spec": {"mode": "observe"}, "status": {"conditions": conditions}});
        assert_eq!(follow(&object, path).and_then(Value::as_str), expected);
    }

    #[test]
    fn the_columns_of_all_kinds_have_such_paths() {
        for definition in crate::crd::all() {
            let versions = definition.spec.versions.into_iter();
            for column in versions.flat_map(|version| version.additional_printer_columns.unwrap_or_default())
            {
                let (path, filter) = (&column.json_path, "[?(@.type=='");
                let fields = path.split_once(filter).map_or(path.clone(), |(list, rest)| {
                    format!("{list}{}", rest.split_once("')]").unwrap().1)
                });
                assert!(!fields.contains(['[', '\\', '*']) && fields.starts_with('.'), "{path}");
            }
        }
    }
}
