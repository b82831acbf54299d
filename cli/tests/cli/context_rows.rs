//! The rows of `context check` about repositories and bundles.

use rstest::rstest;

use crate::environment::Home;
use crate::git::{WITH_REMOTE, WITHOUT_REMOTE, home_with_remote, pushed_by_another};

/// The row of a component. The server of the contexts here is never reached, so the command fails.
fn row(home: &Home, component: &str) -> String {
    let run = home.run(&["context", "check", "--ignore-warnings"]);
    let mut rows = run.stdout.lines().skip_while(|line| !line.contains(&format!("] {component} ")));
    let row = rows.next().unwrap();
    let error = rows.next().and_then(|line| line.strip_prefix("  error: "));
    error.map_or_else(|| row.to_owned(), |error| format!("{row}: {error}"))
}

fn repository(home: &Home) -> String {
    row(home, "repository").replace("repository     ", "")
}

fn commit(home: &Home, file: &str) {
    home.write(&format!("work/{file}"), "1");
    assert_eq!(home.run(&["repository", "commit", "-m", "x"]).code, 0);
}

/// No program listens on this port of this machine.
fn offline(catalogue: &str) -> String {
    catalogue.replace("https://api.test", "http://127.0.0.1:1")
}

#[test]
fn a_checkout_and_its_remote() {
    let home = home_with_remote();
    home.write(".declarest/configs/contexts.yaml", &offline(WITH_REMOTE));
    assert_eq!(repository(&home), "[WARN] git repository does not exist yet; it is created on first use");
    pushed_by_another(&home, "a", "1");
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    assert_eq!(repository(&home), "[OK] git repository is 1 commit behind its remote");
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    assert_eq!(repository(&home), "[OK] git repository is up to date with its remote");
    commit(&home, "b");
    home.write("work/c", "1");
    assert_eq!(
        repository(&home),
        "[OK] git repository is 1 commit ahead of its remote, with uncommitted changes"
    );
    pushed_by_another(&home, "d", "1");
    assert_eq!(
        repository(&home),
        "[WARN] git repository is diverged from its remote: 1 commit ahead, 1 commit behind, with uncommitted \
         changes"
    );
    std::fs::remove_dir_all(home.path("origin.git")).unwrap();
    let row = repository(&home);
    assert!(row.starts_with("[FAIL] check failed: repository file://<home>/origin.git"), "{row}");
}

#[test]
fn a_checkout_without_a_remote() {
    let home = Home::with_catalogue(&offline(WITHOUT_REMOTE));
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    assert_eq!(repository(&home), "[OK] git repository is accessible, without a remote");
}

#[test]
fn a_checkout_that_must_not_be_made() {
    let catalogue = WITHOUT_REMOTE.replace("baseDir: <home>/work", "baseDir: <home>/work, autoInit: false");
    let row = repository(&Home::with_catalogue(&offline(&catalogue)));
    assert!(row.starts_with("[FAIL] check failed: <home>/work is not a Git repository"), "{row}");
}

#[rstest]
#[case("", "[OK] metadata       metadata bundle till-bundle 1.2.0 is available")]
#[case("deprecated: true\n", "[WARN] metadata       metadata bundle till-bundle 1.2.0 is deprecated")]
fn a_bundle(#[case] setting: &str, #[case] expected: &str) {
    let home = Home::with_catalogue(&offline(&format!(
        "{WITHOUT_REMOTE}  metadata: {{bundle: <home>/till-bundle}}\n"
    )));
    assert!(row(&home, "metadata").starts_with("[FAIL]"));
    home.write(
        "till-bundle/bundle.yaml",
        &format!(
            "apiVersion: declarest.io/v1alpha1\nkind: MetadataBundle\nname: till-bundle\nversion: 1.2.0\n\
             description: Tills.\n{setting}declarest: {{metadataRoot: metadata}}\n"
        ),
    );
    home.write("till-bundle/metadata/_/metadata.yaml", "resource: {alias: /name}");
    assert_eq!(row(&home, "metadata"), expected);
}

/// The row of a store of secrets whose file is `secrets.json`.
fn store(home: &Home, settings: &str) -> String {
    let store = format!("  secretStore: {{file: {{path: <home>/secrets.json, {settings}}}}}\n");
    home.write(".declarest/configs/contexts.yaml", &offline(&format!("{WITHOUT_REMOTE}{store}")));
    row(home, "secretStore")
}

#[test]
fn an_encrypted_file() {
    let (home, key) = (Home::new(), "key: 0123456789abcdef0123456789abcdef");
    assert_eq!(
        store(&home, key),
        "[WARN] secretStore    secret file does not exist yet; it is created on first use"
    );
    assert!(!home.path("secrets.json").exists(), "the check makes nothing");
    assert_eq!(home.run(&["secret", "set", "ci", "hush"]).code, 0);
    assert_eq!(store(&home, key), "[OK] secretStore    secret file can be decrypted");
    let other = store(&home, "key: fedcba9876543210fedcba9876543210");
    assert!(
        other.starts_with(
            "[FAIL] secretStore    check failed: cannot decrypt secret file <home>/secrets.json"
        ),
        "{other}"
    );
    let missing = store(&home, "keyFile: <home>/none");
    assert!(missing.starts_with("[FAIL] secretStore ") && missing.contains("<home>/none"), "{missing}");
}

#[test]
fn a_vault_that_is_not_there() {
    let vault = "  secretStore: {vault: {address: 'http://127.0.0.1:1', auth: {token: hush}}}\n";
    let row = row(&Home::with_catalogue(&offline(&format!("{WITHOUT_REMOTE}{vault}"))), "secretStore");
    assert!(row.starts_with("[FAIL] secretStore ") && row.contains("http://127.0.0.1:1"), "{row}");
}
