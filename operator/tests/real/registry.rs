//! Contracts and metadata bundles in a real OCI registry: the program that `hack/registry/build.sh` builds.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use declarest_core::contract::status::{ContractStatus, Phase};
use declarest_core::digest::hex;
use declarest_operator::crd::{ManagedServer, ManagedServerStatus};
use ring::digest::{SHA256, digest};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::world::{World, condition, declarest};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.pacto.bundle.layer.v1.tar+gzip";
const BUNDLE_LAYER: &str = "application/vnd.declarest.bundle.v1.tar+gzip";
const BUNDLE: &str = "
apiVersion: declarest.io/v1alpha1
kind: MetadataBundle
name: shop
version: 1.0.0
description: The API of shops.
declarest: {metadataRoot: metadata}
";
const PASSWORD: &str = "canary-password";

/// A registry as a child process.
struct Registry {
    process: Child,
    address: String,
    /// The value of the header `Authorization`.
    login: String,
    client: reqwest::Client,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    /// Starts a registry. `auth` is empty, `basic` or `bearer`.
    fn start(auth: &str) -> Self {
        let program = env::var("REGISTRY_BIN").unwrap_or_default();
        let mut command = Command::new(&program);
        command.env("REGISTRY_AUTH", auth).env("REGISTRY_PASSWORD", PASSWORD).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| {
            panic!("REGISTRY_BIN={program:?}: {error}; run these tests with `make test-real`")
        });
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let login = match auth {
            "bearer" => format!("Bearer token-of-{PASSWORD}"),
            _ => format!("Basic {}", STANDARD.encode(format!("user:{PASSWORD}"))),
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { process, address: address.trim().to_owned(), login, client: reqwest::Client::new() }
    }

    async fn send(&self, request: reqwest::RequestBuilder) {
        let answer = request.header("authorization", &self.login).send().await.unwrap();
        assert!(answer.status().is_success(), "{} {}", answer.status(), answer.url());
    }

    async fn upload(&self, content: Vec<u8>) -> Value {
        let (digest, size) = (sha256(&content), content.len());
        let url = format!("http://{}/v2/team/shop/blobs/uploads/?digest={digest}", self.address);
        self.send(self.client.post(url).body(content)).await;
        json!({"digest": digest, "size": size})
    }

    /// Pushes a contract with this version, and returns the digest of its manifest.
    async fn push(&self, tag: &str, version: &str) -> String {
        let document = format!("pactoVersion: '1.0'\nservice: {{name: shop, version: {version}}}\n");
        self.push_files(tag, LAYER, &[("pacto.yaml", &document)]).await
    }

    /// Pushes an archive of these files with this type, and returns the digest of its manifest.
    async fn push_files(&self, tag: &str, layer_type: &str, files: &[(&str, &str)]) -> String {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, content.as_bytes()).unwrap();
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&archive.into_inner().unwrap()).unwrap();
        let mut layer = self.upload(gzip.finish().unwrap()).await;
        layer["mediaType"] = json!(layer_type);
        let mut config = self.upload(b"{}".to_vec()).await;
        config["mediaType"] = json!("application/vnd.oci.empty.v1+json");
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]})
                .to_string();
        let digest = sha256(manifest.as_bytes());
        let url = format!("http://{}/v2/team/shop/manifests/{tag}", self.address);
        self.send(self.client.put(url).header("content-type", MANIFEST).body(manifest)).await;
        digest
    }

    /// Returns a Docker configuration with this password for the registry.
    fn docker_config(&self, password: &str) -> String {
        let auth = STANDARD.encode(format!("user:{password}"));
        json!({"auths": {&self.address: {"auth": auth}}}).to_string()
    }

    fn image(&self, rest: &str) -> String {
        format!("{}/team/shop{rest}", self.address)
    }
}

fn sha256(content: &[u8]) -> String {
    format!("sha256:{}", hex(digest(&SHA256, content).as_ref()))
}

async fn create(world: &World, name: &str, contract: Value) {
    let spec = json!({"http": {"baseURL": "http://127.0.0.1:1"}, "contract": contract});
    world.create(declarest("ManagedServer", name, &spec)).await;
}

async fn verified(
    world: &World,
    name: &str,
    wanted: impl Fn(&ContractStatus) -> bool,
) -> ManagedServerStatus {
    let api = world.api::<ManagedServer>();
    world
        .eventually(&format!("{name} is verified"), || async {
            let status = api.get(name).await.ok()?.status?;
            status.contract.as_deref().is_some_and(&wanted).then_some(status)
        })
        .await
}

#[tokio::test]
async fn tags_versions_and_digests() {
    let (world, registry) = (World::start().await, Registry::start(""));
    let mut first = String::new();
    for version in ["1.9.0", "1.10.0", "2.0.0-rc1"] {
        let digest = registry.push(version, version).await;
        if version == "1.9.0" {
            first = digest;
        }
    }
    registry.push("latest", "3.0.0").await;
    let cases = [
        ("highest", registry.image(""), "1.10.0"),
        ("constraint", registry.image("?version=^1.2, <1.10"), "1.9.0"),
        ("pre-release", registry.image("?version=>=2.0.0-rc1"), "2.0.0-rc1"),
        ("tag", registry.image(":latest"), "3.0.0"),
        ("digest", registry.image(&format!("@{first}")), "1.9.0"),
        ("scheme", format!("oci://{}", registry.image(&format!(":latest@{first}"))), "1.9.0"),
    ];
    for (name, image, _) in &cases {
        create(&world, name, json!({"oci": image})).await;
    }
    for (name, _, version) in &cases {
        let status = verified(&world, name, |contract| contract.phase.is_some()).await;
        let contract = status.contract.unwrap();
        assert_eq!(contract.version.as_deref(), Some(*version), "{name}: {contract:#?}");
        let source = contract.source.unwrap();
        assert!(source.starts_with(&format!("oci://{}", registry.image(""))), "{source}");
        assert!(source.contains("@sha256:"), "{source}");
    }
    // A new tag is used at the next round.
    registry.push("1.11.0", "1.11.0").await;
    world.patch::<ManagedServer>("highest", json!({"spec": {"pollInterval": "2m"}})).await;
    let status = verified(&world, "highest", |contract| contract.version.as_deref() == Some("1.11.0")).await;
    let history: Vec<String> =
        status.contract.unwrap().history.into_iter().map(|entry| entry.version).collect();
    assert_eq!(history, ["1.11.0", "1.10.0"]);
}

#[tokio::test]
async fn a_tag_or_a_digest_that_does_not_exist() {
    let (world, registry) = (World::start().await, Registry::start(""));
    registry.push("1.0.0", "1.0.0").await;
    create(&world, "tag", json!({"oci": registry.image(":absent")})).await;
    create(&world, "version", json!({"oci": registry.image("?version=^2")})).await;
    create(&world, "digest", json!({"oci": registry.image(&format!("@sha256:{}", "0".repeat(64)))})).await;
    for name in ["tag", "version", "digest"] {
        let status = verified(&world, name, |contract| contract.phase == Some(Phase::Invalid)).await;
        assert_eq!(condition(&status.conditions, "ContractVerified").reason, "ContractUnavailable");
    }
}

#[rstest]
#[case::basic("basic")]
#[case::bearer("bearer")]
#[tokio::test]
async fn credentials_come_from_the_pull_secret(#[case] auth: &str) {
    let (world, registry) = (World::start().await, Registry::start(auth));
    registry.push("1.0.0", "1.0.0").await;
    let login = |password: &str| registry.docker_config(password);
    world.create_secret("right", &[(".dockerconfigjson", &login(PASSWORD))]).await;
    world.create_secret("wrong", &[(".dockerconfigjson", &login("canary-wrong"))]).await;
    let image = registry.image(":1.0.0");
    create(&world, "right", json!({"oci": &image, "pullSecretRef": {"name": "right"}})).await;
    create(&world, "wrong", json!({"oci": &image, "pullSecretRef": {"name": "wrong"}})).await;
    create(&world, "anonymous", json!({"oci": &image})).await;
    let right = verified(&world, "right", |contract| contract.phase == Some(Phase::Reference)).await;
    let mut texts = vec![format!("{right:?}")];
    for name in ["wrong", "anonymous"] {
        let status = verified(&world, name, |contract| contract.phase == Some(Phase::Invalid)).await;
        assert_eq!(condition(&status.conditions, "ContractVerified").reason, "ContractUnavailable");
        texts.push(format!("{status:?}"));
    }
    // A change of the Secret is noticed before the next interval.
    world.replace_secret("wrong", &[(".dockerconfigjson", &login(PASSWORD))]).await;
    let corrected = verified(&world, "wrong", |contract| contract.phase == Some(Phase::Reference)).await;
    texts.push(format!("{corrected:?}"));
    texts.push(world.log());
    let texts = texts.join("\n");
    let encoded = STANDARD.encode(format!("user:{PASSWORD}"));
    for secret in ["canary", &encoded] {
        assert!(!texts.contains(secret), "a credential was reported");
    }
}

#[tokio::test]
async fn a_bundle_is_pulled_with_the_pull_secret() {
    let (world, registry) = (World::start().await, Registry::start("basic"));
    let metadata = ("metadata/shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    registry.push_files("1.0.0", BUNDLE_LAYER, &[("bundle.yaml", BUNDLE), metadata]).await;
    world.create_secret("pull", &[(".dockerconfigjson", &registry.docker_config("canary-wrong"))]).await;
    let bundle = format!("oci://{}", registry.image(":1.0.0"));
    let spec = |metadata: Value| json!({"http": {"baseURL": "http://127.0.0.1:1"}, "metadata": metadata});
    let private = spec(json!({"bundle": &bundle, "pullSecretRef": {"name": "pull"}}));
    world.create(declarest("ManagedServer", "private", &private)).await;
    world.create(declarest("ManagedServer", "anonymous", &spec(json!({"bundle": &bundle})))).await;
    let mut texts = Vec::new();
    for name in ["private", "anonymous"] {
        let status = ready_with(&world, name, "ArtifactUnavailable").await;
        texts.push(format!("{status:?}"));
    }
    world.replace_secret("pull", &[(".dockerconfigjson", &registry.docker_config(PASSWORD))]).await;
    let status = ready_with(&world, "private", "Ready").await;
    assert!(status.artifact_digests.as_ref().unwrap().metadata.is_some(), "{status:?}");
    texts.extend([format!("{status:?}"), world.log()]);
    let texts = texts.join("\n");
    let encoded = STANDARD.encode(format!("user:{PASSWORD}"));
    assert!(!texts.contains("canary") && !texts.contains(&encoded), "a credential was reported");
}

/// Waits until the condition `Ready` of a server has this reason.
async fn ready_with(world: &World, name: &str, reason: &str) -> ManagedServerStatus {
    let api = world.api::<ManagedServer>();
    world
        .eventually(&format!("{name} has the reason {reason}"), || async {
            let status = api.get(name).await.ok()?.status?;
            (condition(&status.conditions, "Ready").reason == reason).then_some(status)
        })
        .await
}
