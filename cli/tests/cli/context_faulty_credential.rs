//! A credential that is not valid affects only the contexts that use it.

use rstest::rstest;

use crate::environment::{Home, Run};

/// The context `dev` uses no credential, `good` a valid one, and `bad` the one called `broken`.
fn home(entry: &str) -> Home {
    let server = |name: &str, credential: &str| {
        format!(
            "  - name: {name}\n    managedServer: {{http: {{url: 'http://127.0.0.1:1', auth: {{basic: {{credentialsRef: \
             {{name: {credential}}}}}}}}}}}\n    repository: {{filesystem: {{baseDir: <home>/repo}}}}\n"
        )
    };
    let home = Home::with_catalogue(&format!(
        "currentContext: dev\ncredentials:\n  - {{name: fine, username: u, password: p}}\n  - {entry}\ncontexts:\n  - \
         name: dev\n    repository: {{filesystem: {{baseDir: <home>/repo}}}}\n{}{}",
        server("good", "fine"),
        server("bad", "broken"),
    ));
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio"}"#);
    home
}

fn get(home: &Home, context: &str) -> Run {
    home.run(&["resource", "get", "/shops/rio", "--source", "repository", "-c", context, "--ignore-warnings"])
}

#[rstest]
#[case::missing("{name: broken, username: u}", "credentials[1]: \"password\" is missing")]
#[case::empty("{name: broken, username: u, password: ''}", "credentials[1].password: must not be empty")]
#[case::unknown("{name: broken, user: u, password: p}", "unknown key \"user\" in credentials[1]")]
#[case::no_prompt(
    "{name: broken, username: u, password: {prompt: false}}",
    "credentials[1].password: prompt must be true"
)]
fn other_contexts_work(#[case] entry: &str, #[case] reason: &str) {
    let home = home(entry);
    for context in ["dev", "good"] {
        let run = get(&home, context);
        assert_eq!(run.code, 0, "{run}");
    }
    let run = get(&home, "bad");
    assert_eq!(run.code, 2, "{run}");
    let used = "contexts[2].managedServer.http.auth.basic.credentialsRef.name: credential \"broken\" cannot be used: line 4, ";
    assert!(run.stderr.contains(used) && run.stderr.contains(reason), "{run}");
    let run = home.run(&["context", "validate"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(reason), "{run}");
}

#[rstest]
#[case::duplicate(
    "{name: fine, username: other, password: p}",
    "credentials[1].name: duplicate credential name \"fine\"",
    "good"
)]
#[case::same_variables(
    "{name: FINE, username: u, password: p}",
    "\"FINE\" and \"fine\" have the same environment variables",
    ""
)]
#[case::without_name("{username: u, password: p}", "credentials[1]: \"name\" is missing", "")]
fn names_that_cannot_be_used(#[case] entry: &str, #[case] reason: &str, #[case] fails: &str) {
    let home = home(entry);
    assert_eq!(get(&home, "dev").code, 0);
    assert_eq!(get(&home, "good").code, if fails == "good" { 2 } else { 0 });
    let run = get(&home, "bad");
    assert!(run.stderr.contains("there is no credential \"broken\""), "{run}");
    let run = home.run(&["context", "validate"]);
    assert!(run.code == 2 && run.stderr.contains(reason), "{run}");
}

#[test]
fn changes_of_the_catalogue_keep_it_and_an_update_repairs_it() {
    let home = home("{name: broken, username: canary, pass: canary}");
    assert_eq!(home.run(&["context", "use", "good"]).code, 0);
    assert!(home.catalogue().contains("pass: canary"), "{}", home.catalogue());
    assert_eq!(get(&home, "bad").code, 2);
    let valid = "credentials: [{name: broken, username: u, password: p}]\ncontexts: [{name: bad, managedServer: {http: \
                 {url: 'http://127.0.0.1:1', auth: {basic: {credentialsRef: {name: broken}}}}}, repository: {filesystem: \
                 {baseDir: <home>/repo}}}]\n";
    home.write("valid.yaml", valid);
    let run = home.run(&["context", "update", "-f", "<home>/valid.yaml"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!home.catalogue().contains("canary"), "{}", home.catalogue());
    assert_eq!(get(&home, "bad").code, 0);
    assert_eq!(home.run(&["context", "validate"]).code, 0);
}
