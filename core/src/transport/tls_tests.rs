//! Tests of TLS settings.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns a client certificate and its key, in PEM.
fn client() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["client".to_owned()]).unwrap().signed_by(&key, &authority());
    (certificate.unwrap().pem(), key.serialize_pem())
}

#[rstest]
#[case::empty("", "tls.caCertFile FILE: it does not contain a PEM certificate")]
#[case::text("certificate", "tls.caCertFile FILE: it does not contain a PEM certificate")]
#[case::cut("-----BEGIN CERTIFICATE-----\nAAAA", "tls.caCertFile FILE: it is not PEM: ")]
#[case::other_content(
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "tls.caCertFile FILE: a certificate cannot be parsed: "
)]
fn unusable_bundles(#[case] text: &str, #[case] expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, text).unwrap();
    let files = TlsFiles { ca_cert_file: Some(file.clone()), ..TlsFiles::default() };
    let error = TlsConfig::from_files(&files).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let text = error.to_string().replace(&file.display().to_string(), "FILE");
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn trusted_authorities_are_read_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    let files =
        TlsFiles { ca_cert_file: Some(file.clone()), insecure_skip_verify: true, ..TlsFiles::default() };
    assert!(TlsConfig::from_files(&files).unwrap_err().to_string().contains("No such file"));
    std::fs::write(&file, format!("# two\n{}{}", authority().pem(), authority().pem())).unwrap();
    let tls = TlsConfig::from_files(&files).unwrap();
    assert!(tls.trusts_all() && tls.is_set());
    let tls = TlsConfig::from_files(&TlsFiles { insecure_skip_verify: false, ..files }).unwrap();
    let Trust::Authorities { certificates, .. } = &tls.trust else { panic!("{tls:?}") };
    assert_eq!(certificates.len(), 2);
    assert!(tls.is_set() && !tls.trusts_all());
    let tls = TlsConfig::from_files(&TlsFiles::default()).unwrap();
    assert!(!tls.is_set());
}

#[rstest]
#[case(false)]
#[case(true)]
fn client_certificates_are_read_from_files(#[case] insecure: bool) {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
    let pems = client();
    std::fs::write(&certificate, &pems.0).unwrap();
    std::fs::write(&key, &pems.1).unwrap();
    let files = TlsFiles {
        client_cert_file: Some(certificate),
        client_key_file: Some(key),
        insecure_skip_verify: insecure,
        ..TlsFiles::default()
    };
    let tls = TlsConfig::from_files(&files).unwrap();
    assert!(tls.presents() && tls.is_set());
    assert_eq!(tls.trusts_all(), insecure);
    assert!(!format!("{tls:?}").contains("PRIVATE"), "{tls:?}");
}

#[rstest]
#[case(Some("cert"), None, "tls.clientCertFile: it needs tls.clientKeyFile; set both or neither")]
#[case(None, Some("key"), "tls.clientKeyFile: it needs tls.clientCertFile; set both or neither")]
#[case(
    Some("/none/c"),
    Some("/none/k"),
    "tls.clientCertFile /none/c: No such file or directory (os error 2)"
)]
fn client_certificates_in_unreadable_files(
    #[case] certificate: Option<&str>,
    #[case] key: Option<&str>,
    #[case] expected: &str,
) {
    let files = TlsFiles {
        client_cert_file: certificate.map(PathBuf::from),
        client_key_file: key.map(PathBuf::from),
        ..TlsFiles::default()
    };
    let error = TlsConfig::from_files(&files).unwrap_err();
    assert_eq!((error.category(), error.to_string().as_str()), (Category::Validation, expected));
}

#[test]
fn unusable_client_certificates() {
    let (certificate, key) = client();
    let (_, other) = client();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let noise = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let cases = [
        ("", key.as_str(), "cert: it does not contain a PEM certificate"),
        (broken, &key, "cert: the certificate cannot be used: "),
        (&certificate, "", "key: it does not contain an unencrypted PEM private key"),
        (&certificate, locked, "key: it does not contain an unencrypted PEM private key"),
        (&certificate, noise, "key: the private key cannot be used: "),
        (&certificate, &other, "key: it is not the key of the certificate"),
    ];
    for (certificate, key, expected) in cases {
        let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
        let refused = TlsConfig::default()
            .presenting(Pem { origin: "cert", text: certificate }, Pem { origin: "key", text: key });
        let error = refused.unwrap_err();
        assert_eq!(error.category(), Category::Validation);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
