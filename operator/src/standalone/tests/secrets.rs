//! Errors about Secrets.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::api;
use super::widgets::{refusal, secrets};

/// Unlike the errors of kube-apiserver, which show the whole object.
#[tokio::test]
async fn errors_do_not_contain_rejected_values() {
    let client = api().client();
    let secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    secrets(&client).create(&PostParams::default(), &secret).await.unwrap();
    let broken = Patch::Merge(json!({"data": {"a": "not base64!"}}));
    let (code, _, message) = refusal(secrets(&client).patch("s", &PatchParams::default(), &broken).await);
    assert_eq!(code, 422);
    assert!(message.contains("data.a") && !message.contains("not base64!"), "{message}");
}
