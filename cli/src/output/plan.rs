//! A plan as text, as Markdown for pull requests, and as a value for programs.

use std::fmt::Write as _;

use declarest_core::control::one_line;
use declarest_core::metadata::{Change, Difference};
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, Value};
use declarest_core::sync::{Action, Failure, Kept, Plan, PruneRefused, Reason, Step};
use serde::Serialize;

use super::changed_lines::changed_lines;
use super::diff::DiffRecord;

/// The maximum number of characters of a value in text.
const VALUE: usize = 60;
/// The maximum number of differences of one resource in text.
const LINES: usize = 20;
/// The maximum length of Markdown in bytes. A comment on GitHub has at most 65,536 characters.
const COMMENT: usize = 60_000;
/// Identifies the comment of an earlier run, which a new comment replaces.
pub const MARKER: &str = "<!-- declarest-plan -->";

/// The colours of steps (SGR parameters of ECMA-48).
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// A plan for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanView<'p> {
    revision: Option<String>,
    summary: declarest_core::sync::Summary,
    actions: Vec<ActionView<'p>>,
    unchanged: usize,
    targeted: usize,
    failures: &'p [Failure],
    #[serde(skip_serializing_if = "<[Kept]>::is_empty")]
    kept: &'p [Kept],
    prune_refused: Option<&'p PruneRefused>,
}

/// One action. Its differences have the members of `resource diff`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActionView<'p> {
    path: &'p str,
    step: Step,
    reason: Reason,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<DiffRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<&'p str>,
    /// The requests that are known before the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<String>,
    /// The attributes that an update sets after all other writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deferred: Vec<String>,
}

impl<'p> PlanView<'p> {
    pub fn new(plan: &'p Plan) -> Self {
        let action = |action: &'p Action| {
            let path = action.path.as_str();
            let differences = action.differences.iter();
            let differences = differences.map(|difference| DiffRecord::new(path, difference)).collect();
            let depends_on = action.depends_on().iter().map(LogicalPath::as_str).collect();
            let deferred = action.deferred().iter().map(ToString::to_string).collect();
            ActionView {
                path,
                step: action.step,
                reason: action.reason,
                differences,
                depends_on,
                requests: action.requests(),
                deferred,
            }
        };
        Self {
            revision: plan.revision.as_ref().map(ToString::to_string),
            summary: plan.summary(),
            actions: plan.actions.iter().map(action).collect(),
            unchanged: plan.unchanged,
            targeted: plan.targeted,
            failures: &plan.failures,
            kept: &plan.kept,
            prune_refused: plan.prune_refused.as_ref(),
        }
    }
}

/// Returns the plan as text: a line per resource, below it its differences from the server's value to the desired
/// one, and a summary.
pub fn text(plan: &Plan, colour: bool) -> String {
    let mut text = String::new();
    for action in &plan.actions {
        let Some((sign, sgr)) = sign(action) else { continue };
        let path = shown(action);
        let _ = if colour {
            writeln!(text, "\x1b[{sgr}m{sign} {path}\x1b[0m")
        } else {
            writeln!(text, "{sign} {path}")
        };
        for line in differences(action) {
            let _ = writeln!(text, "    {line}");
        }
    }
    for kept in &plan.kept {
        let _ = writeln!(text, "{}", not_deleted(kept));
    }
    text + &summary(plan)
}

/// Returns the path of the resource, with a note if the request cannot be made.
fn shown(action: &Action) -> String {
    let failed = if action.is_impossible() { " (failed)" } else { "" };
    format!("{}{failed}", one_line(action.path.as_str()))
}

/// Returns the last line of a plan. It starts with `Plan:` only if the plan has all resources.
fn summary(plan: &Plan) -> String {
    let summary = plan.summary();
    match plan.failures.len() {
        0 => format!("Plan: {summary}."),
        1 if summary.is_empty() => "No plan: 1 resource failed.".to_owned(),
        failed if summary.is_empty() => format!("No plan: {failed} resources failed."),
        failed => format!("Incomplete plan: {summary}, {failed} failed."),
    }
}

/// Returns the line about a resource that is not deleted although Git does not declare it.
pub fn not_deleted(kept: &Kept) -> String {
    one_line(&format!("= {} kept: {}", kept.path, kept.reason)).into_owned()
}

/// Returns the plan as Markdown for the comment on a pull request, which is at most 60,000 bytes long.
pub fn markdown(plan: &Plan, path: &str, server: &str) -> String {
    let mut body = String::new();
    let mut omitted = 0;
    for action in &plan.actions {
        // "!" marks a change in the syntax "diff".
        let sign = match action.step {
            Step::Create => '+',
            Step::Update => '!',
            Step::Delete if action.replaces() => '!',
            Step::Delete => '-',
            Step::Skip => continue,
        };
        let mut lines = format!("{sign} {}\n", shown(action));
        for line in differences(action) {
            let _ = writeln!(lines, "{sign}   {line}");
        }
        if body.len() + lines.len() > COMMENT {
            omitted += 1;
        } else {
            body.push_str(&lines);
        }
    }
    let fence = fence(&body);
    let (path, server) = (code(path), code(server));
    let mut text = format!("{MARKER}\n### Plan for {path}\n\nServer {server}. {}\n", summary(plan));
    if !body.is_empty() {
        let _ = write!(text, "\n{fence}diff\n{body}{fence}\n");
    }
    if omitted > 0 {
        let _ = write!(text, "\n{omitted} more resources are not shown.\n");
    }
    for kept in plan.kept.iter().take(LINES) {
        let _ = write!(text, "\n- **kept** {}: {}", code(kept.path.as_str()), prose(&kept.reason));
    }
    if plan.kept.len() > LINES {
        let _ = write!(text, "\n- {} more resources are kept", plan.kept.len() - LINES);
    }
    for failure in plan.failures.iter().take(LINES) {
        let message: String = failure.message.chars().take(500).collect();
        let _ = write!(text, "\n- **failed** {}: {}", code(failure.path.as_str()), prose(&message));
    }
    if plan.failures.len() > LINES {
        let _ = write!(text, "\n- {} more resources failed", plan.failures.len() - LINES);
    }
    text
}

/// Returns a text as a code span of Markdown.
fn code(text: &str) -> String {
    format!("`{}`", one_line(text).replace('`', "'"))
}

/// Returns a text for a line of Markdown, without code and HTML.
fn prose(text: &str) -> String {
    one_line(&text.replace(['\n', '\r'], " ")).replace('<', "&lt;").replace('`', " ")
}

/// Returns a fence of backticks that does not occur in `body`.
fn fence(body: &str) -> String {
    let longest = body.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Returns the change of the resource that an action causes.
pub fn change(action: &Action) -> &'static str {
    match action.step {
        Step::Create => "would be created",
        Step::Update => "would be updated",
        Step::Delete if action.replaces() => "would be replaced",
        Step::Delete => "would be deleted",
        Step::Skip => "would not change",
    }
}

fn sign(action: &Action) -> Option<(&'static str, &'static str)> {
    match action.step {
        Step::Create => Some(("+", GREEN)),
        Step::Update => Some(("~", YELLOW)),
        Step::Delete if action.replaces() => Some(("-/+", RED)),
        Step::Delete => Some(("-", RED)),
        Step::Skip => None,
    }
}

/// Returns the lines about the differences of an action, such as `/tier: "free" -> "gold"`.
pub fn differences(action: &Action) -> Vec<String> {
    let mut lines: Vec<String> = action.differences.iter().take(LINES).flat_map(lines).collect();
    if action.differences.len() > LINES {
        lines.push(format!("... {} more", action.differences.len() - LINES));
    }
    lines.extend(action.deferred().iter().map(|pointer| format!("{pointer}: set after all other writes")));
    lines.iter().map(|line| one_line(line).into_owned()).collect()
}

/// Returns a line, and below it those that differ if both values are long.
fn lines(difference: &Difference) -> Vec<String> {
    let Difference { path, change, desired, observed } = difference;
    let path = if path.is_empty() { "the whole resource" } else { path };
    let line = match change {
        // The server has a value that is not desired.
        Change::Add => format!("{path}: {} -> (removed)", folded(observed)),
        Change::Remove => format!("{path}: (absent) -> {}", folded(desired)),
        Change::Replace if desired == observed => format!("{path}: (secret value changes)"),
        Change::Replace if short(observed).is_none() && short(desired).is_none() => {
            return long(path, observed, desired);
        }
        Change::Replace => format!("{path}: {} -> {}", folded(observed), folded(desired)),
    };
    vec![line]
}

fn long(path: &str, observed: &Value, desired: &Value) -> Vec<String> {
    let mut lines = vec![format!("{path}: {} -> {}", size(observed), size(desired))];
    let changed = changed_lines(observed, desired);
    lines.extend(changed.iter().take(LINES).map(|line| format!("  {line}")));
    if changed.len() > LINES {
        lines.push(format!("  ... {} more lines", changed.len() - LINES));
    }
    lines
}

/// Returns a value on one line; `None` if it is long.
fn short(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => {
            Some(format!("<binary {}, {} bytes>", PayloadType::OctetStream.media_type(), bytes.len()))
        }
        Value::Object(members) if members.len() > 3 => None,
        Value::Array(items) if items.len() > 5 => None,
        value => Some(json(value)).filter(|text| text.chars().count() <= VALUE),
    }
}

/// Returns a value on one line, shortened if it is long.
fn folded(value: &Value) -> String {
    short(value).unwrap_or_else(|| match value {
        Value::Object(members) if members.len() > 3 => size(value),
        Value::Array(items) if items.len() > 5 => size(value),
        value => {
            let text = json(value);
            let start: String = text.chars().take(VALUE).collect();
            format!("{start}... ({} characters)", text.chars().count())
        }
    })
}

/// Returns the size of a long value.
fn size(value: &Value) -> String {
    match value {
        Value::Object(members) => format!("{{{} members}}", members.len()),
        Value::Array(items) => format!("[{} items]", items.len()),
        value => format!("({} characters)", value.as_str().unwrap_or_default().chars().count()),
    }
}

fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("plain", "```")]
    #[case("a ``` b", "````")]
    #[case("a ````` b", "``````")]
    fn fences_are_longer_than_the_content(#[case] body: &str, #[case] expected: &str) {
        assert_eq!(fence(body), expected);
    }

    #[test]
    fn long_values_are_shown_by_the_lines_that_differ() {
        let items = |last: i64| Value::Array((1..=5).chain([last]).map(Value::Int).collect());
        let (desired, observed) = (items(7), items(6));
        let difference = Difference { path: "/list".to_owned(), change: Change::Replace, desired, observed };
        assert_eq!(lines(&difference), ["/list: [6 items] -> [6 items]", "  -   6", "  +   7"]);
        let text = |end: &str| Value::from("a line\n".repeat(20) + end);
        let difference = Difference { desired: text("new"), observed: text("old"), ..difference };
        assert_eq!(lines(&difference), ["/list: (143 characters) -> (143 characters)", "  - old", "  + new"]);
        let many =
            |last: u32| Value::from((0..last).fold(String::new(), |text, line| format!("{text}{line}\n")));
        let shown = lines(&Difference { desired: many(60), observed: many(30), ..difference });
        assert_eq!(shown[..2], ["/list: (80 characters) -> (170 characters)", "  + 30"]);
        assert_eq!(shown.last().unwrap(), "  ... 10 more lines");
    }

    #[rstest]
    #[case(Value::from("gold"), "\"gold\"")]
    #[case(Value::from("x".repeat(100)), &format!("\"{}... (102 characters)", "x".repeat(59)))]
    #[case(Value::Array(vec![Value::Int(1); 6]), "[6 items]")]
    #[case(Value::Array(vec![Value::Int(1); 2]), "[1,1]")]
    #[case(Value::Bytes(vec![0]), "<binary application/octet-stream, 1 bytes>")]
    fn long_values_are_folded(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(folded(&value), expected);
    }
}
