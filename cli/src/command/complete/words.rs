//! Finds what the last word of a command line is: the name of a command or flag, or the value of an argument.

use clap::{Arg, ArgAction, Command};

/// What a word completes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A command, or the first positional argument of the current one.
    Command,
    /// A flag.
    Flag,
    /// The value of the flag with this name.
    Value(String),
    /// The positional argument with this index.
    Positional(usize),
}

/// The command line before its last word.
pub struct Line<'c> {
    /// The command.
    pub command: &'c Command,
    /// The names of the command and its groups, without the name of the program.
    pub names: Vec<String>,
    /// What the last word completes.
    pub wanted: Wanted,
    /// The part of the last word that is completed, without `--flag=`.
    pub word: String,
}

impl<'c> Line<'c> {
    /// Reads the words after the name of the program. The last one is completed.
    pub fn new(root: &'c Command, words: &[String]) -> Self {
        let (last, before) =
            words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
        let (mut command, mut names, mut positionals, mut pending) = (root, Vec::new(), 0, None);
        let mut only_positionals = false;
        for word in before {
            if pending.take().is_some() {
                continue;
            }
            if !only_positionals && word == "--" {
                only_positionals = true;
            } else if !only_positionals && word.starts_with('-') && word.len() > 1 {
                pending = expects_value(root, command, word);
            } else if let Some(below) = command.find_subcommand(word).filter(|_| positionals == 0) {
                names.push(below.get_name().to_owned());
                command = below;
            } else {
                positionals += 1;
            }
        }
        let (wanted, word) = match (pending, last.split_once('=')) {
            (Some(flag), _) => (Wanted::Value(flag), last),
            (None, Some((name, value))) if name.starts_with("--") && !only_positionals => {
                (Wanted::Value(name.trim_start_matches('-').to_owned()), value)
            }
            _ if last.starts_with('-') && !only_positionals => (Wanted::Flag, last),
            _ if positionals == 0 && command.has_subcommands() => (Wanted::Command, last),
            _ => (Wanted::Positional(positionals), last),
        };
        Self { command, names, wanted, word: word.to_owned() }
    }
}

/// Returns the name of the flag in `word` if the next word is its value.
fn expects_value(root: &Command, command: &Command, word: &str) -> Option<String> {
    let takes_next = |flag: &&Arg| {
        matches!(flag.get_action(), ArgAction::Set | ArgAction::Append) && !flag.is_require_equals_set()
    };
    let flags = || command.get_arguments().chain(root.get_arguments()).filter(takes_next);
    let flag = match word.strip_prefix("--") {
        Some(long) => flags().find(|flag| flag.get_long() == Some(long)),
        // Only the last of several short flags can expect the next word.
        None => word.chars().last().and_then(|last| flags().find(|flag| flag.get_short() == Some(last))),
    };
    flag.and_then(|flag| flag.get_long()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn root() -> Command {
        let path = || Arg::new("path").long("path").short('p');
        let get = Command::new("get")
            .arg(path())
            .arg(Arg::new("yes").long("yes").short('y').action(ArgAction::SetTrue))
            .arg(Arg::new("positional"));
        let group = Command::new("resource").subcommand(get);
        Command::new("declarest").arg(Arg::new("context").long("context").short('c')).subcommand(group)
    }

    #[rstest]
    #[case(&[""], "", Wanted::Command)]
    #[case(&["res"], "", Wanted::Command)]
    #[case(&["resource", ""], "resource", Wanted::Command)]
    #[case(&["resource", "get", "/a"], "resource get", Wanted::Positional(0))]
    #[case(&["resource", "get", "/a", "x"], "resource get", Wanted::Positional(1))]
    #[case(&["resource", "get", "--pa"], "resource get", Wanted::Flag)]
    #[case(&["resource", "get", "--path", "/a"], "resource get", Wanted::Value("path".into()))]
    #[case(&["resource", "get", "-yp", "/a"], "resource get", Wanted::Value("path".into()))]
    #[case(&["resource", "get", "--path=/a"], "resource get", Wanted::Value("path".into()))]
    #[case(&["resource", "get", "--yes", "/a"], "resource get", Wanted::Positional(0))]
    #[case(&["-c", "dev", "resource", "get", "/a"], "resource get", Wanted::Positional(0))]
    #[case(&["--context", "resource"], "", Wanted::Value("context".into()))]
    #[case(&["resource", "get", "--", "--pa"], "resource get", Wanted::Positional(0))]
    fn the_last_word(#[case] words: &[&str], #[case] names: &str, #[case] wanted: Wanted) {
        let root = root();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let line = Line::new(&root, &words);
        assert_eq!((line.names.join(" ").as_str(), &line.wanted), (names, &wanted));
    }
}
