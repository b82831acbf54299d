//! One example for each command, as its help shows it.

use std::fmt::Write as _;

use clap::Command;

/// The command without `declarest`, and the rest of the line.
const EXAMPLES: &[(&str, &str)] = &[
    ("init", "shops --server https://shop.example --openapi https://shop.example/openapi.json"),
    ("context print-template", "> contexts.yaml"),
    ("context init", "dev"),
    ("context add", "dev -f context.yaml --set-current"),
    ("context edit", "dev --editor nano"),
    ("context update", "-f context.yaml"),
    ("context validate", "-f context.yaml"),
    ("context use", "dev"),
    ("context delete", "dev"),
    ("context rename", "dev test"),
    ("context list", "-o json"),
    ("context current", ""),
    ("context show", "dev"),
    ("context resolve", "dev --set managedServer.http.url=https://test.example"),
    ("context check", "dev"),
    ("context clean", "--credentials-in-session"),
    ("context session-hook bash", ">> ~/.bashrc"),
    ("context session-hook zsh", ">> ~/.zshrc"),
    ("context migrate", ""),
    ("repository init", ""),
    ("repository status", "--offline"),
    ("repository tree", ""),
    ("repository refresh", ""),
    ("repository commit", "-m \"Raise the limit of acme\""),
    ("repository push", ""),
    ("repository reset", "--hard"),
    ("repository clean", ""),
    ("repository check", ""),
    ("repository history", "--oneline --max-count 10"),
    ("resource get", "/customers/acme"),
    ("resource list", "/customers -o name"),
    ("resource save", "/customers/acme -m \"Save acme\""),
    ("resource apply", "/customers -r --dry-run"),
    ("resource create", "/customers/acme -f acme.json"),
    ("resource update", "/customers/acme -f tier=gold"),
    ("resource delete", "/customers/acme --yes"),
    ("resource diff", "/customers -r --exit-code"),
    ("resource copy", "/customers/acme /customers/beta --override-attributes /name=Beta"),
    ("resource edit", "/customers/acme"),
    ("resource explain", "/customers/acme"),
    ("resource describe", "/customers/acme"),
    ("resource template", "/customers/acme -f acme.json"),
    ("resource request get", "/customers/acme -H \"Accept-Language: en\""),
    ("resource request head", "/customers/acme"),
    ("resource request options", "/customers"),
    ("resource request post", "/customers -f '{\"id\": \"acme\"}'"),
    ("resource request put", "/customers/acme -f acme.json"),
    ("resource request patch", "/customers/acme -f '{\"tier\": \"gold\"}'"),
    ("resource request delete", "/customers/acme --yes"),
    ("resource request trace", "/customers"),
    ("resource request connect", "/customers"),
    ("resource metadata get", "/customers/acme"),
    ("resource metadata resolve", "/customers/acme"),
    ("resource metadata set", "/customers/_ -f metadata.json"),
    ("resource metadata unset", "/customers/_"),
    ("resource metadata edit", "/customers/_"),
    ("resource metadata render", "/customers/acme update"),
    ("resource metadata infer", "/customers/ --apply"),
    ("resource defaults get", "/customers/acme"),
    ("resource defaults edit", "/customers/"),
    ("resource defaults config get", "/customers/"),
    ("resource defaults config edit", "/customers/"),
    ("resource defaults profile get", "/customers/ trial"),
    ("resource defaults profile edit", "/customers/ trial"),
    ("resource defaults profile delete", "/customers/ trial"),
    ("resource defaults infer", "/customers/ --save"),
    ("secret init", ""),
    ("secret set", "/customers/acme apiToken --from-file token.txt"),
    ("secret get", "/customers/acme apiToken"),
    ("secret list", "/customers -r"),
    ("secret delete", "/customers/acme apiToken"),
    ("secret detect", "/customers --fix"),
    ("secret mask", "-f acme.json"),
    ("secret resolve", "-f acme.json"),
    ("secret normalize", "-f acme.json"),
    ("import", ""),
    ("plan", "/customers --out plan.json"),
    ("validate", "--dir . --report github"),
    ("server get base-url", ""),
    ("server get token-url", ""),
    ("server get access-token", ""),
    ("server check", ""),
    ("contract validate", "pacto.yaml"),
    ("contract verify", "--server shop -n team"),
    ("operator status", "-A --watch"),
    ("operator sync", "shops --wait"),
    ("operator suspend", "shops"),
    ("operator resume", "shops"),
    ("completion bash", "> ~/.local/share/bash-completion/completions/declarest"),
    ("completion zsh", "> ~/.zfunc/_declarest"),
    ("completion fish", "> ~/.config/fish/completions/declarest.fish"),
    ("completion powershell", ">> $PROFILE"),
    ("version", "-o json"),
];

/// The commands of a group in the help of the root, which lists all others under "Other Commands".
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Basic Commands",
        &["init", "import", "context", "repository", "resource", "plan", "validate", "secret", "server"],
    ),
    ("Commands for Clusters", &["contract", "operator"]),
];

/// Adds to the help of each command its example.
pub fn added(root: Command) -> Command {
    below(root, "")
}

fn below(command: Command, words: &str) -> Command {
    let example = EXAMPLES.iter().find(|(words_of, _)| !words.is_empty() && *words_of == words);
    let command = match example {
        Some((words, rest)) => {
            command.after_help(format!("Example:\n  {}", format!("declarest {words} {rest}").trim_end()))
        }
        None => command,
    };
    command.mut_subcommands(|subcommand| {
        let words = format!("{words} {}", subcommand.get_name());
        below(subcommand, words.trim())
    })
}

/// Groups the commands in the help of the root.
pub fn grouped(root: Command) -> Command {
    let mut template = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        let _ = writeln!(template, "\n{heading}:");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {:10}  {about}", command.get_name());
        }
    }
    template.push_str("\n{all-args}{after-help}");
    let listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let root = root.mut_subcommands(|command| {
        let hide = listed(command.get_name()) || command.is_hide_set();
        command.hide(hide)
    });
    root.subcommand_help_heading("Other Commands").help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parser;

    /// The words of each command without commands below it.
    fn leaves(command: &Command, words: &str, found: &mut Vec<String>) {
        let mut visible = command.get_subcommands().filter(|below| !below.is_hide_set()).peekable();
        if visible.peek().is_none() {
            found.push(words.to_owned());
        }
        for below in visible {
            leaves(below, format!("{words} {}", below.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_command_has_one_example() {
        let mut commands = Vec::new();
        leaves(&parser(), "", &mut commands);
        let mut examples: Vec<&str> = EXAMPLES.iter().map(|(words, _)| *words).collect();
        commands.sort();
        examples.sort_unstable();
        assert_eq!(commands, examples);
    }

    /// Returns the words of a line, as a shell without expansions reads them, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote, mut open) = (Vec::<String>::new(), None, false);
        for letter in line.split(" >").next().unwrap_or_default().chars() {
            match (letter, quote) {
                ('"' | '\'', None) => quote = Some(letter),
                (letter, Some(end)) if letter == end => quote = None,
                (' ', None) => open = false,
                _ if open => words.last_mut().unwrap().push(letter),
                _ => {
                    words.push(letter.to_string());
                    open = true;
                }
            }
        }
        words
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        for (command, rest) in EXAMPLES {
            let line = format!("declarest {command} {rest}");
            let error = parser().try_get_matches_from(words(&line)).err();
            assert!(error.is_none(), "{line}: {}", error.map(|error| error.to_string()).unwrap_or_default());
        }
    }
}
