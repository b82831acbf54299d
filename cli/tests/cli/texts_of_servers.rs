//! Texts of a server that would be placeholders or references in files.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids};
use crate::safety::Place;

const REFERENCE: &str = r#"{{ref "/clients/app" "/secret"}}"#;

/// A server with the users `amy` and `eve` and a client with a secret. `eve` has set her `about`.
fn place(about: &str) -> Place {
    let server =
        ApiServer::start(&["/clients", "/users"], |request, store| request.rest(store, Ids::Stated("id")));
    server.put("/users/amy", json!({"id": "amy", "about": "likes jq"}));
    server.put("/users/eve", json!({"id": "eve", "about": about}));
    server.put("/clients/app", json!({"id": "app", "secret": "canary-7"}));
    let files = [
        ("clients/_/metadata.yaml", "resource: {secretAttributes: [/secret]}\n"),
        ("users/_/metadata.yaml", "resource: {id: /id, alias: /id}\n"),
    ];
    Place::new(server, &files)
}

#[rstest]
#[case::reference(REFERENCE)]
#[case::malformed_reference(r#" {{ ref "/clients/app" }}"#)]
#[case::secret("{{secret .}}")]
#[case::secret_of_another("{{secret \"clients/app:/secret\"}}")]
#[case::malformed_secret("{{ secret a b }}")]
#[case::format("{{payload_type .}}")]
fn a_text_that_would_be_a_template_is_not_saved(#[case] about: &str) {
    let place = place(about);
    let message = ": the text of the server at \"/about\" has the form of a placeholder or a reference";
    let run = place.run(&["import", "/users"]);
    assert!(run.code == 2 && run.stdout.contains("/users  1 saved"), "{run}");
    assert!(run.stdout.contains(message), "{run}");
    assert!(place.has("users/amy/resource.json") && !place.has("users/eve/resource.json"), "{run}");
    for command in [
        &["resource", "save", "/users/eve"][..],
        &["resource", "save", "/users/", "--force"],
        &["resource", "copy", "/users/eve", "/users/zoe", "--override-attributes", "/id=zoe"],
    ] {
        let run = place.run(command);
        assert!(run.code == 2 && run.stderr.contains(message), "{run}");
        assert!(!place.has("users/eve/resource.json") && !place.has("users/zoe/resource.json"), "{run}");
    }
    for command in [&["import", "/users"][..], &["resource", "save", "/users/", "--force"]] {
        let run = place.run(&[command, &["--exclude", "eve"]].concat());
        assert_eq!(run.code, 0, "{run}");
    }
}

#[rstest]
#[case::other_word("{{x}}")]
#[case::within_a_text("see {{secret .}}")]
#[case::longer_word("{{secrets .}}")]
fn another_text_is_saved(#[case] about: &str) {
    let place = place(about);
    let run = place.run(&["import", "/users"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["plan", "/users", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// The attribute is kept in a file of its own, and a run would send the content of that file.
#[test]
fn a_text_that_would_include_a_file_is_not_saved() {
    let place = place("{{include about.txt}}");
    let metadata =
        "resource: {id: /id, alias: /id, externalizedAttributes: [{path: /about, file: about.txt}]}\n";
    place.home.write("repo/users/_/metadata.yaml", metadata);
    let run = place.run(&["import", "/users"]);
    assert!(run.code == 2 && run.stdout.contains("/users  1 saved"), "{run}");
    assert!(run.stdout.contains("/users/eve: the text of the server at \"/about\""), "{run}");
    assert_eq!(place.home.read("repo/users/amy/about.txt"), "likes jq");
}

/// A value that the user gives may be a placeholder.
#[test]
fn a_placeholder_of_the_user_is_saved() {
    let place = place("likes jq");
    let copy = ["resource", "copy", "/users/eve", "/users/zoe", "--override-attributes"];
    let run = place.run(&[&copy[..], &["/id=zoe,/about={{payload_type .}}"]].concat());
    assert_eq!(run.code, 0, "{run}");
    assert!(place.home.read("repo/users/zoe/resource.json").contains("{{payload_type .}}"), "{run}");
    place.server.put("/users/eve", json!({"id": "eve", "about": REFERENCE}));
    let run = place.run(&[&copy[..], &["/id=zoe,/about=mine", "--force"]].concat());
    assert_eq!(run.code, 0, "{run}");
}

/// The administrator has written the same text into the file.
#[test]
fn a_template_of_the_file_stays() {
    let place = place(REFERENCE);
    let declared = json!({"id": "eve", "about": REFERENCE}).to_string();
    place.home.write("repo/users/eve/resource.json", &declared);
    let run = place.run(&["resource", "save", "/users/eve", "--force"]);
    assert_eq!(run.code, 0, "{run}");
}
