//! Several commands at once, commands that are killed, and unusual names and sizes.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rstest::rstest;

use crate::environment::Home;
use crate::world::World;

#[test]
fn commands_that_run_at_once_all_take_effect() {
    let world = World::new(&["/shops"], &[]);
    let shops = world.save_at_once(12, |path| {
        let run = world.run(&["resource", "apply", path]);
        assert_eq!(run.code, 0, "{run}");
    });
    assert_eq!(world.server.resources().len(), shops.len());
    assert_eq!(world.run(&["plan", "/", "--exit-code"]).code, 0);
}

#[test]
fn a_catalogue_that_several_commands_write_is_always_whole() {
    let home = Home::with_catalogue(
        "currentContext: a\ncontexts:\n- {name: a, repository: {filesystem: {baseDir: /a}}}\n\
         - {name: b, repository: {filesystem: {baseDir: /b}}}\n",
    );
    std::thread::scope(|scope| {
        for name in ["a", "b", "a", "b"] {
            let home = &home;
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(home.run(&["context", "use", name]).code, 0);
                    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "a\nb\n");
                }
            });
        }
    });
}

/// The command is killed at different times. Each file has its old or its new content.
#[rstest]
#[case(2)]
#[case(10)]
#[case(30)]
#[case(60)]
fn a_save_that_is_killed_leaves_whole_files(#[case] milliseconds: u64) {
    let world = World::new(&["/shops"], &[]);
    let note = "x".repeat(20_000);
    for shop in 0..100 {
        world.declare(&format!("shops/s{shop}/resource.json"), &format!(r#"{{"id": "s{shop}"}}"#));
        world.live(&format!("/shops/s{shop}"), &format!(r#"{{"id": "s{shop}", "note": "{note}"}}"#));
    }
    let variables = [("DECLAREST_IGNORE_WARNINGS", "1")];
    let mut save = world.home.command(&["resource", "save", "/shops/", "--force"], &variables);
    let mut running = save.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(milliseconds));
    running.kill().unwrap();
    running.wait().unwrap();
    for shop in 0..100 {
        let content = world.declared(&format!("shops/s{shop}/resource.json")).unwrap();
        let payload: serde_json::Value = serde_json::from_str(&content).unwrap();
        assert!(payload.get("note").is_none_or(|kept| kept == note.as_str()), "s{shop} is cut off");
    }
    assert_eq!(world.run(&["resource", "save", "/shops/", "--force"]).code, 0);
    assert_eq!(world.run(&["plan", "/", "--exit-code"]).code, 0);
}

#[rstest]
#[case::space("são paulo 1")]
#[case::unicode("京都-ü")]
#[case::dots("v1.2..x")]
#[case::percent("50%25")]
#[case::marks("a?b#c&d=e+f")]
fn names_need_no_escapes(#[case] name: &str) {
    let world = World::new(&["/shops"], &[]);
    let path = format!("/shops/{name}");
    let payload = format!(r#"{{"id": "{name}"}}"#);
    for args in [
        &["resource", "save", &path, "-f", &payload][..],
        &["resource", "apply", &path],
        &["resource", "get", &path],
        &["resource", "diff", &path, "--exit-code"],
        &["plan", "/", "--exit-code"],
    ] {
        let run = world.run(args);
        assert_eq!(run.code, 0, "{args:?} {run}");
    }
    assert_eq!(world.run(&["resource", "list", "/shops", "-o", "name"]).stdout, format!("{path}\n"));
    assert_eq!(world.run(&["resource", "delete", &path, "--yes"]).code, 0);
    assert!(world.server.resources().is_empty());
}

#[test]
fn a_payload_has_a_limit() {
    let world = World::new(&["/shops"], &[]);
    let payload = |size: usize| format!("{{\"id\": \"{}\"}}", "x".repeat(size - 10));
    world.home.write("fits.json", &payload(4 << 20));
    world.home.write("large.json", &payload((4 << 20) + 1));
    let save = |file: &str| world.run(&["resource", "save", "/shops/a", "-f", file, "--allow-plaintext"]);
    let run = save("<home>/large.json");
    assert_eq!(run.code, 2, "{run}");
    assert_eq!(world.declared("shops/a/resource.json"), None);
    assert_eq!(save("<home>/fits.json").code, 0);
}

#[rstest]
#[case::file_for_a_directory("shops/a", false)]
#[case::directory_for_a_file("shops/a/resource.json", true)]
fn an_obstacle_is_named_and_kept(#[case] obstacle: &str, #[case] is_directory: bool) {
    let world = World::new(&["/shops"], &[]);
    if is_directory {
        fs::create_dir_all(world.home.path(&format!("repo/{obstacle}"))).unwrap();
    } else {
        world.declare(obstacle, "kept");
    }
    let run = world.run(&["resource", "save", "/shops/a", "-f", r#"{"id": "a"}"#, "--force"]);
    assert!(run.code != 0, "{run}");
    assert!(run.stderr.contains(obstacle), "{run}");
    assert_eq!(world.home.path(&format!("repo/{obstacle}")).is_dir(), is_directory);
}
