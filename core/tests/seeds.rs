//! Runs the fuzz targets on their seeds, so that both stay valid between two runs of a fuzzer.
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a target fails where a promise of its parser does not hold"
)]

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of the fuzz targets");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn stems(directory: &str) -> BTreeSet<String> {
    let files = files(&fuzz().join(directory));
    files.iter().map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn every_target_accepts_its_seeds() {
    for (name, check) in targets::TARGETS {
        let seeds = files(&fuzz().join("seeds").join(name));
        assert!(seeds.len() > 1, "{name} has too few seeds");
        for seed in seeds {
            println!("{}", seed.display());
            check(&fs::read(&seed).expect("a seed can be read"));
        }
    }
}

/// Fuzzers rarely create long inputs. The stack of a test has the size of that of an operator thread.
#[test]
fn targets_accept_repeated_parts() {
    const PARTS: [&str; 24] = [
        "[", "{", "(", "/", "/a", "- ", "? ", "\"", "\\", "{\"a\":", "[[1],", "&a ", "a:\n ", "1", ".a",
        "not ", "*a", "[!", "{{if .a}}", "{{(", "def f: ", "a,", "\u{e9}", "x.",
    ];
    for (name, check) in targets::TARGETS {
        for part in PARTS {
            println!("{name}: {part:?}");
            check(part.repeat(16_000 / part.len()).as_bytes());
        }
    }
}

#[test]
fn every_target_is_a_program_with_seeds() {
    let targets: BTreeSet<String> = targets::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("fuzz_targets"), targets);
    assert_eq!(stems("seeds"), targets);
    assert!(stems("dictionaries").is_subset(&targets));
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    let declared = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    assert_eq!(
        declared.map(|file| file.trim_end_matches(".rs\"").to_owned()).collect::<BTreeSet<_>>(),
        targets
    );
}
