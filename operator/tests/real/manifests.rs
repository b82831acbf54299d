//! Against a real API server: the CRDs, the manifests and the rights they grant.

use declarest_operator::crd::SyncPolicy;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::cluster::{Cluster, OPERATOR_NAMESPACE, config_dir};
use crate::support::world::World;

#[tokio::test]
async fn samples_are_accepted_and_listed_with_our_columns() {
    let cluster = Cluster::shared();
    let namespace = cluster.create_namespace().await;
    cluster.kubectl(&["apply", "-n", &namespace, "-k", &config_dir("samples")]).unwrap();
    let listed = cluster.kubectl(&["get", "-n", &namespace, "declarest", "-o", "name"]).unwrap();
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        [
            "managedserver.declarest.io/shop-api",
            "resourcerepository.declarest.io/desired-state",
            "secretstore.declarest.io/shop-secrets",
            "syncpolicy.declarest.io/shops",
        ]
    );
    let columns = |name: &str| {
        let table = cluster.kubectl(&["get", "-n", &namespace, name, "-o", "wide"]).unwrap();
        let header = table.lines().next().unwrap_or_default();
        header.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect::<Vec<_>>().join(",")
    };
    assert_eq!(columns("rr"), "NAME,REVISION,READY,AGE,STATUS");
    assert_eq!(columns("ms"), "NAME,READY,PHASE,AGE,REACHABLE,URL,STATUS");
    assert_eq!(columns("sst"), "NAME,PROVIDER,READY,AGE,STATUS");
    assert_eq!(columns("sp"), "NAME,REPO,SERVER,REVISION,LAST SYNC,READY,AGE,MODE,FAILED,STATUS");
}

#[tokio::test]
async fn fields_explain_themselves() {
    let explained = Cluster::shared().kubectl(&["explain", "sp.spec.sync.pruneLimit"]).unwrap();
    let words = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("deletes nothing; raise the limit to approve it."), "{explained}");
    let explained = Cluster::shared().kubectl(&["explain", "syncpolicy.spec.sync"]).unwrap();
    let (_, fields) = explained.split_once("FIELDS:").unwrap();
    for field in ["force", "prune", "pruneLimit"] {
        let (_, after) =
            fields.split_once(&format!("\n  {field}\t")).unwrap_or_else(|| panic!("{explained}"));
        let sentence = after.lines().nth(1).unwrap_or_default().trim();
        assert!(sentence.split(' ').count() > 3, "{field} is not explained: {explained}");
    }
}

#[tokio::test]
async fn the_default_manifests_install_the_operator_without_a_namespace_of_their_own() {
    let cluster = Cluster::shared();
    let deployments = Api::<Deployment>::namespaced(cluster.admin().await, OPERATOR_NAMESPACE);
    let deployment = deployments.get("declarest-operator-controller-manager").await.unwrap();
    let container = &deployment.spec.unwrap().template.spec.unwrap().containers[0];
    assert_eq!(container.name, "manager");
    assert_eq!(container.image.as_deref(), Some("declarest-operator:latest"));
    let rendered = cluster.kubectl(&["kustomize", &config_dir("default")]).unwrap();
    assert!(!rendered.contains("kind: Namespace\n"), "{rendered}");
}

/// Verb, group, resource, subresource, namespace and whether the operator may.
const RIGHTS: [(&str, &str, &str, &str, &str, bool); 24] = [
    ("list", "declarest.io", "syncpolicies", "", "default", true),
    ("watch", "declarest.io", "managedservers", "", "default", true),
    ("patch", "declarest.io", "resourcerepositories", "", "default", true),
    ("update", "declarest.io", "resourcerepositories", "", "default", false),
    ("patch", "declarest.io", "secretstores", "status", "default", true),
    ("update", "declarest.io", "secretstores", "status", "default", false),
    ("update", "declarest.io", "syncpolicies", "finalizers", "default", false),
    ("create", "declarest.io", "syncpolicies", "", "default", false),
    ("delete", "declarest.io", "managedservers", "", "default", false),
    ("watch", "", "namespaces", "", "", true),
    ("patch", "", "namespaces", "", "", false),
    ("get", "", "secrets", "", "default", true),
    ("create", "", "secrets", "", "default", false),
    ("create", "", "persistentvolumeclaims", "", "default", true),
    ("delete", "", "persistentvolumeclaims", "", "default", false),
    ("create", "events.k8s.io", "events", "", "default", true),
    ("patch", "events.k8s.io", "events", "", "default", false),
    ("create", "", "events", "", "default", false),
    ("update", "coordination.k8s.io", "leases", "", OPERATOR_NAMESPACE, true),
    ("delete", "coordination.k8s.io", "leases", "", OPERATOR_NAMESPACE, true),
    ("watch", "coordination.k8s.io", "leases", "", OPERATOR_NAMESPACE, false),
    ("update", "coordination.k8s.io", "leases", "", "default", false),
    ("get", "", "pods", "", "default", false),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", "", "default", false),
];

#[tokio::test]
async fn the_operator_may_do_its_work_and_nothing_else() {
    let reviews = Api::<SelfSubjectAccessReview>::all(Cluster::shared().operator().await);
    for (verb, group, resource, subresource, namespace, allowed) in RIGHTS {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: Some(subresource.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..Default::default()
        };
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
        assert_eq!(status.allowed, allowed, "{verb} {group}/{resource}/{subresource} in {namespace}");
    }
}

#[tokio::test]
async fn secure_metrics_are_for_users_with_the_right_to_read_them() {
    let cluster = Cluster::shared();
    let namespace = cluster.create_namespace().await;
    let world = World::start_with(&["--metrics-bind-address=127.0.0.1:0", "--metrics-secure"]).await;
    let url = format!("//{}/metrics", world.listener("listening for metrics").await);
    let http = reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build().unwrap();
    let read = async |token: &str| {
        let answer = http.get(format!("https:{url}")).bearer_auth(token).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let token = |user: &str| {
        cluster.kubectl(&["create", "serviceaccount", "-n", &namespace, user]).unwrap();
        new_token(cluster, &namespace, user)
    };
    let (reader, stranger) = (token("reader"), token("stranger"));

    // The shipped rights do not contain the reviews.
    assert_eq!(read(&reader).await, (503, "the token cannot be reviewed\n".to_owned()));
    assert!(world.log().contains("see the overlay secure-metrics"), "{}", world.log_tail());

    for file in ["role.yaml", "role_binding.yaml", "reader_role.yaml"] {
        let path = format!("{}/{file}", config_dir("overlays/secure-metrics"));
        cluster.kubectl(&["apply", "-f", &path]).unwrap();
    }
    let binding =
        ["create", "clusterrolebinding", "reader", "--clusterrole=declarest-operator-metrics-reader"];
    let subject = format!("--serviceaccount={namespace}:reader");
    cluster.kubectl(&[&binding[..], &[&subject]].concat()).unwrap();
    // The rights take effect a moment later.
    let metrics = world
        .eventually("the reader gets the metrics", || async {
            let (status, text) = read(&new_token(cluster, &namespace, "reader")).await;
            (status == 200).then_some(text)
        })
        .await;
    assert!(metrics.contains("declarest_operator_leader 1"), "{metrics}");
    assert_eq!(read(&stranger).await, (403, "the user may not get this path\n".to_owned()));
    assert_eq!(read("canary").await, (401, "the token is not valid\n".to_owned()));
    let anonymous = http.get(format!("https:{url}")).send().await.unwrap();
    assert_eq!(anonymous.status(), 401);
    assert!(http.get(format!("http:{url}")).send().await.is_err());
    assert!(!world.log().contains("canary") && !world.log().contains(&reader));
}

/// Returns a new token, about which nothing was decided before.
fn new_token(cluster: &Cluster, namespace: &str, user: &str) -> String {
    cluster.kubectl(&["create", "token", "-n", namespace, user]).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_operator_writes_status_apart_from_the_spec() {
    let cluster = Cluster::shared();
    let namespace = cluster.create_namespace().await;
    cluster.kubectl(&["apply", "-n", &namespace, "-k", &config_dir("samples")]).unwrap();
    let policies = Api::<SyncPolicy>::namespaced(cluster.operator().await, &namespace);
    let before = policies.list(&ListParams::default()).await.unwrap().items.remove(0);

    let patch = json!({
        "apiVersion": "declarest.io/v1alpha1",
        "kind": "SyncPolicy",
        "spec": {"suspend": true},
        "status": {"resourceStats": {"targeted": 3, "applied": 2, "failed": 1}}
    });
    let params = PatchParams::apply("declarest-operator").force();
    let after = policies.patch_status("shops", &params, &Patch::Apply(&patch)).await.unwrap();

    assert_eq!(after.spec, before.spec);
    assert_eq!(after.metadata.generation, before.metadata.generation);
    let stats = after.status.unwrap().resource_stats.unwrap();
    assert_eq!((stats.targeted, stats.applied, stats.failed, stats.pruned), (3, 2, 1, 0));
}
