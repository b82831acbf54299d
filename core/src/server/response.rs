//! Answers of a managed server and their decoding.

use bytes::Bytes;
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
    /// The body, decompressed.
    pub body: Bytes,
}

impl Response {
    /// Decodes the body. Empty is null. The type comes from the Content-Type; where that is absent,
    /// unknown or plain text around something structured, the shape of the body decides.
    pub fn decode(&self) -> Result<Value, ServerError> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let candidates = self.candidates();
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

    fn candidates(&self) -> Vec<PayloadType> {
        let fallback = match self.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => PayloadType::Json,
            _ => PayloadType::OctetStream,
        };
        let declared = self.content_type.as_deref().and_then(Descriptor::from_media_type);
        match declared.map(|descriptor| descriptor.payload_type) {
            Some(declared) if declared.class() == Class::Text && fallback.class() == Class::Structured => {
                vec![fallback, declared]
            }
            Some(declared) => vec![declared, fallback],
            None if self.content_type.is_some() => vec![PayloadType::OctetStream],
            None => vec![fallback],
        }
    }
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
        assert_eq!(response(content_type, body).decode().unwrap(), expected);
    }

    #[test]
    fn an_answer_that_is_not_what_it_claims_is_an_error() {
        let error = response(Some("application/json"), "{\"a\":").decode().unwrap_err().to_string();
        assert!(error.starts_with("GET /x: cannot decode the answer (application/json)"), "{error}");
    }
}
