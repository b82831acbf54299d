use kube::api::PostParams;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client;
use crate::support::widgets::{merge, refusal, widget_with, widgets};

#[rstest]
#[case::required(json!({}), "spec.url: Required value")]
#[case::pattern(json!({"url": "ftp://x"}),
    "spec.url: Invalid value: \"ftp://x\": spec.url in body should match '^https?://'")]
#[case::kind(json!({"url": 1}),
    "spec.url: Invalid value: \"integer\": spec.url in body must be of type string: \"integer\"")]
#[case::minimum(json!({"url": "http://x", "size": 0}),
    "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1")]
#[case::maximum(json!({"url": "http://x", "size": 11}),
    "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10")]
#[case::choice(json!({"url": "http://x", "mode": "x"}),
    "spec.mode: Unsupported value: \"x\": supported values: \"apply\", \"observe\"")]
#[case::too_long(json!({"url": "http://x", "label": "toolong"}),
    "spec.label: Too long: may not be more than 5 bytes")]
#[case::duplicate(json!({"url": "http://x", "tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\"")]
#[case::too_many(json!({"url": "http://x", "tags": ["a", "b", "c", "d"]}),
    "spec.tags: Too many: 4: must have at most 3 items")]
#[case::int_or_string(json!({"url": "http://x", "limit": true}),
    "spec.limit: Invalid value: \"boolean\": spec.limit in body must be of type integer,string: \"boolean\"")]
#[case::rule(json!({"url": "http://x", "auth": {"token": "t", "password": "p"}}),
    "spec: Invalid value: exactly one of auth.token and auth.password")]
#[case::rule_none(json!({"url": "http://x", "auth": {}}),
    "spec: Invalid value: exactly one of auth.token and auth.password")]
#[case::message_expression(json!({"url": "http://x", "interval": "10s"}),
    "spec.interval: Invalid value: \"10s\": must be at least 30s, not 10s")]
#[case::default_message(json!({"url": "http://x", "tags": ["B"]}),
    "spec.tags: Invalid value: failed rule: self.all(tag, tag.matches('^[a-z]+$'))")]
#[tokio::test]
async fn invalid_objects_are_refused_with_the_field(#[case] spec: Value, #[case] expected: &str) {
    let client = client().await;
    let result = widgets(&client).create(&PostParams::default(), &widget_with("a", &spec)).await;
    let Err(kube::Error::Api(status)) = result else { panic!("accepted: {result:?}") };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert!(status.message.starts_with("Widget.example.io \"a\" is invalid: "), "{}", status.message);
    assert!(status.message.contains(expected), "{}", status.message);
    let causes = status.details.unwrap().causes;
    assert!(
        causes.iter().any(|cause| format!("{}: {}", cause.field, cause.message) == expected),
        "{causes:?}"
    );
}

#[tokio::test]
async fn rules_wait_until_the_values_are_sound() {
    let client = client().await;
    let spec = json!({"auth": {"token": "t", "password": "p"}});
    let (_, _, message) =
        refusal(widgets(&client).create(&PostParams::default(), &widget_with("a", &spec)).await);
    assert_eq!(
        message,
        "Widget.example.io \"a\" is invalid: [spec.url: Required value, <nil>: Invalid value: null: some validation \
         rules were not checked because the object was invalid; correct the existing errors to complete validation]"
    );
}

#[rstest]
#[case::limit_number(json!({"url": "http://x", "limit": 5}))]
#[case::limit_text(json!({"url": "http://x", "limit": "50%"}))]
#[case::nullable(json!({"url": "http://x", "label": null}))]
#[case::one_auth(json!({"url": "http://x", "auth": {"token": "t"}}))]
#[case::tags(json!({"url": "http://x", "tags": ["a", "b"]}))]
#[tokio::test]
async fn valid_objects_are_stored_as_they_are(#[case] spec: Value) {
    let client = client().await;
    let made = widgets(&client).create(&PostParams::default(), &widget_with("a", &spec)).await.unwrap();
    for (field, value) in spec.as_object().unwrap() {
        assert_eq!(&made.data["spec"][field], value);
    }
}

#[tokio::test]
async fn unknown_fields_go_and_defaults_come_at_every_depth() {
    let client = client().await;
    let spec = json!({
        "url": "http://x", "unknown": 1, "nested": {"gone": 1}, "headers": {"Any-Key": "kept"},
        "interval": null,
    });
    let made = widgets(&client).create(&PostParams::default(), &widget_with("a", &spec)).await.unwrap();
    assert_eq!(
        made.data["spec"],
        json!({
            "url": "http://x", "interval": "1m", "mode": "apply", "nested": {"deep": true},
            "headers": {"Any-Key": "kept"},
        })
    );
}

#[tokio::test]
async fn transition_rules_run_on_updates_only() {
    let client = client().await;
    let spec = json!({"url": "http://x", "name": "first"});
    widgets(&client).create(&PostParams::default(), &widget_with("a", &spec)).await.unwrap();
    let (code, _, message) = refusal(merge(&client, "a", &json!({"spec": {"name": "second"}})).await);
    assert_eq!(code, 422);
    assert!(message.contains("spec.name: Invalid value: \"second\": is immutable"), "{message}");
    merge(&client, "a", &json!({"spec": {"name": "first", "size": 2}})).await.unwrap();
}
