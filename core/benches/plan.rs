//! How many resources one core plans in a second: rules, names, comparison and requests of 10,000 resources
//! in 100 collections under three layers of metadata with templates, once without jq and once with two jq
//! transforms for each resource. Payloads are in memory; nothing is read or sent. Prints a table; run by
//! `make bench-core`.

#![allow(clippy::print_stdout, reason = "the table is the product")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has no result")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use declarest_core::metadata::Metadata;
use declarest_core::metadata::transform::on_evaluation_stack;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, PayloadType, Value, decode};
use declarest_core::repository::DirTree;
use declarest_core::sync::{Observed, Resource, Step, decide};

const COLLECTIONS: usize = 100;
const MEMBERS: usize = 100;
const RUNS: usize = 5;

/// Drops what only the server knows, and so makes the sides equal.
const PARTS: &str =
    "[{excludeAttributes: [/etag, /updatedAt]}, {selectAttributes: [/name, /limits, /tier, /tags]}]";
const JQ: &str = "[{jqExpression: \"del(.etag, .updatedAt)\"}, {jqExpression: \".tags |= sort\"}]";

fn metadata(transforms: &str) -> (tempfile::TempDir, Metadata) {
    let root = tempfile::tempdir().unwrap();
    let write = |file: &str, content: &str| {
        let file = root.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    };
    write("_/metadata.yaml", "operations: {get: {headers: {X-Trace: \"{{/logicalPath}}\"}}}");
    write(
        "regions/_/metadata.yaml",
        "selector: {descendants: true}\nresource: {alias: /name, id: /uid, defaults: {value: {tier: silver}}}",
    );
    let shops = format!(
        "resource: {{remoteCollectionPath: \"/regions/{{{{/region}}}}/outlets\"}}
operations:
  update: {{method: PATCH, query: {{view: \"{{{{/tier}}}}\"}}}}
  compare: {{transforms: {transforms}}}"
    );
    write("regions/_/shops/_/metadata.yaml", &shops);
    let tree = Arc::new(DirTree::open(root.path()).unwrap());
    (root, Metadata::new(tree))
}

struct Subject {
    path: LogicalPath,
    desired: Arc<Value>,
    observed: Value,
}

/// One resource in ten differs from what the server has.
fn subject(collection: usize, member: usize) -> Subject {
    let parse = |json: String| decode(PayloadType::Json, json.as_bytes()).unwrap();
    let size = if member.is_multiple_of(10) { 2 } else { 1 };
    let desired = format!(
        r#"{{"name":"s{member}","uid":"u{member}","tier":"gold","limits":{{"cpu":{size},"memory":512}},"tags":["a","b"]}}"#
    );
    let observed = format!(
        r#"{{"name":"s{member}","uid":"u{member}","tier":"gold","limits":{{"cpu":1,"memory":512}},"tags":["a","b"],"etag":"x{member}","updatedAt":"2026-01-01"}}"#
    );
    Subject {
        path: LogicalPath::parse(&format!("/regions/r{collection}/shops/s{member}")).unwrap(),
        desired: Arc::new(parse(desired)),
        observed: parse(observed),
    }
}

/// Plans everything and returns how long it took, and how many resources need an update.
fn plan(metadata: &Metadata, subjects: &[Subject]) -> (Duration, usize) {
    let descriptor = Descriptor::of(PayloadType::Json);
    let started = Instant::now();
    let updates = on_evaluation_stack(|| {
        let needs_update = |subject: &&Subject| {
            let rules = metadata.rules(&subject.path).unwrap();
            let identity = rules.identify(&subject.path, &subject.desired).unwrap();
            let desired = Resource {
                path: subject.path.clone(),
                declared: None,
                rules,
                identity,
                decoded_name: None,
                payload: Arc::clone(&subject.desired),
                holds_references: false,
                descriptor: Some(descriptor.clone()),
                secrets: Arc::default(),
                seeded: false,
                held: declarest_core::memory::Share::default(),
                reading: None,
                values: None,
                secret_values: Arc::default(),
            };
            let observed = Observed::new(desired.clone(), Some(subject.observed.clone()));
            decide(&desired, &observed, false).unwrap().step == Step::Update
        };
        subjects.iter().filter(needs_update).count()
    });
    (started.elapsed(), updates.unwrap())
}

fn main() {
    let subjects: Vec<Subject> =
        (0..COLLECTIONS * MEMBERS).map(|index| subject(index / MEMBERS, index % MEMBERS)).collect();
    println!("{:<24} {:>12} {:>14} {:>8}", "transforms", "resources/s", "per resource", "updates");
    for (name, transforms) in [("none", "[]"), ("two select/exclude", PARTS), ("two jq", JQ)] {
        let (_root, metadata) = metadata(transforms);
        let mut times = Vec::new();
        let mut updates = 0;
        for _ in 0..RUNS {
            let (time, found) = plan(&metadata, &subjects);
            times.push(time);
            updates = found;
        }
        times.sort();
        let median = times[RUNS / 2].as_secs_f64();
        let count = f64::from(u32::try_from(subjects.len()).unwrap());
        println!("{name:<24} {:>12.0} {:>11.1} µs {updates:>8}", count / median, median / count * 1e6);
    }
}
