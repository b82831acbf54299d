//! `declarest contract validate` with bundles in a registry.

use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::environment::{Home, Run};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.pacto.bundle.layer.v1.tar+gzip";
const PASSWORD: &str = "canary-password";

/// The behaviour of a registry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Public,
    /// It requires a password.
    Private,
    /// It accepts the credentials, but the user has no right to read.
    Forbids,
    Fails,
    /// The content of the layer has another digest.
    Corrupt,
    /// The tag refers to an index of several images.
    Index,
}

struct Registry {
    host: String,
    _runtime: tokio::runtime::Runtime,
}

impl Registry {
    /// Serves one bundle with the tags `1.2.0` and `latest`.
    fn new(home: &Home, mood: Mood) -> Self {
        let document = "pactoVersion: '1.0'\nservice: {name: shop, version: 1.2.0}\n";
        home.write("bundle/pacto.yaml", document);
        let packed =
            Command::new("tar").args(["cz", "-C"]).arg(home.path("bundle")).arg(".").output().unwrap();
        let layer = Arc::new(packed.stdout);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let router = Router::new()
            .fallback(async move |uri: Uri, headers: HeaderMap| answer(mood, uri.path(), &headers, &layer));
        runtime.spawn(async { axum::serve(listener, router).await });
        Self { host, _runtime: runtime }
    }
}

fn login(password: &str) -> String {
    STANDARD.encode(format!("user:{password}"))
}

fn answer(mood: Mood, path: &str, headers: &HeaderMap, layer: &[u8]) -> Response {
    let expected = format!("Basic {}", login(PASSWORD));
    let given = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap());
    match mood {
        Mood::Fails => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Forbids => return StatusCode::FORBIDDEN.into_response(),
        Mood::Private if given != Some(&expected) => {
            let challenge = [(header::WWW_AUTHENTICATE, r#"Basic realm="registry""#)];
            return (StatusCode::UNAUTHORIZED, challenge).into_response();
        }
        _ => {}
    }
    let digest = format!("sha256:{}", hex(layer));
    match path.strip_prefix("/v2/team/shop/") {
        Some("tags/list") => {
            json!({"name": "team/shop", "tags": ["1.2.0", "latest"]}).to_string().into_response()
        }
        Some("manifests/1.2.0" | "manifests/latest") => {
            let (media_type, manifest) = if mood == Mood::Index {
                let index = "application/vnd.oci.image.index.v1+json";
                (index, json!({"schemaVersion": 2, "mediaType": index, "manifests": []}))
            } else {
                let layers = json!([{"mediaType": LAYER, "digest": digest, "size": layer.len()}]);
                let config =
                    json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest, "size": 2});
                (
                    MANIFEST,
                    json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}),
                )
            };
            ([(header::CONTENT_TYPE, media_type)], manifest.to_string()).into_response()
        }
        Some(blob) if blob == format!("blobs/{digest}") && mood == Mood::Corrupt => {
            let mut layer = layer.to_vec();
            layer[9] ^= 1;
            layer.into_response()
        }
        Some(blob) if blob == format!("blobs/{digest}") => layer.to_vec().into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn hex(bytes: &[u8]) -> String {
    declarest_core::digest::hex(&Sha256::digest(bytes))
}

fn validate(home: &Home, registry: &Registry, image: &str) -> Run {
    let run = home.run(&["contract", "validate", &format!("oci://{}/team/shop{image}", registry.host)]);
    assert!(!format!("{run}").contains("canary"), "{run}");
    run
}

#[rstest]
#[case::highest("")]
#[case::tag(":latest")]
#[case::constraint("?version=^1")]
fn a_bundle(#[case] image: &str) {
    let home = Home::new();
    let run = validate(&home, &Registry::new(&home, Mood::Public), image);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.starts_with("valid: shop 1.2.0 from oci://127.0.0.1:"), "{run}");
    assert!(run.stdout.contains("@sha256:"), "{run}");
}

#[rstest]
#[case::absent_tag(Mood::Public, ":absent", 3, "")]
#[case::absent_digest(
    Mood::Public,
    "@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    3,
    ""
)]
#[case::no_version(Mood::Public, "?version=^2", 3, "NoMatchingTag")]
#[case::password(Mood::Private, ":latest", 4, "")]
#[case::forbidden(Mood::Forbids, ":latest", 4, "")]
#[case::failure(Mood::Fails, ":latest", 6, "")]
#[case::digest(Mood::Corrupt, ":latest", 6, "has the digest")]
#[case::index(Mood::Index, ":latest", 2, "")]
fn bundles_that_cannot_be_loaded(
    #[case] mood: Mood,
    #[case] image: &str,
    #[case] code: i32,
    #[case] text: &str,
) {
    let home = Home::new();
    let run = validate(&home, &Registry::new(&home, mood), image);
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(text), "{run}");
}

#[rstest]
#[case::right(PASSWORD, 0)]
#[case::wrong("canary-wrong", 4)]
fn the_login_of_docker(#[case] password: &str, #[case] code: i32) {
    let home = Home::new();
    let registry = Registry::new(&home, Mood::Private);
    let config = json!({"auths": {&registry.host: {"auth": login(password)}}});
    home.write(".docker/config.json", &config.to_string());
    let run = validate(&home, &registry, ":latest");
    assert_eq!(run.code, code, "{run}");
    assert!(!format!("{run}").contains(&login(password)), "{run}");
}

#[rstest]
#[case::directory("bundle")]
#[case::archive("bundle.tar.gz")]
fn local_bundles(#[case] name: &str) {
    let home = Home::new();
    home.write(
        "bundle/pacto.yaml",
        "pactoVersion: '1.0'\nservice: {name: shop, version: 1.2.0}\n\
         interfaces: [{name: e, type: event, contract: e.yaml}]\n",
    );
    let pack = || {
        let archive = home.path("bundle.tar.gz");
        let packed =
            Command::new("tar").arg("czf").arg(archive).arg("-C").arg(home.path("bundle")).arg(".").status();
        assert!(packed.unwrap().success());
    };
    pack();
    let run = home.run(&["contract", "validate", name]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.contains("error FILE_NOT_FOUND interfaces[0].contract"), "{run}");
    home.write("bundle/e.yaml", "asyncapi: 3.0.0\n");
    pack();
    let run = home.run(&["contract", "validate", name]);
    assert_eq!(run.code, 0, "{run}");
}
