//! `__complete`, and the scripts that call it.

use rstest::rstest;

use crate::environment::{Home, declarest};
use crate::terminal::Terminal;
use crate::world::World;

/// Shops on the server and in the repository; `lima` is only on the server, `draft` only in the repository.
fn shops() -> World {
    let world = World::new(
        &["/shops", "/shops/*/tills"],
        &[
            ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n"),
            ("shops/_/tills/_/metadata.yaml", "resource: {id: /id}\n"),
            ("shops/rio/resource.yaml", "id: rio\nname: rio\n"),
            ("shops/draft/resource.yaml", "id: draft\nname: draft\n"),
            ("shops/with space/resource.yaml", "id: x\nname: with space\n"),
        ],
    );
    world.live("/shops/rio", r#"{"id": "rio", "name": "rio"}"#);
    world.live("/shops/7", r#"{"id": "7", "name": "lima"}"#);
    world
}

fn candidates(world: &World, words: &[&str]) -> String {
    let run = world.run(&[&["__completeNoDesc"], words].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    run.stdout
}

#[rstest]
#[case::of_the_server(&["resource", "get", "/shops/"], "/shops/lima/\n/shops/rio/\n:6\n")]
#[case::aliases(&["resource", "get", "/shops/l"], "/shops/lima/\n:6\n")]
#[case::of_the_repository(&["resource", "get", "--source", "repository", "/shops/"], "/shops/draft/\n/shops/rio/\n/shops/with space/\n:6\n")]
#[case::repository_first(&["resource", "diff", "/shops/d"], "/shops/draft/\n:6\n")]
#[case::both(&["resource", "delete", "--source=both", "/shops/"], "/shops/draft/\n/shops/lima/\n/shops/rio/\n/shops/with space/\n:6\n")]
#[case::collections(&["resource", "get", "/"], "/shops/\n:6\n")]
#[case::empty(&["resource", "get", ""], "/shops/\n:6\n")]
#[case::below(&["resource", "get", "/shops/rio/"], "/shops/rio/tills/\n:6\n")]
#[case::wildcards(&["resource", "metadata", "get", "/shops/_"], "/shops/_/\n:6\n")]
#[case::flag(&["resource", "get", "--path", "/sh"], "/shops/\n:6\n")]
#[case::flag_with_value(&["resource", "get", "--path=/sh"], "/shops/\n:6\n")]
#[case::plan(&["plan", "/shops/r"], "/shops/rio/\n:6\n")]
#[case::nothing(&["resource", "get", "/none/x"], ":6\n")]
fn paths(#[case] words: &[&str], #[case] expected: &str) {
    assert_eq!(candidates(&shops(), words), expected);
}

#[rstest]
#[case::leaves(&["resource", "diff", "/c/"], "/c/a\n/c/b/\n:6\n")]
#[case::below(&["resource", "diff", "/c/b/kids/"], "/c/b/kids/k\n:6\n")]
#[case::of_the_server(&["resource", "get", "/c/"], "/c/a\n/c/b/\n/c/new\n:6\n")]
#[case::collection(&["resource", "metadata", "get", "/"], "/c/\n/d/\n:6\n")]
fn only_a_path_with_children_ends_with_a_slash(#[case] words: &[&str], #[case] expected: &str) {
    let files = ["c/a/resource.json", "c/b/resource.json", "c/b/kids/k/resource.json"];
    let files: Vec<_> = files.iter().map(|file| (*file, "{}")).chain([("d/_/metadata.yaml", "")]).collect();
    let world = World::new(&["/c"], &files);
    for name in ["a", "b", "new"] {
        world.live(&format!("/c/{name}"), &format!(r#"{{"id": "{name}"}}"#));
    }
    assert_eq!(candidates(&world, words), expected);
}

#[test]
fn a_server_that_cannot_be_reached_is_silent() {
    let mut world = shops();
    world.server.stop();
    assert_eq!(candidates(&world, &["resource", "get", "/shops/r"]), "/shops/rio/\n:6\n");
}

#[rstest]
#[case::commands(&["res"], "resource\n:4\n")]
#[case::groups(&["resource", "de"], "delete\ndescribe\ndefaults\n:4\n")]
#[case::flags(&["resource", "get", "--show-m"], "--show-metadata\n:4\n")]
#[case::contexts(&["context", "use", ""], "dev\n:4\n")]
#[case::context_flag(&["-c", ""], "dev\n:4\n")]
#[case::formats(&["resource", "get", "-o", "j"], "json\n:4\n")]
#[case::formats_of_a_long_flag(&["resource", "get", "--output=y"], "yaml\n:4\n")]
#[case::choices(&["resource", "save", "--mode", ""], "auto\nitems\nsingle\n:4\n")]
#[case::methods(&["resource", "get", "--http-method", "P"], "POST\nPUT\nPATCH\n:4\n")]
#[case::operations(&["resource", "metadata", "render", "/shops/rio", "c"], "create\ncompare\n:4\n")]
#[case::files(&["resource", "save", "-f", ""], ":0\n")]
#[case::shells(&["completion", "f"], "fish\n:4\n")]
#[case::unknown(&["nothing", "here", ""], ":4\n")]
fn other_words(#[case] words: &[&str], #[case] expected: &str) {
    assert_eq!(candidates(&shops(), words), expected);
}

#[test]
fn descriptions_follow_a_tab() {
    let run = declarest(&["__complete", "vers"]);
    assert_eq!(run.stdout, "version\tPrint the version, commit and date of this build\n:4\n");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn without_a_context_there_is_an_error_bit() {
    let run = Home::new().run(&["__completeNoDesc", "resource", "get", "/"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, ":5\n", ""));
}

/// The replies of the script for bash to these words.
fn replies(world: &World, words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    let script = format!(
        "source <(declarest completion bash); COMP_WORDS=(declarest {}); COMP_CWORD={}; __declarest_complete; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len()
    );
    let output = world.home.shell(&script).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[rstest]
#[case::path(&["resource", "get", "/shops/ri"], "/shops/rio/\n")]
#[case::spaces(&["resource", "diff", "/shops/w"], "/shops/with\\ space/\n")]
#[case::escaped(&["resource", "diff", "/shops/with\\ s"], "/shops/with\\ space/\n")]
#[case::quoted(&["resource", "diff", "\"/shops/with s"], "/shops/with space/\n")]
#[case::split_at_equals(&["resource", "get", "--source", "=", "rep"], "repository\n")]
#[case::at_equals(&["resource", "get", "--source", "="], "managed-server\nrepository\n")]
#[case::command(&["repo"], "repository\n")]
fn bash(#[case] words: &[&str], #[case] expected: &str) {
    assert_eq!(replies(&shops(), words), expected);
}

/// Users of a server choose the names of its resources, and a completed line must not run them.
#[rstest]
fn names_of_the_server_are_not_code(
    #[values("", "'", "\"")] quote: &str,
    #[values("x$(touch pwned)`touch pwned`", "x';touch pwned;'", "x\";touch pwned;\"", "x\"!! ' é;$HOME")]
    name: &str,
) {
    let world = shops();
    world.live("/shops/8", &serde_json::json!({"id": "8", "name": name}).to_string());
    let script = "source <(declarest completion bash); COMP_WORDS=(declarest resource get \"$1/shops/x\"); COMP_CWORD=3; \
                  __declarest_complete; eval \"set -- $1${COMPREPLY[0]}$1\"; printf '%s' \"$1\"";
    for locale in ["C", "C.UTF-8"] {
        let mut shell = world.home.shell(&format!("LC_ALL={locale} exec bash -c \"$SCRIPT\" - \"$QUOTE\""));
        shell.env("SCRIPT", script).env("QUOTE", quote);
        let output = shell.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("/shops/{name}/"), "{output:?}");
    }
    assert!(!world.home.path("pwned").exists());
}

#[test]
fn names_with_control_characters_are_not_candidates() {
    let world = shops();
    world.live("/shops/8", r#"{"id": "8", "name": "rio\nnew"}"#);
    world.live("/shops/9", r#"{"id": "9", "name": "rio\u001b[31m"}"#);
    assert_eq!(candidates(&world, &["resource", "get", "/shops/r"]), "/shops/rio/\n:6\n");
}

/// A shell on a terminal of its own that has loaded its script. A missing shell fails the test, unless the variable allows it.
fn shell(world: &World, start: &str, load: &str) -> Option<Terminal> {
    let program = start.split(' ').next().unwrap();
    let found = world.home.shell(&format!("command -v {program}")).output().unwrap();
    if !found.status.success() {
        let allowed = std::env::var_os("DECLAREST_TEST_WITHOUT_SHELLS").is_some();
        assert!(allowed, "{program} is not installed; install it, or set DECLAREST_TEST_WITHOUT_SHELLS");
        return None;
    }
    let mut shell = world.home.shell(&format!("exec setsid --ctty --wait {start}"));
    shell.env("TERM", "dumb");
    let mut terminal = Terminal::start(shell);
    terminal.press(load);
    terminal.expect("ready> ");
    Some(terminal)
}

const BASH: (&str, &str) =
    ("bash --norc --noprofile -i", "PS1='re''ady> '; source <(declarest completion bash)\r");
const ZSH: (&str, &str) = (
    "zsh -f -i",
    "PS1='re''ady> '; setopt no_beep; autoload -Uz compinit; compinit -D; source <(declarest completion zsh)\r",
);
const FISH: (&str, &str) = (
    "fish --no-config -i",
    "declarest completion fish | source; function fish_prompt; echo; echo 're''ady> '; end\r",
);

#[rstest]
#[case::bash(BASH)]
#[case::zsh(ZSH)]
#[case::fish(FISH)]
fn on_a_terminal(#[case] (start, load): (&str, &str)) {
    let world = shops();
    let Some(mut terminal) = shell(&world, start, load) else { return };
    // A path of the server, level by level, and a flag after it.
    terminal.press("declarest resource get /sh\t");
    terminal.expect("/shops/");
    terminal.press("ri\t -n\r");
    terminal.expect("\"rio\"");
    // A name with a space. Control-U discards the line.
    terminal.press("declarest resource get --source repository /shops/wi\t");
    terminal.expect("with\\ space/");
    terminal.press("\x15\r");
    terminal.press("declarest resource diff /shops/with\\ s\t");
    terminal.expect("pace/");
    terminal.press("\x15\r");
    // A command, a context and a value of a flag.
    terminal.press("declarest context sh\t de\t\r");
    terminal.expect("currentContext: dev");
    terminal.press("declarest version --output=y\t\r");
    terminal.expect("build_date: ");
    terminal.press("exit\r");
    terminal.end();
}
