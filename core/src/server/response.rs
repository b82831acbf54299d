//! Answers of a managed server and their decoding.

use bytes::Bytes;
use http::header::{ETAG, HeaderMap, HeaderValue, LINK};
use http::{Method, StatusCode};

use super::ServerError;
use crate::payload::{self, Class, Descriptor, PayloadType, Value};

/// A successful answer, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request's method.
    pub method: Method,
    /// The request's unencoded path.
    pub path: String,
    /// The status, below 400.
    pub status: StatusCode,
    /// The `Content-Type`, if any.
    pub content_type: Option<String>,
    /// The `Location`, if any.
    pub location: Option<String>,
    /// The strong entity tag (RFC 9110 §8.8.3), if there is one.
    pub etag: Option<HeaderValue>,
    /// Whether a `Link` header names a next page (RFC 8288).
    pub has_next_page: bool,
    /// The body, decompressed.
    pub body: Bytes,
}

impl Response {
    /// Decodes the body. Empty is null. The type comes from the Content-Type; where that is absent, unknown
    /// or plain text around something structured, `expected` decides, or without it the shape of the body.
    pub fn decode(&self, expected: Option<PayloadType>) -> Result<Value, ServerError> {
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
            match payload::decode(candidate, &self.body) {
                Ok(value) => return Ok(value),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(ServerError::Decode {
            method: self.method.clone(),
            path: self.path.clone(),
            content_type: self.content_type.clone().unwrap_or_else(|| "no content type".to_owned()),
            reason: first_error.map(|error| error.to_string()).unwrap_or_default(),
        })
    }

    fn candidates(&self, expected: Option<PayloadType>) -> Vec<PayloadType> {
        let by_shape = || match self.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => PayloadType::Json,
            _ => PayloadType::OctetStream,
        };
        let fallback = expected.unwrap_or_else(by_shape);
        let declared = self.content_type.as_deref().and_then(Descriptor::from_media_type);
        match declared.map(|descriptor| descriptor.payload_type) {
            Some(declared) if declared.class() == Class::Text && fallback.class() == Class::Structured => {
                vec![fallback, declared]
            }
            Some(declared) => vec![declared, fallback],
            None if self.content_type.is_some() => {
                expected.into_iter().chain([PayloadType::OctetStream]).collect()
            }
            None => vec![fallback],
        }
    }
}

/// The entity tag, if it is a strong one: only those tell versions apart (RFC 9110 §8.8.1).
pub(super) fn strong_etag(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut tags = headers.get_all(ETAG).iter();
    let (tag, second) = (tags.next()?, tags.next());
    let text = tag.as_bytes();
    let quoted = text.len() >= 2 && text.starts_with(b"\"") && text.ends_with(b"\"");
    (quoted && second.is_none()).then(|| tag.clone())
}

/// Whether one of the links has the relation `next` (RFC 8288 §3.3: case-insensitive, quoted or not,
/// possibly one of several).
pub(super) fn names_next_page(headers: &HeaderMap) -> bool {
    let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    links.flat_map(|value| value.split([',', ';'])).any(|parameter| {
        let Some((name, relations)) = parameter.split_once('=') else { return false };
        name.trim().eq_ignore_ascii_case("rel")
            && relations
                .trim()
                .trim_matches('"')
                .split_whitespace()
                .any(|rel| rel.eq_ignore_ascii_case("next"))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn response(content_type: Option<&str>, body: &str) -> Response {
        Response {
            method: Method::GET,
            path: "/x".to_owned(),
            status: StatusCode::OK,
            content_type: content_type.map(str::to_owned),
            location: None,
            etag: None,
            has_next_page: false,
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
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
    fn decodes(#[case] content_type: Option<&str>, #[case] body: &str, #[case] expected: Value) {
        assert_eq!(response(content_type, body).decode(None).unwrap(), expected);
    }

    #[rstest]
    #[case("</orders?page=2>; rel=\"next\"", true)]
    #[case("</orders?page=0>; rel=prev, </orders?page=2>; rel=Next", true)]
    #[case("</x>; rel=\"last next\"", true)]
    #[case("</next>; rel=\"self\"", false)]
    fn next_pages_in_links(#[case] link: &str, #[case] expected: bool) {
        assert_eq!(names_next_page(&HeaderMap::from_iter([(LINK, link.parse().unwrap())])), expected);
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

    #[test]
    fn an_answer_that_is_not_what_it_claims_is_an_error() {
        let error = response(Some("application/json"), "{\"a\":").decode(None).unwrap_err().to_string();
        assert!(error.starts_with("GET /x: cannot decode the answer (application/json)"), "{error}");
    }
}
