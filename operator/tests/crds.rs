//! The generated definitions and the samples, without a cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use declarest_operator::crd::{
    self, FieldErrors, Limits, ManagedServer, ResourceRepository, SecretStore, SyncPolicy, generate,
    reference,
};
use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn config(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(path)
}

#[test]
fn the_committed_definitions_are_the_generated_ones() {
    let generated = tempfile::tempdir().unwrap();
    generate::write(generated.path()).unwrap();
    let files = |dir: &Path| -> BTreeSet<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    };
    let committed = config("crd/bases");
    assert_eq!(files(&committed), files(generated.path()));
    for name in files(&committed) {
        let read = |dir: &Path| fs::read_to_string(dir.join(&name)).unwrap();
        assert!(
            read(&committed) == read(generated.path()),
            "config/crd/bases/{name} is out of date; run `make manifests`"
        );
    }
}

#[test]
fn each_definition_fits_into_an_annotation_of_kubectl_apply() {
    for crd in crd::all() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < 200 * 1024, "{} takes {size} bytes", crd.spec.names.kind);
    }
}

#[test]
fn every_field_of_a_spec_and_status_is_documented_and_typed() {
    for crd in crd::all() {
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        for part in ["spec", "status"] {
            let root = &schema["openAPIV3Schema"]["properties"][part];
            let path = format!("{}.{part}", crd.spec.names.kind);
            assert_documented(&path, root);
        }
    }
}

fn assert_documented(path: &str, schema: &Value) {
    assert!(schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true, "{path} has no type");
    assert!(schema["nullable"].is_null(), "{path} is nullable, which has() in a rule counts as present");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(property["description"].is_string(), "{path} has no description");
        assert_documented(&path, property);
    }
    if schema["items"].is_object() {
        assert_documented(&format!("{path}[]"), &schema["items"]);
    }
}

#[test]
fn names_are_those_that_users_type() {
    let names: Vec<_> = crd::all()
        .into_iter()
        .map(|crd| {
            assert_eq!(crd.spec.names.categories, Some(vec!["declarest".to_owned()]));
            assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), ("declarest.io", "Namespaced"));
            (crd.spec.names.plural, crd.spec.names.short_names.unwrap_or_default().concat())
        })
        .collect();
    let pair = |plural: &str, short: &str| (plural.to_owned(), short.to_owned());
    assert_eq!(
        names,
        [
            pair("managedservers", "ms"),
            pair("resourcerepositories", "rr"),
            pair("secretstores", "sst"),
            pair("syncpolicies", "sp"),
        ]
    );
}

fn sample<T: DeserializeOwned>(name: &str) -> T {
    let text = fs::read_to_string(config("samples").join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[rstest]
#[case::resource_repository(sample::<ResourceRepository>("resourcerepository.yaml").spec.validate(&Limits::default()))]
#[case::managed_server(sample::<ManagedServer>("managedserver.yaml").spec.validate(&Limits::default()))]
#[case::secret_store(sample::<SecretStore>("secretstore.yaml").spec.validate(&Limits::default()))]
#[case::sync_policy(sample::<SyncPolicy>("syncpolicy.yaml").spec.validate().map(drop))]
fn samples_are_valid(#[case] outcome: Result<(), FieldErrors>) {
    assert_eq!(outcome, Ok(()));
}

#[test]
fn the_sample_repository_uses_a_webhook() {
    let git = sample::<ResourceRepository>("resourcerepository.yaml").spec.git.unwrap();
    assert_eq!(git.webhook.unwrap().secret_ref.name, "desired-state-webhook");
}

#[test]
fn counters_are_written_even_when_they_are_zero() {
    let status = crd::SyncPolicyStatus {
        resource_stats: Some(crd::sync_policy::ResourceStats::default()),
        ..Default::default()
    };
    let counters = r#"{"targeted":0,"applied":0,"pruned":0,"failed":0,"created":0,"updated":0,"unchanged":0,"drifted":0}"#;
    let expected = format!(r#"{{"resourceStats":{counters},"consecutiveFailures":0}}"#);
    assert_eq!(serde_json::to_string(&status).unwrap(), expected);
}

#[test]
fn the_reference_names_each_field() {
    let page = reference::markdown(&crd::all());
    let committed = fs::read_to_string(config("../docs/kinds.md")).unwrap();
    assert!(page == committed, "docs/kinds.md is out of date; run `make manifests`");
    for row in [
        "| `git.auth.tokenRef` | `{key, name}` |",
        "| `mode` | string | `apply` writes to the server; `observe` only reports differences. Values: `apply`, `observe`. Default: `apply`. |",
        "| `contract.target.workload.kind` | string | Kind of the workload. Without it, the kinds that the contract allows are tried. Values: `Deployment`, `StatefulSet`, `DaemonSet`, `Job`, `CronJob`. |",
        "| `driftedResources[].path` | string, required | Logical path of the resource. |",
        "| `http.defaultHeaders` | map of string |",
    ] {
        assert!(page.lines().any(|line| line.starts_with(row)), "{row}");
    }
}
