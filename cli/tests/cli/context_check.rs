//! `context check`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use rstest::rstest;

use crate::environment::Home;

/// Answers the first request with `status`, and returns the head of the request.
fn server(status: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        write!(connection, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    (url, answering)
}

fn catalogue(url: &str) -> String {
    format!(
        "currentContext: dev\ncredentials: [{{name: ops, username: alice, password: {{prompt: true}}}}]\ncontexts:\n\
         - name: dev\n  repository: {{filesystem: {{baseDir: <home>}}}}\n  managedServer: {{http: {{url: '{url}/api', \
         healthCheck: /up, auth: {{basic: {{credentialsRef: {{name: ops}}}}}}}}}}\n"
    )
}

const PASSWORD: (&str, &str) = ("DECLAREST_CONTEXT_CREDENTIAL_OPS_PASSWORD", "s3cret");

#[test]
fn all_is_well() {
    let (url, answering) = server("204 No Content");
    let home = Home::with_catalogue(&catalogue(&url));
    let run = home.run_with(&["context", "check"], &[PASSWORD], "");
    let head = answering.join().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("get /api/up http/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: basic ywxpy2u6cznjcmv0"), "{head}");
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    Config check for context "dev"
    --------------------------------------------------------------------------------
    [OK] context        settings are valid
    [OK] repository     filesystem repository is accessible
    [OK] metadata       metadata is in the repository
    [OK] managedServer  managed server responds
    [SKIP] secretStore    not configured
    --------------------------------------------------------------------------------
    Result: PASS (ok=4 warn=0 fail=0 skip=1)
    --- stderr
    "#);
}

#[test]
fn json() {
    let (url, answering) = server("200 OK");
    let home = Home::with_catalogue(&catalogue(&url));
    let run = home.run_with(&["context", "check", "-o", "json", "--ignore-warnings"], &[PASSWORD], "");
    answering.join().unwrap();
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    {
      "context": "dev",
      "passed": true,
      "summary": {
        "ok": 4,
        "warn": 0,
        "fail": 0,
        "skip": 1
      },
      "components": [
        {
          "component": "context",
          "status": "ok",
          "details": "settings are valid"
        },
        {
          "component": "repository",
          "status": "ok",
          "details": "filesystem repository is accessible"
        },
        {
          "component": "metadata",
          "status": "ok",
          "details": "metadata is in the repository"
        },
        {
          "component": "managedServer",
          "status": "ok",
          "details": "managed server responds"
        },
        {
          "component": "secretStore",
          "status": "skip",
          "details": "not configured"
        }
      ]
    }
    --- stderr
    "#);
}

#[rstest]
#[case("404 Not Found", "[WARN] managedServer", 0)]
#[case("409 Conflict", "[WARN] managedServer", 0)]
#[case("422 Unprocessable", "[WARN] managedServer", 0)]
#[case("401 Unauthorized", "[FAIL] managedServer", 2)]
#[case("500 Internal", "[FAIL] managedServer", 2)]
fn answers(#[case] status: &'static str, #[case] row: &str, #[case] code: i32) {
    let (url, answering) = server(status);
    let run = Home::with_catalogue(&catalogue(&url)).run_with(&["context", "check"], &[PASSWORD], "");
    answering.join().unwrap();
    assert!(run.stdout.contains(row), "{run}");
    assert_eq!(run.code, code, "{run}");
}

#[test]
fn failures_are_reported_before_the_command_fails() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/none}}\n  \
         metadata: {bundleFile: <home>/none.tar}\n  managedServer: {http: {url: 'https://api.test', auth: {oauth2: \
         {tokenURL: 'http://id.test', clientID: a, clientSecret: b}}, tls: {caCertFile: <home>/ca}}}\n  secretStore: {file: {path: s, key: k}}\n",
    );
    insta::assert_snapshot!(home.run(&["context", "check"]), @r#"
    exit 2
    --- stdout
    Config check for context "dev"
    --------------------------------------------------------------------------------
    [OK] context        settings are valid
    [FAIL] repository     check failed
      error: repository root <home>/none does not exist
    [FAIL] metadata       check failed
      error: bundle <home>/none.tar does not exist
    [FAIL] managedServer  check failed
      error: tls.caCertFile <home>/ca: No such file or directory (os error 2)
    [FAIL] secretStore    check failed
      error: context "dev": secretStore.file.key: the key of the secret file must be 32 bytes: 64 hexadecimal digits, base64, or the bytes themselves
    --------------------------------------------------------------------------------
    Result: FAIL (ok=1 warn=0 fail=4 skip=0)
    --- stderr
    [WARNING] managedServer.http.auth.oauth2.tokenURL is plain http: an attacker on the network can read credentials and payloads
    context "dev" failed the check of repository, metadata, managedServer, secretStore
    "#);
    insta::assert_snapshot!(home.run(&["context", "check", "dev", "-c", "prod"]), @r#"
    exit 2
    --- stdout
    --- stderr
    context name mismatch: "dev" as an argument, "prod" by --context or DECLAREST_CONTEXT
    "#);
    insta::assert_snapshot!(home.run(&["context", "check", "prod"]), @r#"
    exit 3
    --- stdout
    --- stderr
    context "prod" not found; there are dev
    "#);
}

#[test]
fn warnings_come_in_their_order() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {git: {local: {baseDir: <home>/g}, remote: {url: \
         'git@h:r', auth: {ssh: {insecureIgnoreHostKey: true}}, tls: {insecureSkipVerify: true}}}}\n  \
         managedServer: {http: {url: 'http://api.test', tls: {insecureSkipVerify: true}, auth: {oauth2: {tokenURL: \
         'http://id.test', clientID: a, clientSecret: b}}}}\n  secretStore: {vault: {address: 'http://v.test', tls: \
         {insecureSkipVerify: true}, auth: {token: t}}}\n",
    );
    insta::assert_snapshot!(home.run(&["context", "init"]).stderr, @r#"
    [WARNING] managedServer.http.url is plain http: an attacker on the network can read credentials and payloads
    [WARNING] managedServer.http.auth.oauth2.tokenURL is plain http: an attacker on the network can read credentials and payloads
    [WARNING] managedServer.http.tls.insecureSkipVerify accepts any certificate: an attacker on the network can read and change all traffic
    [WARNING] secretStore.vault.address is plain http: an attacker on the network can read credentials and payloads
    [WARNING] secretStore.vault.tls.insecureSkipVerify accepts any certificate: an attacker on the network can read and change all traffic
    [WARNING] repository.git.remote.tls.insecureSkipVerify accepts any certificate: an attacker on the network can read and change all traffic
    [WARNING] repository.git.remote.auth.ssh.insecureIgnoreHostKey accepts any host key: an attacker on the network can impersonate the repository
    "#);
    assert!(!home.run(&["context", "init", "--ignore-warnings"]).stderr.contains("WARNING"));
}

/// Only the reference that is a whole value is replaced.
#[test]
fn a_reference_in_a_longer_text_is_a_warning() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/g}}\n  managedServer: \
         {http: {url: 'https://api.test', auth: {customHeaders: [{header: A, value: 'token ${T}'}, {header: B, value: \
         '${T}', prefix: token}]}}}\n",
    );
    let run = home.run_with(&["context", "init"], &[("T", "t")], "");
    insta::assert_snapshot!(run.stderr, @"
    [WARNING] managedServer.http.auth.customHeaders: the value of A contains ${…} in a longer text, which is sent as it is; state the variable as the whole value, and the text before it as the prefix
    ");
}
