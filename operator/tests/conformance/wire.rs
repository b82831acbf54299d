//! What typed clients hide: representations, refusals and discovery.

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::PostParams;
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client;
use crate::support::widgets::{apply_status, partial, widget, widgets};

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;\
                     g=meta.k8s.io,application/json";

struct Answer {
    code: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

/// Sends a request as it is; `headers` are names and values.
async fn send(client: &Client, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
    let (parts, body) = client.send(request).await.unwrap().into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Answer { code: parts.status.as_u16(), headers: parts.headers, text }
}

async fn get(client: &Client, path: &str, accept: &str) -> Answer {
    send(client, "GET", path, &[("accept", accept)], "").await
}

async fn post(client: &Client, path: &str, kind: &str, body: &str) -> Answer {
    send(client, "POST", path, &[("content-type", kind)], body).await
}

/// The widgets of the test.
fn collection(client: &Client) -> String {
    format!("/apis/example.io/v1/namespaces/{}/widgets", client.default_namespace())
}

#[rstest]
#[case::unknown_subresource("GET", "/apis/example.io/v1/namespaces/default/widgets/a/scale", 404, "NotFound")]
#[case::put_on_a_collection("PUT", "/apis/example.io/v1/namespaces/default/widgets", 400, "BadRequest")]
#[case::put_on_built_ins("PUT", "/api/v1/namespaces/default/secrets", 405, "MethodNotAllowed")]
#[case::post_without_namespace("POST", "/api/v1/secrets", 405, "MethodNotAllowed")]
#[case::delete_of_a_status(
    "DELETE",
    "/apis/example.io/v1/namespaces/default/widgets/a/status",
    405,
    "MethodNotAllowed"
)]
#[tokio::test]
async fn wrong_requests_get_a_status(
    #[case] method: &str,
    #[case] path: &str,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let client = client().await;
    let answer = send(&client, method, path, &[("content-type", JSON)], "{}").await;
    assert_eq!(answer.code, code, "{}", answer.text);
    let status = answer.json();
    assert_eq!((&status["reason"], &status["code"]), (&json!(reason), &json!(code)));
    assert_eq!(
        (&status["kind"], &status["apiVersion"], &status["status"]),
        (&json!("Status"), &json!("v1"), &json!("Failure"))
    );
}

#[rstest]
#[case::unknown_type("GET", "/apis/example.io/v1/gadgets")]
#[case::unknown_group("GET", "/apis/other.io/v1")]
#[case::name_without_namespace("GET", "/apis/example.io/v1/widgets/a")]
#[case::post_without_namespace("POST", "/apis/example.io/v1/widgets")]
#[tokio::test]
async fn unknown_paths_get_a_page(#[case] method: &str, #[case] path: &str) {
    let client = client().await;
    let answer = send(&client, method, path, &[("content-type", JSON)], "{}").await;
    assert_eq!((answer.code, answer.text.trim_end()), (404, "404 page not found"));
}

#[rstest]
#[case::not_json(JSON, "{", 400)]
#[case::not_an_object(JSON, "[]", 400)]
#[case::typeless(JSON, r#"{"metadata":{"name":"a"},"spec":{"url":"http://a"}}"#, 400)]
#[case::other_kind(
    JSON,
    r#"{"apiVersion":"example.io/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"url":"http://a"}}"#,
    422
)]
#[case::other_version(
    JSON,
    r#"{"apiVersion":"example.io/v2","kind":"Widget","metadata":{"name":"a"},"spec":{"url":"http://a"}}"#,
    400
)]
#[case::other_namespace(
    JSON,
    r#"{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"a","namespace":"x"},"spec":{"url":"http://a"}}"#,
    400
)]
#[case::text(
    "text/plain",
    "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: a}\nspec: {url: http://a}\n",
    415
)]
#[case::yaml(
    "application/yaml",
    "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: a}\nspec: {url: http://a}\n",
    201
)]
#[case::json(
    JSON,
    r#"{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"url":"http://a"}}"#,
    201
)]
#[tokio::test]
async fn bodies_are_checked(#[case] kind: &str, #[case] body: &str, #[case] code: u16) {
    let client = client().await;
    let answer = post(&client, &collection(&client), kind, body).await;
    assert_eq!(answer.code, code, "{}", answer.text);
}

#[tokio::test]
async fn refused_types_are_named() {
    let client = client().await;
    let message = async |body: &Value| -> String {
        let answer = post(&client, &collection(&client), JSON, &body.to_string()).await;
        answer.json()["message"].as_str().unwrap().to_owned()
    };
    let mut body = partial("a", &json!({"spec": {"url": "http://a"}}));
    body["kind"] = json!("Gadget");
    assert_eq!(
        message(&body).await,
        "Gadget.example.io \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget"
    );
    body["kind"] = json!("Widget");
    body["apiVersion"] = json!("example.io/v2");
    assert_eq!(
        message(&body).await,
        "the API version in the data (example.io/v2) does not match the expected API version (example.io/v1)"
    );
    body.as_object_mut().unwrap().remove("kind");
    assert!(message(&body).await.contains("Object 'Kind' is missing"));
}

#[tokio::test]
async fn unknown_fields_warn_or_fail_as_asked() {
    let client = client().await;
    let body = partial("a", &json!({"spec": {"url": "http://a", "extra": 1}})).to_string();
    let path = collection(&client);
    let answer = post(&client, &format!("{path}?fieldValidation=Strict"), JSON, &body).await;
    assert_eq!(answer.code, 400);
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("strict decoding error: unknown field \"spec.extra\""), "{message}");

    let answer = post(&client, &path, JSON, &body).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.headers["warning"], "299 - \"unknown field \\\"spec.extra\\\"\"");
}

#[tokio::test]
async fn discovery_leads_kubectl_to_every_type() {
    let client = client().await;
    let found = async |path: &str| get(&client, path, JSON).await.json();
    assert_eq!(found("/version").await["major"], "1");
    assert_eq!(found("/api").await["versions"], json!(["v1"]));
    let groups = found("/apis").await;
    let group = |name: &str| {
        let mut groups = groups["groups"].as_array().unwrap().iter();
        groups.find(|group| group["name"] == name).unwrap_or_else(|| panic!("no {name} in {groups:?}"))
    };
    assert_eq!(group("events.k8s.io")["preferredVersion"]["groupVersion"], "events.k8s.io/v1");
    assert_eq!(group("coordination.k8s.io")["preferredVersion"]["groupVersion"], "coordination.k8s.io/v1");
    assert_eq!(group("example.io")["preferredVersion"]["groupVersion"], "example.io/v1");
    let resources = found("/apis/example.io/v1").await;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(resources["resources"][1]["name"], "widgets/status");
    let core = found("/api/v1").await;
    assert_eq!(core["resources"].as_array().unwrap().iter().filter(|r| r["kind"] == "Secret").count(), 1);
    assert_eq!(found("/apis/example.io").await["kind"], "APIGroup");
    assert_eq!(get(&client, "/readyz", "*/*").await.text, "ok");
}

#[tokio::test]
async fn tables_show_the_columns_of_the_definition() {
    let client = client().await;
    let made = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    widgets(&client).create(&PostParams::default(), &widget("b")).await.unwrap();
    let ready =
        json!({"conditions": [{"type": "Stalled", "status": "False"}, {"type": "Ready", "status": "True"}]});
    apply_status(&client, "m", "a", &ready).await;

    let path = collection(&client);
    let table = get(&client, &format!("{path}?limit=500"), TABLE).await.json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns: Vec<(&str, i64)> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["priority"].as_i64().unwrap()))
        .collect();
    assert_eq!(columns, [("Name", 0), ("URL", 0), ("Ready", 0), ("Size", 1), ("Age", 0)]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        cells.as_array().unwrap()[..4],
        [json!("a"), json!("https://example.org"), json!("True"), Value::Null]
    );
    assert!(cells[4].as_str().unwrap().ends_with('s'), "{cells}");
    assert_eq!(table["rows"][1]["cells"][2], Value::Null);
    let row_object = &table["rows"][0]["object"];
    assert_eq!(row_object["kind"], "PartialObjectMetadata");
    assert_eq!(row_object["metadata"]["uid"], json!(made.metadata.uid));
    assert_eq!(row_object.get("spec"), None);

    let one = get(&client, &format!("{path}/a?includeObject=None"), TABLE).await.json();
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    assert_eq!(one["rows"][0].get("object"), Some(&Value::Null));
}

#[tokio::test]
async fn a_table_watch_sends_its_columns_once() {
    let client = client().await;
    for name in ["a", "b"] {
        widgets(&client).create(&PostParams::default(), &widget(name)).await.unwrap();
    }
    let path = format!("{}?watch=true&resourceVersion=0&timeoutSeconds=1", collection(&client));
    let answer = get(&client, &path, TABLE).await;
    let events: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["object"]["columnDefinitions"].as_array().unwrap().len(), 5);
    assert_eq!(events[1]["object"]["columnDefinitions"], Value::Null);
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn representations_that_cannot_be_written_are_not_acceptable() {
    let client = client().await;
    let csv = "text/csv";
    let answer = get(&client, &collection(&client), csv).await;
    assert_eq!((answer.code, &answer.json()["reason"]), (406, &json!("NotAcceptable")));
    let answer = get(&client, &collection(&client), &format!("{csv},{JSON}")).await;
    assert_eq!(answer.code, 200);
}

#[tokio::test]
async fn an_apply_may_be_yaml() {
    let client = client().await;
    let path = format!("{}/a?fieldManager=kubectl", collection(&client));
    let headers = [("content-type", "application/apply-patch+yaml")];
    let body = "apiVersion: example.io/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  url: http://a\n";
    assert_eq!(send(&client, "PATCH", &path, &headers, body).await.code, 201);
    let again = partial("a", &json!({"spec": {"url": "http://b"}})).to_string();
    let answer = send(&client, "PATCH", &path, &headers, &again).await;
    assert_eq!((answer.code, &answer.json()["spec"]["url"]), (200, &json!("http://b")));
}
