//! Tests of published bundles with tables of the expected requests.
//!
//! Each bundle in `tests/fixtures/bundles` has a table of expectations. The engine runs its cases against a server on
//! a loopback port, which follows the table and records unexpected requests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

mod bundles;
#[path = "../support/client.rs"]
mod client;
mod engine;
mod server;
mod table;

use std::path::Path;
use std::sync::LazyLock;

use declarest_core::path::LogicalPath;
use declarest_core::repository::DirTree;
use futures::future::join_all;
use rstest::rstest;

use engine::{Shared, World};
use server::Server;
use table::{Case, Operation, Table, directory};

#[rstest]
#[tokio::test]
async fn every_operation_sends_the_expected_requests(
    #[values("keycloak-bundle", "rundeck-bundle")] bundle: &str,
    #[values(
        Operation::List, Operation::Get, Operation::Create, Operation::Update, Operation::Delete,
        Operation::Compare, Operation::Apply
    )]
    operation: Operation,
) {
    check(bundle, &Table::of(bundle), unpacked(bundle), |case| case.operation == operation).await;
}

/// Returns the bundle in the fixtures of this crate, compiled once for all tests.
fn unpacked(bundle: &str) -> &'static Shared {
    static KEYCLOAK: LazyLock<Shared> = LazyLock::new(|| open("keycloak-bundle"));
    static RUNDECK: LazyLock<Shared> = LazyLock::new(|| open("rundeck-bundle"));
    match bundle {
        "keycloak-bundle" => &KEYCLOAK,
        "rundeck-bundle" => &RUNDECK,
        other => panic!("there is no bundle {other}"),
    }
}

fn open(bundle: &str) -> Shared {
    Shared::new(DirTree::open(&directory(bundle).join("metadata")).unwrap())
}

/// Runs the cases that `selects` accepts concurrently, and reports all that fail.
async fn check(bundle: &str, table: &Table, shared: &Shared, selects: impl Fn(&Case) -> bool) {
    let cases: Vec<&Case> = table.cases.iter().filter(|case| selects(case)).collect();
    assert!(!cases.is_empty(), "{bundle} has no such case");
    let outcomes = cases.iter().map(|case| async {
        let problems = problems(table, case, shared).await;
        let title =
            format!("{bundle}, {}, {}: {} ({})", case.collection, case.operation, case.name, case.path);
        (!problems.is_empty()).then(|| format!("{title}\n    {}", problems.join("\n    ")))
    });
    let failures: Vec<String> = join_all(outcomes).await.into_iter().flatten().collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases fail:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

async fn problems(table: &Table, case: &Case, shared: &Shared) -> Vec<String> {
    let server = Server::start(table, case).await;
    let world = World::new(case, shared, &server.base_url);
    let mut problems = world.run(case).await;
    problems.extend(server.finish());
    problems
}

#[rstest]
fn every_collection_has_a_case_for_every_operation(
    #[values("keycloak-bundle", "rundeck-bundle")] bundle: &str,
) {
    let table = Table::of(bundle);
    let mut collections = Vec::new();
    collect(&directory(bundle).join("metadata"), "", &mut collections);
    assert!(!collections.is_empty());
    for collection in &collections {
        for operation in [
            Operation::List,
            Operation::Get,
            Operation::Create,
            Operation::Update,
            Operation::Delete,
            Operation::Compare,
        ] {
            let reads = matches!(operation, Operation::List | Operation::Get);
            if !reads && table.read_only.contains(collection) {
                continue;
            }
            let of = |case: &Case| case.collection == *collection && case.operation == operation;
            assert!(table.cases.iter().any(of), "{bundle}: no case for {operation} of {collection}");
        }
    }
    for case in &table.cases {
        assert!(collections.contains(&case.collection), "{bundle}: {}: {}", case.name, case.collection);
        assert!(is_of_collection(case), "{bundle}: {}: {} is elsewhere", case.name, case.path);
    }
}

#[rstest]
fn bundles_declare_the_expected_secrets(#[values("keycloak-bundle", "rundeck-bundle")] bundle: &str) {
    let metadata = &unpacked(bundle).metadata;
    for secrecy in Table::of(bundle).secrets {
        let rules = metadata.rules(&LogicalPath::parse(&secrecy.path).unwrap()).unwrap();
        let attributes: Vec<String> =
            rules.resolved().secret_attributes.iter().map(ToString::to_string).collect();
        assert_eq!(
            (rules.resolved().secret, attributes),
            (secrecy.whole, secrecy.attributes),
            "{}",
            secrecy.path
        );
    }
}

/// Collects the selectors of the documents below `directory`, except that of the root.
fn collect(directory: &Path, selector: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{selector}/{name}"), found);
        } else if name == "metadata.yaml" && selector != "/_" {
            found.push(selector.strip_suffix("/_").unwrap().to_owned());
        }
    }
}

/// Returns whether the selector of the collection matches the path of the case, or one of its parents.
fn is_of_collection(case: &Case) -> bool {
    let path = LogicalPath::parse(&case.path).unwrap();
    let wanted: Vec<&str> = case.collection.split('/').skip(1).collect();
    let segments: Vec<&str> = path.segments().collect();
    let least = wanted.len() + usize::from(case.operation != Operation::List);
    segments.len() >= least
        && wanted.iter().zip(&segments).all(|(name, segment)| *name == "_" || name == segment)
}
