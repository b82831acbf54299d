//! `resource diff` and `resource explain`.

use rstest::rstest;

use crate::world::World;

/// `rio` differs, `lima` is equal, `oslo` is not on the server, and `rio` has a till that is equal.
fn shops() -> World {
    let world = World::new(
        &["/shops", "/shops/*/tills"],
        &[
            ("shops/rio/resource.yaml", "id: rio\nname: Rio\ntier: gold\ntags: [a]\n"),
            ("shops/lima/resource.json", r#"{"id": "lima", "size": 1.0}"#),
            ("shops/oslo/resource.json", r#"{"id": "oslo"}"#),
            ("shops/rio/tills/t1/resource.json", r#"{"id": "t1"}"#),
        ],
    );
    world.live(
        "/shops/rio",
        r#"{"id": "rio", "name": "Rio", "tier": "free", "tags": ["a", "b"], "open": true}"#,
    );
    world.live("/shops/lima", r#"{"id": "lima", "size": 1}"#);
    world.live("/shops/rio/tills/t1", r#"{"id": "t1"}"#);
    world
}

#[test]
fn text() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["resource", "diff", "/shops"]), @r#"
    exit 0
    --- stdout
    /shops/oslo [REMOVED]
    --- repository
    +++ managed-server
    @@ -1,3 +0,0 @@
    -{
    -  "id": "oslo"
    -}

    /shops/rio [CHANGED]
    --- repository
    +++ managed-server
    @@ -1,5 +1,7 @@
     id: rio
     name: Rio
    +open: true
     tags:
         - a
    -tier: gold
    +    - b
    +tier: free

    Summary: 1 changed, 1 removed, 1 unchanged
    --- stderr
    "#);
    assert!(world.writes().is_empty());
}

#[test]
fn one_resource_has_no_summary() {
    insta::assert_snapshot!(shops().run(&["resource", "diff", "/shops/oslo"]), @r#"
    exit 0
    --- stdout
    /shops/oslo [REMOVED]
    --- repository
    +++ managed-server
    @@ -1,3 +0,0 @@
    -{
    -  "id": "oslo"
    -}
    --- stderr
    "#);
}

#[test]
fn records() {
    insta::assert_snapshot!(shops().run(&["resource", "diff", "/shops", "-o", "json"]), @r#"
    exit 0
    --- stdout
    [
      {
        "ResourcePath": "/shops/oslo",
        "Path": "",
        "Operation": "replace",
        "Local": {
          "id": "oslo"
        },
        "Remote": null
      },
      {
        "ResourcePath": "/shops/rio",
        "Path": "/open",
        "Operation": "add",
        "Local": null,
        "Remote": true
      },
      {
        "ResourcePath": "/shops/rio",
        "Path": "/tags/1",
        "Operation": "add",
        "Local": null,
        "Remote": "b"
      },
      {
        "ResourcePath": "/shops/rio",
        "Path": "/tier",
        "Operation": "replace",
        "Local": "gold",
        "Remote": "free"
      }
    ]
    --- stderr
    "#);
}

#[rstest]
#[case(&["/shops/lima"], "No differences for /shops/lima.\n")]
#[case(&["/shops/rio/tills"], "No differences under /shops/rio/tills.\n")]
#[case(&["/shops", "--list"], "/shops/oslo\n/shops/rio\n")]
#[case(&["/shops", "-r", "--list"], "/shops/oslo\n/shops/rio\n")]
#[case(&["/shops/rio/tills", "--list"], "")]
#[case(&["/shops/lima", "-o", "json"], "[]\n")]
#[case(&["/shops", "--list", "-o", "json"], "[\n  \"/shops/oslo\",\n  \"/shops/rio\"\n]\n")]
fn short_answers(#[case] args: &[&str], #[case] stdout: &str) {
    let run = shops().run(&[&["resource", "diff"], args].concat());
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, stdout, ""), "{run}");
}

#[test]
fn recursion_covers_the_resource_and_what_is_below() {
    let run = shops().run(&["resource", "diff", "/shops/rio", "-r"]);
    assert!(run.stdout.ends_with("\nSummary: 1 changed, 1 unchanged\n"), "{run}");
}

#[rstest]
#[case(&["--color", "always", "--no-color"], true)]
#[case(&["--color", "never"], false)]
#[case(&[], false)]
fn colours(#[case] flags: &[&str], #[case] coloured: bool) {
    let run = shops().run(&[&["resource", "diff", "/shops/rio"], flags].concat());
    assert_eq!(run.stdout.contains("\x1b[31m-"), coloured, "{run}");
}

#[test]
fn as_many_equal_lines_as_wanted() {
    let world = shops();
    let run = world.run(&["resource", "diff", "/shops/rio", "-U", "0"]);
    assert!(!run.stdout.contains("\n   \"name\""), "{run}");
    assert_eq!(world.run(&["resource", "diff", "/shops/rio", "-U", "x"]).code, 1);
}

#[test]
fn nothing_declared() {
    insta::assert_snapshot!(shops().run(&["resource", "diff", "/none"]), @r#"
    exit 3
    --- stdout
    --- stderr
    no local resources found under "/none"
    "#);
}

#[test]
fn one_failure_does_not_hide_the_rest() {
    let world = shops();
    world.declare("shops/ava/resource.json", "{");
    let run = world.run(&["resource", "diff", "/shops"]);
    assert!(run.stdout.contains("/shops/rio [CHANGED]"), "{run}");
    assert!(run.stdout.ends_with("Summary: 1 changed, 1 removed, 1 unchanged, 1 failed\n"), "{run}");
    assert!(run.stderr.contains("shops/ava/resource.json"), "{run}");
    assert!(run.stderr.ends_with("1 of 4 resources failed\n"), "{run}");
    assert_eq!(run.code, 2);
}

/// A resource that differs and whose update would be refused.
fn refused() -> World {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {requiredAttributes: [/tier]}\n");
    world.declare("shops/lima/resource.json", r#"{"id": "lima"}"#);
    world.live("/shops/lima", r#"{"id": "lima", "tier": "x"}"#);
    world
}

#[rstest]
#[case::resource("/shops/lima")]
#[case::collection("/shops")]
fn one_resource_that_differs_and_fails_has_no_summary(#[case] path: &str) {
    let run = refused().run(&["resource", "diff", path]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stdout.contains("/shops/lima [CHANGED]"), "{run}");
    assert_eq!(run.stdout.contains("Summary"), path == "/shops", "{run}");
}

#[test]
fn explain_shows_differences_that_cannot_be_removed() {
    let world = refused();
    insta::assert_snapshot!(world.run(&["resource", "explain", "/shops/lima", "-o", "text"]), @r"
    exit 2
    --- stdout
    add /shops/lima/tier
    --- stderr
    /shops/lima: update requires /tier in the payload; add the missing attributes
    ");
    let run = world.run(&["resource", "explain", "/shops/lima", "-o", "jq=.[].Path"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, "/tier\n"), "{run}");
    world.declare("shops/lima/resource.json", "{");
    let run = world.run(&["resource", "explain", "/shops/lima"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
}

#[test]
fn a_failure_is_not_a_resource_without_differences() {
    let world = shops();
    world.declare("shops/rio/tills/t2/resource.json", "{");
    let run = world.run(&["resource", "diff", "/shops/rio/tills"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, "Summary: 1 unchanged, 1 failed\n"), "{run}");
}

#[test]
fn secrets_count_and_do_not_show() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {secretAttributes: [/pin]}");
    world.declare("shops/lima/resource.json", r#"{"id": "lima", "size": 1, "pin": "local-canary"}"#);
    world.live("/shops/lima", r#"{"id": "lima", "size": 1, "pin": "remote-canary"}"#);
    insta::assert_snapshot!(world.run(&["resource", "diff", "/shops/lima"]), @r#"
    exit 0
    --- stdout
    /shops/lima [CHANGED]
    --- repository
    +++ managed-server
    @@ -1,5 +1,5 @@
     {
       "id": "lima",
    -  "pin": "{{secret .}}",
    +  "pin": "{{secret .}}",
       "size": 1
     }
    --- stderr
    "#);
    insta::assert_snapshot!(world.run(&["resource", "diff", "/shops/lima", "-o", "json"]), @r#"
    exit 0
    --- stdout
    [
      {
        "ResourcePath": "/shops/lima",
        "Path": "/pin",
        "Operation": "replace",
        "Local": "{{secret .}}",
        "Remote": "{{secret .}}"
      }
    ]
    --- stderr
    "#);
    insta::assert_snapshot!(world.run(&["resource", "diff", "/shops/lima", "--show-secrets"]), @r#"
    exit 0
    --- stdout
    /shops/lima [CHANGED]
    --- repository
    +++ managed-server
    @@ -1,5 +1,5 @@
     {
       "id": "lima",
    -  "pin": "local-canary",
    +  "pin": "remote-canary",
       "size": 1
     }
    --- stderr
    "#);
    let canary = |run: crate::environment::Run| run.to_string().contains("canary");
    assert!(!canary(world.run(&["resource", "explain", "/shops/lima"])));
    assert!(!canary(world.run(&["resource", "apply", "/shops/lima", "-vvv"])));
}

#[test]
fn explain() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["resource", "explain", "/shops/rio"]), @r#"
    exit 0
    --- stdout
    [
      {
        "ResourcePath": "/shops/rio",
        "Path": "/open",
        "Operation": "add",
        "Local": null,
        "Remote": true
      },
      {
        "ResourcePath": "/shops/rio",
        "Path": "/tags/1",
        "Operation": "add",
        "Local": null,
        "Remote": "b"
      },
      {
        "ResourcePath": "/shops/rio",
        "Path": "/tier",
        "Operation": "replace",
        "Local": "gold",
        "Remote": "free"
      }
    ]
    --- stderr
    "#);
    insta::assert_snapshot!(world.run(&["resource", "explain", "/shops/rio", "-o", "text"]), @r"
    exit 0
    --- stdout
    add /shops/rio/open
    add /shops/rio/tags/1
    replace /shops/rio/tier
    --- stderr
    ");
    insta::assert_snapshot!(world.run(&["resource", "explain", "/shops"]), @r#"
    exit 2
    --- stdout
    --- stderr
    /shops is a collection; name one resource, or compare all with "resource diff"
    "#);
    assert_eq!(world.run(&["resource", "explain", "/shops/none"]).code, 3);
}
