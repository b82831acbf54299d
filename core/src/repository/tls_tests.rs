use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The certificate of a server with these names, in DER.
fn server(names: &[&str], authority: &CertifiedIssuer<'static, KeyPair>) -> Vec<u8> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    CertificateParams::new(names).unwrap().signed_by(&key, authority).unwrap().der().to_vec()
}

#[test]
fn own_authorities_vouch_for_names() {
    let (ours, theirs) = (authority(), authority());
    let bundle = format!("# ours\n{}{}", authority().pem(), ours.pem());
    let tls = RemoteTls::trusting("bundle", bundle.as_bytes()).unwrap();
    let certificate = server(&["git.test", "192.0.2.1"], &ours);
    assert!(tls.check(&certificate, "git.test").is_ok());
    assert!(tls.check(&certificate, "192.0.2.1").is_ok());
    let refusal = |certificate: &[u8], host: &str| tls.check(certificate, host).err().unwrap();
    assert!(refusal(&certificate, "other.test").contains("git.test"));
    assert!(refusal(&server(&["git.test"], &theirs), "git.test").contains("BadSignature"));
    assert!(tls.check(b"noise", "git.test").is_err());
    assert!(tls.check(&certificate, "not a name").is_err());
}

#[test]
fn insecure_accepts_what_the_default_leaves_to_the_library() {
    let certificate = server(&["git.test"], &authority());
    let ok = RemoteTls::insecure().check(&certificate, "other.test");
    assert!(matches!(ok, Ok(CertificateCheckStatus::CertificateOk)));
    let passed = RemoteTls::default().check(&certificate, "git.test");
    assert!(matches!(passed, Ok(CertificateCheckStatus::CertificatePassthrough)));
    assert!(RemoteTls::insecure().is_set() && !RemoteTls::default().is_set());
}

#[rstest]
#[case::empty("", "tls.caCertFile FILE: it holds no PEM certificate")]
#[case::text("certificate", "tls.caCertFile FILE: it holds no PEM certificate")]
#[case::cut("-----BEGIN CERTIFICATE-----\nAAAA", "tls.caCertFile FILE: it is not PEM: ")]
#[case::other_content(
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "tls.caCertFile FILE: a certificate does not parse: "
)]
fn unusable_bundles(#[case] text: &str, #[case] expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, text).unwrap();
    let files = TlsFiles { ca_cert_file: Some(file.clone()), ..TlsFiles::default() };
    let error = RemoteTls::from_files(&files).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let text = error.to_string().replace(&file.display().to_string(), "FILE");
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn files_say_whom_to_trust() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    let files =
        TlsFiles { ca_cert_file: Some(file.clone()), insecure_skip_verify: true, ..TlsFiles::default() };
    assert!(RemoteTls::from_files(&files).unwrap_err().to_string().contains("No such file"));
    std::fs::write(&file, authority().pem()).unwrap();
    assert!(matches!(RemoteTls::from_files(&files).unwrap().trust, Trust::Anybody));
    let files = TlsFiles { insecure_skip_verify: false, ..files };
    assert!(matches!(RemoteTls::from_files(&files).unwrap().trust, Trust::Authorities(_)));
    assert!(!RemoteTls::from_files(&TlsFiles::default()).unwrap().is_set());
}

#[rstest]
#[case(Some("cert"), Some("key"), "tls.clientCertFile")]
#[case(None, Some("key"), "tls.clientKeyFile")]
fn client_certificates_are_refused(
    #[case] certificate: Option<&str>,
    #[case] key: Option<&str>,
    #[case] field: &str,
) {
    let files = TlsFiles {
        client_cert_file: certificate.map(PathBuf::from),
        client_key_file: key.map(PathBuf::from),
        ..TlsFiles::default()
    };
    let error = RemoteTls::from_files(&files).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().starts_with(&format!("{field}: client certificates")), "{error}");
}
