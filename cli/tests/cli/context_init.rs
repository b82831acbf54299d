//! `context init`.

use crate::environment::Home;
use crate::git::{WITH_REMOTE, WITHOUT_REMOTE, exists, git};

const BUNDLE: &str = "\
apiVersion: declarest.io/v1alpha1
kind: MetadataBundle
name: till-bundle
version: 1.2.0
description: Tills.
declarest: {metadataRoot: metadata}
";

#[test]
fn a_checkout_is_made_without_contacting_its_remote() {
    let home = Home::with_catalogue(WITH_REMOTE);
    assert_eq!(home.run(&["context", "init"]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    let origin = git(&home.path("work"), &["remote", "get-url", "origin"]);
    assert!(origin.ends_with("/origin.git"), "{origin}");
    assert_eq!(home.run(&["context", "init", "dev"]).code, 0);
}

#[test]
fn a_checkout_starts_on_the_configured_branch() {
    let home = Home::with_catalogue(&WITH_REMOTE.replace("origin.git'", "origin.git', branch: live"));
    assert_eq!(home.run(&["context", "init"]).code, 0);
    assert_eq!(git(&home.path("work"), &["symbolic-ref", "HEAD"]), "refs/heads/live");
}

#[test]
fn plain_directories_are_made() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/files}}\n  \
         metadata: {baseDir: <home>/rules}\n  managedServer: {http: {url: 'https://api.test', auth: \
         {customHeaders: [{header: K, value: v}]}}}\n",
    );
    assert_eq!(home.run(&["context", "init"]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert!(home.path("files").is_dir() && home.path("rules").is_dir());
}

#[test]
fn a_bundle_is_opened() {
    let catalogue = format!("{WITHOUT_REMOTE}  metadata: {{bundle: <home>/till-bundle}}\n");
    let home = Home::with_catalogue(&catalogue);
    let missing = home.run(&["context", "init"]);
    assert_eq!(missing.code, 3, "{missing}");
    assert!(missing.stderr.contains("<home>/till-bundle"), "{missing}");
    home.write("till-bundle/bundle.yaml", &format!("{BUNDLE}deprecated: true\n"));
    home.write("till-bundle/metadata/_/metadata.yaml", "resource: {alias: /name}");
    insta::assert_snapshot!(home.run(&["context", "init"]), @r"
    exit 0
    --- stdout
    --- stderr
    [WARNING] metadata bundle till-bundle 1.2.0 is deprecated
    ");
    home.write("till-bundle/metadata/_/metadata.yaml", "resource: {unheardOf: 1}");
    let broken = home.run(&["context", "init"]);
    assert_eq!(broken.code, 2, "{broken}");
    assert!(broken.stderr.contains("_/metadata.yaml"), "{broken}");
}

#[test]
fn metadata_of_the_root_is_checked() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/_/metadata.yaml", "resource: {unheardOf: 1}");
    let run = home.run(&["context", "init"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("_/metadata.yaml"), "{run}");
    assert!(exists(&home, "work/.git"));
}
