//! The alerts and the dashboard of the overlay monitoring use only series that the operator exports.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::contract::status::{Check, ContractStatus, Phase};
use declarest_core::server::{Gate, Throttling};
use declarest_operator::telemetry::{Metrics, Subject, SyncCounts};
use regex::Regex;
use serde_json::Value;

type Labels = BTreeSet<String>;

const SUBJECT: Subject<'_> = Subject { namespace: "team", name: "a" };

/// Returns the labels of each series after every metric was recorded once.
fn exported() -> BTreeMap<String, Labels> {
    series_of(&recorded())
}

/// Returns what is exported after every metric was recorded once, except those of contracts.
fn recorded() -> String {
    let metrics = Metrics::new().unwrap();
    metrics.polled(SUBJECT, true);
    metrics.revision_changed(SUBJECT);
    metrics.webhook_received("github", "accepted");
    metrics.policy_reconciled(SUBJECT, true, "Ready", Duration::from_secs(1));
    metrics.synced(SUBJECT, SyncCounts::default());
    metrics.policy_succeeded(SUBJECT, jiff::Timestamp::now());
    metrics.condition("SyncPolicy", SUBJECT, "Ready", "True");
    metrics.requested(SUBJECT, "GET", "200", Duration::from_secs(1));
    metrics.throttled(SUBJECT, true);
    metrics.token_asked(SUBJECT, "first", true);
    metrics.open_queue("SyncPolicy");
    let gate = Arc::new(Gate::new(&Throttling::default()).unwrap());
    metrics.show_gate(SUBJECT, &gate);
    text_of(&metrics)
}

/// Returns the labels of the series of contracts, which only servers with a contract have.
fn exported_of_contracts() -> BTreeMap<String, Labels> {
    series_of(&recorded_of_contracts())
}

fn recorded_of_contracts() -> String {
    let metrics = Metrics::new().unwrap();
    let status = ContractStatus {
        phase: Some(Phase::Degraded),
        hash: Some("sha256:0".to_owned()),
        checks: vec![Check::default()],
        ..ContractStatus::default()
    };
    metrics.contract(SUBJECT, &status, 0);
    text_of(&metrics)
}

/// Returns the type of each metric in the exported `text`.
fn types_of(text: &str) -> BTreeMap<String, String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

fn text_of(metrics: &Metrics) -> String {
    String::from_utf8(metrics.encode().unwrap()).unwrap()
}

/// Returns the labels of each series in the exported `text`.
fn series_of(text: &str) -> BTreeMap<String, Labels> {
    let series = text.lines().filter(|line| !line.starts_with('#'));
    let name_of = |line: &str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
    series.map(|line| (name_of(line), words(r#"([a-z_]+)=""#, line).into_iter().collect())).collect()
}

/// Returns the first group of each match, or the whole match.
fn words(pattern: &str, text: &str) -> Vec<String> {
    let matches = Regex::new(pattern).unwrap();
    matches
        .captures_iter(text)
        .map(|found| found.get(1).or_else(|| found.get(0)).unwrap().as_str().to_owned())
        .collect()
}

/// A query, and the labels that the texts beside it show.
struct Query {
    place: String,
    expression: String,
    shown: Vec<String>,
}

fn overlay(file: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/overlays/monitoring");
    fs::read_to_string(directory.join(file)).unwrap()
}

fn alerts() -> Vec<Query> {
    let rule: Value = serde_saphyr::from_str(&overlay("prometheus_rule.yaml")).unwrap();
    let rules = rule["spec"]["groups"][0]["rules"].as_array().unwrap();
    let query = |rule: &Value| Query {
        place: rule["alert"].as_str().unwrap().to_owned(),
        expression: rule["expr"].as_str().unwrap().to_owned(),
        shown: words(r"\$labels\.([a-z_]+)", &rule["annotations"].to_string()),
    };
    rules.iter().map(query).collect()
}

fn dashboard() -> Vec<Query> {
    let dashboard: Value = serde_json::from_str(&overlay("declarest-operator.json")).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push(Query {
                place: panel["title"].as_str().unwrap().to_owned(),
                expression: target["expr"].as_str().unwrap().to_owned(),
                shown: words(r"\{\{([a-z_]+)\}\}", target["legendFormat"].as_str().unwrap_or_default()),
            });
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(expression) = variable["query"]["query"].as_str() {
            let place = variable["name"].to_string();
            let shown = words(r", ([a-z_]+)\)$", expression);
            queries.push(Query { place, expression: expression.to_owned(), shown });
        }
    }
    queries
}

/// Returns the labels that Prometheus adds to all series, by the monitor of the Service.
fn target_labels() -> Labels {
    let monitor: Value = serde_saphyr::from_str(&overlay("service_monitor.yaml")).unwrap();
    let labels = monitor["spec"]["podTargetLabels"].as_array().unwrap().iter();
    labels.map(|label| label.as_str().unwrap().replace(['.', '/', '-'], "_")).collect()
}

/// Returns the names and labels of a query that no series has.
fn unknown(query: &Query, exported: &BTreeMap<String, Labels>) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut known = target_labels();
    let selectors = Regex::new(r"(declarest_operator_[a-z_]+)(?:\{([^}]*)\})?").unwrap();
    for selector in selectors.captures_iter(&query.expression) {
        let Some(labels) = exported.get(&selector[1]) else {
            unknown.push(selector[1].to_owned());
            continue;
        };
        let matchers = selector.get(2).map_or("", |matchers| matchers.as_str());
        let matched = words(r"([a-z_]+) *(?:=|!)", matchers);
        unknown.extend(matched.into_iter().filter(|label| !labels.contains(label)));
        known.extend(labels.iter().cloned());
    }
    let grouped = words(r" (?:by|on|without|ignoring) *\(([^)]*)\)", &query.expression);
    let grouped = grouped.iter().flat_map(|labels| labels.split(',')).map(|label| label.trim().to_owned());
    let grouped = grouped.filter(|label| !label.is_empty());
    unknown.extend(grouped.chain(query.shown.iter().cloned()).filter(|label| !known.contains(label)));
    unknown
}

#[test]
fn alerts_and_panels_use_exported_series_only() {
    let mut exported = exported();
    exported.extend(exported_of_contracts());
    let queries: Vec<Query> = alerts().into_iter().chain(dashboard()).collect();
    assert!(queries.len() > 25, "{} queries", queries.len());
    for query in &queries {
        let uses_series = query.expression.contains("declarest_operator_");
        assert!(uses_series, "{}: {}", query.place, query.expression);
        assert_eq!(unknown(query, &exported), [] as [&str; 0], "{}: {}", query.place, query.expression);
    }
}

#[test]
fn every_exported_series_is_in_the_dashboard() {
    let used = dashboard().into_iter().map(|query| query.expression).collect::<String>();
    for name in exported().keys().chain(exported_of_contracts().keys()) {
        let metric = metric_of(name);
        assert!(used.contains(metric), "{metric} is not in the dashboard");
    }
}

/// Returns the metric that has a series of this name.
fn metric_of(series: &str) -> &str {
    series.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count")
}

/// A metric: its type and its labels.
type Described = (String, Labels);

/// Returns the metrics of the table in docs/monitoring.md, without their prefix.
fn documented() -> BTreeMap<String, Described> {
    let page = include_str!("../../docs/monitoring.md");
    let (_, section) = page.split_once("\n## Metrics\n").unwrap();
    let rows = section.split("\n#").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    let mut documented = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [names, kind, labels] = cells[..] else { panic!("{row}") };
        let labels: Labels = words("[a-z]+", labels).into_iter().collect();
        for name in words("`([^`]+)`", names.split(": ").next().unwrap()) {
            // The names in one row share a beginning.
            let name = name.replace('…', "syncpolicy_resources");
            documented.insert(name, (kind.to_owned(), labels.clone()));
        }
    }
    documented
}

#[test]
fn the_page_lists_each_metric_with_its_type_and_labels() {
    let mut exported = BTreeMap::new();
    for text in [recorded(), recorded_of_contracts()] {
        let types = types_of(&text);
        for (series, mut labels) in series_of(&text) {
            let metric = metric_of(&series);
            labels.remove("le");
            let short = metric.strip_prefix("declarest_operator_").unwrap().to_owned();
            exported.insert(short, (types[metric].clone(), labels));
        }
    }
    assert_eq!(documented(), exported);
}

#[test]
fn unknown_names_and_labels_are_found() {
    let query = |expression: &str| Query {
        place: String::new(),
        expression: expression.to_owned(),
        shown: vec!["zone".to_owned()],
    };
    let exported = exported();
    let found = |expression| unknown(&query(expression), &exported);
    assert_eq!(found("declarest_operator_leaders == 1"), ["declarest_operator_leaders", "zone"]);
    let grouped =
        r#"sum by (namespace, shop) (declarest_operator_workqueue_depth{controller="a", kind=~"b"})"#;
    assert_eq!(found(grouped), ["kind", "namespace", "shop", "zone"]);
}

#[test]
fn each_reason_is_explained() {
    let source = include_str!("../src/controller/outcome.rs");
    let variants = source.split_once("pub enum Reason {").unwrap().1.split_once('}').unwrap().0;
    let reasons = words(r"(?m)^    (\w+),$", variants);
    assert!(reasons.len() > 15, "{reasons:?}");
    let (table, guide) =
        (include_str!("../../docs/operator.md"), include_str!("../../docs/troubleshooting.md"));
    for reason in reasons {
        assert!(table.contains(&format!("\n| `{reason}`")), "{reason} is not in docs/operator.md");
        assert!(guide.contains(&format!("\n### {reason}\n")), "{reason} is not in docs/troubleshooting.md");
    }
}
