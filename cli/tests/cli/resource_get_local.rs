//! `resource get --source repository`.

use rstest::rstest;

use crate::environment::Run;
use crate::server::Server;

const FILES: &[(&str, &str)] = &[
    (
        "repo/shops/_/metadata.yaml",
        "resource: {id: /uid, alias: /name, secretAttributes: [/pin], defaults: {value: {open: true}}}",
    ),
    ("repo/shops/rio/resource.json", r#"{"uid":"u1","name":"Rio","pin":"0420"}"#),
    ("repo/shops/lima/resource.yaml", "uid: u2\nname: Lima\npin: '{{secret .}}'\n"),
    ("repo/shops/rio/tills/t1/resource.json", r#"{"id":"t1"}"#),
    ("repo/notes/a/resource.txt", "plain"),
    ("repo/empty/_/metadata.yaml", "{}"),
];

fn get(args: &[&str]) -> Run {
    // A command that asks the server gets nothing.
    let home = Server::new(&[]).home();
    for (file, content) in FILES {
        home.write(file, content);
    }
    let all = ["resource", "get", "--source", "repository", "--ignore-warnings"];
    home.run(&all.iter().chain(args).copied().collect::<Vec<_>>())
}

#[rstest]
#[case::exact("/shops/rio")]
#[case::alias("/shops/Rio")]
#[case::id("/shops/u1")]
fn resources(#[case] path: &str) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(get(&[path]), @r#"
        exit 0
        --- stdout
        {
          "name": "Rio",
          "open": true,
          "pin": "{{secret .}}",
          "uid": "u1"
        }
        --- stderr
        "#);
    }
}

#[test]
fn yaml_prints_as_json_unless_asked_for_text() {
    insta::assert_snapshot!(get(&["/shops/lima", "--prune-defaults"]), @r#"
    exit 0
    --- stdout
    {
      "name": "Lima",
      "pin": "{{secret .}}",
      "uid": "u2"
    }
    --- stderr
    "#);
}

#[rstest]
#[case("/shops")]
#[case("/shops/")]
fn collections_show_direct_children(#[case] path: &str) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(get(&[path, "-o", "text"]), @r"
        exit 0
        --- stdout
        /shops/lima
        /shops/rio
        --- stderr
        ");
    }
}

#[test]
fn an_empty_directory_is_an_empty_collection() {
    insta::assert_snapshot!(get(&["/empty"]), @r"
    exit 0
    --- stdout
    []
    --- stderr
    ");
}

#[test]
fn what_is_not_there_is_not_found() {
    insta::assert_snapshot!(get(&["/shops/absent"]), @r"
    exit 3
    --- stdout
    --- stderr
    resource /shops/absent not found in the repository
    ");
}

#[test]
fn text_stays_raw() {
    insta::assert_snapshot!(get(&["/notes/a"]), @r"
    exit 0
    --- stdout
    plain--- stderr
    ");
}
