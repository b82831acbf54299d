//! The modules of the command line tool are layers: they import in one direction.

#[path = "../../core/tests/support/layers/mod.rs"]
mod layers;

use std::path::Path;

#[test]
fn modules_import_in_one_direction() {
    assert_eq!(layers::violations(Path::new("src/main.rs")), Ok(Vec::new()));
}
