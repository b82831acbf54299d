//! Lists the tags of a repository (OCI distribution specification, "Listing Tags").

use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;
use url::Url;

use super::super::BundleError;
use super::registry::{Registry, refused};
use super::{failed, read};
use crate::transport::{NextLink, next_link};

/// The maximum number of tags of a repository.
const MAX_TAGS: usize = 10_000;
/// The maximum size of one page, in bytes.
const PAGE_LIMIT: usize = 4 << 20;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl Registry<'_> {
    /// Requests all tags of the repository. More than 10 000 are an error.
    pub async fn tags(&mut self) -> Result<Vec<String>, BundleError> {
        let mut next = Some(self.url("tags/list?n=1000")?);
        let mut tags = Vec::new();
        let mut pages = 0;
        while let Some(url) = next {
            pages += 1;
            let deadline = self.deadline;
            let answer = deadline.keep(&url, self.get(&url, Some("application/json"))).await?;
            next = following(&url, answer.headers()).map_err(|reason| failed(&url, reason))?;
            let body = read(answer, &url, PAGE_LIMIT, deadline).await?;
            let page: Page = serde_json::from_slice(&body)
                .map_err(|_| failed(&url, "the response is not a list of tags"))?;
            tags.extend(page.tags.unwrap_or_default());
            if tags.len() > MAX_TAGS || pages > MAX_TAGS {
                return Err(refused(self.reference, format!("it has more than {MAX_TAGS} tags")));
            }
        }
        Ok(tags)
    }
}

/// Returns the next page (RFC 8288). It must be of the same origin, because the request has the credentials.
fn following(page: &Url, headers: &HeaderMap) -> Result<Option<Url>, &'static str> {
    let target = match next_link(headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok())) {
        NextLink::At(target) => target,
        NextLink::Absent => return Ok(None),
        NextLink::Unreadable => return Err("the Link header has no target"),
    };
    let next = page.join(&target).map_err(|_| "the Link header has no usable target")?;
    if next.origin() == page.origin() {
        Ok(Some(next))
    } else {
        Err("the Link header leads to another origin")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, Ok(None))]
    #[case(Some("</v2/a/tags/list?last=x>; rel=\"next\""), Ok(Some("https://r.test/v2/a/tags/list?last=x")))]
    #[case(Some("</x>; rel=prev"), Ok(None))]
    #[case(Some("<https://evil.test/x>; rel=\"next\""), Err("the Link header leads to another origin"))]
    #[case(Some("x; rel=next"), Err("the Link header has no target"))]
    fn pages(#[case] link: Option<&str>, #[case] expected: Result<Option<&str>, &str>) {
        let mut headers = HeaderMap::new();
        if let Some(link) = link {
            headers.insert(LINK, link.parse().unwrap());
        }
        let page = "https://r.test/v2/a/tags/list?n=1000".parse().unwrap();
        let found = following(&page, &headers);
        let found = found.as_ref().map(|url| url.as_ref().map(Url::as_str)).map_err(|reason| *reason);
        assert_eq!(found, expected);
    }
}
