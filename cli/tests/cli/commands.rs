//! Each command, as a user types it: a transcript in `commands/` for each, and the rules that all of them follow.
//!
//! A line `$ ...` of a transcript runs in bash. It is followed by its standard output, its standard error with `! ` before
//! each line, and its exit code if that is not 0. `UPDATE_TRANSCRIPTS=1` writes the actual output into the files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::environment::Home;
use crate::git::git;
use crate::operator;
use crate::rest_server::{Config, Matcher, RestServer};
use crate::server::{Route, Server};

const REFERENCE: &str = include_str!("../../../docs/cli/reference.md");

/// Commands that always contact the managed server.
const CONTACT_THE_SERVER: [&str; 19] = [
    "import",
    "plan",
    "resource apply",
    "resource create",
    "resource diff",
    "resource explain",
    "resource get",
    "resource list",
    "resource request connect",
    "resource request delete",
    "resource request get",
    "resource request head",
    "resource request options",
    "resource request patch",
    "resource request post",
    "resource request put",
    "resource request trace",
    "resource update",
    "server check",
];

/// Commands that contact the remote of the repository, the Kubernetes API, or a Vault.
const CONTACT_OTHERS: [&str; 12] = [
    "contract verify", "operator resume", "operator status", "operator suspend", "operator sync",
    "repository push", "repository refresh", "secret delete", "secret get", "secret init", "secret list",
    "secret set",
];

/// Commands that send a write, which a server may refuse because of a conflict.
const WRITE: [&str; 8] = [
    "resource apply",
    "resource create",
    "resource delete",
    "resource request delete",
    "resource request patch",
    "resource request post",
    "resource request put",
    "resource update",
];

/// The commands of the reference that are not groups, such as `resource get`.
fn commands() -> Vec<&'static str> {
    let headings =
        REFERENCE.lines().filter_map(|line| line.strip_prefix("## `declarest ")?.strip_suffix('`'));
    let names: Vec<&str> = headings.collect();
    let is_group = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name} ")));
    names.iter().copied().filter(|name| !is_group(name)).collect()
}

fn transcripts() -> BTreeMap<String, PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/commands");
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    files.map(|file| (file.file_stem().unwrap().to_str().unwrap().replace('_', " "), file)).collect()
}

/// The runs of a transcript: the line and the exit code.
fn runs(transcript: &str) -> Vec<(&str, i32)> {
    let texts = transcript.split("\n$ ").map(|text| text.strip_prefix("$ ").unwrap_or(text).trim_end());
    let code = |text: &str| text.lines().last()?.strip_prefix("exit ")?.parse().ok();
    texts.map(|text| (text.lines().next().unwrap_or_default(), code(text).unwrap_or(0))).collect()
}

#[test]
fn every_command_has_a_transcript_of_success_of_json_and_of_failures() {
    let (commands, mut files, mut missing) = (commands(), transcripts(), Vec::new());
    assert!(commands.len() > 90, "{} commands", commands.len());
    for command in commands {
        let Some(file) = files.remove(command) else {
            missing.push(format!("{command} has no transcript"));
            continue;
        };
        let transcript = fs::read_to_string(file).unwrap();
        // Global flags may precede the command.
        let runs_of = |(line, _): &(&str, i32)| {
            let called = line.contains(&format!("{command} ")) || line.ends_with(command);
            called && line.contains("declarest ")
        };
        let runs: Vec<(&str, i32)> = runs(&transcript).into_iter().filter(runs_of).collect();
        let json = |line: &str| line.contains("-o json");
        let mut require = |what: &str, found: bool| {
            if !found {
                missing.push(format!("{command}: {what}"));
            }
        };
        require("success as text", runs.iter().any(|(line, code)| *code == 0 && !json(line)));
        require("-o json", runs.iter().any(|(line, _)| json(line)));
        require("a failure", runs.iter().any(|(_, code)| *code != 0));
        if CONTACT_THE_SERVER.contains(&command) || CONTACT_OTHERS.contains(&command) {
            require("exit code 4", runs.iter().any(|(_, code)| *code == 4));
            require("exit code 6", runs.iter().any(|(_, code)| *code == 6));
        }
        if WRITE.contains(&command) {
            require("exit code 5", runs.iter().any(|(_, code)| *code == 5));
        }
    }
    missing.extend(files.into_keys().map(|name| format!("{name} is not a command")));
    assert_eq!(missing, Vec::<String>::new());
}

/// The home, the servers and the repository of each transcript.
struct Place {
    home: Home,
    /// Host and port of the Kubernetes API.
    cluster: String,
    server: RestServer,
    denied: RestServer,
    /// Answers every write with 409.
    busy: RestServer,
    tokens: Server,
}

/// The answers of a server that issues tokens, and accepts all methods.
const ROUTES: &[Route] = &[
    ("POST /token", 200, r#"{"access_token": "t0ken", "token_type": "Bearer", "expires_in": 60}"#),
    ("OPTIONS /shops/rio", 200, r#"{"methods": ["GET", "PUT"]}"#),
    ("TRACE /shops/rio", 200, "TRACE /shops/rio HTTP/1.1"),
    ("CONNECT", 200, "connected"),
];

impl Place {
    fn new() -> Self {
        let start = || {
            let collections = vec!["/shops".to_owned()];
            RestServer::start(Config { collections, ..Config::default() }).unwrap()
        };
        let (server, denied, busy) = (start(), start(), start());
        for method in ["DELETE", "PATCH", "POST", "PUT"] {
            busy.fail(Matcher::method(method), 409, usize::MAX);
        }
        denied.require_header("X-Key", "canary");
        for (name, tier) in [("oslo", "gold"), ("rio", "free")] {
            for server in [&server, &busy] {
                server.put_by_hand(&format!("/shops/{name}"), serde_json::json!({"id": name, "tier": tier}));
            }
        }
        let tokens = Server::new(ROUTES);
        let home = operator::cluster(Some("Succeeded"), false).0;
        let kubeconfig = fs::read_to_string(home.path(".kube/config")).unwrap();
        let cluster = kubeconfig.split_once("http://").unwrap().1.split('\'').next().unwrap().to_owned();
        let place = Self { home, cluster, server, denied, busy, tokens };
        place.write_catalogue();
        place.write_files();
        place
    }

    fn write_catalogue(&self) {
        let remote =
            |url: &str| format!("git: {{local: {{baseDir: <home>/repo}}, remote: {{url: '{url}'}}}}");
        let git = &remote("file://<home>/origin.git");
        let server =
            |url: &str| format!("managedServer: {{http: {{url: '{url}', openapi: <home>/openapi.json}}}}");
        let context = |name: &str, repository: &str, server: &str| {
            format!("- name: {name}\n  repository: {{{repository}}}\n  {server}\n")
        };
        let login = format!(
            "managedServer: {{http: {{url: '{url}', auth: {{oauth2: {{tokenURL: '{url}/token', grantType: \
             client_credentials, clientID: a, clientSecret: b}}}}}}}}",
            url = self.tokens.url()
        );
        let store =
            "  secretStore: {file: {path: <home>/secrets.enc, key: 0123456789abcdef0123456789abcdef}}\n";
        let files = "filesystem: {baseDir: <home>/files}";
        let vault =
            |url: &str| format!("secretStore: {{vault: {{address: '{url}', auth: {{token: canary}}}}}}");
        self.home.write(
            ".declarest/configs/contexts.yaml",
            &[
                "currentContext: dev\ncontexts:\n".to_owned(),
                context("dev", git, &server(&self.server.url())),
                store.to_owned(),
                context("denied", git, &server(&self.denied.url())),
                store.to_owned(),
                context("dead", git, &server("http://127.0.0.1:1")),
                store.to_owned(),
                context("files", files, &server(&self.server.url())),
                context("login", files, &login),
                context("sealed", files, &vault(&self.denied.url())),
                context("lost", files, &vault("http://127.0.0.1:1")),
                context("busy", git, &server(&self.busy.url())),
                context("locked", &remote(&format!("{}/origin.git", self.denied.url())), ""),
                context("away", &remote("http://127.0.0.1:1/origin.git"), ""),
                context("methods", files, &server(self.tokens.url())),
            ]
            .concat(),
        );
    }

    fn write_files(&self) {
        let home = &self.home;
        let editor = |name: &str, script: &str| {
            home.write(name, &format!("#!/bin/sh\n{script}\n"));
            fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        editor("no-change", "");
        editor("to-basic", "sed -i s/gold/basic/ \"$1\"");
        editor("defaults", "echo '{\"open\": true}' >\"$1\"");
        let kubeconfig = fs::read_to_string(home.path(".kube/config")).unwrap();
        home.write("denied.kubeconfig", &kubeconfig.replace("canary", "other"));
        home.write("dead.kubeconfig", &kubeconfig.replace(&self.cluster, "127.0.0.1:1"));
        home.write("openapi.json", include_str!("../../../demo/openapi.json"));
        let new = format!(
            r#"{{"name": "new", "repository": {{"filesystem": {{"baseDir": "<home>/new"}}}}, "managedServer": {{"http": {{"url": "{}"}}}}}}"#,
            self.server.url()
        );
        home.write("new.yaml", &new);
        home.write("new.json", r#"{"id": "rio", "tier": "basic"}"#);
        home.write("secrets.json", r#"{"id": "rio", "password": "s3cret"}"#);
        home.write("metadata.json", r#"{"resource": {"id": "/id", "alias": "/name"}}"#);
        home.write("pacto.yaml", crate::contract::VALID);
        home.write("objects/all.yaml", crate::contract::OBJECTS);
        fs::create_dir_all(home.path("files")).unwrap();
        for (name, tier) in [("lima", "free"), ("oslo", "gold"), ("rio", "gold")] {
            let payload = format!("{{\n  \"id\": \"{name}\",\n  \"tier\": \"{tier}\"\n}}\n");
            home.write(&format!("repo/shops/{name}/resource.json"), &payload);
        }
        home.write("repo/shops/_/metadata.yaml", "resource:\n    secretAttributes:\n        - /pin\n");
        git(&home.path(""), &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        let repository = home.path("repo");
        git(&repository, &["init", "--quiet", "--initial-branch=main"]);
        git(&repository, &["add", "--all"]);
        git(&repository, &["commit", "--quiet", "--message", "Declare three shops"]);
        let origin = format!("file://{}", home.path("origin.git").display());
        git(&repository, &["remote", "add", "origin", &origin]);
        git(&repository, &["push", "--quiet", "--set-upstream", "origin", "main"]);
    }

    /// Runs the lines of a transcript again, and returns the transcript.
    fn replay(&self, transcript: &str) -> String {
        let mut replayed = String::new();
        for line in transcript.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let script = line.replace("<server>", &self.server.url()).replace("<denied>", &self.denied.url());
            let mut shell = self.home.shell(&format!("set -o pipefail\n{script}"));
            shell.env("TERM", "dumb").env("TZ", "UTC").stdin(std::process::Stdio::null());
            shell.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
            shell.envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "Alice")));
            shell.envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "alice@test")));
            let output = shell.output().unwrap();
            let (stdout, stderr) = (self.shown(&output.stdout), self.shown(&output.stderr));
            writeln!(replayed, "$ {line}").unwrap();
            stdout.lines().for_each(|line| writeln!(replayed, "{line}").unwrap());
            stderr.lines().for_each(|line| writeln!(replayed, "{}", format!("! {line}").trim_end()).unwrap());
            match output.status.code() {
                Some(0) => {}
                code => writeln!(replayed, "exit {}", code.unwrap()).unwrap(),
            }
        }
        replayed
    }

    fn shown(&self, bytes: &[u8]) -> String {
        let text = self.home.shown(std::str::from_utf8(bytes).unwrap()).replace(&self.cluster, "<cluster>");
        let named =
            [(self.server.url(), "<server>"), (self.denied.url(), "<denied>"), (self.busy.url(), "<busy>")];
        named.iter().chain([&(self.tokens.url().to_owned(), "<tokens>")]).fold(text, |text, (url, name)| {
            let host = url.trim_start_matches("http://");
            text.replace(url, name).replace(host, &format!("{name} host"))
        })
    }
}

#[test]
fn the_transcripts_are_true() {
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    let (files, next) = (transcripts(), AtomicUsize::new(0));
    let files: Vec<&PathBuf> = files.values().collect();
    let worker = || {
        let mut wrong = String::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let transcript = fs::read_to_string(file).unwrap();
            let replayed = Place::new().replay(&transcript);
            if update {
                fs::write(file, &replayed).unwrap();
            } else if replayed != transcript {
                write!(wrong, "{} is now:\n{replayed}\n", file.display()).unwrap();
            }
        }
        wrong
    };
    let wrong: String = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong}");
}
