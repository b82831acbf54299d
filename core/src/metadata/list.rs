//! List responses: finds the entries, and their aliases and ids.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::MetadataError;
use super::identity::{IdentityRules, WELL_KNOWN};
use super::page_members::{describes_pages, holds_links};
use crate::language::template::IdentityTemplate;
use crate::path::{LogicalPath, PathError, PathNames};
use crate::payload::{Descriptor, Object, Value};

/// Members of an object that commonly hold the entries of a list.
const USUAL: [&str; 17] = [
    "items", "data", "results", "result", "entries", "values", "value", "content", "members", "resources",
    "records", "list", "objects", "elements", "rows", "docs", "nodes",
];

/// Members that describe the list, in addition to those that describe its pages.
const DESCRIPTIVE: [&str; 15] = [
    "pageSize", "page_size", "per_page", "perPage", "size", "limit", "offset", "start", "startAt",
    "maxResults", "first", "kind", "apiVersion", "status", "success",
];

/// The remedy if the entries of a list are the names of its members.
const OF_NAMES: &str = " but a text (for names of resources, set operations.list.mode: names)";

/// One member of a collection, as returned by its list.
#[derive(Clone, Debug, Hash)]
pub struct Entry {
    /// The alias; the remote id if the entry has no alias.
    pub alias: String,
    /// The segment that addresses the entry on the server.
    pub remote_id: String,
    /// The listed payload after the transforms of list. It may be partial.
    pub payload: Value,
    /// Which of alias and remote id the payload states. The other one has the same value.
    pub states: Stated,
    /// The format of the payload, if it is that of a read, and the answer states another format than JSON.
    pub format: Option<Box<Descriptor>>,
}

/// Which of alias and id a payload states itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stated {
    /// The id template finds a value.
    pub id: bool,
    /// The alias template finds a value.
    pub alias: bool,
    /// The id is a number, not a text.
    pub number: bool,
}

/// The entries of a list response.
#[derive(Debug, Default)]
pub struct Entries {
    /// The entries that have a name, in the order of the response.
    pub named: Vec<Entry>,
    /// The number of entries without a name. A declared resource cannot be one of them.
    pub nameless: usize,
    /// How they were found.
    pub shape: Shape,
}

/// How the entries of a list response were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The response is an array, or an object that is recognized as the envelope of a list.
    #[default]
    List,
    /// The response is an object with one array among other members. It may be a resource.
    Guessed,
}

impl Entry {
    fn of_name(name: &str) -> Self {
        let states = Stated { id: true, alias: true, number: false };
        Self {
            alias: name.to_owned(),
            remote_id: name.to_owned(),
            payload: Value::Object(Object::new()),
            states,
            format: None,
        }
    }

    /// Returns the logical path of the entry in `collection`, whose segments name resources as `names`. Slashes in a
    /// literal alias add levels. A path does not show one at an end, or several in sequence, so they are errors.
    pub fn path(&self, collection: &LogicalPath, names: PathNames) -> Result<LogicalPath, MetadataError> {
        let is_lossy =
            || self.alias.starts_with('/') || self.alias.ends_with('/') || self.alias.contains("//");
        let path = match names {
            PathNames::Literal if is_lossy() => Err(PathError::NotASegment(self.alias.clone())),
            PathNames::Literal => collection.join(&self.alias),
            PathNames::PercentEncoded => {
                names.check(&self.alias).and_then(|name| collection.child(&names.encode(name)))
            }
        };
        path.map_err(|source| MetadataError::EntryPath {
            collection: collection.clone(),
            alias: self.alias.clone(),
            source,
        })
    }
}

/// Returns whether one of the well-known members of `payload` has the scalar value `name`.
pub fn is_named(payload: &Value, name: &str) -> bool {
    well_known(payload).any(|text| text == name)
}

/// Returns the member `key` as text, if it is a scalar and not blank.
fn scalar_member(payload: &Value, key: &str) -> Option<String> {
    let text = payload.get(key)?.scalar_text()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the values of the well-known members of `payload`, in the order in which they count.
pub fn well_known(payload: &Value) -> impl Iterator<Item = String> {
    WELL_KNOWN.iter().filter_map(|pointer| scalar_member(payload, &pointer[1..]))
}

/// Returns the entries of `answer`: an array, the `items` of an object, or the only array of an object. With `names`,
/// an entry can be a text, which is alias and remote id.
pub(super) fn entries(
    rules: &IdentityRules,
    collection: &LogicalPath,
    answer: Value,
    names: bool,
) -> Result<Entries, MetadataError> {
    let (items, shape) = array_in(collection, answer)?;
    let mut entries = Entries { named: Vec::with_capacity(items.len()), nameless: 0, shape };
    let (mut unnamed, mut without_name) = (None, 0);
    for (index, payload) in items.into_iter().enumerate() {
        if let Some(text) = payload.as_str().filter(|_| names) {
            match text.trim() {
                "" => entries.nameless += 1,
                name => entries.named.push(Entry::of_name(name)),
            }
            continue;
        }
        if payload.as_object().is_none() {
            let names = if payload.as_str().is_some() { OF_NAMES } else { "" };
            let reason = format!("entry {index} is not an object{names}");
            return Err(MetadataError::ListShape { collection: collection.clone(), reason });
        }
        let blank = has_blank_name(rules, &payload);
        if let Some(entry) = entry(rules, payload) {
            entries.named.push(entry);
        } else {
            entries.nameless += 1;
            if !blank {
                without_name += 1;
                unnamed = unnamed.or(Some(index));
            }
        }
    }
    // If most entries have no name, the identity rules do not fit the list.
    match unnamed.filter(|_| without_name > entries.named.len()) {
        None => Ok(entries),
        Some(index) => Err(MetadataError::AnonymousEntry {
            collection: collection.clone(),
            index,
            alias: rules.alias().source().to_owned(),
            id: rules.id().source().to_owned(),
        }),
    }
}

fn array_in(collection: &LogicalPath, answer: Value) -> Result<(Vec<Value>, Shape), MetadataError> {
    let place = place(&answer, collection.name())
        .map_err(|reason| MetadataError::ListShape { collection: collection.clone(), reason })?;
    let place = place.map(str::to_owned);
    Ok(match (answer, place) {
        (Value::Object(mut members), Some(key)) => {
            let shape = shape(collection, members.iter().map(|(name, value)| (name.as_str(), value)), &key);
            match members.remove(&key) {
                Some(Value::Array(items)) => (items, shape),
                _ => (Vec::new(), shape),
            }
        }
        (Value::Array(items), _) => (items, Shape::List),
        _ => (Vec::new(), Shape::List),
    })
}

/// Returns whether an object whose array is `key` is recognized as the envelope of a list.
fn shape<'v>(
    collection: &LogicalPath,
    mut members: impl Iterator<Item = (&'v str, &'v Value)>,
    key: &str,
) -> Shape {
    let describes = |name: &str, value: &Value| {
        DESCRIPTIVE.contains(&name) || describes_pages(name) || value.is_null() || holds_links(name, value)
    };
    let usual =
        USUAL.contains(&key) || (!collection.is_root() && collection.name().eq_ignore_ascii_case(key));
    if usual || members.all(|(name, value)| name == key || describes(name, value)) {
        Shape::List
    } else {
        Shape::Guessed
    }
}

/// Returns the number of entries of `answer` if it is a list before transforms, of the collection with the name `own`.
pub(super) fn count(answer: &Value, own: &str) -> Option<usize> {
    let array = match place(answer, own).ok()? {
        Some(key) => answer.get(key)?,
        None => answer,
    };
    array.as_array().map(<[Value]>::len)
}

/// Returns the member that holds the entries; `None` if the response itself is the array. The collection has the name `own`.
pub(super) fn place<'v>(answer: &'v Value, own: &str) -> Result<Option<&'v str>, String> {
    let members = match answer {
        Value::Array(_) => return Ok(None),
        Value::Object(members) => members,
        _ => return Err("the response is neither an array nor an object with an array".to_owned()),
    };
    match members.get("items") {
        Some(Value::Array(_)) => return Ok(Some("items")),
        Some(_) => return Err("the member \"items\" is not an array".to_owned()),
        None => {}
    }
    let arrays = members.iter().filter(|(_, member)| member.as_array().is_some());
    let (links, entries): (Vec<_>, Vec<_>) =
        arrays.partition(|(name, member)| holds_links(name, member) && !is_same_word(name, own));
    // JSON:API §7.1: resources that those in `data` refer to.
    let is_included =
        |name: &str| name == "included" && members.get("data").is_some_and(|data| data.as_array().is_some());
    let entries: Vec<_> = entries.into_iter().filter(|(name, _)| !is_included(name)).collect();
    let arrays = if entries.is_empty() { links } else { entries };
    let names: Vec<&str> = arrays.into_iter().map(|(name, _)| name.as_str()).collect();
    match names[..] {
        [] if !members.is_empty() && members.iter().all(|(name, member)| may_be_keyed(name, member)) => {
            Err("the response is an object of objects; if these are the entries, the step is {jqExpression: '[.[]]'}, or \
                 {jqExpression: '[to_entries[] | {name: .key} + .value]'} with their keys as names"
                .to_owned())
        }
        [] => Err("the response is an object without an array".to_owned()),
        [name] => Ok(Some(name)),
        _ => Err(format!("the response is an object with several arrays: {}", names.join(", "))),
    }
}

/// Whether two names differ only in case, hyphens and underscores.
fn is_same_word(name: &str, other: &str) -> bool {
    let letters = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    letters(name) == letters(other)
}

/// Whether the member may be an entry of an object whose keys are the names of resources.
fn may_be_keyed(name: &str, member: &Value) -> bool {
    member.as_object().is_some() && !USUAL.contains(&name) && !describes_pages(name) && !name.starts_with('_')
}

/// Takes the names of one entry from the alias and id templates. If metadata states neither, the first well-known
/// member is the fallback. Returns `None` if the entry has no name.
fn entry(rules: &IdentityRules, payload: Value) -> Option<Entry> {
    let id = rules.id().evaluate(&payload);
    let alias = rules.alias().evaluate(&payload);
    // A blank alias also counts as stated: the entry has no alias.
    let blank = || rules.alias().simple().and_then(|pointer| pointer.get(&payload)).is_some_and(is_blank);
    let number = matches!(
        rules.id().simple().and_then(|id| id.get(&payload)),
        Some(Value::Int(_) | Value::Unsigned(_))
    );
    let states = Stated { id: id.is_ok(), alias: alias.is_ok() || blank(), number };
    let alias = match (alias, &id) {
        (Ok(alias), _) => alias,
        (Err(_), Ok(id)) => id.clone(),
        (Err(_), Err(_)) if rules.any_explicit() => return None,
        (Err(_), Err(_)) => well_known(&payload).next()?,
    };
    let remote_id = match id {
        Ok(id) => id,
        Err(_) if rules.id().simple().is_some() => alias.clone(),
        Err(_) => return None,
    };
    Some(Entry { alias, remote_id, payload, states, format: None })
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// Returns whether the name of an entry is present but blank, as it is in default objects of some servers.
fn has_blank_name(rules: &IdentityRules, payload: &Value) -> bool {
    let stated = [rules.alias(), rules.id()].into_iter().filter_map(IdentityTemplate::simple);
    let mut named = stated.filter_map(|pointer| pointer.get(payload)).chain(
        WELL_KNOWN.iter().filter(|_| !rules.any_explicit()).filter_map(|pointer| payload.get(&pointer[1..])),
    );
    named.any(is_blank)
}

/// The entries of one list, indexed by their names.
#[derive(Debug, Default)]
pub struct Listing {
    entries: Vec<Entry>,
    ids: Index,
    aliases: Index,
    members: Index,
    without_alias: usize,
}

impl Listing {
    /// Indexes `entries`.
    pub fn new(entries: Vec<Entry>) -> Self {
        let ids = Index::new(entries.iter().map(|entry| [entry.remote_id.as_str()]));
        let aliases = Index::new(entries.iter().map(|entry| [entry.alias.as_str()]));
        let members = Index::new(entries.iter().map(|entry| well_known(&entry.payload)));
        let without_alias = entries.iter().filter(|entry| !entry.states.alias).count();
        Self { entries, ids, aliases, members, without_alias }
    }

    /// Returns the entries with this remote id.
    pub fn with_id<'l>(&'l self, id: &'l str) -> impl Iterator<Item = &'l Entry> {
        self.at(&self.ids, id).filter(move |entry| entry.remote_id == id)
    }

    /// Returns the entries with this alias.
    pub fn with_alias<'l>(&'l self, alias: &'l str) -> impl Iterator<Item = &'l Entry> {
        self.at(&self.aliases, alias).filter(move |entry| entry.alias == alias)
    }

    /// Returns the entries with this name in one of the well-known members.
    pub fn with_member<'l>(&'l self, name: &'l str) -> impl Iterator<Item = &'l Entry> {
        self.at(&self.members, name).filter(move |entry| is_named(&entry.payload, name))
    }

    fn at<'l>(&'l self, index: &'l Index, name: &str) -> impl Iterator<Item = &'l Entry> {
        index.places(name).filter_map(|place| self.entries.get(place as usize))
    }

    /// Returns whether at most one entry has this remote id, and at most one has this alias.
    pub fn is_unique(&self, remote_id: &str, alias: &str) -> bool {
        self.with_id(remote_id).nth(1).is_none() && self.with_alias(alias).nth(1).is_none()
    }

    /// Whether no other entry has the id, the alias or a usual member of `entry`, or `name`, as one of its names.
    pub fn is_alone(&self, entry: &Entry, name: &str) -> bool {
        let others = |name: &str| {
            let mut named = self.with_id(name).chain(self.with_alias(name)).chain(self.with_member(name));
            named.any(|named| !std::ptr::eq(named, entry))
        };
        ![entry.remote_id.as_str(), entry.alias.as_str(), name].into_iter().any(others)
    }

    /// The number of entries that do not state their alias.
    pub fn without_alias(&self) -> usize {
        self.without_alias
    }

    /// All entries, in the order of the response.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// Indexes of entries by the hash of a name, sorted. It does not copy the names, because a list may have a million
/// entries.
#[derive(Debug, Default)]
struct Index(Vec<(u64, u32)>);

impl Index {
    fn new<N: AsRef<str>>(names: impl Iterator<Item = impl IntoIterator<Item = N>>) -> Self {
        let mut places: Vec<(u64, u32)> = (0..)
            .zip(names)
            .flat_map(|(place, names)| names.into_iter().map(move |name| (hash(name.as_ref()), place)))
            .collect();
        places.sort_unstable();
        // An entry that has the name in several members counts once.
        places.dedup();
        places.shrink_to_fit();
        Self(places)
    }

    fn places(&self, name: &str) -> impl Iterator<Item = u32> {
        let hash = hash(name);
        let first = self.0.partition_point(|(known, _)| *known < hash);
        self.0[first..].iter().take_while(move |(known, _)| *known == hash).map(|(_, place)| *place)
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    fn parse(json: &str) -> Value {
        decode(PayloadType::Json, json.as_bytes()).unwrap()
    }

    fn collection() -> LogicalPath {
        LogicalPath::parse("/tills").unwrap()
    }

    fn found(json: &str) -> Result<Entries, MetadataError> {
        entries(&IdentityRules::default(), &collection(), parse(json), false)
    }

    #[rstest]
    #[case(r#"[{"id":1},{"id":2}]"#, &["1", "2"])]
    #[case(r#"{"items":[{"id":"a"}],"others":[]}"#, &["a"])]
    #[case(r#"{"total":2,"tills":[{"uid":8,"name":"b"},{"uid":7}]}"#, &["b", "7"])]
    #[case("[]", &[])]
    #[case(r#"[{"name":""},{"name":"amq.direct"}]"#, &["amq.direct"])]
    #[case(r#"[{"name":""}]"#, &[])]
    #[case(r#"[{"id":1},{"size":2}]"#, &["1"])]
    #[case(r#"[{"username":"ana"}]"#, &["ana"])]
    #[case(r#"{"links":[{"id":1,"rel":"a","url":"/x"}]}"#, &["1"])]
    #[case(r#"{"links":[{"name":"a","rel":"a","url":"/x"}]}"#, &["a"])]
    #[case(r#"{"users":[{"id":1}],"links":[]}"#, &["1"])]
    #[case(r#"{"data":[{"type":"till","id":"1"}],"included":[{"type":"shop","id":"9"}]}"#, &["1"])]
    #[case(r#"{"tills_links":[{"rel":"next","href":"?p=2"}],"Tills":[{"id":1}]}"#, &["1"])]
    fn shapes(#[case] json: &str, #[case] expected: &[&str]) {
        let entries = found(json).unwrap();
        let ids: Vec<&str> = entries.named.iter().map(|entry| entry.remote_id.as_str()).collect();
        assert_eq!(ids, expected);
        assert_eq!(entries.shape, Shape::List);
    }

    #[rstest]
    #[case::usual_name(r#"{"owner":"x","results":[]}"#, Shape::List)]
    #[case::collection(r#"{"owner":"x","tills":[]}"#, Shape::List)]
    #[case::alone(r#"{"things":[]}"#, Shape::List)]
    #[case::described(r#"{"things":[],"total":0,"next":null,"hasMore":false}"#, Shape::List)]
    #[case::links(r#"{"things":[],"things_links":[{"rel":"next","href":"/x"}]}"#, Shape::List)]
    #[case::links_of_a_resource(
        r#"{"id":1,"steps":[],"links":[{"rel":"self","href":"/x"}]}"#,
        Shape::Guessed
    )]
    #[case::a_resource(r#"{"id":"f1","alias":"browser","executions":[{"id":1}]}"#, Shape::Guessed)]
    fn envelopes(#[case] json: &str, #[case] expected: Shape) {
        assert_eq!(found(json).unwrap().shape, expected);
    }

    #[rstest]
    #[case("3", "neither an array")]
    #[case("{}", "without an array")]
    #[case(
        r#"{"rio":{"size":1}}"#,
        "'[to_entries[] | {name: .key} + .value]'} with their keys as names; select the"
    )]
    #[case(r#"{"data":{"size":1}}"#, "without an array")]
    #[case(r#"{"_embedded":{},"page":{}}"#, "without an array")]
    #[case(r#"{"items":{}}"#, "\"items\" is not an array")]
    #[case(r#"{"a":[],"b":[]}"#, "several arrays: a, b")]
    #[case(r#"{"a":[],"links":[{"id":1,"rel":"a","url":"/x"}]}"#, "several arrays: a, links")]
    #[case(r#"{"links":[],"tills":[{"rel":"a","url":"/x"}],"others":[]}"#, "several arrays: others, tills")]
    #[case("[1]", "entry 0 is not an object; select the entries")]
    #[case(
        r#"["a"]"#,
        "entry 0 is not an object but a text (for names of resources, set operations.list.mode: names); select"
    )]
    #[case(r#"[{"size":1},{"size":2}]"#, "entry 0 has no name")]
    fn bad_shapes(#[case] json: &str, #[case] expected: &str) {
        let error = found(json).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn names_are_found_by_kind() {
        let listing = Listing::new(
            found(r#"[{"id":7,"name":"red"},{"id":8,"name":"7"},{"name":"blue"}]"#).unwrap().named,
        );
        let ids = |entries: Vec<&Entry>| -> Vec<String> {
            entries.iter().map(|entry| entry.remote_id.clone()).collect()
        };
        assert_eq!(ids(listing.with_id("7").collect()), ["7"]);
        assert_eq!(ids(listing.with_alias("blue").collect()), ["blue"]);
        assert_eq!(ids(listing.with_member("7").collect()), ["7", "8"]);
        assert_eq!(ids(listing.with_id("9").collect()), [] as [&str; 0]);
    }
    #[rstest]
    #[case::alone(0, "7", true)]
    #[case::name_of_another(0, "blue", false)]
    #[case::id_in_a_member_of_another(1, "red", false)]
    fn an_entry_may_be_alone_with_its_names(#[case] entry: usize, #[case] name: &str, #[case] alone: bool) {
        let listing = Listing::new(
            found(r#"[{"id":7,"name":"red"},{"id":8,"name":"green"},{"id":9,"name":"8"},{"name":"blue"}]"#)
                .unwrap()
                .named,
        );
        assert_eq!(listing.is_alone(&listing.entries()[entry], name), alone);
    }
}
