//! Versions of resources, so that a write does not undo what another client did since the resource was read.

use http::header::{HeaderValue, IF_MATCH};

use crate::server::{Request, Response};

/// The version of a resource that a read showed: its strong entity tag (RFC 9110 §8.8.3), and whose it is.
#[derive(Clone, Debug)]
pub struct Version {
    tag: HeaderValue,
    path: String,
    query: Vec<(String, String)>,
}

impl Version {
    /// The version that `response` to the read `request` states, if it states one.
    pub(crate) fn of(request: &Request, response: &Response) -> Option<Box<Self>> {
        let tag = response.etag.clone()?;
        Some(Box::new(Self { tag, path: request.path.clone(), query: request.query.clone() }))
    }

    /// Lets `request` succeed only while this is the current version (RFC 9110 §13.1.1); the tag it then
    /// carries. A tag says nothing about another address, and metadata that states the header means it.
    pub(crate) fn guard(&self, request: &mut Request) -> Option<HeaderValue> {
        let stated = request.headers.iter().any(|(name, _)| *name == IF_MATCH);
        if stated || request.path != self.path || request.query != self.query {
            return None;
        }
        request.headers.push((IF_MATCH, self.tag.clone()));
        Some(self.tag.clone())
    }

    /// Whether this is the version of `tag`.
    pub(crate) fn is(&self, tag: &HeaderValue) -> bool {
        self.tag == tag
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use rstest::rstest;

    use super::*;

    fn request(path: &str, query: &[(&str, &str)], stated: Option<&'static str>) -> Request {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let headers = stated.map(|tag| (IF_MATCH, HeaderValue::from_static(tag))).into_iter().collect();
        Request { query, headers, ..Request::new(Method::PUT, path) }
    }

    #[rstest]
    #[case::same("/a/b", &[], None, &["\"v1\""])]
    #[case::elsewhere("/a/c", &[], None, &[])]
    #[case::another_view("/a/b", &[("view", "full")], None, &[])]
    #[case::stated("/a/b", &[], Some("*"), &["*"])]
    fn guards(
        #[case] path: &str,
        #[case] query: &[(&str, &str)],
        #[case] stated: Option<&'static str>,
        #[case] expected: &[&str],
    ) {
        let version =
            Version { tag: HeaderValue::from_static("\"v1\""), path: "/a/b".to_owned(), query: Vec::new() };
        let mut request = request(path, query, stated);
        let guarded = version.guard(&mut request);
        let sent: Vec<&str> = request.headers.iter().map(|(_, value)| value.to_str().unwrap()).collect();
        assert_eq!(sent, expected);
        assert_eq!(guarded.is_some(), stated.is_none() && !expected.is_empty());
    }
}
