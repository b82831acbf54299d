//! Queries of results: jq, and `JSONPath` as in kubectl.

use declarest_core::language::jq;
use declarest_core::payload::Value;

use super::OutputError;

/// A query of a result.
#[derive(Debug)]
pub enum Query {
    Jq(jq::Query),
    Path(Vec<Part>),
}

/// A part of a `JSONPath` template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text outside of braces, or a quoted text in braces.
    Text(String),
    /// A path in braces.
    Path(Vec<Step>),
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Member(String),
    /// An item; a negative index counts from the end.
    Item(isize),
    /// All items or members.
    All,
}

impl Query {
    pub fn jq(text: &str) -> Result<Self, OutputError> {
        let refused =
            |error: jq::ExpressionError| OutputError::Query { kind: "jq", reason: error.to_string() };
        jq::Query::compile(text).map(Self::Jq).map_err(refused)
    }

    pub fn json_path(text: &str) -> Result<Self, OutputError> {
        parse(text).map(Self::Path).map_err(|reason| OutputError::Query { kind: "jsonpath", reason })
    }

    /// Returns the outputs as text: texts as they are, other values as compact JSON. Outputs of jq are lines.
    pub fn run(&self, value: &Value) -> Result<String, OutputError> {
        match self {
            Self::Jq(query) => {
                let failed =
                    |error: jq::EvaluationError| OutputError::Query { kind: "jq", reason: error.to_string() };
                let outputs = query.outputs(value).map_err(failed)?;
                Ok(outputs.iter().map(|output| plain(output) + "\n").collect())
            }
            Self::Path(parts) => Ok(parts.iter().map(|part| part.of(value)).collect()),
        }
    }
}

impl Part {
    fn of(&self, value: &Value) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Path(steps) => {
                let found = steps.iter().fold(vec![value], |values, step| {
                    values.into_iter().flat_map(|value| step.of(value)).collect()
                });
                found.into_iter().map(plain).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

impl Step {
    fn of<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Item(index), Value::Array(items)) => {
                let at = if *index < 0 {
                    items.len().checked_add_signed(*index)
                } else {
                    usize::try_from(*index).ok()
                };
                at.and_then(|at| items.get(at)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(members)) => members.values().collect(),
            _ => Vec::new(),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// Parses a template such as `{.metadata.name}{"\n"}`. Without braces, the whole text is a path.
fn parse(text: &str) -> Result<Vec<Part>, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("the path is empty; write a path such as {.name}".to_owned());
    }
    if !rest.contains('{') {
        return Ok(vec![Part::Path(steps(rest)?), Part::Text("\n".to_owned())]);
    }
    let mut parts = Vec::new();
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').ok_or_else(|| "a \"}\" is missing".to_owned())?;
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        let inside = inside.trim();
        parts.push(match inside.strip_prefix('"') {
            Some(_) => {
                Part::Text(serde_json::from_str(inside).map_err(|_| format!("{inside} is not a text"))?)
            }
            None => Part::Path(steps(inside)?),
        });
        rest = after;
    }
    parts.push(Part::Text(format!("{rest}\n")));
    Ok(parts)
}

fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut rest = path.trim().trim_start_matches('$');
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']').ok_or_else(|| "a \"]\" is missing".to_owned())?;
            steps.push(subscript(inside.trim())?);
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('.').unwrap_or(rest);
        if name.starts_with('.') {
            return Err("\"..\" is not supported; use --output jq=".to_owned());
        }
        let end = name.find(['.', '[']).unwrap_or(name.len());
        match &name[..end] {
            "" if end == name.len() || name.starts_with('[') => {}
            "*" => steps.push(Step::All),
            member => steps.push(Step::Member(member.to_owned())),
        }
        rest = &name[end..];
    }
    Ok(steps)
}

fn subscript(text: &str) -> Result<Step, String> {
    if text == "*" {
        return Ok(Step::All);
    }
    let quoted = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    match (quoted, text.parse()) {
        (Some(name), _) => Ok(Step::Member(name.to_owned())),
        (None, Ok(index)) => Ok(Step::Item(index)),
        (None, Err(_)) => {
            Err(format!("[{text}] is not an index, a name in quotes or *; use --output jq= for filters"))
        }
    }
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::{PayloadType, decode};
    use rstest::rstest;

    use super::*;

    fn run(query: Result<Query, OutputError>) -> String {
        let value =
            decode(PayloadType::Yaml, b"{items: [{name: a, n: 1}, {name: b, 'x.y': [true]}]}").unwrap();
        query.and_then(|query| query.run(&value)).unwrap()
    }

    #[rstest]
    #[case("{.items[0].name}", "a\n")]
    #[case(".items[*].name", "a b\n")]
    #[case("$.items[-1].name", "b\n")]
    #[case("{.items[1]['x.y'][0]}", "true\n")]
    #[case("names: {.items[*].name}{\"\\t\"}!", "names: a b\t!\n")]
    #[case("{.items[0]}", "{\"n\":1,\"name\":\"a\"}\n")]
    #[case("{.none.at[9]}", "\n")]
    fn json_paths(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(run(Query::json_path(text)), expected);
    }

    #[rstest]
    #[case("")]
    #[case("{.a")]
    #[case("{..a}")]
    #[case("{.a[?(@.b)]}")]
    #[case("{.a[0}")]
    fn other_paths_are_refused(#[case] text: &str) {
        assert!(Query::json_path(text).is_err());
    }

    #[test]
    fn outputs_of_jq_are_lines() {
        assert_eq!(run(Query::jq(".items[] | .name, .n")), "a\n1\nb\nnull\n");
        assert!(Query::jq(".[").is_err());
    }
}
