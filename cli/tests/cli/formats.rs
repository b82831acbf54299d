//! The formats of files and of requests: saved as the server answers, and sent as stored.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer};
use crate::byte_server::ByteServer;
use crate::safety::Place;
use crate::world::World;

#[rstest]
#[case::text("text/plain; charset=utf-8", "hello", "note.txt")]
#[case::xml("application/xml", "<a/>", "note.xml")]
#[case::csv("text/csv", "a,b\n1,2\n", "note.csv")]
#[case::ini("application/ini", "[a]\nb = 1\n", "note.ini")]
#[case::properties("text/x-java-properties", "a=1\n", "note.properties")]
#[case::binary("application/octet-stream", "\u{0}\u{1}", "note.bin")]
#[case::unknown("application/x-unknown", "\u{0}\u{1}", "note.bin")]
fn a_saved_resource_keeps_its_format(#[case] media_type: &str, #[case] body: &str, #[case] file: &str) {
    let server = ByteServer::new("/notes/a", media_type, body);
    let home = server.home();
    let saved = home.run(&["resource", "save", "/notes/a", "--ignore-warnings", "--allow-plaintext"]);
    assert_eq!(saved.code, 0, "{saved}");
    let file = format!("repo/notes/a/{}", file.replace("note", "resource"));
    assert!(home.path(&file).exists(), "{file} is missing");
    let applied = home.run(&["resource", "apply", "/notes/a", "--force", "--ignore-warnings"]);
    assert_eq!(applied.code, 0, "{applied}");
    let (sent_type, sent) = server.written();
    assert_eq!(sent, body);
    let essence = media_type.split(';').next().unwrap();
    let expected = if essence == "application/x-unknown" { "application/octet-stream" } else { essence };
    assert_eq!(sent_type, expected);
}

#[rstest]
#[case::text("text/plain", "resource.txt")]
#[case::binary("application/octet-stream", "resource.bin")]
fn an_empty_file_equals_an_empty_answer(#[case] media_type: &str, #[case] file: &str) {
    let server = ByteServer::new("/notes/a", media_type, "");
    let home = server.home();
    home.write(&format!("repo/notes/a/{file}"), "");
    let compared = home.run(&["resource", "diff", "/notes/a", "--ignore-warnings"]);
    assert_eq!(
        (compared.code, compared.stdout.as_str()),
        (0, "No differences for /notes/a.\n"),
        "{compared}"
    );
}

#[test]
fn yaml_files_travel_as_json() {
    let server = ByteServer::new("/notes/a", "application/yaml", "size: 1\n");
    let home = server.home();
    let run = |args: &[&str]| {
        let run = home.run(&[args, &["--ignore-warnings"]].concat());
        assert_eq!(run.code, 0, "{run}");
    };
    run(&["resource", "save", "/notes/a"]);
    assert_eq!(home.read("repo/notes/a/resource.yaml"), "size: 1\n");
    run(&["resource", "apply", "/notes/a", "--force"]);
    assert_eq!(server.written(), ("application/json".to_owned(), "{\n  \"size\": 1\n}".to_owned()));
    home.write("repo/notes/_/metadata.yaml", "resource: {format: yaml}");
    run(&["resource", "apply", "/notes/a", "--force"]);
    assert_eq!(server.written(), ("application/yaml".to_owned(), "size: 1\n".to_owned()));
}

#[test]
fn a_file_keeps_its_extension_if_the_answer_has_its_format() {
    let server = ByteServer::new("/notes/a", "text/plain", "hello");
    let home = server.home();
    home.write("repo/notes/a/resource.csv", "old");
    let run = home.run(&["resource", "save", "/notes/a", "--force", "--ignore-warnings"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(home.read("repo/notes/a/resource.csv"), "hello");
}

#[test]
fn a_file_of_text_is_replaced_if_the_answer_is_an_object() {
    let server = ByteServer::new("/notes/a", "application/json", r#"{"size":1}"#);
    let home = server.home();
    home.write("repo/notes/a/resource.txt", "old");
    let run = home.run(&["resource", "save", "/notes/a", "--force", "--ignore-warnings"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(!home.path("repo/notes/a/resource.txt").exists());
    assert!(home.read("repo/notes/a/resource.json").contains("size"));
}

#[test]
fn json_with_a_byte_order_mark_is_not_binary() {
    let world = World::new(&["/shops"], &[]);
    let run = world.run_with(&["resource", "save", "/shops/rio"], "\u{feff}{\"id\": \"rio\"}");
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("byte order mark; save it as UTF-8 without one"), "{run}");
}

/// The list of texts is structured.
#[test]
fn the_names_of_texts_are_taken_from_the_list() {
    let server = ApiServer::start(&["/graphs"], |request, store| match request.path.as_str() {
        "/graphs" => Answer::json(200, &json!({"head": {}, "bindings": [{"g": {"value": "a"}}]})),
        path => match store.get(path) {
            Some(text) => Answer::text(200, "text/plain", text.as_str().unwrap()),
            None => Answer::missing(),
        },
    });
    server.put("/graphs/a", json!("one\n"));
    let metadata = "resource: {format: text}\noperations: {list: {mode: names, transforms: [{jqExpression: '.bindings | map(.g.value)'}]}}\n";
    let place = Place::new(server, &[("graphs/_/metadata.yaml", metadata)]);
    let run = place.run(&["import"]);
    assert!(run.code == 0 && place.home.read("repo/graphs/a/resource.txt") == "one\n", "{run}");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// A text that is not UTF-8 keeps its type, and a string of JSON its quotes.
#[test]
fn strings_keep_their_type() {
    let server = ByteServer::new("/notes/a", "text/plain", b"h\xe9llo");
    let home = server.home();
    let saved = home.run(&["resource", "save", "/notes/a", "--ignore-warnings"]);
    assert_eq!(saved.code, 0, "{saved}");
    assert_eq!(std::fs::read(home.path("repo/notes/a/resource.txt")).unwrap(), b"h\xe9llo");
    let applied = home.run(&["resource", "apply", "/notes/a", "--force", "--ignore-warnings"]);
    assert_eq!((applied.code, server.written().0.as_str()), (0, "text/plain"), "{applied}");
    let json = ByteServer::new("/notes/a", "application/json", "\"abc\"");
    let shown = json.home().run(&["resource", "get", "/notes/a", "--ignore-warnings"]);
    assert_eq!(shown.stdout, "\"abc\"\n");
}

/// The file is YAML, and metadata states it, too.
#[rstest]
#[case::stated(&["--content-type", "json"], "json")]
#[case::default(&[], "yaml")]
fn a_stated_type_takes_precedence(#[case] args: &[&str], #[case] extension: &str) {
    let files =
        [("shops/_/metadata.yaml", "resource: {format: yaml}"), ("shops/rio/resource.yaml", "id: rio\n")];
    let world = World::new(&["/shops"], &files);
    let args = [&["resource", "save", "/shops/rio", "--force"], args].concat();
    let run = world.run_with(&args, r#"{"id": "rio", "tier": "gold"}"#);
    assert_eq!(run.code, 0, "{run}");
    let file = world.declared(&format!("shops/rio/resource.{extension}")).unwrap();
    assert!(file.contains("gold"), "{file}");
}
