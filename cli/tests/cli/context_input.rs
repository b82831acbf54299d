//! Input of commands that read documents: its source and its format.

use rstest::rstest;

use crate::environment::Home;

const JSON: &str = r#"{"name": "dev", "repository": {"filesystem": {"baseDir": "/r"}}}"#;
const YAML: &str = "name: dev\nrepository: {filesystem: {baseDir: /r}}\n";

/// Arguments, standard input and the error. The files `a.json`, `a.yaml`, `a.txt` (JSON), `y.txt` (YAML) and
/// `blank.json` exist.
#[rstest]
#[case::json_file(&["-f", "a.json"], "", "")]
#[case::yaml_file(&["--payload", "a.yaml"], "", "")]
#[case::hidden_alias(&["-f", "y.txt", "-i", "yaml"], "", "")]
#[case::unknown_extension_is_json(&["-f", "a.txt"], "", "")]
#[case::the_flag_beats_the_extension(&["-f", "y.txt", "--content-type", "yaml"], "", "")]
#[case::media_type(&["-f", "y.txt", "--content-type", "application/yaml; charset=utf-8"], "", "")]
#[case::standard_input(&[], JSON, "")]
#[case::standard_input_named(&["-f", "-"], JSON, "")]
#[case::yaml_on_standard_input(&["--content-type", "yaml"], YAML, "")]
#[case::an_existing_file_wins(&["-f", "a.json"], "not read at all", "")]
#[case::blank_is_absent(&["-f", "-"], " \n", "input is required: provide --payload <path|-> or stdin")]
#[case::yaml_as_json(&[], YAML, "standard input is not a JSON object; if it is YAML, add --content-type yaml")]
#[case::blank_file(&["-f", "blank.json"], "", "the payload from blank.json is blank")]
#[case::other_type(&["-f", "a.json", "--content-type", "xml"], "", "--content-type xml is not possible here; use json or yaml")]
#[case::unknown_type(&["-f", "a.json", "--content-type", "pdf"], "", "--content-type \"pdf\" is not supported; use json, yaml, xml, hcl, ini, properties, text, binary or a media type of one of them")]
#[case::second_document(&["--content-type", "yaml"], "name: a\n---\nname: b\n", "standard input: cannot decode yaml, line 2, column 1: a second document; there must be exactly one")]
#[case::unknown_key(&[], r#"{"name": "dev", "kind": "x"}"#, "standard input: line 1, column 17: unknown key \"kind\" in the document; use name, repository, managedServer, secretStore, metadata, preferences")]
fn documents(#[case] args: &[&str], #[case] stdin: &str, #[case] error: &str) {
    let home = Home::new();
    home.write("a.json", JSON);
    home.write("a.txt", JSON);
    home.write("a.yaml", YAML);
    home.write("y.txt", YAML);
    home.write("blank.json", " \n");
    let args: Vec<_> = ["context", "update"].iter().chain(args).copied().collect();
    home.write(".declarest/configs/contexts.yaml", &format!("currentContext: dev\ncontexts:\n- {JSON}"));
    let run = home.run_with(&args, &[], stdin);
    assert_eq!(run.stderr.trim_end(), error, "{run}");
    assert_eq!(run.code, if error.is_empty() { 0 } else { 2 });
}

#[test]
fn a_missing_file_is_no_invalid_input() {
    insta::assert_snapshot!(Home::new().run(&["context", "validate", "-f", "none.json"]), @r"
    exit 1
    --- stdout
    --- stderr
    cannot read the payload from none.json: No such file or directory (os error 2)
    ");
}

#[test]
fn input_has_a_limit() {
    let home = Home::new();
    home.write("big.json", &" ".repeat((4 << 20) + 1));
    insta::assert_snapshot!(home.run(&["context", "validate", "-f", "big.json"]), @r"
    exit 2
    --- stdout
    --- stderr
    the payload from big.json is larger than 4 MiB
    ");
}

#[test]
fn validate_takes_contexts_and_catalogues() {
    let home = Home::new();
    assert_eq!(home.run_with(&["context", "validate"], &[], JSON).code, 0);
    let catalogue = format!(r#"{{"currentContext": "dev", "contexts": [{JSON}]}}"#);
    assert_eq!(home.run_with(&["context", "validate"], &[], &catalogue).code, 0);
    let catalogue = format!(r#"{{"currentContext": "prod", "contexts": [{JSON}]}}"#);
    insta::assert_snapshot!(home.run_with(&["context", "validate"], &[], &catalogue), @r#"
    exit 2
    --- stdout
    --- stderr
    standard input: line 1, column 2: currentContext: there is no context "prod"
    "#);
    let basic = r#"{"name": "a", "managedServer": {"http": {"url": "http://a", "auth": {"basic": {"credentialsRef": {"name": "b"}}}}}}"#;
    insta::assert_snapshot!(home.run_with(&["context", "validate"], &[], basic), @r#"
    exit 2
    --- stdout
    --- stderr
    context "a of standard input": managedServer.http.auth.basic.credentialsRef.name: there is no credential "b" under credentials; there is none
    "#);
    assert!(!home.path(".declarest").exists());
}
