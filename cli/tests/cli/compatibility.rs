//! The table of commands and flags of v0.3.8 in `docs/cli/compatibility.md`.

use std::path::Path;

use crate::environment::declarest;

const TABLE: &str = include_str!("../../../docs/cli/compatibility.md");

/// The texts in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_command_and_flag_of_the_table_exists_and_is_tested() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let rows: Vec<Vec<&str>> = TABLE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split(" | ").collect())
        .collect();
    assert!(rows.len() > 70, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let command = quoted(row[0]).next().unwrap();
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = declarest(&words);
        let usage = format!("Usage: declarest {command}");
        if help.code != 0 || !help.stdout.contains(&usage) {
            wrong.push(format!("{command} is not a command"));
        }
        let known: Vec<&str> = help.stdout.split([' ', ',', '\n', '[', '=']).collect();
        wrong.extend(
            quoted(row[1]).filter(|flag| !known.contains(flag)).map(|flag| format!("{command} {flag}")),
        );
        // The words of a test are quoted one by one, or those of the group precede them in a function.
        let test = std::fs::read_to_string(tests.join(quoted(row[2]).next().unwrap()));
        let last = command.rsplit(' ').next().unwrap();
        if !test.is_ok_and(|test| test.contains(&format!("\"{last}")) || test.contains(&format!(" {last}"))) {
            wrong.push(format!("{command} has no test in {}", row[2]));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
