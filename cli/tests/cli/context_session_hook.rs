//! `context session-hook`.

use crate::environment::{Home, declarest};

const SESSION: &str = "XDG_RUNTIME_DIR";

/// Returns the output of bash when it runs `script` after the hook. A trap was set before, and the hook is loaded twice.
fn bash(home: &Home, script: &str, variables: &[(&str, &str)]) -> String {
    let hook = "eval \"$(declarest context session-hook bash)\"";
    let script = format!("trap 'echo \"earlier it'\"'\"'s $?\"' EXIT\n{hook}\n{hook}\n{script}");
    let mut shell = home.shell(&script);
    let output = shell.env(SESSION, home.path("run")).envs(variables.iter().copied()).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    String::from_utf8(output.stdout).unwrap()
}

/// Creates the session file of the shell, and prints its session with N for the digits.
const FILE: &str = "hex=$(printf %s \"$DECLAREST_PROMPT_AUTH_SESSION_ID\" | sha256sum | cut -c1-16)
file=$XDG_RUNTIME_DIR/declarest/prompt-auth/prompt-auth-$hex.json
mkdir -p \"${file%/*}\" && echo '{}' > \"$file\"
echo \"$DECLAREST_PROMPT_AUTH_SESSION_ID\" | tr 0-9 N | tr -s N\n";

fn remembered(home: &Home) -> usize {
    std::fs::read_dir(home.path("run/declarest/prompt-auth")).unwrap().count()
}

#[test]
fn bash_forgets_when_it_ends_and_keeps_earlier_traps() {
    let home = Home::new();
    home.write("run/x", "");
    let printed = bash(&home, &format!("{FILE}exit 3"), &[]);
    assert_eq!(printed, "bash:N\nearlier it's 3\n");
    assert_eq!(remembered(&home), 0);
}

#[test]
fn the_session_of_another_shell_goes_on() {
    let home = Home::new();
    home.write("run/x", "");
    let printed = bash(&home, FILE, &[("DECLAREST_PROMPT_AUTH_SESSION_ID", "bash:1")]);
    assert_eq!(printed, "bash:N\nearlier it's 0\n");
    assert_eq!(remembered(&home), 1);
}

#[test]
fn shells() {
    for shell in ["bash", "zsh"] {
        let run = declarest(&["context", "session-hook", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
        assert!(run.stdout.contains(&format!("DECLAREST_PROMPT_AUTH_SESSION_ID=\"{shell}:$$\"")), "{run}");
        assert!(run.stdout.contains("declarest_prompt_auth_cleanup() {"), "{run}");
    }
    // Earlier versions use the same names, so that a shell with the hooks of two has one.
    let bash = declarest(&["context", "session-hook", "bash"]).stdout;
    for name in [
        "declarest_prompt_auth_on_exit() {",
        "__declarest_prompt_auth_bash_hook_installed=1",
        "__declarest_prompt_auth_prev_exit=",
    ] {
        assert!(bash.contains(name), "{bash}");
    }
    assert!(declarest(&["context", "session-hook", "zsh"]).stdout.contains("zshexit_functions+="));
    assert_ne!(declarest(&["context", "session-hook", "fish"]).code, 0);
}
