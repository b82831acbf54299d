//! The structure of a document: required fields, types, values and unknown fields. All faults are collected.

use std::ops::RangeInclusive;

use semver::Version;

use super::finding::{Code, Findings};
use super::image::ImageRef;
use super::model::{Durability, Protocol, Scope, State, StateKind, UpgradeStrategy, Workload};
use crate::payload::{Object, Value};

/// The longest name, in bytes.
const MAX_NAME: usize = 253;
/// The longest version, in bytes.
const MAX_VERSION: usize = 128;
/// The longest path of a probe, in bytes.
const MAX_PATH: usize = 1024;
/// The largest duration and number of replicas: that of Kubernetes.
const MAX_NUMBER: i64 = i32::MAX as i64;

/// The fields of a document, each valid by itself.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub name: Option<String>,
    pub version: Option<String>,
    pub image: Option<ImageRef>,
    pub interfaces: Vec<InterfaceFields>,
    pub runtime: Option<RuntimeFields>,
    pub scaling: Option<ScalingFields>,
}

#[derive(Debug)]
pub(super) struct InterfaceFields {
    pub name: String,
    pub protocol: Option<Protocol>,
    pub port: Option<u16>,
    pub contract: Option<String>,
}

#[derive(Debug)]
pub(super) struct RuntimeFields {
    pub workload: Option<Workload>,
    pub state: Option<State>,
    pub upgrade_strategy: Option<UpgradeStrategy>,
    pub graceful_shutdown: Option<i64>,
    pub health: Option<EndpointFields>,
    pub initial_delay: i64,
    pub metrics: Option<EndpointFields>,
}

#[derive(Debug)]
pub(super) struct EndpointFields {
    pub interface: String,
    pub path: Option<String>,
}

#[derive(Debug)]
pub(super) struct ScalingFields {
    pub replicas: Option<i64>,
    pub min: Option<i64>,
    pub max: Option<i64>,
}

/// Top-level fields that are accepted in any shape.
const UNREAD: [&str; 7] =
    ["configuration", "configurations", "policy", "policies", "dependencies", "metadata", "pactoVersion"];

/// Reads the fields of a document, which is a mapping.
pub(super) fn read(document: &Value, findings: &mut Findings) -> Fields {
    let mut fields = Fields::default();
    let Some(members) = document.as_object() else { return fields };
    let mut root = Section { members, path: String::new(), findings };
    if !root.supported_version() {
        return fields;
    }
    for key in members.keys() {
        let read = ["service", "interfaces", "runtime", "scaling"];
        if !read.contains(&key.as_str()) && !UNREAD.contains(&key.as_str()) {
            root.findings.warn(Code::UnknownField, key, "is not a field of the format; it is ignored");
        }
    }
    if let Some(mut service) = root.section("service", true) {
        service.expect(&["name", "version", "owner", "image", "chart"]);
        fields.name = service.valid("name", name);
        fields.version = service.version();
        if let Some(mut image) = service.section("image", false) {
            image.expect(&["ref", "private"]);
            fields.image = image.image();
        }
    }
    root.each("interfaces", |interface| fields.interfaces.extend(interface.interface()));
    fields.runtime = root.section("runtime", false).map(|mut runtime| runtime.runtime());
    fields.scaling = root.section("scaling", false).map(|mut scaling| {
        scaling.expect(&["replicas", "min", "max"]);
        let mut number = |key| scaling.integer(key, 0..=MAX_NUMBER);
        ScalingFields { replicas: number("replicas"), min: number("min"), max: number("max") }
    });
    fields
}

/// A mapping of the document.
struct Section<'a> {
    members: &'a Object,
    path: String,
    findings: &'a mut Findings,
}

impl<'a> Section<'a> {
    fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn error(&mut self, code: Code, key: &str, message: &str) {
        let path = self.path(key);
        self.findings.error(code, &path, message);
    }

    /// Reports fields that are not in `known`.
    fn expect(&mut self, known: &[&str]) {
        let members = self.members;
        for key in members.keys().filter(|key| !known.contains(&key.as_str())) {
            let message = format!("is not a field; expected one of {}", known.join(", "));
            self.error(Code::UnknownField, key, &message);
        }
    }

    /// Returns a field that is not null.
    fn get(&mut self, key: &str, required: bool) -> Option<&'a Value> {
        let members = self.members;
        let value = members.get(key).filter(|value| !value.is_null());
        if value.is_none() && required {
            self.error(Code::RequiredField, key, "is required");
        }
        value
    }

    fn wrong_type(&mut self, key: &str, found: &Value, expected: &str) {
        let message = format!("is {}; expected {expected}", found.kind());
        self.error(Code::InvalidType, key, &message);
    }

    fn section(&mut self, key: &str, required: bool) -> Option<Section<'_>> {
        let value = self.get(key, required)?;
        let path = self.path(key);
        match value {
            Value::Object(members) => Some(Section { members, path, findings: self.findings }),
            other => {
                self.wrong_type(key, other, "a mapping");
                None
            }
        }
    }

    /// Calls `read` for each mapping of a list.
    fn each(&mut self, key: &str, mut read: impl FnMut(&mut Section<'_>)) {
        let items = match self.get(key, false) {
            None => return,
            Some(Value::Array(items)) => items,
            Some(other) => return self.wrong_type(key, other, "a list"),
        };
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            match item {
                Value::Object(members) => read(&mut Section { members, path, findings: self.findings }),
                other => {
                    let message = format!("is {}; expected a mapping", other.kind());
                    self.findings.error(Code::InvalidType, &path, &message);
                }
            }
        }
    }

    fn text(&mut self, key: &str, required: bool) -> Option<String> {
        match self.get(key, required)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.wrong_type(key, other, "a string; use quotes");
                None
            }
        }
    }

    /// Returns a required text that `check` accepts.
    fn valid(&mut self, key: &str, check: fn(&str) -> Result<(), &'static str>) -> Option<String> {
        let text = self.text(key, true)?;
        self.checked(key, text, check)
    }

    fn checked(
        &mut self,
        key: &str,
        text: String,
        check: fn(&str) -> Result<(), &'static str>,
    ) -> Option<String> {
        match check(&text) {
            Ok(()) => Some(text),
            Err(reason) => {
                self.error(Code::InvalidValue, key, reason);
                None
            }
        }
    }

    fn integer(&mut self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        match self.get(key, false)? {
            Value::Int(number) if range.contains(number) => Some(*number),
            Value::Int(_) => {
                let message = format!("must be from {} to {}", range.start(), range.end());
                self.error(Code::InvalidValue, key, &message);
                None
            }
            other => {
                self.wrong_type(key, other, "an integer");
                None
            }
        }
    }

    fn choice<T: Copy>(&mut self, key: &str, required: bool, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(key, required)?;
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if chosen.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.error(Code::InvalidValue, key, &format!("must be one of {}", names.join(", ")));
        }
        chosen
    }

    /// Returns whether this is a version of the format that is supported. No other field is read otherwise.
    fn supported_version(&mut self) -> bool {
        const KEY: &str = "pactoVersion";
        match self.get(KEY, true) {
            Some(Value::String(text)) if text == "1.0" => true,
            // Without quotes, YAML makes it a number.
            Some(Value::Float(number)) if (number - 1.0).abs() < f64::EPSILON => true,
            Some(Value::String(_) | Value::Float(_) | Value::Int(_)) => {
                self.error(Code::UnsupportedVersion, KEY, "is not supported; use \"1.0\"");
                false
            }
            Some(other) => {
                self.wrong_type(KEY, other, "\"1.0\"");
                false
            }
            None => true,
        }
    }

    fn version(&mut self) -> Option<String> {
        let text = self.text("version", true)?;
        if semantic_version(&text).is_some() {
            return Some(text);
        }
        self.error(Code::InvalidSemver, "version", "is not a semantic version such as 1.2.3");
        None
    }

    fn image(&mut self) -> Option<ImageRef> {
        let text = self.text("ref", true)?;
        let image = ImageRef::parse(&text);
        if image.is_none() {
            self.error(Code::InvalidImageRef, "ref", "is not an image reference such as r.example/app:1.0.0");
        }
        image
    }

    fn interface(&mut self) -> Option<InterfaceFields> {
        const PROTOCOLS: [(&str, Protocol); 3] =
            [("http", Protocol::Http), ("grpc", Protocol::Grpc), ("event", Protocol::Event)];
        self.expect(&["name", "type", "port", "visibility", "contract"]);
        let name = self.valid("name", label);
        let protocol = self.choice("type", true, &PROTOCOLS);
        let port = self.integer("port", 1..=65_535).and_then(|port| u16::try_from(port).ok());
        self.choice("visibility", false, &[("internal", ()), ("public", ())]);
        let contract = self.text("contract", false);
        let contract = contract.and_then(|text| self.checked("contract", text, file));
        Some(InterfaceFields { name: name?, protocol, port, contract })
    }

    fn runtime(&mut self) -> RuntimeFields {
        self.expect(&["workload", "state", "lifecycle", "health", "metrics"]);
        let workload = self.choice(
            "workload",
            true,
            &[("service", Workload::Service), ("job", Workload::Job), ("scheduled", Workload::Scheduled)],
        );
        let state = self.section("state", true).and_then(|mut state| state.state());
        let (mut upgrade_strategy, mut graceful_shutdown) = (None, None);
        if let Some(mut lifecycle) = self.section("lifecycle", false) {
            use UpgradeStrategy::{Ordered, Recreate, Rolling};
            lifecycle.expect(&["upgradeStrategy", "gracefulShutdownSeconds"]);
            let strategies = [Rolling, Recreate, Ordered].map(|strategy| (strategy.as_str(), strategy));
            upgrade_strategy = lifecycle.choice("upgradeStrategy", false, &strategies);
            graceful_shutdown = lifecycle.integer("gracefulShutdownSeconds", 0..=MAX_NUMBER);
        }
        let mut initial_delay = 0;
        let health = self.section("health", false).and_then(|mut health| {
            health.expect(&["interface", "path", "initialDelaySeconds"]);
            initial_delay = health.integer("initialDelaySeconds", 0..=MAX_NUMBER).unwrap_or_default();
            health.endpoint()
        });
        let metrics = self.section("metrics", false).and_then(|mut metrics| {
            metrics.expect(&["interface", "path"]);
            metrics.endpoint()
        });
        RuntimeFields { workload, state, upgrade_strategy, graceful_shutdown, health, initial_delay, metrics }
    }

    fn state(&mut self) -> Option<State> {
        self.expect(&["type", "persistence", "dataCriticality"]);
        let kind = self.choice(
            "type",
            true,
            &[
                ("stateless", StateKind::Stateless),
                ("stateful", StateKind::Stateful),
                ("hybrid", StateKind::Hybrid),
            ],
        );
        let persistence = self.section("persistence", true).and_then(|mut persistence| {
            persistence.expect(&["scope", "durability"]);
            let scope =
                persistence.choice("scope", true, &[("local", Scope::Local), ("shared", Scope::Shared)]);
            let durability = persistence.choice(
                "durability",
                true,
                &[("ephemeral", Durability::Ephemeral), ("persistent", Durability::Persistent)],
            );
            scope.zip(durability)
        });
        self.choice("dataCriticality", true, &[("low", ()), ("medium", ()), ("high", ())]);
        let (scope, durability) = persistence?;
        Some(State { kind: kind?, scope, durability })
    }

    fn endpoint(&mut self) -> Option<EndpointFields> {
        let interface = self.valid("interface", label);
        let path = self.text("path", false).filter(|path| !path.is_empty());
        let path = path.map(|path| if path.starts_with('/') { path } else { format!("/{path}") });
        let path = path.and_then(|path| self.checked("path", path, probe_path));
        Some(EndpointFields { interface: interface?, path })
    }
}

fn name(text: &str) -> Result<(), &'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = !text.is_empty()
        && text.len() <= MAX_NAME
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-');
    valid.then_some(()).ok_or("must consist of lower-case letters, digits and inner dashes")
}

fn label(text: &str) -> Result<(), &'static str> {
    let valid = !text.trim().is_empty() && text.len() <= MAX_NAME && !text.contains(char::is_control);
    valid.then_some(()).ok_or("must not be empty, longer than 253 bytes, or contain control characters")
}

fn file(text: &str) -> Result<(), &'static str> {
    let inside = !text.is_empty()
        && text.len() <= MAX_PATH
        && !text.starts_with('/')
        && !text.contains(['\\', '\0'])
        && text.split('/').all(|segment| segment != "..");
    inside.then_some(()).ok_or("must be the path of a file in the bundle, without ..")
}

/// Checks the path of a probe. It must not change the host of the URL that it is appended to.
fn probe_path(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_PATH {
        return Err("is longer than 1024 bytes");
    }
    if text.starts_with("//") || text.contains("://") || text.starts_with("/\\") {
        return Err("must be a path, without a host");
    }
    if text.contains('#') || text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("must not contain a fragment, white space, a backslash or a control character");
    }
    Ok(())
}

/// Parses a version. A leading `v` and a missing minor or patch number are accepted.
pub(super) fn semantic_version(text: &str) -> Option<Version> {
    if text.len() > MAX_VERSION {
        return None;
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (core, rest) = text.split_at(end);
    let padding = match core.split('.').count() {
        1 => ".0.0",
        2 => ".0",
        _ => "",
    };
    Version::parse(&format!("{core}{padding}{rest}")).ok()
}
