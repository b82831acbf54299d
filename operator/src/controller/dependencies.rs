//! The index of Secrets and claims to the objects that use them. A change of a Secret or claim triggers a round of
//! these objects.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;

use super::kind::Key;

/// A Secret or claim that an object uses, in the namespace of the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependency {
    Secret(String),
    Claim(String),
}

/// The index of dependencies.
#[derive(Debug, Default)]
pub struct Dependencies {
    entries: Mutex<HashMap<(&'static str, Key), BTreeSet<Dependency>>>,
}

impl Dependencies {
    /// Replaces the dependencies of an object of `kind`.
    pub fn set(&self, kind: &'static str, user: &Key, dependencies: BTreeSet<Dependency>) {
        let mut entries = self.entries.lock();
        if dependencies.is_empty() {
            entries.remove(&(kind, user.clone()));
        } else {
            entries.insert((kind, user.clone()), dependencies);
        }
    }

    /// Returns the objects of `kind` in `namespace` that use `dependency`.
    pub fn users(&self, kind: &'static str, namespace: &str, dependency: &Dependency) -> Vec<Key> {
        let entries = self.entries.lock();
        let users = entries.iter().filter(|((user_kind, user), uses)| {
            *user_kind == kind && user.namespace == namespace && uses.contains(dependency)
        });
        users.map(|((_, user), _)| user.clone()).collect()
    }

    /// Returns the names of the Secrets that an object uses.
    pub fn secrets(&self, kind: &'static str, user: &Key) -> BTreeSet<String> {
        let entries = self.entries.lock();
        let dependencies = entries.get(&(kind, user.clone())).into_iter().flatten();
        dependencies
            .filter_map(|dependency| match dependency {
                Dependency::Secret(name) => Some(name.clone()),
                Dependency::Claim(_) => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str) -> Dependency {
        Dependency::Secret(name.to_owned())
    }

    #[test]
    fn users_are_found_by_kind_namespace_and_dependency() {
        let index = Dependencies::default();
        let (a, b, other) = (Key::new("team", "a"), Key::new("team", "b"), Key::new("other", "a"));
        index.set("ManagedServer", &a, BTreeSet::from([secret("s"), Dependency::Claim("c".to_owned())]));
        index.set("ManagedServer", &other, BTreeSet::from([secret("s")]));
        index.set("SecretStore", &b, BTreeSet::from([secret("s")]));
        assert_eq!(index.users("ManagedServer", "team", &secret("s")), std::slice::from_ref(&a));
        assert_eq!(index.users("ManagedServer", "team", &secret("c")), []);
        assert_eq!(index.secrets("ManagedServer", &a), BTreeSet::from(["s".to_owned()]));
    }

    #[test]
    fn unused_dependencies_are_removed() {
        let index = Dependencies::default();
        let key = Key::new("team", "a");
        index.set("ManagedServer", &key, BTreeSet::from([secret("old")]));
        index.set("ManagedServer", &key, BTreeSet::from([secret("new")]));
        assert_eq!(index.users("ManagedServer", "team", &secret("old")), []);
        index.set("ManagedServer", &key, BTreeSet::new());
        assert_eq!(index.users("ManagedServer", "team", &secret("new")), []);
    }
}
