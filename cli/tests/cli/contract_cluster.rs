//! `declarest contract verify` with the objects of a cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::Value;

use crate::environment::{Home, Run};
use crate::network::Authority;
use crate::server::{Route, Server};

const CONTRACT: &str = "pactoVersion: '1.0'
service: {name: shop, version: 1.2.0, image: {ref: 'r.io/shop:1'}}
interfaces: [{name: api, type: http, port: 8080}]
runtime:
  workload: service
  state: {type: stateless, persistence: {scope: local, durability: ephemeral}, dataCriticality: low}
  health: {interface: api, path: /health}
";

const SERVICE: Route = (
    "GET /api/v1/namespaces/team/services/shop",
    200,
    r#"{"kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 8080}]}}"#,
);
const DEPLOYMENT: Route = (
    "GET /apis/apps/v1/namespaces/team/deployments/shop",
    200,
    r#"{"kind": "Deployment", "metadata": {"name": "shop"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {"spec": {"containers": [{"name": "shop", "image": "r.io/shop:1"}]}}},
        "status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}}"#,
);
const PODS: Route =
    ("GET /api/v1/namespaces/team/pods?limit=100&labelSelector=app%3Dshop", 200, r#"{"items": []}"#);
const OTHER_IMAGE: Route = (
    PODS.0,
    200,
    r#"{"items": [{"metadata": {"name": "shop-1"}, "spec": {"containers": [{"name": "shop", "image": "r.io/shop:2"}]}}]}"#,
);
/// An object that the API server refuses, as a Status.
const NO_SERVICE: Route = (
    SERVICE.0,
    403,
    r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "services \"shop\" is forbidden"}"#,
);
const BROKEN_PODS: Route = (
    PODS.0,
    500,
    r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "InternalError",
        "message": "etcd is down"}"#,
);
const LOGGED_OUT: Route = (
    MANAGED.0,
    401,
    r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401, "reason": "Unauthorized",
        "message": "Unauthorized"}"#,
);
const MANAGED: Route = (
    "GET /apis/declarest.io/v1alpha1/namespaces/team/managedservers/shop",
    200,
    r#"{"apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer", "metadata": {"name": "shop"},
        "spec": {"http": {"baseURL": "https://shop.example"}, "pollInterval": "1m", "contract": {
            "inline": "{pactoVersion: '1.0', service: {name: shop, version: 1.2.0, image: {ref: r.io/shop:9}}}",
            "severity": {"ImageMatches": "error"}, "gateSync": true,
            "target": {"service": "shop", "workload": {"kind": "Deployment"}}}}}"#,
);
const NO_CONTRACT: Route = (
    MANAGED.0,
    200,
    r#"{"apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer", "metadata": {"name": "shop"},
        "spec": {"http": {"baseURL": "https://shop.example"}}}"#,
);

/// A home directory with a contract, and with a kubeconfig for two clusters.
fn home(server: &Server) -> Home {
    home_of(&format!("server: '{}'", server.url()))
}

/// The same, with these fields of the first cluster.
fn home_of(cluster: &str) -> Home {
    let home = Home::new();
    home.write("pacto.yaml", CONTRACT);
    let config = format!(
        "apiVersion: v1
kind: Config
current-context: dev
clusters: [{{name: dev, cluster: {{{cluster}}}}}, {{name: gone, cluster: {{server: 'http://127.0.0.1:1'}}}}]
users: [{{name: user, user: {{token: canary}}}}, {{name: plugin, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, \
         command: /nonexistent/plugin, interactiveMode: Never}}}}}}]
contexts:
- {{name: dev, context: {{cluster: dev, user: user, namespace: team}}}}
- {{name: gone, context: {{cluster: gone, user: user}}}}
- {{name: plugin, context: {{cluster: dev, user: plugin}}}}
"
    );
    home.write(".kube/config", &config);
    home
}

fn verify(home: &Home, arguments: &[&str]) -> Run {
    let run = home.run(&[&["contract", "verify"], arguments].concat());
    assert!(!format!("{run}").contains("canary"), "{run}");
    run
}

/// Verifies the contract of a file with these answers of the API server.
fn verify_file(routes: &'static [Route], arguments: &[&str]) -> Run {
    let server = Server::new(routes);
    verify(&home(&server), &[&["--contract", "pacto.yaml", "--service", "shop"], arguments].concat())
}

#[test]
fn the_objects_of_a_cluster() {
    let server = Server::new(&[SERVICE, DEPLOYMENT, PODS]);
    let run = verify(&home(&server), &["--contract", "pacto.yaml", "--service", "shop"]);
    insta::assert_snapshot!(run, @r"
    exit 0
    --- stdout
    Healthy: shop 1.2.0
      ok ServiceExists
      ok WorkloadExists
      ok PortsAligned
      ok WorkloadKindMatches
      unknown HealthEndpointReachable NotApplicable: the endpoint cannot be probed at this target
      ok ImageMatches
      unknown UpgradeStrategyMatches NotDeclared
      unknown GracefulShutdownMatches NotDeclared
      ok StateModelMatches
      unknown MetricsEndpointReachable NotDeclared
      unknown ScalingMatches NotDeclared
    --- stderr
    ");
    insta::assert_snapshot!(server.requests(), @r"
    GET /api/v1/namespaces/team/services/shop
    GET /apis/apps/v1/namespaces/team/deployments/shop
    GET /api/v1/namespaces/team/pods?limit=100&labelSelector=app%3Dshop
    ");
}

#[test]
fn a_managed_server_states_contract_and_target() {
    let server = Server::new(&[MANAGED, SERVICE, DEPLOYMENT, PODS]);
    let run = verify(&home(&server), &["--server", "shop", "-o", "json"]);
    assert_eq!(run.code, 7, "{run}");
    let status: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&status["phase"], &status["source"]), (&"Degraded".into(), &"inline".into()));
    let image = status["checks"].as_array().unwrap().iter().find(|check| check["type"] == "ImageMatches");
    assert_eq!(image.unwrap()["severity"], "error");
}

#[rstest]
#[case::other_image(&[SERVICE, DEPLOYMENT, OTHER_IMAGE], &[], 0)]
#[case::as_failure(&[SERVICE, DEPLOYMENT, OTHER_IMAGE], &["--fail-on", "warning"], 7)]
#[case::missing_service(&[DEPLOYMENT, PODS], &[], 7)]
#[case::forbidden(&[NO_SERVICE, DEPLOYMENT, PODS], &[], 4)]
#[case::forbidden_and_different(&[NO_SERVICE], &[], 7)]
#[case::server_error(&[SERVICE, DEPLOYMENT, BROKEN_PODS], &["--fail-on", "warning"], 6)]
#[case::no_cluster(&[], &["--kube-context", "gone"], 6)]
#[case::no_context(&[], &["--kube-context", "absent"], 2)]
#[case::no_plugin(&[], &["--kube-context", "plugin"], 4)]
#[case::no_kubeconfig(&[], &["--kubeconfig", "absent"], 3)]
#[case::other_namespace(&[SERVICE, DEPLOYMENT, PODS], &["-n", "other"], 7)]
#[case::long_flag(&[SERVICE, DEPLOYMENT, PODS], &["--namespace", "other", "--skip-result-message"], 7)]
#[case::no_base_url(&[SERVICE, DEPLOYMENT, PODS], &["--probe", "base-url"], 2)]
fn exit_codes(#[case] routes: &'static [Route], #[case] arguments: &[&str], #[case] code: i32) {
    let run = verify_file(routes, arguments);
    assert_eq!(run.code, code, "{run}");
}

#[rstest]
#[case::absent(&[], 3)]
#[case::logged_out(&[LOGGED_OUT], 4)]
#[case::no_contract(&[NO_CONTRACT], 2)]
fn managed_servers_that_cannot_be_verified(#[case] routes: &'static [Route], #[case] code: i32) {
    let run = verify(&home(&Server::new(routes)), &["--server", "shop"]);
    assert_eq!(run.code, code, "{run}");
}

#[test]
fn a_missing_right_is_named() {
    let run = verify_file(&[NO_SERVICE, DEPLOYMENT, PODS], &[]);
    assert!(run.stdout.contains("there is no right to read services"), "{run}");
    assert!(run.stderr.contains("is forbidden"), "{run}");
}

#[test]
fn probes_are_sent_to_the_base_url() {
    let server = Server::new(&[("GET /health", 200, "ok")]);
    let spec = format!(
        r#"{{"apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer", "metadata": {{"name": "shop"}},
            "spec": {{"http": {{"baseURL": "{}/api"}}, "contract": {{"inline": {}, "target": {{"service": "shop"}}}}}}}}"#,
        server.url(),
        serde_json::to_string(CONTRACT).unwrap()
    );
    let routes: &'static [Route] = vec![(MANAGED.0, 200, &*spec.leak()), SERVICE, DEPLOYMENT, PODS].leak();
    let api = Server::new(routes);
    let run = verify(&home(&api), &["--server", "shop", "--probe", "base-url"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("ok HealthEndpointReachable"), "{run}");
    assert_eq!(server.requests(), "GET /health");
}

/// API servers have TLS, an authority of their own, and a name that the certificate may not have.
#[rstest]
#[case::trusted(true, "127.0.0.1", 0)]
#[case::other_authority(false, "127.0.0.1", 6)]
#[case::other_name(true, "other.example", 6)]
fn an_api_server_with_tls(#[case] trusted: bool, #[case] name: &str, #[case] code: i32) {
    let server = Server::new(&[SERVICE, DEPLOYMENT, PODS]);
    let behind = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (authority, other) = (Authority::new(), Authority::new());
    let secure = authority.serve(name, behind);
    let pem = if trusted { authority.pem() } else { other.pem() };
    let (address, pem) = (secure.address, STANDARD.encode(pem));
    let home = home_of(&format!("server: 'https://{address}', certificate-authority-data: {pem}"));
    let run = verify(&home, &["--contract", "pacto.yaml", "--service", "shop"]);
    assert_eq!(run.code, code, "{run}");
    let requests = if code == 0 { 3 } else { 0 };
    assert_eq!(server.requests().lines().count(), requests, "{run}");
}
