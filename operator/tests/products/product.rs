//! A running product, and requests of its administrator.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use rustls::crypto::ring;
use serde_json::{Value, json};

/// How clients log in.
#[derive(Clone)]
pub enum Login {
    Header {
        name: &'static str,
        value: String,
    },
    Basic {
        user: &'static str,
        password: &'static str,
    },
    /// The client credentials of OAuth 2.0, with the path of the token endpoint.
    Client {
        path: &'static str,
        id: &'static str,
        secret: &'static str,
    },
}

/// The processes of a product, or the turn to use one that tests share. They are released when this is dropped.
pub type Held = Vec<Box<dyn Any + Send + Sync>>;

pub struct Product {
    /// Its directory in `bundles/`.
    pub name: &'static str,
    pub origin: String,
    /// The path of its API.
    pub base: &'static str,
    pub login: Login,
    /// The limit of concurrent requests that its README asks for.
    pub concurrency: Option<u32>,
    /// The secrets of the sample.
    pub secrets: &'static [(&'static str, &'static str)],
    /// How many resources of its sample always exist.
    pub singletons: usize,
    /// Files in addition to its sample.
    pub further: Vec<(String, String)>,
    pub _held: Held,
}

impl Product {
    /// Packs the bundles into a directory, and returns the archive of this product.
    pub fn pack(&self, directory: &Path) -> PathBuf {
        let packed = Command::new(root().join("hack/bundles.sh")).arg(directory).output().unwrap();
        assert!(packed.status.success(), "{packed:?}");
        let mut files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let is_archive = |file: &PathBuf| {
            let name = file.file_name().unwrap().to_str().unwrap();
            name.starts_with(self.name) && name.ends_with(".tar.gz")
        };
        files.find(is_archive).unwrap()
    }

    /// The files of its sample and the further ones, by their path.
    pub fn sample(&self) -> Vec<(String, String)> {
        let (root, mut files) = (root().join("bundles").join(self.name).join("sample"), self.further.clone());
        let mut directories = vec![root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    files.push((name, std::fs::read_to_string(path).unwrap()));
                }
            }
        }
        files
    }

    /// How many resources its sample declares.
    pub fn sample_size(&self) -> usize {
        let sample = self.sample();
        sample.iter().filter(|(path, _)| path.contains("/resource.")).count()
    }

    /// A request by hand, and its status and answer.
    pub async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let client = client();
        let mut request = client.request(method, format!("{}{}{path}", self.origin, self.base));
        request = match &self.login {
            Login::Header { name, value } => request.header(*name, value),
            Login::Basic { user, password } => request.basic_auth(user, Some(password)),
            Login::Client { path, id, secret } => {
                let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
                request.bearer_auth(self.token(path, form).await["access_token"].as_str().unwrap())
            }
        };
        if !body.is_null() {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
    }

    /// The answer of a token endpoint to a form.
    pub async fn token(&self, path: &str, form: String) -> Value {
        let request = client().post(format!("{}{path}", self.origin)).body(form);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap()
    }

    /// Changes something by hand.
    pub async fn change(&self, method: Method, path: &str, body: Value) {
        let (status, answer) = self.ask(method.clone(), path, body).await;
        assert!(status < 300, "{method} {path}: {status} {answer}");
    }

    /// What the product has at a path.
    pub async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Asserts that the product does not have this.
    pub async fn lacks(&self, path: &str) {
        assert_eq!(self.ask(Method::GET, path, Value::Null).await.0, 404, "{path}");
    }

    /// `spec.http` of a ManagedServer, with the Secret `login` that it refers to.
    pub fn http(&self, origin: &str) -> (Value, Vec<(&'static str, String)>) {
        let reference = |key| json!({"name": "login", "key": key});
        let (auth, secret) = match &self.login {
            Login::Header { name, value } => (
                json!({"customHeaders": [{"header": name, "valueRef": reference("value")}]}),
                vec![("value", value.clone())],
            ),
            Login::Basic { user, password } => (
                json!({"basicAuth": {"usernameRef": reference("user"), "passwordRef": reference("password")}}),
                vec![("user", (*user).to_owned()), ("password", (*password).to_owned())],
            ),
            Login::Client { path, id, secret } => (
                json!({"oauth2": {
                    "tokenURL": format!("{origin}{path}"),
                    "clientIDRef": reference("id"),
                    "clientSecretRef": reference("secret"),
                }}),
                vec![("id", (*id).to_owned()), ("secret", (*secret).to_owned())],
            ),
        };
        let mut http = json!({"baseURL": format!("{origin}{}", self.base), "auth": auth});
        if let Some(limit) = self.concurrency {
            http["requestThrottling"] = json!({"maxConcurrentRequests": limit});
        }
        (http, secret)
    }

    /// `managedServer.http` of a context.
    pub fn context(&self, origin: &str) -> Value {
        let auth = match &self.login {
            Login::Header { name, value } => json!({"customHeaders": [{"header": name, "value": value}]}),
            Login::Basic { .. } => json!({"basic": {"credentialsRef": {"name": "login"}}}),
            Login::Client { path, id, secret } => json!({"oauth2": {
                "tokenURL": format!("{origin}{path}"), "clientID": id, "clientSecret": secret,
            }}),
        };
        let mut http = json!({"url": format!("{origin}{}", self.base), "auth": auth});
        if let Some(limit) = self.concurrency {
            http["requestThrottling"] = json!({"maxConcurrentRequests": limit});
        }
        http
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A client without proxies that follows no redirects.
pub fn client() -> reqwest::Client {
    // Without a provider of cryptography even a plain http client cannot be built.
    let _ = ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.timeout(Duration::from_mins(4)).build().unwrap()
}

/// Whether a GET of this URL succeeds.
pub async fn answers(url: &str) -> bool {
    client().get(url).send().await.is_ok_and(|answer| answer.status().as_u16() < 500)
}
