//! The command line with a context for a product.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::product::{Login, Product};
use crate::traffic::{Traffic, repeated};

/// The key of the file store.
pub const KEY: &str = "0123456789abcdef0123456789abcdef";

pub struct CommandLine {
    home: TempDir,
}

impl CommandLine {
    /// A context with the bundle of the product, its sample as repository, and the secrets of the sample.
    pub fn new(product: &Product, origin: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("repository");
        for (path, content) in product.sample() {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self::with_repository(product, origin, home, &json!({"filesystem": {"baseDir": directory}}))
    }

    /// The same with a checkout as repository.
    pub fn in_checkout(product: &Product, origin: &str, checkout: &Path) -> Self {
        let repository = json!({"git": {"local": {"baseDir": checkout}}});
        Self::with_repository(product, origin, tempfile::tempdir().unwrap(), &repository)
    }

    fn with_repository(product: &Product, origin: &str, home: TempDir, repository: &Value) -> Self {
        let at = |name: &str| home.path().join(name);
        let mut catalogue = json!({
            "currentContext": "product",
            "contexts": [{
                "name": "product",
                "repository": repository,
                "managedServer": {"http": product.context(origin)},
                "metadata": {"bundle": product.pack(&at("bundles"))},
                "secretStore": {"file": {"path": at("secrets.json"), "key": KEY}},
            }],
        });
        if let Login::Basic { user, password } = product.login {
            catalogue["credentials"] = json!([{"name": "login", "username": user, "password": password}]);
        }
        fs::write(at("contexts.yaml"), catalogue.to_string()).unwrap();
        let command_line = Self { home };
        for (key, value) in product.secrets {
            command_line.set_secret(key, value);
        }
        command_line
    }

    /// Runs `declarest`, which succeeds, and returns its standard output.
    pub fn run(&self, arguments: &[&str]) -> String {
        self.outputs(arguments).0
    }

    /// Runs `declarest`, which succeeds, and returns its standard output and standard error.
    pub fn outputs(&self, arguments: &[&str]) -> (String, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_declarest-operator")).with_file_name("declarest");
        assert!(program.is_file(), "{} does not exist; run `make test-products`", program.display());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("DECLAREST_CONTEXTS_FILE", self.home.path().join("contexts.yaml"));
        let output = command.env("DECLAREST_IGNORE_WARNINGS", "1").output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "declarest {arguments:?}\n{printed}{said}");
        (printed, said)
    }

    /// The method and the path of an operation.
    pub fn request(&self, path: &str, operation: &str) -> [String; 2] {
        let rendered = self.run(&["resource", "metadata", "render", path, operation, "-o", "json"]);
        let rendered: Value = serde_json::from_str(&rendered).unwrap();
        ["method", "path"].map(|key| rendered[key].as_str().unwrap().to_owned())
    }

    /// Uses an empty repository and this `OpenAPI` document instead of the bundle.
    pub fn use_document(&self, document: &Value) {
        let (contexts, openapi) =
            (self.home.path().join("contexts.yaml"), self.home.path().join("openapi.json"));
        let mut catalogue: Value = serde_json::from_str(&fs::read_to_string(&contexts).unwrap()).unwrap();
        let context = &mut catalogue["contexts"][0];
        context.as_object_mut().unwrap().remove("metadata");
        context["managedServer"]["http"]["openapi"] = json!(openapi);
        fs::write(contexts, catalogue.to_string()).unwrap();
        fs::write(openapi, document.to_string()).unwrap();
        fs::remove_dir_all(self.repository()).unwrap();
        fs::create_dir(self.repository()).unwrap();
    }

    pub fn set_secret(&self, key: &str, value: &str) {
        self.run(&["secret", "set", key, value]);
    }

    /// The file of the secret store.
    pub fn store(&self) -> String {
        fs::read_to_string(self.home.path().join("secrets.json")).unwrap_or_default()
    }

    fn repository(&self) -> PathBuf {
        self.home.path().join("repository")
    }
}

/// The command line applies the sample to an empty product, finds no difference, saves the members of `collections` into
/// an empty repository, finds no difference there either, and deletes what was saved.
pub async fn applies_saves_and_deletes(product: &Product, collections: &[&str], roots: &[&str]) {
    let traffic = Traffic::start(&product.origin).await;
    let shell = CommandLine::new(product, &traffic.origin);
    tokio::task::block_in_place(|| {
        let (size, updated) = (product.sample_size(), product.singletons);
        let created = format!("{} to create, {updated} to update, 0 to delete, 0 unchanged", size - updated);
        assert!(shell.run(&["plan", "/", "-r"]).contains(&created));
        traffic.take();
        shell.run(&["resource", "apply", "/", "-r"]);
        let run = traffic.take();
        let twice = repeated(&run);
        assert!(twice.is_empty(), "sent twice: {twice:?}, in {run:#?}");
        nothing_differs(&shell);

        fs::remove_dir_all(shell.repository()).unwrap();
        fs::create_dir(shell.repository()).unwrap();
        for collection in collections {
            shell.run(&["resource", "save", collection]);
        }
        nothing_differs(&shell);
        for root in roots {
            shell.run(&["resource", "delete", root, "--yes"]);
        }
    });
}

fn nothing_differs(shell: &CommandLine) {
    let differences = shell.run(&["resource", "diff", "/", "-r", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&differences).unwrap(), json!([]), "{differences}");
}
