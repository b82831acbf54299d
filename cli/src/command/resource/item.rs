//! What was read, and how it is shown.

use std::sync::Arc;

use clap::Args;
use declarest_core::metadata::document::compact;
use declarest_core::metadata::{Entry, Metadata, Rules};
use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, PayloadType, Value};
use declarest_core::secrets::{PLACEHOLDER, find_placeholder, mask};
use declarest_core::sync::{Members, Observed, Resource};

use crate::error::Failure;
use crate::invocation::Invocation;

/// A resource as it was read.
#[derive(Clone, Debug)]
pub struct Item {
    /// The path that the user knows it by.
    pub path: LogicalPath,
    pub alias: String,
    pub remote_id: String,
    pub rules: Arc<Rules>,
    pub payload: Value,
    descriptor: Option<Descriptor>,
}

/// What to leave out of a collection.
#[derive(Clone, Debug, Default, Args)]
pub struct Exclusions {
    /// Leave out resources of a collection, by path, last segment, alias or id
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    exclude: Vec<String>,
}

impl Item {
    /// A resource of the server. `path` is what it was asked for by.
    pub fn observed(path: &LogicalPath, observed: Observed) -> Self {
        let Observed { at, payload } = observed;
        let mut item = Self::declared(at);
        path.clone_into(&mut item.path);
        Self { payload: payload.unwrap_or_default(), ..item }
    }

    /// A resource of the repository.
    pub fn declared(resource: Resource) -> Self {
        let Resource { path, rules, identity, payload, descriptor } = resource;
        Self {
            path,
            alias: identity.alias,
            remote_id: identity.remote_id,
            rules,
            payload: Arc::unwrap_or_clone(payload),
            descriptor,
        }
    }

    /// The resources that the list of a collection shows, sorted by path.
    pub fn listed(members: Members, metadata: &Metadata) -> Result<Vec<Self>, Failure> {
        let items = members.entries.into_iter().map(|(path, entry)| {
            let Entry { alias, remote_id, payload } = entry;
            let rules = metadata.rules(&path)?;
            Ok(Self { path, alias, remote_id, rules, payload, descriptor: None })
        });
        items.collect()
    }

    /// The payload without what its defaults say as well.
    pub fn prune_defaults(&mut self) {
        let defaults = Value::Object(self.rules.resolved().defaults.clone());
        self.payload = compact(std::mem::take(&mut self.payload), &defaults);
    }

    /// Puts the placeholder in the place of declared secrets.
    pub fn mask(&mut self) {
        let resolved = self.rules.resolved();
        if resolved.secret {
            self.payload = Value::from(PLACEHOLDER);
            self.descriptor = Some(Descriptor::of(PayloadType::Text));
        } else {
            self.payload = mask(std::mem::take(&mut self.payload), &resolved.secret_attributes);
        }
    }

    /// What the payload is: as it is stored, else as metadata says, else as it looks.
    pub fn descriptor(&self) -> Descriptor {
        let stated = || self.rules.payload_type().map(Descriptor::of);
        self.descriptor.clone().or_else(stated).unwrap_or_else(|| {
            Descriptor::of(match &self.payload {
                Value::Bytes(_) => PayloadType::OctetStream,
                Value::String(_) => PayloadType::Text,
                _ => PayloadType::Json,
            })
        })
    }

    /// How lists show the resource: its alias, padded to `width` characters, and its id.
    fn line(&self, width: usize) -> String {
        match (self.alias.as_str(), self.remote_id.as_str()) {
            ("", _) => self.path.to_string(),
            (alias, "") => alias.to_owned(),
            (alias, id) => format!("{alias:width$} ({id})"),
        }
    }
}

/// The lines of a list.
pub fn lines(items: &[Item]) -> String {
    let width = items.iter().map(|item| item.alias.chars().count()).max().unwrap_or_default();
    let lines: Vec<String> = items.iter().map(|item| item.line(width)).collect();
    lines.join("\n")
}

/// The paths of resources, one a line.
pub fn paths(items: &[Item]) -> String {
    let paths: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
    paths.join("\n")
}

/// The payloads of resources as an array.
pub fn payloads(items: Vec<Item>) -> Value {
    Value::Array(items.into_iter().map(|item| item.payload).collect())
}

impl Exclusions {
    pub fn apply(&self, items: &mut Vec<Item>) {
        items.retain(|item| !self.cover(&item.path, &item.alias, &item.remote_id));
    }

    /// Whether a resource is to be left out.
    pub fn cover(&self, path: &LogicalPath, alias: &str, remote_id: &str) -> bool {
        let names = [path.as_str(), path.name(), alias, remote_id];
        self.exclude.iter().map(|name| name.trim()).any(|name| names.contains(&name))
    }

    /// Whether nothing is to be left out.
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty()
    }
}

/// What becomes of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    Masked,
    Shown,
}

impl Secrets {
    /// `show` is `--show-secrets`, which needs a store.
    pub fn new(show: bool, invocation: &Invocation) -> Result<Self, Failure> {
        if !show {
            return Ok(Self::Masked);
        }
        invocation.context()?.secret_store()?;
        Ok(Self::Shown)
    }

    pub fn apply(self, item: &mut Item) -> Result<(), Failure> {
        match self {
            Self::Masked => item.mask(),
            Self::Shown => {
                if let Some(pointer) = find_placeholder(&item.payload) {
                    return Err(Failure::invalid(format!(
                        "{}: the value at \"{pointer}\" is a placeholder, and this version reads no secret \
                         stores; leave out --show-secrets",
                        item.path
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::decode;
    use rstest::rstest;

    use super::*;

    fn item(path: &str, alias: &str, remote_id: &str) -> Item {
        Item {
            path: LogicalPath::parse(path).unwrap(),
            alias: alias.to_owned(),
            remote_id: remote_id.to_owned(),
            rules: Metadata::conventions(),
            payload: decode(PayloadType::Json, b"{}").unwrap(),
            descriptor: None,
        }
    }

    #[test]
    fn aliases_are_padded_to_the_widest() {
        let items = [item("/a/é", "é", "42"), item("/a/acme", "acme", ""), item("/a/7", "", "7")];
        assert_eq!(lines(&items), "é    (42)\nacme\n/a/7");
        assert_eq!(lines(&[]), "");
        assert_eq!(paths(&items), "/a/é\n/a/acme\n/a/7");
    }

    #[rstest]
    #[case("/shops/rio")]
    #[case("rio")]
    #[case("Rio de Janeiro")]
    #[case("42")]
    #[case(" 42 ")]
    fn exclusions(#[case] name: &str) {
        let mut items = vec![item("/shops/lima", "Lima", "7"), item("/shops/rio", "Rio de Janeiro", "42")];
        Exclusions { exclude: vec!["none".to_owned(), name.to_owned()] }.apply(&mut items);
        assert_eq!(paths(&items), "/shops/lima");
    }

    #[rstest]
    #[case(Value::Bytes(vec![]), PayloadType::OctetStream)]
    #[case(Value::from("x"), PayloadType::Text)]
    #[case(Value::from(1), PayloadType::Json)]
    fn types_that_nobody_states(#[case] payload: Value, #[case] expected: PayloadType) {
        let item = Item { payload, ..item("/a", "a", "a") };
        assert_eq!(item.descriptor().payload_type, expected);
    }
}
