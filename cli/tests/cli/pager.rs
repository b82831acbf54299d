//! The pager, and `resource diff --watch`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rstest::rstest;

use crate::terminal::Terminal;
use crate::world::World;

/// A plan of thirty lines.
fn shops() -> World {
    let world = World::new(&["/shops"], &[]);
    for shop in 10..40 {
        world.declare(&format!("shops/s{shop}/resource.yaml"), &format!("id: s{shop}\n"));
    }
    world.home.write("pager.sh", "echo \"paged with LESS=$LESS\"; cat\n");
    world
}

/// Runs a command on a terminal with this number of rows.
fn shown(world: &World, args: &[&str], rows: u16, pager: Option<(&str, &str)>) -> String {
    let variables =
        [("TERM", "xterm"), ("NO_COLOR", "1"), ("DECLAREST_IGNORE_WARNINGS", "1"), ("PATH", "/usr/bin:/bin")];
    let variables: Vec<_> = variables.into_iter().chain(pager).collect();
    let command = world.home.command(args, &variables);
    let (code, shown) = Terminal::start_with_rows(command, rows).end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("+ /shops/s10\n") && shown.contains("30 to create"), "{shown}");
    shown
}

#[rstest]
#[case::long("PAGER", 20, &["plan", "/"], true)]
#[case::own_variable("DECLAREST_PAGER", 20, &["plan", "/"], true)]
#[case::short("PAGER", 60, &["plan", "/"], false)]
#[case::off("PAGER", 20, &["plan", "/", "--no-pager"], false)]
fn long_text_is_paged(#[case] variable: &str, #[case] rows: u16, #[case] args: &[&str], #[case] paged: bool) {
    let world = shops();
    let pager = format!("sh {}", world.home.path("pager.sh").display());
    let shown = shown(&world, args, rows, Some((variable, &pager)));
    assert_eq!(shown.contains("paged with LESS=FRX"), paged, "{shown}");
}

#[rstest]
#[case::cat("cat")]
#[case::empty("")]
#[case::missing("/no/such/pager")]
fn without_a_pager_the_text_is_printed(#[case] pager: &str) {
    shown(&shops(), &["plan", "/"], 20, Some(("PAGER", pager)));
}

#[test]
fn a_pipe_is_not_paged() {
    let world = shops();
    let variables = [("TERM", "xterm"), ("PAGER", "false"), ("DECLAREST_IGNORE_WARNINGS", "1")];
    let run = world.home.run_with(&["plan", "/"], &variables, "");
    assert!(run.code == 0 && run.stdout.lines().count() == 31, "{run}");
}

#[test]
fn a_watch_ends_with_the_reader_of_its_output() {
    let world = World::new(&["/shops"], &[("shops/rio/resource.yaml", "id: rio\n")]);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    let watch = ["resource", "diff", "/shops/rio", "--watch=1s"];
    let mut command = world.home.command(&watch, &[("DECLAREST_IGNORE_WARNINGS", "1")]);
    let mut running = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(running.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "No differences for /shops/rio.\n");
    assert_eq!(running.try_wait().unwrap(), None);
    drop(stdout);
    assert!(running.wait().unwrap().success());
}

#[test]
fn a_watch_prints_changes_until_it_is_interrupted() {
    let world = World::new(&["/shops"], &[("shops/rio/resource.yaml", "id: rio\ntier: gold\n")]);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold"}"#);
    let watch = ["resource", "diff", "/shops/rio", "--watch=1s"];
    let variables = [("TERM", "xterm"), ("NO_COLOR", "1"), ("DECLAREST_IGNORE_WARNINGS", "1")];
    let mut terminal = Terminal::start(world.home.command(&watch, &variables));
    terminal.expect("No differences for /shops/rio.");
    world.live("/shops/rio", r#"{"id": "rio", "tier": "free"}"#);
    terminal.expect("+tier: free");
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold"}"#);
    terminal.expect("No differences for /shops/rio.");
    terminal.interrupt();
    assert_eq!(terminal.end().0, 130);
    let invalid = world.run(&["resource", "diff", "/shops/rio", "--watch=often"]);
    assert!(invalid.code == 1 && invalid.stderr.contains("use an interval such as 30s or 5m"), "{invalid}");
}
