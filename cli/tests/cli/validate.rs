//! `validate`.

use rstest::rstest;
use serde_json::Value;

use crate::environment::Home;

const GOOD: &[(&str, &str)] = &[
    ("repo/shops/_/metadata.yaml", "resource: {id: /id, requiredAttributes: [/name]}\n"),
    ("repo/shops/rio/resource.yaml", "id: rio\nname: Rio\n"),
];

const BAD: &[(&str, &str)] = &[
    ("repo/shops/oslo/resource.json", "{\n  \"id\": \"oslo\",\n  \"name\":\n}\n"),
    ("repo/shops/lima/resource.json", r#"{"id": "lima"}"#),
    ("repo/shops/ava/resource.json", r#"{"id": "ava", "name": "Ava", "password": "hunter2hunter2"}"#),
    ("repo/tills/_/metadata.yaml", "resource:\n  id: /id\n  aliases: /name\n"),
    ("repo/tills/t1/resource.json", r#"{"id": "t1"}"#),
    ("repo/tills/t2/resource.json", r#"{"id": "t2"}"#),
    ("repo/notes/a/resource.json", "{}"),
    ("repo/notes/a/resource.yaml", "{}"),
    ("repo/notes/metadata.yml", "resource: {}"),
    ("repo/users/_/metadata.yaml", "resource: {alias: /name, id: /name}"),
    ("repo/users/u1/resource.json", r#"{"name": "ann"}"#),
    ("repo/users/u2/resource.json", r#"{"name": "ann"}"#),
    ("repo/with space/x,y/resource.json", "{"),
];

/// A context whose server does not exist, so that a request fails.
fn home(files: &[&[(&str, &str)]]) -> Home {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: '<home>/repo'}}\n  \
         managedServer: {http: {url: 'http://127.0.0.1:1', auth: {customHeaders: [{header: K, value: v}]}}}\n",
    );
    std::fs::create_dir(home.path("repo")).unwrap();
    for (file, content) in files.iter().copied().flatten() {
        home.write(file, content);
    }
    home
}

#[test]
fn a_valid_tree() {
    insta::assert_snapshot!(home(&[GOOD]).run(&["validate", "--ignore-warnings"]), @r"
    exit 0
    --- stdout
    Validated resources: 1. Errors: 0. Warnings: 0.
    --- stderr
    ");
}

#[test]
fn findings_have_file_line_and_hint() {
    insta::assert_snapshot!(home(&[GOOD, BAD]).run(&["validate", "--ignore-warnings"]), @r#"
    exit 2
    --- stdout
    notes/a: error: resource /notes/a has several payload files (notes/a/resource.json, notes/a/resource.yaml); keep one of them [payload]
        hint: correct the file; its extension determines the format
    notes/metadata.yml: warning: notes/metadata.yml has no effect: metadata is read from metadata.yaml and metadata.json; rename it [unused]
        hint: move, rename or remove the file
    shops/ava/resource.json: warning: /shops/ava: values that look like secrets in plain text: /password [secret]
        hint: declare it with "secret detect --fix", then save the resource again with "resource save --force"
    shops/lima/resource.json: error: /shops/lima: create requires /name in the payload; add the missing attributes [request]
        hint: see "resource metadata render" for the request
    shops/oslo/resource.json:4:1: error: "shops/oslo/resource.json": cannot decode json, line 4, column 1: expected a value: an object, an array, text in quotes, a number, true, false or null [payload]
        hint: correct the file; its extension determines the format
    tills/_/metadata.yaml:3:3: error: line 3, column 3: unknown key "aliases" in resource; did you mean "alias"? [metadata]
        hint: see "resource metadata resolve" for the metadata of a path
    users/u1/resource.json: error: /users/u1: /users/u2 declares the same resource; correct the id or the alias in one of the payloads, the name of a directory, or the address in metadata [identity]
        hint: names come from resource.id and resource.alias of the metadata
    users/u2/resource.json: error: /users/u2: /users/u1 declares the same resource; correct the id or the alias in one of the payloads, the name of a directory, or the address in metadata [identity]
        hint: names come from resource.id and resource.alias of the metadata
    with space/x,y/resource.json:1:1: error: "with space/x,y/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object [payload]
        hint: correct the file; its extension determines the format
    Validated resources: 9. Errors: 7. Warnings: 2.
    --- stderr
    validation failed; errors: 7
    "#);
}

/// An address by the name of one is an address by the id of the other.
#[test]
fn a_name_is_not_the_id_of_another_resource() {
    let files = [
        ("repo/users/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("repo/users/2/resource.json", r#"{"name": "2"}"#),
        ("repo/users/bob/resource.json", r#"{"id": 2, "name": "bob"}"#),
    ];
    let run = home(&[&files]).run(&["validate"]);
    assert!(run.code == 2 && run.stdout.contains("/users/bob: /users/2 declares the same resource"), "{run}");
}

#[test]
fn json() {
    insta::assert_snapshot!(home(&[GOOD, BAD]).run(&["validate", "/shops/oslo", "-o", "json", "--ignore-warnings"]), @r#"
    exit 2
    --- stdout
    {
      "resources": 1,
      "errors": 2,
      "warnings": 1,
      "findings": [
        {
          "file": "notes/metadata.yml",
          "severity": "warning",
          "rule": "unused",
          "message": "notes/metadata.yml has no effect: metadata is read from metadata.yaml and metadata.json; rename it",
          "hint": "move, rename or remove the file"
        },
        {
          "file": "shops/oslo/resource.json",
          "line": 4,
          "column": 1,
          "severity": "error",
          "rule": "payload",
          "path": "/shops/oslo",
          "message": "\"shops/oslo/resource.json\": cannot decode json, line 4, column 1: expected a value: an object, an array, text in quotes, a number, true, false or null",
          "hint": "correct the file; its extension determines the format"
        },
        {
          "file": "tills/_/metadata.yaml",
          "line": 3,
          "column": 3,
          "severity": "error",
          "rule": "metadata",
          "message": "line 3, column 3: unknown key \"aliases\" in resource; did you mean \"alias\"?",
          "hint": "see \"resource metadata resolve\" for the metadata of a path"
        }
      ]
    }
    --- stderr
    validation failed; errors: 2
    "#);
}

#[test]
fn a_directory_needs_no_context() {
    let home = Home::new();
    for (file, content) in GOOD.iter().chain(&BAD[..1]) {
        home.write(file, content);
    }
    insta::assert_snapshot!(home.run(&["validate", "--dir", "repo", "--report", "github"]), @r#"
    exit 2
    --- stdout
    ::error file=repo/shops/oslo/resource.json,line=4,col=1,title=declarest payload::"shops/oslo/resource.json": cannot decode json, line 4, column 1: expected a value: an object, an array, text in quotes, a number, true, false or null%0Ahint: correct the file; its extension determines the format
    --- stderr
    validation failed; errors: 1
    "#);
    assert_eq!(home.run(&["validate", "--dir", "repo", "/shops/rio"]).code, 0);
}

#[test]
fn annotations_are_escaped() {
    let home = home(&[&BAD[12..]]);
    let run = home.run(&["validate", "--ignore-warnings", "--report", "github"]);
    assert!(run.stdout.contains("::error file=with space/x%2Cy/resource.json,line=1,col="), "{run}");
}

#[test]
fn sarif() {
    let home = home(&[GOOD, BAD]);
    let run = home.run(&["validate", "--ignore-warnings", "--report", "sarif=<home>/out.sarif"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.contains("Validated"), "{run}");
    let log: Value = serde_json::from_str(&home.read("out.sarif")).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rules: Vec<&str> = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    for result in results {
        assert!(rules.contains(&result["ruleId"].as_str().unwrap()), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
    }
    let oslo = results.iter().find(|result| result.to_string().contains("oslo")).unwrap();
    let place = &oslo["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "shops/oslo/resource.json");
    assert_eq!(place["region"]["startLine"], 4);
    assert!(results.iter().any(|result| result.to_string().contains("with%20space/x%2Cy/resource.json")));
}

#[test]
fn secrets_are_named_and_not_printed() {
    let run = home(&[&BAD[2..3]]).run(&["validate", "--ignore-warnings"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("/password") && !run.stdout.contains("hunter2"), "{run}");
}

#[test]
fn a_schema_of_the_server_is_not_checked_offline() {
    let home = home(&[&[
        (
            "repo/shops/_/metadata.yaml",
            "operations: {create: {validate: {schemaRef: 'openapi:request-body'}}}",
        ),
        ("repo/shops/rio/resource.json", r#"{"id": "rio"}"#),
    ]]);
    let run = home.run(&["validate", "--ignore-warnings"]);
    assert_eq!(run.code, 0, "{run}");
}

#[rstest]
#[case::report(&["validate", "--report", "junit"], 2, "use junit=FILE, sarif=FILE or github")]
#[case::missing(&["validate", "/none"], 3, "not found")]
#[case::directory(&["validate", "--dir", "none"], 3, "none")]
#[case::format(&["validate", "-o", "markdown"], 2, "text, JSON and YAML only")]
#[case::flag(&["validate", "--strict"], 1, "--strict")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] fragment: &str) {
    let run = home(&[GOOD]).run(&[args, &["--ignore-warnings"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(fragment), "{run}");
}

/// Their names need not look like those of secrets.
#[rstest]
#[case::attributes("secretAttributes: [/pin, /password, /token]", "/pin, /password")]
#[case::whole("secret: true", "the whole resource")]
fn declared_secrets_in_plain_text_are_named(#[case] metadata: &str, #[case] places: &str) {
    let metadata = format!("resource: {{{metadata}}}");
    let payload =
        r#"{"id": "ava", "pin": "99", "password": "hunter2hunter2", "token": "Bearer {{secret .}}"}"#;
    let home =
        home(&[&[("repo/users/_/metadata.yaml", &metadata), ("repo/users/ava/resource.json", payload)]]);
    let run = home.run(&["validate", "--ignore-warnings"]);
    let mut expected: Vec<_> = places.split(", ").collect();
    expected.sort_unstable();
    let expected =
        format!("/users/ava: secrets that metadata declares in plain text: {}", expected.join(", "));
    assert!(run.stdout.contains(&expected) && !run.stdout.contains("hunter2"), "{run}");
    assert!(run.stdout.contains("secret set") && !run.stdout.contains("secret detect"), "{run}");
}
