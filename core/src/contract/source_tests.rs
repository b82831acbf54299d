use std::io::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use rstest::rstest;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::digest::hex;
use crate::error::{Categorized as _, Category};

const DOCUMENT: &str = "{pactoVersion: '1.0', service: {name: tides, version: 0.3.0}, \
    interfaces: [{name: api, type: http, port: 80, contract: api.yaml}]}";
const OWN: &str = LAYER.own;
const TAR: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

fn archive(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if kind.is_symlink() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn bundle() -> Vec<u8> {
    let file = tar::EntryType::Regular;
    archive(&[("./pacto.yaml", file, DOCUMENT.as_bytes()), ("api.yaml", file, b"openapi: 3.0.0")])
}

/// What a registry holds. Every tag has the same manifest.
#[derive(Clone)]
struct Held {
    tags: Vec<&'static str>,
    layers: serde_json::Value,
    blob: Vec<u8>,
    login: Option<&'static str>,
    broken: bool,
}

impl Held {
    fn new(blob: Vec<u8>) -> Self {
        let layers = json!([{"mediaType": OWN, "digest": digest(&blob), "size": blob.len()}]);
        let tags = vec!["1.9.0", "1.10.0", "2.0.0-rc1", "latest"];
        Self { tags, layers, blob, login: None, broken: false }
    }

    fn answer(&self, path: &str, login: Option<&str>) -> Response {
        let of =
            |status: u16, body: Vec<u8>| Response::builder().status(status).body(Body::from(body)).unwrap();
        if self.broken {
            return of(500, Vec::new());
        }
        if self.login.is_some() && self.login != login {
            let challenge = Response::builder().status(401).header("www-authenticate", "Basic realm=\"r\"");
            return challenge.body(Body::empty()).unwrap();
        }
        match path.strip_prefix("/v2/team/tides/") {
            Some("tags/list") => of(200, json!({"tags": self.tags}).to_string().into_bytes()),
            Some(rest) if rest.starts_with("manifests/") => {
                let media_type = "application/vnd.oci.image.manifest.v1+json";
                let config = json!({"mediaType": "application/x-any", "digest": "x", "size": 1});
                let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config,
                                      "layers": self.layers});
                of(200, manifest.to_string().into_bytes())
            }
            Some(rest) if rest.starts_with("blobs/") => of(200, self.blob.clone()),
            _ => of(404, Vec::new()),
        }
    }
}

struct Registry {
    host: String,
    held: Arc<Mutex<Held>>,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn registry(held: Held) -> Registry {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let (held, asked) = (Arc::new(Mutex::new(held)), Arc::new(Mutex::new(Vec::new())));
    let (shared, seen) = (Arc::clone(&held), Arc::clone(&asked));
    let router = Router::new().fallback(async move |request: Request| {
        let path = request.uri().path().to_owned();
        let login = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        seen.lock().unwrap().push(path.clone());
        shared.lock().unwrap().answer(&path, login.as_deref())
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Registry { host, held, asked }
}

impl Registry {
    async fn load(&self, version: &str, known: Option<&Loaded>) -> Result<Loaded, ContractError> {
        self.load_with(version, known, &Loading::default()).await
    }

    async fn load_with(
        &self,
        version: &str,
        known: Option<&Loaded>,
        loading: &Loading,
    ) -> Result<Loaded, ContractError> {
        let source = OciSource::parse(&format!("oci://{}/team/tides{version}", self.host))?;
        ContractSource::Oci(source).load(loading, known).await
    }
}

#[rstest]
#[case("", "1.10.0")]
#[case("?version=^1.2, <1.10", "1.9.0")]
#[case("?version=%5E2", "2.0.0-rc1")]
#[case("?version=>=2.0.0-rc1", "2.0.0-rc1")]
#[case(":latest", "latest")]
#[case(":1.9.0", "1.9.0")]
#[tokio::test]
async fn tags_are_chosen(#[case] version: &str, #[case] tag: &str) {
    let registry = registry(Held::new(bundle())).await;
    let loaded = registry.load(version, None).await.unwrap();
    assert_eq!(loaded.image_ref, Some(format!("{}/team/tides:{tag}", registry.host)));
    assert!(loaded.source.starts_with(&format!("oci://{}/team/tides:{tag}@sha256:", registry.host)));
    let document = loaded.document();
    assert_eq!((document.errors, document.name.as_deref()), (vec![], Some("tides")));
    assert_eq!(document.hash, digest(DOCUMENT.as_bytes()));
}

#[tokio::test]
async fn no_tag_that_fits_is_not_found() {
    let registry = registry(Held::new(bundle())).await;
    let error = registry.load("?version=^3", None).await.unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    assert!(error.to_string().starts_with("NoMatchingTag: "), "{error}");
}

#[tokio::test]
async fn a_known_layer_is_not_downloaded_again() {
    let registry = registry(Held::new(bundle())).await;
    let first = registry.load(":latest", None).await.unwrap();
    let again = registry.load(":latest", Some(&first)).await.unwrap();
    assert_eq!(again, first);
    let downloads = registry.asked.lock().unwrap().iter().filter(|path| path.contains("/blobs/")).count();
    assert_eq!(downloads, 1);
}

#[tokio::test]
async fn digests_are_verified() {
    let registry = registry(Held::new(bundle())).await;
    let loaded = registry.load(":latest", None).await.unwrap();
    let (_, pinned) = loaded.source.split_once('@').unwrap();
    assert!(registry.load(&format!("@{pinned}"), None).await.is_ok());
    let other = format!("@sha256:{}", "a".repeat(64));
    let error = registry.load(&other, None).await.unwrap_err();
    assert!(error.to_string().contains("has the digest"), "{error}");
    registry.held.lock().unwrap().blob.pop();
    assert!(registry.load(":latest", None).await.is_err());
}

#[rstest]
#[case::alone(json!([TAR]), true)]
#[case::beside(json!([TAR, OWN]), true)]
#[case::two(json!([TAR, TAR]), false)]
#[case::own_twice(json!([OWN, OWN]), false)]
#[case::other(json!(["application/json"]), false)]
#[tokio::test]
async fn the_layer_is_chosen_by_its_type(#[case] types: serde_json::Value, #[case] found: bool) {
    let mut held = Held::new(bundle());
    let layer =
        |media_type| json!({"mediaType": media_type, "digest": digest(&held.blob), "size": held.blob.len()});
    held.layers = types.as_array().unwrap().iter().map(layer).collect();
    assert_eq!(registry(held).await.load("", None).await.is_ok(), found);
}

#[tokio::test]
async fn a_pull_secret_is_used_for_its_host_only() {
    let mut held = Held::new(bundle());
    held.login = Some("Basic b3BzOmE6Yg==");
    let registry = registry(held).await;
    let login = |host: &str| {
        let config = json!({"auths": {host: {"auth": "b3BzOmE6Yg=="}}}).to_string();
        let login = RegistryLogin::Content("Secret team/pull".to_owned(), config.into());
        Loading { login, ..Loading::default() }
    };
    assert!(registry.load_with("", None, &login(&registry.host)).await.is_ok());
    for loading in [login("other.test"), Loading::default()] {
        let error = registry.load_with("", None, &loading).await.unwrap_err();
        assert_eq!(error.category(), Category::Auth);
    }
    registry.held.lock().unwrap().broken = true;
    let error = registry.load("", None).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
}

#[rstest]
#[case::climbs(&[("../x", tar::EntryType::Regular, &b"x"[..])], "outside of the archive")]
#[case::link(&[("pacto.yaml", tar::EntryType::Symlink, &b""[..])], "symbolic link")]
#[case::absolute(&[("/x", tar::EntryType::Regular, &b"x"[..])], "outside of the archive")]
#[case::device(&[("x", tar::EntryType::Block, &b""[..])], "device")]
#[case::no_document(&[("x", tar::EntryType::Regular, &b"x"[..])], "no pacto.yaml")]
#[tokio::test]
async fn hostile_bundles_are_refused(
    #[case] entries: &[(&str, tar::EntryType, &[u8])],
    #[case] expected: &str,
) {
    let error = registry(Held::new(archive(entries))).await.load("", None).await.unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(error.category(), Category::Validation);
}

#[tokio::test]
async fn many_entries_and_large_files_are_refused() {
    let names: Vec<String> = (0..2001).map(|index| format!("f{index}")).collect();
    let entries: Vec<_> =
        names.iter().map(|name| (name.as_str(), tar::EntryType::Regular, &b""[..])).collect();
    let error = registry(Held::new(archive(&entries))).await.load("", None).await.unwrap_err();
    assert!(error.to_string().contains("more than 2000 entries"), "{error}");
    let large = vec![0; (10 << 20) + 1];
    let entries = [("big", tar::EntryType::Regular, large.as_slice())];
    let error = registry(Held::new(archive(&entries))).await.load("", None).await.unwrap_err();
    assert!(error.to_string().contains("larger than 10 MiB"), "{error}");
}

#[rstest]
#[case("r.io/a:1?version=^1")]
#[case("r.io/a@sha256:12")]
#[case("r.io/a?tag=x")]
#[case("r.io/a?version=abc")]
#[case("noslash")]
#[case("https://r.io/a:1")]
fn invalid_references(#[case] text: &str) {
    assert!(matches!(OciSource::parse(text), Err(ContractError::Reference(_))), "{text}");
}

#[rstest]
#[case("docker.io/nginx", "registry-1.docker.io/library/nginx")]
#[case("oci://index.docker.io/team/a", "registry-1.docker.io/team/a")]
#[case("r.io:5000/a/b", "r.io:5000/a/b")]
fn docker_hub_has_one_host(#[case] text: &str, #[case] image: &str) {
    assert_eq!(OciSource::parse(text).unwrap().image(None), image);
}

/// Serves `body` at `/contract`, and redirects `/1` to `/0` and so on; `/0` leads to `/contract`.
async fn web(body: Vec<u8>) -> Url {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let router = Router::new().fallback(async move |request: Request| {
        let path = request.uri().path();
        let target = match path.trim_start_matches('/').parse::<u32>() {
            Ok(0) => "/contract".to_owned(),
            Ok(number) => format!("/{}", number - 1),
            Err(_) => return Response::new(Body::from(body.clone())),
        };
        Response::builder().status(302).header("location", target).body(Body::empty()).unwrap()
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}

#[tokio::test]
async fn a_url_is_a_document_or_a_bundle() {
    let plain = web(DOCUMENT.as_bytes().to_vec()).await.join("contract?token=canary").unwrap();
    let loaded = ContractSource::Url(plain).load(&Loading::default(), None).await.unwrap();
    assert!(loaded.source.ends_with("/contract"), "{}", loaded.source);
    assert_eq!((loaded.files.is_none(), loaded.document().errors.len()), (true, 0));
    let packed = web(bundle()).await.join("contract").unwrap();
    let loaded = ContractSource::Url(packed).load(&Loading::default(), None).await.unwrap();
    assert_eq!(loaded.files.unwrap().into_iter().collect::<Vec<_>>(), ["api.yaml", "pacto.yaml"]);
}

#[tokio::test]
async fn five_redirects_are_followed() {
    let base = web(DOCUMENT.as_bytes().to_vec()).await;
    let load = async |path: &str| {
        ContractSource::Url(base.join(path).unwrap()).load(&Loading::default(), None).await
    };
    assert!(load("4").await.is_ok());
    let error = load("5").await.unwrap_err().to_string();
    assert!(error.contains("more than 5 redirects"), "{error}");
}

#[test]
fn local_files_directories_and_archives() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(FILE), DOCUMENT).unwrap();
    let document = read_local(directory.path()).unwrap().document();
    assert_eq!(document.errors[0].code, "FILE_NOT_FOUND");
    assert_eq!(read_local(&directory.path().join(FILE)).unwrap().document().errors, []);
    let packed = directory.path().join("bundle.tar.gz");
    std::fs::File::create(&packed).unwrap().write_all(&bundle()).unwrap();
    assert_eq!(read_local(&packed).unwrap().document().errors, []);
    let error = read_local(&directory.path().join("missing")).unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
}
