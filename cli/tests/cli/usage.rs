use crate::environment::declarest;

#[test]
fn without_arguments_help_is_printed() {
    insta::assert_snapshot!(declarest(&[]), @r"
    exit 0
    --- stdout
    Write, compare and apply desired state from the command line

    Usage: declarest [OPTIONS] <COMMAND>

    Basic Commands:
      init        Create a context and a repository for a server, and import its resources
      import      Save all resources that the server lists to the repository
      context     Manage contexts: repositories, servers and credentials
      repository  Manage the repository of a context: history, remote and uncommitted changes
      resource    Read, compare and change resources
      plan        Show what an apply would create, update and delete, and optionally save the plan
      validate    Check the files of the repository without requests
      secret      Manage secrets in a store, and their placeholders in files
      server      Check and inspect the managed server

    Commands for Clusters:
      contract    Check contracts of services, and compare them with Kubernetes objects
      operator    Show the operator's objects in a cluster, and control its policies

    Other Commands:
      completion  Print a completion script for a shell
      version     Print the version, commit and date of this build
      help        Print this message or the help of the given subcommand(s)

    Options:
      -V, --version  Print version

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

    Environment variables:
      DECLAREST_CONTEXT              Default of --context
      DECLAREST_CONTEXTS_FILE        Default of --contexts-file; otherwise
      ~/.declarest/configs/contexts.yaml
      DECLAREST_CONTEXT_CREDENTIAL_<NAME>_USERNAME, _PASSWORD
                                     Used instead of prompts for the credential <NAME>
      DECLAREST_PROMPT_AUTH_SESSION_ID
                                     Session that prompted credentials are stored for
      DECLAREST_OUTPUT               Default of --output
      DECLAREST_VERBOSE              Default of --verbose, 0 to 3
      DECLAREST_VERBOSE_INSECURE     Default of --verbose-insecure
      DECLAREST_SKIP_RESULT_MESSAGE  Default of --skip-result-message
      DECLAREST_IGNORE_WARNINGS      Default of --ignore-warnings
      DECLAREST_NO_COLOR, NO_COLOR   Default of --no-color
      DECLAREST_PAGER, PAGER         Pager for long text on a terminal; default less
    --- stderr
    ");
}

#[test]
fn help_works_for_every_command() {
    assert_eq!(declarest(&["help"]).to_string(), declarest(&["--help"]).to_string());
    insta::assert_snapshot!(declarest(&["help", "version"]), @r"
    exit 0
    --- stdout
    Print the version, commit and date of this build

    Usage: declarest version [OPTIONS]

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

    Example:
      declarest version -o json
    --- stderr
    ");
}

#[test]
fn an_unknown_command_is_a_syntax_error() {
    insta::assert_snapshot!(declarest(&["versoin"]), @r#"
    exit 1
    --- stdout
    --- stderr
    error: unrecognized subcommand 'versoin'

      tip: a similar subcommand exists: 'version'

    Usage: declarest [OPTIONS] <COMMAND>

    For more information, try '--help'.
    "#);
}

#[test]
fn an_unknown_flag_is_a_syntax_error() {
    insta::assert_snapshot!(declarest(&["version", "--loud"]), @r#"
    exit 1
    --- stdout
    --- stderr
    error: unexpected argument '--loud' found

    Usage: declarest version [OPTIONS]

    For more information, try '--help'.
    "#);
}
