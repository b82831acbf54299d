//! A day of work: commands that a user types, and their output.

use std::fmt::Write as _;

use crate::environment::Home;
use crate::git::git;
use crate::rest_server::{Config, RestServer};

/// The settings of a context whose secrets are in an encrypted file.
pub const FILE_STORE: &str =
    "secretStore: {file: {path: <home>/secrets.json, key: 0123456789abcdef0123456789abcdef}}\n";

/// A server with two shops, and an empty remote repository.
pub struct Day {
    pub server: RestServer,
    pub home: Home,
    pub transcript: String,
}

impl Day {
    pub fn new() -> Self {
        let collections = vec!["/shops".to_owned()];
        let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
        for name in ["oslo", "rio"] {
            let body = serde_json::json!({"id": name, "tier": "free"});
            server.put_by_hand(&format!("/shops/{name}"), body);
        }
        let home = Home::new();
        home.write("openapi.json", include_str!("../../../demo/openapi.json"));
        git(&home.path(""), &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        Self { server, home, transcript: String::new() }
    }

    /// A context for a checkout in `directory`, with secrets in an encrypted file.
    pub fn context(&self, directory: &str) {
        self.context_with(directory, FILE_STORE);
    }

    /// A context for a checkout in `directory`, with more settings.
    pub fn context_with(&self, directory: &str, settings: &str) {
        self.home.write(
            &format!("{directory}.yaml"),
            &format!(
                "name: {directory}\nrepository: {{git: {{local: {{baseDir: <home>/{directory}}}, remote: {{url: \
                 'file://<home>/origin.git'}}}}}}\nmanagedServer: {{http: {{url: '{}', openapi: \
                 <home>/openapi.json}}}}\n{settings}",
                self.server.url()
            ),
        );
    }

    /// Adds the output of commands to the transcript.
    pub fn types(&mut self, commands: &[&str]) {
        for command in commands {
            let output =
                self.home.shell(&format!("exec 2>&1; {command}")).env("TERM", "dumb").output().unwrap();
            let text = self.home.shown(&String::from_utf8(output.stdout).unwrap());
            let text = text.replace(&self.server.url(), "<server>");
            writeln!(self.transcript, "$ {command}\n{}", text.trim_end()).unwrap();
            if !output.status.success() {
                writeln!(self.transcript, "exit {}", output.status.code().unwrap()).unwrap();
            }
        }
    }
}
