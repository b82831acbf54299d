//! Commands never change resources that the user did not name, nor files whose resource still exists.

use std::collections::BTreeMap;
use std::path::Path;

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids};
use crate::environment::{Home, Run};

/// A repository in `repo`, and a scripted server.
pub struct Place {
    pub server: ApiServer,
    pub home: Home,
}

impl Place {
    pub fn new(server: ApiServer, files: &[(&str, &str)]) -> Self {
        Self::with_openapi(server, "", files)
    }

    pub fn with_openapi(server: ApiServer, openapi: &str, files: &[(&str, &str)]) -> Self {
        let named = if openapi.is_empty() { "" } else { "openapi: '<home>/openapi.yaml', " };
        let home = Home::with_catalogue(&format!(
            "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{filesystem: {{baseDir: <home>/repo}}}}\n  \
             managedServer: {{http: {{url: '{}', {named}auth: {{customHeaders: [{{header: K, value: v}}]}}}}}}\n  \
             secretStore: {{file: {{path: <home>/secrets.json, key: 0123456789abcdef0123456789abcdef}}}}\n",
            server.url()
        ));
        home.write("openapi.yaml", openapi);
        for (file, content) in files {
            home.write(&format!("repo/{file}"), content);
        }
        Self { server, home }
    }

    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], stdin: &str) -> Run {
        self.home.run_with(args, &[("DECLAREST_IGNORE_WARNINGS", "1"), ("TERM", "xterm")], stdin)
    }

    pub fn has(&self, file: &str) -> bool {
        self.home.path("repo").join(file).exists()
    }

    /// All files of the repository with their content.
    fn files(&self) -> BTreeMap<String, String> {
        fn walk(directory: &Path, found: &mut BTreeMap<String, String>) {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    found.insert(path.display().to_string(), std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.home.path("repo"), &mut found);
        found
    }
}

const BY_NAME: &str = "resource: {id: /name, alias: /name}\n";
const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

/// Roles by name; that of `adm` shows the id `ops`, which is the name of another one.
fn roles() -> ApiServer {
    let server = ApiServer::rest(&["/roles"], Ids::Stated("name"));
    server.put("/roles/adm", json!({"id": "ops", "name": "adm"}));
    server.put("/roles/ops", json!({"id": "x1", "name": "ops"}));
    server.put("/roles/shop-admin", json!({"id": "55670899", "name": "shop-admin"}));
    server
}

#[rstest]
#[case::named("adm", BY_NAME)]
#[case::by_default("adm", "")]
#[case::by_an_id_that_is_not_the_address("adm", BY_ID)]
#[case::an_id_of_nothing("shop-admin", BY_NAME)]
#[case::an_id_of_nothing_by_default("shop-admin", "")]
fn a_deletion_affects_only_the_requested_resource(
    #[case] name: &str,
    #[case] metadata: &str,
    #[values("managed-server", "both")] source: &str,
) {
    let file = format!("roles/{name}/resource.json");
    let payload = format!(r#"{{"name": "{name}"}}"#);
    let place = Place::new(roles(), &[("roles/_/metadata.yaml", metadata), (&file, &payload)]);
    let run = place.run(&["resource", "delete", &format!("/roles/{name}"), "-y", "--source", source]);
    assert!(place.server.get("/roles/ops").is_some(), "{:?} {run}", place.server.writes());
    let there = place.server.get(&format!("/roles/{name}")).is_some();
    assert!(!there || run.code != 0 && place.has(&file), "{:?} {run}", place.server.writes());
    assert!(!there || metadata != BY_NAME, "it can be deleted: {:?} {run}", place.server.writes());
    assert_eq!(place.has(&file), there || source == "managed-server", "{run}");
}

#[test]
fn a_copy_whose_id_was_not_edited_deletes_nothing() {
    let server = ApiServer::rest(&["/shops"], Ids::Stated("id"));
    server.put("/shops/rio", json!({"id": "rio"}));
    let rio = r#"{"id": "rio"}"#;
    let place = Place::new(server, &[("shops/rio/resource.json", rio), ("shops/rio2/resource.json", rio)]);
    let run = place.run(&["resource", "delete", "/shops/rio2", "-y"]);
    assert!(place.server.get("/shops/rio").is_some(), "{:?} {run}", place.server.writes());
    assert_ne!(run.code, 0, "{run}");
}

/// A realm is read and deleted by its name, and shows an internal id.
#[rstest]
#[case::the_server("managed-server")]
#[case::both("both")]
fn a_file_goes_only_with_its_resource(#[case] source: &str) {
    let server = ApiServer::rest(&["/admin/realms"], Ids::Stated("realm"));
    server.put("/admin/realms/acme", json!({"id": "6f1a", "realm": "acme"}));
    let file = "admin/realms/acme/resource.json";
    let metadata = ("admin/realms/_/metadata.yaml", "resource: {id: /realm, alias: /realm}\n");
    let place = Place::new(server, &[metadata, (file, r#"{"realm": "acme"}"#)]);
    let run = place.run(&["resource", "delete", "/admin/realms/acme", "-y", "--source", source]);
    assert_eq!(place.server.paths(), Vec::<String>::new(), "{:?} {run}", place.server.writes());
    assert_eq!((run.code, place.has(file)), (0, source == "managed-server"), "{run}");
}

/// A server that answers a DELETE with 404 and keeps the resource.
#[test]
fn a_file_stays_where_the_deletion_missed() {
    let server = ApiServer::start(&["/shops"], |request, store| match request.method.as_str() {
        "DELETE" => Answer::missing(),
        _ => request.rest(store, Ids::Stated("id")),
    });
    server.put("/shops/rio", json!({"id": "rio"}));
    let place = Place::new(server, &[("shops/rio/resource.json", r#"{"id": "rio"}"#)]);
    let run = place.run(&["resource", "delete", "/shops/rio", "-y", "--source", "both"]);
    assert!(place.has("shops/rio/resource.json"), "{run}");
    assert_ne!(run.code, 0, "{run}");
}

#[rstest]
#[case::apply(&["apply", "/shops/rio"])]
#[case::apply_all(&["apply", "/shops"])]
#[case::delete(&["delete", "/shops/rio", "-y"])]
#[case::diff(&["diff", "/shops/rio"])]
fn a_name_and_an_id_of_two_resources_are_a_conflict(#[case] args: &[&str]) {
    let server = ApiServer::rest(&["/shops"], Ids::Stated("uid"));
    server.put("/shops/u1", json!({"uid": "u1", "name": "rio"}));
    server.put("/shops/u2", json!({"uid": "u2", "name": "ava"}));
    let before = server.all();
    let place = Place::new(
        server,
        &[
            ("shops/_/metadata.yaml", "resource: {id: /uid, alias: /name}\n"),
            ("shops/rio/resource.json", r#"{"name": "rio", "uid": "u2"}"#),
        ],
    );
    let run = place.run(&[&["resource"], args].concat());
    assert_eq!(place.server.writes(), Vec::<String>::new(), "{run}");
    assert_eq!(place.server.all(), before, "{run}");
    assert_eq!(run.code, 5, "{run}");
}

/// Correct deletions: an id that belongs to the name, or a name whose id only the server has.
#[rstest]
#[case::stated(r#"{"name": "rio", "uid": "u1", "tier": 1}"#)]
#[case::unstated(r#"{"name": "rio", "tier": 1}"#)]
fn a_name_and_an_id_of_one_resource_address_it(#[case] declared: &str) {
    let server = ApiServer::rest(&["/shops"], Ids::Stated("uid"));
    server.put("/shops/u1", json!({"uid": "u1", "name": "rio"}));
    server.put("/shops/u2", json!({"uid": "u2", "name": "ava"}));
    let metadata = "resource: {id: /uid, alias: /name}\n";
    let place =
        Place::new(server, &[("shops/_/metadata.yaml", metadata), ("shops/rio/resource.json", declared)]);
    let run = place.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["PUT /shops/u1 200".to_owned()]), "{run}");
    let run = place.run(&["resource", "delete", "/shops/rio", "-y"]);
    assert_eq!((run.code, place.server.paths()), (0, vec!["/shops/u2".to_owned()]), "{run}");
}

#[rstest]
#[case::without_metadata(&[])]
#[case::with_metadata(&[("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n")])]
#[case::elsewhere(&[("shops/_/metadata.yaml", "resource: {remoteCollectionPath: /api/shops}\n")])]
#[case::with_metadata_of_its_own(&[("shops/rio/metadata.yaml", "operations: {get: {headers: {X-View: full}}}\n")])]
#[case::with_children(&[("shops/rio/tills/_/metadata.yaml", BY_NAME)])]
fn what_the_server_lacks_is_not_a_collection(
    #[case] metadata: &[(&str, &str)],
    #[values(&["get", "/shops/rio"], &["save", "/shops/rio"], &["save", "/shops/rio", "--force"])]
    args: &[&str],
) {
    let server = ApiServer::rest(&["/shops", "/api/shops"], Ids::Stated("id"));
    let ava = json!({"id": "ava", "name": "ava"});
    server.put("/shops/ava", ava.clone());
    server.put("/api/shops/ava", ava);
    let files = [&[("shops/rio/resource.json", r#"{"id": "rio", "name": "rio"}"#)], metadata].concat();
    let place = Place::new(server, &files);
    let before = place.files();
    let run = place.run(&[&["resource"], args].concat());
    assert_eq!(place.files(), before, "{run}");
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
}

const JOBS: &str = "resource: {id: /id, alias: /name}
operations: {compare: {transforms: [{jqExpression: '{id, name, size}'}]}}
";

#[test]
fn an_id_that_the_server_gave_is_not_written_again() {
    let place = Place::new(
        ApiServer::rest(&["/jobs"], Ids::Given),
        &[
            ("jobs/_/metadata.yaml", JOBS),
            ("jobs/nightly/resource.json", r#"{"name": "nightly", "size": 1}"#),
        ],
    );
    for _ in 0..3 {
        let run = place.run(&["resource", "apply", "/jobs/nightly"]);
        assert_eq!(run.code, 0, "{run}");
    }
    assert_eq!(place.server.writes(), ["POST /jobs 201"]);
    let run = place.run(&["resource", "diff", "/jobs/nightly", "-o", "json"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "[]\n"), "{run}");
}

#[test]
fn a_name_that_compare_selects_is_not_drift() {
    let server = ApiServer::rest(&["/keys"], Ids::Stated("name"));
    server.put("/keys/k1", json!({"name": "k1"}));
    let metadata = "resource: {secret: true, id: /name}
operations: {compare: {transforms: [{selectAttributes: [/name]}]}}
";
    let place =
        Place::new(server, &[("keys/_/metadata.yaml", metadata), ("keys/k1/resource.txt", "{{secret .}}")]);
    let stored = place.run_with(&["secret", "set", "/keys/k1:.", "--stdin"], "a key");
    assert_eq!(stored.code, 0, "{stored}");
    let run = place.run(&["resource", "diff", "/keys/k1", "-o", "json"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "[]\n"), "{run}");
    let run = place.run(&["resource", "apply", "/keys/k1"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

const WITHOUT_UPDATE: &str = "openapi: 3.0.3
paths:
  /shops: {get: {}, post: {}}
  /shops/{id}: {get: {}, delete: {}}
components: {schemas: {Shop: {type: object, required: [owner]}}}
";
const WITH_UPDATE: &str = "openapi: 3.0.3
paths:
  /shops: {get: {}, post: {}}
  /shops/{id}: {get: {}, put: {}, delete: {}}
components: {schemas: {Shop: {type: object, required: [owner]}}}
";

#[rstest]
#[case::required("resource: {requiredAttributes: [/owner]}\n", "", "owner")]
#[case::required_by_update("operations: {update: {validate: {requiredAttributes: [/owner]}}}\n", "", "owner")]
#[case::assertion(
    "operations: {update: {validate: {assertions: [{jq: '.size > 0', message: the size is missing}]}}}\n",
    "",
    "the size is missing"
)]
#[case::schema(
    "operations: {update: {validate: {schemaRef: 'openapi:#/components/schemas/Shop'}}}\n",
    WITH_UPDATE,
    "owner"
)]
#[case::method("", WITHOUT_UPDATE, "/shops/{id}")]
fn drift_shows_also_where_it_cannot_be_corrected(
    #[case] metadata: &str,
    #[case] openapi: &str,
    #[case] why: &str,
) {
    let server = ApiServer::rest(&["/shops"], Ids::Stated("id"));
    server.put("/shops/rio", json!({"id": "rio", "tier": "free"}));
    let place = Place::with_openapi(
        server,
        openapi,
        &[
            ("shops/_/metadata.yaml", metadata),
            ("shops/rio/resource.json", r#"{"id": "rio", "tier": "gold"}"#),
        ],
    );
    let run = place.run(&["resource", "diff", "/shops/rio"]);
    assert!(run.stdout.contains("gold") && run.stdout.contains("free"), "{run}");
    assert!(run.stderr.contains(why), "{run}");
    let run = place.run(&["resource", "diff", "/shops/rio", "-o", "json"]);
    let shown: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
    assert_eq!(shown[0]["Path"], "/tier", "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

#[test]
fn what_a_create_ignores_is_written_after_it() {
    let server = ApiServer::start(&["/executions"], |request, store| {
        let mut request = request.clone();
        if request.method == "POST" {
            request.body["requirement"] = json!("DISABLED");
        }
        request.rest(store, Ids::Given)
    });
    let place = Place::new(
        server,
        &[
            ("executions/_/metadata.yaml", "resource: {id: /id, alias: /provider}\n"),
            ("executions/otp/resource.json", r#"{"provider": "otp", "requirement": "REQUIRED"}"#),
        ],
    );
    let run = place.run(&["resource", "apply", "/executions/otp"]);
    let held = place.server.get("/executions/n7").unwrap();
    assert!(run.code != 0 || held["requirement"] == "REQUIRED", "{held} {run}");
    assert_eq!((run.code, place.server.writes().len()), (0, 2), "{run}");
}

#[test]
fn without_metadata_a_user_is_created_once() {
    let place = Place::new(
        ApiServer::rest(&["/users"], Ids::Given),
        &[("users/ana/resource.json", r#"{"username": "ana", "mail": "ana@example.test"}"#)],
    );
    for _ in 0..3 {
        let run = place.run(&["resource", "apply", "/users/ana"]);
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(place.server.writes(), ["POST /users 201"]);
    }
    place.home.write("repo/users/ana/resource.json", r#"{"username": "ana", "mail": "other@example.test"}"#);
    let run = place.run(&["resource", "apply", "/users/ana"]);
    assert_eq!(
        (run.code, place.server.writes()[1..].join(", ")),
        (0, "PUT /users/n7 200".to_owned()),
        "{run}"
    );
}

/// A gateway may answer for a server that it cannot reach, so an answer without content says nothing about the resource.
#[rstest]
#[case::save(&["resource", "save", "/shops/rio", "--force"])]
#[case::wildcard(&["resource", "save", "/shops/_", "--force"])]
#[case::refresh(&["resource", "apply", "/shops/rio", "--refresh"])]
#[case::copy(&["resource", "copy", "/shops/lima", "/shops/rio", "--force"])]
fn an_answer_without_content_removes_no_file(#[case] args: &[&str], #[values("", "null")] content: &str) {
    let content = content.to_owned();
    let server = ApiServer::start(&["/shops"], move |request, store| match request.method.as_str() {
        "GET" if request.path != "/shops" => Answer::text(200, "application/json", &content),
        _ => request.rest(store, Ids::Stated("id")),
    });
    let place = Place::new(server, &[("shops/rio/resource.json", r#"{"id": "rio"}"#)]);
    place.server.put("/shops/rio", json!({"id": "rio"}));
    let before = place.files();
    let run = place.run(args);
    assert_eq!((run.code, place.files()), (2, before), "{run}");
    assert!(run.stderr.contains("has no content, so there is nothing to save"), "{run}");
}

/// A copied file has the name of the original, and only the copy is to be written.
#[rstest]
#[case::apply(&["resource", "apply", "/hosts/dup"])]
#[case::apply_below(&["resource", "apply", "/hosts/dup", "-r"])]
#[case::update(&["resource", "update", "/hosts/dup"])]
#[case::plan(&["plan", "/hosts/dup"])]
fn a_copy_does_not_overwrite_the_original(#[case] args: &[&str]) {
    let server = ApiServer::rest(&["/hosts"], Ids::Stated("name"));
    server.put("/hosts/web1", json!({"name": "web1", "notes": ""}));
    let files = [
        ("hosts/_/metadata.yaml", BY_NAME),
        ("hosts/web1/resource.json", r#"{"name": "web1", "notes": ""}"#),
        ("hosts/dup/resource.json", r#"{"name": "web1", "notes": "dup"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(args);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(run.code == 5 && shown.contains("/hosts/web1 declares the same resource"), "{run}");
    assert_eq!(place.server.get("/hosts/web1").unwrap()["notes"], "");
}
