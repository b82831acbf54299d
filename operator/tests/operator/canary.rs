//! Every secret that an operator can hold, servers that repeat every request, and a search for any of it
//! in everything that the operator says.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use declarest_operator::crd::{ManagedServer, ResourceRepository, SecretStore, SyncPolicy};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::canaries::{self, STORE_KEY, canary, wide_canary};
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::ports::free_ports;
use crate::support::world::{Object, World, declarest, ready};

/// Where a secret may be. The keys of one Secret, and its values.
struct Canaries(BTreeMap<&'static str, String>);

impl Canaries {
    fn new() -> Self {
        let places = [
            "basic", "header", "oauth-secret", "oauth-password", "proxy", "git", "vault-token",
            "vault-password", "vault-role-secret",
        ];
        let mut values: BTreeMap<_, _> = places.map(|place| (place, canary(place))).into();
        let client = rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
        values.insert("client-cert", client.cert.pem());
        values.insert("client-key", client.signing_key.serialize_pem());
        values.insert("store-key", STORE_KEY.to_owned());
        Self(values)
    }

    fn reference(key: &str) -> Value {
        json!({"name": "canaries", "key": key})
    }

    fn search(&self, said: &[canaries::Said]) {
        for (place, value) in self.0.iter().filter(|(place, _)| **place != "client-cert") {
            // Of a key, a line from the middle.
            let value = if value.starts_with("-----") { value.lines().nth(1).unwrap() } else { value };
            canaries::search(place, value, said);
        }
        canaries::search("placeholder", &wide_canary("placeholder"), said);
    }
}

/// Answers what is read with 404, and refuses all other requests and repeats them.
async fn echo() -> String {
    let router = Router::new().fallback(|request: Request| async move {
        let head = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
        let received =
            request.headers().values().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let received: Vec<String> = received.collect();
        let read = request.method() == Method::GET && !request.uri().path().starts_with("/v1/");
        let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let text = format!("{} {} {head}", String::from_utf8_lossy(&body), received.join(" "));
        let status = if read { StatusCode::NOT_FOUND } else { StatusCode::UNPROCESSABLE_ENTITY };
        let received =
            json!({"errors": [text], "message": text, "note": canaries::encoded(&text)}).to_string();
        // As Go encodes.
        (status, received.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e"))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await });
    url
}

/// The servers by name, each with another kind of credentials.
fn servers(url: &str) -> Vec<(&'static str, Value)> {
    let key = Canaries::reference;
    let oauth = json!({
        "tokenURL": format!("{url}/token"), "grantType": "password", "clientIDRef": key("user"),
        "clientSecretRef": key("oauth-secret"), "usernameRef": key("user"), "passwordRef": key("oauth-password"),
    });
    let basic = json!({"usernameRef": key("user"), "passwordRef": key("basic")});
    let header = json!([{"header": "X-Key", "prefix": "Token", "valueRef": key("header")}]);
    let proxy_login = json!({"usernameRef": key("user"), "passwordRef": key("proxy")});
    vec![
        ("basic", json!({"baseURL": url, "auth": {"basicAuth": basic}})),
        ("header", json!({"baseURL": url, "auth": {"customHeaders": header}})),
        ("oauth", json!({"baseURL": url, "auth": {"oauth2": oauth}})),
        (
            "certificate",
            json!({"baseURL": url, "tls": {
                "clientCertRef": key("client-cert"), "clientKeyRef": key("client-key"),
            }}),
        ),
        (
            "proxied",
            json!({"baseURL": "http://api.example.test", "proxy": {"httpURL": url, "auth": proxy_login}}),
        ),
    ]
}

fn stores(url: &str) -> Vec<(&'static str, Value)> {
    let key = Canaries::reference;
    let vault = |auth: Value| json!({"vault": {"address": url, "auth": auth}});
    let userpass = json!({"usernameRef": key("user"), "passwordRef": key("vault-password")});
    let role = json!({"roleIDRef": key("user"), "secretIDRef": key("vault-role-secret")});
    let file = json!({
        "path": "store.json", "encryption": {"keyRef": key("store-key")}, "seedRef": key("seed"),
    });
    vec![
        ("file", json!({"file": file})),
        ("token", vault(json!({"token": {"secretRef": key("vault-token")}}))),
        ("password", vault(json!({"userpass": userpass}))),
        ("role", vault(json!({"appRole": role}))),
    ]
}

/// Waits until an object was judged.
async fn judged<K: Object>(world: &World, name: &str) -> String {
    let api = world.api::<K>();
    let what = format!("{} {name} is judged", K::kind(&()));
    world
        .eventually(&what, || async {
            let object = serde_json::to_value(api.get(name).await.ok()?).ok()?;
            let conditions = serde_json::from_value::<Vec<_>>(object["status"]["conditions"].clone()).ok()?;
            let ready = ready(&conditions);
            (!ready.reason.is_empty() && ready.reason != "Reconciling").then_some(ready.message)
        })
        .await
}

async fn objects<K: Object>(world: &World) -> (String, String) {
    let all = world.api::<K>().list(&ListParams::default()).await.unwrap().items;
    let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    (format!("{} {names:?}", K::kind(&())), serde_json::to_string(&all).unwrap())
}

#[tokio::test]
async fn nothing_that_is_secret_is_anywhere_else() {
    let held = Canaries::new();
    let [port] = free_ports();
    let metrics = format!("127.0.0.1:{port}");
    let world = World::start_with(&[&format!("--metrics-bind-address={metrics}"), "--log-level=trace"]).await;
    let url = echo().await;
    let git = GitRemote::new();
    git.write("apps/billing/resource.json", r#"{"id":"billing","pw":"{{secret .}}"}"#);
    git.commit("apps");
    git.push();
    let remote = GitHttp::start(git.root(), Some(&held.0["git"]));

    let seed = super::secrets::seed_with(STORE_KEY, &wide_canary("placeholder")).await;
    let mut values: Vec<(&str, &str)> = held.0.iter().map(|(key, value)| (*key, value.as_str())).collect();
    values.extend([("user", "ops"), ("seed", &seed)]);
    world.create_secret("canaries", &values).await;
    let token = json!({"tokenRef": Canaries::reference("git")});
    world.create_repository(&remote.url("desired.git"), token).await;
    for (name, spec) in stores(&url) {
        world.create(declarest("SecretStore", name, &spec)).await;
        judged::<SecretStore>(&world, name).await;
    }
    world.fetched(&git.head()).await;
    let mut received = String::new();
    for (name, http) in servers(&url) {
        world.create(declarest("ManagedServer", name, &json!({"http": http}))).await;
        judged::<ManagedServer>(&world, name).await;
        let policy = json!({
            "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": name},
            "secretStoreRef": {"name": "file"}, "source": {"path": "/"}, "syncInterval": "1h",
        });
        world.create(declarest("SyncPolicy", name, &policy)).await;
        received += &judged::<SyncPolicy>(&world, name).await;
        world.delete::<SyncPolicy>(name).await;
    }
    assert!(received.matches("status 422").count() >= 4, "the servers repeated their requests: {received}");
    assert!(received.contains("<redacted>"), "{received}");

    let scrape =
        reqwest::Client::builder().no_proxy().build().unwrap().get(format!("http://{metrics}/metrics"));
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let mut said = vec![
        ("messages".to_owned(), received),
        ("log".to_owned(), world.log()),
        ("metrics".to_owned(), scrape.send().await.unwrap().text().await.unwrap()),
        ("events".to_owned(), serde_json::to_string(&events).unwrap()),
        objects::<ResourceRepository>(&world).await,
        objects::<ManagedServer>(&world).await,
        objects::<SecretStore>(&world).await,
    ];
    canaries::files(&world.state(), &["api/secrets", "manifests"], &mut said);
    assert!(said.iter().any(|(what, text)| what == "metrics" && text.contains("declarest_")));
    held.search(&said);
}
