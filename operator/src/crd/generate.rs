//! Writes the definitions to files, which are committed and installed into clusters.

use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const HEADER: &str = "# Generated from operator/src/crd; do not edit. Regenerate with `make manifests`.\n";

/// The definitions could not be written.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The definition cannot be encoded as YAML.
    #[error("cannot write the definition of {kind} as YAML: {source}")]
    Encode {
        /// Kind of the definition.
        kind: String,
        /// The encoder's reason.
        source: Box<serde_saphyr::SerializeError>,
    },
    /// The file or its directory cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Writes one file per kind, `declarest.io_<plural>.yaml`, into `dir`, which is created if it is missing.
pub fn write(dir: &Path) -> Result<(), GenerateError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| GenerateError::Write { path, source }
    };
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    for crd in super::all() {
        let path = dir.join(file_name(&crd));
        std::fs::write(&path, render(&crd)?).map_err(failed(&path))?;
    }
    Ok(())
}

/// Returns the name of the file of `crd`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// Returns the content of the file of `crd`.
pub fn render(crd: &CustomResourceDefinition) -> Result<String, GenerateError> {
    let body = serde_saphyr::to_string(crd).map_err(|source| GenerateError::Encode {
        kind: crd.spec.names.kind.clone(),
        source: Box::new(source),
    })?;
    Ok(format!("{HEADER}{body}"))
}
