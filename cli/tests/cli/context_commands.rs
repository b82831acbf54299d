//! The commands that show and change contexts.

use rstest::rstest;

use crate::environment::Home;

const TWO: &str = "\
currentContext: dev
credentials:
  - {name: ops, username: alice, password: s3cret}
  - {name: unused, username: bob, password: hidden}
contexts:
  - name: dev
    repository: {filesystem: {baseDir: /srv/dev}}
    managedServer: {http: {url: 'https://api.test', auth: {basic: {credentialsRef: {name: ops}}}}}
  - name: prod
    repository: {git: {local: {baseDir: /srv/prod}}}
    managedServer: {http: {url: 'https://api.test', auth: {customHeaders: [{header: K, value: v}]}}}
";

#[test]
fn list_and_current() {
    let home = Home::with_catalogue(TWO);
    insta::assert_snapshot!(home.run(&["context", "list", "-o", "text"]), @r"
    exit 0
    --- stdout
    dev
    prod
    --- stderr
    ");
    insta::assert_snapshot!(home.run(&["context", "current", "-o", "text"]), @r"
    exit 0
    --- stdout
    dev
    --- stderr
    ");
    insta::assert_snapshot!(home.run(&["context", "current"]), @r#"
    exit 0
    --- stdout
    {
      "managedServer": {
        "http": {
          "auth": {
            "basic": {
              "credentialsRef": {
                "name": "ops"
              }
            }
          },
          "url": "https://api.test"
        }
      },
      "name": "dev",
      "repository": {
        "filesystem": {
          "baseDir": "/srv/dev"
        }
      }
    }
    --- stderr
    "#);
    insta::assert_snapshot!(home.run(&["context", "current", "-c", "prod", "-o", "yaml"]), @r"
    exit 0
    --- stdout
    managedServer:
        http:
            auth:
                customHeaders:
                    - header: K
                      value: v
            url: https://api.test
    name: prod
    repository:
        git:
            local:
                baseDir: /srv/prod
    --- stderr
    ");
}

#[test]
fn show_prints_a_catalogue_of_its_own() {
    let home = Home::with_catalogue(TWO);
    let run = home.run(&["context", "show"]);
    insta::assert_snapshot!(run, @r"
    exit 0
    --- stdout
    contexts:
        - managedServer:
            http:
                auth:
                    basic:
                        credentialsRef:
                            name: ops
                url: https://api.test
          name: dev
          repository:
            filesystem:
                baseDir: /srv/dev
    credentials:
        - name: ops
          password: s3cret
          username: alice
    currentContext: dev
    --- stderr
    ");
    assert_eq!(Home::with_catalogue(&run.stdout).run(&["context", "validate"]).code, 0);
    insta::assert_snapshot!(home.run(&["context", "show", "-o", "json"]), @r#"
    exit 2
    --- stdout
    --- stderr
    "declarest context show" prints YAML only; remove --output json
    "#);
    insta::assert_snapshot!(home.run(&["context", "show", "dev", "-c", "prod"]), @r#"
    exit 2
    --- stdout
    --- stderr
    context name mismatch: "dev" as an argument, "prod" by --context or DECLAREST_CONTEXT
    "#);
    insta::assert_snapshot!(home.run(&["context", "show", "test"]), @r#"
    exit 3
    --- stdout
    --- stderr
    context "test" not found; there are dev, prod
    "#);
}

#[test]
fn use_makes_current() {
    let home = Home::with_catalogue(TWO);
    assert_eq!(home.run(&["context", "use", "prod"]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "prod\n");
    let commented = format!("# Ask the team before a change.\n{TWO}");
    let commented = Home::with_catalogue(&commented);
    let before = commented.read(".declarest/configs/contexts.yaml");
    assert_eq!(commented.run(&["context", "use", "dev"]).code, 0);
    assert_eq!(commented.read(".declarest/configs/contexts.yaml"), before, "dev is the current context");
    insta::assert_snapshot!(home.run(&["context", "use", "test"]), @r#"
    exit 3
    --- stdout
    --- stderr
    context "test" not found; there are dev, prod
    "#);
    insta::assert_snapshot!(home.run(&["context", "use"]), @r"
    exit 2
    --- stdout
    --- stderr
    context name is required: declarest context use NAME
    ");
}

#[test]
fn delete_moves_the_current_context_on() {
    let home = Home::with_catalogue(TWO);
    assert_eq!(home.run(&["context", "delete", "dev"]).code, 0);
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "prod\n");
    assert_eq!(home.run(&["context", "delete", "prod"]).code, 0);
    insta::assert_snapshot!(home.catalogue(), @r#"
    currentContext: ""
    credentials:
        - name: ops
          password: s3cret
          username: alice
        - name: unused
          password: hidden
          username: bob
    "#);
    assert_eq!(home.run(&["context", "delete", "prod"]).code, 3);
}

#[test]
fn rename_takes_the_current_context_along() {
    let home = Home::with_catalogue(TWO);
    assert_eq!(home.run(&["context", "rename", "dev", "test"]).code, 0);
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "test\n");
    insta::assert_snapshot!(home.run(&["context", "rename", "test", "prod"]), @r#"
    exit 2
    --- stdout
    --- stderr
    context "prod" already exists; choose another name
    "#);
    insta::assert_snapshot!(home.run(&["context", "rename", "test"]), @r"
    exit 2
    --- stdout
    --- stderr
    new context name is required: declarest context rename FROM TO
    ");
}

#[test]
fn add_writes_a_readable_file() {
    let home = Home::new();
    let input =
        r#"{"name": "dev", "repository": {"filesystem": {"baseDir": "/r"}}, "metadata": {"baseDir": "/r"}}"#;
    insta::assert_snapshot!(home.run_with(&["context", "add"], &[], input), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    assert_eq!(home.run_with(&["context", "add", "two"], &[], input).code, 0);
    assert_eq!(
        home.run_with(&["context", "add", "--context-name", "three", "--set-current"], &[], input).code,
        0
    );
    insta::assert_snapshot!(home.catalogue(), @r"
    currentContext: three
    contexts:
      - name: dev
        repository:
            filesystem:
                baseDir: /r
      - name: two
        repository:
            filesystem:
                baseDir: /r
      - name: three
        repository:
            filesystem:
                baseDir: /r
    ");
    insta::assert_snapshot!(home.run_with(&["context", "add"], &[], input), @r#"
    exit 2
    --- stdout
    --- stderr
    context "dev" already exists; choose another name
    "#);
}

#[test]
fn add_takes_one_or_all_contexts_of_a_catalogue() {
    let home = Home::new();
    home.write("two.yaml", TWO);
    assert_eq!(home.run(&["context", "add", "-f", "two.yaml", "--context-name", "prod"]).code, 0);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "prod\n");
    insta::assert_snapshot!(home.run(&["context", "add", "-f", "two.yaml"]), @r#"
    exit 2
    --- stdout
    --- stderr
    context "prod" already exists; choose another name
    "#);
    assert_eq!(home.run(&["context", "delete", "prod"]).code, 0);
    assert_eq!(home.run(&["context", "add", "-f", "two.yaml", "--set-current"]).code, 0);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "dev\nprod\n");
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "dev\n");
}

#[test]
fn the_current_one_of_several_added_contexts_must_be_stated() {
    let home = Home::with_catalogue(TWO);
    let input = "contexts: [{name: a, repository: {filesystem: {baseDir: /r}}}, {name: b, repository: {filesystem: \
                 {baseDir: /r}}}]\n";
    let add = ["context", "add", "-f", "-", "--content-type", "yaml", "--set-current"];
    insta::assert_snapshot!(home.run_with(&add, &[], input), @r"
    exit 2
    --- stdout
    --- stderr
    standard input has several contexts; choose the current one with its currentContext, or one of them with --context-name
    ");
    assert_eq!(home.catalogue(), TWO);
    assert_eq!(home.run_with(&[&add[..], &["--context-name", "b"]].concat(), &[], input).code, 0);
    assert_eq!(home.run(&["context", "current", "-o", "text"]).stdout, "b\n");
}

#[rstest]
#[case(&["context", "add", "a", "--context-name", "b"], "context name mismatch: \"a\" as an argument, \"b\" by --context-name\n")]
#[case(&["context", "add", "a", "-c", "b"], "context name mismatch: \"a\" as an argument, \"b\" by --context or DECLAREST_CONTEXT\n")]
#[case(&["context", "add", " "], "the name \" \" is blank; give the context a name\n")]
fn names_must_agree(#[case] args: &[&str], #[case] message: &str) {
    let run = Home::new().run_with(args, &[], "{}");
    assert_eq!((run.code, run.stderr.as_str()), (2, message));
}

#[test]
fn update_needs_a_context_of_that_name() {
    let home = Home::with_catalogue(TWO);
    let input = |name: &str| {
        format!(r#"{{"name": "{name}", "repository": {{"filesystem": {{"baseDir": "/new"}}}}}}"#)
    };
    assert_eq!(home.run_with(&["context", "update"], &[], &input("dev")).code, 0);
    assert!(home.catalogue().contains("baseDir: /new"));
    let run = home.run_with(&["context", "update"], &[], &input("test"));
    insta::assert_snapshot!(run, @r#"
    exit 3
    --- stdout
    --- stderr
    context "test" not found; there are dev, prod
    "#);
}

#[test]
fn overrides_hold_for_one_run() {
    let home = Home::with_catalogue(TWO);
    let run = home.run(&[
        "context",
        "resolve",
        "dev",
        "-s",
        "managedServer.http.url=http://localhost:1",
        "-s",
        "managedServer.http.url=http://localhost:2",
        "--set",
        "managedServer.http.healthCheck=/up",
        "--set",
        "managedServer.http.proxy.noProxy=a,b",
        "--set",
        "repository.filesystem.baseDir=/x=y",
        "--set",
        "metadata.bundle=shops:1",
    ]);
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    {
      "managedServer": {
        "http": {
          "auth": {
            "basic": {
              "credentialsRef": {
                "name": "ops"
              }
            }
          },
          "healthCheck": "/up",
          "proxy": {
            "noProxy": "a,b"
          },
          "url": "http://localhost:2"
        }
      },
      "metadata": {
        "bundle": "shops:1"
      },
      "name": "dev",
      "repository": {
        "filesystem": {
          "baseDir": "/x=y"
        }
      }
    }
    --- stderr
    "#);
    assert_eq!(home.catalogue(), TWO);
}

#[rstest]
#[case(&["metadata.bundle=a:1", "metadata.baseDir=/m"], r#"{"baseDir":"/m"}"#)]
#[case(&["metadata.baseDir=/m", "metadata.bundle=a:1"], r#"{"bundle":"a:1"}"#)]
#[case(&["metadata.baseDir=/m", "metadata.bundle=a:1", "metadata.baseDir=/n"], r#"{"baseDir":"/n"}"#)]
fn the_last_source_of_metadata_is_used(#[case] set: &[&str], #[case] expected: &str) {
    let set = set.iter().flat_map(|set| ["-s", *set]);
    let args: Vec<_> = ["context", "resolve", "-o", "jq=.metadata"].into_iter().chain(set).collect();
    let run = Home::with_catalogue(TWO).run(&args);
    assert_eq!((run.code, run.stdout.trim_end()), (0, expected), "{run}");
}

#[rstest]
#[case(
    "managedServer.http.url=ftp://x",
    "--set managedServer.http.url: must be an http or https URL with a host\n"
)]
#[case(
    "managedServer.http.url=http:///x",
    "--set managedServer.http.url: must be an http or https URL with a host\n"
)]
#[case(
    "managedServer.http.url=http:/x://y",
    "--set managedServer.http.url: must be an http or https URL with a host\n"
)]
#[case("managedServer.http.url=http://a\tb", "--set managedServer.http.url: is not a URL; write it like")]
#[case("managedServer.http.auth=x", "--set managedServer.http.auth: cannot be set; the keys are")]
#[case(
    "repository.git.local.baseDir=/x",
    "--set repository.git.local.baseDir: the context has no repository.git.local\n"
)]
#[case("repository.filesystem.baseDir=", "--set repository.filesystem.baseDir: must not be empty\n")]
#[case("metadata.bundle", "--set metadata.bundle: write it as key=value\n")]
#[case(
    "managedServer.http.proxy.http=x",
    "context \"dev\": managedServer.http.proxy.http: must be an http:// or https:// URL with a host\n"
)]
fn overrides_are_checked(#[case] set: &str, #[case] message: &str) {
    let run = Home::with_catalogue(TWO).run(&["context", "resolve", "-s", set]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with(message), "{run}");
}

#[test]
fn the_template_is_printed_as_text_only() {
    let run = Home::new().run(&["context", "print-template"]);
    assert_eq!(Home::with_catalogue(&run.stdout).run(&["context", "validate"]).code, 0);
    let run = Home::new().run_with(&["context", "print-template"], &[("DECLAREST_OUTPUT", "json")], "");
    assert!(run.stdout.starts_with("# Contexts"), "{run}");
    assert_eq!(Home::new().run(&["context", "print-template", "-o", "json"]).code, 2);
}

#[test]
fn clean_needs_to_know_what() {
    insta::assert_snapshot!(Home::new().run(&["context", "clean"]), @r"
    exit 2
    --- stdout
    --- stderr
    nothing to clean is selected; add --credentials-in-session
    ");
    insta::assert_snapshot!(Home::new().run(&["context", "clean", "--credentials-in-session"]), @r"
    exit 0
    --- stdout
    removed 0 prompt credential session cache files
    --- stderr
    ");
    let home = Home::new();
    home.write(".declarest/sessions/prompt-auth-old.json", "{}");
    home.write(".declarest/sessions/other", "");
    let run = home.run(&["context", "clean", "--credentials-in-session"]);
    assert_eq!(run.stdout, "removed 1 prompt credential session cache files\n");
    assert!(home.path(".declarest/sessions/other").exists());
}
