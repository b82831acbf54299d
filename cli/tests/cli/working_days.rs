//! Whole days of work, as the commands that a user types and their output.

use crate::day::{Day, FILE_STORE};
use crate::git::git;

#[test]
fn from_a_live_server_to_the_apply_of_a_reviewed_change() {
    let mut day = Day::new();
    day.context("alice");
    day.types(&[
        "declarest context add --content-type yaml <alice.yaml",
        "declarest context check",
        "declarest import /",
        "declarest repository push",
        "declarest repository history --oneline --reverse | cut -d ' ' -f 2-",
        "declarest resource save /shops/rio --force -f /tier=gold",
        "declarest resource diff /shops --exit-code",
        "declarest resource explain /shops/rio --output text",
        "declarest plan / --out reviewed.plan",
        "declarest resource apply --plan reviewed.plan",
        "declarest repository status",
        "declarest resource diff / --recursive --exit-code",
    ]);
    insta::assert_snapshot!(day.transcript, @r#"
    $ declarest context add --content-type yaml <alice.yaml

    $ declarest context check
    Config check for context "alice"
    --------------------------------------------------------------------------------
    [OK] context        settings are valid
    [WARN] repository     git repository does not exist yet; it is created on first use
    [OK] metadata       metadata is in the repository
    [OK] managedServer  managed server responds
    [WARN] secretStore    secret file does not exist yet; it is created on first use
    --------------------------------------------------------------------------------
    Result: PASS (ok=3 warn=2 fail=0 skip=0)
    $ declarest import /
    /shops  2 saved
    Import: 2 resources saved, 0 existing, 0 collections not imported.
    $ declarest repository push

    $ declarest repository history --oneline --reverse | cut -d ' ' -f 2-
    declarest: import resources /
    $ declarest resource save /shops/rio --force -f /tier=gold
    [OK] command executed successfully.
    $ declarest resource diff /shops --exit-code
    /shops/rio [CHANGED]
    --- repository
    +++ managed-server
    @@ -1,3 +1,3 @@
     {
    -  "tier": "gold"
    +  "tier": "free"
     }

    Summary: 1 changed, 1 unchanged
    exit 7
    $ declarest resource explain /shops/rio --output text
    replace /shops/rio/tier
    $ declarest plan / --out reviewed.plan
    ~ /shops/rio
        /tier: "free" -> "gold"
    Plan: 0 to create, 1 to update, 0 to delete, 1 unchanged.
    $ declarest resource apply --plan reviewed.plan
    ~ /shops/rio updated
    Applied: 0 created, 1 updated, 0 deleted, 1 unchanged, 0 failed.
    [OK] command executed successfully.
    $ declarest repository status
    type=git state=up_to_date ahead=0 behind=0 hasUncommitted=false
    $ declarest resource diff / --recursive --exit-code
    No differences under /.
    "#);
    assert_eq!(day.server.get("/shops/rio").unwrap()["tier"], "gold");
}

#[test]
fn from_the_guard_against_plain_text_to_a_store() {
    let mut day = Day::new();
    day.context("alice");
    day.types(&[
        "declarest context add --content-type yaml <alice.yaml",
        "declarest secret init",
        "declarest resource save /shops/lima -f '{\"id\": \"lima\", \"password\": \"canary\"}'",
        "declarest resource save /shops/lima -f '{\"id\": \"lima\", \"password\": \"canary\"}' --secret-attributes",
        "cat alice/shops/lima/resource.json",
        "declarest secret list --recursive /",
        "declarest resource apply /shops/lima",
        "declarest resource get /shops/lima",
        "declarest secret list --missing",
    ]);
    insta::assert_snapshot!(day.transcript, @r#"
    $ declarest context add --content-type yaml <alice.yaml

    $ declarest secret init

    $ declarest resource save /shops/lima -f '{"id": "lima", "password": "canary"}'
    [ERROR] command execution failed: potential plaintext secrets detected in /shops/lima: /password; --secret-attributes keeps them in the secret store, --allow-plaintext saves them in plain text.
    exit 2
    $ declarest resource save /shops/lima -f '{"id": "lima", "password": "canary"}' --secret-attributes
    [OK] command executed successfully.
    $ cat alice/shops/lima/resource.json
    {
      "id": "lima",
      "password": "{{secret .}}"
    }
    $ declarest secret list --recursive /
    [
      "/shops/lima:/password"
    ]
    $ declarest resource apply /shops/lima
    + /shops/lima created
    [OK] command executed successfully.
    $ declarest resource get /shops/lima
    {
      "id": "lima",
      "password": "{{secret .}}"
    }
    $ declarest secret list --missing
    []
    "#);
    assert_eq!(day.server.get("/shops/lima").unwrap()["password"], "canary");
    let committed = git(&day.home.path("alice"), &["log", "--patch"]);
    assert!(!committed.contains("canary"), "{committed}");
}

#[test]
fn a_member_of_the_team_clones_and_starts() {
    let mut day = Day::new();
    day.context("alice");
    day.context("bob");
    let script = "declarest context add --content-type yaml <alice.yaml && declarest import /";
    assert!(day.home.shell(script).output().unwrap().status.success());
    git(&day.home.path(""), &["clone", "--quiet", "origin.git", "bob"]);
    day.types(&[
        "declarest context add --content-type yaml --set-current <bob.yaml",
        "declarest context current --output text",
        "declarest repository tree",
        "declarest resource list /shops --source repository --output text",
        "declarest resource save /shops/lima -f '{\"id\": \"lima\"}'",
        "declarest resource apply /shops",
        "declarest --context alice repository refresh",
        "declarest --context alice resource diff / --recursive",
    ]);
    insta::assert_snapshot!(day.transcript, @r#"
    $ declarest context add --content-type yaml --set-current <bob.yaml

    $ declarest context current --output text
    bob
    $ declarest repository tree
    shops
    ├── oslo
    └── rio
    $ declarest resource list /shops --source repository --output text
    oslo (oslo)
    rio  (rio)
    $ declarest resource save /shops/lima -f '{"id": "lima"}'
    [OK] command executed successfully.
    $ declarest resource apply /shops
    + /shops/lima created
    Applied: 1 created, 0 updated, 0 deleted, 2 unchanged, 0 failed.
    [OK] command executed successfully.
    $ declarest --context alice repository refresh

    $ declarest --context alice resource diff / --recursive
    No differences under /.
    "#);
}

const BUNDLE: &str = "apiVersion: declarest.io/v1alpha1
kind: MetadataBundle
name: shop-bundle
version: 1.2.0
description: Shops and their tills.
declarest: {metadataRoot: metadata}
";

#[test]
fn from_a_metadata_bundle_to_resources_under_their_aliases() {
    let mut day = Day::new();
    day.home.write("shop-bundle/bundle.yaml", BUNDLE);
    let rules = "resource:\n    id: /id\n    alias: /title\n    secretAttributes: [/pin]\n";
    day.home.write("shop-bundle/metadata/shops/_/metadata.yaml", rules);
    let shop = serde_json::json!({"id": "s1", "title": "lima", "pin": "canary"});
    day.server.put_by_hand("/shops/s1", shop);
    for name in ["oslo", "rio"] {
        let shop = serde_json::json!({"id": name, "title": name, "tier": "free"});
        day.server.put_by_hand(&format!("/shops/{name}"), shop);
    }
    let bundle = "metadata: {bundleFile: <home>/shop-bundle-1.2.0.tar.gz}\n";
    day.context_with("alice", &format!("{bundle}{FILE_STORE}"));
    day.types(&[
        "declarest context add --content-type yaml <alice.yaml",
        "declarest context init",
        "tar -czf shop-bundle-1.2.0.tar.gz -C shop-bundle .",
        "declarest context init",
        "declarest context check",
        "declarest resource metadata resolve /shops/lima",
        "declarest secret init",
        "declarest import /shops",
        "cat alice/shops/lima/resource.json",
        "declarest repository tree",
        "echo 'resource: {alias: /id}' | declarest resource metadata set /shops/ --content-type yaml --commit",
        "declarest resource list /shops -o text",
    ]);
    insta::assert_snapshot!(day.transcript, @r#"
    $ declarest context add --content-type yaml <alice.yaml

    $ declarest context init
    bundle <home>/shop-bundle-1.2.0.tar.gz does not exist
    exit 3
    $ tar -czf shop-bundle-1.2.0.tar.gz -C shop-bundle .

    $ declarest context init

    $ declarest context check
    Config check for context "alice"
    --------------------------------------------------------------------------------
    [OK] context        settings are valid
    [OK] repository     git repository is up to date with its remote
    [OK] metadata       metadata bundle shop-bundle 1.2.0 is available
    [OK] managedServer  managed server responds
    [WARN] secretStore    secret file does not exist yet; it is created on first use
    --------------------------------------------------------------------------------
    Result: PASS (ok=4 warn=1 fail=0 skip=0)
    $ declarest resource metadata resolve /shops/lima
    {
      "resource": {
        "alias": "/title",
        "id": "/id",
        "secretAttributes": [
          "/pin"
        ]
      }
    }
    $ declarest secret init

    $ declarest import /shops
    /shops  3 saved
    Import: 3 resources saved, 0 existing, 0 collections not imported.
    $ cat alice/shops/lima/resource.json
    {
      "id": "s1",
      "pin": "{{secret .}}",
      "title": "lima"
    }
    $ declarest repository tree
    shops
    ├── lima
    ├── oslo
    └── rio
    $ echo 'resource: {alias: /id}' | declarest resource metadata set /shops/ --content-type yaml --commit

    $ declarest resource list /shops -o text
    oslo (oslo)
    rio  (rio)
    s1   (s1)
    "#);
    let committed = git(&day.home.path("alice"), &["log", "--patch"]);
    assert!(!committed.contains("canary"), "{committed}");
}
