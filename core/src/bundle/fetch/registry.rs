//! Pulls bundles from OCI registries, with the part of the distribution specification that they need.
//!
//! It is our own client, because it must control the proxy, redirects, the size of each response, and the errors per
//! status; see `docs/decisions.md`.

use std::path::Path;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::Url;
use url::form_urlencoded::Serializer;

use super::super::BundleError;
use super::super::reference::{OciReference, OciVersion, is_sha256};
use super::challenge::Challenge;
use super::credentials::Credentials;
use super::{Deadline, Limits, ask, check, failed, read, save};
use crate::digest::sha256;
use crate::proxy::is_loopback;
use crate::secret::{Secret, basic_pair};
use crate::transport::shown;

/// The maximum size of a manifest, in bytes; registries have the same limit.
const MANIFEST_LIMIT: usize = 4 << 20;
const TOKEN_LIMIT: usize = 1 << 20;

const MANIFEST_TYPES: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];

/// Which layer of an image is the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bundle) enum LayerRule {
    /// The first layer with one of these media types.
    First(&'static [&'static str]),
    /// The only layer of the first media type; without one, the only layer, if it has one of the others.
    Only(&'static str, &'static [&'static str]),
}

/// The layer that is a metadata bundle.
pub(in crate::bundle) const BUNDLE_LAYER: LayerRule = LayerRule::First(&[
    "application/vnd.declarest.bundle.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/gzip",
    "application/x-gzip",
    "application/x-tar+gzip",
]);

/// A client for one repository of a registry.
pub(in crate::bundle) struct Registry<'c> {
    client: &'c Client,
    pub(super) reference: &'c OciReference,
    credentials: Credentials,
    /// The `Authorization` of all requests after a challenge.
    authorization: Option<HeaderValue>,
    pub(super) base: Url,
    pub(super) deadline: Deadline,
    limits: &'c Limits,
    rule: LayerRule,
}

/// A bundle in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bundle) struct Artifact {
    /// The digest of its manifest.
    pub digest: String,
    layer: Descriptor,
}

impl Artifact {
    /// The digest of its layer.
    pub fn layer(&self) -> &str {
        &self.layer.digest
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u8,
    media_type: Option<String>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'c> Registry<'c> {
    /// Creates a client without sending a request; its time limit starts now.
    pub fn new(
        client: &'c Client,
        reference: &'c OciReference,
        credentials: Credentials,
        limits: &'c Limits,
        rule: LayerRule,
    ) -> Result<Self, BundleError> {
        let host = &reference.registry;
        let url = Url::parse(&format!("https://{host}/v2/{}/", reference.repository));
        let mut base =
            url.map_err(|error| refused(reference, format!("it does not form a valid URL: {error}")))?;
        if is_loopback(&base) {
            // Like other clients, use HTTP for registries on this machine, which have no certificate.
            let plain = Url::parse(&format!("http://{host}/v2/{}/", reference.repository));
            base = plain
                .map_err(|error| refused(reference, format!("it does not form a valid URL: {error}")))?;
        }
        let deadline = Deadline::after(limits.registry);
        Ok(Self { client, reference, credentials, authorization: None, base, deadline, limits, rule })
    }

    /// Requests the artifact that the reference currently refers to.
    pub async fn resolve(&mut self) -> Result<Artifact, BundleError> {
        let version = match &self.reference.version {
            OciVersion::Tag(version) | OciVersion::Digest(version) => version,
        };
        // Fetch the manifest.
        let url = self.url(&format!("manifests/{version}"))?;
        let deadline = self.deadline;
        let answer = deadline.keep(&url, self.get(&url, Some(&MANIFEST_TYPES.join(", ")))).await?;
        let headers = answer.headers().clone();
        let body = read(answer, &url, MANIFEST_LIMIT, deadline).await?;
        // Verify its digest with the requested and the announced one.
        let digest = sha256(Sha256::new_with_prefix(&body));
        let announced = headers.get("docker-content-digest").and_then(|value| value.to_str().ok());
        let wanted = match &self.reference.version {
            OciVersion::Digest(wanted) => Some(wanted.as_str()),
            OciVersion::Tag(_) => None,
        };
        for expected in [wanted, announced].into_iter().flatten().filter(|digest| is_sha256(digest)) {
            verify(&url, expected, &digest)?;
        }
        Ok(Artifact { digest, layer: self.layer_of(&body, &headers)? })
    }

    /// Downloads the layer of an artifact to memory.
    pub async fn read_layer(&mut self, artifact: &Artifact) -> Result<Bytes, BundleError> {
        let layer = &artifact.layer;
        let url = self.url(&format!("blobs/{}", layer.digest))?;
        let (deadline, limit) = (self.deadline, usize::try_from(layer.size).unwrap_or(usize::MAX));
        let answer = deadline.keep(&url, self.get(&url, None)).await?;
        let body = read(answer, &url, limit, deadline).await?;
        verify(&url, &layer.digest, &sha256(Sha256::new_with_prefix(&body)))?;
        Ok(body)
    }

    /// Downloads the layer of an artifact to the new file `to`.
    pub async fn download(&mut self, artifact: &Artifact, to: &Path) -> Result<(), BundleError> {
        let layer = &artifact.layer;
        let url = self.url(&format!("blobs/{}", layer.digest))?;
        let deadline = self.deadline;
        let answer = deadline.keep(&url, self.get(&url, None)).await?;
        let actual = save(answer, &url, to, layer.size.min(self.limits.archive), deadline).await?;
        verify(&url, &layer.digest, &actual)
    }

    pub(super) fn url(&self, rest: &str) -> Result<Url, BundleError> {
        self.base
            .join(rest)
            .map_err(|error| refused(self.reference, format!("it does not form a valid URL: {error}")))
    }

    /// Returns the layer that is the bundle.
    fn layer_of(&self, manifest: &[u8], headers: &HeaderMap) -> Result<Descriptor, BundleError> {
        let refuse = |reason: String| refused(self.reference, reason);
        let manifest: Manifest = serde_json::from_slice(manifest)
            .map_err(|error| refuse(format!("its manifest is not an image manifest: {error}")))?;
        let content_type = headers.get("content-type").and_then(|value| value.to_str().ok());
        let content_type = content_type.map(|text| text.split(';').next().unwrap_or(text).trim().to_owned());
        // The media type in the manifest is optional. It takes precedence over the header.
        let media_type = manifest.media_type.or(content_type).unwrap_or_default();
        if manifest.schema_version != 2 || !MANIFEST_TYPES.contains(&media_type.as_str()) {
            return Err(refuse(format!(
                "its manifest is of type \"{media_type}\"; only image manifests are supported, not indexes"
            )));
        }
        let layer = self.rule.choose(&manifest.layers).map_err(refuse)?.clone();
        if !is_sha256(&layer.digest) {
            return Err(refuse(format!("the digest \"{}\" of its layer is not SHA-256", layer.digest)));
        }
        if layer.size > self.limits.archive {
            let limit = self.limits.archive;
            return Err(refuse(format!("its layer has {} bytes, more than {limit}", layer.size)));
        }
        Ok(layer)
    }

    /// Sends a request. If the registry responds with a challenge, authenticates and sends it once more.
    pub(super) async fn get(&mut self, url: &Url, accept: Option<&str>) -> Result<Response, BundleError> {
        let first = ask(self.request(url, accept), self.client, url, self.limits).await?;
        let asked =
            first.status() == StatusCode::UNAUTHORIZED && first.headers().contains_key(WWW_AUTHENTICATE);
        if !asked {
            return check(first, url);
        }
        let Some(challenge) = Challenge::of(first.headers()) else { return check(first, url) };
        self.authorization = match self.answer(challenge).await? {
            Some(authorization) => Some(authorization),
            None => return check(first, url),
        };
        check(ask(self.request(url, accept), self.client, url, self.limits).await?, url)
    }

    fn request(&self, url: &Url, accept: Option<&str>) -> RequestBuilder {
        let mut request = self.client.get(url.clone());
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        request
    }

    /// Returns the `Authorization` for a challenge; `None` if it requires a password and there is none.
    async fn answer(&self, challenge: Challenge) -> Result<Option<HeaderValue>, BundleError> {
        match challenge {
            Challenge::Basic => match &self.credentials {
                Credentials::Password(user, password) => basic(&self.base, user, password).map(Some),
                Credentials::Anonymous | Credentials::RefreshToken(_) => Ok(None),
            },
            Challenge::Bearer { realm, service, scope } => {
                let token = self.token(&realm, service.as_deref(), scope.as_deref()).await?;
                sensitive(&self.base, &format!("Bearer {}", token.expose())).map(Some)
            }
        }
    }

    /// Fetches a token from the service that the registry names.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: Option<&str>,
    ) -> Result<Secret, BundleError> {
        let mut url = Url::parse(realm)
            .ok()
            .filter(|url| url.scheme() == "https" || (url.scheme() == "http" && self.base.scheme() == "http"))
            .ok_or_else(|| {
                refused(self.reference, "the token URL of its registry is not https".to_owned())
            })?;
        let own_scope = format!("repository:{}:pull", self.reference.repository);
        let mut parameters = vec![("scope", scope.unwrap_or(&own_scope))];
        parameters.extend(service.map(|service| ("service", service)));
        let request = match &self.credentials {
            Credentials::RefreshToken(token) => {
                let own = [
                    ("grant_type", "refresh_token"),
                    ("client_id", "declarest"),
                    ("refresh_token", token.expose()),
                ];
                let form =
                    Serializer::new(String::new()).extend_pairs(&parameters).extend_pairs(own).finish();
                let form_type = "application/x-www-form-urlencoded";
                self.client.post(url.clone()).header("content-type", form_type).body(form)
            }
            Credentials::Password(user, password) => {
                url.query_pairs_mut().extend_pairs(&parameters);
                self.client.get(url.clone()).header(AUTHORIZATION, basic(&url, user, password)?)
            }
            Credentials::Anonymous => {
                url.query_pairs_mut().extend_pairs(&parameters);
                self.client.get(url.clone())
            }
        };
        // A request with a refresh token is a write, which never leaves the origin of the token service.
        let answer = check(ask(request, self.client, &url, self.limits).await?, &url)?;
        let body = read(answer, &url, TOKEN_LIMIT, self.deadline).await?;
        // Do not use the parser's own message: it may quote the token.
        let answer: Token =
            serde_json::from_slice(&body).map_err(|_| failed(&url, "the response is not a token"))?;
        let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
        token.map(Secret::from).ok_or_else(|| failed(&url, "the response has no token"))
    }
}

impl LayerRule {
    /// Returns the layer, or the reason why there is none.
    fn choose(self, layers: &[Descriptor]) -> Result<&Descriptor, String> {
        let of = |wanted: &'static str| layers.iter().filter(move |layer| layer.media_type == wanted);
        let (found, wanted) = match self {
            Self::First(types) => {
                let is_one = |layer: &&Descriptor| types.contains(&layer.media_type.as_str());
                (layers.iter().find(is_one), types.first().copied().unwrap_or_default())
            }
            Self::Only(own, others) => {
                let alone = match (of(own).count(), layers) {
                    (1, _) => of(own).next(),
                    (0, [layer]) if others.contains(&layer.media_type.as_str()) => Some(layer),
                    (0, _) => None,
                    (count, _) => return Err(format!("it has {count} layers of type {own}, expected one")),
                };
                (alone, own)
            }
        };
        found.ok_or_else(|| {
            let types: Vec<_> = layers.iter().map(|layer| layer.media_type.as_str()).take(20).collect();
            let types = types.join(", ");
            format!("none of its layers is a bundle: they are [{types}]; push the archive as {wanted}")
        })
    }
}

fn verify(url: &Url, expected: &str, actual: &str) -> Result<(), BundleError> {
    if expected == actual {
        return Ok(());
    }
    let (expected, actual) = (expected.to_owned(), actual.to_owned());
    Err(BundleError::Digest { url: shown(url), expected, actual })
}

fn basic(url: &Url, user: &str, password: &Secret) -> Result<HeaderValue, BundleError> {
    sensitive(url, &format!("Basic {}", basic_pair(user, password).expose()))
}

fn sensitive(url: &Url, text: &str) -> Result<HeaderValue, BundleError> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| failed(url, "the token cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

pub(super) fn refused(reference: &OciReference, reason: String) -> BundleError {
    BundleError::Registry { reference: format!("oci://{reference}"), reason }
}
