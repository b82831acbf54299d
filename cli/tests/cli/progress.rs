//! Progress and results on standard error.

use rstest::rstest;

use crate::rest_server::Matcher;
use crate::terminal::Terminal;
use crate::world::World;

/// Twelve shops in the repository; none is on the server.
fn shops() -> World {
    let world = World::new(&["/shops"], &[]);
    for shop in 10..22 {
        world.declare(&format!("shops/s{shop}/resource.yaml"), &format!("id: s{shop}\n"));
    }
    world
}

fn at_terminal(world: &World, args: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let plain = [&[("NO_COLOR", "1"), ("DECLAREST_IGNORE_WARNINGS", "1")], variables].concat();
    Terminal::start_with_rows(world.home.command(args, &plain), 40).end()
}

#[test]
fn a_terminal_shows_a_bar_with_counts_and_the_path() {
    let world = shops();
    world.server.latency(std::time::Duration::from_millis(200));
    let (code, shown) = at_terminal(&world, &["resource", "apply", "/", "-r"], &[("TERM", "xterm")]);
    assert_eq!(code, 0, "{shown}");
    for part in ["Comparing [", "Applying [", "/12 ", "/shops/s1"] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let end = "Applied: 12 created, 0 updated, 0 deleted, 0 unchanged, 0 failed.\n[OK] command executed \
               successfully.\n";
    assert!(shown.ends_with(end), "{shown}");
}

#[rstest]
#[case::off(&["plan", "/", "--progress", "off"], "xterm")]
#[case::dumb(&["plan", "/"], "dumb")]
#[case::one(&["plan", "/shops/s10"], "xterm")]
fn other_terminals_show_none(#[case] args: &[&str], #[case] term: &str) {
    let (code, shown) = at_terminal(&shops(), args, &[("TERM", term)]);
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("Comparing"), "{shown}");
}

#[test]
fn a_pipe_shows_lines_on_request() {
    let world = shops();
    let plain = world.run(&["plan", "/", "--progress", "plain"]);
    assert_eq!(plain.stderr.lines().last(), Some("Comparing: 12 of 12"), "{plain}");
    assert_eq!(plain.stderr.lines().count(), 6, "{plain}");
    assert_eq!(world.run(&["plan", "/"]).stderr, "");
    assert_eq!(world.run(&["plan", "/", "--progress", "loud"]).code, 2);
}

#[test]
fn results_are_listed_and_counted() {
    let world = World::new(
        &["/shops"],
        &[
            ("shops/equal/resource.yaml", "id: equal\n"),
            ("shops/bad/resource.yaml", "id: bad\nsize: 2\n"),
            ("shops/new/resource.yaml", "id: new\n"),
            ("shops/old/resource.yaml", "id: old\nsize: 2\n"),
        ],
    );
    world.live("/shops/equal", r#"{"id": "equal"}"#);
    world.live("/shops/old", r#"{"id": "old", "size": 1}"#);
    world.live("/shops/bad", r#"{"id": "bad", "size": 1}"#);
    world.server.fail(Matcher::new("PUT", "/shops/bad"), 422, usize::MAX);
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops"]), @r#"
    exit 2
    --- stdout
    --- stderr
    + /shops/new created
    ~ /shops/old updated
    Applied: 1 created, 1 updated, 0 deleted, 1 unchanged, 1 failed.
    PUT /shops/bad: remote request failed with status 422: {"error":"injected failure"}
    [ERROR] command execution failed: 1 of 4 resources failed.
    "#);
    insta::assert_snapshot!(world.run(&["resource", "delete", "/shops/old", "--yes"]), @r"
    exit 0
    --- stdout
    --- stderr
    - /shops/old deleted
    [OK] command executed successfully.
    ");
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops/old", "-n"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
}
