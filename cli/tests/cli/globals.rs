//! Global flags and their variables.

use rstest::rstest;

use crate::environment::{Home, declarest, declarest_with};
use crate::world::World;

const TWO: &str = "currentContext: a\ncontexts:\n- {name: a, repository: {filesystem: {baseDir: /a}}}\n\
                   - {name: b, repository: {filesystem: {baseDir: /b}}}\n- {name: c, repository: {filesystem: {baseDir: /c}}}\n";

#[rstest]
#[case(&[], "", "a\n")]
#[case(&[], "b", "b\n")]
#[case(&[], " b ", "b\n")]
#[case(&[], "  ", "a\n")]
#[case(&["-c", "c"], "b", "c\n")]
#[case(&["-cc"], "b", "c\n")]
#[case(&["-c=c"], "b", "c\n")]
#[case(&["--context", "c"], "", "c\n")]
#[case(&["--context=c"], "", "c\n")]
fn the_context_is_chosen_by_flag_variable_catalogue(
    #[case] flags: &[&str],
    #[case] variable: &str,
    #[case] expected: &str,
) {
    let home = Home::with_catalogue(TWO);
    let after: Vec<_> = ["context", "current", "-o", "text"].iter().chain(flags).copied().collect();
    let before: Vec<_> = flags.iter().chain(&["context", "current", "-o", "text"]).copied().collect();
    for args in [before, after] {
        let run = home.run_with(&args, &[("DECLAREST_CONTEXT", variable)], "");
        assert_eq!(run.stdout, expected, "{run}");
    }
}

/// Exit codes: success, syntax, a missing file, validation, not found.
#[rstest]
#[case(&["version"], 0)]
#[case(&["context"], 0)]
#[case(&["help", "context"], 0)]
#[case(&["context", "list", "--help"], 0)]
#[case(&["nonsense"], 1)]
#[case(&["context", "nonsense"], 1)]
#[case(&["version", "extra"], 1)]
#[case(&["version", "--verbose=4"], 1)]
#[case(&["version", "--no-color=perhaps"], 1)]
#[case(&["context", "validate", "-f", "none.yaml"], 1)]
#[case(&["version", "-o", "xml"], 2)]
#[case(&["context", "use", "-o", "xml"], 2)]
#[case(&["context", "use"], 2)]
#[case(&["context", "use", "none"], 3)]
#[case(&["context", "check"], 3)]
#[case(&["context", "init", "-c", "none"], 3)]
fn exit_codes(#[case] args: &[&str], #[case] code: i32) {
    let run = declarest(args);
    assert_eq!(run.code, code, "{run}");
    assert_eq!(run.stderr.is_empty(), code == 0, "{run}");
    assert!(!run.stderr.contains("[ERROR]"), "these commands have no last line: {run}");
}

#[rstest]
#[case("repo")]
#[case("config")]
#[case("generic")]
#[case("metadata")]
fn old_names_are_not_commands(#[case] name: &str) {
    assert_eq!(declarest(&[name]).code, 1);
}

#[rstest]
#[case("DECLAREST_VERBOSE", "loud")]
#[case("DECLAREST_IGNORE_WARNINGS", "perhaps")]
#[case("DECLAREST_NO_COLOR", "")]
#[case("DECLAREST_NO_STATUS", "2")]
fn variables_that_do_not_parse_are_ignored(#[case] name: &str, #[case] value: &str) {
    assert_eq!(declarest_with(&["version", "-o", "text"], &[(name, value)]).code, 0);
}

#[test]
fn the_old_debug_flag_is_hidden_and_works() {
    assert_eq!(declarest(&["version", "-d"]).code, 0);
    assert!(!declarest(&["--help"]).stdout.contains("--debug"));
}

/// A relative path of the flag is in the working directory. That of the variable is below the home directory.
#[test]
fn a_catalogue_by_flag() {
    let home = Home::new();
    home.write(
        "other.yaml",
        "currentContext: here\ncontexts: [{name: here, repository: {filesystem: {baseDir: /r}}}]\n",
    );
    let file = home.path("other.yaml");
    let variables = [("DECLAREST_CONTEXTS_FILE", "/nonexistent")];
    for flag in ["other.yaml", "./other.yaml", "~/other.yaml", file.to_str().unwrap()] {
        let run =
            home.run_with(&["context", "current", "-o", "text", "--contexts-file", flag], &variables, "");
        assert_eq!((run.code, run.stdout.as_str()), (0, "here\n"), "{flag}: {run}");
    }
}

#[rstest]
#[case::default(&[], 4)]
#[case::none(&["--retries", "0"], 1)]
#[case::one(&["--retries=1"], 2)]
fn retries(#[case] flags: &[&str], #[case] requests: usize) {
    let world = World::new(&["/shops"], &[]);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    world.server.fail(crate::rest_server::Matcher::new("GET", "/shops/rio"), 503, 100);
    let run = world.run(&[&["resource", "get", "/shops/rio"], flags].concat());
    assert_eq!(run.code, 6, "{run}");
    assert_eq!(world.server.counts().of("GET", "/shops/rio"), requests);
}

#[test]
fn a_value_of_the_context_is_overridden_for_one_run() {
    let (world, other) = (World::new(&["/shops"], &[]), World::new(&["/shops"], &[]));
    other.live("/shops/rio", r#"{"id": "rio"}"#);
    let url = format!("managedServer.http.url={}", other.server.url());
    let run = world.run(&["resource", "get", "/shops/rio", "--set", &url]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.run(&["--set", &url, "resource", "get", "/shops/rio"]).code, 0);
    assert_eq!(world.server.log().len(), 0);
    let run = world.run(&["resource", "get", "/shops/rio", "--set", "managedServer.name=x"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("managedServer.name") && run.stderr.contains("the keys are"), "{run}");
    let run = world.run(&["--set", &url, "resource", "get", "/shops/rio", "--set", "metadata.baseDir=/x"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("either before or after the command"), "{run}");
    assert_eq!(world.server.log().len(), 0);
}
