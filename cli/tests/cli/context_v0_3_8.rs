//! Catalogues as version 0.3.8 writes them: a field that is not set is an empty string, an empty list or 0.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::environment::Home;

/// The variables that required fields of the corpus refer to. Those of optional fields are not set.
const VARIABLES: [(&str, &str); 4] =
    [("API_KEY", "k"), ("CLIENT_SECRET", "c"), ("PASSPHRASE", "p"), ("OPS_PASSWORD", "o")];

/// The catalogues of the corpus by their file names.
fn corpus() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/catalogues");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|file| {
            (file.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(file).unwrap())
        })
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

fn resolved(home: &Home, name: &str) -> Value {
    let run = home.run_with(&["context", "resolve", name, "-o", "json"], &VARIABLES, "");
    assert_eq!(run.code, 0, "{run}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn each_catalogue_of_the_corpus_is_valid_and_each_context_of_it_can_be_used() {
    for (file, catalogue) in corpus() {
        let home = Home::with_catalogue(&catalogue);
        let valid = home.run(&["context", "validate"]);
        assert_eq!(valid.code, 0, "{file}: {valid}");
        let list = home.run(&["context", "list", "-o", "text"]);
        assert_eq!(list.code, 0, "{file}: {list}");
        for name in list.stdout.lines() {
            let shown = home.run(&["context", "show", name]);
            assert_eq!(shown.code, 0, "{file}: {shown}");
            let before = resolved(&home, name);
            assert_eq!(home.run(&["context", "migrate"]).code, 0, "{file}");
            assert_eq!(resolved(&home, name), before, "{file}: {name} after migrate");
            let other = Home::new();
            assert_eq!(other.run_with(&["context", "add"], &[], &shown.stdout).code, 2, "YAML needs a type");
            let added = other.run_with(&["context", "add", "--content-type", "yaml"], &[], &shown.stdout);
            assert_eq!(added.code, 0, "{file}: {added}");
            assert_eq!(resolved(&other, name), before, "{file}: {name} in another catalogue");
        }
    }
}

#[test]
fn empty_values_are_not_set() {
    let catalogue = |file: &str| corpus().into_iter().find(|(name, _)| name == file).unwrap().1;
    let home = Home::with_catalogue(&catalogue("without-repository.yaml"));
    insta::assert_snapshot!(serde_json::to_string(&resolved(&home, "api")).unwrap(), @r#"{"managedServer":{"http":{"auth":{"customHeaders":[{"header":"X-API-Key","value":"k"}]},"requestThrottling":{"burst":0,"maxConcurrentRequests":0,"queueSize":0,"requestsPerSecond":5},"tls":{"insecureSkipVerify":false},"url":"https://api.example.com/v1"}},"metadata":{"bundle":"keycloak-bundle:0.0.1"},"name":"api","preferences":{"tier":""}}"#);
    let home = Home::with_catalogue(&catalogue("ssh.yaml"));
    insta::assert_snapshot!(serde_json::to_string(&resolved(&home, "git")).unwrap(), @r#"{"managedServer":{"http":{"auth":{"basic":{"credentialsRef":{"name":"ops"}}},"url":"https://api.example.com"}},"metadata":{"baseDir":"/srv/repo"},"name":"git","repository":{"git":{"local":{"autoInit":false,"baseDir":"/srv/repo"},"remote":{"auth":{"ssh":{"insecureIgnoreHostKey":false,"privateKeyFile":"/home/alice/.ssh/id_ed25519"}},"autoSync":true,"tls":{"insecureSkipVerify":false},"url":"git@git.example.com:acme/repo.git"}}}}"#);
    let home = Home::with_catalogue(&catalogue("oauth2.yaml"));
    insta::assert_snapshot!(serde_json::to_string(&resolved(&home, "oauth2")).unwrap(), @r#"{"managedServer":{"http":{"auth":{"oauth2":{"clientID":"shop","clientSecret":"c","grantType":"client_credentials","tokenURL":"https://id.example.com/token"}},"defaultHeaders":{"X-Empty":""},"url":"https://api.example.com"}},"metadata":{"baseDir":"/srv/repo"},"name":"oauth2","repository":{"filesystem":{"baseDir":"/srv/repo"}},"secretStore":{"file":{"kdf":{"memory":0,"threads":0,"time":0},"passphrase":"p","path":"/srv/secrets.json"}}}"#);
    let home = Home::with_catalogue(&catalogue("vault.yaml"));
    insta::assert_snapshot!(serde_json::to_string(&resolved(&home, "vault")).unwrap(), @r#"{"metadata":{"baseDir":"/srv/repo"},"name":"vault","repository":{"filesystem":{"baseDir":"/srv/repo"}},"secretStore":{"vault":{"address":"https://vault.example.com","auth":{"password":{"credentialsRef":{"name":"ops"}}},"kvVersion":0,"tls":{}}}}"#);
}

/// A context with a wrong URL, one with an unknown key, and one that works.
const MIXED: &str = "contexts:\n  - name: wrong\n    managedServer: {http: {url: 'api.test', auth: {customHeaders: \
                     [{header: K, value: canary}]}}}\n  - name: unknown\n    repository: {filesystem: {baseDir: /u}}\n    \
                     extra: 1\n  - name: dev\n    repository: {filesystem: {baseDir: <home>/repo}}\ncurrentContext: dev\n";

#[test]
fn a_context_that_is_wrong_fails_when_it_is_used_and_not_when_another_one_is() {
    let home = Home::with_catalogue(MIXED);
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio"}"#);
    let run = home.run(&["resource", "get", "/shops/rio", "--source", "repository"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "wrong\nunknown\ndev\n");
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "dev\n");
    for command in [&["context", "show", "wrong"][..], &["server", "check", "-c", "wrong"]] {
        let run = home.run(command);
        assert!(!run.stderr.contains("canary"), "{run}");
        assert_eq!(run.code, 2, "{run}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(run.stderr, @"<home>/.declarest/configs/contexts.yaml: line 3, column 28: contexts[0].managedServer.http.url: is not a URL; write it like https://api.example.com/v1");
        }
    }
    insta::assert_snapshot!(home.run(&["context", "validate"]), @r"
    exit 2
    --- stdout
    --- stderr
    <home>/.declarest/configs/contexts.yaml: line 3, column 28: contexts[0].managedServer.http.url: is not a URL; write it like https://api.example.com/v1
    ");
}

#[test]
fn changes_of_the_catalogue_keep_a_context_that_is_wrong_as_it_is() {
    let home = Home::with_catalogue(MIXED);
    let wrong = |home: &Home| {
        let run = home.run(&["context", "list", "-o", "json"]);
        let contexts: Value = serde_json::from_str(&run.stdout).unwrap();
        contexts.as_array().unwrap().iter().find(|context| context["name"] == "unknown").cloned()
    };
    let before = wrong(&home).unwrap();
    assert_eq!(before["extra"], 1);
    let input = r#"{"name": "new", "repository": {"filesystem": {"baseDir": "/n"}}}"#;
    assert_eq!(home.run_with(&["context", "add"], &[], input).code, 0);
    assert_eq!(home.run(&["context", "use", "new"]).code, 0);
    assert_eq!(home.run(&["context", "rename", "wrong", "broken"]).code, 0);
    assert_eq!(home.run(&["context", "migrate"]).code, 0);
    assert_eq!(wrong(&home).unwrap(), before);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "broken\nunknown\ndev\nnew\n");
    assert_eq!(home.run(&["context", "delete", "unknown"]).code, 0);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "broken\ndev\nnew\n");
    let faulty = r#"{"name": "other", "managedServer": {"http": {"url": "api.test"}}}"#;
    assert_eq!(home.run_with(&["context", "add"], &[], faulty).code, 2, "new contexts must be valid");
}

#[test]
fn a_catalogue_without_current_context_can_be_added() {
    let home = Home::new();
    home.write(
        "two.yaml",
        "contexts:\n- {name: a, repository: {filesystem: {baseDir: /a}}}\n- {name: b, repository: {filesystem: \
         {baseDir: /b}}}\n",
    );
    let run = home.run(&["context", "add", "-f", "two.yaml"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "a\n");
}

#[test]
fn current_reads_the_catalogue_alone() {
    // The variables of its fields are not set, its server does not exist, and the name of another context is wrong.
    let home = Home::with_catalogue(
        "contexts:\n- {name: dev, repository: {filesystem: {baseDir: '${UNSET}'}}, managedServer: {http: {url: \
         '${UNSET}', auth: {customHeaders: [{header: K, value: '${UNSET}'}]}}}}\n- {name: other}\n\
         currentContext: dev\n",
    );
    assert_eq!(
        home.run(&["context", "current", "-o", "text"]).to_string(),
        "exit 0\n--- stdout\ndev\n--- stderr\n"
    );
}
