//! Secrets on their way into the repository and back: `resource save` and `resource get --show-secrets`.

use rstest::rstest;

use crate::world::World;

fn world(files: &[(&str, &str)]) -> World {
    World::with_store(&["/apps"], files)
}

fn secrets(world: &World) -> Vec<(String, String)> {
    let keys = world.run(&["secret", "list", "-o", "text"]).stdout;
    let value = |key: &str| world.run(&["secret", "get", key]).stdout.trim_end().to_owned();
    keys.lines().map(|key| (key.to_owned(), value(key))).collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

const DECLARED: (&str, &str) = ("apps/a/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");
const PAYLOAD: &str = r#"{"apiKey": "k1", "retryToken": "r1", "pin": "0420"}"#;

#[test]
fn guards_come_before_every_write() {
    let world = world(&[DECLARED]);
    insta::assert_snapshot!(world.run_with(&["resource", "save", "/apps/a"], PAYLOAD), @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: potential plaintext secrets detected in /apps/a: /apiKey, /retryToken; --secret-attributes keeps them in the secret store, --allow-plaintext saves them in plain text.
    ");
    let listed = world.run_with(&["resource", "save", "/apps/a", "--secret-attributes=/apiKey"], PAYLOAD);
    assert!(listed.stderr.contains("detected in /apps/a: /retryToken; "), "{listed}");
    let unknown = world.run_with(&["resource", "save", "/apps/a", "--secret-attributes=/name"], PAYLOAD);
    assert!(unknown.stderr.contains("names /name, which neither looks like a secret"), "{unknown}");
    assert_eq!(world.declared("apps/a/resource.json"), None);
    assert_eq!(world.declared("apps/a/metadata.yaml").as_deref(), Some(DECLARED.1));
    assert!(!world.home.path("secrets.json").exists());
}

#[test]
fn likely_secrets_are_kept_and_shown_again() {
    let world = world(&[DECLARED]);
    let saved = world.run_with(&["resource", "save", "/apps/a", "--secret-attributes"], PAYLOAD);
    assert_eq!(saved.to_string(), "exit 0\n--- stdout\n--- stderr\n[OK] command executed successfully.\n");
    insta::assert_snapshot!(world.declared("apps/a/resource.json").unwrap(), @r#"
    {
      "apiKey": "{{secret .}}",
      "pin": "{{secret .}}",
      "retryToken": "{{secret .}}"
    }
    "#);
    insta::assert_snapshot!(world.declared("apps/a/metadata.yaml").unwrap(), @r"
    resource:
        secretAttributes:
            - /apiKey
            - /pin
            - /retryToken
    ");
    let expected =
        [pair("/apps/a:/apiKey", "k1"), pair("/apps/a:/pin", "0420"), pair("/apps/a:/retryToken", "r1")];
    assert_eq!(secrets(&world), expected);
    let get = ["resource", "get", "/apps/a", "--source", "repository"];
    let masked = world.run(&get);
    assert!(masked.stdout.contains("{{secret .}}") && !masked.stdout.contains("0420"), "{masked}");
    insta::assert_snapshot!(world.run(&[&get[..], &["--show-secrets"]].concat()), @r#"
    exit 0
    --- stdout
    {
      "apiKey": "k1",
      "pin": "0420",
      "retryToken": "r1"
    }
    --- stderr
    "#);
}

#[test]
fn declared_secrets_are_kept_whatever_is_allowed() {
    let world = world(&[DECLARED]);
    let saved = world.run_with(&["resource", "save", "/apps/a", "--allow-plaintext"], PAYLOAD);
    assert_eq!(saved.code, 0, "{saved}");
    assert_eq!(secrets(&world), [pair("/apps/a:/pin", "0420")]);
    let file = world.declared("apps/a/resource.json").unwrap();
    assert!(file.contains("k1") && !file.contains("0420"), "{file}");
    assert_eq!(world.declared("apps/a/metadata.yaml").as_deref(), Some(DECLARED.1));
}

#[test]
fn items_are_kept_by_their_own_paths() {
    let world = world(&[]);
    world.live("/apps/a", r#"{"id": "a", "apiKey": "k1"}"#);
    world.live("/apps/b", r#"{"id": "b", "apiKey": "k2"}"#);
    let saved = world.run(&["resource", "save", "/apps/", "--secret-attributes"]);
    assert_eq!(saved.code, 0, "{saved}");
    assert_eq!(secrets(&world), [pair("/apps/a:/apiKey", "k1"), pair("/apps/b:/apiKey", "k2")]);
    let metadata = world.declared("apps/_/metadata.yaml").unwrap();
    assert_eq!(metadata, "resource:\n    secretAttributes:\n        - /apiKey\n");
    let shown = world.run(&["resource", "get", "/apps/", "--source", "repository", "--show-secrets"]);
    assert!(shown.stdout.contains("k1") && shown.stdout.contains("k2"), "{shown}");
    let remote = world.run(&["resource", "get", "/apps/a"]);
    assert!(!remote.stdout.contains("k1"), "{remote}");
    let remote = world.run(&["resource", "get", "/apps/a", "--show-secrets"]);
    assert!(remote.stdout.contains("k1"), "{remote}");
}

#[test]
fn whole_resources_are_kept() {
    let world = world(&[]);
    let saved = world
        .run_with(&["resource", "save", "/apps/a", "--secret", "--content-type", "yaml"], "a: {b: hush}");
    assert_eq!(saved.code, 0, "{saved}");
    assert_eq!(world.declared("apps/a/resource.yaml").unwrap().trim(), "'{{secret .}}'");
    assert_eq!(world.declared("apps/a/metadata.yaml").as_deref(), Some("resource:\n    secret: true\n"));
    assert_eq!(secrets(&world), [pair("/apps/a:.", "a:\n    b: hush")]);
    let get = ["resource", "get", "/apps/a", "--source", "repository"];
    assert_eq!(world.run(&get).stdout.trim(), "{{secret .}}");
    insta::assert_snapshot!(world.run(&[&get[..], &["--show-secrets"]].concat()), @r#"
    exit 0
    --- stdout
    {
      "a": {
        "b": "hush"
      }
    }
    --- stderr
    "#);
    // What is a secret as a whole stays one.
    let again = world.run_with(&["resource", "save", "/apps/a", "--force"], "{\"a\": \"new\"}");
    assert_eq!(again.code, 0, "{again}");
    assert!(world.run(&["secret", "get", "/apps/a:."]).stdout.contains("new"));
}

/// Secrets are stored first, so that a file never refers to a missing secret.
#[rstest]
#[case::attributes(&["--secret-attributes"])]
#[case::whole(&["--secret"])]
#[case::declared(&["--allow-plaintext"])]
fn a_store_that_fails_leaves_files_and_metadata_as_they_are(#[case] flags: &[&str]) {
    let world = world(&[DECLARED]);
    world.store_secret("other", "value");
    let other_key = world.home.catalogue().replace("0123456789abcdef0", "fedcba98765432100");
    world.home.write(".declarest/configs/contexts.yaml", &other_key);
    let saved = world.run_with(&[&["resource", "save", "/apps/a"], flags].concat(), PAYLOAD);
    assert_eq!(saved.code, 4, "{saved}");
    assert!(saved.stderr.contains("cannot decrypt secret file <home>/secrets.json"), "{saved}");
    assert_eq!(world.declared("apps/a/resource.json"), None);
    assert_eq!(world.declared("apps/a/metadata.yaml").as_deref(), Some(DECLARED.1));
}

/// Commands that read the repository, save, or change metadata keep placeholders, and need no secret store.
#[rstest]
#[case::get(&["resource", "get", "/apps/a", "--source", "repository"], "")]
#[case::list(&["resource", "list", "/apps", "--source", "repository"], "")]
#[case::save(&["resource", "save", "/apps/a", "--force"], r#"{"tok": "{{secret ci}}"}"#)]
#[case::metadata(&["resource", "metadata", "resolve", "/apps/a"], "")]
#[case::detect(&["secret", "detect"], "")]
fn placeholders_stay_without_a_store(#[case] args: &[&str], #[case] input: &str) {
    let world = World::new(&["/apps"], &[("apps/a/resource.json", r#"{"tok": "{{secret ci}}"}"#)]);
    let run = world.run_with(args, input);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("apps/a/resource.json").unwrap().contains("{{secret ci}}"));
    assert!(args[1] != "get" || run.stdout.contains("{{secret ci}}"), "{run}");
}

#[test]
fn lists_can_be_one_secret() {
    let world = world(&[]);
    let saved = world.run_with(&["resource", "save", "/apps/a", "--secret"], "[{\"id\": \"x\"}]");
    assert_eq!(saved.code, 0, "{saved}");
    assert_eq!(world.declared("apps/a/resource.json").unwrap().trim(), "\"{{secret .}}\"");
}

#[test]
fn secrets_in_arrays_are_warned_about() {
    let world = world(&[]);
    let save = ["resource", "save", "/apps/a", "--secret-attributes"];
    let saved = world.home.run_with(&save, &[], r#"{"users": [{"password": "p"}]}"#);
    assert!(saved.stderr.contains("[WARNING] /apps/a: the key of the secret /users/0/password"), "{saved}");
}

#[test]
fn a_secret_that_is_not_there_cannot_be_shown() {
    let world = world(&[("apps/a/resource.json", r#"{"tok": "{{secret ci}}"}"#)]);
    let shown = world.run(&["resource", "get", "/apps/a", "--source", "repository", "--show-secrets"]);
    assert_eq!(shown.code, 3, "{shown}");
    assert!(shown.stderr.contains("/apps/a: cannot read the secret apps/a:ci for \"/tok\""), "{shown}");
}

/// The server masks the secret, and the store has its value.
#[rstest]
#[case::attribute(
    "resource: {secretAttributes: [/pin]}",
    r#"{"id": "ana", "pin": "***"}"#,
    "/users/ana:/pin"
)]
#[case::in_an_array(
    "resource: {secretAttributes: [/keys/0/pin]}",
    r#"{"id": "ana", "keys": [{"pin": "***"}]}"#,
    "/users/ana:/keys/0/pin"
)]
#[case::in_a_text(
    "resource: {secretAttributes: [/url]}",
    r#"{"id": "ana", "url": "postgres://ana:***@db"}"#,
    "/users/ana:/url"
)]
#[case::whole("resource: {secret: true}", r#"{"id": "ana", "pin": "***"}"#, "/users/ana:.")]
fn a_mask_does_not_replace_a_stored_secret(#[case] metadata: &str, #[case] live: &str, #[case] key: &str) {
    let world = World::with_store(&["/users"], &[("users/_/metadata.yaml", metadata)]);
    world.live("/users/ana", live);
    world.store_secret(key, "s3cr3t");
    let run = world.run(&["resource", "save", "/users/ana"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.run(&["secret", "get", key]).stdout.trim_end(), "s3cr3t");
    assert!(!world.declared("users/ana/resource.json").unwrap().contains("***"));
}

/// The server shows the token of the request.
#[rstest]
#[case::save(&["resource", "save", "/apps/a"])]
#[case::collection(&["resource", "save", "/apps/"])]
#[case::import(&["import", "/apps"])]
fn a_credential_of_the_context_is_not_written_in_plain_text(#[case] command: &[&str]) {
    let world = world(&[("apps/_/metadata.yaml", "resource: {id: /id}\n")]);
    let catalogue = world.home.read(".declarest/configs/contexts.yaml");
    let with_token = catalogue.replacen("value: v}", "value: Bearer t0ken-12345}", 1);
    assert_ne!(catalogue, with_token);
    world.home.write(".declarest/configs/contexts.yaml", &with_token);
    world.live("/apps/a", r#"{"id": "a", "note": "curl -H 'X: t0ken-12345'"}"#);
    let run = world.run(command);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.to_string().contains("/apps/a: /note"), "{run}");
    assert_eq!(world.declared("apps/a/resource.json"), None);
    let run = world.run(&[command, &["--secret-attributes"]].concat());
    assert_eq!(run.code, 0, "{run}");
    assert!(!world.declared("apps/a/resource.json").unwrap().contains("t0ken"));
}
