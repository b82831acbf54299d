//! `resource get --source repository`.

use std::process::Stdio;

use rstest::rstest;

use crate::environment::Run;
use crate::server::Server;
use crate::world::World;

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

/// The highest number of threads that a command had.
fn threads(world: &World, args: &[&str]) -> usize {
    let mut command = world.home.command(args, &[("DECLAREST_IGNORE_WARNINGS", "1")]);
    let mut running =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let tasks = format!("/proc/{}/task", running.id());
    let mut most = 0;
    while running.try_wait().unwrap().is_none() {
        most = most.max(std::fs::read_dir(&tasks).map_or(0, Iterator::count));
    }
    assert!(running.wait().unwrap().success(), "{args:?}");
    most
}

#[test]
fn commands_that_only_read_files_start_no_threads() {
    let world = World::with_store(&["/shops"], &[("shops/_/metadata.yaml", "resource: {id: /id}\n")]);
    // The work takes long enough to be observed.
    for shop in 0..500 {
        world.declare(&format!("shops/s{shop}/resource.json"), &format!(r#"{{"id": "s{shop}"}}"#));
    }
    for args in [
        &["resource", "list", "/shops", "--source", "repository"][..],
        &["resource", "get", "/shops/", "--source", "repository"],
        &["resource", "metadata", "get", "/shops/"],
        &["resource", "metadata", "resolve", "/shops/s1"],
        &["validate"],
    ] {
        assert_eq!(threads(&world, args), 1, "{args:?}");
    }
    world.live("/shops/s1", r#"{"id": "s1"}"#);
    let held = world.server.hold(crate::rest_server::Matcher::method("GET"));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| threads(&world, &["resource", "get", "/shops/s1"]));
        while world.server.open() == 0 {
            std::thread::yield_now();
        }
        drop(held);
        assert!(running.join().unwrap() > 1, "threads are not counted");
    });
}

#[rstest]
#[case::path("/shops/rio")]
#[case::name("/shops/Rio")]
#[case::collection("/shops/")]
fn includes_are_shown_as_the_file_states_them(#[case] path: &str) {
    let metadata =
        "resource: {alias: /name, id: /uid, externalizedAttributes: [{path: /note, file: note.txt}]}";
    let file = r#"{"uid": "u1", "name": "Rio", "note": "{{include note.txt}}"}"#;
    let files = [("shops/_/metadata.yaml", metadata), ("shops/rio/resource.json", file)];
    let world = World::new(&["/shops"], &files);
    // The included file may be missing, unless its resource is searched by name.
    if path == "/shops/Rio" {
        world.declare("shops/rio/note.txt", "hello");
    }
    let run = world.run(&["resource", "get", path, "--source", "repository"]);
    assert!(run.stdout.contains("{{include note.txt}}"), "{run}");
}
