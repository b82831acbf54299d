//! Answers of servers as the situations need them.

use serde_json::json;

use super::draw::IdStyle;
use crate::api_server::{Answer, Ids, Request, Store};

/// Lists are whole, whatever their length.
pub const WHOLE: &str = "operations: {list: {pagination: {style: none}}}\n";

/// A plain REST API whose server gives the ids, in this style.
pub fn given(request: &Request, store: &mut Store, style: IdStyle) -> Answer {
    if request.method != "POST" {
        return request.rest(store, Ids::Given);
    }
    if !store.is_collection(&request.path) {
        return Answer::missing();
    }
    let number = store.next_id().trim_start_matches('n').parse().unwrap();
    let (id, shown) = style.id(number);
    let mut body = request.body.clone();
    body["id"] = shown;
    let path = format!("{}/{id}", request.path);
    store.put(&path, body.clone());
    Answer::json(201, &body).header("location", &path)
}

/// A server at work on something else, or what stands before it.
pub fn trouble(mode: &str) -> Option<Answer> {
    Some(match mode {
        "missing" => Answer::missing(),
        "busy" => Answer::json(200, &json!({"error": "busy"})),
        "html" => Answer::html(200),
        "text" => Answer::text(200, "text/plain", "down for maintenance"),
        "unnamed" => Answer::html(200).without_headers(),
        "nothing" => Answer::empty(204),
        "null" => Answer::json(200, &json!(null)),
        "unauthorized" => Answer::empty(401),
        "forbidden" => Answer::empty(403),
        "refused" => Answer::empty(405),
        "failing" => Answer::json(500, &json!({"error": "out of memory"})),
        "away" => Answer::redirect("/console/"),
        _ => return None,
    })
}
