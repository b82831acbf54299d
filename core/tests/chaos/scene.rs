//! A repository, and a server that has some of it: as it should be, otherwise, or what is no longer declared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::repository::{ApplyTarget, DirTree, Tree};
use declarest_core::sync::{Candidate, PRUNE, Report, Selection};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::commit::Commit;
use crate::rest_server::{Config, RestServer};
use crate::state::{self, State};

/// Credentials that the server asks for.
pub const USER: &str = "ops";
pub const PASSWORD: &str = "correct horse";

/// Resources that one unit declares.
const UNIT: usize = 5;

pub struct Scene {
    pub server: RestServer,
    directory: TempDir,
    expected: State,
    declared: usize,
    /// What is to be deleted, and its payload as last declared.
    doomed: Vec<Candidate>,
    /// Where the server has it.
    doomed_at: BTreeSet<String>,
    ids: usize,
}

impl Scene {
    /// A scene that declares about as many resources. Units differ in what the server has of them already.
    pub fn new(resources: usize) -> Self {
        let server = RestServer::start(Config {
            collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned(), "/plans".to_owned()],
            server_ids: vec!["/orders".to_owned(), "/orders/*/lines".to_owned()],
            log_bodies: true,
            ..Config::default()
        });
        let mut scene = Self {
            server: server.unwrap(),
            directory: tempfile::tempdir().unwrap(),
            expected: State::new(),
            declared: 0,
            doomed: Vec::new(),
            doomed_at: BTreeSet::new(),
            ids: 0,
        };
        scene.server.require_basic(USER, PASSWORD);
        // The lists are whole, also those that have as many entries as pages usually have.
        let metadata = "resource: {id: /id, alias: /name}\noperations: {list: {pagination: {style: none}}}\n";
        for collection in ["orders", "orders/_/lines"] {
            scene.write(&format!("{collection}/_/metadata.yaml"), metadata);
        }
        for path in ["/shops/foreign", "/shops/foreign/tills/t", "/plans/foreign", "/elsewhere/x"] {
            scene.server.put_by_hand(path, json!({"id": path.rsplit('/').next(), "foreign": true}));
        }
        scene.server.put_by_hand("/orders/f-1", json!({"id": "f-1", "name": "foreign"}));
        for unit in 0..resources / UNIT {
            scene.unit(unit);
        }
        // Resources that are not declared and not to be deleted stay as they are.
        for (path, bodies) in state::of(scene.server.resources()) {
            let doomed = scene.doomed.iter().any(|candidate| candidate.path.as_str() == path);
            if !doomed {
                scene.expected.entry(path).or_insert(bodies);
            }
        }
        scene
    }

    fn unit(&mut self, unit: usize) {
        let (shop, order) = (format!("s{unit}"), format!("o{unit}"));
        self.declare(&format!("/shops/{shop}"), json!({"id": shop, "tier": "gold", "unit": unit}));
        self.declare(&format!("/shops/{shop}/tills/t"), json!({"id": "t", "open": true}));
        self.declare(&format!("/orders/{order}"), json!({"name": order, "size": unit}));
        self.declare(&format!("/orders/{order}/lines/l"), json!({"name": "l", "item": unit}));
        self.declare(&format!("/plans/p{unit}"), json!({"id": format!("p{unit}"), "text": "x".repeat(unit)}));
        match unit % 4 {
            1 => {
                self.has(&format!("/shops/{shop}"), json!({"id": shop, "tier": "gold", "unit": unit}));
                self.has(&format!("/shops/{shop}/tills/t"), json!({"id": "t", "open": true}));
                self.had(&format!("/shops/{shop}/tills/gone"), &json!({"id": "gone"}));
                self.had_order(&format!("gone{unit}"));
            }
            2 => {
                self.has(&format!("/shops/{shop}"), json!({"id": shop, "tier": "free", "unit": unit}));
                self.has(&format!("/plans/p{unit}"), json!({"id": format!("p{unit}"), "text": "drifted"}));
                let at = self.has_order(&order, &json!({"name": order, "size": 999}));
                self.had_line(&order, &at);
            }
            3 => {
                self.has(
                    &format!("/plans/p{unit}"),
                    json!({"id": format!("p{unit}"), "text": "x".repeat(unit)}),
                );
                let at = self.has_order(&order, &json!({"name": order, "size": unit}));
                self.had_line(&order, &at);
                self.had(&format!("/shops/gone{unit}"), &json!({"id": format!("gone{unit}")}));
                self.had(&format!("/shops/gone{unit}/tills/t"), &json!({"id": "t"}));
            }
            _ => self.had(&format!("/plans/gone{unit}"), &json!({"id": format!("gone{unit}")})),
        }
    }

    fn write(&self, file: &str, content: &str) {
        let file = self.directory.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    fn declare(&mut self, path: &str, body: Value) {
        self.write(&format!("{}/resource.json", path.trim_start_matches('/')), &body.to_string());
        self.declared += 1;
        self.expected.insert(path.to_owned(), vec![body]);
    }

    fn has(&self, path: &str, body: Value) {
        self.server.put_by_hand(path, body);
    }

    fn has_order(&mut self, name: &str, body: &Value) -> String {
        self.ids += 1;
        let id = format!("old-{}", self.ids);
        let mut body = body.clone();
        body["id"] = json!(id);
        body["name"] = json!(name);
        let path = format!("/orders/{id}");
        self.server.put_by_hand(&path, body);
        path
    }

    /// The server has what was declared once.
    fn had(&mut self, path: &str, body: &Value) {
        self.server.put_by_hand(path, body.clone());
        self.doom(path, path.to_owned(), body);
    }

    fn had_order(&mut self, name: &str) {
        let body = json!({"name": name, "size": 0});
        let at = self.has_order(name, &body);
        self.doom(&format!("/orders/{name}"), at, &body);
    }

    /// The server has a line of an order, below the id that it gave to that.
    fn had_line(&mut self, order: &str, at: &str) {
        let body = json!({"name": "gone"});
        let at = format!("{at}/lines/old");
        self.server.put_by_hand(&at, json!({"id": "old", "name": "gone"}));
        self.doom(&format!("/orders/{order}/lines/gone"), at, &body);
    }

    fn doom(&mut self, path: &str, at: String, body: &Value) {
        let payload = decode(PayloadType::Json, body.to_string().as_bytes()).unwrap();
        self.doomed.push(Candidate { path: LogicalPath::parse(path).unwrap(), payload, declared_in: None });
        self.doomed_at.insert(at);
    }

    pub fn tree(&self) -> (Arc<dyn Tree>, Arc<Metadata>) {
        let files = Arc::new(DirTree::open(self.directory.path()).unwrap());
        let tree = Commit::numbered(files, 1, Arc::default());
        let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
        (tree, metadata)
    }

    /// All that is declared.
    pub fn declared(tree: &dyn Tree) -> Selection {
        Selection::full(tree, &LogicalPath::root(), true).unwrap()
    }

    /// All that is declared, and all that is no longer declared.
    pub fn everything(&self, tree: &dyn Tree) -> Selection {
        let prune = self.doomed.clone();
        Selection { prune, ..Self::declared(tree) }
    }

    /// What is left to do after `report`: what failed, as the operator selects it.
    pub fn failed(&self, tree: &dyn Tree, report: &Report) -> Selection {
        let (prunes, applies): (Vec<_>, Vec<_>) =
            report.failures.iter().partition(|failure| failure.operation == PRUNE);
        let target = |path: &LogicalPath| ApplyTarget { path: path.clone(), recursive: false };
        let targets: Vec<ApplyTarget> = applies.iter().map(|failure| target(&failure.path)).collect();
        let prunes: BTreeSet<&LogicalPath> = prunes.iter().map(|failure| &failure.path).collect();
        let again = self.doomed.iter().filter(|candidate| prunes.contains(&candidate.path));
        Selection {
            prune: again.cloned().collect(),
            declared: Some(self.declared),
            ..Selection::targets(tree, &targets).unwrap()
        }
    }

    /// Whatever is not as it should be in the end.
    pub fn violations(&self) -> Vec<String> {
        let mut found = state::differences(&self.expected, &state::of(self.server.resources()));
        let mut created: BTreeMap<String, usize> = BTreeMap::new();
        for request in self.server.writes() {
            let done = request.status.is_some_and(|status| (200..300).contains(&status));
            let body = request.body.unwrap_or_default();
            match request.method.as_str() {
                "POST" if done => {
                    let name = body["id"].as_str().or(body["name"].as_str()).unwrap_or_default();
                    *created.entry(format!("{}/{name}", request.path)).or_default() += 1;
                }
                "DELETE" if done && !self.doomed_at.contains(&request.path) => {
                    found.push(format!("{} was deleted", request.path));
                }
                _ => {}
            }
        }
        let twice = created.into_iter().filter(|(_, times)| *times > 1);
        found.extend(twice.map(|(path, times)| format!("{path} was created {times} times")));
        found
    }

    /// Resources that exist twice.
    pub fn duplicates(&self) -> usize {
        self.server.duplicates().len()
    }

    /// Resources that exist and should not.
    pub fn lost_deletes(&self) -> usize {
        self.doomed_at.iter().filter(|path| self.server.get(path).is_some()).count()
    }
}
