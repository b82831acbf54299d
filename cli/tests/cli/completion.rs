use crate::environment::{declarest, declarest_with};

#[test]
fn each_shell_gets_a_script_that_knows_the_commands() {
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
          --ignore-warnings[=<BOOL>]      Do not warn about insecure settings
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
