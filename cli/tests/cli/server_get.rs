//! `server get`.

use crate::environment::Home;
use crate::server::Server;

fn home(server: &Server, auth: &str) -> Home {
    let url = server.url();
    Home::with_catalogue(&format!(
        "currentContext: dev\ncontexts:\n- name: dev\n  managedServer: {{http: {{url: ' {url}/api/ ', auth: {auth}}}}}\n"
    ))
}

fn oauth2(server: &Server) -> String {
    let url = server.url();
    format!("{{oauth2: {{tokenURL: '{url}/token', clientID: app, clientSecret: canary-secret}}}}")
}

const TOKEN: &[(&str, u16, &str)] = &[("POST /token", 200, "{\"access_token\": \"t0ken\"}")];

#[test]
fn the_base_url() {
    let server = Server::new(&[]);
    let run = home(&server, "{customHeaders: [{header: K, value: v}]}").run(&["server", "get", "base-url"]);
    assert_eq!((run.code, run.stdout.trim_end()), (0, format!("{}/api/", server.url()).as_str()), "{run}");
    assert_eq!(server.requests(), "", "nothing is asked");
}

#[test]
fn the_token_endpoint() {
    let server = Server::new(&[]);
    let run = home(&server, &oauth2(&server)).run(&["server", "get", "token-url"]);
    assert_eq!((run.code, run.stdout.trim_end()), (0, format!("{}/token", server.url()).as_str()), "{run}");
    assert_eq!(server.requests(), "");
}

#[test]
fn a_token() {
    let server = Server::new(TOKEN);
    let run = home(&server, &oauth2(&server)).run(&["server", "get", "access-token"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "t0ken\n"), "{run}");
    assert_eq!(server.requests(), "POST /token");
    assert!(!run.stderr.contains("t0ken") && !run.stderr.contains("canary"), "{run}");
}

#[test]
fn an_endpoint_that_refuses() {
    let server = Server::new(&[("POST /token", 401, "{\"error\": \"invalid_client\"}")]);
    let run = home(&server, &oauth2(&server)).run(&["server", "get", "access-token"]);
    assert_eq!((run.code, run.stdout.as_str()), (4, ""), "{run}");
    assert!(
        run.stderr.contains("/token: it answers with status 401: {\"error\": \"invalid_client\"}"),
        "{run}"
    );
    assert!(!run.stderr.contains("canary"), "{run}");
}

#[test]
fn tokens_need_oauth2() {
    let server = Server::new(&[]);
    for part in ["token-url", "access-token"] {
        let run = home(&server, "{customHeaders: [{header: K, value: v}]}").run(&["server", "get", part]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
        assert!(run.stderr.contains("the managed server does not use OAuth 2.0; configure"), "{run}");
    }
}

#[test]
fn a_context_without_server() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: <home>}}\n",
    );
    let run = home.run(&["server", "get", "base-url"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("managedServer"), "{run}");
}

#[test]
fn other_forms_are_refused() {
    let server = Server::new(&[]);
    let run = home(&server, &oauth2(&server)).run(&["server", "get", "base-url", "-o", "json"]);
    assert_eq!(run.code, 2, "{run}");
}
