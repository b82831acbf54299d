//! The manual that `make generate` writes.

use std::fs;

use crate::environment::Home;

#[test]
fn man_pages_describe_every_command() {
    let home = Home::new();
    let run = home.run(&["reference", "--man", "man"]);
    assert_eq!(run.to_string(), "exit 0\n--- stdout\n--- stderr\n");
    let page = home.read("man/declarest-resource-save.1");
    assert!(
        page.contains("Save a resource from the server") && page.contains("Overwrite existing resources")
    );
    assert!(page.contains(".TH declarest-resource-save 1"), "{page}");
    assert!(!home.path("man/declarest-schemas.1").exists(), "hidden commands have no page");
    assert!(fs::read_dir(home.path("man")).unwrap().count() > 60);
}

#[test]
fn the_committed_reference_is_that_of_the_commands() {
    let home = Home::new();
    let run = home.run(&["reference", "--markdown", "reference.md"]);
    assert_eq!(run.code, 0, "{run}");
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli/reference.md");
    assert!(home.read("reference.md") == fs::read_to_string(committed).unwrap(), "run: make generate");
}

#[test]
fn a_file_that_cannot_be_written() {
    let run = Home::new().run(&["reference", "--markdown", "none/reference.md"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.starts_with("cannot write none/reference.md: "), "{run}");
}
