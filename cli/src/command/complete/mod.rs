//! The hidden commands `__complete` and `__completeNoDesc`, which completion scripts call. Scripts of v0.3.8, which
//! cobra generated, call them in the same way.
//!
//! The arguments are the words of a command line after the name of the program; the last one is completed. Each line of
//! the output is a candidate, and with `__complete` a tab and its description. The last line is `:` and the sum of these
//! numbers: 1 means an error, 2 means that no space follows, 4 means that files are not candidates.

mod paths;
mod words;

use clap::{Arg, ArgAction, Command};

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::print;
use crate::terminal;
use paths::Order;
use words::{Line, Wanted};

const ERROR: u8 = 1;
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;

/// The HTTP methods that `--http-method` completes.
const METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
const TYPES: [&str; 8] = ["json", "yaml", "xml", "hcl", "ini", "properties", "text", "binary"];
const OPERATIONS: [&str; 6] = ["get", "create", "update", "delete", "list", "compare"];

/// The candidates for a word.
#[derive(Default)]
struct Candidates {
    /// Each candidate with its description.
    found: Vec<(String, String)>,
    directive: u8,
}

impl Candidates {
    fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let found = words.into_iter().map(|word| (word.to_owned(), String::new())).collect();
        Self { found, directive: NO_FILES }
    }

    fn files() -> Self {
        Self::default()
    }
}

/// Prints the candidates for the last of `words`. A failure, such as a server that cannot be reached, prints none.
pub fn run(words: &[String], describe: bool, invocation: &Invocation) -> Result<(), Failure> {
    terminal::refuse_input();
    let mut root = invocation.parser();
    root.build();
    let line = Line::new(&root, words);
    let Candidates { mut found, directive } = candidates(&line, words, &root, invocation)
        .unwrap_or(Candidates { found: Vec::new(), directive: ERROR | NO_FILES });
    // A candidate is one line of the output, and a terminal shows it.
    found.retain(|(word, _)| word.starts_with(&line.word) && !word.contains(char::is_control));
    let mut text = String::new();
    for (word, description) in found {
        text.push_str(&word);
        if describe && !description.is_empty() {
            text.push('\t');
            text.push_str(&description);
        }
        text.push('\n');
    }
    Ok(print(format!("{text}:{directive}\n").as_bytes())?)
}

fn candidates(
    line: &Line<'_>,
    words: &[String],
    root: &Command,
    invocation: &Invocation,
) -> Result<Candidates, Failure> {
    match &line.wanted {
        Wanted::Command => Ok(commands(line.command)),
        Wanted::Flag => Ok(flags(line.command, root)),
        Wanted::Value(flag) => {
            let known = |command: &Command| {
                command.get_arguments().find(|known| known.get_long() == Some(flag)).cloned()
            };
            match known(line.command).or_else(|| known(root)) {
                Some(known) => value(line, words, flag, &known, invocation),
                None => Ok(Candidates::of([])),
            }
        }
        Wanted::Positional(index) => positional(line, words, *index, invocation),
    }
}

fn commands(command: &Command) -> Candidates {
    let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
    let described = |below: &Command| (below.get_name().to_owned(), about(below.get_about()));
    Candidates { found: visible.map(described).collect(), directive: NO_FILES }
}

fn flags(command: &Command, root: &Command) -> Candidates {
    let visible = command.get_arguments().chain(root.get_arguments()).filter(|flag| !flag.is_hide_set());
    let described = |flag: &Arg| Some((format!("--{}", flag.get_long()?), about(flag.get_help())));
    let mut found: Vec<(String, String)> = visible.filter_map(described).collect();
    found.sort();
    found.dedup();
    Candidates { found, directive: NO_FILES }
}

/// Returns the first line of a description.
fn about(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

fn value(
    line: &Line<'_>,
    words: &[String],
    flag: &str,
    known: &Arg,
    invocation: &Invocation,
) -> Result<Candidates, Failure> {
    let choices: Vec<String> =
        known.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if !choices.is_empty() {
        return Ok(Candidates::of(choices.iter().map(String::as_str)));
    }
    if known.is_require_equals_set() || matches!(known.get_action(), ArgAction::SetTrue) {
        return Ok(Candidates::of(["true", "false"]));
    }
    Ok(match flag {
        "context" | "context-name" => contexts(invocation)?,
        "output" => Candidates::of(["auto", "text", "json", "yaml", "wide", "name", "ndjson", "markdown"]),
        "source" => Candidates::of(["managed-server", "repository"]),
        "http-method" => Candidates::of(METHODS),
        "content-type" | "accept-type" => Candidates::of(TYPES),
        "path" if line.names.first().is_some_and(|group| group != "repository") => {
            logical_paths(line, words, invocation)?
        }
        "payload" | "out" | "plan" | "dir" | "report" | "openapi" | "ca-cert" => Candidates::files(),
        _ => Candidates::of([]),
    })
}

fn positional(
    line: &Line<'_>,
    words: &[String],
    index: usize,
    invocation: &Invocation,
) -> Result<Candidates, Failure> {
    let names: Vec<&str> = line.names.iter().map(String::as_str).collect();
    match (&names[..], index) {
        (["context", "use" | "delete" | "rename" | "show" | "resolve" | "check" | "init"], 0) => {
            contexts(invocation)
        }
        (["resource", "metadata", "render"], 1) => Ok(Candidates::of(OPERATIONS)),
        (["init"], 0) => Ok(Candidates::files()),
        (["resource", ..] | ["import" | "plan" | "validate"] | ["secret", _], 0) => {
            logical_paths(line, words, invocation)
        }
        _ => Ok(Candidates::of([])),
    }
}

fn contexts(invocation: &Invocation) -> Result<Candidates, Failure> {
    let stored = invocation.catalogue()?;
    Ok(Candidates::of(stored.catalogue.contexts.iter().map(|context| context.name.0.as_str())))
}

fn logical_paths(line: &Line<'_>, words: &[String], invocation: &Invocation) -> Result<Candidates, Failure> {
    let names: Vec<&str> = line.names.iter().map(String::as_str).collect();
    let order = match (source(words), &names[..]) {
        (Some("repository"), _) | (None, ["validate"] | ["secret", ..]) => Order::Repository,
        (Some("both"), _) => Order::Both,
        (Some(_), _)
        | (None, ["import"] | ["resource", "get" | "list" | "save" | "delete" | "request", ..]) => {
            Order::ServerFirst
        }
        (None, _) => Order::RepositoryFirst,
    };
    let wildcards = matches!(&names[..], ["resource", "save" | "metadata", ..]);
    let found = paths::candidates(&line.word, order, wildcards, invocation)?;
    let found = found.into_iter().map(|path| (path, String::new())).collect();
    Ok(Candidates { found, directive: NO_SPACE | NO_FILES })
}

/// Returns the value of `--source`, if it is given.
fn source(words: &[String]) -> Option<&str> {
    let at = words.iter().rposition(|word| word == "--source" || word.starts_with("--source="))?;
    let value = words[at].strip_prefix("--source=").or_else(|| words.get(at + 1).map(String::as_str));
    value.map(str::trim).filter(|value| !value.is_empty())
}
