//! List answers: finding the entries, and among them the one that is meant.

use std::collections::HashMap;

use super::MetadataError;
use super::identity::{IdentityRules, scalar_member};
use crate::path::LogicalPath;
use crate::payload::Value;

/// Members that identify an entry when the identity rules do not, in order.
pub(super) const WELL_KNOWN: [&str; 7] = ["/id", "/clientId", "/name", "/alias", "/key", "/uuid", "/uid"];

/// One member of a collection, as its list shows it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name people use for it.
    pub alias: String,
    /// The segment that addresses it on the server.
    pub remote_id: String,
    /// The listed representation after the transforms of list, possibly partial.
    pub payload: Value,
}

impl Entry {
    /// Where the entry stands in `collection`; slashes in its alias add levels.
    pub fn path(&self, collection: &LogicalPath) -> Result<LogicalPath, MetadataError> {
        collection.join(&self.alias).map_err(|source| MetadataError::EntryPath {
            collection: collection.clone(),
            alias: self.alias.clone(),
            source,
        })
    }
}

/// Whether a member of `payload` that commonly names resources has the scalar value `name`.
pub fn is_named(payload: &Value, name: &str) -> bool {
    WELL_KNOWN.iter().any(|pointer| scalar_member(payload, &pointer[1..]).is_some_and(|text| text == name))
}

/// The entries of `answer`: an array; or an object's `items`; or an object's only array.
pub(super) fn entries(
    rules: &IdentityRules,
    collection: &LogicalPath,
    answer: Value,
) -> Result<Vec<Entry>, MetadataError> {
    let items = array_in(collection, answer)?;
    let items = items.into_iter().enumerate();
    items.map(|(index, payload)| entry(rules, collection, index, payload)).collect()
}

fn array_in(collection: &LogicalPath, answer: Value) -> Result<Vec<Value>, MetadataError> {
    let place = place(&answer)
        .map_err(|reason| MetadataError::ListShape { collection: collection.clone(), reason })?;
    let place = place.map(str::to_owned);
    Ok(match (answer, place) {
        (Value::Object(mut members), Some(key)) => match members.remove(&key) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        },
        (Value::Array(items), _) => items,
        _ => Vec::new(),
    })
}

/// How many entries `answer` has, if it is a list as it stands.
pub(super) fn count(answer: &Value) -> Option<usize> {
    let array = match place(answer).ok()? {
        Some(key) => answer.get(key)?,
        None => answer,
    };
    array.as_array().map(<[Value]>::len)
}

/// The member that holds the entries; `None` if the answer itself does.
fn place(answer: &Value) -> Result<Option<&str>, String> {
    let members = match answer {
        Value::Array(_) => return Ok(None),
        Value::Object(members) => members,
        _ => return Err("the answer is neither an array nor an object with an array".to_owned()),
    };
    match members.get("items") {
        Some(Value::Array(_)) => return Ok(Some("items")),
        Some(_) => return Err("the member \"items\" is not an array".to_owned()),
        None => {}
    }
    let arrays = members.iter().filter(|(_, member)| member.as_array().is_some());
    let names: Vec<&str> = arrays.map(|(name, _)| name.as_str()).collect();
    match names[..] {
        [] => Err("the answer is an object without an array".to_owned()),
        [name] => Ok(Some(name)),
        _ => Err(format!("the answer is an object with several arrays: {}", names.join(", "))),
    }
}

/// Names one entry: by the alias template, else by the id template, else, where metadata states neither, by
/// the first of the well-known members.
fn entry(
    rules: &IdentityRules,
    collection: &LogicalPath,
    index: usize,
    payload: Value,
) -> Result<Entry, MetadataError> {
    if payload.as_object().is_none() {
        let reason = format!("entry {index} is not an object");
        return Err(MetadataError::ListShape { collection: collection.clone(), reason });
    }
    let id = rules.id().evaluate(&payload);
    let known = || WELL_KNOWN.iter().find_map(|pointer| scalar_member(&payload, &pointer[1..]));
    let alias = match (rules.alias().evaluate(&payload), &id) {
        (Ok(alias), _) => Some(alias),
        (Err(_), Ok(id)) => Some(id.clone()),
        (Err(_), Err(_)) if rules.any_explicit() => None,
        (Err(_), Err(_)) => known(),
    };
    let anonymous = || MetadataError::AnonymousEntry {
        collection: collection.clone(),
        index,
        alias: rules.alias().source().to_owned(),
        id: rules.id().source().to_owned(),
    };
    let alias = alias.ok_or_else(anonymous)?;
    let remote_id = match id {
        Ok(id) => id,
        Err(_) if rules.id().simple().is_some() => alias.clone(),
        Err(_) => return Err(anonymous()),
    };
    Ok(Entry { alias, remote_id, payload })
}

/// The entries of one list, found by the names they answer to.
#[derive(Debug, Default)]
pub struct Listing {
    entries: Vec<Entry>,
    /// By remote id and alias.
    by_identity: HashMap<String, Vec<usize>>,
    /// By the well-known members.
    by_name: HashMap<String, Vec<usize>>,
}

impl Listing {
    /// Indexes `entries`.
    pub fn new(entries: Vec<Entry>) -> Self {
        let (mut by_identity, mut by_name) = (HashMap::new(), HashMap::new());
        for (place, entry) in entries.iter().enumerate() {
            add(&mut by_identity, entry.remote_id.clone(), place);
            add(&mut by_identity, entry.alias.clone(), place);
            for name in WELL_KNOWN.iter().filter_map(|pointer| scalar_member(&entry.payload, &pointer[1..])) {
                add(&mut by_name, name, place);
            }
        }
        Self { entries, by_identity, by_name }
    }

    /// The entry that `wanted` names: by its remote id or alias, else by one of the well-known members.
    /// Several are a conflict, because guessing would overwrite somebody else's resource.
    pub fn find(&self, path: &LogicalPath, wanted: &str) -> Result<Option<&Entry>, MetadataError> {
        let places = self.by_identity.get(wanted).or_else(|| self.by_name.get(wanted));
        match places.map_or(&[][..], Vec::as_slice) {
            [] => Ok(None),
            [place] => Ok(self.entries.get(*place)),
            several => Err(MetadataError::Ambiguous {
                path: path.clone(),
                wanted: wanted.to_owned(),
                count: several.len(),
            }),
        }
    }
}

impl Listing {
    /// Whether at most one entry has this remote id and at most one this alias.
    pub fn is_unique(&self, remote_id: &str, alias: &str) -> bool {
        let count = |name: &str| self.by_identity.get(name).map_or(0, Vec::len);
        count(remote_id) <= 1 && count(alias) <= 1
    }

    /// All entries, in the order of the answer.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// One entry may carry a name in several members; it counts once.
fn add(index: &mut HashMap<String, Vec<usize>>, name: String, place: usize) {
    let places = index.entry(name).or_default();
    if places.last() != Some(&place) {
        places.push(place);
    }
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

    #[rstest]
    #[case(r#"[{"id":1},{"id":2}]"#, &["1", "2"])]
    #[case(r#"{"items":[{"id":"a"}],"others":[]}"#, &["a"])]
    #[case(r#"{"total":2,"tills":[{"uid":8,"name":"b"},{"uid":7}]}"#, &["b", "7"])]
    #[case("[]", &[])]
    fn shapes(#[case] json: &str, #[case] expected: &[&str]) {
        let entries = entries(&IdentityRules::default(), &collection(), parse(json)).unwrap();
        let ids: Vec<&str> = entries.iter().map(|entry| entry.remote_id.as_str()).collect();
        assert_eq!(ids, expected);
    }

    #[rstest]
    #[case("3", "neither an array")]
    #[case("{}", "without an array")]
    #[case(r#"{"items":{}}"#, "\"items\" is not an array")]
    #[case(r#"{"a":[],"b":[]}"#, "several arrays: a, b")]
    #[case("[1]", "entry 0 is not an object")]
    #[case(r#"[{"id":1},{"size":2}]"#, "entry 1 has no name")]
    fn bad_shapes(#[case] json: &str, #[case] expected: &str) {
        let error = entries(&IdentityRules::default(), &collection(), parse(json)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[rstest]
    #[case("7", Some("7"))]
    #[case("blue", Some("9"))]
    #[case("none", None)]
    fn matches_by_id_before_names(#[case] wanted: &str, #[case] expected: Option<&str>) {
        let list = parse(r#"[{"id":7,"name":"red"},{"id":8,"name":"7"},{"id":9,"name":"blue"}]"#);
        let listing = Listing::new(entries(&IdentityRules::default(), &collection(), list).unwrap());
        let found = listing.find(&collection(), wanted).unwrap();
        assert_eq!(found.map(|entry| entry.remote_id.as_str()), expected);
    }

    #[test]
    fn two_of_a_name_are_ambiguous() {
        let entries = entries(
            &IdentityRules::default(),
            &collection(),
            parse(r#"[{"id":1,"name":"x"},{"id":2,"name":"x"}]"#),
        )
        .unwrap();
        let listing = Listing::new(entries);
        assert!(matches!(listing.find(&collection(), "x"), Err(MetadataError::Ambiguous { count: 2, .. })));
    }
}
