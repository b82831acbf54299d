//! The questions of `context add` on a terminal. Only the questions of chosen branches are asked.

use declarest_core::payload::{Descriptor, PayloadType};
use serde_json::{Map, Value, json};

use crate::error::Failure;
use crate::input::{Content, expanded};
use crate::output::to_stderr;
use crate::terminal;

/// Asks for a context and its credentials. Returns them as a catalogue. `name` is not asked for if it is given.
pub fn ask(name: Option<&str>) -> Result<Content, Failure> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => required("Name of the context")?,
    };
    let mut wizard = Wizard { name: name.clone(), credentials: Vec::new() };
    let mut context = json!({ "name": name });
    set(&mut context, "repository", wizard.repository()?);
    set(&mut context, "metadata", metadata()?);
    set(&mut context, "managedServer", wizard.server()?);
    set(&mut context, "secretStore", wizard.secret_store()?);
    set(&mut context, "preferences", pairs("Preference as NAME=VALUE, empty for no further one")?);
    let catalogue = json!({"currentContext": name, "contexts": [context], "credentials": wizard.credentials});
    Ok(Content {
        origin: "the answers".to_owned(),
        bytes: catalogue.to_string().into_bytes(),
        descriptor: Descriptor::of(PayloadType::Json),
    })
}

struct Wizard {
    name: String,
    credentials: Vec<Value>,
}

impl Wizard {
    fn repository(&mut self) -> Result<Option<Value>, Failure> {
        Ok(match choice("Repository", &["filesystem", "git", "none"])? {
            "filesystem" => {
                Some(json!({"filesystem": {"baseDir": required_path("Directory of the repository")?}}))
            }
            "git" => {
                let directory = required_path("Directory of the checkout")?;
                let creates = confirmed("Create the checkout if it is missing?")?;
                let mut git = json!({"local": {"baseDir": directory, "autoInit": creates}});
                set(&mut git, "remote", self.remote()?);
                Some(json!({ "git": git }))
            }
            _ => None,
        })
    }

    fn remote(&mut self) -> Result<Option<Value>, Failure> {
        let Some(url) = optional("URL of the remote, empty for none")? else { return Ok(None) };
        let mut remote = json!({ "url": url });
        set(&mut remote, "branch", optional("Branch, empty for main")?);
        set(&mut remote, "autoSync", Some(confirmed("Push commits automatically?")?));
        let auth = match choice("Authentication", &["none", "basic", "ssh", "accessKey"])? {
            "basic" => Some(json!({"basic": self.credential("git")?})),
            "ssh" => {
                let mut ssh = json!({"privateKeyFile": required_path("File of the private key")?});
                set(&mut ssh, "user", optional("User, empty for git")?);
                set(&mut ssh, "passphrase", hidden("Passphrase of the key, empty for none")?);
                let hosts = optional_path("File of known hosts, empty for ~/.ssh/known_hosts")?;
                set(&mut ssh, "knownHostsFile", hosts);
                Some(json!({ "ssh": ssh }))
            }
            "accessKey" => Some(json!({"accessKey": {"token": required_secret("Token")?}})),
            _ => None,
        };
        set(&mut remote, "auth", auth);
        set(&mut remote, "tls", tls()?);
        Ok(Some(remote))
    }

    fn server(&mut self) -> Result<Option<Value>, Failure> {
        let Some(url) = optional("URL of the managed server, empty for none")? else { return Ok(None) };
        let mut http = json!({ "url": url });
        let openapi = optional("OpenAPI document: URL or file, empty for none")?;
        let absolute = |answer: String| if answer.contains("://") { answer } else { absolute_path(answer) };
        set(&mut http, "openapi", openapi.map(absolute));
        let headers = pairs("Header of each request as NAME=VALUE, empty for no further one")?;
        set(&mut http, "defaultHeaders", headers);
        set(&mut http, "proxy", proxy()?);
        let auth = match choice("Authentication", &["none", "basic", "oauth2", "customHeaders"])? {
            "basic" => Some(json!({"basic": self.credential("server")?})),
            "oauth2" => {
                let mut oauth2 = json!({
                    "tokenURL": required("URL of the token endpoint")?,
                    "grantType": "client_credentials",
                    "clientID": required("Client id")?,
                    "clientSecret": required_secret("Client secret")?,
                });
                set(&mut oauth2, "scope", optional("Scope, empty for none")?);
                Some(json!({ "oauth2": oauth2 }))
            }
            "customHeaders" => {
                let mut header = json!({"header": required("Name of the header, such as Authorization")?});
                let prefix = optional("Prefix of the value, such as Bearer, empty for none")?;
                set(&mut header, "prefix", prefix);
                set(&mut header, "value", Some(required_secret("Value of the header")?));
                Some(json!({ "customHeaders": [header] }))
            }
            _ => None,
        };
        set(&mut http, "auth", auth);
        set(&mut http, "tls", tls()?);
        Ok(Some(json!({ "http": http })))
    }

    fn secret_store(&mut self) -> Result<Option<Value>, Failure> {
        Ok(match choice("Secret store", &["none", "file", "vault"])? {
            "file" => {
                let mut file = json!({"path": required_path("File of the encrypted secrets")?});
                match optional_path("File of the passphrase, empty to state the passphrase")? {
                    Some(passphrase) => set(&mut file, "passphraseFile", Some(passphrase)),
                    None => set(&mut file, "passphrase", Some(required_secret("Passphrase")?)),
                }
                Some(json!({ "file": file }))
            }
            "vault" => {
                let mut vault = json!({"address": required("Address of Vault")?});
                set(&mut vault, "mount", optional("Mount of the KV engine, empty for secret")?);
                set(&mut vault, "pathPrefix", optional("Prefix of the paths, empty for none")?);
                let auth = match choice("Authentication", &["token", "password", "appRole"])? {
                    "password" => json!({"password": self.credential("vault")?}),
                    "appRole" => {
                        let (role, secret) = (required("Role id")?, required_secret("Secret id")?);
                        json!({"appRole": {"roleID": role, "secretID": secret}})
                    }
                    _ => json!({"token": required_secret("Token")?}),
                };
                set(&mut vault, "auth", Some(auth));
                set(&mut vault, "tls", tls()?);
                Some(json!({ "vault": vault }))
            }
            _ => None,
        })
    }

    /// Asks for a credential, and returns the reference to it.
    fn credential(&mut self, purpose: &str) -> Result<Value, Failure> {
        let name = format!("{}-{purpose}", self.name);
        let username = required("Username")?;
        let password = match hidden("Password, empty to be asked for it when it is needed")? {
            Some(password) => password.into(),
            None => json!({"prompt": true}),
        };
        self.credentials.push(json!({"name": name, "username": username, "password": password}));
        Ok(json!({"credentialsRef": {"name": name}}))
    }
}

fn metadata() -> Result<Option<Value>, Failure> {
    let directory = optional_path("Directory of metadata, empty for the repository")?;
    Ok(directory.map(|directory| json!({ "baseDir": directory })))
}

fn tls() -> Result<Option<Value>, Failure> {
    let authority = optional_path("File of the CA certificate, empty for those of the system")?;
    Ok(authority.map(|file| json!({ "caCertFile": file })))
}

fn proxy() -> Result<Option<Value>, Failure> {
    let url = optional("URL of the proxy, empty for that of the environment")?;
    Ok(url.map(|url| json!({"http": url, "https": url})))
}

/// Asks for members until the answer is empty. Returns `None` if there are none.
fn pairs(question: &str) -> Result<Option<Value>, Failure> {
    let mut members = Map::new();
    while let Some(answer) = optional(question)? {
        match answer.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                members.insert(name.trim().to_owned(), value.trim().into());
            }
            _ => to_stderr("write it as NAME=VALUE"),
        }
    }
    Ok((!members.is_empty()).then_some(Value::Object(members)))
}

/// Asks until the answer is one of `options`, or the beginning of only one. The first is the default.
fn choice<'o>(question: &str, options: &[&'o str]) -> Result<&'o str, Failure> {
    let shown = format!("{question}: {} [{}]", options.join(", "), options[0]);
    loop {
        let Some(answer) = optional(&shown)? else { return Ok(options[0]) };
        let answer = answer.to_lowercase();
        let mut matching = options.iter().filter(|option| option.to_lowercase().starts_with(&answer));
        match (matching.next(), matching.next()) {
            (Some(only), None) => return Ok(only),
            _ => to_stderr(&format!("choose one of {}", options.join(", "))),
        }
    }
}

fn confirmed(question: &str) -> Result<bool, Failure> {
    let answer = optional(&format!("{question} [Y/n]"))?;
    Ok(answer.is_none_or(|answer| answer.to_lowercase().starts_with('y')))
}

fn required(question: &str) -> Result<String, Failure> {
    until_answered(|| optional(question))
}

fn required_secret(question: &str) -> Result<String, Failure> {
    until_answered(|| hidden(question))
}

fn until_answered(ask: impl Fn() -> Result<Option<String>, Failure>) -> Result<String, Failure> {
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        to_stderr("an answer is required");
    }
}

/// Returns the answer, or `None` if it is blank.
fn optional(question: &str) -> Result<Option<String>, Failure> {
    let answer = terminal::ask(question, false)?;
    Ok(Some(answer.expose().trim().to_owned()).filter(|answer| !answer.is_empty()))
}

fn required_path(question: &str) -> Result<String, Failure> {
    until_answered(|| optional_path(question))
}

/// Like [`optional`], for a file or directory.
fn optional_path(question: &str) -> Result<Option<String>, Failure> {
    Ok(optional(question)?.map(absolute_path))
}

/// Returns the absolute path of an answer, because commands may run in another directory. A variable such as `${HOME}` at
/// the beginning is kept.
fn absolute_path(answer: String) -> String {
    if answer.starts_with("${") {
        return answer;
    }
    let absolute = std::path::absolute(expanded(&answer)).ok();
    absolute.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or(answer)
}

/// Like [`optional`]; the input is not shown.
fn hidden(question: &str) -> Result<Option<String>, Failure> {
    let answer = terminal::ask(question, true)?;
    Ok(Some(answer.expose().to_owned()).filter(|answer| !answer.trim().is_empty()))
}

fn set<T: Into<Value>>(object: &mut Value, key: &str, value: Option<T>) {
    if let Some(value) = value {
        object[key] = value.into();
    }
}
