//! `secret mask`, `resolve`, `normalize` and `detect`.

use rstest::rstest;

use crate::environment::{Home, Run};
use crate::secret_values::{home, run};

fn with_input(home: &Home, args: &[&str], input: &str) -> Run {
    home.run_with(&[&["secret"], args].concat(), &[], input)
}

#[test]
fn resolve_reverses_mask() {
    let home = home();
    let masked = with_input(&home, &["mask"], r#"{"id": 7, "users": [{"password": "p1"}], "apiKey": "42"}"#);
    insta::assert_snapshot!(masked, @r#"
    exit 0
    --- stdout
    {
      "apiKey": "{{secret .}}",
      "id": 7,
      "users": [
        {
          "password": "{{secret .}}"
        }
      ]
    }
    --- stderr
    "#);
    assert_eq!(run(&home, &["list", "-o", "text"]).stdout, "apiKey\nusers/0/password\n");
    insta::assert_snapshot!(with_input(&home, &["resolve"], &masked.stdout), @r#"
    exit 0
    --- stdout
    {
      "apiKey": "42",
      "id": 7,
      "users": [
        {
          "password": "p1"
        }
      ]
    }
    --- stderr
    "#);
}

#[test]
fn normalize_needs_no_store() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/repo}}\n",
    );
    let input = r#"{"a": "{{ secret  . }}", "b": "{{secret db-pass}}", "c": "x {{ secret . }}"}"#;
    insta::assert_snapshot!(with_input(&home, &["normalize"], input), @r#"
    exit 0
    --- stdout
    {
      "a": "{{secret .}}",
      "b": "{{secret \"db-pass\"}}",
      "c": "x {{ secret . }}"
    }
    --- stderr
    "#);
    let root = with_input(&home, &["normalize", "--content-type", "json"], "\"{{secret .}}\"");
    assert_eq!(root.stdout, "\"{{secret .}}\"\n");
}

#[test]
fn detect_needs_no_store() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/repo}}\n",
    );
    home.write("repo/apps/a/resource.json", r#"{"password": "x"}"#);
    assert_eq!(with_input(&home, &["detect"], r#"{"token": "x"}"#).stdout, "[\n  \"/token\"\n]\n");
    let fixed = run(&home, &["detect", "--fix"]);
    assert_eq!(fixed.code, 0, "{fixed}");
    assert!(home.read("repo/apps/a/metadata.yaml").contains("/password"));
    let masked = with_input(&home, &["mask"], r#"{"token": "x"}"#);
    assert_eq!(masked.code, 2, "{masked}");
    assert!(masked.stderr.starts_with("secret provider is not configured"), "{masked}");
}

#[rstest]
#[case::no_input(&["mask"], "", 2, "input is required")]
#[case::type_of_a_secret(&["mask"], r#"{"password": "canary", "token": 1}"#, 2, "the value at \"/token\" is an integer")]
#[case::twice(&["mask"], r#"{"a": {"token": "canary"}, "b": {"token": "y"}}"#, 2, "give each a name of its own")]
#[case::malformed(&["normalize"], r#"{"a": "{{secret x canary}}"}"#, 2, "the value at \"/a\": the placeholder's key has white space")]
#[case::missing(&["resolve"], r#"{"a": "{{secret none}}"}"#, 3, "the payload: cannot read the secret none for \"/a\": secret none not found")]
#[case::fix_without_path(&["detect", "--fix"], r#"{"token": "canary"}"#, 2, "--fix needs the path")]
#[case::path_without_fix(&["detect", "/apps/a"], r#"{"token": "canary"}"#, 2, "add --fix")]
#[case::never_detected(&["detect", "--secret-attribute", "/id"], r#"{"token": "canary"}"#, 2, "--secret-attribute /id was not detected")]
fn refused(#[case] args: &[&str], #[case] input: &str, #[case] code: i32, #[case] message: &str) {
    let home = home();
    let run = with_input(&home, args, input);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(message) && !run.stderr.contains("canary"), "{run}");
    assert!(!home.path("store").exists());
}

fn repository() -> Home {
    let home = home();
    home.write("repo/apps/a/resource.json", r#"{"password": "canary", "token": "t", "id": "a"}"#);
    home.write("repo/apps/b/resource.yaml", "apiKey: '{{secret .}}'\n");
    home.write("repo/apps/c/resource.yaml", "list: [{clientSecret: s}]\n");
    home.write("repo/apps/_/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");
    home
}

#[test]
fn the_repository_is_searched() {
    let home = repository();
    insta::assert_snapshot!(run(&home, &["detect"]), @r#"
    exit 0
    --- stdout
    [
      {
        "LogicalPath": "/apps/a",
        "Attributes": [
          "/password",
          "/token"
        ]
      },
      {
        "LogicalPath": "/apps/c",
        "Attributes": [
          "/list/0/clientSecret"
        ]
      }
    ]
    --- stderr
    "#);
    assert_eq!(run(&home, &["detect", "/apps/b"]).stdout, "[]\n");
    assert!(!home.path("repo/apps/a/metadata.yaml").exists());
}

#[test]
fn what_is_found_is_declared() {
    let home = repository();
    let fixed = run(&home, &["detect", "/apps", "--fix", "--secret-attribute", "/token"]);
    assert_eq!(fixed.code, 0, "{fixed}");
    // The list of a resource replaces that of its collection, and must not lose what it says.
    let metadata = "resource:\n    secretAttributes:\n        - /pin\n        - /token\n";
    assert_eq!(home.read("repo/apps/a/metadata.yaml"), metadata);
    assert!(!home.path("repo/apps/c/metadata.yaml").exists());
    assert_eq!(run(&home, &["detect", "--fix"]).code, 0);
    assert!(home.read("repo/apps/a/metadata.yaml").contains("/password"));
    assert!(home.read("repo/apps/c/metadata.yaml").contains("/list/0/clientSecret"));
}

#[test]
fn payloads_are_searched() {
    let home = repository();
    let input = r#"{"token": "x", "a": {"apiKey": "k"}, "id": "1"}"#;
    insta::assert_snapshot!(with_input(&home, &["detect"], input), @r#"
    exit 0
    --- stdout
    [
      "/a/apiKey",
      "/token"
    ]
    --- stderr
    "#);
    let fixed = with_input(&home, &["detect", "/apps/new", "--fix"], input);
    assert_eq!(fixed.code, 0, "{fixed}");
    assert!(home.read("repo/apps/new/metadata.yaml").contains("/a/apiKey"));
}
