//! Secrets in Vault, on a server that answers like its key/value engine of version 2. `cargo test --test vault` has the
//! tests with a real Vault.

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use rstest::rstest;

use crate::world::World;

/// Answers on a port of its own until it is dropped.
struct Engine {
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Engine {
    /// Lists these names, of which those in `stored` have a value. Nothing can be written.
    fn new(listed: &'static [&'static str], stored: &'static [&'static str]) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state((listed, stored));
        runtime.spawn(async { axum::serve(listener, router).await });
        Self { url, _runtime: runtime }
    }
}

async fn answer(
    State((listed, stored)): State<(&'static [&'static str], &'static [&'static str])>,
    method: Method,
    uri: Uri,
) -> Response {
    let path = uri.path().trim_start_matches("/v1/secret/").replace("%3A", ":");
    let data = match path.split_once('/') {
        Some(("metadata", "")) => serde_json::json!({"keys": listed}),
        Some(("data", key)) if method == Method::GET && stored.contains(&key) => {
            serde_json::json!({"data": {"value": "s3cr3t"}, "metadata": {}})
        }
        Some(("data", "a:denied")) => return StatusCode::FORBIDDEN.into_response(),
        _ => return (StatusCode::NOT_FOUND, "{\"errors\": []}").into_response(),
    };
    axum::Json(serde_json::json!({"data": data})).into_response()
}

fn world(url: &str, files: &[(&str, &str)]) -> World {
    let world = World::new(&["/apps", "/shops"], files);
    let store = format!("  secretStore: {{vault: {{address: '{url}', auth: {{token: hvs.dev}}}}}}\n");
    let catalogue = world.home.catalogue();
    world.home.write(".declarest/configs/contexts.yaml", &format!("{catalogue}{store}"));
    world
}

/// The list of Vault also has the names of deleted secrets, and of secrets that other programs read.
#[rstest]
#[case::missing("--missing", "/a:deleted\n/a:never\n")]
#[case::unused("--unused", "/a:denied\n/a:old\n")]
fn deleted_secrets_are_missing(#[case] flag: &str, #[case] expected: &str) {
    let engine =
        Engine::new(&["a:deleted", "a:denied", "a:forgotten", "a:old", "a:used"], &["a:old", "a:used"]);
    let payload = r#"{"a": "{{secret deleted}}", "b": "{{secret used}}", "c": "{{secret never}}"}"#;
    let world = world(&engine.url, &[("a/resource.json", payload)]);
    let run = world.run(&["secret", "list", flag, "-o", "text"]);
    assert!(run.code == 0 && run.stdout == expected, "{run}");
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
