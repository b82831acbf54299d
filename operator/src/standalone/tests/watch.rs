//! Watches from revisions that are no longer in the history.

use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use super::widgets::{crd, merge, widget, widgets};
use crate::standalone::Api;

#[tokio::test]
async fn a_watch_from_an_expired_revision_is_an_error() {
    let client = Api::with_log_capacity(vec![crd()], 3).unwrap().client();
    let first = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    for size in 1..=5 {
        merge(&client, "a", &json!({"spec": {"size": size}})).await.unwrap();
    }
    let params = WatchParams::default();
    let watch = async |version: Option<String>| {
        widgets(&client).watch(&params, &version.unwrap()).await.unwrap().boxed()
    };
    let mut events = watch(first.metadata.resource_version).await;
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else { panic!("not refused") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(events.next().await.is_none());
    let list = widgets(&client).list(&ListParams::default()).await.unwrap();
    let mut events = watch(list.metadata.resource_version).await;
    merge(&client, "a", &json!({"spec": {"size": 9}})).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Modified(_)))));
}

#[tokio::test(start_paused = true)]
async fn old_changes_leave_the_history() {
    let client = Api::new(vec![crd()]).unwrap().client();
    let first = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let start = first.metadata.resource_version.unwrap();
    let first_event = async |size: u64| {
        merge(&client, "a", &json!({"spec": {"size": size}})).await.unwrap();
        widgets(&client).watch(&WatchParams::default(), &start).await.unwrap().boxed().next().await.unwrap()
    };
    assert!(matches!(first_event(1).await, Ok(WatchEvent::Modified(_))));
    tokio::time::advance(Duration::from_mins(4)).await;
    assert!(matches!(first_event(2).await, Ok(WatchEvent::Modified(_))));
    tokio::time::advance(Duration::from_mins(2)).await;
    assert!(matches!(first_event(3).await, Ok(WatchEvent::Error(_))));
}
