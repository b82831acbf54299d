//! Two shards of the operator, which divide the namespaces by a label.

use std::time::Duration;

use declarest_operator::crd::{ResourceRepository, SyncPolicy};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::metrics::{METRICS, scrape};
use crate::support::cluster::{Cluster, OPERATOR_NAMESPACE};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::signature::signature;
use crate::support::world::{World, on_cluster};

const RESOURCES: usize = 40;

/// A namespace with a repository, a server and a policy.
struct Tenant {
    git: GitRemote,
    server: RestServer,
}

impl Tenant {
    async fn create(world: &World) -> Self {
        let git = GitRemote::new();
        for index in 0..RESOURCES {
            git.write(
                &format!("items/i{index}/resource.json"),
                format!(r#"{{"id": "i{index}", "size": 0}}"#),
            );
        }
        git.commit("items");
        git.push();
        let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
        let server = RestServer::start(config).unwrap();
        world.create_repository(&git.file_url(), Value::Null).await;
        // Of one operator, so two of them would send two requests at once.
        let throttling = json!({"maxConcurrentRequests": 1});
        world.create_server(json!({"baseURL": server.url(), "requestThrottling": throttling})).await;
        world.create_policy(json!({})).await;
        Self { git, server }
    }

    /// Commits another size of all resources, and returns the revision.
    fn commit(&self, size: usize) -> String {
        for index in 0..RESOURCES {
            let body = format!(r#"{{"id": "i{index}", "size": {size}}}"#);
            self.git.write(&format!("items/i{index}/resource.json"), body);
        }
        let revision = self.git.commit("another size");
        self.git.push();
        revision
    }

    /// Every resource was created once and updated `updates` times, by one operator at a time.
    fn assert_written_once(&self, updates: usize) {
        let writes = self.server.writes();
        let count = |method: &str| writes.iter().filter(|write| write.method == method).count();
        assert_eq!((count("POST"), count("PUT")), (RESOURCES, RESOURCES * updates), "{writes:#?}");
        assert_eq!(self.server.peak_concurrency(), 1);
        assert!(self.server.duplicates().is_empty());
    }
}

async fn label(world: &World, namespace: &str, shard: &str) {
    let patch = json!({"metadata": {"labels": {"shard": shard}}});
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Creates another namespace on the API of `world`.
async fn namespace(world: &World) -> String {
    if on_cluster() {
        return Cluster::shared().create_namespace().await;
    }
    let object = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
    let _ = Api::<Namespace>::all(world.client.clone()).create(&PostParams::default(), &object).await;
    "other".to_owned()
}

/// Delivers a push to the repository of `owner` at the receiver of another shard.
async fn deliver(receiver: &World, owner: &World) {
    const SECRET: &str = "canary-webhook-secret";
    const BODY: &str = r#"{"ref":"refs/heads/main"}"#;
    owner.create_secret("hook", &[("secret", SECRET)]).await;
    let webhook = json!({"provider": "generic-hmac", "secretRef": {"name": "hook", "key": "secret"}});
    owner.patch::<ResourceRepository>("repo", json!({"spec": {"git": {"webhook": webhook}}})).await;
    let address = receiver.webhook_address().await;
    let url = format!("http://{address}/webhooks/repository/{}/repo", owner.namespace);
    // The receiver follows the API with a delay.
    let accepted = || async {
        let request = reqwest::Client::new().post(&url).body(BODY).header("X-Event-Type", "push");
        let response = request.header("X-Signature", signature(SECRET, BODY)).send().await.ok()?;
        (response.status().as_u16() == 202).then_some(())
    };
    receiver.eventually("the delivery is accepted", accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_always_has_one_shard() {
    // The shards select nothing before the namespaces have labels.
    let flags = |shard: &str| {
        vec![
            "--leader-elect".to_owned(),
            "--repository-webhook-bind-address=127.0.0.1:0".to_owned(),
            format!("--watch-namespace-selector=shard={shard}"),
            format!("--shard-name={shard}"),
        ]
    };
    let unique = format!("{:08x}", fastrand::u32(..));
    let (a, b) = (format!("a-{unique}"), format!("b-{unique}"));
    let flags = [&a, &b].map(|shard| flags(shard));
    let first = World::start_clustered(&flags[0].iter().map(String::as_str).collect::<Vec<_>>()).await;
    let other = namespace(&first).await;
    let mut second =
        first.start_beside(other.clone(), &flags[1].iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (own, moving) = (Tenant::create(&first).await, Tenant::create(&second).await);
    label(&first, &first.namespace, &a).await;
    label(&first, &other, &b).await;
    first.applied(&own.git.head()).await;
    second.applied(&moving.git.head()).await;
    own.assert_written_once(0);
    moving.assert_written_once(0);

    // The receiver of each shard serves the namespaces of all shards.
    let revision = moving.commit(1);
    deliver(&first, &second).await;
    second.applied(&revision).await;
    moving.assert_written_once(1);

    // Both shards run when the namespace moves, in the middle of a run.
    moving.server.latency(Duration::from_millis(50));
    let revision = moving.commit(2);
    second.notify().await;
    let begun = || async { (moving.server.writes().len() > 2 * RESOURCES + 3).then_some(()) };
    second.eventually("the run writes", begun).await;
    label(&first, &other, &a).await;
    second.applied(&revision).await;
    assert!(second.log().contains("released the namespace"), "{}", second.log_tail());
    moving.assert_written_once(2);

    // And back, while its shard is dead: the other shard goes on, and the namespace waits.
    label(&first, &other, &b).await;
    let returned = || async { (second.log().matches("claimed the namespace").count() == 2).then_some(()) };
    second.eventually("it is claimed again", returned).await;
    second.kill();
    let revision = own.commit(1);
    first.notify().await;
    first.applied(&revision).await;
    own.assert_written_once(1);
    // A shard that is alive takes it over when the lease of the dead one has expired.
    label(&first, &other, &a).await;
    let revision = moving.commit(3);
    second.notify().await;
    second.applied(&revision).await;
    moving.assert_written_once(3);

    // The shard that was dead begins again, and leaves it alone.
    second.launch().await;
    let leads = || async { (second.log().matches("became leader").count() == 2).then_some(()) };
    second.eventually("it leads again", leads).await;
    let revision = moving.commit(4);
    second.notify().await;
    second.applied(&revision).await;
    moving.assert_written_once(4);
    // No object of one namespace was handled by the shard of the other one.
    assert!(
        !second.log().contains(&format!("\"namespace\":\"{}\"", first.namespace)),
        "{}",
        second.log_tail()
    );
    let policy = second.api::<SyncPolicy>().get("policy").await.unwrap();
    assert_eq!(policy.status.unwrap().consecutive_failures, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_are_not_needed_are_deleted() {
    let unique = format!("{:08x}", fastrand::u32(..));
    let (shard, other) = (format!("c-{unique}"), format!("d-{unique}"));
    let start = |shard: &str| {
        [
            "--leader-elect".to_owned(),
            format!("--watch-namespace-selector=shard={shard}"),
            format!("--shard-name={shard}"),
        ]
    };
    let first = World::start_clustered(&start(&shard).each_ref().map(String::as_str)).await;
    let leases: Api<Lease> = Api::namespaced(first.client.clone(), OPERATOR_NAMESPACE);
    let name = |namespace: &str| format!("declarest-operator-namespace-{namespace}");
    let exists = async |name: &str| leases.get_opt(name).await.unwrap().is_some();
    // A claim ends with the membership of its namespace.
    let namespace = namespace(&first).await;
    label(&first, &namespace, &shard).await;
    let claim = name(&namespace);
    let claimed = || async { exists(&claim).await.then_some(()) };
    first.eventually("the namespace is claimed", claimed).await;
    label(&first, &namespace, "none").await;
    let deleted = || async { (!exists(&claim).await).then_some(()) };
    first.eventually("the claim is deleted", deleted).await;

    // A new leader deletes empty claims, and no others.
    let [empty, held] = ["empty", "held"].map(|kind| name(&format!("{kind}-{unique}")));
    for (name, holder) in [(&empty, None), (&held, Some("another".to_owned()))] {
        let spec = LeaseSpec { holder_identity: holder, ..LeaseSpec::default() };
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await.unwrap();
    }
    let second = first.start_beside(namespace, &start(&other).each_ref().map(String::as_str)).await;
    let deleted = || async { (!exists(&empty).await).then_some(()) };
    second.eventually("the empty claim is deleted", deleted).await;
    assert!(exists(&held).await);
    leases.delete(&held, &DeleteParams::default()).await.unwrap();
}

/// The rounds of a namespace that leaves end before its claim is released. It may be selected again in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_returns_while_it_leaves_is_reconciled_again() {
    let shard = format!("e-{:08x}", fastrand::u32(..));
    let flags = [
        "--leader-elect".to_owned(),
        format!("--watch-namespace-selector=shard={shard}"),
        format!("--shard-name={shard}"),
    ];
    let world = World::start_clustered(&flags.each_ref().map(String::as_str)).await;
    let tenant = Tenant::create(&world).await;
    label(&world, &world.namespace, &shard).await;
    world.applied(&tenant.git.head()).await;
    // A write is in flight when both labels arrive, and ends later.
    tenant.server.latency(Duration::from_secs(1));
    let revision = tenant.commit(1);
    world.notify().await;
    let begun = || async { (tenant.server.writes().len() > RESOURCES).then_some(()) };
    world.eventually("the run writes", begun).await;
    label(&world, &world.namespace, "none").await;
    label(&world, &world.namespace, &shard).await;
    tenant.server.latency(Duration::ZERO);
    world.applied(&revision).await;
    tenant.assert_written_once(1);
}

/// Otherwise an alert about an object would go on although another shard reconciles it.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_leaves_takes_its_metrics_along() {
    let shard = format!("f-{:08x}", fastrand::u32(..));
    let flags = [
        "--leader-elect".to_owned(),
        format!("--watch-namespace-selector=shard={shard}"),
        format!("--shard-name={shard}"),
        METRICS.to_owned(),
    ];
    let world = World::start_clustered(&flags.each_ref().map(String::as_str)).await;
    world.create_server(json!({"baseURL": "https://a.example.test"})).await;
    // Without a provider of cryptography even a plain http client refuses to be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let has_series = async |expected: bool| {
        let has = scrape(&world).await.contains(&format!("namespace=\"{}\"", world.namespace));
        (has == expected).then_some(())
    };
    label(&world, &world.namespace, &shard).await;
    world.eventually("it has metrics", || has_series(true)).await;
    label(&world, &world.namespace, "none").await;
    world.eventually("they are removed", || has_series(false)).await;
}
