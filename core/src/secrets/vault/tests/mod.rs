//! Behaviour that a real Vault does not show on demand. The rest is tested against a real Vault.

mod answers;
mod client_of_vaultrs;
mod lists;
mod logins;
mod server;
mod settings;
mod statuses;

use serde_json::{Value, json};

use super::{VaultAuth, VaultSettings, VaultStore};
use crate::proxy::Proxy;
use crate::secrets::{Secret, SecretKey};
use server::{Reply, Seen, Server};

const TOKEN: &str = "hvs.canary-token";
const PASSWORD: &str = "canary-password";

fn secret(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

fn key(text: &str) -> SecretKey {
    SecretKey::parse(text).unwrap()
}

/// Settings with a given token.
fn with_token(server: &Server) -> VaultSettings {
    VaultSettings {
        proxy: Proxy::default(),
        ..VaultSettings::new(&server.url, VaultAuth::Token(secret(TOKEN)))
    }
}

/// Settings with a user and password.
fn with_user(server: &Server) -> VaultSettings {
    let (mount, username) = ("userpass".to_owned(), "ops".to_owned());
    let auth = VaultAuth::Userpass { mount, username, password: secret(PASSWORD) };
    VaultSettings { auth, ..with_token(server) }
}

fn store(settings: VaultSettings) -> VaultStore {
    VaultStore::new(settings).unwrap()
}

/// A version 2 secret.
fn stored(value: &Value) -> Reply {
    Reply::json(200, &json!({"data": {"data": {"value": value}, "metadata": {"version": 1}}}))
}

/// The answer to a login.
fn granted(token: &str, lease: u64) -> Reply {
    Reply::json(200, &json!({"auth": {"client_token": token, "lease_duration": lease, "renewable": true}}))
}

fn denied() -> Reply {
    Reply::json(403, &json!({"errors": ["1 error occurred:\n\t* permission denied\n\n"]}))
}

/// The token that a request carries.
fn token(seen: &Seen) -> &str {
    seen.header("x-vault-token")
}
