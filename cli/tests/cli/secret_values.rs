//! `secret init`, `set`, `get`, `list` and `delete`.

use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;

use crate::environment::{Home, Run};

/// A context with a repository in `repo` and an encrypted file of secrets.
pub fn home() -> Home {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/repo}}\n  \
         secretStore: {file: {path: <home>/store/secrets.json, passphrase: blue kettle 42, kdf: {time: 1, memory: \
         8, threads: 1}}}\n",
    );
    std::fs::create_dir_all(home.path("repo")).unwrap();
    home
}

pub fn run(home: &Home, args: &[&str]) -> Run {
    home.run_with(&[&["secret"], args].concat(), &[], "")
}

fn filled() -> Home {
    let home = home();
    for (key, value) in
        [("token", "t"), ("/shops:/pin", "0420"), ("/shops:ci", "c"), ("/shops/rio:/apiToken", "a")]
    {
        assert_eq!(run(&home, &["set", key, value]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    }
    home
}

#[test]
fn the_store_is_made_once() {
    let home = home();
    for _ in 0..2 {
        assert_eq!(run(&home, &["init"]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    }
    let mode = |file: &str| std::fs::metadata(home.path(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("store"), mode("store/secrets.json")), (0o700, 0o600));
}

#[rstest]
#[case::both(&["/shops/rio", "/apiToken"])]
#[case::joined(&["/shops/rio:/apiToken"])]
#[case::flags(&["--path", "/shops/rio", "--key", "/apiToken"])]
#[case::flag_and_key(&["-p", "/shops/rio", "/apiToken"])]
fn targets(#[case] target: &[&str]) {
    let home = home();
    assert_eq!(run(&home, &[&["set"], target, &["first"]].concat()).code, 0);
    assert_eq!(run(&home, &[&["store"], target, &["hush"]].concat()).code, 0);
    let get = run(&home, &[&["get"], target].concat());
    assert_eq!(get.to_string(), "exit 0\n--- stdout\nhush\n--- stderr\n");
    assert_eq!(run(&home, &["list"]).stdout, "[\n  \"/shops/rio:/apiToken\"\n]\n");
    assert!(!home.read("store/secrets.json").contains("hush"));
    for _ in 0..2 {
        assert_eq!(run(&home, &[&["delete"], target].concat()).code, 0);
    }
    assert_eq!(run(&home, &[&["get"], target].concat()).code, 3);
}

#[rstest]
#[case::everything(&[], &["/shops/rio:/apiToken", "/shops:/pin", "/shops:ci", "token"])]
#[case::of_a_path(&["/shops"], &["/pin", "ci"])]
#[case::below(&["/shops", "-r"], &["/pin", "/rio:/apiToken", "ci"])]
#[case::root(&["/"], &["/shops/rio:/apiToken", "/shops:/pin", "/shops:ci"])]
#[case::flag(&["--path", "/shops/rio"], &["/apiToken"])]
fn lists(#[case] args: &[&str], #[case] expected: &[&str]) {
    let listed = run(&filled(), &[&["list", "-o", "text"], args].concat());
    assert_eq!((listed.code, listed.stdout.lines().collect::<Vec<_>>()), (0, expected.to_vec()));
}

#[test]
fn an_empty_store_has_an_empty_list() {
    let home = home();
    assert_eq!(run(&home, &["list"]).to_string(), "exit 0\n--- stdout\n[]\n--- stderr\n");
    assert!(!home.path("store").exists());
}

#[rstest]
#[case::path_alone(&["get", "/shops"], 2, "\"declarest secret list /shops\" shows its keys")]
#[case::delete_path_alone(&["delete", "--path", "/shops"], 2, "\"declarest secret list /shops\" shows its keys")]
#[case::key_alone(&["get", "--key", "ci"], 2, "--key needs --path")]
#[case::contradiction(&["get", "/other:ci", "--path", "/shops", "--key", "ci"], 2, "different secrets")]
#[case::missing(&["get", "/shops", "none"], 3, "secret shops:none not found in <home>/store/secrets.json")]
#[case::nothing_there(&["list", "/none"], 3, "no secret of /none found")]
#[case::no_key(&["get"], 2, "secret key is required")]
#[case::no_value(&["set", "token"], 2, "secret key and value are required")]
#[case::no_json(&["get", "token", "-o", "json"], 2, "prints text only")]
#[case::bad_key(&["get", "a/../b"], 2, "empty, . or .. segment")]
fn refused(#[case] args: &[&str], #[case] code: i32, #[case] message: &str) {
    let run = run(&filled(), args);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(message), "{run}");
}

#[rstest]
#[case::stdin(&["set", "token", "--stdin"], "from stdin\n", "from stdin")]
#[case::file(&["set", "/shops", "pem", "--from-file", "<home>/pem"], "", "line 1\nline 2")]
fn values_that_are_not_arguments(#[case] args: &[&str], #[case] stdin: &str, #[case] expected: &str) {
    let home = home();
    home.write("pem", "line 1\nline 2\n");
    let set = home.run_with(&[&["secret"], args].concat(), &[], stdin);
    assert_eq!(set.code, 0, "{set}");
    let key = run(&home, &["list", "-o", "text"]).stdout;
    assert_eq!(run(&home, &["get", key.trim()]).stdout, format!("{expected}\n"));
}

#[rstest]
#[case::stdin(&["set", "token", "--stdin"], "\n")]
#[case::no_input(&["set", "token", "--stdin"], "")]
#[case::file(&["set", "token", "--from-file", "<home>/empty"], "")]
#[case::argument(&["set", "token", ""], "")]
fn an_empty_value_replaces_none(#[case] args: &[&str], #[case] stdin: &str) {
    let home = filled();
    home.write("empty", "");
    let set = |args: &[&str]| home.run_with(&[&["secret"], args].concat(), &[], stdin);
    let refused = set(args);
    assert_eq!(refused.code, 2, "{refused}");
    let message = "the value of token is empty, and nothing was changed; --allow-empty accepts it";
    assert!(refused.stderr.contains(message), "{refused}");
    assert_eq!(run(&home, &["get", "token"]).stdout, "t\n");
    assert_eq!(set(&[args, &["--allow-empty"]].concat()).code, 0);
    assert_eq!(run(&home, &["get", "token"]).stdout, "");
}

/// Other options take it for standard input.
#[test]
fn a_dash_is_not_a_value() {
    let home = filled();
    let set = home.run_with(&["secret", "set", "token", "-"], &[], "new");
    assert!(set.code == 2 && set.stderr.contains("--stdin reads standard input"), "{set}");
    assert_eq!(run(&home, &["get", "token"]).stdout, "t\n");
    assert_eq!(home.run_with(&["secret", "set", "token", "--stdin"], &[], "-").code, 0);
}

#[test]
fn a_file_that_others_may_read_is_reported_and_protected() {
    let home = filled();
    let file = home.path("store/secrets.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    insta::assert_snapshot!(run(&home, &["get", "token"]), @r"
    exit 0
    --- stdout
    t
    --- stderr
    [WARNING] <home>/store/secrets.json has mode 0640; it is changed to 0600
    ");
    assert_eq!(run(&home, &["get", "token"]).stderr, "");
}

#[test]
fn a_wrong_passphrase_is_an_authentication_error() {
    let home = filled();
    let catalogue = home.catalogue().replace("kettle", "teapot");
    home.write(".declarest/configs/contexts.yaml", &catalogue);
    insta::assert_snapshot!(run(&home, &["get", "token"]), @r#"
    exit 4
    --- stdout
    --- stderr
    cannot decrypt secret file <home>/store/secrets.json: the key or passphrase is wrong, or the file is damaged
    hint: correct the credentials of context "dev", and test them with "declarest context check dev"
    "#);
}

#[test]
fn without_a_store_nothing_works() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>/repo}}\n",
    );
    let get = run(&home, &["get", "token"]);
    assert_eq!(get.code, 2);
    assert!(get.stderr.starts_with("secret provider is not configured"), "{get}");
}

#[test]
fn keys_beside_the_repository() {
    let home = filled();
    std::fs::create_dir_all(home.path("repo/shops/rio")).unwrap();
    std::fs::create_dir_all(home.path("repo/shops/lima")).unwrap();
    home.write("repo/shops/rio/resource.yaml", "apiToken: '{{secret .}}'\nother: '{{secret db}}'\n");
    home.write("repo/shops/lima/resource.json", r#"{"pin": "{{secret .}}", "plain": "x"}"#);
    let listed = |args: &[&str]| {
        let run = run(&home, &[&["list", "-o", "text"], args].concat());
        assert_eq!(run.code, 0, "{run}");
        run.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--missing"]), ["/shops/lima:/pin", "/shops/rio:db"]);
    assert_eq!(listed(&["--missing", "/shops/rio"]), ["/shops/rio:db"]);
    assert_eq!(listed(&["--missing", "/shops"]), [] as [&str; 0]);
    assert_eq!(listed(&["--missing", "/shops", "-r"]), ["/shops/lima:/pin", "/shops/rio:db"]);
    assert_eq!(listed(&["--unused"]), ["/shops:/pin", "/shops:ci", "token"]);
    assert_eq!(listed(&["--unused", "/shops"]), ["/shops:/pin", "/shops:ci"]);
    let both = run(&home, &["list", "--missing", "--unused"]);
    assert_eq!(both.code, 1, "{both}");
}
