//! Symbolic links in the repository.

use std::os::unix::fs::symlink;

use rstest::rstest;

use crate::world::World;

/// Shops `d` and `e` on the server. The repository declares `d`, and `e` is a link to its directory.
fn linked() -> World {
    let world = World::new(
        &["/shops"],
        &[
            ("shops/_/metadata.yaml", "resource: {id: /id, alias: /id}\n"),
            ("shops/d/resource.json", r#"{"id": "d"}"#),
        ],
    );
    world.live("/shops/d", r#"{"id": "d"}"#);
    world.live("/shops/e", r#"{"id": "e"}"#);
    symlink("d", world.home.path("repo/shops/e")).unwrap();
    world
}

/// A listing does not follow the link, so `e` is not declared, and its file is that of `d`.
#[rstest]
#[case::save(&["resource", "save", "/shops/e", "--force"], 2)]
#[case::import(&["import", "/", "--force"], 2)]
#[case::delete(&["resource", "delete", "/shops/e", "--source", "repository", "--yes"], 0)]
fn a_link_to_a_directory_does_not_change_another_resource(#[case] args: &[&str], #[case] code: i32) {
    let world = linked();
    let run = world.run(args);
    assert_eq!(run.code, code, "{run}");
    assert_eq!(world.declared("shops/d/resource.json").as_deref(), Some(r#"{"id": "d"}"#), "{run}");
    let message = "\"shops/e\" cannot be used: it is a symbolic link, and links to directories are not followed; replace it \
                   with a directory";
    assert_eq!(format!("{}{}", run.stdout, run.stderr).contains(message), code == 2, "{run}");
}

#[test]
fn a_resource_behind_a_link_is_not_declared() {
    let world = linked();
    let run = world.run(&["resource", "list", "/", "--crawl", "--undeclared", "-o", "name"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "/shops/e\n"), "{run}");
    let run = world.run(&["resource", "get", "/shops/e", "--source", "repository"]);
    assert_eq!(run.code, 3, "{run}");
    let run = world.home.run(&["repository", "check"]);
    let warning = "shops/e has no effect: links to directories, payloads and metadata are not followed";
    assert!(run.code == 0 && run.stderr.contains(warning), "{run}");
}

/// Without the metadata, `onRemove: keep` and secret attributes would not apply.
#[rstest]
#[case::inside("metadata.yaml", "../../common.yaml")]
#[case::missing("metadata.json", "none")]
#[case::looped("metadata.yaml", "metadata.yaml")]
fn metadata_must_not_be_a_link(#[case] name: &str, #[case] target: &str) {
    let world = World::new(
        &["/shops"],
        &[
            ("shops/d/resource.json", r#"{"id": "d"}"#),
            ("shops/_/note.md", ""),
            ("common.yaml", "resource: {onRemove: keep}\n"),
        ],
    );
    let link = format!("shops/_/{name}");
    symlink(target, world.home.path("repo").join(&link)).unwrap();
    for args in [&["validate"][..], &["plan", "/"], &["resource", "metadata", "resolve", "/shops/d"]] {
        let run = world.run(args);
        let message = format!(
            "\"{link}\" cannot be used: it is a link or another special file, so its metadata would have no effect; \
             replace it with a file"
        );
        assert!(run.code != 0 && format!("{}{}", run.stdout, run.stderr).contains(&message), "{run}");
    }
    let run = world.home.run(&["repository", "check"]);
    assert!(run.code == 0 && run.stderr.contains(&format!("{link} has no effect: links to")), "{run}");
}
