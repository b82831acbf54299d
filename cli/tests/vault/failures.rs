//! What the command line says when something is wrong with a Vault: what, and what to do about it.

use declarest_core::transport::{Pem, TlsConfig};
use reqwest::Method;
use rstest::rstest;
use serde_json::json;

use crate::vault::Vault;
use crate::{USERPASS, app_role, home, printed, run, version_2};

#[tokio::test]
async fn a_sealed_vault_is_unavailable_until_it_is_unsealed() {
    let vault = Vault::start().await;
    let home = home(&version_2(&vault));
    printed(&home, &["set", "/apps/a:/pw", "v"]);
    vault.seal().await;
    for args in [&["init"][..], &["get", "/apps/a:/pw"], &["list"], &["set", "k", "v"], &["delete", "k"]] {
        let sealed = run(&home, args);
        assert_eq!((sealed.code, sealed.stdout.as_str()), (6, ""), "{sealed}");
        let end = format!("Vault at {} is sealed; unseal it\n", vault.url());
        assert!(sealed.stderr.ends_with(&end), "{sealed}");
    }
    vault.unseal().await;
    assert_eq!(printed(&home, &["get", "/apps/a:/pw"]), "v\n");
}

#[rstest]
#[case::get(&["get", "a:k"], "cannot read secret a:k", "read on two/data/a:k")]
#[case::set(&["set", "a:k", "canary"], "cannot write secret a:k", "create and update on two/data/a:k")]
#[case::delete(&["delete", "a:k"], "cannot delete secret a:k", "delete on two/data/a:k")]
#[case::list(&["list"], "cannot list secrets", "list on two/metadata/")]
#[tokio::test]
async fn what_is_denied_names_the_policy_that_is_missing(
    #[case] args: &[&str],
    #[case] beginning: &str,
    #[case] grant: &str,
) {
    let vault = Vault::start().await;
    let policy = r#"path "two/nothing" { capabilities = ["read"] }"#;
    vault.admin(Method::PUT, "sys/policies/acl/declarest", json!({"policy": policy})).await;
    let denied = run(&home(&version_2(&vault)), args);
    assert_eq!((denied.code, denied.stdout.as_str()), (4, ""), "{denied}");
    assert!(denied.stderr.starts_with(&format!("{beginning}: Vault denies it (")), "{denied}");
    assert!(denied.stderr.ends_with(&format!("a policy of the login must grant {grant}\n")), "{denied}");
    assert!(!denied.stderr.contains("canary"), "{denied}");
}

#[tokio::test]
async fn wrong_settings_are_reported() {
    let vault = Vault::start().await;
    let wrong_role = app_role(&vault).await.replace("secretID: ", "secretID: canary-");
    let url = vault.url();
    for (settings, code, message) in [
        (
            format!("mount: two, auth: {{token: hvs.canary}}, address: '{url}'"),
            4,
            "refuses the token login: ",
        ),
        (format!("mount: two, auth: {wrong_role}, address: '{url}'"), 4, "refuses the AppRole login: "),
        (
            format!(
                "mount: two, auth: {{password: {{credentialsRef: {{name: ops}}, mount: nowhere}}}}, address: '{url}'"
            ),
            4,
            "refuses the userpass login: ",
        ),
        (
            format!("mount: one, auth: {USERPASS}, address: '{url}'"),
            2,
            "vault kvVersion: \"one\" is a version 1 engine; set 1\n",
        ),
        (
            format!("mount: two, kvVersion: 1, auth: {USERPASS}, address: '{url}'"),
            2,
            "vault kvVersion: \"two\" is a version 2 engine; set 2\n",
        ),
        (
            format!("mount: missing, auth: {USERPASS}, address: '{url}'"),
            4,
            "cannot find the secrets engine: ",
        ),
    ] {
        let run = run(&home(&settings), &["init"]);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{settings} {run}");
        assert!(run.stderr.contains(message) && !run.stderr.contains("canary"), "{settings} {run}");
    }
}

#[tokio::test]
async fn certificates_are_checked() {
    let vault = Vault::start_with_tls().await;
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    // Both are valid authorities, so a refusal below depends on the signed certificate.
    for pem in [&other, &vault.certificate] {
        TlsConfig::trusting(Pem { origin: "a certificate of the test", text: pem.as_bytes() }).unwrap();
    }
    let settings = |tls: &str| format!("{}, tls: {{{tls}}}", version_2(&vault));
    let with = |settings: &str| {
        let home = home(settings);
        home.write("vault.crt", &vault.certificate);
        home.write("other.crt", &other);
        home.write("none.crt", "no certificate\n");
        home
    };
    let trusting = with(&settings("caCertFile: <home>/vault.crt"));
    printed(&trusting, &["init"]);
    printed(&trusting, &["set", "a:k", "v"]);

    let careless = with(&settings("insecureSkipVerify: true"));
    let get = careless.run(&["secret", "get", "a:k"]);
    assert_eq!((get.code, get.stdout.as_str()), (0, "v\n"), "{get}");
    assert!(get.stderr.contains("[WARNING] secretStore.vault.tls.insecureSkipVerify accepts any"), "{get}");

    let cannot = format!(
        "cannot log in: Vault at {} cannot be reached: its certificate is not trusted: ",
        vault.url()
    );
    let plain = version_2(&vault).replace("https://", "http://");
    for (settings, code, beginning, message) in [
        (version_2(&vault), 6, cannot.as_str(), "; add its CA to tls\n"),
        (settings("caCertFile: <home>/other.crt"), 6, &cannot, "; add its CA to tls\n"),
        (
            settings("caCertFile: <home>/none.crt"),
            2,
            "",
            "tls.caCertFile <home>/none.crt: it does not contain a PEM certificate",
        ),
        (settings("caCertFile: <home>/missing.crt"), 2, "", "tls.caCertFile <home>/missing.crt: "),
        (plain, 2, "", "Vault answers auth/userpass/login/ops with status 400"),
    ] {
        let run = run(&with(&settings), &["get", "a:k"]);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{settings} {run}");
        assert!(run.stderr.starts_with(beginning) && run.stderr.contains(message), "{settings} {run}");
    }
}
