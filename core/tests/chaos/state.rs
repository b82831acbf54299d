//! The content of a server in a form that can be compared with Git: with names in the place of ids
//! that the server gave.

use std::collections::BTreeMap;

use serde_json::Value;

/// Bodies by path. Two bodies at one path are a resource that exists twice.
pub type State = BTreeMap<String, Vec<Value>>;

/// The server assigns the ids below `/orders`. Here, names replace them.
const GIVEN_IDS: &str = "/orders/";

pub fn of(resources: Vec<(String, Value)>) -> State {
    let name = |path: &str, body: &Value| -> Option<String> {
        path.starts_with(GIVEN_IDS).then(|| body["name"].as_str().map(str::to_owned))?
    };
    let names: BTreeMap<String, String> =
        resources.iter().filter_map(|(path, body)| Some((path.clone(), name(path, body)?))).collect();
    let mut state = State::new();
    for (path, mut body) in resources {
        let (mut named, mut real) = (String::new(), String::new());
        for segment in path.trim_start_matches('/').split('/') {
            real = format!("{real}/{segment}");
            named = format!("{named}/{}", names.get(&real).map_or(segment, String::as_str));
        }
        if names.contains_key(&path)
            && let Some(members) = body.as_object_mut()
        {
            members.remove("id");
        }
        state.entry(named).or_default().push(body);
    }
    state
}

/// How `actual` departs from `expected`.
pub fn differences(expected: &State, actual: &State) -> Vec<String> {
    let mut found = Vec::new();
    for (path, bodies) in expected {
        match actual.get(path) {
            None => found.push(format!("{path} is missing")),
            Some(other) if other != bodies => {
                found.push(format!("{path} should be {bodies:?} and is {other:?}"));
            }
            Some(_) => {}
        }
    }
    let surplus = actual.keys().filter(|path| !expected.contains_key(*path));
    found.extend(surplus.map(|path| format!("{path} should be gone")));
    found
}
