//! Details that scripts for v0.3.8 depend on.

use rstest::rstest;

use crate::world::World;

fn shops() -> World {
    World::with_store(&["/shops"], &[("shops/rio/resource.yaml", "id: rio\n")])
}

#[test]
fn arrays_of_payloads_are_masked_and_resolved() {
    let world = shops();
    let list = r#"[{"id": "rio", "password": "c4n4ry-1"}]"#;
    let masked = world.run_with(&["secret", "mask"], list);
    assert_eq!(masked.code, 0, "{masked}");
    assert!(masked.stdout.contains("{{secret") && !masked.stdout.contains("c4n4ry"), "{masked}");
    let resolved = world.run_with(&["secret", "resolve"], &masked.stdout);
    assert!(resolved.stdout.contains("c4n4ry-1"), "{resolved}");
    let detected = world.run_with(&["secret", "detect"], list);
    assert_eq!(detected.stdout, "[\n  \"/0/password\"\n]\n");
}

#[rstest]
#[case::empty_name(&["resource", "list", "/shops", "--exclude", "a,,b"], "", "--exclude contains an empty name")]
#[case::fix(&["secret", "detect", "--fix"], r#"{"password": "c4n4ry-1"}"#, "path is required")]
#[case::attribute(&["secret", "detect", "--secret-attribute", "a~b"], "", "--secret-attribute \"a~b\"")]
fn invalid_values_name_their_flag(#[case] args: &[&str], #[case] stdin: &str, #[case] fragment: &str) {
    let run = shops().run_with(args, stdin);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains(fragment), "{run}");
}

#[test]
fn a_flag_without_effect_is_a_warning() {
    let world = shops();
    let run = world.home.run(&["resource", "diff", "/shops/rio", "--verbose-insecure"]);
    assert!(run.stderr.contains("--verbose-insecure has no effect without --verbose"), "{run}");
}

#[test]
fn a_choice_that_does_not_exist_is_invalid() {
    let run = shops().run(&["resource", "save", "/shops/rio", "--mode", "many"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    let run = shops().run(&["resource", "delete", "/shops/rio", "--yes=false"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--yes"), "{run}");
}
