//! Ctrl-C, on real processes.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use crate::rest_server::Matcher;
use crate::terminal::Terminal;
use crate::world::World;

/// Five shops in the repository; none is on the server.
fn shops() -> World {
    let world = World::new(&["/shops"], &[]);
    for shop in ["a", "b", "c", "d", "e"] {
        world.declare(&format!("shops/{shop}/resource.yaml"), &format!("id: {shop}\n"));
    }
    world
}

/// A running command.
struct Running(Child);

impl Running {
    fn start(world: &World, args: &[&str]) -> Self {
        let mut command: Command = world.home.command(args, &[("DECLAREST_IGNORE_WARNINGS", "1")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
    }

    /// Returns the exit code, standard output and standard error.
    fn end(mut self) -> (i32, String, String) {
        let code = self.0.wait().unwrap().code().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (code, stdout, stderr)
    }

    /// Reads standard error until `text`.
    fn expect(&mut self, text: &str) {
        let (stderr, mut seen) = (self.0.stderr.as_mut().unwrap(), Vec::new());
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).contains(text) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    }
}

/// Waits until the server has received this number of requests of a method, answered or not.
fn wait_for(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < end, "the condition does not hold");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The throttle admits one request at once, so that some resources wait when the signal arrives.
fn one_at_a_time(world: &World) {
    let catalogue = world.home.catalogue();
    let throttled = catalogue.replace("auth:", "requestThrottling: {maxConcurrentRequests: 1}, auth:");
    world.home.write(".declarest/configs/contexts.yaml", &throttled);
}

#[test]
fn the_request_in_flight_is_completed_and_the_others_are_reported() {
    let world = shops();
    one_at_a_time(&world);
    let held = world.server.hold(Matcher::method("POST"));
    let mut running = Running::start(&world, &["resource", "apply", "/shops"]);
    wait_for(|| world.server.open() > 0 && world.server.log().iter().any(|request| request.method == "POST"));
    running.interrupt();
    running.expect("interrupted; waiting for the requests in flight");
    drop(held);
    let (code, stdout, stderr) = running.end();
    assert_eq!((code, stdout.as_str()), (130, ""), "{stderr}");
    let written = world.writes().len();
    assert_eq!(world.server.resources().len(), written, "an answered create is on the server");
    assert_eq!(written, 1, "{stderr}");
    // Any of the resources may have been the first one.
    let is_reported = |(path, _): &(String, _)| stderr.contains(&format!("+ {path} created\n"));
    assert!(world.server.resources().iter().all(is_reported), "{stderr}");
    let counts = "[ERROR] command execution failed: interrupted: 1 created, 0 updated, 0 deleted, 0 unchanged, \
                  0 failed, 4 not attempted.\n";
    assert!(stderr.ends_with(counts), "{stderr}");
}

#[test]
fn a_second_one_ends_at_once() {
    let world = shops();
    let _held = world.server.hold(Matcher::method("POST"));
    let mut running = Running::start(&world, &["resource", "apply", "/shops"]);
    wait_for(|| world.server.log().iter().any(|request| request.method == "POST"));
    running.interrupt();
    running.expect("Ctrl-C again ends at once");
    running.interrupt();
    assert_eq!(running.end().0, 130);
}

#[rstest]
#[case::get(&["resource", "get", "/shops/a"])]
#[case::diff(&["resource", "diff", "/shops"])]
#[case::plan(&["plan", "/"])]
#[case::save(&["resource", "save", "/shops/a", "--force"])]
#[case::check(&["server", "check"])]
fn reads_end_at_once(#[case] args: &[&str]) {
    let world = shops();
    let _held = world.server.hold(Matcher::any());
    let running = Running::start(&world, args);
    wait_for(|| world.server.open() > 0);
    running.interrupt();
    let (code, stdout, stderr) = running.end();
    assert_eq!((code, stdout.as_str()), (130, ""), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert_eq!(world.declared("shops/a/resource.yaml").as_deref(), Some("id: a\n"));
    assert!(world.writes().is_empty());
}

#[test]
fn a_single_request_is_completed() {
    let world = shops();
    let held = world.server.hold(Matcher::method("POST"));
    let mut running =
        Running::start(&world, &["resource", "request", "post", "/shops", "-f", r#"{"id": "z"}"#]);
    wait_for(|| world.server.log().iter().any(|request| request.method == "POST"));
    running.interrupt();
    running.expect("waiting for the requests in flight");
    drop(held);
    let (code, _, stderr) = running.end();
    assert_eq!(code, 130, "{stderr}");
    assert!(stderr.contains("interrupted; the requests in flight were completed"), "{stderr}");
    assert!(world.observed("/shops/z").is_some());
}

/// The editor gets the signal, too, because it is in the same process group.
#[test]
fn an_editor_that_it_ends_changes_nothing() {
    let world = shops();
    world.home.write("editor.sh", "echo x > \"$1\"; echo ready; kill -INT $$; sleep 60\n");
    let editor = format!("sh {}", world.home.path("editor.sh").display());
    let edit = ["resource", "edit", "/shops/a", "--editor", &editor];
    let command = world.home.command(&edit, &[("TERM", "xterm"), ("DECLAREST_IGNORE_WARNINGS", "1")]);
    let (code, shown) = Terminal::start(command).end();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("interrupted; nothing was changed"), "{shown}");
    assert_eq!(world.declared("shops/a/resource.yaml").as_deref(), Some("id: a\n"));
}

/// The memory of a command holds secrets, so a crash must not write it to a file (`core(5)`).
#[test]
fn a_running_command_cannot_dump_its_memory() {
    let world = shops();
    let _held = world.server.hold(Matcher::any());
    let running = Running::start(&world, &["resource", "get", "/shops/a"]);
    wait_for(|| world.server.open() > 0);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.0.id())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    let soft_and_hard: Vec<&str> = core.split_whitespace().take(2).collect();
    assert_eq!(soft_and_hard, ["0", "0"]);
    running.interrupt();
    assert_eq!(running.end().0, 130);
}
