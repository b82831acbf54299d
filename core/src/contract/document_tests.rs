use rstest::rstest;

use super::*;

const HEAD: &str = "pactoVersion: '1.0'\nservice: {name: tides, version: 0.3.0}\n";
const LARGE: &str = r#"
pactoVersion: "1.0"
service: {name: harbour, version: 4.1.0, owner: docks, image: {ref: r.example/docks/harbour:4.1.0}}
interfaces:
  - {name: api, type: http, port: 8080, visibility: public, contract: interfaces/api.yaml}
  - {name: admin, type: http, port: 9090}
  - {name: berths, type: event, contract: interfaces/berths.yaml}
runtime:
  workload: service
  state: {type: stateful, persistence: {scope: local, durability: persistent}, dataCriticality: high}
  lifecycle: {upgradeStrategy: ordered, gracefulShutdownSeconds: 45}
  health: {interface: api, path: /healthz, initialDelaySeconds: 20}
  metrics: {interface: admin, path: metrics}
scaling: {min: 2, max: 5}
"#;

fn codes(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.path)).collect()
}

fn read(text: &str) -> Document {
    Document::read(text.as_bytes(), None)
}

fn runtime(state: &str, durability: &str, rest: &str) -> String {
    format!(
        "{HEAD}runtime: {{workload: service, state: {{type: {state}, persistence: {{scope: local, durability: \
         {durability}}}, dataCriticality: low}}{rest}}}\n"
    )
}

#[test]
fn the_minimal_and_the_large_document_are_valid() {
    let minimal = read("{pactoVersion: \"1.0\", service: {name: tides, version: 0.3.0}}");
    assert_eq!((minimal.errors.len(), minimal.warnings.len()), (0, 0));
    let large = read(LARGE);
    assert_eq!((codes(&large.errors), codes(&large.warnings)), (vec![], vec![]));
    let contract = large.contract.unwrap();
    assert_eq!(contract.ports(), [8080, 9090]);
    assert_eq!(contract.runtime.unwrap().metrics.unwrap().path, "/metrics");
    assert_eq!(large.hash.len(), 71);
}

#[rstest]
#[case::unquoted("pactoVersion: 1.0\nservice: {name: a, version: 1.0.0}", &[])]
#[case::unsupported("pactoVersion: \"2.0\"\nservice: {name: a}", &["UNSUPPORTED_VERSION pactoVersion"])]
#[case::missing("{}", &["REQUIRED_FIELD pactoVersion", "REQUIRED_FIELD service"])]
#[case::short_version("pactoVersion: '1.0'\nservice: {name: a, version: v1.2}", &[])]
#[case::semver("pactoVersion: '1.0'\nservice: {name: a, version: abc}", &["INVALID_SEMVER service.version"])]
#[case::number("pactoVersion: '1.0'\nservice: {name: a, version: 1.2}", &["INVALID_TYPE service.version"])]
#[case::name("pactoVersion: '1.0'\nservice: {name: -A, version: 1.0.0}", &["INVALID_VALUE service.name"])]
#[case::image("pactoVersion: '1.0'\nservice: {name: a, version: 1.0.0, image: {ref: 'A b'}}", &["INVALID_IMAGE_REF service.image.ref"])]
#[case::two_documents("a: 1\n---\nb: 1", &["PARSE_ERROR "])]
#[case::duplicate("a: 1\na: 2", &["PARSE_ERROR "])]
#[case::list("[1]", &["PARSE_ERROR "])]
#[case::empty("", &["PARSE_ERROR "])]
fn documents(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(codes(&read(text).errors), expected);
}

#[rstest]
#[case::section("runtime: []", &["INVALID_TYPE runtime"])]
#[case::required("runtime: {}", &["REQUIRED_FIELD runtime.workload", "REQUIRED_FIELD runtime.state"])]
#[case::unknown("runtime: {healthy: 1, workload: service, state: {type: hybrid, persistence: {scope: local, durability: ephemeral}, dataCriticality: low}}", &["UNKNOWN_FIELD runtime.healthy"])]
#[case::kind("interfaces: [{name: a, type: soap}]", &["INVALID_VALUE interfaces[0].type"])]
#[case::port("interfaces: [{name: a, type: http, port: 0}]", &["INVALID_VALUE interfaces[0].port"])]
#[case::no_port("interfaces: [{name: a, type: http}]", &["PORT_REQUIRED interfaces[0].port"])]
#[case::no_contract("interfaces: [{name: a, type: grpc, port: 1}, {name: b, type: event}]", &["CONTRACT_REQUIRED interfaces[0].contract", "CONTRACT_REQUIRED interfaces[1].contract"])]
#[case::twice("interfaces: [{name: a, type: http, port: 1}, {name: a, type: http, port: 2}]", &["DUPLICATE_INTERFACE_NAME interfaces[1].name"])]
#[case::climbs("interfaces: [{name: a, type: http, port: 1, contract: ../x}]", &["INVALID_VALUE interfaces[0].contract"])]
#[case::exceeds("scaling: {min: 3, max: 2}", &["SCALING_MIN_EXCEEDS_MAX scaling"])]
#[case::both("scaling: {replicas: 1, min: 1}", &["SCALING_FORM scaling"])]
#[case::half("scaling: {min: 1}", &["SCALING_FORM scaling"])]
#[case::negative("scaling: {replicas: -1}", &["INVALID_VALUE scaling.replicas"])]
fn fields(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(codes(&read(&format!("{HEAD}{text}")).errors), expected);
}

#[rstest]
#[case::conflict("stateless", "persistent", "", &["STATELESS_PERSISTENT_CONFLICT runtime.state.persistence.durability"], &[])]
#[case::ordered("stateless", "ephemeral", ", lifecycle: {upgradeStrategy: ordered}", &[], &["UPGRADE_STRATEGY_STATE_MISMATCH runtime.lifecycle.upgradeStrategy"])]
#[case::no_interface("stateless", "ephemeral", ", health: {interface: x, path: /}", &["HEALTH_INTERFACE_NOT_FOUND runtime.health.interface"], &[])]
#[case::event("stateless", "ephemeral", ", metrics: {interface: e, path: /}", &["METRICS_INTERFACE_INVALID runtime.metrics.interface"], &[])]
#[case::no_path("stateless", "ephemeral", ", health: {interface: h}", &["HEALTH_PATH_REQUIRED runtime.health.path"], &[])]
#[case::grpc_path("stateless", "ephemeral", ", health: {interface: g, path: /}", &[], &["HEALTH_PATH_IGNORED runtime.health.path"])]
#[case::host("stateless", "ephemeral", ", health: {interface: h, path: //evil/x}", &["INVALID_VALUE runtime.health.path"], &[])]
#[case::url("stateless", "ephemeral", ", health: {interface: h, path: 'http://evil/x'}", &["INVALID_VALUE runtime.health.path"], &[])]
#[case::fragment("stateless", "ephemeral", ", health: {interface: h, path: '/x#y'}", &["INVALID_VALUE runtime.health.path"], &[])]
#[case::control("stateless", "ephemeral", ", health: {interface: h, path: \"/x\\r\\nHost: y\"}", &["INVALID_VALUE runtime.health.path"], &[])]
fn runtimes(
    #[case] state: &str,
    #[case] durability: &str,
    #[case] rest: &str,
    #[case] errors: &[&str],
    #[case] warnings: &[&str],
) {
    let interfaces = "interfaces: [{name: h, type: http, port: 1}, {name: g, type: grpc, port: 2, contract: g}, \
                      {name: e, type: event, contract: e}]\n";
    let document = read(&(runtime(state, durability, rest) + interfaces));
    assert_eq!(codes(&document.errors), errors);
    assert_eq!(codes(&document.warnings), warnings);
}

#[test]
fn a_job_has_no_scaling() {
    let text = runtime("stateless", "ephemeral", "").replace("workload: service", "workload: job");
    let document = read(&(text + "scaling: {replicas: 1}"));
    assert_eq!(codes(&document.errors), ["JOB_SCALING_NOT_ALLOWED scaling"]);
}

#[test]
fn top_level_fields_of_later_versions_are_a_warning() {
    let document =
        read(&format!("{HEAD}sla: 1\ndependencies: x\nmetadata: []\npolicies: 1\nconfigurations: 2"));
    assert_eq!(codes(&document.errors), [] as [&str; 0]);
    assert_eq!(codes(&document.warnings), ["UNKNOWN_FIELD sla"]);
    let ported = read(&format!("{HEAD}interfaces: [{{name: e, type: event, contract: e, port: 1}}]"));
    assert_eq!(codes(&ported.warnings), ["PORT_IGNORED interfaces[0].port"]);
}

#[test]
fn files_are_checked_in_bundles_only() {
    let text = format!("{HEAD}interfaces: [{{name: a, type: http, port: 1, contract: ./api/a.yaml}}]");
    let files = BTreeSet::from(["pacto.yaml".to_owned(), "api/b.yaml".to_owned()]);
    let in_bundle = Document::read(text.as_bytes(), Some(&files));
    assert_eq!(codes(&in_bundle.errors), ["FILE_NOT_FOUND interfaces[0].contract"]);
    assert!(read(&text).contract.is_some());
    let complete = BTreeSet::from(["api/a.yaml".to_owned()]);
    assert!(Document::read(text.as_bytes(), Some(&complete)).contract.is_some());
}

#[test]
fn faults_of_all_sections_are_collected() {
    let document = read("pactoVersion: '1.0'\nservice: {name: 1}\ninterfaces: {}\nscaling: {min: a}");
    let expected = [
        "INVALID_TYPE service.name",
        "REQUIRED_FIELD service.version",
        "INVALID_TYPE interfaces",
        "INVALID_TYPE scaling.min",
    ];
    assert_eq!(codes(&document.errors), expected);
}

#[rstest]
#[case::large(&"x".repeat(MAX_DOCUMENT + 1))]
#[case::deep(&format!("{HEAD}metadata: {}1{}", "[".repeat(40), "]".repeat(40)))]
#[case::many(&format!("{HEAD}metadata: [{}1]", "1, ".repeat(10_001)))]
#[case::laughs(
    "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]"
)]
#[case::not_utf8("a: \u{0}")]
fn hostile_documents_are_parse_errors(#[case] text: &str) {
    assert_eq!(codes(&read(text).errors), ["PARSE_ERROR "]);
}

proptest::proptest! {
    #[test]
    fn never_panics(text in proptest::prelude::any::<String>()) {
        let _ = read(&text);
        let _ = read(&format!("{HEAD}{text}"));
    }
}
