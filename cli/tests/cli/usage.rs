use crate::environment::declarest;

#[test]
fn without_arguments_help_is_printed() {
    insta::assert_snapshot!(declarest(&[]), @r#"
    exit 0
    --- stdout
    Author, compare and apply desired state by hand

    Usage: declarest [OPTIONS] <COMMAND>

    Commands:
      completion  Print a completion script for a shell
      version     Print the version, commit and date of this build
      help        Print this message or the help of the given subcommand(s)

    Global Flags:
      -o, --output <FORMAT>  Format of the result: auto, text, json or yaml
      -h, --help             Print help

    Environment variables:
      DECLAREST_OUTPUT  Default of --output
    --- stderr
    "#);
}

#[test]
fn help_knows_every_command() {
    assert_eq!(declarest(&["help"]).to_string(), declarest(&["--help"]).to_string());
    insta::assert_snapshot!(declarest(&["help", "version"]), @r#"
    exit 0
    --- stdout
    Print the version, commit and date of this build

    Usage: declarest version [OPTIONS]

    Global Flags:
      -o, --output <FORMAT>  Format of the result: auto, text, json or yaml
      -h, --help             Print help
    --- stderr
    "#);
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
