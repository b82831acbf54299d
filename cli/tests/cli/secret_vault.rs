//! Secrets in Vault that need no Vault. `cargo test --test vault` has the tests with a real one.

use crate::world::World;

fn world(url: &str, files: &[(&str, &str)]) -> World {
    let world = World::new(&["/apps", "/shops"], files);
    let store = format!("  secretStore: {{vault: {{address: '{url}', auth: {{token: hvs.dev}}}}}}\n");
    let catalogue = world.home.catalogue();
    world.home.write(".declarest/configs/contexts.yaml", &format!("{catalogue}{store}"));
    world
}

/// Vault rejects two dots. Nothing listens at the address, because the keys are checked before the first request.
#[test]
fn a_key_that_vault_rejects_stops_the_save_before_any_write() {
    let world = world("http://127.0.0.1:9", &[]);
    let input = r#"{"password": "s3cr3t", "k..v": {"password": "s3cr3t"}}"#;
    let run = world.run_with(&["resource", "save", "/apps/a", "--secret-attributes"], input);
    assert!(run.code == 2 && run.stderr.contains("two dots in a row"), "{run}");
    assert_eq!(world.declared("apps/a/resource.json"), None);
    assert_eq!(world.declared("apps/a/metadata.yaml"), None);
    assert_eq!(world.declared("apps/_/metadata.yaml"), None);
}

#[test]
fn a_key_that_vault_rejects_does_not_stop_other_collections() {
    let metadata = [("apps/_/metadata.yaml", "{}"), ("shops/_/metadata.yaml", "{}")];
    let world = world("http://127.0.0.1:9", &metadata);
    world.live("/apps/a..b", r#"{"id": "a..b", "password": "s3cr3t"}"#);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    let run = world.run(&["import", "--secret-attributes"]);
    assert!(run.code == 2 && run.stdout.contains("not imported: "), "{run}");
    assert!(run.stdout.contains("two dots in a row"), "{run}");
    assert!(run.stdout.contains("/shops  1 saved"), "{run}");
    assert!(world.declared("shops/rio/resource.json").is_some(), "{run}");
    assert_eq!(world.declared("apps/a..b/resource.json"), None, "{run}");
}
