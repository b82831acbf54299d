//! `secret mask`, `resolve`, `normalize` and `detect`.

use rstest::rstest;
use serde_json::{Value, json};

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

/// The first payload would be resolved with the password of the second one.
#[test]
fn mask_does_not_replace_the_secrets_of_another_payload() {
    let home = home();
    let mask = |flags: &[&str], password: &str| {
        with_input(&home, &[&["mask"], flags].concat(), &json!({"password": password}).to_string())
    };
    for _ in 0..2 {
        assert_eq!(mask(&[], "first").code, 0);
    }
    let again = mask(&[], "second");
    let message = "the store has another value for the secret password, which an earlier payload may refer to; replace it with \
                   --force, or store this value under another key with \"declarest secret set\" and write {{secret \"KEY\"}} in \
                   the payload";
    assert!(again.code == 5 && again.stderr.contains(message), "{again}");
    assert_eq!(run(&home, &["get", "password"]).stdout.trim(), "first");
    assert_eq!(mask(&["--force"], "second").code, 0);
    assert_eq!(run(&home, &["get", "password"]).stdout.trim(), "second");
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
    let root = with_input(&home, &["normalize"], "\"{{ secret . }}\"");
    assert_eq!(root.stdout, "\"{{secret .}}\"\n");
}

#[rstest]
#[case::implicit("{{secret .}}", Some("{{secret .}}"))]
#[case::spaces("{{ secret  . }}", Some("{{secret .}}"))]
#[case::outside(" {{secret .}} ", Some("{{secret .}}"))]
#[case::bare("{{secret db-pass}}", Some("{{secret \"db-pass\"}}"))]
#[case::quoted("{{secret \"db pass\"}}", Some("{{secret \"db pass\"}}"))]
#[case::escaped("{{secret \"a\\u0022\\\\\"}}", Some("{{secret \"a\\\"\\\\\"}}"))]
#[case::dot("{{secret \".\"}}", Some("{{secret \".\"}}"))]
#[case::within("x {{secret .}}", Some("x {{secret .}}"))]
#[case::other_word("{{secrets .}}", Some("{{secrets .}}"))]
#[case::no_space("{{secret.}}", Some("{{secret.}}"))]
#[case::no_key("{{secret}}", None)]
#[case::two_keys("{{secret a b}}", None)]
#[case::open("{{secret \"a}}", None)]
#[case::empty("{{secret \"\"}}", None)]
#[case::absolute("{{secret /a}}", None)]
#[case::absolute_and_quoted("{{secret \"/a\"}}", None)]
fn texts_are_placeholders_plain_or_wrong(#[case] text: &str, #[case] expected: Option<&str>) {
    // Names are never looked at.
    let payload = |text: &str| json!({"a": [{"{{secret}}": text}]});
    let run = with_input(&home(), &["normalize"], &payload(text).to_string());
    let printed = serde_json::from_str::<Value>(&run.stdout).ok();
    assert_eq!(printed, expected.map(payload), "{run}");
    assert_eq!(run.code, if expected.is_some() { 0 } else { 2 }, "{run}");
    assert!(
        expected.is_some() || run.stderr.contains("the value at \"/a/0/{{secret}}\": the placeholder"),
        "{run}"
    );
}

/// A payload without a path refers to keys as they are, the payload of a resource to keys below its path.
#[test]
fn keys_are_those_of_the_place() {
    let home = home();
    for (key, value) in [
        ("/db/main:/users/0/pw", "of the place"),
        ("/db/main:ci", "of the resource"),
        ("/certs/a:.", "\"as a whole\""),
        ("/certs/b:k", "\"as a whole, too\""),
        ("users/0/pw", "bare, of the place"),
        ("ci", "bare"),
    ] {
        assert_eq!(run(&home, &["set", key, value]).code, 0);
    }
    let payload = r#"{"users": [{"pw": "{{secret .}}"}], "tok": "{{secret ci}}"}"#;
    home.write("repo/db/main/resource.json", payload);
    home.write("repo/certs/a/resource.json", "\"{{secret .}}\"");
    home.write("repo/certs/b/resource.json", "\"{{secret k}}\"");
    let printed = |run: Run| {
        assert_eq!(run.code, 0, "{run}");
        serde_json::from_str::<Value>(&run.stdout).unwrap()
    };
    let shown = |path: &str| {
        printed(
            home.run(&["resource", "get", path, "--source", "repository", "--show-secrets", "-o", "json"]),
        )
    };
    assert_eq!(shown("/db/main"), json!({"users": [{"pw": "of the place"}], "tok": "of the resource"}));
    assert_eq!((shown("/certs/a"), shown("/certs/b")), (json!("as a whole"), json!("as a whole, too")));
    let bare = json!({"users": [{"pw": "bare, of the place"}], "tok": "bare"});
    assert_eq!(printed(with_input(&home, &["resolve"], payload)), bare);
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
#[case::twice(&["mask"], r#"{"a": {"token": "canary"}, "b": {"token": "y"}}"#, 2, "give them different names")]
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
    // What the collection declares needs no document of the resource.
    home.write("repo/keys/_/metadata.yaml", "resource: {secretAttributes: [/password, /pin]}");
    home.write("repo/keys/k/resource.json", r#"{"password": "x"}"#);
    assert_eq!(run(&home, &["detect", "/keys", "--fix"]).code, 0);
    assert!(!home.path("repo/keys/k/metadata.yaml").exists());
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
