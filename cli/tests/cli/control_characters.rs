//! Names that a server or a repository states, with control characters, which a terminal would execute, and with line
//! breaks, which could forge lines.

use rstest::rstest;

use crate::world::World;

/// The names of a shop, of its attribute and of a file.
const NAME: &str = "x\u{1b}[2J\n+ forged\u{9b}1m";
/// The same name, as commands show it.
const SHOWN: &str = r"x\u{1b}[2J\n+ forged\u{9b}1m";

/// The shop differs from its file, and another shop has a name that no path can have.
fn world() -> World {
    let world = World::with_store(&["/shops"], &[("shops/_/metadata.yaml", "resource: {alias: /name}\n")]);
    world.live("/shops/1", &serde_json::json!({"id": "1", "name": NAME}).to_string());
    world.live("/shops/2", &serde_json::json!({"id": "2", "name": format!("{NAME}/")}).to_string());
    let declared = serde_json::json!({"id": "1", "name": NAME, NAME: NAME, "token": "{{secret .}}"});
    world.declare(&format!("shops/{NAME}/resource.json"), &declared.to_string());
    world
}

#[rstest]
#[case::list(&["resource", "list", "/shops", "-o", "text"])]
#[case::wide(&["resource", "list", "/shops", "-o", "wide"])]
#[case::names(&["resource", "list", "/shops", "-o", "name"])]
#[case::declared(&["resource", "list", "/shops", "--source", "repository", "-o", "text"])]
#[case::collection(&["resource", "get", "/shops/", "-o", "text"])]
#[case::import(&["import", "/shops"])]
#[case::plan(&["plan", "/shops"])]
#[case::plan_as_markdown(&["plan", "/shops", "-o", "markdown"])]
#[case::plan_names(&["plan", "/shops", "-o", "name"])]
#[case::diff(&["resource", "diff", "/shops", "-r"])]
#[case::diff_names(&["resource", "diff", "/shops", "-r", "--list"])]
#[case::explain(&["resource", "explain", &format!("/shops/{NAME}"), "-o", "text"])]
#[case::describe(&["resource", "describe", &format!("/shops/{NAME}"), "-o", "text"])]
#[case::tree(&["repository", "tree"])]
#[case::secrets(&["secret", "list", "--missing", "-o", "text"])]
#[case::failure(&["resource", "get", &format!("/shops/{NAME}/none")])]
#[case::failures(&["resource", "apply", "/shops", "-r"])]
#[case::failures_as_records(&["resource", "apply", "/shops", "-r", "--error-format", "json"])]
#[case::finding(&["validate"])]
fn are_shown_on_one_line(#[case] args: &[&str]) {
    let world = world();
    if args == ["validate"] {
        world.declare(&format!("shops/{NAME}/resource.json"), "{");
    }
    let run = world.run(args);
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(!text.contains(|character: char| character.is_control() && character != '\n'), "{run}");
    assert!(!text.lines().any(|line| line.starts_with("+ forged")), "{run}");
    assert!(text.contains(SHOWN) || args.contains(&"json"), "{run}");
}

/// The same text, for programs.
#[test]
fn json_escapes_them() {
    let run = world().run(&["resource", "list", "/shops", "--exclude", "2", "-o", "json"]);
    assert!(run.stdout.contains(r#""name": "x\u001b[2J\n+ forged\u009b1m""#), "{run}");
    let listed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(listed[0]["name"], NAME);
}

#[test]
fn history_and_status_show_them_on_one_line() {
    let world =
        World::with_repository("git: {local: {baseDir: <home>/repo, autoInit: true}}", &["/shops"], &[]);
    world.declare("shops/a/resource.json", "{}");
    let message = "take\u{1b}[2J\u{9b}1m\n\nbody\u{1b}[2J";
    let commit = world.run(&["repository", "commit", "--message", message]);
    assert_eq!(commit.code, 0, "{commit}");
    world.declare(&format!("shops/{NAME}"), "x");
    for args in [
        &["repository", "history"][..],
        &["repository", "history", "--oneline"],
        &["repository", "status", "-v"],
    ] {
        let run = world.run(args);
        assert!(run.stdout.contains(r"\u{1b}[2J"), "{run}");
        assert!(!run.stdout.contains(|character: char| character.is_control() && character != '\n'), "{run}");
        assert!(!run.stdout.lines().any(|line| line.starts_with("+ forged")), "{run}");
    }
}
