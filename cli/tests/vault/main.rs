//! The command line with a real Vault: the program that `make vault` builds, or any that `VAULT_BIN` names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

#[path = "../cli/day.rs"]
#[allow(dead_code, reason = "the tests without a Vault use the rest")]
mod day;
#[path = "../cli/environment.rs"]
#[allow(dead_code, reason = "the tests without a Vault use the rest")]
mod environment;
mod failures;
#[path = "../cli/git.rs"]
#[allow(dead_code, reason = "the tests without a Vault use the rest")]
mod git;
#[path = "../../../core/tests/vault/process.rs"]
mod process;
#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;
mod runs;
mod secrets;
#[path = "../../../core/tests/vault/vault.rs"]
#[allow(dead_code, reason = "the tests of the library use the rest")]
mod vault;
mod working_day;
#[path = "../cli/world.rs"]
#[allow(dead_code, reason = "the tests without a Vault use the rest")]
mod world;

use declarest_core::secrets::vault::VaultAuth;

use environment::{Home, Run};
use vault::Vault;

/// The user of the fixture, whose credential is called `ops`.
const USERPASS: &str = "{password: {credentialsRef: {name: ops}}}";

/// The engine of version 2, as the fixture's user.
fn version_2(vault: &Vault) -> String {
    format!("address: '{}', mount: two, auth: {USERPASS}", vault.url())
}

/// A home whose context keeps its secrets in a Vault with these settings.
fn home(settings: &str) -> Home {
    let home = Home::with_catalogue(&format!(
        "currentContext: dev\ncredentials: [{{name: ops, username: ops, password: {}}}]\ncontexts:\n- name: dev\n  \
         repository: {{filesystem: {{baseDir: <home>/repo}}}}\n  secretStore: {{vault: {{{settings}}}}}\n",
        vault::PASSWORD
    ));
    std::fs::create_dir_all(home.path("repo")).unwrap();
    home
}

/// The ids of the fixture's role, as a context has them.
async fn app_role(vault: &Vault) -> String {
    match vault.app_role().await {
        VaultAuth::AppRole { role_id, secret_id, .. } => {
            format!("{{appRole: {{roleID: {}, secretID: {}}}}}", role_id.expose(), secret_id.expose())
        }
        other => panic!("{other:?}"),
    }
}

/// Runs a command of the group `secret`, without the warning about plain HTTP.
fn run(home: &Home, args: &[&str]) -> Run {
    home.run_with(&[&["secret"], args].concat(), &[("DECLAREST_IGNORE_WARNINGS", "1")], "")
}

/// What a command prints that succeeds and has nothing else to say.
fn printed(home: &Home, args: &[&str]) -> String {
    let run = run(home, args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?} {run}");
    run.stdout
}
