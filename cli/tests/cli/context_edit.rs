//! `context edit`.

use rstest::rstest;

use crate::environment::Home;
use crate::terminal::Terminal;

const CATALOGUE: &str = "\
# Kept.
currentContext: dev
credentials:
- {name: ops, username: alice, password: pw}
- {name: other, username: bob, password: pw}
contexts:
- {name: dev, managedServer: {http: {url: 'https://dev.test', auth: {basic: {credentialsRef: {name: ops}}}}}}
- {name: prod, repository: {filesystem: {baseDir: /prod}}}
";

/// Runs `context edit` with this script of sed as the editor; returns the exit code and what is shown.
fn edit(home: &Home, args: &[&str], script: &str) -> (i32, String) {
    home.write("editor.sh", &format!("cp \"$1\" <home>/seen\nsed -i '{script}' \"$1\"\n"));
    let editor = format!("sh {}", home.path("editor.sh").display());
    let args = [&["context", "edit"], args, &["--editor", &editor]].concat();
    let variables = [("TERM", "xterm"), ("PATH", "/usr/bin:/bin")];
    Terminal::start(home.command(&args, &variables)).end()
}

#[test]
fn the_catalogue_is_edited_as_it_stands() {
    let home = Home::with_catalogue(CATALOGUE);
    assert_eq!(edit(&home, &[], "s/dev.test/new.test/"), (0, String::new()));
    assert_eq!(home.catalogue(), CATALOGUE.replace("dev.test", "new.test"));
}

#[test]
fn one_context_is_edited_with_its_credentials() {
    let home = Home::with_catalogue(CATALOGUE);
    assert_eq!(edit(&home, &["dev"], "s/alice/carol/; s/name: dev/name: test/"), (0, String::new()));
    let seen = home.read("seen");
    assert!(seen.contains("context:\n") && seen.contains("alice"), "{seen}");
    assert!(!seen.contains("bob") && !seen.contains("currentContext") && !seen.contains("prod"), "{seen}");
    let catalogue = home.catalogue();
    for part in ["currentContext: test\n", "carol", "bob", "name: test\n", "name: prod\n"] {
        assert!(catalogue.contains(part), "{part} is missing in {catalogue}");
    }
}

#[rstest]
#[case::syntax("contexts: [{name: dev, repository: {filesystem: {baseDir: /r}}}", "s/$/]/")]
#[case::key("context: [{name: dev, repository: {filesystem: {baseDir: /r}}}]", "s/context:/contexts:/")]
fn a_catalogue_that_cannot_be_read_is_corrected(#[case] broken: &str, #[case] script: &str) {
    let home = Home::with_catalogue(broken);
    assert_eq!(home.run(&["context", "list"]).code, 2);
    assert_eq!(edit(&home, &["dev"], script).0, 2, "one context needs the catalogue");
    assert_eq!(edit(&home, &[], script), (0, String::new()));
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "dev\n");
}

#[rstest]
#[case::unknown_key(&[], "s/managedServer/managedServers/", 2, "managedServers")]
#[case::invalid(&["dev"], "s/url/uri/", 2, "context \"dev\"")]
#[case::no_context(&["dev"], "s/^context:/contexts:/", 2, "the member context is missing")]
#[case::taken(&["dev"], "s/name: dev/name: prod/", 2, "prod")]
#[case::empty(&[], "d", 2, "the catalogue of contexts is empty after editing")]
#[case::not_found(&["none"], "", 3, "context \"none\" not found")]
#[case::contradiction(&["dev", "-c", "prod"], "", 2, "context name mismatch")]
fn what_is_not_valid_is_not_saved(
    #[case] args: &[&str],
    #[case] script: &str,
    #[case] code: i32,
    #[case] message: &str,
) {
    let home = Home::with_catalogue(CATALOGUE);
    let (ended, shown) = edit(&home, args, script);
    assert_eq!(ended, code, "{shown}");
    assert!(shown.contains(message), "{shown}");
    assert_eq!(home.catalogue(), CATALOGUE);
}

/// The file of an edit has credentials, so it is beside the catalogue.
#[test]
fn an_edit_that_is_not_saved_is_kept_beside_the_catalogue() {
    let home = Home::with_catalogue(CATALOGUE);
    let kept = || {
        let files = std::fs::read_dir(home.path(".declarest/configs")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("declarest-")).collect::<Vec<_>>()
    };
    assert_eq!(edit(&home, &[], "s/dev.test/new.test/"), (0, String::new()));
    assert_eq!(kept(), Vec::<String>::new());
    let (code, shown) = edit(&home, &["dev"], "s/url/uri/");
    assert_eq!(code, 2, "{shown}");
    let [file] = &kept()[..] else { panic!("{:?}", kept()) };
    assert!(shown.contains(&format!("/.declarest/configs/{file} has the edited text")), "{shown}");
    assert!(home.read(&format!(".declarest/configs/{file}")).contains("uri"));
}

#[test]
fn a_terminal_is_needed() {
    let run = Home::with_catalogue(CATALOGUE).run(&["context", "edit"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("cannot ask for the catalogue of contexts without a terminal"), "{run}");
}
