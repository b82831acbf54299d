//! Tests of the reconcile loop.

use std::collections::HashSet;
use std::sync::Mutex;

use kube::Client;
use kube::ResourceExt as _;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use rstest::rstest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::conclude::next_look;
use super::*;
use crate::controller::context::{Caches, Settings};
use crate::controller::dependencies::Dependencies;
use crate::controller::events::Events;
use crate::controller::expand::Expansion;
use crate::crd::{self, Limits, ManagedServer, ManagedServerStatus};
use crate::directories::Directories;
use crate::leader::{Candidate, Timing};
use crate::shard::Namespaces;
use crate::standalone;
use crate::telemetry::Metrics;

/// Panics for the object of that name, and records the objects that it reconciled.
struct PanicsFor(&'static str, Mutex<HashSet<String>>);

impl Reconciler for PanicsFor {
    type Kind = ManagedServer;

    async fn reconcile(&self, round: &mut Round<'_, ManagedServer>) -> Outcome {
        round.status.openapi_cache_path = Some("half done".to_owned());
        assert!(round.object.name_any() != self.0, "a panic on purpose");
        self.1.lock().unwrap().insert(round.object.name_any());
        round.status.openapi_cache_path = None;
        Outcome::ready("")
    }

    async fn cleanup(&self, _: &Context, _: &Guarded<ManagedServer>) -> Result<(), Failure> {
        Ok(())
    }

    fn forget(&self, _: &Context, _: &Key) {}
}

fn context(client: &Client, stop: CancellationToken) -> Arc<Context> {
    let (caches, watches) = Caches::open(client, &[]);
    for (_, watch) in watches {
        tokio::spawn(watch);
    }
    Arc::new(Context {
        client: client.clone(),
        caches,
        metrics: Arc::new(Metrics::new().unwrap()),
        directories: Directories::below(std::path::Path::new("/nonexistent")),
        settings: Settings {
            workers: 2,
            quota: declarest_core::repository::Quota::default(),
            sync_timeout: Duration::from_mins(1),
            limits: Limits::default(),
            expansion: Expansion::new(&["*"]).unwrap(),
            names: declarest_core::transport::Names::default(),
        },
        events: Events::new(client.clone(), "test".to_owned()),
        dependencies: Dependencies::default(),
        namespaces: Namespaces::all(),
        leadership: crate::leader::Leadership::default(),
        stop,
    })
}

fn server(name: &str) -> ManagedServer {
    serde_json::from_value(json!({
        "apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"http": {"baseURL": "https://api.example.test"}},
    }))
    .unwrap()
}

#[tokio::test]
async fn a_panic_fails_one_object_only() {
    let client = standalone::Api::new(crd::all()).unwrap().client();
    let stop = CancellationToken::new();
    let context = context(&client, stop.clone());
    let objects = context.caches.servers.clone();
    let reconciler = PanicsFor("bad", Mutex::default());
    let controller =
        tokio::spawn(async move { run(reconciler, context, &objects, futures::stream::empty()).await });

    let servers: Api<ManagedServer> = Api::default_namespaced(client);
    servers.create(&PostParams::default(), &server("bad")).await.unwrap();
    let reason = |expected: &'static str| {
        move |object: Option<&ManagedServer>| {
            object
                .and_then(|object| conditions::find(object.conditions(), "Ready"))
                .is_some_and(|ready| ready.reason == expected)
        }
    };
    let bad = await_condition(servers.clone(), "bad", reason("ReconcileFailed")).await.unwrap().unwrap();
    assert_eq!(bad.status.unwrap().openapi_cache_path, None);
    servers.create(&PostParams::default(), &server("good")).await.unwrap();
    await_condition(servers, "good", reason("Ready")).await.unwrap();

    stop.cancel();
    controller.await.unwrap();
}

#[rstest]
#[case::leader(true)]
#[case::suspended(false)]
#[tokio::test]
async fn a_status_is_written_only_while_the_lease_is_held(#[case] leads: bool) {
    let client = standalone::Api::new(crd::all()).unwrap().client();
    let mut context = context(&client, CancellationToken::new());
    if !leads {
        let leases = Api::default_namespaced(client.clone());
        let candidate = Candidate::new(leases, "lease".to_owned(), "a".to_owned(), Timing::default());
        Arc::get_mut(&mut context).unwrap().leadership = candidate.leadership();
    }
    let servers: Api<ManagedServer> = Api::default_namespaced(client);
    let object = servers.create(&PostParams::default(), &server("a")).await.unwrap();
    let (context, status) = (&context, ManagedServerStatus::default());
    let mut round = Round { context, object, parsed: (), status, stored: None, written: None };
    round.publish(&Outcome::ready(""), 0).await.unwrap();
    let status = servers.get("a").await.unwrap().status.unwrap();
    assert_eq!(status.conditions.is_empty(), !leads);
}

/// kstatus treats an object without a status as current.
#[tokio::test]
async fn a_new_object_has_a_status_that_is_not_current() {
    let servers: Api<ManagedServer> =
        Api::default_namespaced(standalone::Api::new(crd::all()).unwrap().client());
    let created = servers.create(&PostParams::default(), &server("a")).await.unwrap();
    for object in [created, servers.get("a").await.unwrap()] {
        assert_eq!(object.status.unwrap().observed_generation, Some(-1));
    }
}

#[rstest]
#[case::success(Outcome::ready(""), 0, Some(54..=66))]
#[case::invalid(Outcome::new(Reason::SpecInvalid, ""), 0, None)]
#[case::suspended(Outcome::new(Reason::Suspended, ""), 0, None)]
#[case::overlapping(Outcome::new(Reason::OverlappingPolicy, ""), 0, None)]
#[case::waiting(Outcome::new(Reason::DependencyNotReady, ""), 0, Some(27..=33))]
#[case::first_failure(Outcome::new(Reason::FetchFailed, ""), 1, Some(4..=6))]
#[case::third_failure(Outcome::new(Reason::FetchFailed, ""), 3, Some(18..=22))]
#[case::never_later_than_the_interval(Outcome::new(Reason::FetchFailed, ""), 9, Some(54..=66))]
#[case::refused_prune(Outcome::new(Reason::PruneRefused, ""), 0, Some(54..=66))]
#[case::explicit_requeue(Outcome::ready("").with_requeue(Duration::from_secs(7)), 0, Some(7..=7))]
fn the_reason_determines_the_next_round(
    #[case] outcome: Outcome,
    #[case] failures: u32,
    #[case] expected: Option<std::ops::RangeInclusive<u64>>,
) {
    let next = next_look(&outcome, failures, Some(Duration::from_mins(1)));
    match (next, expected) {
        (Some(next), Some(expected)) => assert!(expected.contains(&next.as_secs()), "{next:?}"),
        (next, expected) => assert_eq!(next.is_some(), expected.is_some(), "{next:?}"),
    }
}
