//! What `declarest secret` does in either version of the engine and by every login.

use rstest::rstest;
use serde_json::json;

use crate::vault::Vault;
use crate::{USERPASS, app_role, home, printed, run};

const SECRETS: [(&str, &str); 4] = [
    ("/apps/a:/pw", "first"),
    ("/apps/a/keys/k:/pw", "k v\n\"ü\""),
    ("/apps/a:ci token", "ci"),
    ("plain", "no resource"),
];

#[rstest]
#[case::version_1(1, "one")]
#[case::version_2(2, "two")]
#[tokio::test]
async fn secrets_are_set_shown_listed_and_deleted(#[case] version: u8, #[case] mount: &str) {
    let vault = Vault::start().await;
    let token = vault.token(json!({"policies": ["declarest"]})).await;
    let logins = [
        ("token", format!("{{token: {token}}}")),
        ("userpass", USERPASS.into()),
        ("approle", app_role(&vault).await),
    ];
    for (login, auth) in logins {
        let home = home(&format!(
            "address: '{}', mount: {mount}, pathPrefix: /by/{login}/, kvVersion: {version}, auth: {auth}",
            vault.url()
        ));
        assert_eq!(printed(&home, &["init"]), "");
        assert_eq!(printed(&home, &["list"]), "[]\n");
        for (key, value) in SECRETS {
            assert_eq!(printed(&home, &["set", key, "old"]), "");
            assert_eq!(printed(&home, &["set", key, value]), "");
            assert_eq!(printed(&home, &["get", key]), format!("{value}\n"));
        }
        let listed = |args: &[&str]| printed(&home, &[&["list", "-o", "text"], args].concat());
        assert_eq!(listed(&[]), "/apps/a/keys/k:/pw\n/apps/a:/pw\n/apps/a:ci token\nplain\n");
        assert_eq!(listed(&["/apps/a"]), "/pw\nci token\n");
        assert_eq!(listed(&["/apps", "-r"]), "/a/keys/k:/pw\n/a:/pw\n/a:ci token\n");
        assert_eq!(listed(&["/"]), "/apps/a/keys/k:/pw\n/apps/a:/pw\n/apps/a:ci token\n");
        assert_eq!(run(&home, &["list", "/nothing"]).code, 3);

        for _ in 0..2 {
            assert_eq!(printed(&home, &["delete", "/apps/a:/pw"]), "");
        }
        let gone = run(&home, &["get", "/apps/a:/pw"]);
        assert_eq!((gone.code, gone.stdout.as_str()), (3, ""), "{gone}");
        assert!(gone.stderr.starts_with("secret apps/a:/pw does not exist in Vault at "), "{gone}");
        // Version 2 keeps its metadata, so that it can be undeleted.
        assert_eq!(listed(&[]).contains("/apps/a:/pw"), version == 2);
    }
}
