//! `resource copy` and `resource edit`.

use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;

use crate::terminal::Terminal;
use crate::world::World;

fn shops() -> World {
    let world = World::new(
        &["/shops"],
        &[
            (
                "shops/_/metadata.yaml",
                "resource: {alias: /name, id: /id, externalizedAttributes: [{path: /note, file: note.txt}]}\n",
            ),
            (
                "shops/rio/resource.yaml",
                "id: '7'\nname: rio\npin: '{{secret .}}'\nnote: '{{include note.txt}}'\n",
            ),
            ("shops/rio/note.txt", "hello"),
        ],
    );
    world.live("/shops/9", r#"{"id": "9", "name": "lima"}"#);
    world
}

#[test]
fn a_copy_has_files_of_its_own() {
    let world = shops();
    let run = world
        .run(&["resource", "copy", "/shops/rio", "/shops/oslo", "--override-attributes", "/name=oslo,/id=8"]);
    insta::assert_snapshot!(run, @r"
    exit 0
    --- stdout
    --- stderr
    [OK] command executed successfully.
    ");
    insta::assert_snapshot!(world.declared("shops/oslo/resource.yaml").unwrap(), @r#"
    id: "8"
    name: oslo
    note: '{{include note.txt}}'
    pin: '{{secret .}}'
    "#);
    assert_eq!(world.declared("shops/oslo/note.txt").as_deref(), Some("hello"));
    assert!(world.server.log().is_empty());
}

#[test]
fn a_resource_of_the_server_is_copied() {
    let world = shops();
    let run = world
        .run(&["resource", "copy", "-p", "/shops/lima", "/shops/ava", "--override-attributes", "/name=ava"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("shops/ava/resource.json").unwrap().contains("\"ava\""));
    assert!(world.writes().is_empty());
}

#[rstest]
#[case::no_target(&["copy", "/shops/rio"], 2, "target path is required")]
#[case::two_targets(&["copy", "/shops/rio", "/shops/a", "--target-path", "/shops/b"], 2, "path mismatch")]
#[case::name(&["copy", "/shops/rio", "/shops/oslo"], 2, "does not match path segment \"oslo\"")]
#[case::exists(&["copy", "/shops/rio", "/shops/rio"], 2, "already exists; rerun with --force")]
#[case::missing(&["copy", "/shops/none", "/shops/a"], 3, "/shops/none")]
#[case::assignments(&["copy", "/shops/rio", "/shops/a", "--override-attributes", "name"], 2, "is not a list of assignments")]
#[case::no_terminal(&["edit", "/shops/rio"], 2, "without a terminal")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] fragment: &str) {
    let world = shops();
    let run = world.run(&[&["resource"], args].concat());
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(fragment), "{run}");
    assert!(world.declared("shops/oslo/resource.yaml").is_none());
}

#[test]
fn an_edited_resource_is_saved() {
    let world = shops();
    let editor = "sed -i s/hello/bye/";
    let command = world.home.command(
        &["resource", "edit", "/shops/rio", "--editor", editor, "--ignore-warnings", "-v"],
        &[("TERM", "dumb")],
    );
    let (code, shown) = Terminal::start(command).end();
    assert_eq!(code, 0, "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.contains(&"/shops/rio") && lines.contains(&"verbose: saved /shops/rio"), "{shown}");
    assert_eq!(world.declared("shops/rio/note.txt").as_deref(), Some("bye"));
    assert!(world.declared("shops/rio/resource.yaml").unwrap().contains("{{secret .}}"));
}

#[rstest]
#[case::text("shops/rio/resource.txt", "hello", "truncate -s 0", 0, "")]
#[case::structured("shops/rio/resource.yaml", "id: rio\n", "truncate -s 0", 2, "id: rio\n")]
#[case::comments("shops/rio/resource.yaml", "id: rio\n", "sed -i s/^/#/", 2, "id: rio\n")]
#[case::null("shops/rio/resource.yaml", "id: rio\n", "sed -i s/.*/null/", 2, "id: rio\n")]
fn only_a_text_may_be_emptied(
    #[case] file: &str,
    #[case] content: &str,
    #[case] editor: &str,
    #[case] code: i32,
    #[case] left: &str,
) {
    let world = World::new(&["/shops"], &[(file, content)]);
    let (exit, shown) = edit(&world, "/shops/rio", &["--editor", editor, "--ignore-warnings"], &[]);
    assert_eq!(exit, code, "{shown}");
    assert_eq!(world.declared(file).as_deref(), Some(left));
    let message = "the resource /shops/rio is empty after editing; nothing was changed";
    assert_eq!(shown.contains(message), code == 2, "{shown}");
}

#[rstest]
#[case::unreadable("sed -i s/name:/name/", &["resource", "edit", "/shops/rio"], "the edited resource /shops/rio: ")]
#[case::metadata("sed -i s/id:/ids:/", &["resource", "metadata", "edit", "/shops/"], "the metadata of /shops/: ")]
#[case::defaults("sed -i s/size:/size/", &["resource", "defaults", "edit", "/shops/"], "the defaults of /shops/: ")]
#[case::meanwhile("sh <home>/other.sh", &["resource", "edit", "/shops/rio"], "was changed by another command")]
fn an_edit_that_is_not_saved_is_kept(#[case] editor: &str, #[case] args: &[&str], #[case] message: &str) {
    let metadata = "resource: {id: /id, defaults: {value: {size: 1}}}\n";
    let world = World::new(
        &["/shops"],
        &[("shops/_/metadata.yaml", metadata), ("shops/rio/resource.yaml", "id: rio\nname: x\n")],
    );
    let (before, stored) = (world.declared("shops/_/metadata.yaml"), "id: rio\nname: y\n");
    world.home.write(
        "other.sh",
        "cp \"$1\" <home>/seen; sed -i s/x/y/ \"$1\" <home>/repo/shops/rio/resource.yaml\n",
    );
    let temporary = world.home.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let path = std::env::var("PATH").unwrap();
    let editor = editor.replace("<home>", world.home.path("").to_str().unwrap().trim_end_matches('/'));
    let args = [args, &["--editor", &editor, "--ignore-warnings"]].concat();
    let variables = [("TERM", "dumb"), ("PATH", &path), ("TMPDIR", temporary.to_str().unwrap())];
    let (code, shown) = Terminal::start(world.home.command(&args, &variables)).end();
    assert!(code == 2 || code == 5, "{shown}");
    assert!(shown.contains(message), "{shown}");
    let (before_note, _) = shown.split_once(" has the edited text").expect(&shown);
    let kept = std::path::Path::new(before_note.rsplit_once("; ").unwrap().1);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(kept).unwrap().is_empty());
    assert_eq!(world.declared("shops/_/metadata.yaml"), before);
    let now = world.declared("shops/rio/resource.yaml").unwrap();
    assert!(now == stored || now == stored.replace('y', "x"), "{now}");
}

#[rstest]
#[case::saved("sed -i s/hello/bye/", 0)]
#[case::unchanged("true", 0)]
#[case::failed("false", 1)]
fn no_other_edit_is_kept(#[case] editor: &str, #[case] expected: i32) {
    let world = shops();
    let temporary = world.home.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let variables = [("TMPDIR", temporary.to_str().unwrap())];
    let (code, shown) = edit(&world, "/shops/rio", &["--editor", editor, "--ignore-warnings"], &variables);
    assert_eq!(code, expected, "{shown}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

/// Edits the resource with this command of a shell, which gets the file as its argument.
fn edit(world: &World, path: &str, editor: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let args = [&["resource", "edit", path], editor].concat();
    let path = std::env::var("PATH").unwrap();
    let variables = [&[("TERM", "dumb"), ("PATH", path.as_str())], variables].concat();
    Terminal::start(world.home.command(&args, &variables)).end()
}

#[rstest]
#[case::value(
    "sed -i s/gold/free/",
    "# The owner is team a.\ntier: free  # Until May.\nid: rio\ntags: &tags [a]\nothers: *tags\n"
)]
#[case::comment(
    "sed -i s/May/June/",
    "# The owner is team a.\ntier: gold  # Until June.\nid: rio\ntags: &tags [a]\nothers: *tags\n"
)]
fn an_edit_keeps_the_comments_of_the_file(#[case] editor: &str, #[case] expected: &str) {
    let stored =
        "# The owner is team a.\ntier: gold  # Until May.\nid: rio\ntags: &tags [a]\nothers: *tags\n";
    let metadata = "resource: {id: /id, defaults: {value: {size: 1}}}\n";
    let world =
        World::new(&["/shops"], &[("shops/_/metadata.yaml", metadata), ("shops/rio/resource.yaml", stored)]);
    let (code, shown) = edit(&world, "/shops/rio", &["--editor", editor], &[]);
    assert_eq!(code, 0, "{shown}");
    assert_eq!(world.declared("shops/rio/resource.yaml").unwrap(), expected);
}

#[test]
fn an_edit_that_adds_a_plain_secret_is_refused() {
    let world = World::new(
        &["/shops"],
        &[
            ("shops/_/metadata.yaml", "resource: {id: /id, secretAttributes: [/pin]}\n"),
            ("shops/rio/resource.yaml", "# A comment\nid: rio\npin: '{{secret .}}'\n"),
        ],
    );
    let (code, shown) = edit(&world, "/shops/rio", &["--editor", "sed -i s/{{.*}}/canary/"], &[]);
    assert_eq!(code, 2, "{shown}");
    assert!(world.declared("shops/rio/resource.yaml").unwrap().contains("{{secret .}}"), "{shown}");
}

#[rstest]
#[case::editor(&[("EDITOR", "sed -i s/hello/bye/")])]
#[case::visual(&[("EDITOR", "false"), ("VISUAL", "sed -i s/hello/bye/")])]
fn the_editor_of_the_user_is_the_default(#[case] variables: &[(&str, &str)]) {
    let world = shops();
    let (code, shown) = edit(&world, "/shops/rio", &["--ignore-warnings"], variables);
    assert_eq!(code, 0, "{shown}");
    assert_eq!(world.declared("shops/rio/note.txt").as_deref(), Some("bye"));
}

/// The repository declares only resources below it.
#[rstest]
#[case::object("/shops/rio", r#"{"id": "rio", "items": [{"id": "a"}]}"#)]
#[case::other_id("/shops/7", r#"{"number": 7, "items": [{"id": "a"}]}"#)]
fn a_resource_with_declared_children_is_copied(#[case] path: &str, #[case] live: &str) {
    let child = format!("{}/tills/t1/resource.json", path.trim_start_matches('/'));
    let world = World::new(&["/shops"], &[(&child, "{}")]);
    world.live(path, live);
    let run = world.run(&["resource", "copy", path, " /copies/c1", "--override-attributes", "/id=c1"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("copies/c1/resource.json").is_some());
}
