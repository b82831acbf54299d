//! The tables of expectations next to the bundles.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use declarest_core::error::Category;
use declarest_core::payload::{PayloadType, decode};
use serde::Deserialize;
use serde_json::Value as Json;

/// The expectations of a bundle.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Table {
    /// The path of the server's base URL.
    pub base_path: String,
    pub defaults: MediaTypes,
    pub secrets: Vec<Secrecy>,
    /// Collections that resources are never written to.
    #[serde(default)]
    pub read_only: Vec<String>,
    pub cases: Vec<Case>,
}

/// The default headers of requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MediaTypes {
    pub accept: String,
    pub content_type: String,
}

/// The expected secrets of a resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrecy {
    pub path: String,
    #[serde(default)]
    pub whole: bool,
    #[serde(default)]
    pub attributes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The selector of the document that the case tests.
    pub collection: String,
    pub operation: Operation,
    pub path: String,
    pub desired: Option<Json>,
    /// Further resources that are declared and created, by path.
    #[serde(default)]
    pub with: BTreeMap<String, Json>,
    #[serde(default)]
    pub files: BTreeMap<String, Content>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// The responses to reads that are not in `requests`: a body, or a status.
    #[serde(default)]
    pub server: BTreeMap<String, Json>,
    #[serde(default)]
    pub requests: Vec<Exchange>,
    pub entries: Option<Vec<Listed>>,
    pub payload: Option<Json>,
    pub observed: Option<Json>,
    pub differences: Option<Vec<Departure>>,
    pub outcome: Option<Outcome>,
    /// The category of the expected failure.
    pub failure: Option<Category>,
    /// A text in the message of the expected failure.
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    List,
    Get,
    Create,
    Update,
    Delete,
    Compare,
    Apply,
}

impl Case {
    /// Returns the possible last segments of the URLs of its resources: names of paths, and texts of payloads.
    pub fn names(&self) -> Vec<String> {
        let paths = self.with.keys().chain([&self.path]);
        let names = paths.filter_map(|path| path.rsplit('/').next()).map(str::to_owned);
        let payloads = self.with.values().chain(&self.desired);
        let members = payloads.filter_map(Json::as_object).flat_map(|members| members.values());
        names.chain(members.filter_map(Json::as_str).map(str::to_owned)).collect()
    }
}

impl Operation {
    /// Returns whether the table has all requests, including reads.
    pub fn is_conversation(self) -> bool {
        matches!(self, Self::List | Self::Get | Self::Apply)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{self:?}").to_lowercase())
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Created,
    Updated,
    Unchanged,
    Failed,
}

/// The content of a file.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Bytes { base64: String },
}

impl Content {
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Bytes { base64 } => STANDARD.decode(base64).unwrap(),
        }
    }
}

/// A request and its response.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exchange {
    /// `METHOD path?query`, encoded, below the base path.
    pub send: String,
    pub accept: Option<String>,
    pub content_type: Option<String>,
    pub body: Option<Json>,
    pub text: Option<String>,
    pub base64: Option<String>,
    pub status: Option<u16>,
    pub json: Option<Json>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub optional: bool,
}

/// An entry of a list.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    pub path: String,
    pub alias: String,
    pub id: String,
    pub payload: Json,
}

/// A difference, as metadata documents it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Departure {
    pub operation: String,
    pub path: String,
    pub local: Json,
    pub remote: Json,
}

impl Table {
    /// Reads the table of the bundle `name`.
    pub fn of(name: &str) -> Self {
        let file = directory(name).join("expectations.yaml");
        let table = decode(PayloadType::Yaml, &std::fs::read(&file).unwrap()).unwrap();
        serde_json::from_value(table.to_json().unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }
}

/// Returns the directory of the bundle `name`.
pub fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bundles").join(name)
}
