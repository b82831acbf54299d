//! The first five minutes, as the README shows them.

use std::fmt::Write as _;

use crate::environment::Home;
use crate::rest_server::{Config, RestServer};

const README: &str = include_str!("../../../README.md");
const DOCUMENT: &str = include_str!("../../../demo/openapi.json");
/// The address of the server in the README.
const ADDRESS: &str = "http://127.0.0.1:8085";

/// Runs the commands of the section in an empty home, and compares what they print.
#[test]
fn the_commands_print_what_the_readme_shows() {
    let collections = vec!["/shops".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    server.put_by_hand("/shops/rio", serde_json::from_str(r#"{"id": "rio", "tier": "gold"}"#).unwrap());
    let home = Home::new();
    home.write("demo/openapi.json", DOCUMENT);
    let section = README.split("\n## ").find(|section| section.starts_with("The command line\n")).unwrap();
    let (mut inside, mut shown, mut printed) = (false, String::new(), String::new());
    for line in section.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            writeln!(shown, "{line}").unwrap();
            if let Some(command) = line.strip_prefix("$ ") {
                write!(printed, "{line}\n{}", output(&home, command, &server.url())).unwrap();
            }
        }
    }
    assert!(shown.lines().filter(|line| line.starts_with("$ ")).count() > 10);
    assert!(printed == shown, "the commands print:\n{printed}");
}

/// What a command prints, with the addresses of the README.
fn output(home: &Home, command: &str, url: &str) -> String {
    let mut shell = home.shell(&format!("exec 2>&1; {}", command.replace(ADDRESS, url)));
    let output = shell.env("TERM", "dumb").output().unwrap();
    let text = home.shown(&String::from_utf8(output.stdout).unwrap());
    let mut text = text.replace(url, ADDRESS).replace("<home>", "/home/alice");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
