//! `resource metadata infer` without an `OpenAPI` document: a plan accepts the stored metadata.

use rstest::rstest;

use crate::world::World;

fn shops() -> World {
    World::new(
        &["/shops", "/clients", "/tills", "/codes"],
        &[
            ("shops/rio/resource.yaml", "id: rio\ntier: gold\n"),
            ("shops/oslo/resource.yaml", "id: oslo\n"),
            ("clients/web/resource.yaml", "name: web\nport: 80\n"),
            ("clients/app/resource.yaml", "name: app\n"),
            ("tills/front/resource.yaml", "till: front\n"),
            ("codes/a/resource.yaml", "value: 1\n"),
        ],
    )
}

#[rstest]
#[case::id("/shops/", "resource:\n    alias: '{{/id}}'\n    id: '{{/id}}'\n")]
#[case::name("/clients/", "resource:\n    alias: '{{/name}}'\n    secretAttributes:\n        - /secret\n")]
#[case::name_of_the_collection("/tills/", "resource:\n    alias: '{{/till}}'\n")]
fn a_plan_accepts_inferred_metadata(#[case] collection: &str, #[case] expected: &str) {
    let world = shops();
    let before = world.run(&["plan", collection]);
    assert_eq!(before.code, 0, "{before}");
    let printed = world.run(&["resource", "metadata", "infer", collection, "-o", "yaml"]);
    let stored = world.run(&["resource", "metadata", "infer", collection, "--apply", "-o", "yaml"]);
    assert_eq!((printed.stdout.as_str(), stored.stdout.as_str()), (expected, expected), "{stored}");
    let file = format!("{}_/metadata.yaml", collection.trim_start_matches('/'));
    assert_eq!(world.declared(&file).as_deref(), Some(expected));
    let after = world.run(&["plan", collection]);
    assert_eq!((after.code, after.stdout), (0, before.stdout));
}

#[rstest]
#[case::the_resources_do_not_show_it("/codes/")]
#[case::there_are_no_resources("/customers/")]
fn a_guess_is_not_stored(#[case] collection: &str) {
    let world = shops();
    let stored = world.run(&["resource", "metadata", "infer", collection, "--apply", "-o", "yaml"]);
    assert_eq!((stored.code, stored.stdout.as_str()), (0, "{}\n"), "{stored}");
    assert!(world.declared(&format!("{}_/metadata.yaml", collection.trim_start_matches('/'))).is_none());
}

#[test]
fn a_resource_that_cannot_be_read_is_not_an_example() {
    let world = shops();
    world.declare("shops/zoe/resource.json", "{");
    let printed = world.run(&["resource", "metadata", "infer", "/shops/", "-o", "yaml"]);
    assert_eq!(printed.stdout, "resource:\n    alias: '{{/id}}'\n    id: '{{/id}}'\n", "{printed}");
}
