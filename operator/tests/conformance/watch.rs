use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;

use crate::client;
use crate::support::widgets::{merge, refusal, secrets, widget, widgets};

/// More than fit into one read of a connection.
const OBJECTS: usize = 300;

type Events = std::pin::Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<DynamicObject>>> + Send>>;

/// The next event as `KIND name`, with what a bookmark or error says.
async fn next(events: &mut Events) -> String {
    let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await.expect("an event comes");
    match event.expect("the watch goes on").expect("the watch does not fail") {
        WatchEvent::Added(object) => format!("ADDED {}", object.name_any()),
        WatchEvent::Modified(object) => format!("MODIFIED {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("DELETED {}", object.name_any()),
        WatchEvent::Bookmark(bookmark) => format!("BOOKMARK {}", bookmark.metadata.annotations.len()),
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.reason),
    }
}

async fn watch(client: &kube::Client, params: &WatchParams, version: &str) -> Events {
    widgets(client).watch(params, version).await.unwrap().boxed()
}

#[tokio::test]
async fn a_watch_resumes_from_a_revision_and_follows() {
    let client = client().await;
    let made = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    merge(&client, "a", &json!({"spec": {"size": 1}})).await.unwrap();
    let mut events = watch(&client, &WatchParams::default(), &made.resource_version().unwrap()).await;
    assert_eq!(next(&mut events).await, "MODIFIED a");
    widgets(&client).create(&PostParams::default(), &widget("b")).await.unwrap();
    widgets(&client).delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut events).await, "ADDED b");
    assert_eq!(next(&mut events).await, "DELETED a");
}

#[tokio::test]
async fn a_watch_without_a_revision_starts_with_the_current_state() {
    let client = client().await;
    let mut version = String::new();
    for name in ["a", "b"] {
        let made = widgets(&client).create(&PostParams::default(), &widget(name)).await.unwrap();
        version = made.resource_version().unwrap();
    }
    // With version 0, a server may begin with any older state, and send a bookmark after it.
    let mut events = watch(&client, &WatchParams::default().disable_bookmarks(), "0").await;
    assert_eq!(next(&mut events).await, "ADDED a");
    assert_eq!(next(&mut events).await, "ADDED b");

    let params = WatchParams::default().initial_events();
    let mut events = watch(&client, &params, &version).await;
    assert_eq!(next(&mut events).await, "ADDED a");
    assert_eq!(next(&mut events).await, "ADDED b");
    assert_eq!(next(&mut events).await, "BOOKMARK 1");
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let client = client().await;
    let made = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let version = made.resource_version().unwrap();
    let mut events = watch(&client, &WatchParams::default().labels("on=1"), &version).await;
    merge(&client, "a", &json!({"metadata": {"labels": {"on": "1"}}})).await.unwrap();
    assert_eq!(next(&mut events).await, "ADDED a");
    merge(&client, "a", &json!({"spec": {"size": 5}})).await.unwrap();
    assert_eq!(next(&mut events).await, "MODIFIED a");
    merge(&client, "a", &json!({"metadata": {"labels": null}})).await.unwrap();
    assert_eq!(next(&mut events).await, "DELETED a");
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout() {
    let client = client().await;
    let mut events = watch(&client, &WatchParams::default().disable_bookmarks().timeout(1), "0").await;
    let end = tokio::time::timeout(Duration::from_secs(10), events.next()).await.expect("the watch ends");
    assert!(end.is_none());
}

#[tokio::test]
async fn a_malformed_revision_is_refused() {
    let client = client().await;
    let result = widgets(&client).watch(&WatchParams::default(), "yesterday").await;
    let (code, _, message) = refusal(result.map(|_| ()));
    assert_eq!(code, 500);
    assert!(message.starts_with("resourceVersion: Invalid value: \"yesterday\": "), "{message}");
    let result = widgets(&client).list(&ListParams::default().at("yesterday")).await;
    let (code, reason, message) = refusal(result);
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    let start = "invalid resource version: resourceVersion: Invalid value: \"yesterday\": ";
    assert!(message.starts_with(start), "{message}");
}

#[rstest::rstest]
#[case::lists(watcher::Config::default())]
#[case::streams(watcher::Config::default().streaming_lists())]
#[tokio::test]
async fn the_watcher_of_kube_keeps_up(#[case] config: watcher::Config) {
    let client = client().await;
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let mut objects = watcher(widgets(&client), config).applied_objects().boxed();
    let mut name = async || {
        let next = tokio::time::timeout(Duration::from_secs(10), objects.try_next()).await;
        next.expect("an object comes").unwrap().unwrap().name_any()
    };
    assert_eq!(name().await, "a");
    widgets(&client).create(&PostParams::default(), &widget("b")).await.unwrap();
    assert_eq!(name().await, "b");
}

#[tokio::test]
async fn metadata_watches_carry_no_data() {
    let client = client().await;
    let secret =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"a": "x"}})).unwrap();
    secrets(&client).create(&PostParams::default(), &secret).await.unwrap();
    // With version 0, a server may send a bookmark first, see above.
    let params = WatchParams::default().disable_bookmarks();
    let mut events = secrets(&client).watch_metadata(&params, "0").await.unwrap().boxed();
    let Some(Ok(WatchEvent::Added(object))) = events.next().await else { panic!("no event") };
    assert_eq!(object.name_any(), "s");
    assert_eq!(object.types.unwrap().kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn many_objects_reach_every_watch_in_order() {
    let client = client().await;
    let version =
        widgets(&client).list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().disable_bookmarks();
    let mut watches = Vec::new();
    for _ in 0..4 {
        watches.push(watch(&client, &params, &version).await);
    }
    let writer = tokio::spawn(async move {
        for index in 0..OBJECTS {
            widgets(&client).create(&PostParams::default(), &widget(&format!("w{index}"))).await.unwrap();
        }
    });
    for events in &mut watches {
        for index in 0..OBJECTS {
            let event = tokio::time::timeout(Duration::from_secs(30), events.next()).await.unwrap();
            let Some(Ok(WatchEvent::Added(object))) = event else { panic!("no event {index}") };
            assert_eq!(object.name_any(), format!("w{index}"));
        }
    }
    writer.await.unwrap();
}
