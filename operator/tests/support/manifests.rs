//! The manifests of kustomize and Helm, rendered.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::cluster::OPERATOR_NAMESPACE;

/// Kind, namespace and name of an object.
pub type Id = (String, String, String);

/// A kustomization in a directory of its own, as users write it.
pub struct Kustomization(TempDir);

impl Kustomization {
    /// Uses directories of `config/`; `more` is added to its file.
    pub fn new(resources: &[&str], components: &[&str], more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths = |names: &[&str]| {
            let path = |name: &&str| format!("  - {}", config_from(directory.path()).join(name).display());
            names.iter().map(path).collect::<Vec<_>>().join("\n") + "\n"
        };
        let components = match components {
            [] => String::new(),
            names => format!("components:\n{}", paths(names)),
        };
        let text = format!("resources:\n{}{components}{more}", paths(resources));
        fs::write(directory.path().join("kustomization.yaml"), text).unwrap();
        Self(directory)
    }

    /// Adds the rights of the overlay `namespaced` in a namespace.
    pub fn with_namespace(self, namespace: &str) -> Self {
        self.with_roles(namespace, &["namespace"])
    }

    /// Adds directories of the overlay `namespaced` in a namespace.
    pub fn with_roles(self, namespace: &str, directories: &[&str]) -> Self {
        let directory = self.0.path().join(namespace);
        fs::create_dir(&directory).unwrap();
        let roles = config_from(&directory).join("overlays/namespaced");
        let path = |name: &&str| format!("  - {}\n", roles.join(name).display());
        let resources: String = directories.iter().map(path).collect();
        let text = format!("namespace: {namespace}\nresources:\n{resources}");
        fs::write(directory.join("kustomization.yaml"), text).unwrap();
        let file = self.0.path().join("kustomization.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let added = text.replacen("resources:\n", &format!("resources:\n  - {namespace}\n"), 1);
        fs::write(file, added).unwrap();
        self
    }

    pub fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    pub fn render(&self) -> String {
        output(Command::new(kubectl()).args(["kustomize", self.path()])).unwrap()
    }
}

/// The patch that lists the namespaces of the overlay `namespaced`.
pub fn watch(namespaces: &str) -> String {
    format!(
        r#"
patches:
  - patch: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {{name: declarest-operator-controller-manager, namespace: declarest-system}}
      spec:
        template:
          spec:
            containers:
              - name: manager
                env: [{{name: DECLAREST_OPERATOR_WATCH_NAMESPACES, value: "{namespaces}"}}]
"#
    )
}

/// Renders the chart; `args` are further arguments of `helm template`.
///
/// # Errors
/// What helm printed.
pub fn chart(args: &[&str]) -> Result<String, String> {
    let helm = given("HELM");
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/declarest-operator");
    let image = "image.repository=declarest-operator,image.tag=latest";
    let mut command = Command::new(helm);
    command.args(["template", "declarest-operator"]).arg(chart);
    output(command.args(["--namespace", OPERATOR_NAMESPACE, "--set", image]).args(args))
}

/// Returns the objects of a rendering.
pub fn objects(rendered: &str) -> BTreeMap<Id, Value> {
    let documents = rendered.split("\n---\n").map(|text| text.trim_start_matches("---\n"));
    let mut objects = BTreeMap::new();
    for text in documents.filter(|text| text.lines().any(|line| line.starts_with("kind:"))) {
        let object: Value = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        let id = (field(&object["kind"]), field(&meta["namespace"]), field(&meta["name"]));
        let before = objects.insert(id.clone(), object);
        assert!(before.is_none(), "{id:?} is rendered twice");
    }
    objects
}

pub fn kubectl() -> PathBuf {
    given("KUBEBUILDER_ASSETS").join("kubectl")
}

fn given(variable: &str) -> PathBuf {
    let value =
        env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set; run `make test-cluster`"));
    PathBuf::from(value)
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the path of `config/` from another directory: kustomize accepts relative paths only.
fn config_from(directory: &Path) -> PathBuf {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").canonicalize().unwrap();
    let up = directory.canonicalize().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
    up.join(config.strip_prefix("/").unwrap())
}
