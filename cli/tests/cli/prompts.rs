//! Prompts on a terminal: the questions, the answers that are stored, and the errors without a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rstest::rstest;

use crate::environment::{Home, Run};
use crate::terminal::{BACKSPACE, END, ENTER, INTERRUPT, Terminal};
use crate::world::World;

const USERNAME: &str = "Username of credential \"ops\": ";
const PASSWORD: &str = "Password of credential \"ops\": ";
const PROMPT: &str = "{prompt: true}";
const PERSISTENT: &str = "{prompt: true, persistInSession: true}";

/// A server that requires credentials, and a context whose credential is `{username, password}`.
fn world(username: &str, password: &str) -> World {
    let world = World::with_store(&["/apps"], &[("apps/a/resource.json", r#"{"id": "a"}"#)]);
    world.live("/apps/a", r#"{"id": "a", "size": 1}"#);
    world.server.require_basic("alice", "pässword");
    let catalogue = world.home.catalogue().replace(
        "auth: {customHeaders: [{header: K, value: v}]}",
        "auth: {basic: {credentialsRef: {name: ops}}}",
    );
    let credentials =
        format!("credentials: [{{name: ops, username: {username}, password: {password}}}]\ncontexts:");
    world.home.write(".declarest/configs/contexts.yaml", &catalogue.replace("contexts:", &credentials));
    world
}

fn at_terminal(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let plain = [&[("TERM", "xterm"), ("NO_COLOR", "1"), ("DECLAREST_IGNORE_WARNINGS", "1")], variables];
    Terminal::start(home.command(args, &plain.concat()))
}

/// The variables of a session whose directory exists.
fn session<'a>(home: &Home, directory: &'a mut String, id: &'a str) -> [(&'a str, &'a str); 2] {
    fs::create_dir_all(home.path("run")).unwrap();
    *directory = home.path("run").display().to_string();
    [("XDG_RUNTIME_DIR", directory), ("DECLAREST_PROMPT_AUTH_SESSION_ID", id)]
}

const GET: [&str; 3] = ["resource", "get", "/apps/a"];

#[test]
fn credentials_are_asked_for_once_and_passwords_do_not_show() {
    let world = world(PROMPT, PROMPT);
    let mut terminal = at_terminal(&world.home, &["resource", "apply", "/apps", "-v"], &[]);
    terminal.answer(USERNAME, "alice");
    terminal.expect(PASSWORD);
    assert!(!terminal.echoes(), "who types a password must not see it");
    terminal.press(format!("päx{BACKSPACE}é{BACKSPACE}ssword{ENTER}"));
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(shown.matches("Password").count() + shown.matches("Username").count(), 2, "{shown}");
    assert!(shown.contains(&format!("{USERNAME}alice\n{PASSWORD}\n")), "{shown}");
    assert!(!shown.contains('ä'), "{shown}");
    assert!(world.server.log().iter().all(|request| request.status != Some(401)), "{:?}", world.server.log());
}

#[rstest]
#[case::interrupt(INTERRUPT)]
#[case::end(END)]
#[case::in_the_middle("secr\x03")]
fn who_interrupts_changes_nothing(#[case] keys: &str) {
    let world = world("alice", PROMPT);
    let mut terminal = at_terminal(&world.home, &["resource", "apply", "/apps"], &[]);
    terminal.expect(PASSWORD);
    terminal.press(keys);
    terminal.expect("interrupted; nothing was changed");
    assert!(terminal.echoes(), "the terminal is left as it was");
    let (code, shown) = terminal.end();
    assert_eq!(code, 2, "{shown}");
    assert!(world.server.log().is_empty());
}

#[test]
fn no_answer_is_none() {
    let world = world("alice", PROMPT);
    let mut terminal = at_terminal(&world.home, &GET, &[]);
    terminal.answer(PASSWORD, "  ");
    let (code, shown) = terminal.end();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("credential \"ops\": password is empty"), "{shown}");
    assert!(world.server.log().is_empty());
}

#[test]
fn answers_are_kept_for_the_session_if_that_is_wanted() {
    let (world, mut directory) = (world(PROMPT, PERSISTENT), String::new());
    let variables = session(&world.home, &mut directory, "bash:1");
    let mut terminal =
        at_terminal(&world.home, &GET, &[&variables[..], &[("DECLAREST_IGNORE_WARNINGS", "0")]].concat());
    terminal.answer(USERNAME, "alice");
    terminal.answer(PASSWORD, "pässword");
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    let expected = "[WARNING] the password of credential \"ops\" is kept for this session \
                (DECLAREST_PROMPT_AUTH_SESSION_ID) and used again without asking";
    assert!(shown.contains(expected) && !shown.contains("the username of"), "{shown}");

    let mode = |file: &str| fs::metadata(world.home.path(file)).unwrap().permissions().mode() & 0o777;
    let file = "run/declarest/prompt-auth/prompt-auth-2eddf0a274b6f6ca.json";
    assert_eq!((mode("run/declarest/prompt-auth"), mode(file)), (0o700, 0o600));
    let kept = world.home.read(file);
    assert_eq!(kept, r#"{"DECLAREST_CONTEXT_CREDENTIAL_OPS_PASSWORD":"pässword"}"#);

    // The user name was not to be kept.
    let name = ("DECLAREST_CONTEXT_CREDENTIAL_OPS_USERNAME", "alice");
    let again = |variables: &[(&str, &str)]| world.home.run_with(&GET, &[variables, &[name]].concat(), "");
    let run = again(&variables);
    assert_eq!(run.code, 0, "{run}");
    let another = [variables[0], ("DECLAREST_PROMPT_AUTH_SESSION_ID", "bash:2")];
    for forgotten in [&another[..], &variables[..1], &variables[1..], &[]] {
        refused(&again(forgotten));
    }
    let clean = world.home.run_with(&["context", "clean", "--credentials-in-session"], &variables, "");
    assert_eq!(clean.stdout, "removed 1 prompt credential session cache files\n", "{clean}");
    assert!(!world.home.path(file).exists());
    refused(&again(&variables));
}

fn refused(run: &Run) {
    assert_eq!(run.code, 2, "{run}");
    let expected = " without a terminal on standard input and output; set \
                DECLAREST_CONTEXT_CREDENTIAL_OPS_PASSWORD";
    assert!(run.stderr.contains(expected), "{run}");
}

#[rstest]
#[case::not_wanted(PROMPT, true)]
#[case::no_directory(PERSISTENT, false)]
fn other_answers_are_forgotten(#[case] password: &str, #[case] directory_exists: bool) {
    let (world, mut directory) = (world("alice", password), String::new());
    let variables = session(&world.home, &mut directory, "bash:1");
    if !directory_exists {
        fs::remove_dir(world.home.path("run")).unwrap();
    }
    for _ in 0..2 {
        let mut terminal = at_terminal(&world.home, &GET, &variables);
        terminal.answer(PASSWORD, "pässword");
        let (code, shown) = terminal.end();
        assert_eq!(code, 0, "{shown}");
    }
    assert!(!world.home.path("run/declarest").exists());
}

#[test]
fn a_broken_session_file_is_reported() {
    let (world, mut directory) = (world("alice", PERSISTENT), String::new());
    let variables = session(&world.home, &mut directory, "bash:1");
    world.home.write("run/declarest/prompt-auth/prompt-auth-2eddf0a274b6f6ca.json", "[canary");
    let run = world.home.run_with(&GET, &variables, "");
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("it is not a JSON object of strings; delete it"), "{run}");
    assert!(!run.stderr.contains("canary"), "{run}");
}

/// A shell with the hook prompts once, and removes its session file when it ends.
#[test]
fn a_shell_remembers_until_it_ends() {
    let (world, mut directory) = (world("alice", PERSISTENT), String::new());
    let [runtime, _] = session(&world.home, &mut directory, "");
    let get = "declarest resource get /apps/a";
    let script = format!(
        "eval \"$(declarest context session-hook bash)\"; {get}; echo first $?; {get}; echo second $?; \
         ls $XDG_RUNTIME_DIR/declarest/prompt-auth | wc -l"
    );
    let mut shell = world.home.shell(&script);
    shell.envs([runtime]);
    let mut terminal = Terminal::start(shell);
    terminal.answer(PASSWORD, "pässword");
    terminal.expect("first 0");
    let (code, shown) = terminal.end();
    assert_eq!((code, shown.matches(PASSWORD).count()), (0, 1), "{shown}");
    assert!(shown.ends_with("second 0\n1\n"), "{shown}");
    assert_eq!(fs::read_dir(world.home.path("run/declarest/prompt-auth")).unwrap().count(), 0);
}

/// Both input and output must be a terminal, because a user must see the question to answer it.
#[rstest]
#[case::credential(&["resource", "get", "/apps/a"], "cannot ask for Password of credential \"ops\"")]
#[case::value(&["secret", "set", "token", "--prompt"], "cannot ask for Value of token")]
#[case::context(&["context", "use"], "context name is required: declarest context use NAME")]
#[case::context_to_delete(&["context", "delete"], "context name is required: declarest context delete NAME")]
#[case::new_name(&["context", "rename", "dev"], "new context name is required: declarest context rename FROM TO")]
#[case::editor(&["resource", "metadata", "edit", "/apps/a"], "cannot ask for the metadata of /apps/a")]
fn questions_need_a_terminal(
    #[case] args: &[&str],
    #[case] message: &str,
    #[values("neither", "input", "output")] terminal: &str,
) {
    let world = world("alice", PROMPT);
    let catalogue = world.home.catalogue();
    let command = world.home.command(args, &[("DECLAREST_IGNORE_WARNINGS", "1")]);
    let terminal = Terminal::start_with(command, |command, tty| {
        command.stdin(if terminal == "input" { tty().into() } else { Stdio::null() });
        command.stdout(if terminal == "output" { tty().into() } else { Stdio::null() });
        command.stderr(tty());
    });
    let (code, shown) = terminal.end();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains(message), "{shown}");
    assert_eq!(world.home.catalogue(), catalogue);
    assert!(world.server.log().is_empty());
}

#[rstest]
#[case::credential(&["resource", "get", "/apps/a"], "cannot ask for Password of credential \"ops\" with --no-input; set ")]
#[case::value(&["secret", "set", "token", "--prompt"], "cannot ask for Value of token with --no-input")]
#[case::context(&["context", "use"], "context name is required: declarest context use NAME")]
#[case::new_name(&["context", "rename", "dev"], "new context name is required: declarest context rename FROM TO")]
#[case::editor(&["resource", "metadata", "edit", "/apps/a"], "cannot ask for the metadata of /apps/a with --no-input")]
fn no_input_prevents_questions(#[case] args: &[&str], #[case] message: &str) {
    let world = world("alice", PROMPT);
    let catalogue = world.home.catalogue();
    let (code, shown) = at_terminal(&world.home, &[args, &["--no-input"]].concat(), &[]).end();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains(message), "{shown}");
    assert_eq!(world.home.catalogue(), catalogue);
    assert!(world.server.log().is_empty());
}

#[test]
fn without_input_only_what_is_named_is_read() {
    let (world, given) = (world("alice", "pässword"), r#"{"id": "b", "size": 2}"#);
    world.live("/apps/b", r#"{"id": "b", "size": 1}"#);
    let save = |args: &[&str]| {
        let run = world
            .run_with(&[&["resource", "save", "/apps/b", "--force", "--no-input"], args].concat(), given);
        assert_eq!(run.code, 0, "{run}");
        serde_json::from_str::<serde_json::Value>(&world.declared("apps/b/resource.json").unwrap()).unwrap()["size"]
            .clone()
    };
    assert_eq!((save(&[]), save(&["-f", "-"])), (1.into(), 2.into()));
    let mask = world.run_with(&["secret", "mask", "--no-input"], given);
    assert_eq!(mask.code, 2, "{mask}");
    assert!(mask.stderr.contains("input is required"), "{mask}");
    let set = world.run_with(&["secret", "set", "token", "--stdin", "--no-input"], "t");
    assert_eq!(set.code, 0, "{set}");
}

#[test]
fn a_value_can_be_typed() {
    let world = world("alice", PROMPT);
    let mut terminal = at_terminal(&world.home, &["secret", "set", "/apps/a", "pw", "--prompt"], &[]);
    terminal.answer("Value of apps/a:pw: ", "s3cret value");
    let (code, shown) = terminal.end();
    assert_eq!((code, shown.as_str()), (0, "Value of apps/a:pw: \n"));
    assert_eq!(world.run(&["secret", "get", "/apps/a:pw"]).stdout, "s3cret value\n");
}

#[rstest]
#[case::erase_line("wröng\x15s3cret", "s3cret")]
#[case::erase_word("two wrong  \x17words", "two words")]
#[case::erase_the_only_word("wrong\x17s3cret", "s3cret")]
#[case::arrow("s3c\x1b[Dret", "s3cret")]
#[case::arrow_of_applications("s3c\x1bOCret", "s3cret")]
#[case::paste("\x1b[200~s3cret\x1b[201~", "s3cret")]
#[case::end_in_the_middle("s3c\x04ret", "s3cret")]
#[case::suspend("s3c\x1aret", "s3cret")]
#[case::tab("s3c\tret", "s3c\tret")]
fn keys_that_edit_are_not_in_the_value(#[case] typed: &str, #[case] expected: &str) {
    let world = world("alice", PROMPT);
    let mut terminal = at_terminal(&world.home, &["secret", "set", "/apps/a", "pw", "--prompt"], &[]);
    terminal.answer("Value of apps/a:pw: ", typed);
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(world.run(&["secret", "get", "/apps/a:pw"]).stdout, format!("{expected}\n"));
}

#[test]
fn a_value_that_is_not_utf_8_is_not_stored() {
    let world = world("alice", PROMPT);
    let mut terminal = at_terminal(&world.home, &["secret", "set", "/apps/a", "pw", "--prompt"], &[]);
    terminal.expect("Value of apps/a:pw: ");
    terminal.press(b"caf\xe9\r");
    let (code, shown) = terminal.end();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("the answer is not UTF-8"), "{shown}");
    assert_eq!(world.run(&["secret", "get", "/apps/a:pw"]).code, 3);
}

/// Flags confirm an operation; the command does not prompt for a confirmation.
#[rstest]
#[case::overwrite(&["resource", "save", "/apps/a"], "already exists; rerun with --force")]
#[case::delete(&["resource", "delete", "/apps/a"], "--yes")]
#[case::no_input(&["secret", "mask"], "input is required: provide --payload <path|-> or stdin")]
fn flags_are_not_asked_for(#[case] args: &[&str], #[case] message: &str) {
    let world = world("alice", "pässword");
    let (code, shown) = at_terminal(&world.home, args, &[]).end();
    assert!(code != 0 && shown.contains(message), "{code} {shown}");
    assert!(world.writes().is_empty());
    assert_eq!(world.declared("apps/a/resource.json").as_deref(), Some(r#"{"id": "a"}"#));
}

fn two_contexts() -> Home {
    Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/repo}}\n\
         - name: prod\n  repository: {filesystem: {baseDir: <home>/repo}}\n",
    )
}

#[rstest]
#[case::by_number("2", 0, "currentContext: prod")]
#[case::by_name(" prod ", 0, "currentContext: prod")]
#[case::unknown("3", 3, "currentContext: dev")]
#[case::blank("", 2, "currentContext: dev")]
fn a_context_can_be_picked(#[case] answer: &str, #[case] code: i32, #[case] kept: &str) {
    let home = two_contexts();
    let mut terminal = at_terminal(&home, &["context", "use"], &[]);
    terminal.expect("  1  dev\r\n  2  prod\r\n");
    terminal.answer("Context: ", answer);
    let (ended, shown) = terminal.end();
    assert_eq!(ended, code, "{shown}");
    assert!(home.catalogue().contains(kept), "{}", home.catalogue());
}

#[rstest]
#[case::no("n", true)]
#[case::nothing("", true)]
#[case::yes("y", false)]
fn what_was_picked_is_deleted_after_a_question(#[case] answer: &str, #[case] stays: bool) {
    let home = two_contexts();
    let mut terminal = at_terminal(&home, &["context", "delete"], &[]);
    terminal.answer("Context: ", "2");
    terminal.answer("Delete context \"prod\"? [y/N]: ", answer);
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert_eq!((home.catalogue().contains("prod"), shown.contains("delete canceled")), (stays, stays));
}

#[test]
fn a_new_name_can_be_typed() {
    let home = two_contexts();
    let mut terminal = at_terminal(&home, &["context", "rename", "prod"], &[]);
    terminal.answer("New name: ", "live");
    assert_eq!(terminal.end().0, 0);
    assert!(home.catalogue().contains("name: live"), "{}", home.catalogue());
}

#[test]
fn metadata_is_edited_at_a_terminal() {
    let world = world("alice", PROMPT);
    world.declare("apps/a/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");
    let edit = |editor: &str| {
        at_terminal(&world.home, &["resource", "metadata", "edit", "/apps/a", "--editor", editor], &[]).end()
    };
    assert_eq!(edit("sed -i s/pin/pw/").0, 0);
    let edited = world.declared("apps/a/metadata.yaml").unwrap();
    assert!(edited.contains("/pw"), "{edited}");
    let (code, shown) = edit("sed -i d");
    assert_eq!(code, 2, "{shown}");
    assert_eq!(world.declared("apps/a/metadata.yaml"), Some(edited));
}

#[test]
fn a_terminal_sees_lists_as_text_and_no_secrets_of_a_context() {
    let world = world("alice", "pässword");
    world.store_secret("/apps/a:/pw", "v");
    let seen = |args: &[&str]| at_terminal(&world.home, args, &[]).end();
    assert_eq!(seen(&["secret", "list"]), (0, "/apps/a:/pw\n".to_owned()));
    for args in [&["context", "show"][..], &["context", "current", "-o", "json"]] {
        let (code, shown) = seen(args);
        assert_eq!(code, 0, "{shown}");
        assert!(!shown.contains("pässword") && !shown.contains("0123456789abcdef"), "{shown}");
        assert!(shown.contains("<redacted>"), "{shown}");
    }
}
