//! Resources that were read, and their forms in output.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use declarest_core::authoring::{Draft, any_readable};
use declarest_core::control::one_line;
use declarest_core::language::referred::Unread;
use declarest_core::metadata::document::{Document, OnRemove, compact};
use declarest_core::metadata::{Entry, Identity, Metadata, Rules, Stated, Subject};
use declarest_core::path::LogicalPath;
use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Class, Descriptor, PayloadType, Value};
use declarest_core::repository::{self, metadata_place};
use declarest_core::secrets::{PLACEHOLDER, Scope, SecretReader, has_any, mask, mask_list};
use declarest_core::sync::{Members, Observed, Resource};

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output;
use crate::workspace::Workspace;

/// A resource as it was read.
#[derive(Clone, Debug)]
pub struct Item {
    /// The path that the user asked for.
    pub path: LogicalPath,
    pub alias: String,
    pub remote_id: String,
    pub payload: Value,
    rules: Arc<Rules>,
    /// Whether the whole resource is a secret.
    secret: bool,
    secret_attributes: Vec<Pointer>,
    /// Whether the payload is, or may be, that of a collection and contains several resources.
    list: bool,
    descriptor: Option<Descriptor>,
}

/// The resources to omit from a collection.
#[derive(Clone, Debug, Default, Args)]
pub struct Exclusions {
    /// Omit resources of a collection, by path, last segment, alias or id
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    exclude: Vec<String>,
}

impl Item {
    fn new(path: LogicalPath, rules: Arc<Rules>, identity: Identity, payload: Value) -> Self {
        let Identity { alias, remote_id } = identity;
        let resolved = rules.resolved();
        let (secret, secret_attributes) = (resolved.secret, resolved.secret_attributes.clone());
        Self {
            path,
            alias,
            remote_id,
            payload,
            rules,
            secret,
            secret_attributes,
            list: false,
            descriptor: None,
        }
    }

    /// Whether another file may declare other parts of the same resource.
    pub fn may_be_part(&self) -> bool {
        let resolved = self.rules.resolved();
        *resolved.on_remove() != OnRemove::Delete || resolved.singleton || !self.rules.replaces_whole()
    }

    /// Returns it as a member of a list.
    pub fn entry(&self) -> Entry {
        Entry {
            alias: self.alias.clone(),
            remote_id: self.remote_id.clone(),
            payload: self.payload.clone(),
            states: Stated::default(),
            format: None,
        }
    }

    /// Creates the item of a resource that was requested at `path`. The rules are those of the path with its alias.
    /// The secrets are those of every path that it was found by. The payload may also be that of a collection.
    pub fn observed(path: &LogicalPath, observed: Observed, metadata: &Metadata) -> Result<Self, Failure> {
        let Observed { at, payload, descriptor, .. } = observed;
        let payload = payload.unwrap_or_default();
        let identity = at.rules.identify(path, &payload).unwrap_or(at.identity);
        let collection = path.collection();
        let logical = collection.child(&identity.alias).unwrap_or_else(|_| path.clone());
        let mut item = Self::new(path.clone(), metadata.rules(&logical)?, identity, payload);
        let entries = entry_rules(path, &item.payload, metadata)?;
        for rules in entries.into_iter().chain([at.rules, metadata.rules(path)?]) {
            item.secret |= rules.resolved().secret;
            item.secret_attributes.extend_from_slice(&rules.resolved().secret_attributes);
        }
        let list = metadata.has_wildcard_child(path)? || item.may_be_list();
        Ok(Self { descriptor: at.descriptor.or(descriptor), list, ..item })
    }

    /// Creates the item of a declared resource.
    pub fn declared(resource: Resource) -> Self {
        let Resource { path, rules, identity, payload, descriptor, .. } = resource;
        let item = Self::new(path, rules, identity, Arc::unwrap_or_clone(payload));
        Self { descriptor, list: item.may_be_list(), ..item }
    }

    /// Returns whether the payload has none of the secret attributes, as the payload of a collection.
    fn may_be_list(&self) -> bool {
        !has_any(&self.payload, &self.secret_attributes)
    }

    /// Creates the items of the members of a collection, sorted by path.
    pub fn listed(members: Members, metadata: &Metadata) -> Result<Vec<Self>, Failure> {
        let items = members.entries.into_iter().map(|(path, entry)| {
            let Entry { alias, remote_id, payload, format, .. } = entry;
            let rules = metadata.rules(&path)?;
            let payload = rules.as_read(Cow::Owned(payload)).into_owned();
            let item = Self::new(path, rules, Identity { alias, remote_id }, payload);
            Ok(Self { descriptor: format.map(|format| *format), ..item })
        });
        items.collect()
    }

    /// Returns the metadata of the resource, rendered without its secrets.
    pub fn metadata(&self) -> Result<Document, Failure> {
        let mut seen = self.clone();
        seen.mask();
        let identity = Identity { alias: self.alias.clone(), remote_id: self.remote_id.clone() };
        let subject = Subject {
            path: &self.path,
            identity: &identity,
            payload: Some(&seen.payload),
            descriptor: self.descriptor.as_ref(),
        };
        Ok(self.rules.on_resource_with(subject, Some(&Unread), None)?.document())
    }

    /// Removes values that equal the defaults from the payload.
    pub fn prune_defaults(&mut self) {
        let defaults = Value::Object(self.rules.resolved().defaults.clone());
        self.payload = compact(std::mem::take(&mut self.payload), &defaults);
    }

    /// Replaces declared secrets with the placeholder, also in the id that lists show.
    pub fn mask(&mut self) {
        if self.rules.has_secret_id() && !self.remote_id.is_empty() {
            PLACEHOLDER.clone_into(&mut self.remote_id);
        }
        if self.secret {
            self.payload = Value::from(PLACEHOLDER);
            self.descriptor = Some(Descriptor::of(PayloadType::Text));
        } else {
            let masked = if self.list { mask_list } else { mask };
            self.payload = masked(std::mem::take(&mut self.payload), &self.secret_attributes);
        }
    }

    /// Returns the type of the payload: the stored one, otherwise that of metadata, otherwise a guess from the value.
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

    /// Returns the format of the answer or of the file, if it is known.
    pub fn format(&self) -> Option<&Descriptor> {
        self.descriptor.as_ref()
    }

    /// Returns the draft of its file. The format is that of the answer or of the file; without one, the file keeps that of
    /// the existing one, or is JSON.
    pub fn into_draft(self, workspace: &Workspace<'_>) -> Result<Draft, Failure> {
        let descriptor = self.format_of_file(workspace)?;
        Ok(Draft { descriptor, ..Draft::new(self.path, self.payload) })
    }

    /// Returns the format for its file; `None` keeps that of the existing file, or is JSON.
    pub fn format_of_file(&self, workspace: &Workspace<'_>) -> Result<Option<Descriptor>, Failure> {
        let existing = repository::resource_file(workspace.tree.as_ref(), &self.path)?;
        let existing = existing.map(|file| file.descriptor);
        let stated = workspace.metadata.rules(&self.path)?.payload_type();
        Ok(match (&self.descriptor, existing) {
            (Some(answer), Some(existing)) if answer.payload_type == existing.payload_type => None,
            (Some(answer), _) => Some(answer.clone()),
            // A file of text cannot hold the object that the server answers now.
            (None, Some(existing)) if existing.payload_type.class() != Class::Structured => {
                let is_structured = matches!(self.payload, Value::Object(_) | Value::Array(_));
                (is_structured && stated.is_none()).then(|| Descriptor::of(PayloadType::Json))
            }
            (None, _) => None,
        })
    }

    /// Returns the alias, the id and the path as one line each, because the server chooses them.
    fn names(&self) -> [String; 3] {
        [&self.alias, &self.remote_id, self.path.as_str()].map(|name| one_line(name).into_owned())
    }
}

/// The secrets that metadata declares for a resource of the server, by each path that it was found by.
pub struct Declared {
    path: LogicalPath,
    /// Its path by its alias, if that is another one.
    named: Option<LogicalPath>,
    secret: bool,
    attributes: Vec<Pointer>,
}

impl Declared {
    pub fn of(item: &Item) -> Self {
        // Several documents may declare one attribute.
        let attributes = item.secret_attributes.iter().cloned().collect::<BTreeSet<_>>();
        let named = item.path.collection().child(&item.alias).ok().filter(|named| *named != item.path);
        let attributes = attributes.into_iter().collect();
        Self { path: item.path.clone(), named, secret: item.secret, attributes }
    }

    /// Returns these secrets without those at these places, which are stored in any case.
    pub fn without(mut self, stored: &[Pointer]) -> Self {
        self.attributes.retain(|at| !stored.contains(at));
        self
    }

    /// Fails if metadata does not declare these secrets for the `draft`, which has them.
    pub fn check(&self, workspace: &Workspace<'_>, draft: &Draft) -> Result<(), Failure> {
        let rules = workspace.metadata.rules(&draft.path)?;
        let target = rules.resolved();
        let attributes = self.attributes.iter().filter(|at| !target.secret_attributes.contains(at));
        let attributes: Vec<Pointer> = attributes.cloned().collect();
        // The path of a singleton is its name.
        let is_own_singleton = target.singleton && draft.path == self.path;
        if target.secret || is_own_singleton || !self.secret && !any_readable(&draft.payload, &attributes) {
            return Ok(());
        }
        if draft.path == self.path {
            let Some(named) = &self.named else { return Ok(()) };
            return Err(Failure::invalid(format!(
                "metadata declares secrets of {named} that it does not declare for {}; save it as {named}",
                self.path
            )));
        }
        let file = metadata_place(&draft.path.collection());
        let fields = attributes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let field = if self.secret {
            "resource.secret".to_owned()
        } else {
            format!("{fields} in resource.secretAttributes")
        };
        Err(Failure::invalid(format!(
            "metadata declares secrets of {} that it does not declare for {}; state {field} in {file}",
            self.path, draft.path
        )))
    }

    /// Fails if `payload` has them, because the file of an editor would show them.
    pub fn check_shown(&self, path: &LogicalPath, payload: &Value) -> Result<(), Failure> {
        if !self.secret && !any_readable(payload, &self.attributes) {
            return Ok(());
        }
        Err(Failure::invalid(format!(
            "{path} has declared secrets, which the file of an editor would show; save it with \"resource save\", then edit it"
        )))
    }
}

/// Returns the rules of the entries of `payload` at `path`, if it is an array. Metadata of an entry may declare secrets
/// that metadata of the collection does not.
fn entry_rules(path: &LogicalPath, payload: &Value, metadata: &Metadata) -> Result<Vec<Arc<Rules>>, Failure> {
    let collection = metadata.rules(path)?;
    let mut found = Vec::new();
    for entry in payload.as_array().into_iter().flatten() {
        // An entry without a name cannot have its own metadata.
        let Ok(identity) = collection.identify(path, entry) else { continue };
        let Ok(at) = path.child(&identity.alias) else { continue };
        found.push(metadata.rules(&at)?);
    }
    Ok(found)
}

/// Returns the lines of a list: the alias, padded to the longest one, and the id.
pub fn lines(items: &[Item]) -> String {
    let names: Vec<[String; 3]> = items.iter().map(Item::names).collect();
    let width = names.iter().map(|[alias, ..]| alias.chars().count()).max().unwrap_or_default();
    let lines = names.into_iter().map(|[alias, id, path]| match (alias.as_str(), id.as_str()) {
        ("", _) => path,
        (_, "") => alias,
        _ => format!("{alias:width$} ({id})"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the lines of a list with the alias, the id and the path of each resource.
pub fn wide_lines(items: &[Item]) -> String {
    let title = ["ALIAS", "ID", "PATH"].map(str::to_owned);
    let rows: Vec<[String; 3]> = std::iter::once(title).chain(items.iter().map(Item::names)).collect();
    let [alias, id] =
        [0, 1].map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default());
    let lines = rows.iter().map(|row| format!("{:alias$}  {:id$}  {}", row[0], row[1], row[2]));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the paths of resources, one per line.
pub fn paths(items: &[Item]) -> String {
    output::lines(items.iter().map(|item| item.path.as_str()))
}

/// Returns the payloads of resources as an array.
pub fn payloads(items: Vec<Item>) -> Value {
    Value::Array(items.into_iter().map(|item| item.payload).collect())
}

impl Exclusions {
    pub fn apply(&self, items: &mut Vec<Item>) {
        items.retain(|item| !self.cover(&item.path, &item.alias, &item.remote_id));
    }

    /// Returns whether a resource is excluded.
    pub fn cover(&self, path: &LogicalPath, alias: &str, remote_id: &str) -> bool {
        let names = [path.as_str(), path.name(), alias, remote_id];
        self.exclude.iter().map(|name| name.trim()).any(|name| names.contains(&name))
    }

    /// Like [`Self::cover`] for an entry of a list.
    pub fn cover_entry(&self, member: &LogicalPath, entry: &Entry) -> bool {
        self.cover(member, &entry.alias, &entry.remote_id)
    }

    /// Returns an error for an empty name.
    pub fn check(&self) -> Result<(), Failure> {
        if self.exclude.iter().any(|name| name.trim().is_empty()) {
            return Err(Failure::invalid(
                "--exclude contains an empty name; write names separated by commas",
            ));
        }
        Ok(())
    }

    /// Returns whether no resource is excluded.
    pub fn is_empty(&self) -> bool {
        self.exclude.is_empty()
    }
}

/// How secrets are shown.
#[derive(Clone, Debug)]
pub enum Secrets {
    Masked,
    /// Secrets are shown, and placeholders are resolved.
    Shown(SecretReader),
}

impl Secrets {
    /// `show` is `--show-secrets`. A store is needed only if there are placeholders.
    pub fn new(show: bool, invocation: &Invocation) -> Result<Self, Failure> {
        if show { invocation.context()?.secret_reader().map(Self::Shown) } else { Ok(Self::Masked) }
    }

    pub async fn apply(&self, item: &mut Item) -> Result<(), Failure> {
        match self {
            Self::Masked => item.mask(),
            Self::Shown(reader) => {
                let payload = Arc::new(std::mem::take(&mut item.payload));
                let scope = Scope::Resource(item.path.clone());
                let resolved = reader.resolve(&scope, item.descriptor.as_ref(), payload).await?;
                item.payload = Arc::unwrap_or_clone(resolved.payload);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn item(path: &str, alias: &str, remote_id: &str) -> Item {
        let identity = Identity { alias: alias.to_owned(), remote_id: remote_id.to_owned() };
        let path = LogicalPath::parse(path).unwrap();
        let rules = Metadata::layered(Vec::new()).rules(&path).unwrap();
        Item::new(path, rules, identity, Value::Null)
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
    #[case(Value::Int(1), PayloadType::Json)]
    fn types_are_guessed_if_they_are_not_stated(#[case] payload: Value, #[case] expected: PayloadType) {
        let item = Item { payload, ..item("/a", "a", "a") };
        assert_eq!(item.descriptor().payload_type, expected);
    }
}
