//! What one commit declares, and where the server would have it.

use std::collections::BTreeMap;
use std::sync::Arc;

use declarest_core::repository::{DirTree, Tree};
use serde_json::Value;
use tempfile::TempDir;

use crate::commit::Commit;

/// What the server holds, by path.
pub type Store = BTreeMap<String, Value>;

/// Where the server has a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this path.
    At(String),
    /// In this collection, wherever a member has this value.
    Named { collection: String, member: &'static str, name: String },
    /// At this path below another one.
    Below { parent: Box<Place>, rest: String },
}

impl Place {
    pub fn at(path: &str) -> Self {
        Self::At(path.to_owned())
    }

    pub fn named(collection: &str, member: &'static str, name: &str) -> Self {
        Self::Named { collection: collection.to_owned(), member, name: name.to_owned() }
    }

    pub fn below(&self, rest: &str) -> Self {
        Self::Below { parent: Box::new(self.clone()), rest: rest.to_owned() }
    }

    /// The paths in `store` that are this place. Several are duplicates.
    pub fn find(&self, store: &Store) -> Vec<String> {
        match self {
            Self::At(path) => store.contains_key(path).then(|| path.clone()).into_iter().collect(),
            Self::Named { collection, member, name } => {
                let prefix = format!("{collection}/");
                let direct = |path: &String| {
                    path.strip_prefix(&prefix).is_some_and(|id| !id.is_empty() && !id.contains('/'))
                };
                let members = store.iter().filter(|(path, _)| direct(path));
                let named = members.filter(|(_, body)| body[*member].as_str() == Some(name));
                named.map(|(path, _)| path.clone()).collect()
            }
            Self::Below { parent, rest } => {
                let paths = parent.find(store).into_iter().map(|parent| format!("{parent}/{rest}"));
                paths.filter(|path| store.contains_key(path)).collect()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct Declared {
    pub place: Place,
    pub body: Value,
}

/// The files of one commit.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    pub metadata: BTreeMap<String, String>,
    /// By logical path.
    pub declared: BTreeMap<String, Declared>,
}

impl Desired {
    /// States metadata for what matches `selector`.
    pub fn rules(&mut self, selector: &str, text: &str) {
        self.metadata.insert(selector.to_owned(), text.to_owned());
    }

    pub fn declare(&mut self, path: &str, place: Place, body: Value) {
        self.declared.insert(path.to_owned(), Declared { place, body });
    }

    /// Drops what is declared at `path` and below it.
    pub fn drop(&mut self, path: &str) {
        let below = format!("{path}/");
        self.declared.retain(|other, _| other != path && !other.starts_with(&below));
    }

    /// Moves a directory. What it declares keeps its places.
    pub fn rename(&mut self, from: &str, to: &str) {
        let below = format!("{from}/");
        let moved = |path: &String| match path.strip_prefix(&below) {
            Some(rest) => format!("{to}/{rest}"),
            None if path == from => to.to_owned(),
            None => path.clone(),
        };
        let declared = std::mem::take(&mut self.declared);
        self.declared = declared.into_iter().map(|(path, declared)| (moved(&path), declared)).collect();
    }

    /// The commit with this number, and the directory that it lives in.
    pub fn tree(&self, number: u32) -> (TempDir, Arc<dyn Tree>) {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: String, text: &str| {
            let file = directory.path().join(file.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        for (selector, text) in &self.metadata {
            write(format!("{selector}/_/metadata.yaml"), text);
        }
        for (path, declared) in &self.declared {
            write(format!("{path}/resource.json"), &declared.body.to_string());
        }
        let files = Arc::new(DirTree::open(directory.path()).unwrap());
        (directory, Commit::numbered(files, number, Arc::default()))
    }
}
