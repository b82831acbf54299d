//! Catalogues with a mistake each: the error names the file, the place, the field and what to do.

use std::fmt::Write as _;

use crate::environment::Home;

fn indented(lines: &str) -> String {
    lines.lines().fold(String::new(), |text, line| format!("{text}    {line}\n"))
}

/// A context called dev with these lines, which are indented like its name.
fn context(lines: &str) -> String {
    let lines = indented(lines);
    format!(
        "currentContext: dev\ncredentials:\n  - {{name: ops, username: u, password: p}}\ncontexts:\n  - name: dev\n{lines}"
    )
}

fn http(lines: &str) -> String {
    let lines = indented(lines);
    context(&format!("managedServer:\n  http:\n    url: https://api.test\n{lines}"))
}

const BASIC: &str = "auth: {basic: {credentialsRef: {name: ops}}}";

fn with_basic(lines: &str) -> String {
    http(&format!("{BASIC}\n{lines}"))
}

fn git(remote: &str) -> String {
    context(&format!("repository:\n  git:\n    local: {{baseDir: /r}}\n    remote: {remote}"))
}

fn store(lines: &str) -> String {
    context(&format!("repository: {{filesystem: {{baseDir: /r}}}}\nsecretStore: {lines}"))
}

fn broken() -> Vec<String> {
    let dev = "contexts: [{name: dev, repository: {filesystem: {baseDir: /r}}}]";
    vec![
        // The document and its keys.
        "contexts: [".to_owned(),
        "currentContext: dev\n---\ncontexts: []".to_owned(),
        "- dev".to_owned(),
        "currentcontext: dev".to_owned(),
        "current-ctx: dev".to_owned(),
        "currentContext: a\ncurrentContext: b".to_owned(),
        "contexts: {dev: {}}".to_owned(),
        "contexts: [dev]".to_owned(),
        // Names.
        format!("currentContext: prod\n{dev}"),
        "currentContext: prod".to_owned(),
        "currentContext: dev\ncontexts:\n- &a {name: dev, repository: {filesystem: {baseDir: /r}}}\n- *a"
            .to_owned(),
        "currentContext: dev\ncontexts: [{repository: {filesystem: {baseDir: /r}}}]".to_owned(),
        "currentContext: dev\ncontexts: [{name: ' ', repository: {filesystem: {baseDir: /r}}}]".to_owned(),
        context("preferences: {a: b}"),
        context("repository: {filesystem: {baseDir: /r}}\npreferences: {a: [b]}"),
        context("managed-server: {}"),
        // Credentials.
        "credentials: [{name: a, username: u}]".to_owned(),
        "credentials: [{name: a, username: u, password: {prompt: false}}]".to_owned(),
        "credentials: [{name: a, username: u, password: {prompt: true, persist: true}}]".to_owned(),
        "credentials: [{name: a, username: u, password: ' '}]".to_owned(),
        "credentials: [{name: a, username: u, password: p}, {name: a, username: u, password: p}]".to_owned(),
        "credentials: [{name: a-b, username: u, password: p}, {name: a.b, username: u, password: p}]"
            .to_owned(),
        http("auth: {basic: {credentialsRef: {name: absent}}}"),
        http("auth: {basic: {username: u, password: canary}}"),
        // The repository.
        context("repository: {}"),
        context("repository: {filesystem: {baseDir: /r}, git: {local: {baseDir: /r}}}"),
        context("repository: {filesystem: {basedir: /r}}"),
        context("repository: {filesystem: {baseDir: ''}}"),
        context("repository: {git: {local: {baseDir: /r, autoInit: yes please}}}"),
        git("{branch: main}"),
        git("{url: 'ftp://git.test/r'}"),
        git("{url: 'https://u:canary@git.test/r'}"),
        git("{url: 'https://git.test/r', auth: {}}"),
        git("{url: 'https://git.test/r', auth: {accessKey: {token: canary}, ssh: {user: git}}}"),
        git("{url: 'https://git.test/r', tls: {clientCertFile: c.pem}}"),
        // The server.
        context("managedServer: {}"),
        http("auth: {}"),
        http("auth: {bearer: canary}"),
        http("auth: {customHeaders: []}"),
        http("auth: {customHeaders: [{header: X-Key}]}"),
        http(
            "auth: {oauth2: {tokenURL: 'https://id.test', clientID: a, clientSecret: canary, grantType: implicit}}",
        ),
        http(
            "auth: {oauth2: {tokenURL: 'https://id.test', clientID: a, clientSecret: canary, grantType: password}}",
        ),
        context("managedServer: {http: {url: 'api.test', auth: {basic: {credentialsRef: {name: ops}}}}}"),
        context(
            "managedServer: {http: {url: 'https://u:canary@api.test', auth: {basic: {credentialsRef: {name: ops}}}}}",
        ),
        with_basic("healthCheck: /status?deep=1"),
        with_basic("healthCheck: https://other.test/status"),
        with_basic("openapi: http://api.test/openapi.json"),
        with_basic("proxy: {http: 'socks5://p.test'}"),
        with_basic("proxy: {http: 'http://u:canary@p.test', auth: {basic: {credentialsRef: {name: ops}}}}"),
        with_basic("requestThrottling: {}"),
        with_basic("requestThrottling: {maxConcurrentRequests: 0}"),
        with_basic("requestThrottling: {maxConcurrentRequests: -1}"),
        with_basic("requestThrottling: {requestsPerSecond: -1}"),
        with_basic("requestThrottling: {requestsPerSecond: 5, queueSize: 3}"),
        with_basic("requestThrottling: {maxConcurrentRequests: 5, burst: 3}"),
        with_basic("requestThrottling: {maxConcurrentRequests: many}"),
        // Secrets and metadata.
        store("{}"),
        store("{file: {path: /s}}"),
        store("{file: {path: /s, key: canary, keyFile: /k}}"),
        store("{file: {path: /s, key: canary, kdf: {time: -1}}}"),
        store("{file: {path: /s, key: canary, kdf: {threads: 300}}}"),
        store("{file: {path: /s, key: canary, kdf: {memory: 16}}}"),
        store("{vault: {address: 'vault.test', auth: {token: canary}}}"),
        store("{vault: {address: 'https://v.test', kvVersion: 3, auth: {token: canary}}}"),
        store("{vault: {address: 'https://v.test', mount: 'a/../b', auth: {token: canary}}}"),
        store("{vault: {address: 'https://v.test', auth: {password: {username: u}}}}"),
        context("repository: {filesystem: {baseDir: /r}}\nmetadata: {bundle: a, bundleFile: b}"),
    ]
}

#[test]
fn each_mistake_is_reported_with_its_place() {
    let mut printed = String::new();
    for catalogue in broken() {
        let run = Home::with_catalogue(&catalogue).run(&["context", "validate"]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{catalogue}\n{run}");
        assert!(!run.stderr.contains("canary"), "{run}");
        let error =
            run.stderr.strip_prefix("<home>/.declarest/configs/contexts.yaml: ").unwrap_or(&run.stderr);
        writeln!(printed, "{}", error.trim_end()).unwrap();
    }
    insta::assert_snapshot!(printed, @r#"
    cannot decode yaml, line 1, column 11: unclosed bracket '['
    cannot decode yaml, line 2, column 1: a second document; there must be exactly one
    line 1, column 1: the document: expected an object, found an array
    line 1, column 1: unknown key "currentcontext" in the document; did you mean "currentContext"?
    line 1, column 1: unknown key "current-ctx" in the document; use currentContext, defaultEditor, credentials, contexts
    cannot decode yaml, line 2, column 1: duplicate key "currentContext"; keep one of them
    line 1, column 1: contexts: expected a list, found an object
    line 1, column 12: contexts[0]: expected an object, found a string
    line 1, column 1: currentContext: there is no context "prod"
    line 1, column 1: currentContext: there is no context "prod"
    line 3, column 7: contexts[1].name: contexts[0] already has the name "dev"; names must be unique
    line 2, column 12: contexts[0]: "name" is missing
    line 2, column 13: contexts[0].name: must not be empty
    line 5, column 5: contexts[0]: has none of repository, managedServer; set at least one
    line 7, column 19: contexts[0].preferences.a: expected a string, found an array
    line 6, column 5: unknown key "managed-server" in contexts[0]; did you mean "managedServer"?
    line 1, column 15: credentials[0]: "password" is missing
    line 1, column 38: credentials[0].password: prompt must be true; write a string instead of a prompt
    line 1, column 63: unknown key "persist" in credentials[0].password; did you mean "persistInSession"?
    line 1, column 38: credentials[0].password: must not be empty; write a value or {prompt: true}
    line 1, column 53: credentials[1].name: duplicate credential name "a"; rename one
    line 1, column 55: credentials[1].name: "a.b" and "a-b" have the same environment variables; rename one
    line 9, column 41: contexts[0].managedServer.http.auth.basic.credentialsRef.name: there is no credential "absent" under credentials; there is ops
    line 9, column 24: unknown key "username" in contexts[0].managedServer.http.auth.basic; use credentialsRef
    line 5, column 5: contexts[0]: has none of repository, managedServer; set at least one
    line 6, column 5: contexts[0].repository: has filesystem and git; keep one of them
    line 6, column 31: unknown key "basedir" in contexts[0].repository.filesystem; did you mean "baseDir"?
    line 6, column 31: contexts[0].repository.filesystem.baseDir: must not be empty
    line 6, column 45: contexts[0].repository.git.local.autoInit: expected true or false, found a string
    line 9, column 9: contexts[0].repository.git.remote: "url" is missing
    line 9, column 18: contexts[0].repository.git.remote.url: repository URL ftp://git.test/r: the scheme must be http, https or ssh
    line 9, column 18: contexts[0].repository.git.remote.url: repository URL https://git.test/r: it must not contain a password; configure it as credentials instead
    line 9, column 45: contexts[0].repository.git.remote.auth: has none of basic, accessKey, ssh; set exactly one
    line 9, column 45: contexts[0].repository.git.remote.auth: has accessKey and ssh; keep one of them
    line 9, column 45: contexts[0].repository.git.remote.tls: clientCertFile needs clientKeyFile; set clientKeyFile, or remove clientCertFile
    line 5, column 5: contexts[0]: has none of repository, managedServer; set at least one
    line 9, column 9: contexts[0].managedServer.http.auth: has none of oauth2, basic, customHeaders; set exactly one
    line 9, column 16: unknown key "bearer" in contexts[0].managedServer.http.auth; use oauth2, basic, customHeaders
    line 9, column 9: contexts[0].managedServer.http.auth: has none of oauth2, basic, customHeaders; set exactly one
    line 9, column 32: contexts[0].managedServer.http.auth.customHeaders[0]: "value" is missing
    line 9, column 89: contexts[0].managedServer.http.auth.oauth2.grantType: "implicit" is not supported; use client_credentials or password
    line 9, column 16: contexts[0].managedServer.http.auth.oauth2: grantType password needs username and password
    line 6, column 28: contexts[0].managedServer.http.url: is not a URL; write it like https://api.example.com/v1
    line 6, column 28: contexts[0].managedServer.http.url: must not contain a user or password; configure auth instead
    line 10, column 9: contexts[0].managedServer.http.healthCheck: must not have a query; use a path without a query
    line 10, column 9: contexts[0].managedServer.http.healthCheck: must be a path, or a URL with the scheme, host and port of url
    line 10, column 9: contexts[0].managedServer.http.openapi: must be a local file or an https URL; save the document of a server without TLS to a file
    line 10, column 17: contexts[0].managedServer.http.proxy.http: must be an http:// or https:// URL with a host
    line 10, column 17: contexts[0].managedServer.http.proxy.http: contains credentials in addition to the auth block; remove one of them
    line 10, column 9: contexts[0].managedServer.http.requestThrottling: has none of maxConcurrentRequests, requestsPerSecond; set at least one
    line 10, column 9: contexts[0].managedServer.http.requestThrottling: has none of maxConcurrentRequests, requestsPerSecond; set at least one
    line 10, column 29: contexts[0].managedServer.http.requestThrottling.maxConcurrentRequests: must be an integer from 0 to 4294967295
    line 10, column 29: contexts[0].managedServer.http.requestThrottling.requestsPerSecond: must be a number from 0
    line 10, column 9: contexts[0].managedServer.http.requestThrottling: queueSize needs maxConcurrentRequests; set maxConcurrentRequests, or remove queueSize
    line 10, column 9: contexts[0].managedServer.http.requestThrottling: burst needs requestsPerSecond; set requestsPerSecond, or remove burst
    line 10, column 29: contexts[0].managedServer.http.requestThrottling.maxConcurrentRequests: expected an integer, found a string
    line 7, column 5: contexts[0].secretStore: has none of file, vault; set exactly one
    line 7, column 19: contexts[0].secretStore.file: has none of key, keyFile, passphrase, passphraseFile; set exactly one
    line 7, column 19: contexts[0].secretStore.file: has key and keyFile; keep one of them
    line 7, column 55: contexts[0].secretStore.file.kdf.time: must be an integer from 0 to 4294967295
    line 7, column 55: contexts[0].secretStore.file.kdf.threads: must be at most 255
    line 7, column 55: contexts[0].secretStore.file.kdf.memory: must be at least 8 KiB for each of the 4 threads
    line 7, column 27: contexts[0].secretStore.vault.address: is not a URL; write it like https://api.example.com/v1
    line 7, column 54: contexts[0].secretStore.vault.kvVersion: must be 1 or 2
    line 7, column 54: contexts[0].secretStore.vault.mount: must not have empty, "." or ".." segments
    line 7, column 72: unknown key in contexts[0].secretStore.vault.auth.password, not shown because it may be part of a value; put text with a comma, a colon or braces in quotes; use credentialsRef, mount
    line 7, column 5: contexts[0].metadata: has bundle and bundleFile; keep one of them
    "#);
}
