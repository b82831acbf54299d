//! Answers of a managed server and their decoding.

use bytes::Bytes;
use http::header::{ETAG, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use url::Url;

use super::ServerError;
use super::request::{percent_decoded, segments_of};
use crate::payload::{self, Class, Descriptor, MAX_WEIGHT, PayloadType, Value};
use crate::transport::{NextLink, next_link};

/// A successful, complete answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request's method.
    pub method: Method,
    /// The request's unencoded path.
    pub path: String,
    /// The URL that answered, after redirects. Relative references in the answer are relative to it (RFC 3986,
    /// section 5.1.3). Its query may hold a key.
    pub url: Url,
    /// The redirect that replaced segments of the requested path by others, if there was one.
    pub detour: Option<Box<Detour>>,
    /// The status, below 400.
    pub status: StatusCode,
    /// The `Content-Type`, if any.
    pub content_type: Option<String>,
    /// The `Location`, if any.
    pub location: Option<String>,
    /// The strong entity tag (RFC 9110 §8.8.3), if there is one.
    pub etag: Option<HeaderValue>,
    /// The time of the last change according to the server (RFC 9110 §8.8.2).
    pub last_modified: Option<HeaderValue>,
    /// The values of all `Link` fields.
    pub links: Vec<String>,
    /// Information about the pages of a list from other fields.
    pub paging: Paging,
    /// The body, decompressed.
    pub body: Bytes,
}

/// A redirect to a path with other names.
#[derive(Clone, Debug)]
pub struct Detour {
    /// The segments of the requested path that were replaced, decoded.
    pub replaced: Vec<String>,
    /// The path that answered, redacted.
    pub to: String,
}

/// Information about the pages of a list from the header fields of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// The number of entries of the whole list: a field such as `X-Total-Count`, or the length in `Content-Range` (RFC
    /// 9110 §14.4).
    pub total: Option<u64>,
    /// The number of pages: a field such as `X-Total-Pages`.
    pub pages: Option<u64>,
    /// The URL, number or token of the next page, or only that there is one: the value of a field such as `Next-Page`.
    pub next: Option<String>,
    /// Whether there are further pages: `next` is present, or the range has an unknown length.
    pub continues: bool,
}

/// Fields that state the URL, number or token of the next page, or that there is one. Their names may begin with `X-`.
const NEXT_PAGE: [&str; 20] = [
    "next-page", "next-page-token", "next-page-url", "next-page-link", "next-cursor", "next-token",
    "next-offset", "next-link", "next-url", "next", "continuation", "continuation-token", "ms-continuation",
    "ms-continuationtoken", "opc-next-page", "page-next", "has-more", "has-next", "has-next-page",
    "pagination-next",
];

impl Paging {
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let text =
            |name: &str| headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty());
        let range = text("content-range").and_then(|range| range.rsplit_once('/'));
        let length = range.and_then(|(_, length)| length.parse().ok());
        let counted = |name| text(name)?.parse().ok();
        let partial = status == StatusCode::PARTIAL_CONTENT || range.is_some();
        let totals = [
            "x-total-count",
            "x-total",
            "x-pagination-total-count",
            "x-pagination-total",
            "x-wp-total",
            "total-count",
            "total",
            "pagination-count",
        ];
        let total = totals.into_iter().find_map(counted).or(length);
        let pages = ["x-total-pages", "x-pagination-page-count", "x-wp-totalpages", "x-pages"];
        let pages = pages.into_iter().find_map(counted);
        let names_next = |name: &str| NEXT_PAGE.contains(&name.strip_prefix("x-").unwrap_or(name));
        let next = headers.iter().find(|(name, value)| names_next(name.as_str()) && is_next(value));
        let next = next.map(|(_, value)| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
        Self { total, pages, continues: next.is_some() || (partial && total.is_none()), next }
    }
}

/// Whether the value of such a field states that there is a next page.
fn is_next(value: &HeaderValue) -> bool {
    let value = value.as_bytes().trim_ascii();
    !["", "false", "null"].iter().any(|none| value.eq_ignore_ascii_case(none.as_bytes()))
}

impl Detour {
    /// Whether `name` was replaced.
    pub fn replaces(&self, name: &str) -> bool {
        self.replaced.iter().any(|replaced| replaced == name)
    }
}

impl Response {
    /// Whether the path that answered has the segment `name`.
    pub fn answers_at(&self, name: &str) -> bool {
        segments_of(self.url.path()).any(|segment| percent_decoded(segment) == name)
    }

    /// Returns the next page according to the `Link` headers (RFC 8288).
    pub fn next_link(&self) -> NextLink {
        next_link(self.links.iter().map(String::as_str))
    }

    /// Decodes the body. An empty body is null. The Content-Type determines the type. If it is absent, unknown, or
    /// plain text where structured data is expected, `expected` decides, or else the first character of the body. A
    /// body that does not have the structured type of its Content-Type, and an HTML page, are accepted only if text or
    /// bytes are expected.
    pub fn decode(&self, expected: Option<PayloadType>) -> Result<Value, ServerError> {
        self.decode_within(expected, MAX_WEIGHT)
    }

    /// Like [`Response::decode`], for the answer to a write, of which only a part is used. Returns null if it cannot be
    /// decoded, or if its value needs more than 4 MiB of memory.
    pub(crate) fn decode_briefly(&self, expected: Option<PayloadType>) -> Value {
        self.decode_within(expected, 4 << 20).unwrap_or_default()
    }

    /// Like [`Response::decode`], but fails with [`ServerError::TooHeavy`] if the value needs more than `limit` bytes of
    /// memory.
    pub(crate) fn decode_within(
        &self,
        expected: Option<PayloadType>,
        limit: usize,
    ) -> Result<Value, ServerError> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let candidates = self.candidates(expected);
        let structured = candidates.iter().any(|candidate| candidate.class() == Class::Structured);
        if structured && self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        let mut first_error = None;
        for candidate in candidates {
            // Parsers may ignore a byte order mark (RFC 8259 section 8.1).
            let body = match self.body.strip_prefix("\u{feff}".as_bytes()) {
                Some(rest) if candidate.class() == Class::Structured => rest,
                _ => &self.body,
            };
            match payload::decode_within(candidate, body, limit) {
                Ok(value) => return Ok(value),
                Err(error) if error.is_too_heavy() => {
                    return Err(ServerError::TooHeavy {
                        method: self.method.clone(),
                        path: self.path.clone(),
                    });
                }
                // Later candidates would accept the number as text or bytes, which cannot be compared.
                Err(error) if error.is_number_out_of_range() => {
                    first_error = Some(error);
                    break;
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(self.not_decoded(match first_error {
            Some(_) if self.is_page() => {
                "an HTML page; resources that are pages need `format: text`".to_owned()
            }
            Some(error) => error.to_string(),
            None => String::new(),
        }))
    }

    /// Fails if `content` of this answer is a text or bytes. For resources that are objects or arrays: a gateway may have
    /// answered instead of the server. Content that the server states to be structured may be a text.
    pub(crate) fn check_structured(&self, content: &Value) -> Result<(), ServerError> {
        let stated = self.content_type.as_deref().and_then(Descriptor::from_media_type);
        let is_stated = stated.is_some_and(|stated| stated.payload_type.class() == Class::Structured);
        let kind = match content {
            Value::String(_) if !is_stated => "a text",
            Value::Bytes(_) => "bytes",
            _ => return Ok(()),
        };
        let reason = format!("{kind}; the resource is an object or an array");
        Err(self.not_decoded(reason))
    }

    fn not_decoded(&self, reason: String) -> ServerError {
        ServerError::Decode {
            method: self.method.clone(),
            path: self.path.clone(),
            content_type: self.content_type.clone().unwrap_or_else(|| "no content type".to_owned()),
            reason,
        }
    }

    /// Returns the format that the Content-Type states for `value`, the content of this answer; `None` for an unknown type,
    /// a type that does not describe the value, and JSON, unless the value is a string.
    pub fn descriptor_of(&self, value: &Value) -> Option<Descriptor> {
        let stated = Descriptor::from_media_type(self.content_type.as_deref()?)?;
        let described = match stated.payload_type.class() {
            // Bytes are a text that is not UTF-8.
            Class::Text => matches!(value, Value::String(_) | Value::Bytes(_)),
            Class::Binary => matches!(value, Value::Bytes(_)),
            Class::Structured => matches!(value, Value::Object(_) | Value::Array(_) | Value::String(_)),
        };
        let is_default = stated.payload_type == PayloadType::Json && !matches!(value, Value::String(_));
        (described && !is_default).then_some(stated)
    }

    /// Whether the Content-Type is that of an HTML page. Portals, login forms and gateways answer any request with
    /// such a page and status 200, so it says nothing about the resource.
    fn is_page(&self) -> bool {
        let essence = self.content_type.as_deref().and_then(|text| text.split(';').next());
        essence.is_some_and(|essence| {
            ["text/html", "application/xhtml+xml"]
                .iter()
                .any(|page| essence.trim().eq_ignore_ascii_case(page))
        })
    }

    /// Whether this answer with a status of success may not confirm a write: it is an HTML page, or states a failure
    /// in a member such as `"success": false` or `"error": "locked"`.
    pub fn is_doubtful(&self) -> bool {
        self.is_html() || self.states_failure()
    }

    /// Whether this answer states a failure in a member such as `"success": false` or `"error": "locked"`.
    pub(crate) fn states_failure(&self) -> bool {
        let Value::Object(answer) = self.decode_briefly(Some(PayloadType::Json)) else { return false };
        let denies = |member: &str| answer.get(member) == Some(&Value::Bool(false));
        let states = |member: &str| match answer.get(member) {
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(errors)) => !errors.is_empty(),
            Some(Value::Object(error)) => !error.is_empty(),
            Some(Value::Bool(failed)) => *failed,
            _ => false,
        };
        ["success", "ok"].into_iter().any(denies) || ["error", "errors"].into_iter().any(states)
    }

    /// Returns the answer with only those members of an object that state a failure, because the others may be those of a
    /// resource, with secrets.
    #[must_use]
    pub fn statement(&self) -> Self {
        let Value::Object(mut answer) = self.decode_briefly(Some(PayloadType::Json)) else {
            return self.clone();
        };
        answer.retain(|member, _| ["success", "ok", "error", "errors", "message"].contains(&&**member));
        let body = payload::encode(PayloadType::Json, &Value::Object(answer)).unwrap_or_default();
        Self { body: body.into(), ..self.clone() }
    }

    fn is_markup(&self) -> bool {
        self.body.trim_ascii_start().starts_with(b"<")
    }

    /// Whether the root element of the body is that of an HTML document.
    fn is_html(&self) -> bool {
        let start = self.body.trim_ascii_start();
        let begins =
            |text: &str| start.get(..text.len()).is_some_and(|it| it.eq_ignore_ascii_case(text.as_bytes()));
        begins("<!doctype html") || begins("<html")
    }

    /// Whether the media type is neither that of a text nor that of an application.
    fn has_other_bytes(&self) -> bool {
        let kind = self.content_type.as_deref().and_then(|text| text.split_once('/'));
        let is_of =
            |kind: &str| ["text", "application"].iter().any(|it| it.eq_ignore_ascii_case(kind.trim()));
        kind.is_some_and(|(kind, _)| !is_of(kind))
    }

    fn candidates(&self, expected: Option<PayloadType>) -> Vec<PayloadType> {
        let by_shape = || match self.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => PayloadType::Json,
            _ => PayloadType::OctetStream,
        };
        // Any content can be that of a text or of bytes.
        let is_opaque = expected.is_some_and(|expected| expected.class() != Class::Structured);
        let is_wanted = is_opaque && (expected != Some(PayloadType::Xml) || !self.is_html());
        if self.is_page() && !is_wanted {
            // YAML and other formats accept markup as text. JSON does not.
            return vec![expected.filter(|_| !self.is_markup()).unwrap_or(PayloadType::Json)];
        }
        let fallback = expected.unwrap_or_else(by_shape);
        let declared = self.content_type.as_deref().and_then(Descriptor::from_media_type);
        match declared.map(|descriptor| descriptor.payload_type) {
            Some(declared) if declared.class() == Class::Text && fallback.class() == Class::Structured => {
                vec![fallback, declared]
            }
            // It describes any bytes (RFC 9110 section 8.3), so the expected type is tried first.
            Some(declared) if declared == PayloadType::OctetStream => {
                expected.into_iter().chain([declared]).collect()
            }
            // YAML and other formats accept most texts, such as the message of a gateway, or JSON that is not valid.
            Some(declared) if declared.class() == Class::Structured && !is_opaque => vec![declared],
            Some(declared) => vec![declared, fallback],
            // No format has the type. Images may begin like JSON.
            None if self.has_other_bytes() => {
                expected.into_iter().chain([PayloadType::OctetStream]).collect()
            }
            None if self.content_type.is_some() => vec![fallback, PayloadType::OctetStream],
            None => vec![fallback],
        }
    }
}

/// Returns the entity tag if it is a strong one; weak ones do not distinguish all versions (RFC 9110 §8.8.1).
pub(super) fn strong_etag(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut tags = headers.get_all(ETAG).iter();
    let (tag, second) = (tags.next()?, tags.next());
    let text = tag.as_bytes();
    let quoted = text.len() >= 2 && text.starts_with(b"\"") && text.ends_with(b"\"");
    (quoted && second.is_none()).then(|| tag.clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized as _, Category};

    fn response(content_type: Option<&str>, body: &str) -> Response {
        Response {
            method: Method::GET,
            path: "/x".to_owned(),
            url: Url::parse("http://h.test/x").unwrap(),
            detour: None,
            status: StatusCode::OK,
            content_type: content_type.map(str::to_owned),
            location: None,
            etag: None,
            last_modified: None,
            links: Vec::new(),
            paging: Paging::default(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    #[rstest]
    #[case(200, &[], None, None)]
    #[case(200, &[("x-total-count", "120")], Some(120), None)]
    #[case(200, &[("x-total", "3"), ("x-next-page", "")], Some(3), None)]
    #[case(200, &[("x-next-page", " 2 ")], None, Some("2"))]
    #[case(200, &[("next-page", "http://h.test/x?_token=a")], None, Some("http://h.test/x?_token=a"))]
    #[case(200, &[("x-next-cursor", "a")], None, Some("a"))]
    #[case(200, &[("x-continuation-token", "a")], None, Some("a"))]
    #[case(200, &[("x-ms-continuationtoken", "a")], None, Some("a"))]
    #[case(200, &[("opc-next-page", "a")], None, Some("a"))]
    #[case(200, &[("x-has-more", "true")], None, Some("true"))]
    #[case(200, &[("x-has-more", "False")], None, None)]
    #[case(200, &[("next-page", " ")], None, None)]
    #[case(200, &[("next-cursor", "null")], None, None)]
    #[case(200, &[("x-previous-page", "1")], None, None)]
    #[case(206, &[("content-range", "items 0-49/120")], Some(120), None)]
    fn pages_in_headers(
        #[case] status: u16,
        #[case] fields: &[(&'static str, &'static str)],
        #[case] total: Option<u64>,
        #[case] next: Option<&str>,
    ) {
        let headers = fields
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let found = Paging::of(StatusCode::from_u16(status).unwrap(), &headers);
        assert_eq!(
            found,
            Paging { total, pages: None, next: next.map(str::to_owned), continues: next.is_some() }
        );
    }

    #[rstest]
    #[case("items 0-49/*")]
    #[case("")]
    fn a_part_of_unknown_length_continues(#[case] range: &'static str) {
        let headers = HeaderMap::from_iter([(http::header::CONTENT_RANGE, HeaderValue::from_static(range))]);
        let found = Paging::of(StatusCode::PARTIAL_CONTENT, &headers);
        assert_eq!(found, Paging { continues: true, ..Paging::default() });
    }

    #[rstest]
    #[case(Some("application/json"), "", Value::Null)]
    #[case(Some("application/json; charset=utf-8"), " 1 ", Value::Int(1))]
    #[case(Some("application/vnd.acme+json"), "true", Value::Bool(true))]
    #[case(Some("application/json"), " \n", Value::Null)]
    #[case(None, "[1]", Value::Array(vec![Value::Int(1)]))]
    #[case(Some("text/plain"), "[1]", Value::Array(vec![Value::Int(1)]))]
    #[case(Some("text/plain"), "hello", Value::from("hello"))]
    #[case(None, "hello", Value::Bytes(b"hello".to_vec()))]
    #[case(Some("image/png"), "{}", Value::Bytes(b"{}".to_vec()))]
    #[case(Some("text/json"), "[1]", Value::Array(vec![Value::Int(1)]))]
    #[case(Some("application/x-archive"), "{\u{1}", Value::Bytes(b"{\x01".to_vec()))]
    fn decodes(#[case] content_type: Option<&str>, #[case] body: &str, #[case] expected: Value) {
        assert_eq!(response(content_type, body).decode(None).unwrap(), expected);
    }

    #[rstest]
    #[case::declared_type_is_tried_first(
        Some("application/yaml"),
        "a: 1",
        PayloadType::Json,
        Ok(r#"{"a":1}"#)
    )]
    #[case::a_declared_structured_type_is_the_only_one(
        Some("application/json"),
        "upstream request timeout",
        PayloadType::Yaml,
        Err("expected a value: an object")
    )]
    #[case::json_is_not_corrected(
        Some("application/json"),
        "{\"a\": \"1\n2\", \"b\": NaN}",
        PayloadType::Yaml,
        Err("control character")
    )]
    #[case::structured_data_as_plain_text(Some("text/plain"), "a: 1", PayloadType::Yaml, Ok(r#"{"a":1}"#))]
    #[case::text_after_all(Some("text/plain"), "a", PayloadType::Json, Ok("\"a\""))]
    #[case::no_type(None, "a: 1", PayloadType::Yaml, Ok(r#"{"a":1}"#))]
    #[case::unknown_type(Some("application/x-shop"), "[1]", PayloadType::Json, Ok("[1]"))]
    #[case::unknown_type_and_unexpected_content(
        Some("application/x-shop"),
        "hello",
        PayloadType::Json,
        Ok("bytes")
    )]
    #[case::no_type_at_all(Some("json"), "[1]", PayloadType::Json, Ok("[1]"))]
    #[case::text_is_expected(None, "[1]", PayloadType::Text, Ok("\"[1]\""))]
    #[case::bytes_are_expected(Some("application/json"), "[1", PayloadType::OctetStream, Ok("bytes"))]
    #[case::white_space_is_not_text(Some("text/plain"), " ", PayloadType::Json, Ok("null"))]
    #[case::white_space_in_a_text(Some("text/plain"), " ", PayloadType::Text, Ok("\" \""))]
    #[case::byte_order_mark(Some("application/json"), "\u{feff}[1]", PayloadType::Json, Ok("[1]"))]
    #[case::all_fail(None, "{", PayloadType::Json, Err("EOF while parsing an object"))]
    #[case::wide_integer(
        Some("text/plain"),
        "[18446744073709551616]",
        PayloadType::Json,
        Err("an integer outside of the 64-bit range")
    )]
    #[case::wide_integer_of_an_unknown_type(
        Some("application/x-shop"),
        "[18446744073709551616]",
        PayloadType::Json,
        Err("an integer outside of the 64-bit range")
    )]
    #[case::infinite(
        Some("application/json"),
        "[1e999]",
        PayloadType::Text,
        Err("a number that is not finite")
    )]
    fn declared_and_expected_types(
        #[case] content_type: Option<&str>,
        #[case] body: &str,
        #[case] expected: PayloadType,
        #[case] outcome: Result<&str, &str>,
    ) {
        match (response(content_type, body).decode(Some(expected)), outcome) {
            (Ok(Value::Bytes(bytes)), Ok(shown)) => assert_eq!((&*bytes, shown), (body.as_bytes(), "bytes")),
            (Ok(value), Ok(shown)) => assert_eq!(value.to_json().unwrap().to_string(), shown),
            (Err(error), Err(reason)) => {
                assert_eq!(error.category(), Category::Validation);
                assert!(error.to_string().contains(reason), "{error}");
            }
            (decoded, _) => panic!("{decoded:?}"),
        }
    }

    #[test]
    fn a_number_outside_of_the_model_is_not_decoded_as_text() {
        let error = response(Some("text/plain"), "{\"n\": 18446744073709551616}").decode(None).unwrap_err();
        assert!(error.to_string().contains("outside of the 64-bit range"), "{error}");
    }

    #[rstest]
    #[case(&["\"v1\""], Some("\"v1\""))]
    #[case(&["\"\""], Some("\"\""))]
    #[case(&["W/\"v1\""], None)]
    #[case(&["v1"], None)]
    #[case(&["\""], None)]
    #[case(&["\"v1\"", "\"v2\""], None)]
    #[case(&[], None)]
    fn strong_entity_tags(#[case] tags: &[&'static str], #[case] expected: Option<&str>) {
        let headers = tags.iter().map(|tag| (ETAG, HeaderValue::from_static(tag)));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        assert_eq!(strong_etag(&map).as_ref().map(|tag| tag.to_str().unwrap()), expected);
    }

    #[rstest]
    #[case(None, "<p>Log in</p>", None)]
    #[case(Some(PayloadType::Json), "<p>Log in</p>", None)]
    #[case(Some(PayloadType::Json), "[1]", Some(Value::Array(vec![Value::Int(1)])))]
    #[case(None, "[1]", Some(Value::Array(vec![Value::Int(1)])))]
    #[case(Some(PayloadType::Yaml), "<html><body>Log in</body></html>", None)]
    #[case(Some(PayloadType::Properties), " <p>Log in</p>", None)]
    #[case(Some(PayloadType::Xml), "<!DOCTYPE html><html/>", None)]
    #[case(Some(PayloadType::Yaml), "- 1", Some(Value::Array(vec![Value::Int(1)])))]
    #[case(Some(PayloadType::Text), "<p>Ours</p>", Some(Value::from("<p>Ours</p>")))]
    fn an_html_page_is_decoded_only_if_text_is_expected(
        #[case] expected: Option<PayloadType>,
        #[case] body: &str,
        #[case] value: Option<Value>,
    ) {
        for content_type in ["text/html; charset=utf-8", "Text/HTML"] {
            assert_eq!(response(Some(content_type), body).decode(expected).ok(), value);
        }
    }

    #[test]
    fn the_error_identifies_an_html_page() {
        let error = response(Some("text/html"), "<p>Log in</p>").decode(None).unwrap_err().to_string();
        assert_eq!(
            error,
            "GET /x: cannot decode the answer (text/html): an HTML page; resources that are pages need \
             `format: text`"
        );
    }

    #[test]
    fn an_answer_that_does_not_match_its_content_type_is_an_error() {
        for body in ["{\"a\":", "upstream request timeout"] {
            let error = response(Some("application/json"), body).decode(None).unwrap_err().to_string();
            assert!(error.starts_with("GET /x: cannot decode the answer (application/json)"), "{error}");
        }
    }
}
