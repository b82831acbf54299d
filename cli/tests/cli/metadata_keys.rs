//! The effect of metadata is shown before anything is written: by `metadata render`, `resource explain` and `plan`. Each
//! key that v0.3.8 does not have is in a case here.

use declarest_core::payload::{PayloadType, decode, encode};
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::document_keys;
use crate::environment::Run;
use crate::safety::Place;
use crate::world::World;

/// The keys of v0.3.8, with all keys below them.
const EARLIER: &[&str] = &[
    "operations.*.body",
    "operations.*.headers",
    "operations.*.method",
    "operations.*.path",
    "operations.*.query",
    "operations.*.transforms",
    "operations.*.validate",
    "operations.defaults",
    "resource.alias",
    "resource.defaults",
    "resource.externalizedAttributes",
    "resource.format",
    "resource.id",
    "resource.remoteCollectionPath",
    "resource.requiredAttributes",
    "resource.secret",
    "resource.secretAttributes",
    "selector",
];

const EXPLAIN: &str = "resource explain /shops/rio";
const PLAN: &str = "plan / -o json";
const TEXT: &str = "plan /";
const RENDER_COMPARE: &str = "resource metadata render /shops/rio compare";
const RENDER_GET: &str = "resource metadata render /shops/rio get";
const RENDER_LIST: &str = "resource metadata render /shops list";
const RENDER_UPDATE: &str = "resource metadata render /shops/rio update";
/// The case of `resource.onRemove`, which needs Git.
const REMOVED: &str = "resource: {onRemove: {reset: {tier: free}}}";

/// Metadata, and for each command a text that it prints because of this metadata. A text after `!` is printed only
/// without the metadata.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    ("resource: {dependsOn: [/shops/rio]}", &[(PLAN, r#""dependsOn":["/shops/rio"]"#)]),
    (
        "resource: {deferredAttributes: [/tier]}",
        &[(PLAN, r#""deferred":["/tier"]"#), (TEXT, "/tier: set after all other writes")],
    ),
    (
        "resource: {writeOnlyAttributes: [/seats]}",
        &[(PLAN, r#"!"Path":"/seats""#), (EXPLAIN, r#"!"Path":"/seats""#)],
    ),
    (
        "resource: {replaceOn: [/tier]}",
        &[
            (PLAN, r#""requests":["DELETE /shops/rio","POST /shops"]"#),
            (TEXT, "-/+ /shops/rio"),
            ("resource explain /shops/rio -o text", "replaced by DELETE /shops/rio and POST /shops"),
        ],
    ),
    ("resource: {singleton: true}", &[(PLAN, r#""requests":["PUT /shops/north%2Foslo"]"#)]),
    (
        "resource: {pathNames: percentEncoded}\noperations: {get: {query: {shop: '{{/id}}'}}}",
        &[("resource metadata render /shops/north%2Foslo get", r#""shop":"north/oslo""#)],
    ),
    (
        "operations: {compare: {mode: declared}}",
        &[
            (RENDER_COMPARE, r#""mode":"declared""#),
            (PLAN, r#"!"Path":"/seats""#),
            (EXPLAIN, r#"!"Path":"/seats""#),
        ],
    ),
    (
        "operations: {compare: {arrays: {/tags: set}}}",
        &[
            (RENDER_COMPARE, r#""arrays":{"/tags":"set"}"#),
            (PLAN, r#"!"Path":"/tags/0""#),
            (EXPLAIN, r#"!"Path":"/tags/0""#),
        ],
    ),
    (
        "operations: {update: {mode: merge-patch}}",
        &[(RENDER_UPDATE, r#""mode":"merge-patch""#), (PLAN, r#""requests":["PATCH /shops/rio"]"#)],
    ),
    (
        "operations: {get: {absent: {status: [400], jq: .code == 7}}}",
        &[(RENDER_GET, r#""absent":{"jq":".code == 7","status":[400]}"#), (TEXT, "+ /depots/north")],
    ),
    ("operations: {get: {from: list}}", &[(RENDER_GET, r#""from":"list""#), (TEXT, "+ /depots/north")]),
    (
        "operations: {list: {absent: {status: [404], jq: .code == 7}}}",
        &[(RENDER_LIST, r#""absent":{"jq":".code == 7","status":[404]}"#)],
    ),
    (
        "operations: {create: {failed: {jq: .code == 7}}, update: {failed: {jq: .code == 7}}, delete: {failed: {jq: .code == 7}}}",
        &[(RENDER_UPDATE, r#""failed":{"jq":".code == 7"}"#)],
    ),
    (
        "operations: {get: {failed: {jq: .code == 7}}, list: {failed: {jq: .code == 7}}}",
        &[(RENDER_GET, r#""failed":{"jq":".code == 7"}"#), (RENDER_LIST, r#""failed":{"jq":".code == 7"}"#)],
    ),
    ("operations: {defaults: {failed: {jq: 'true'}}}", &[(TEXT, "No plan")]),
    ("operations: {list: {mode: names}}", &[(RENDER_LIST, r#""mode":"names""#)]),
    (
        "operations: {list: {pagination: {style: page, parameter: p, size: 50, sizeParameter: n, start: 0, items: /shops}}}",
        &[(
            RENDER_LIST,
            r#""pagination":{"items":"/shops","parameter":"p","size":50,"sizeParameter":"n","start":0,"style":"page"}"#,
        )],
    ),
    (
        "operations: {list: {pagination: {style: cursor, parameter: after, pointer: /next}}}",
        &[(RENDER_LIST, r#""pagination":{"parameter":"after","pointer":"/next","style":"cursor"}"#)],
    ),
];

/// Answers 400 for depots that do not exist.
fn answer(request: &Request, store: &mut Store) -> Answer {
    match request.path.as_str() {
        "/depots/north" if request.method == "GET" => Answer::json(400, &json!({"code": 7})),
        _ => request.rest(store, Ids::Stated("id")),
    }
}

/// Returns what the command prints with this metadata, JSON without white space.
fn printed(command: &str, metadata: &str) -> String {
    let server = ApiServer::start(&["/shops", "/depots"], answer);
    server.put("/shops/rio", json!({"id": "rio", "tier": "free", "tags": ["b", "a"], "seats": 5}));
    let files = [
        ("shops/_/metadata.yaml", metadata),
        ("shops/rio/resource.yaml", "{id: rio, tier: gold, tags: [a, b]}"),
        ("shops/north%2Foslo/resource.yaml", "{tier: gold}"),
        ("depots/_/metadata.yaml", metadata),
        ("depots/north/resource.yaml", "{id: north}"),
    ];
    compact(&Place::new(server, &files).run(&command.split(' ').collect::<Vec<_>>()))
}

fn compact(run: &Run) -> String {
    serde_json::from_str::<Value>(&run.stdout).map_or(run.to_string(), |value| value.to_string())
}

#[test]
fn the_effect_of_a_key_is_shown() {
    for (metadata, shown) in CASES {
        for (command, text) in *shown {
            let (with, without) = (printed(command, metadata), printed(command, "{}"));
            let (text, shows, hides) = match text.strip_prefix('!') {
                Some(text) => (text, &without, &with),
                None => (*text, &with, &without),
            };
            let case = format!("{metadata}: {command}: {text}\n--- with\n{with}\n--- without\n{without}");
            assert!(shows.contains(text) && !hides.contains(text), "{case}");
        }
    }
}

#[test]
fn the_effect_of_a_removal_is_shown() {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    let commit = || assert_eq!(world.run(&["repository", "commit", "-m", "A change"]).code, 0);
    world.declare("shops/_/metadata.yaml", REMOVED);
    world.declare("shops/rio/resource.yaml", "id: rio\ntier: gold\n");
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold"}"#);
    commit();
    std::fs::remove_dir_all(world.home.path("repo/shops/rio")).unwrap();
    commit();
    let plan = compact(&world.run(&["plan", "/", "--prune", "-o", "json"]));
    assert!(plan.contains(r#""requests":["PUT /shops/rio"]"#), "{plan}");
}

#[test]
fn each_new_key_is_in_a_case() {
    let is_earlier = |key: &str| {
        EARLIER.iter().any(|earlier| {
            key.strip_prefix(earlier).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut missing = document_keys::allowed();
    // The names of the operations are not keys with a value of their own.
    missing.retain(|key| !is_earlier(key) && (key.starts_with("resource.") || key.matches('.').count() > 1));
    for metadata in CASES.iter().map(|(metadata, _)| *metadata).chain([REMOVED]) {
        let document = decode(PayloadType::Yaml, metadata.as_bytes()).unwrap();
        let document = encode(PayloadType::Json, &document).unwrap();
        let used = document_keys::used(&serde_json::from_slice(&document).unwrap());
        missing.retain(|key| !used.contains(key));
    }
    assert!(missing.is_empty(), "{missing:?}");
}
