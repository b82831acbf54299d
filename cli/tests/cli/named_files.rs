//! Files that a user names and a command writes: links are followed, and a pipe stays a pipe.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::Command;

use rstest::rstest;

use crate::environment::Home;
use crate::world::World;

fn is_link(home: &Home, file: &str) -> bool {
    fs::symlink_metadata(home.path(file)).unwrap().is_symlink()
}

#[rstest]
#[case::report(&["resource", "diff", "/shops", "--report", "junit=<home>/pipe"], "<testsuites ")]
#[case::plan(&["plan", "/", "--out", "<home>/pipe"], "/shops/rio")]
fn a_pipe_gets_the_content(#[case] args: &[&str], #[case] content: &str) {
    let world = World::new(&["/shops"], &[("shops/rio/resource.json", r#"{"id": "rio"}"#)]);
    let pipe = world.home.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Also open for writing, so that neither side waits for the other one.
    let mut reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let run = world.run(args);
    assert_eq!(run.code, 0, "{run}");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe was replaced");
    let mut written = vec![0; 64 << 10];
    let length = reader.read(&mut written).unwrap();
    assert!(String::from_utf8_lossy(&written[..length]).contains(content));
}

#[test]
fn a_plan_is_written_through_a_link() {
    let world = World::new(&["/shops"], &[("shops/rio/resource.json", r#"{"id": "rio"}"#)]);
    world.home.write("target", "old");
    symlink(world.home.path("target"), world.home.path("link")).unwrap();
    let run = world.run(&["plan", "/", "--out", "<home>/link"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(is_link(&world.home, "link"));
    assert_eq!(world.run(&["resource", "apply", "--plan", "<home>/target"]).code, 0);
}

#[test]
fn a_catalogue_in_another_place_stays_there() {
    let home = Home::new();
    home.write(
        "dotfiles/contexts.yaml",
        "currentContext: a\ncontexts:\n- {name: a, repository: {filesystem: {baseDir: /a}}}\n\
         - {name: b, repository: {filesystem: {baseDir: /b}}}\n",
    );
    fs::create_dir_all(home.path(".declarest/configs")).unwrap();
    let catalogue = ".declarest/configs/contexts.yaml";
    symlink("../../dotfiles/contexts.yaml", home.path(catalogue)).unwrap();
    assert_eq!(home.run(&["context", "use", "b"]).code, 0);
    assert!(is_link(&home, catalogue));
    assert!(home.read("dotfiles/contexts.yaml").starts_with("currentContext: b\n"));
}

#[test]
fn a_secret_file_in_another_place_stays_there() {
    let world = World::with_store(&["/shops"], &[]);
    world.store_secret("a", "1");
    fs::create_dir(world.home.path("vault")).unwrap();
    fs::rename(world.home.path("secrets.json"), world.home.path("vault/secrets.json")).unwrap();
    symlink("vault/secrets.json", world.home.path("secrets.json")).unwrap();
    world.store_secret("b", "2");
    assert!(is_link(&world.home, "secrets.json"));
    assert_eq!(world.run(&["secret", "list", "-o", "text"]).stdout, "a\nb\n");
    assert!(world.home.path("vault/secrets.json.lock").exists(), "all links share one lock");
}
