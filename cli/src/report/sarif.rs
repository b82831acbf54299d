//! Reports in SARIF 2.1.0 (OASIS), which code scanning services read.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Case, Outcome, Report, joined};

/// Returns the log. It has no results for cases that passed or were skipped.
pub fn log(report: &Report<'_>) -> Json {
    let rules: Vec<Json> =
        report.rules.iter().map(|(id, help)| json!({"id": id, "help": {"text": help}})).collect();
    let results: Vec<Json> = report.cases.iter().filter_map(|case| result(case, report.root)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "declarest",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn result(case: &Case, root: &str) -> Option<Json> {
    let level = match case.outcome {
        Outcome::Passed | Outcome::Skipped => return None,
        Outcome::Warning => "warning",
        Outcome::Error => "error",
    };
    let mut result = json!({
        "ruleId": case.rule,
        "level": level,
        "message": {"text": case.message},
    });
    if let Some(file) = &case.file {
        let mut location = json!({"artifactLocation": {"uri": uri(&joined(root, file))}});
        if let Some(line) = case.line {
            location["region"] = match case.column {
                Some(column) => json!({"startLine": line, "startColumn": column}),
                None => json!({"startLine": line}),
            };
        }
        result["locations"] = json!([{"physicalLocation": location}]);
    }
    Some(result)
}

/// Returns a path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    path.bytes().fold(String::new(), |mut uri, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
        uri
    })
}
