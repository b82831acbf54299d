//! `hack/release-binaries`, which packs the programs of a release, with a cargo that builds nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use tempfile::TempDir;

/// Replaces cargo and rustup: writes the requested program, and lists the target as installed.
const TOOLCHAIN: &str = r#"#!/usr/bin/env bash
set -eu
if [ "${0##*/}" = rustup ]; then echo "$TARGET"; exit; fi
echo "$*" >>"$CARGO_TARGET_DIR/calls"
while [ $# -gt 0 ]; do
  case $1 in --profile) profile=$2 ;; --bin) program=$2 ;; --target) target=$2 ;; esac
  shift
done
mkdir -p "$CARGO_TARGET_DIR/$target/$profile"
echo "$program" >"$CARGO_TARGET_DIR/$target/$profile/$program"
"#;

struct Release {
    directory: TempDir,
}

impl Release {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for tool in ["cargo", "rustup"] {
            let path = directory.path().join(tool);
            fs::write(&path, TOOLCHAIN).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, tag: &str, target: &str, programs: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hack/release-binaries");
        let tools = format!("{}:{}", self.directory.path().display(), std::env::var("PATH").unwrap());
        Command::new(script)
            .args([tag, target])
            .args(programs)
            .env("PATH", tools)
            .env("TARGET", target)
            .env("CARGO_TARGET_DIR", self.directory.path())
            .env("DIST", self.path("dist"))
            .output()
            .unwrap()
    }
}

fn tag() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

#[rstest]
#[case("x86_64-unknown-linux-musl", "linux_amd64")]
#[case("aarch64-unknown-linux-musl", "linux_arm64")]
#[case("aarch64-apple-darwin", "darwin_arm64")]
fn each_program_is_packed_with_the_licence(#[case] target: &str, #[case] platform: &str) {
    let release = Release::new();
    let output = release.run(&tag(), target, &["declarest", "declarest-operator"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for program in ["declarest", "declarest-operator"] {
        let name = format!("{program}_{}_{platform}", env!("CARGO_PKG_VERSION"));
        let archive = release.path(&format!("dist/{name}.tar.gz"));
        let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(release.path("")).status();
        assert!(unpacked.unwrap().success());
        assert_eq!(fs::read_to_string(release.path(&name).join(program)).unwrap(), format!("{program}\n"));
        assert!(release.path(&name).join("LICENSE").exists());
    }
    let calls = fs::read_to_string(release.path("calls")).unwrap();
    let expected = [
        format!("build --locked --profile cli -p declarest-cli --bin declarest --target {target}"),
        format!(
            "build --locked --profile release -p declarest-operator --bin declarest-operator --target {target}"
        ),
    ];
    assert_eq!(calls.lines().collect::<Vec<_>>(), expected);
}

#[rstest]
#[case("v9.9.9", "x86_64-unknown-linux-musl", "declarest", "the version in Cargo.toml is not 9.9.9")]
#[case("", "riscv64-unknown-linux-musl", "declarest", "unknown architecture: riscv64-unknown-linux-musl")]
#[case("", "x86_64-unknown-freebsd", "declarest", "unknown operating system: x86_64-unknown-freebsd")]
#[case("", "x86_64-unknown-linux-musl", "other", "unknown program: other")]
fn mistakes_are_reported(
    #[case] version: &str,
    #[case] target: &str,
    #[case] program: &str,
    #[case] text: &str,
) {
    let release = Release::new();
    let version = if version.is_empty() { tag() } else { version.to_owned() };
    let output = release.run(&version, target, &[program]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains(text), "{error}");
    assert!(!release.path("dist").join("SHA256SUMS").exists());
}
