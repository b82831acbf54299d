//! Commands that run at once, commands that are killed, and disks that cannot be written.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::environment::{Home, Run};
use crate::git::git;
use crate::rest_server::Matcher;
use crate::terminal::Terminal;
use crate::world::World;

#[test]
fn each_commit_of_commands_that_run_at_once_has_only_its_own_change() {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    let shops = world.save_at_once(8, |_| {});
    let repository = world.home.path("repo");
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
    let log = git(&repository, &["log", "--name-only", "--format=%s"]);
    let commits: Vec<&str> = log.split("declarest: save resource ").skip(1).collect();
    assert_eq!(commits.len(), shops.len(), "{log}");
    for commit in commits {
        let lines: Vec<&str> = commit.lines().filter(|line| !line.is_empty()).collect();
        let [path, file] = lines[..] else { panic!("{log}") };
        assert_eq!(file, format!("{}/resource.json", path.trim_start_matches('/')), "{log}");
    }
}

/// The lock is held from the first write of a command to its commit.
#[rstest]
#[case::commit(&["repository", "commit", "-m", "x"])]
#[case::reset(&["repository", "reset", "--hard"])]
#[case::clean(&["repository", "clean"])]
#[case::refresh(&["repository", "refresh"])]
fn the_change_of_another_command_is_neither_committed_nor_discarded(#[case] args: &[&str]) {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    assert_eq!(world.run(&["resource", "save", "/shops/a", "-f", "{}"]).code, 0);
    let repository = world.home.path("repo");
    let lock = fs::File::open(repository.join(".git")).unwrap();
    lock.lock().unwrap();
    world.declare("shops/a/resource.json", r#"{"half": 1}"#);
    world.declare("shops/b/resource.json", "{}");
    let before = git(&repository, &["status", "--porcelain", "--branch"]);
    let mut running =
        world.home.command(args, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.try_wait().unwrap(), None, "it did not wait");
    assert_eq!(git(&repository, &["status", "--porcelain", "--branch"]), before);
    lock.unlock().unwrap();
    assert!(running.wait().unwrap().success());
}

/// Otherwise the commit of the other command would contain the change.
#[rstest]
#[case::set(&["resource", "metadata", "set", "/shops/", "-f", "<home>/new.yaml"])]
#[case::unset(&["resource", "metadata", "unset", "/shops/"])]
#[case::infer(&["resource", "metadata", "infer", "/shops/", "--apply"])]
#[case::detect(&["secret", "detect", "--fix"])]
#[case::refresh(&["resource", "apply", "/shops/a", "--refresh"])]
fn a_change_without_a_commit_waits_for_the_commit_of_another_command(#[case] args: &[&str]) {
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}}",
        &["/shops"],
        &[("shops/_/metadata.yaml", "resource: {alias: /id}\n")],
    );
    let repository = world.home.path("repo");
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    world.declare("shops/a/resource.json", r#"{"id": "a"}"#);
    world.declare("shops/b/resource.json", r#"{"id": "b", "password": "canary"}"#);
    world.home.write("new.yaml", "resource: {id: /id}\n");
    world.live("/shops/a", r#"{"id": "a"}"#);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "start"]);
    let lock = fs::File::open(repository.join(".git")).unwrap();
    lock.lock().unwrap();
    let command = world.home.command(args, &[("DECLAREST_IGNORE_WARNINGS", "1")]);
    let mut running =
        { command }.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.try_wait().unwrap(), None, "it did not wait");
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
    lock.unlock().unwrap();
    assert!(running.wait().unwrap().success());
}

/// The lock does not stop the user, who may change files while the server answers.
#[rstest]
#[case::import(&["import", "/shops"], "GET", &[])]
#[case::import_with_metadata(&["import", "/shops", "--infer-metadata"], "GET", &[])]
#[case::delete(&["resource", "delete", "/shops/a", "--source", "both", "--yes"], "DELETE", &["DELETE /shops/a"])]
fn a_file_that_the_user_writes_meanwhile_is_not_committed(
    #[case] args: &[&str],
    #[case] method: &str,
    #[case] writes: &[&str],
) {
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}}",
        &["/shops"],
        &[("shops/a/resource.json", r#"{"id": "a"}"#), ("shops/_/metadata.yaml", "resource: {id: /id}\n")],
    );
    let repository = world.home.path("repo");
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "start"]);
    for shop in ["a", "b"] {
        world.live(&format!("/shops/{shop}"), &format!(r#"{{"id": "{shop}"}}"#));
    }
    let held = world.server.hold(Matcher::method(method));
    let run = std::thread::scope(|scope| {
        let running = scope.spawn(|| world.run(args));
        wait_for(|| world.server.log().iter().any(|request| request.method == method));
        world.declare(".env", "PASSWORD=canary\n");
        drop(held);
        running.join().unwrap()
    });
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("a clean git worktree is needed") && run.stderr.contains(".env"), "{run}");
    assert_eq!(git(&repository, &["status", "--porcelain"]), "?? .env");
    assert_eq!(git(&repository, &["log", "--format=%s"]), "start");
    assert_eq!(world.writes(), writes);
    fs::remove_file(repository.join(".env")).unwrap();
    let args = args.iter().map(|arg| if *arg == "both" { "repository" } else { arg });
    let again = world.run(&args.collect::<Vec<_>>());
    assert_eq!(again.code, 0, "{again}");
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
}

#[test]
fn contexts_that_are_added_at_once_are_all_kept() {
    let home = Home::new();
    let names: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let home = &home;
            scope.spawn(move || {
                let context =
                    format!(r#"{{"name": "{name}", "repository": {{"filesystem": {{"baseDir": "/r"}}}}}}"#);
                let run = home.run_with(&["context", "add"], &[], &context);
                assert_eq!(run.code, 0, "{run}");
            });
        }
    });
    let mut listed: Vec<String> =
        home.run(&["context", "list", "-o", "text"]).stdout.lines().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, names);
}

/// An editor that stays open: it creates the file `open`, and ends when `open` is removed.
const SLOW_EDITOR: &str = "#!/bin/sh\nsed -i 's/old/new/' \"$1\"\ntouch <home>/open\nwhile [ -e <home>/open ]; do sleep 0.02; done\n";

fn with_slow_editor(home: &Home) -> String {
    home.write("editor", SLOW_EDITOR);
    fs::set_permissions(home.path("editor"), fs::Permissions::from_mode(0o755)).unwrap();
    home.path("editor").display().to_string()
}

fn wait_for(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < end, "waited too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_edit_of_the_catalogue_does_not_undo_the_change_of_another_command() {
    let home = Home::with_catalogue(
        "currentContext: old\ncontexts:\n- {name: old, repository: {filesystem: {baseDir: /old}}}\n",
    );
    let editor = with_slow_editor(&home);
    let mut terminal = Terminal::start(
        home.command(&["context", "edit", "--editor", &editor], &[("PATH", &std::env::var("PATH").unwrap())]),
    );
    wait_for(|| home.path("open").exists());
    let context = r#"{"name": "added", "repository": {"filesystem": {"baseDir": "/r"}}}"#;
    assert_eq!(home.run_with(&["context", "add"], &[], context).code, 0);
    fs::remove_file(home.path("open")).unwrap();
    terminal.expect("was changed by another command; repeat this command");
    assert_eq!(terminal.end().0, 5);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "old\nadded\n");
}

/// The other command commits its change, so that the checkout is clean when the editor is closed.
#[rstest]
#[case::resource(&["resource", "edit", "/shops/a"], "shops/a/resource.json")]
#[case::metadata(&["resource", "metadata", "edit", "/shops/"], "shops/_/metadata.yaml")]
#[case::defaults(&["resource", "defaults", "edit", "/shops/"], "shops/_/defaults.yaml")]
#[case::defaults_config(&["resource", "defaults", "config", "edit", "/shops/"], "shops/_/metadata.yaml")]
fn an_edit_does_not_undo_the_change_of_another_command(#[case] args: &[&str], #[case] file: &str) {
    let metadata =
        "resource: {id: /id, format: json, defaults: {value: '{{include defaults.yaml}}', mode: inherit}}\n";
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}}",
        &["/shops"],
        &[
            ("shops/a/resource.json", "{\"id\": \"a\", \"tier\": \"old\"}\n"),
            ("shops/_/metadata.yaml", metadata),
            ("shops/_/defaults.yaml", "size: old\n"),
        ],
    );
    let repository = world.home.path("repo");
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "start"]);
    let script = SLOW_EDITOR.replace("s/old/new/", "s/old/new/; s/inherit/replace/; s,id: /id,id: /name,");
    world.home.write("editor", &script);
    fs::set_permissions(world.home.path("editor"), fs::Permissions::from_mode(0o755)).unwrap();
    let editor = world.home.path("editor").display().to_string();
    let args = [args, &["--editor", &editor, "--ignore-warnings"]].concat();
    let path = std::env::var("PATH").unwrap();
    let mut terminal = Terminal::start(world.home.command(&args, &[("PATH", &path), ("TERM", "xterm")]));
    wait_for(|| world.home.path("open").exists());
    let changed = world.declared(file).unwrap().replace("old", "other").replace("json", "yaml");
    world.declare(file, &changed);
    git(&repository, &["commit", "--quiet", "--all", "--message", "other"]);
    fs::remove_file(world.home.path("open")).unwrap();
    terminal.expect("was changed by another command");
    assert_eq!(terminal.end().0, 5);
    assert_eq!(world.declared(file).unwrap(), changed);
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
}

#[rstest]
#[case::resource(&["resource", "edit", "/shops/a"])]
#[case::metadata(&["resource", "metadata", "edit", "/shops/"])]
#[case::catalogue(&["context", "edit"])]
fn an_edit_that_is_killed_changes_nothing(#[case] args: &[&str]) {
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}}",
        &["/shops"],
        &[
            ("shops/a/resource.json", "{\"id\": \"a\", \"tier\": \"old\"}\n"),
            ("shops/_/metadata.yaml", "resource: {id: /id}\n"),
        ],
    );
    let repository = world.home.path("repo");
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "start"]);
    let (catalogue, editor) = (world.home.catalogue(), with_slow_editor(&world.home));
    let args = [args, &["--editor", &editor, "--ignore-warnings"]].concat();
    let path = std::env::var("PATH").unwrap();
    let terminal = Terminal::start(world.home.command(&args, &[("PATH", &path), ("TERM", "xterm")]));
    wait_for(|| world.home.path("open").exists());
    terminal.kill();
    fs::remove_file(world.home.path("open")).unwrap();
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
    assert_eq!(world.home.catalogue(), catalogue);
    // Its lock is gone, too.
    let run = world.run(&["resource", "save", "/shops/b", "-f", r#"{"id": "b"}"#]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.run(&["context", "migrate"]).code, 0);
}

#[rstest]
#[case(1)]
#[case(4)]
#[case(8)]
#[case(16)]
fn a_migrate_that_is_killed_leaves_a_whole_catalogue(#[case] milliseconds: u64) {
    let mut catalogue = "currentContext: c0\ncontexts:\n".to_owned();
    for number in 0..500 {
        writeln!(catalogue, "- {{name: c{number}, repository: {{filesystem: {{baseDir: /r{number}}}}}}}")
            .unwrap();
    }
    let home = Home::with_catalogue(&catalogue);
    for _ in 0..5 {
        let mut command = home.command(&["context", "migrate"], &[]);
        let mut running =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        kill_process(Pid::from_child(&running), Signal::KILL).unwrap();
        running.wait().unwrap();
        let listed = home.run(&["context", "list", "-o", "text"]);
        assert_eq!((listed.code, listed.stdout.lines().count()), (0, 500), "{}", listed.stderr);
    }
    assert_eq!(home.run(&["context", "migrate"]).code, 0);
}

/// Runs `declarest` without the right of root to write to directories of mode 0555.
fn run_as_user(home: &Home, args: &[&str]) -> Run {
    let declarest = home.command(args, &[("DECLAREST_IGNORE_WARNINGS", "1")]);
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-dac_override,-dac_read_search").arg(declarest.get_program());
        command.args(declarest.get_args()).current_dir(home.path(""));
        command.env_clear().env("HOME", home.path("")).env("DECLAREST_IGNORE_WARNINGS", "1");
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
    } else {
        declarest
    };
    let output = command.stdin(Stdio::null()).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: home.shown(&String::from_utf8(output.stdout).unwrap()),
        stderr: home.shown(&String::from_utf8(output.stderr).unwrap()),
    }
}

#[test]
fn a_disk_that_cannot_be_written_is_named_and_can_be_read() {
    let world = World::new(&["/shops"], &[("shops/a/resource.json", "{\"id\": \"a\"}\n")]);
    world.live("/shops/a", r#"{"id": "a", "tier": "gold"}"#);
    let places = ["repo/shops/a", "repo/shops", "repo", ".declarest/configs"];
    let mode = |mode: u32| {
        for place in places {
            fs::set_permissions(world.home.path(place), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    mode(0o555);
    let catalogue = world.home.catalogue();
    let read = [
        &["resource", "get", "/shops/a", "--source", "repository"][..],
        &["resource", "diff", "/shops/a"],
        &["plan", "/"],
        &["context", "list"],
        &["validate"],
    ];
    for args in read {
        let run = run_as_user(&world.home, args);
        assert_eq!(run.code, 0, "{args:?} {run}");
    }
    let written = [
        (&["resource", "save", "/shops/a", "--force"][..], "shops/a/resource.json"),
        (&["resource", "save", "/shops/b", "-f", "{\"id\": \"b\"}"], "shops/b"),
        (&["resource", "delete", "/shops/a", "--yes", "--source", "repository"], "shops/a"),
        (&["context", "migrate"], ".declarest/configs/contexts.yaml"),
    ];
    for (args, named) in written {
        let run = run_as_user(&world.home, args);
        assert_eq!(run.code, 1, "{args:?} {run}");
        assert!(run.stderr.contains(named) && run.stderr.contains("Permission denied"), "{args:?} {run}");
    }
    mode(0o755);
    assert_eq!(world.declared("shops/a/resource.json").unwrap(), "{\"id\": \"a\"}\n");
    assert_eq!(world.home.catalogue(), catalogue);
}

#[test]
fn ten_thousand_files() {
    const COUNT: usize = 10_000;
    let world = World::new(&["/shops"], &[]);
    let shops: Vec<Value> = (0..COUNT).map(|shop| json!({"id": format!("s{shop:05}")})).collect();
    world.home.write("shops.json", &Value::from(shops).to_string());
    let run = world.run(&["resource", "save", "/shops/", "-f", "<home>/shops.json", "--mode", "items"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let listed = world.run(&["resource", "list", "/shops", "--source", "repository", "-o", "name"]);
    assert_eq!((listed.code, listed.stdout.lines().count()), (0, COUNT), "{}", listed.stderr);
    let run = world.run(&["validate"]);
    assert!(run.stdout.ends_with("Validated resources: 10000. Errors: 0. Warnings: 0.\n"), "{run}");
    let run = world.run(&["plan", "/", "-o", "jq=.summary.create"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "10000"), "{}", run.stderr);
}
