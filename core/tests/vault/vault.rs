//! A Vault with engines, users and policies, set up as its administrator does.

use declarest_core::secrets::vault::{KvVersion, VaultAuth, VaultSettings, VaultStore};
use declarest_core::secrets::{Secret, SecretKey};
use declarest_core::transport::{Pem, TlsConfig};
use reqwest::{Certificate, Method, StatusCode};
use rustls::crypto::ring;
use serde_json::{Value, json};

use crate::process::{Process, Tls};

pub const PASSWORD: &str = "correct horse";

/// What may be done with secrets of the engine `two` (version 2) and `one` (version 1), and nothing else.
const POLICY: &str = r#"
path "two/data/*" { capabilities = ["create", "update", "read", "delete"] }
path "two/metadata/*" { capabilities = ["list"] }
path "one/*" { capabilities = ["create", "update", "read", "delete", "list"] }
"#;

/// The engine `two` is of version 2, `one` of version 1. The user `ops` with [`PASSWORD`] and the role `declarest`
/// may use them.
pub struct Vault {
    process: Process,
    http: reqwest::Client,
    root: String,
    unseal_key: String,
    /// The certificate of a server with TLS.
    pub certificate: String,
}

impl Vault {
    pub async fn start() -> Self {
        Self::launch(None).await
    }

    /// Listens with TLS, for 127.0.0.1.
    pub async fn start_with_tls() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let tls = Tls { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() };
        Self::launch(Some(tls)).await
    }

    async fn launch(tls: Option<Tls>) -> Self {
        let _ = ring::default_provider().install_default();
        let certificate = tls.as_ref().map_or_else(String::new, |tls| tls.certificate.clone());
        let roots = Certificate::from_pem_bundle(certificate.as_bytes()).unwrap();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only(roots).build().unwrap();
        let process = Process::start(tls.as_ref(), &http).await;
        let (root, unseal_key) = (String::new(), String::new());
        let mut vault = Self { process, http, root, unseal_key, certificate };
        vault.set_up().await;
        vault
    }

    async fn set_up(&mut self) {
        let shares = json!({"secret_shares": 1, "secret_threshold": 1});
        let keys = self.admin(Method::PUT, "sys/init", shares).await;
        text(&keys["root_token"]).clone_into(&mut self.root);
        text(&keys["keys_base64"][0]).clone_into(&mut self.unseal_key);
        self.unseal().await;
        for (mount, version) in [("two", "2"), ("one", "1")] {
            let engine = json!({"type": "kv", "options": {"version": version}});
            self.admin(Method::POST, &format!("sys/mounts/{mount}"), engine).await;
        }
        self.admin(Method::PUT, "sys/policies/acl/declarest", json!({"policy": POLICY})).await;
        for login in ["userpass", "approle"] {
            self.admin(Method::POST, &format!("sys/auth/{login}"), json!({"type": login})).await;
        }
        let grants = json!({"password": PASSWORD, "token_policies": "declarest"});
        self.admin(Method::POST, "auth/userpass/users/ops", grants).await;
        self.admin(Method::POST, "auth/approle/role/declarest", json!({"token_policies": "declarest"})).await;
        // A new version 2 engine takes a moment to become one.
        while self.ask(Method::GET, "two/config", Value::Null).await.0 != StatusCode::OK {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    pub async fn unseal(&self) {
        let unsealed = self.admin(Method::PUT, "sys/unseal", json!({"key": self.unseal_key})).await;
        assert_eq!(unsealed["sealed"], false);
    }

    pub async fn seal(&self) {
        self.admin(Method::PUT, "sys/seal", Value::Null).await;
    }

    /// A request of the administrator, which succeeds.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let url = format!("{}/v1/{path}", self.process.url);
        let mut request = self.http.request(method, url).header("x-vault-token", &self.root);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    /// A token with these properties.
    pub async fn token(&self, properties: Value) -> String {
        let created = self.admin(Method::POST, "auth/token/create", properties).await;
        text(&created["auth"]["client_token"]).to_owned()
    }

    /// The ids of the role `declarest`.
    pub async fn app_role(&self) -> VaultAuth {
        let role = "auth/approle/role/declarest";
        let role_id = self.admin(Method::GET, &format!("{role}/role-id"), Value::Null).await;
        let secret_id = self.admin(Method::POST, &format!("{role}/secret-id"), json!({})).await;
        VaultAuth::AppRole {
            mount: "approle".to_owned(),
            role_id: secret(text(&role_id["data"]["role_id"])),
            secret_id: secret(text(&secret_id["data"]["secret_id"])),
        }
    }

    pub fn url(&self) -> &str {
        &self.process.url
    }

    /// How many tokens there are.
    pub async fn tokens(&self) -> usize {
        let accessors =
            self.admin(Method::from_bytes(b"LIST").unwrap(), "auth/token/accessors", Value::Null).await;
        accessors["data"]["keys"].as_array().unwrap().len()
    }

    /// Makes every token of `login` invalid.
    pub async fn revoke(&self, login: &str) {
        self.admin(Method::PUT, &format!("sys/leases/revoke-prefix/auth/{login}"), json!({})).await;
    }

    /// The engine of a version, as the user `ops`.
    pub fn settings(&self, kv_version: KvVersion) -> VaultSettings {
        let mount = match kv_version {
            KvVersion::V1 => "one",
            KvVersion::V2 => "two",
        };
        let mut settings = VaultSettings::new(&self.process.url, userpass(PASSWORD));
        mount.clone_into(&mut settings.mount);
        settings.kv_version = kv_version;
        if !self.certificate.is_empty() {
            let pem = Pem { origin: "the test's certificate", text: self.certificate.as_bytes() };
            settings.tls = TlsConfig::trusting(pem).unwrap().into();
        }
        settings
    }

    pub fn store(&self, kv_version: KvVersion) -> VaultStore {
        VaultStore::new(self.settings(kv_version)).unwrap()
    }
}

pub fn userpass(password: &str) -> VaultAuth {
    let (mount, username) = ("userpass".to_owned(), "ops".to_owned());
    VaultAuth::Userpass { mount, username, password: secret(password) }
}

pub fn secret(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

pub fn key(text: &str) -> SecretKey {
    SecretKey::parse(text).unwrap()
}

/// What the store lists.
pub async fn listed(store: &VaultStore) -> Vec<String> {
    store.list().await.unwrap().iter().map(ToString::to_string).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
