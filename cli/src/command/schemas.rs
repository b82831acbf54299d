//! `declarest schemas`: writes JSON Schemas, with which editors complete and validate files.

use std::path::Path;

use declarest_core::metadata::document;
use serde_json::Value;

use crate::context;
use crate::error::Failure;

/// Writes one file per schema into `dir`, which is created if it is missing.
pub fn run(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(Failure::io("write", dir))?;
    let schemas: [(&str, Value); 2] =
        [("context.schema.json", context::schema()), ("metadata.schema.json", document::json_schema())];
    for (name, schema) in schemas {
        let path = dir.join(name);
        let text = serde_json::to_string_pretty(&schema)
            .map_err(|error| Failure::internal(format!("cannot write {name} as JSON: {error}")))?;
        std::fs::write(&path, text + "\n").map_err(Failure::io("write", &path))?;
    }
    Ok(())
}
