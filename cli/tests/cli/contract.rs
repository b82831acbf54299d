use rstest::rstest;

use crate::environment::Home;

pub const VALID: &str = "pactoVersion: '1.0'
service: {name: shop, version: 1.2.0, image: {ref: 'r.io/shop:1'}}
interfaces: [{name: api, type: http, port: 8080}]
runtime:
  workload: service
  state: {type: stateless, persistence: {scope: local, durability: ephemeral}, dataCriticality: low}
scaling: {min: 2, max: 4}
";

pub const OBJECTS: &str = "apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    spec:
      containers: [{name: shop, image: 'r.io/shop:1', ports: [{name: http, containerPort: 8080}]}]
";

fn home(contract: &str, objects: &str) -> Home {
    let home = Home::new();
    home.write("pacto.yaml", contract);
    home.write("objects/all.yaml", objects);
    home
}

fn verify(home: &Home, rest: &[&str]) -> crate::environment::Run {
    let (contract, objects) = (home.path("pacto.yaml"), home.path("objects"));
    let mut args = vec!["contract", "verify", "--contract", contract.to_str().unwrap()];
    args.extend(["--objects", objects.to_str().unwrap()]);
    args.extend(rest);
    home.run(&args)
}

#[test]
fn a_valid_contract() {
    let home = home(VALID, "");
    let file = home.path("pacto.yaml");
    let run = home.run(&["contract", "validate", file.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.starts_with("valid: shop 1.2.0 from "), "{run}");
    let run = home.run(&["contract", "validate", file.to_str().unwrap(), "-o", "json"]);
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&result["valid"], &result["serviceName"], &result["version"]),
        (&true.into(), &"shop".into(), &"1.2.0".into())
    );
    assert!(result["hash"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!((&result["errors"], &result["warnings"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn a_document_that_cannot_be_read_has_no_name() {
    let home = home("pactoVersion: [", "");
    let file = home.path("pacto.yaml");
    let run = home.run(&["contract", "validate", file.to_str().unwrap()]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.starts_with("invalid: <home>/pacto.yaml, sha256:"), "{run}");
    assert!(run.stdout.contains("\nerror PARSE_ERROR: "), "{run}");
}

#[rstest]
#[case::error("service: {}", &[], 2, "error UNKNOWN_FIELD runtime.healthy")]
#[case::warning("sla: 1", &[], 0, "warning UNKNOWN_FIELD sla")]
#[case::strict("sla: 1", &["--strict"], 2, "error UNKNOWN_FIELD sla")]
fn findings(#[case] change: &str, #[case] flags: &[&str], #[case] code: i32, #[case] line: &str) {
    let contract = match change {
        "service: {}" => VALID.replace("runtime:\n", "runtime:\n  healthy: 1\n"),
        extra => format!("{VALID}{extra}\n"),
    };
    let home = home(&contract, "");
    let file = home.path("pacto.yaml");
    let run = home.run(&[&["contract", "validate", file.to_str().unwrap()], flags].concat());
    assert_eq!(run.code, code, "{run}");
    assert!(run.stdout.contains(line), "{run}");
}

#[rstest]
#[case("missing.yaml", 3)]
#[case("oci://registry.example", 2)]
#[case("ftp://registry.example/x", 2)]
#[case("http://169.254.169.254/latest", 6)]
#[case("http://metadata.google.internal/x", 6)]
#[case("http://127.0.0.1:1/pacto.yaml", 6)]
fn sources_that_cannot_be_loaded(#[case] source: &str, #[case] code: i32) {
    let run = Home::new().run(&["contract", "validate", source]);
    assert_eq!(run.code, code, "{run}");
}

#[test]
fn a_metadata_service_is_never_requested() {
    let run = Home::new().run(&["contract", "validate", "http://169.254.169.254/latest?token=canary"]);
    assert!(run.stderr.contains("is in a denied network"), "{run}");
    assert!(!run.stderr.contains("canary"), "{run}");
}

#[test]
fn objects_that_match() {
    insta::assert_snapshot!(verify(&home(VALID, OBJECTS), &["--service", "shop"]), @r"
    exit 0
    --- stdout
    Healthy: shop 1.2.0
      ok ServiceExists
      ok WorkloadExists
      ok PortsAligned
      ok WorkloadKindMatches
      unknown HealthEndpointReachable NotDeclared
      ok ImageMatches
      unknown UpgradeStrategyMatches NotDeclared
      unknown GracefulShutdownMatches NotDeclared
      ok StateModelMatches
      unknown MetricsEndpointReachable NotDeclared
      ok ScalingMatches
    --- stderr
    ");
}

#[rstest]
#[case::error("port: 80,", "port: 81,", &[], 0)]
#[case::missing("targetPort: http", "targetPort: 9", &[], 7)]
#[case::warning("replicas: 2", "replicas: 9", &[], 0)]
#[case::as_failure("replicas: 2", "replicas: 9", &["--fail-on", "warning"], 7)]
#[case::namespace("namespace: default", "namespace: other", &[], 7)]
#[case::other_namespace("namespace: default", "namespace: other", &["-n", "other"], 0)]
#[case::kind("x", "y", &["--workload", "StatefulSet/shop"], 7)]
#[case::bad_kind("x", "y", &["--workload", "Pod/shop"], 2)]
#[case::json_list("x", "y", &["--workload", "deployment/shop"], 0)]
fn objects_that_differ(#[case] from: &str, #[case] to: &str, #[case] flags: &[&str], #[case] code: i32) {
    let objects = if from == "x" { OBJECTS.to_owned() } else { OBJECTS.replace(from, to) };
    let run = verify(&home(VALID, &objects), &[&["--service", "shop"], flags].concat());
    assert_eq!(run.code, code, "{run}");
}

#[test]
fn without_a_target_a_contract_is_a_reference() {
    let run = verify(&home(VALID, OBJECTS), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Reference: shop 1.2.0\n"), "{run}");
}

#[test]
fn the_result_is_the_status_of_the_operator() {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 8080}]}}]}"#;
    let run = verify(&home(VALID, list), &["--service", "shop", "-o", "json"]);
    assert_eq!(run.code, 7, "{run}");
    let status: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(status["phase"], "Degraded");
    assert_eq!(status["checks"].as_array().unwrap().len(), 11);
    assert_eq!(status["checks"][1]["type"], "WorkloadExists");
    assert_eq!(status["ports"]["observed"], serde_json::json!([8080]));
    assert_eq!(status["history"][0]["version"], "1.2.0");
}

#[test]
fn an_invalid_contract_is_not_verified() {
    let run = verify(&home("pactoVersion: '2.0'", OBJECTS), &["--service", "shop"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.contains("UNSUPPORTED_VERSION pactoVersion"), "{run}");
}
