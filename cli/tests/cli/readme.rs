//! The first five minutes, as the README shows them.

use std::fmt::Write as _;

use crate::environment::Home;
use crate::rest_server::{Config, RestServer};

const README: &str = include_str!("../../../README.md");
const DOCUMENT: &str = include_str!("../../../demo/openapi.json");
/// The address of the server in the README.
const ADDRESS: &str = "http://127.0.0.1:8085";

/// A transcript of the same steps, and more.
const TRANSCRIPT: &str = include_str!("../../../docs/cli/first-minutes.md");

/// A server with the collection that the README starts it with, and an empty home.
fn start() -> (RestServer, Home) {
    let collections = vec!["/shops".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let home = Home::new();
    home.write("demo/openapi.json", DOCUMENT);
    (server, home)
}

fn section() -> &'static str {
    README.split("\n## ").find(|section| section.starts_with("The command line\n")).unwrap()
}

/// The lines of all blocks in this language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}");
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == fence;
        } else if inside {
            lines.push(line);
        }
    }
    lines
}

/// Runs the commands of the `console` blocks, and compares what they print.
fn replay(server: &RestServer, home: &Home, text: &str) {
    let shown = blocks(text, "console");
    let mut printed = String::new();
    for command in shown.iter().filter_map(|line| line.strip_prefix("$ ")) {
        write!(printed, "$ {command}\n{}", output(home, command, &server.url())).unwrap();
    }
    assert!(shown.len() > 10);
    assert!(printed == shown.join("\n") + "\n", "the commands print:\n{printed}");
}

#[test]
fn the_commands_print_what_the_readme_shows() {
    let (server, home) = start();
    let (of_cargo, others): (Vec<&str>, Vec<&str>) =
        blocks(section(), "sh").into_iter().partition(|line| line.starts_with("cargo "));
    assert!(of_cargo.iter().any(|line| line.contains("--example rest-server -- --collection /shops")));
    for command in others {
        assert_eq!(output(&home, command, &server.url()), "", "{command}");
    }
    replay(&server, &home, section());
}

#[test]
fn the_transcript_has_the_steps_of_the_readme_and_is_true() {
    let (server, home) = start();
    let commands = blocks(section(), "console").into_iter().filter(|line| line.starts_with("$ "));
    let (mut at, mut missing) = (0, Vec::new());
    for command in
        blocks(section(), "sh").into_iter().filter(|line| !line.starts_with("cargo ")).chain(commands)
    {
        let command = command.split("   #").next().unwrap();
        match TRANSCRIPT[at..].find(command) {
            Some(found) => at += found,
            None => missing.push(command),
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
    replay(&server, &home, TRANSCRIPT);
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
