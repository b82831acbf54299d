//! Lists with several pages, from a server on loopback with fixed responses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where it cannot go on")]

#[path = "support/session.rs"]
mod session;

use std::fs;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use declarest_core::error::Categorized;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::repository::resource_file;
use declarest_core::sync::{self, Candidate, Options, Remote, Selection, Session, Stop};
use http::header::{CONTENT_TYPE, LINK};
use rstest::rstest;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A request, with the body of a `filter`, and the status, the `Link` or other fields, and the body of its response. `SERVER` stands for the server's
/// URL.
type Route = (&'static str, u16, &'static str, &'static str);

struct Server {
    session: Session,
    origin: String,
    log: Arc<Mutex<Vec<String>>>,
    _directory: TempDir,
}

struct Script {
    routes: &'static [Route],
    origin: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server at `/api`, and creates a repository with `/orders/blue` and this metadata of `/orders`.
    async fn new(metadata: &str, routes: &'static [Route]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(Script { routes, origin: origin.clone(), log: Arc::clone(&log) });
        let router = Router::new().fallback(answer).with_state(script);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let directory = tempfile::tempdir().unwrap();
        for (file, content) in
            [("_/metadata.yaml", metadata), ("blue/resource.yaml", "{name: blue, size: 1}")]
        {
            let file = directory.path().join("orders").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let session = session::session(directory.path(), &format!("{origin}/api"));
        Self { session, origin, log, _directory: directory }
    }

    /// Returns the ids in the list of `/orders`, sorted by path, or the error.
    async fn ids(&self) -> Result<String, String> {
        let members = Remote::new(&self.session).list(&path("/orders")).await;
        let members = members.map_err(|error| format!("{}: {error}", error.category()))?;
        let mut ids: Vec<&str> = members.entries.values().map(|entry| entry.remote_id.as_str()).collect();
        if members.partial {
            ids.push("and more");
        }
        Ok(ids.join(" "))
    }

    fn requests(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let shop = request.headers().get("x-shop").map(|shop| format!(" {}", shop.to_str().unwrap()));
    let uri = request.uri().to_string();
    let mut line = format!("{} {}", request.method(), uri.strip_prefix("/api").unwrap_or("outside"));
    if uri.ends_with("/filter") {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        line = format!("{line} {body}");
    }
    script.log.lock().unwrap().push(format!("{line}{}", shop.unwrap_or_default()));
    let found = script.routes.iter().find(|(route, ..)| *route == line);
    let (status, link, body) =
        found.map_or((404, "", "{}"), |(_, status, link, body)| (*status, *link, *body));
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    for field in link.lines() {
        let (name, value) = field.split_once(": ").unwrap_or((LINK.as_str(), field));
        response = response.header(name, value.replace("SERVER", &script.origin));
    }
    response.body(body.replace("SERVER", &script.origin).into()).unwrap()
}

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

const LINKS: &[Route] = &[
    ("GET /orders", 200, "</api/orders>; rel=\"self\", <?page=2>; rel=\"next\"", r#"[{"id":1},{"id":2}]"#),
    ("GET /orders?page=2", 200, "<SERVER/api/orders/3?x=a%20b>; rel=next", r#"[{"id":3}]"#),
    ("GET /orders/3?x=a%20b", 200, "</api/orders>; rel=first", r#"[{"id":4}]"#),
];
const URLS: &[Route] = &[
    ("GET /orders", 200, "", r#"{"items":[{"id":1}],"next":"SERVER/api/orders?page=2"}"#),
    ("GET /orders?page=2", 200, "", r#"{"items":[{"id":2}],"_links":{"next":{"href":"?page=3"}}}"#),
    ("GET /orders?page=3", 200, "", r#"{"items":[],"paging":{"next":"/api/orders?page=4"}}"#),
    (
        "GET /orders?page=4",
        200,
        "",
        r#"{"@odata.context":"http://internal/api/$metadata#orders","items":[{"id":3}],"@odata.nextLink":"orders?page=5"}"#,
    ),
    ("GET /orders?page=5", 200, "", r#"{"items":[{"id":4}],"next":null,"hasMore":false}"#),
];
const CURSORS: &[Route] = &[
    ("GET /orders", 200, "", r#"{"items":[{"id":1}],"meta":{"cursor":"a&b"}}"#),
    ("GET /orders?after=a%26b", 200, "", r#"{"items":[{"id":2}],"meta":{"cursor":7}}"#),
    ("GET /orders?after=7", 200, "", r#"{"items":[{"id":3}],"meta":{"cursor":""}}"#),
];
const OFFSETS: &[Route] = &[
    ("GET /orders?first=0&max=2", 200, "", r#"[{"id":1},{"id":2}]"#),
    ("GET /orders?first=2&max=2", 200, "", r#"[{"id":3},{"id":4}]"#),
    ("GET /orders?first=4&max=2", 200, "", "[]"),
];
/// The server returns fewer entries than requested, and states that there are more.
const CAPPED: &[Route] = &[
    ("GET /orders?first=0&max=9", 200, "", r#"{"items":[{"id":1}],"hasMore":true}"#),
    ("GET /orders?first=1&max=9", 200, "</api/elsewhere>; rel=next", r#"{"items":[{"id":2}]}"#),
    ("GET /orders?first=2&max=9", 200, "", r#"{"items":[{"id":3}]}"#),
];
const NUMBERS: &[Route] = &[
    ("GET /orders?page=1", 200, "", r#"{"data":{"all":[{"id":1},{"id":2}]}}"#),
    ("GET /orders?page=2", 200, "", r#"{"data":{"all":[{"id":3}]}}"#),
];

#[rstest]
#[case::links("{}", LINKS, "1 2 3 4")]
#[case::links_declared("operations: {list: {pagination: {style: link}}}", LINKS, "1 2 3 4")]
#[case::urls("{}", URLS, "1 2 3 4")]
#[case::next_declared(
    "operations: {list: {pagination: {style: next, pointer: /rest/0}}}",
    &[
        ("GET /orders", 200, "", r#"{"items":[{"id":1}],"rest":["/api/orders/page/2"]}"#),
        ("GET /orders/page/2", 200, "", r#"{"items":[{"id":2}],"rest":[]}"#),
    ],
    "1 2"
)]
#[case::cursor(
    "operations: {list: {pagination: {style: cursor, pointer: /meta/cursor, parameter: after}}}",
    CURSORS,
    "1 2 3"
)]
#[case::offset(
    "operations: {list: {pagination: {style: offset, parameter: first, sizeParameter: max, size: 2}}}",
    OFFSETS,
    "1 2 3 4"
)]
#[case::offset_over_query(
    "operations: {list: {query: {max: '7', first: '5'}, pagination: {style: offset, parameter: first, sizeParameter: max, size: 2}}}",
    OFFSETS,
    "1 2 3 4"
)]
#[case::capped(
    "operations: {list: {pagination: {style: offset, parameter: first, sizeParameter: max, size: 9}}}",
    CAPPED,
    "1 2 3"
)]
#[case::page(
    "operations: {list: {transforms: [{jqExpression: .data.all}], pagination: {style: page, parameter: page, size: 2, items: /data/all}}}",
    NUMBERS,
    "1 2 3"
)]
#[case::page_start(
    "operations: {list: {pagination: {style: page, parameter: p, size: 1, start: 0}}}",
    &[("GET /orders?p=0", 200, "", r#"[{"id":1}]"#), ("GET /orders?p=1", 200, "", "[]")],
    "1"
)]
#[case::numbers_in_the_body(
    "operations: {list: {method: POST, path: ./filter, pagination: {style: offset, parameter: /offset, sizeParameter: /limit, size: 1}}}",
    &[
        (r#"POST /orders/filter {"limit":1,"offset":0}"#, 200, "", r#"[{"id":1}]"#),
        (r#"POST /orders/filter {"limit":1,"offset":1}"#, 200, "", "[]"),
    ],
    "1"
)]
#[case::a_cursor_in_the_body(
    "operations: {list: {method: POST, path: ./filter, body: {page: {size: 9}}, pagination: {style: cursor, pointer: /after, parameter: /page/after}}}",
    &[
        (r#"POST /orders/filter {"page":{"size":9}}"#, 200, "", r#"{"items":[{"id":1}],"after":"1"}"#),
        (r#"POST /orders/filter {"page":{"after":"1","size":9}}"#, 200, "", r#"{"items":[{"id":2}]}"#),
    ],
    "1 2"
)]
#[case::operation(
    "operations: {list: {method: POST, query: {view: brief}, headers: {X-Shop: rio}}}",
    &[
        ("POST /orders?view=brief", 200, "<?page=2>; rel=next", r#"[{"id":1}]"#),
        ("POST /orders?page=2", 200, "", r#"[{"id":2}]"#),
    ],
    "1 2"
)]
#[case::urls_in_another_header(
    "{}",
    &[
        ("GET /orders", 200, "Next-Page: SERVER/api/orders?page=2", r#"[{"id":1}]"#),
        ("GET /orders?page=2", 200, "X-Next-Url: ?page=3", r#"[{"id":2}]"#),
        ("GET /orders?page=3", 200, "Next-Page: ", r#"[{"id":3}]"#),
    ],
    "1 2 3"
)]
/// An entry of the first page moves to the second page between the requests.
#[case::moved(
    "{}",
    &[
        ("GET /orders", 200, "<?page=2>; rel=next", r#"[{"id":1},{"id":2}]"#),
        ("GET /orders?page=2", 200, "", r#"[{"id":2},{"id":3}]"#),
    ],
    "1 2 3"
)]
#[tokio::test]
async fn all_pages_are_read(#[case] metadata: &str, #[case] routes: &'static [Route], #[case] ids: &str) {
    let server = Server::new(metadata, routes).await;
    assert_eq!(server.ids().await.as_deref(), Ok(ids));
    let expected: Vec<String> = routes
        .iter()
        .map(
            |(route, ..)| {
                if metadata.contains("X-Shop") { format!("{route} rio") } else { (*route).to_owned() }
            },
        )
        .collect();
    assert_eq!(server.requests(), expected);
}

#[rstest]
#[case::only_the_first("operations: {list: {pagination: {style: none}}}", LINKS, "1 2")]
#[case::a_cursor(
    "{}",
    &[("GET /orders", 200, "", r#"{"items":[{"id":1}],"meta":{"next_cursor":"c"}}"#)],
    "1 and more"
)]
#[case::a_cursor_like_a_path(
    "{}",
    &[("GET /orders", 200, "", r#"{"items":[{"id":1}],"next":"/9j/4AAQ"}"#)],
    "1 and more"
)]
#[case::a_token_in_another_header(
    "{}",
    &[("GET /orders", 200, "Next-Page: /9j/4AAQ", r#"[{"id":1}]"#)],
    "1 and more"
)]
#[case::whole_regardless_of_headers(
    "operations: {list: {pagination: {style: none}}}",
    &[("GET /orders", 200, "Next-Page: SERVER/api/orders?page=2", r#"[{"id":1}]"#)],
    "1"
)]
#[case::empty_with_a_next_page(
    "{}", &[("GET /orders", 200, "<?page=2>; rel=next\nX-Total-Count: 0", "[]")], ""
)]
#[case::empty_with_a_declared_next_page(
    "operations: {list: {pagination: {style: link}}}",
    &[("GET /orders", 200, "<?page=2>; rel=next\nX-Total-Count: 0", "[]")],
    ""
)]
#[case::not_where_declared(
    "operations: {list: {pagination: {style: next, pointer: /no/such}}}",
    URLS,
    "1 and more"
)]
#[case::unreadable(
    "{}", &[("GET /orders", 200, "/orders?page=2; rel=next", r#"[{"id":1}]"#)], "1 and more"
)]
#[tokio::test]
async fn one_page_is_read(#[case] metadata: &str, #[case] routes: &'static [Route], #[case] ids: &str) {
    let server = Server::new(metadata, routes).await;
    assert_eq!(server.ids().await.as_deref(), Ok(ids));
    assert_eq!(server.requests(), [routes[0].0]);
}

/// Some servers filter their pages, so a few may be empty. A server may also link from each page to another one, and
/// repeat the entries of the last page.
#[rstest]
#[case::filtered("[]", 19, "1 2", 21)]
#[case::endless("[]", 50, "1 and more", 21)]
#[case::repeated(r#"[{"id":1}]"#, 50, "1 and more", 21)]
#[tokio::test]
async fn a_list_may_have_pages_without_new_entries(
    #[case] page: &'static str,
    #[case] empty: usize,
    #[case] ids: &str,
    #[case] requests: usize,
) {
    let without_new = page;
    let leaked = |text: String| -> &'static str { text.leak() };
    let page = |number: usize| -> Route {
        let url = if number == 0 { String::new() } else { format!("?page={number}") };
        let (link, body) = match number {
            0 => ("<?page=1>; rel=next".to_owned(), r#"[{"id":1}]"#),
            _ if number > empty => (String::new(), r#"[{"id":2}]"#),
            _ => (format!("<?page={}>; rel=next", number + 1), without_new),
        };
        (leaked(format!("GET /orders{url}")), 200, leaked(link), body)
    };
    let server = Server::new("{}", (0..=empty + 1).map(page).collect::<Vec<_>>().leak()).await;
    assert_eq!(server.ids().await.as_deref(), Ok(ids));
    assert_eq!(server.requests().len(), requests);
}

const FIXED: &str = "operations: {list: {pagination: {style: page, parameter: page, size: 1}}}";

#[rstest]
#[case::cycle(
    "{}",
    &[
        ("GET /orders", 200, "<?page=2>; rel=next", r#"[{"id":1}]"#),
        ("GET /orders?page=2", 200, "</api/orders>; rel=next", r#"[{"id":2}]"#),
    ],
    "ValidationError: list of /orders: the pages do not end: page 3 was read before"
)]
#[case::the_same_cursor(
    "operations: {list: {pagination: {style: cursor, pointer: /meta/cursor, parameter: after}}}",
    &[
        ("GET /orders", 200, "", r#"{"items":[{"id":1}],"meta":{"cursor":"c"}}"#),
        ("GET /orders?after=c", 200, "", r#"{"items":[{"id":2}],"meta":{"cursor":"c"}}"#),
    ],
    "ValidationError: list of /orders: the pages do not end: page 3 was read before"
)]
#[case::the_same_cursor_in_the_body(
    "operations: {list: {method: POST, path: ./filter, pagination: {style: cursor, pointer: /after, parameter: /after}}}",
    &[
        ("POST /orders/filter null", 200, "", r#"{"items":[{"id":1}],"after":"1"}"#),
        (r#"POST /orders/filter {"after":"1"}"#, 200, "", r#"{"items":[{"id":2}],"after":"1"}"#),
    ],
    "ValidationError: list of /orders: the pages do not end: page 3 was read before"
)]
#[case::nothing_new(
    FIXED,
    &[
        ("GET /orders?page=1", 200, "", r#"[{"id":1}]"#),
        ("GET /orders?page=2", 200, "", r#"[{"id":1}]"#),
    ],
    "ValidationError: list of /orders: the pages do not end: page 2 shows only what earlier ones showed: does the server know the parameters of operations.list.pagination?"
)]
#[case::another_path(
    "{}",
    &[("GET /orders", 200, "</orders?page=2>; rel=next", "[]")],
    "ValidationError: list of /orders: page 2: GET /orders: the next page, SERVER/orders, is not below SERVER/api; correct the external URL in the server's configuration, or set operations.list.pagination"
)]
#[case::another_origin(
    "{}",
    &[("GET /orders", 200, "", r#"{"items":[],"next":"http://h.test/api/orders?page=2"}"#)],
    "ValidationError: list of /orders: page 2: GET /orders: the next page, http://h.test/api/orders, is not of the origin of SERVER/api; correct the external URL in the server's configuration, or set operations.list.pagination"
)]
#[case::refused(
    "{}",
    &[
        ("GET /orders", 200, "<?page=2>; rel=next", r#"[{"id":1}]"#),
        ("GET /orders?page=2", 400, "", "no such page"),
    ],
    "ValidationError: list of /orders: page 2: GET /orders: remote request failed with status 400: no such page"
)]
#[case::gone(
    "{}",
    &[
        ("GET /orders", 200, "<?page=2>; rel=next", r#"[{"id":1}]"#),
        ("GET /orders?page=2", 410, "", "expired"),
    ],
    "TransportError: list of /orders: page 2: GET /orders: remote request failed with status 410: expired"
)]
#[case::no_list(
    "{}",
    &[
        ("GET /orders", 200, "<?page=2>; rel=next", r#"[{"id":1}]"#),
        ("GET /orders?page=2", 200, "", "{}"),
    ],
    "ValidationError: list of /orders: page 2: the response is an object without an array; select the entries in operations.list.transforms in orders/_/metadata.yaml"
)]
#[case::no_url(
    "operations: {list: {pagination: {style: next, pointer: /rest}}}",
    &[("GET /orders", 200, "", r#"{"items":[],"rest":7}"#)],
    "ValidationError: list of /orders: operations.list.pagination.pointer (orders/_/metadata.yaml): /rest is an integer, not a URL"
)]
#[case::uncounted(
    "operations: {list: {transforms: [{jqExpression: .data.all}], pagination: {style: page, parameter: page, size: 1}}}",
    &[("GET /orders?page=1", 200, "", r#"{"data":{"all":[]}}"#)],
    "ValidationError: list of /orders: operations.list.pagination (orders/_/metadata.yaml): the response before transforms is not a list, so its entries cannot be counted; set items to its array"
)]
#[tokio::test]
async fn a_list_fails_as_a_whole(
    #[case] metadata: &str,
    #[case] routes: &'static [Route],
    #[case] expected: &str,
) {
    let server = Server::new(metadata, routes).await;
    let message = server.ids().await.unwrap_err();
    assert_eq!(message.replace(&server.origin, "SERVER"), expected);
}

#[tokio::test]
async fn transforms_run_on_each_page_and_read_other_resources_once() {
    let server = Server::new(
        "operations: {list: {transforms: [{jqExpression: '.data | map(select(.id > resource(\"/limit\").n))'}]}}",
        &[
            ("GET /orders", 200, "<?page=2>; rel=next", r#"{"data":[{"id":1},{"id":3}]}"#),
            ("GET /limit", 200, "", r#"{"n":1}"#),
            ("GET /orders?page=2", 200, "", r#"{"data":[{"id":2}]}"#),
        ],
    )
    .await;
    assert_eq!(server.ids().await.as_deref(), Ok("2 3"));
    assert_eq!(server.requests(), ["GET /orders", "GET /limit", "GET /orders?page=2"]);
}

const NAMED: &str =
    "resource: {id: /id, alias: /name}\noperations: {compare: {transforms: [{selectAttributes: /size}]}}";
const FIRST_TWO: [Route; 2] = [
    ("GET /orders", 200, "<?page=2>; rel=next", r#"[{"id":1,"name":"a"}]"#),
    ("GET /orders?page=2", 200, "<?page=3>; rel=next", r#"[{"id":2,"name":"b"}]"#),
];
const CUT: &[Route] = &[("GET /orders", 200, "X-Next-Cursor: b", r#"[{"id":1,"name":"a"}]"#)];
const BROKEN: &[Route] = &[FIRST_TWO[0], FIRST_TWO[1], ("GET /orders?page=3", 404, "", "nothing")];
const SOUND: &[Route] = &[
    FIRST_TWO[0],
    FIRST_TWO[1],
    ("GET /orders?page=3", 200, "", r#"[{"id":3,"name":"blue","size":1},{"id":4,"name":"old"}]"#),
    ("GET /orders/3", 200, "", r#"{"id":3,"name":"blue","size":1}"#),
    ("GET /orders/4", 200, "", r#"{"id":4,"name":"old"}"#),
    ("DELETE /orders/4", 204, "", ""),
];

/// `/orders/blue` is declared, and `/orders/old` was declared before. Their ids are assigned by the server.
async fn run(server: &Server) -> sync::Report {
    let tree = server.session.tree.as_ref();
    let file = resource_file(tree, &path("/orders/blue")).unwrap().unwrap();
    let payload = decode(PayloadType::Json, br#"{"name":"old"}"#).unwrap();
    let prune = vec![Candidate { path: path("/orders/old"), payload, declared_in: None }];
    let selection = Selection { resources: vec![file], prune, ..Selection::default() };
    sync::run(&server.session, selection, &Options::default(), &Stop::default()).await
}

fn writes(server: &Server) -> Vec<String> {
    server.requests().into_iter().filter(|line| !line.starts_with("GET")).collect()
}

#[tokio::test]
async fn an_incomplete_list_leads_to_no_creation_and_no_deletion() {
    let server = Server::new(NAMED, BROKEN).await;
    let report = run(&server).await;
    assert_eq!(writes(&server), Vec::<String>::new());
    // Both fail, so the next run tries them again.
    assert_eq!((report.stats.failed, report.stats.pruned), (2, 0), "{report:?}");
    let failure = format!("{:?}", report.failures);
    assert!(failure.contains("page 3: GET /orders: remote request failed with status 404"), "{failure}");
}

#[tokio::test]
async fn a_list_that_a_header_continues_leads_to_no_creation_and_no_deletion() {
    let server = Server::new(NAMED, CUT).await;
    let report = run(&server).await;
    assert_eq!(writes(&server), Vec::<String>::new());
    assert_eq!((report.stats.failed, report.stats.pruned), (2, 0), "{report:?}");
    let failure = format!("{:?}", report.failures);
    assert!(failure.contains("the list of its collection has further pages"), "{failure}");
}

#[tokio::test]
async fn resources_on_the_last_page_are_found() {
    let server = Server::new(NAMED, SOUND).await;
    let report = run(&server).await;
    assert_eq!(writes(&server), ["DELETE /orders/4"]);
    assert_eq!((report.stats.failed, report.stats.pruned), (0, 1), "{report:?}");
}

/// Another client removes the first entry between the two pages, so the second page lacks `/orders/blue`.
#[rstest]
#[case::offset(
    "resource: {id: /id, alias: /name}\noperations: {list: {pagination: {style: offset, parameter: first, size: 2}}}",
    &[
        ("GET /orders?first=0", 200, "", r#"{"total":3,"items":[{"id":1,"name":"a"},{"id":4,"name":"old"}]}"#),
        ("GET /orders?first=2", 200, "", r#"{"total":2,"items":[]}"#),
    ]
)]
#[case::links(
    NAMED,
    &[
        ("GET /orders", 200, "link: <?page=2>; rel=next\nx-total: 4", r#"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#),
        ("GET /orders?page=2", 200, "x-total: 3", r#"[{"id":4,"name":"old"}]"#),
    ]
)]
#[tokio::test]
async fn a_list_that_shrinks_while_it_is_read_leads_to_no_creation(
    #[case] metadata: &str,
    #[case] routes: &'static [Route],
) {
    let server = Server::new(metadata, routes).await;
    let report = run(&server).await;
    assert!(!writes(&server).iter().any(|line| line.starts_with("POST")), "{:?}", writes(&server));
    let failure = format!("{:?}", report.failures);
    assert!(failure.contains("entries were removed from the list of its collection"), "{failure}");
}
