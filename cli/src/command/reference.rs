//! `declarest reference`: writes the manual of all commands from their definitions.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{Arg, Command};
use clap_mangen::Man;

use crate::error::Failure;
use crate::invocation::Invocation;

const HEADER: &str = "\
# Commands

`make generate` writes this page from the definitions of the commands. [The command line](../cli.md) explains them.
";

/// Writes the reference in Markdown to a file, and man pages into a directory.
pub fn run(markdown: Option<&Path>, man: Option<&Path>, invocation: &Invocation) -> Result<(), Failure> {
    let mut root = invocation.parser().disable_help_subcommand(true);
    root.build();
    if let Some(file) = markdown {
        let mut text = HEADER.to_owned();
        describe(&root, &mut text);
        fs::write(file, text).map_err(Failure::io("write", file))?;
    }
    if let Some(directory) = man {
        fs::create_dir_all(directory).map_err(Failure::io("write", directory))?;
        pages(&root, directory)?;
    }
    Ok(())
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// Appends a section for a command, and those of the commands below it.
fn describe(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = write!(text, "\n## `{name}`\n\n{}.\n\n```text\n{usage}\n```\n", cell(&about));
    let is_root = !name.contains(' ');
    let arguments = command.get_arguments();
    let own = arguments.filter(|argument| !argument.is_hide_set() && (is_root || !argument.is_global_set()));
    let rows: Vec<String> = own.map(row).collect();
    if !rows.is_empty() {
        let _ = write!(text, "\n| argument | meaning |\n|---|---|\n{}", rows.concat());
    }
    if let Some(example) = command.get_after_help().filter(|_| !is_root) {
        let lines = example.to_string();
        let lines = lines.lines().skip(1).map(str::trim);
        let _ = write!(text, "\nExample:\n\n```sh\n{}\n```\n", lines.collect::<Vec<_>>().join("\n"));
    }
    visible(command).for_each(|below| describe(below, text));
}

fn row(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values = argument.get_possible_values();
    let values: Vec<String> = values
        .iter()
        .filter(|_| !argument.is_hide_possible_values_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let choices = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
    format!("| `{short}{argument}` | {}{choices} |\n", cell(&help))
}

/// Returns a text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<")
}

/// Writes a page for a command, and those of the commands below it.
fn pages(command: &Command, directory: &Path) -> Result<(), Failure> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
    let file = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render(&mut page).and_then(|()| fs::write(&file, page)).map_err(Failure::io("write", &file))?;
    visible(command).try_for_each(|below| pages(below, directory))
}
