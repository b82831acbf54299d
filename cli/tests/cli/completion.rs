use std::collections::BTreeSet;

use crate::environment::{declarest, declarest_with};

#[test]
fn the_script_of_each_shell_completes_the_commands() {
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef declarest"),
        ("fish", "complete -c declarest"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let run = declarest_with(&["completion", shell], &[("DECLAREST_OUTPUT", "json")]);
        assert_eq!(run.code, 0, "{shell}: {run}");
        assert!(run.stdout.contains(mark), "{shell} lacks {mark}");
        assert!(run.stdout.contains("declarest __complete"), "{shell} does not ask for candidates");
        assert_eq!(run.stderr, "");
    }
}

/// The parts of a script of PowerShell without comments: the text outside of quotes, and the strings.
fn parts(script: &str) -> (String, Vec<String>) {
    let (mut code, mut strings, mut quoted) = (String::new(), Vec::new(), None);
    for line in script.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for character in line.chars().chain(['\n']) {
            match (&mut quoted, character) {
                (None, '\'' | '"') => quoted = Some((character, String::new())),
                (None, _) => code.push(character),
                (Some((quote, text)), _) if *quote == character => {
                    strings.push(std::mem::take(text));
                    quoted = None;
                    code.push(' ');
                }
                (Some((_, text)), _) => text.push(character),
            }
        }
        assert!(quoted.is_none(), "a string does not end in its line: {line}");
    }
    (code, strings)
}

/// PowerShell is not available to the tests, so they check the text of its script.
#[test]
fn the_script_for_powershell_follows_the_rules_of_its_language() {
    let script = declarest(&["completion", "powershell"]).stdout;
    let (code, strings) = parts(&script);
    let mut open = Vec::new();
    for character in code.chars() {
        match character {
            '(' | '{' | '[' => open.push(character),
            ')' => assert_eq!(open.pop(), Some('('), "{code}"),
            '}' => assert_eq!(open.pop(), Some('{'), "{code}"),
            ']' => assert_eq!(open.pop(), Some('['), "{code}"),
            _ => {}
        }
    }
    assert_eq!(open, Vec::<char>::new(), "{code}");

    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let names = |sigil: char| {
        let after = code.split(sigil).skip(1).map(move |rest| rest.split(|c| !is_name(c)).next().unwrap());
        after.filter(|name| !name.is_empty()).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let parameters = code.split_once("param(").unwrap().1.split_once(')').unwrap().0;
    let assigned =
        |name: &str| code.contains(&format!("${name} = ")) || code.contains(&format!("{{ ${name} = "));
    let automatic = ["_", "null", "Matches", "PSVersionTable", "PSNativeCommandArgumentPassing"];
    let unknown: Vec<String> = names('$')
        .into_iter()
        .filter(|name| !parameters.contains(&format!("${name}")) && !assigned(name))
        .filter(|name| !automatic.contains(&name.as_str()))
        .collect();
    assert_eq!(unknown, Vec::<String>::new(), "variables that are not set");

    let words = code.split(|character: char| !is_name(character) && character != '-');
    let is_command =
        |word: &&str| word.split('-').count() == 2 && word.starts_with(|c: char| c.is_ascii_uppercase());
    let commands: BTreeSet<&str> = words.filter(is_command).collect();
    let known = ["ForEach-Object", "Register-ArgumentCompleter", "Select-Object", "Where-Object"];
    assert_eq!(commands.into_iter().collect::<Vec<_>>(), known);
    // Windows PowerShell 5.1 does not have these operators.
    for operator in ["&&", "||", "??", "?.", " ? "] {
        assert!(!code.contains(operator), "{operator} needs PowerShell 7");
    }
    // Names of a server are quoted, unless they have none of the characters of the language.
    assert!(strings.contains(&r"^[\w/:=.-]+$".to_owned()), "{strings:?}");
    assert!(code.contains("EscapeSingleQuotedStringContent($text)"), "{code}");
    // Arguments are passed as a list, so that spaces and quotes in them need no escapes.
    assert!(code.contains("& declarest __completeNoDesc @words 2>$null"), "{code}");
    assert!(strings.contains(&r"^:\d+$".to_owned()), "{strings:?}");
}

#[test]
fn scripts_have_no_other_format() {
    insta::assert_snapshot!(declarest(&["completion", "bash", "-o", "json"]), @r#"
    exit 2
    --- stdout
    --- stderr
    "declarest completion bash" prints text only; remove --output json
    "#);
}

#[test]
fn without_a_shell_help_is_printed() {
    insta::assert_snapshot!(declarest(&["completion"]), @r"
    exit 0
    --- stdout
    Print a completion script for a shell

    Usage: declarest completion [OPTIONS] <COMMAND>

    Commands:
      bash        Print the script for bash; load it with: source <(declarest completion bash)
      zsh         Print the script for zsh; load it with: source <(declarest completion zsh)
      fish        Print the script for fish; load it with: declarest completion fish | source
      powershell  Print the script for PowerShell; load it with: declarest completion powershell |
                  Out-String | Invoke-Expression
      help        Print this message or the help of the given subcommand(s)

    Global Flags:
      -c, --context <NAME>                Name of the context
          --contexts-file <FILE>          Catalogue of contexts, relative to the working directory
      -o, --output <FORMAT>               Format of the result: auto, text, json, yaml, wide, name,
                                          ndjson, jq=EXPRESSION or jsonpath=TEMPLATE
      -v, --verbose[=<N>]                 Print more: 1 results of quiet commands, 2 requests and
                                          timing, 3 headers and bodies
          --verbose-insecure[=<BOOL>]     Show credentials in the output of --verbose
      -n, --skip-result-message[=<BOOL>]  Do not print a final line with success or failure
          --ignore-warnings[=<BOOL>]      Do not print warnings; results are still printed
          --no-input[=<BOOL>]             Do not prompt, and read standard input only if an argument
                                          names it
          --no-color[=<BOOL>]             Do not use colours
          --progress <FORM>               How to show progress on standard error: as a bar on a
                                          terminal, as lines, or not [possible values: auto, plain, off]
          --timeout <TIME>                Time limit of each attempt of a request to the managed server,
                                          such as 5s or 2m; default is 30s
          --retries <N>                   How often a request to the managed server is repeated if that
                                          is safe; default is 3
          --set <KEY=VALUE>               Override a value of the context, such as
                                          managedServer.http.url=URL; may be repeated
          --no-pager[=<BOOL>]             Do not show long text in a pager
          --error-format <FORMAT>         How to print failures: as text, or as JSON on one line
                                          [possible values: text, json]
      -h, --help                          Print help
    --- stderr
    ");
}
