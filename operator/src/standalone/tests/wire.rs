use std::time::Duration;

use kube::api::PostParams;
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{api, apply_status, partial, widget, widgets};
use crate::standalone::Api;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;\
                     g=meta.k8s.io,application/json";

/// A served API; it stops with the test.
struct Server {
    api: Api,
    base: String,
    http: reqwest::Client,
    shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start() -> Self {
        let api = api();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let task = tokio::spawn({
            let (api, shutdown) = (api.clone(), shutdown.clone());
            async move { api.serve(listener, shutdown).await }
        });
        // reqwest is built without a default crypto provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { api, base, http, shutdown, task }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    async fn get(&self, path: &str, accept: &str) -> (u16, Value) {
        let response = self.request(Method::GET, path).header("accept", accept).send().await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> (u16, Value) {
        let request = self.request(method, path).header("content-type", kind).body(body.to_string());
        let response = request.send().await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
    }
}

#[tokio::test]
async fn only_loopback_is_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = api().serve(listener, CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("use a loopback address"), "{error}");
}

#[rstest]
#[case::rebound_name("host", "attacker.example")]
#[case::web_page("origin", "https://attacker.example")]
#[tokio::test]
async fn browsers_are_kept_out(#[case] header: &str, #[case] value: &str) {
    let server = Server::start().await;
    let response = server.request(Method::GET, "/api/v1/secrets").header(header, value).send().await.unwrap();
    assert_eq!(response.status(), 403);
    let status: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("Forbidden")));
}

#[tokio::test]
async fn a_shutdown_ends_watches_and_the_server() {
    let server = Server::start().await;
    let mut watch = server
        .request(Method::GET, "/apis/example.io/v1/widgets?watch=1&resourceVersion=1")
        .send()
        .await
        .unwrap();
    server.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), server.task).await.expect("it stops").unwrap().unwrap();
    let rest = tokio::time::timeout(Duration::from_secs(10), watch.chunk()).await.expect("the watch ends");
    assert!(!matches!(rest, Ok(Some(_))));
}

#[rstest]
#[case::unknown_type("GET", "/apis/example.io/v1/gadgets", 404, "NotFound")]
#[case::unknown_group("GET", "/apis/other.io/v1", 404, "NotFound")]
#[case::unknown_subresource("GET", "/apis/example.io/v1/namespaces/default/widgets/a/scale", 404, "NotFound")]
#[case::name_without_namespace("GET", "/apis/example.io/v1/widgets/a", 404, "NotFound")]
#[case::no_openapi("GET", "/openapi/v3", 404, "NotFound")]
#[case::put_on_a_collection("PUT", "/apis/example.io/v1/namespaces/default/widgets", 405, "MethodNotAllowed")]
#[case::post_without_namespace("POST", "/apis/example.io/v1/widgets", 405, "MethodNotAllowed")]
#[case::delete_of_a_status(
    "DELETE",
    "/apis/example.io/v1/namespaces/default/widgets/a/status",
    405,
    "MethodNotAllowed"
)]
#[case::delete_of_a_namespace("DELETE", "/api/v1/namespaces/default", 405, "MethodNotAllowed")]
#[tokio::test]
async fn wrong_requests_get_a_status(
    #[case] method: &str,
    #[case] path: &str,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let server = Server::start().await;
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let (found, status) = server.send(method, path, "application/json", &json!({})).await;
    assert_eq!((found, &status["reason"], &status["code"]), (code, &json!(reason), &json!(code)));
    assert_eq!(
        (&status["kind"], &status["apiVersion"], &status["status"]),
        (&json!("Status"), &json!("v1"), &json!("Failure"))
    );
}

#[rstest]
#[case::not_json("application/json", "{", 400)]
#[case::not_an_object("application/json", "[]", 400)]
#[case::other_kind(
    "application/json",
    r#"{"apiVersion":"example.io/v1","kind":"Gadget","metadata":{"name":"a"}}"#,
    400
)]
#[case::other_version(
    "application/json",
    r#"{"apiVersion":"example.io/v2","kind":"Widget","metadata":{"name":"a"}}"#,
    400
)]
#[case::other_namespace(
    "application/json",
    r#"{"metadata":{"name":"a","namespace":"x"},"spec":{"url":"http://a"}}"#,
    400
)]
#[case::form("text/plain", r#"{"metadata":{"name":"a"},"spec":{"url":"http://a"}}"#, 415)]
#[case::yaml("application/yaml", "metadata: {name: a}\nspec: {url: http://a}\n", 201)]
#[case::json("application/json", r#"{"metadata":{"name":"a"},"spec":{"url":"http://a"}}"#, 201)]
#[tokio::test]
async fn bodies_are_checked(#[case] kind: &str, #[case] body: &str, #[case] code: u16) {
    let server = Server::start().await;
    let path = "/apis/example.io/v1/namespaces/default/widgets";
    let request = server.request(Method::POST, path).header("content-type", kind).body(body.to_owned());
    assert_eq!(request.send().await.unwrap().status(), code);
}

#[tokio::test]
async fn unknown_fields_warn_or_fail_as_asked() {
    let server = Server::start().await;
    let body = json!({"metadata": {"name": "a"}, "spec": {"url": "http://a", "extra": 1}});
    let path = "/apis/example.io/v1/namespaces/default/widgets";
    let (code, status) =
        server.send(Method::POST, &format!("{path}?fieldValidation=Strict"), "application/json", &body).await;
    assert_eq!(code, 400);
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with("strict decoding error: unknown field \"spec.extra\""), "{message}");

    let request = server.request(Method::POST, path).header("content-type", "application/json");
    let response = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"unknown field \\\"spec.extra\\\"\"");
}

#[tokio::test]
async fn discovery_leads_kubectl_to_every_type() {
    let server = Server::start().await;
    let json = "application/json";
    assert_eq!(server.get("/version", json).await.1["major"], "1");
    assert_eq!(server.get("/api", json).await.1["versions"], json!(["v1"]));
    let (_, groups) = server.get("/apis", json).await;
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["events.k8s.io", "coordination.k8s.io", "example.io"]);
    assert_eq!(groups["groups"][2]["preferredVersion"]["groupVersion"], "example.io/v1");
    let (_, resources) = server.get("/apis/example.io/v1", json).await;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(resources["resources"][1]["name"], "widgets/status");
    let (_, core) = server.get("/api/v1", json).await;
    assert_eq!(core["resources"].as_array().unwrap().iter().filter(|r| r["kind"] == "Secret").count(), 1);
    assert_eq!(server.get("/apis/example.io", json).await.1["kind"], "APIGroup");
    assert_eq!(server.request(Method::GET, "/readyz").send().await.unwrap().text().await.unwrap(), "ok");
}

#[tokio::test]
async fn tables_show_the_columns_of_the_definition() {
    let server = Server::start().await;
    let client = server.api.client();
    let made = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    widgets(&client).create(&PostParams::default(), &widget("b")).await.unwrap();
    let ready =
        json!({"conditions": [{"type": "Stalled", "status": "False"}, {"type": "Ready", "status": "True"}]});
    apply_status(&client, "m", "a", &ready).await;

    let path = "/apis/example.io/v1/namespaces/default/widgets";
    let (_, table) = server.get(&format!("{path}?limit=500"), TABLE).await;
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

    let (_, one) = server.get(&format!("{path}/a?includeObject=None"), TABLE).await;
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    assert_eq!(one["rows"][0].get("object"), None);
}

#[tokio::test]
async fn a_table_watch_sends_its_columns_once() {
    let server = Server::start().await;
    let client = server.api.client();
    for name in ["a", "b"] {
        widgets(&client).create(&PostParams::default(), &widget(name)).await.unwrap();
    }
    let path = "/apis/example.io/v1/widgets?watch=true&resourceVersion=0&timeoutSeconds=1";
    let response = server.request(Method::GET, path).header("accept", TABLE).send().await.unwrap();
    let text = response.text().await.unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["object"]["columnDefinitions"].as_array().unwrap().len(), 5);
    assert_eq!(events[1]["object"]["columnDefinitions"], json!([]));
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn representations_that_cannot_be_written_are_not_acceptable() {
    let server = Server::start().await;
    let (code, status) = server.get("/api/v1/secrets", "application/vnd.kubernetes.protobuf").await;
    assert_eq!((code, &status["reason"]), (406, &json!("NotAcceptable")));
    let (code, _) =
        server.get("/api/v1/secrets", "application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn an_apply_may_be_yaml() {
    let server = Server::start().await;
    let path = "/apis/example.io/v1/namespaces/default/widgets/a?fieldManager=kubectl";
    let body = "apiVersion: example.io/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  url: http://a\n";
    let request = server.request(Method::PATCH, path).header("content-type", "application/apply-patch+yaml");
    assert_eq!(request.body(body).send().await.unwrap().status(), 201);
    let again = partial("a", &json!({"spec": {"url": "http://b"}}));
    let (code, object) = server.send(Method::PATCH, path, "application/apply-patch+yaml", &again).await;
    assert_eq!((code, &object["spec"]["url"]), (200, &json!("http://b")));
}
