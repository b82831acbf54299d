//! What a policy owns follows from the revisions that it worked on, and from nothing else.

use declarest_operator::crd::{ManagedServer, SyncPolicy};
use rstest::rstest;
use serde_json::json;

use super::{Scene, assert_reports};
use crate::support::api_server::{Answer, ApiServer, Ids};
use crate::support::git_remote::git;
use crate::support::world::declarest;

const KEEP: (&str, &str) = ("items/keep/resource.json", r#"{"id": "keep"}"#);

fn items(collections: &[&str]) -> ApiServer {
    ApiServer::rest(&[collections, &["/items"]].concat(), Ids::Stated("id"))
}

fn with_users() -> ApiServer {
    let server = items(&["/admin/users", "/users"]);
    // Of another API, which has nothing to do with ours.
    server.put("/users/x", json!({"id": "x", "owner": "another API"}));
    server
}

const AT_ADMIN: (&str, &str) = ("users/_/metadata.yaml", "resource: {remoteCollectionPath: /admin/users}\n");
const USER: (&str, &str) = ("users/x/resource.json", r#"{"id": "x"}"#);

#[tokio::test]
async fn a_collection_that_goes_with_its_metadata_is_deleted_where_that_metadata_had_it() {
    let scene = Scene::synced(with_users(), &[KEEP, AT_ADMIN, USER]).await;
    scene.holds(&["/admin/users/x", "/items/keep", "/users/x"]);
    scene.git.remove("users");
    scene.push().await;
    assert!(scene.server.get("/users/x").is_some(), "{:?}", scene.server.writes());
    scene.converges(2).await;
    scene.holds(&["/items/keep", "/users/x"]);
}

#[tokio::test]
async fn metadata_that_changes_with_a_removal_does_not_lead_elsewhere() {
    let scene = Scene::synced(with_users(), &[KEEP, AT_ADMIN, USER]).await;
    scene.git.remove("users/x");
    scene.git.write("users/_/metadata.yaml", "resource: {remoteCollectionPath: /users}\n");
    scene.push().await;
    assert!(scene.server.get("/users/x").is_some(), "{:?}", scene.server.writes());
    scene.converges(2).await;
    scene.holds(&["/items/keep", "/users/x"]);
}

#[tokio::test]
async fn a_removal_whose_metadata_cannot_be_read_any_more_fails_visibly() {
    let scene = Scene::synced(with_users(), &[KEEP, AT_ADMIN, USER]).await;
    scene.git.write("users/_/metadata.yaml", "resource: {remoteCollectionPath: \"/admin/{{/us\"}\n");
    assert_reports(&scene.push().await, "/users/x");
    scene.git.remove("users");
    let status = scene.push().await;
    assert!(scene.server.get("/users/x").is_some(), "{:?}", scene.server.writes());
    if scene.server.get("/admin/users/x").is_some() {
        assert_reports(&status, "/users/x");
        assert_reports(&scene.full_run().await, "/users/x");
    }
}

#[rstest]
#[case::symlink(false)]
#[case::submodule(true)]
#[tokio::test]
async fn a_directory_that_became_something_else_does_not_remove_what_was_below(#[case] submodule: bool) {
    let scene = Scene::synced(
        items(&["/shops", "/shops/*/tills"]),
        &[
            KEEP,
            ("shops/rio/resource.json", r#"{"id": "rio"}"#),
            ("shops/rio/tills/t1/resource.json", r#"{"id": "t1"}"#),
        ],
    )
    .await;
    let tree = scene.git.work_tree();
    if submodule {
        let commit = scene.git.head();
        git(&tree, &["rm", "-r", "--quiet", "shops"]);
        git(&tree, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},shops")]);
        std::fs::create_dir_all(tree.join("shops")).unwrap();
    } else {
        git(&tree, &["mv", "shops", "branches"]);
        std::os::unix::fs::symlink("branches", tree.join("shops")).unwrap();
    }
    scene.push().await;
    let mode = git(&tree, &["ls-tree", "HEAD", "shops"]);
    assert!(mode.starts_with(if submodule { "160000" } else { "120000" }), "{mode}");
    scene.deletes_nothing();
    scene.full_run().await;
    scene.deletes_nothing();
    scene.holds(&["/items/keep", "/shops/rio", "/shops/rio/tills/t1"]);
}

#[rstest]
#[case::base_url(false)]
#[case::reference(true)]
#[tokio::test]
async fn what_was_removed_on_one_server_is_kept_on_the_next(#[case] another_object: bool) {
    let file = ("items/old/resource.json", r#"{"id": "old"}"#);
    let last = ("items/last/resource.json", r#"{"id": "last"}"#);
    let scene = Scene::synced(items(&[]), &[KEEP, file, last]).await;
    scene.git.remove("items/old");
    scene.push().await;
    scene.holds(&["/items/keep", "/items/last"]);
    let next = items(&[]);
    next.put("/items/old", json!({"id": "old", "owner": "another team"}));
    if another_object {
        let spec = json!({"http": {"baseURL": next.url()}});
        scene.world.create(declarest("ManagedServer", "next", &spec)).await;
    }
    // Asked for until it is seen: a manifest that is loaded just now takes a patch back.
    let arrived = async || {
        if another_object {
            let reference = json!({"spec": {"managedServerRef": {"name": "next"}}});
            scene.world.patch::<SyncPolicy>("policy", reference).await;
        } else {
            let url = json!({"spec": {"http": {"baseURL": next.url()}}});
            scene.world.patch::<ManagedServer>("server", url).await;
        }
        next.get("/items/keep").and(next.get("/items/last"))
    };
    scene.world.eventually("the next server has what is declared", arrived).await;
    scene.converges(1).await;
    assert_eq!(next.count("DELETE"), 0, "{:?}", next.writes());
    assert_eq!(next.paths(), ["/items/keep", "/items/last", "/items/old"]);
    // What is removed from now on is removed there.
    scene.git.remove("items/last");
    scene.push().await;
    scene.converges(1).await;
    assert_eq!(next.paths(), ["/items/keep", "/items/old"]);
}

#[tokio::test]
async fn what_only_a_merged_branch_declared_for_a_while_is_not_ours() {
    let server = items(&["/shops"]);
    server.put("/shops/vip", json!({"id": "vip", "owner": "by hand"}));
    let scene = Scene::synced(server, &[KEEP]).await;
    let tree = scene.git.work_tree();
    git(&tree, &["checkout", "--quiet", "-b", "side"]);
    scene.git.write("shops/vip/resource.json", r#"{"id": "vip"}"#);
    scene.git.commit("a draft");
    scene.git.remove("shops/vip");
    scene.git.write("items/side/resource.json", r#"{"id": "side"}"#);
    scene.git.commit("something else instead");
    git(&tree, &["checkout", "--quiet", "main"]);
    scene.git.write("items/more/resource.json", r#"{"id": "more"}"#);
    scene.git.commit("meanwhile");
    git(&tree, &["merge", "--quiet", "--no-ff", "--message", "merge", "side"]);
    scene.push_commits().await;
    scene.converges(1).await;
    scene.deletes_nothing();
    assert!(scene.server.get("/shops/vip").is_some());
    // What is right: the merge itself declared the other one.
    scene.git.remove("items/side");
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/items/keep", "/items/more", "/shops/vip"]);
}

/// A server may refuse to show what a deletion needs to know.
#[rstest]
#[tokio::test]
async fn a_removal_that_cannot_be_looked_for_is_not_done(#[values(401, 403)] status: u16) {
    let server = ApiServer::start(&["/shops", "/shops/*/tills"], move |request, store| {
        let ids = if request.segments().len() > 2 { Ids::Stated("id") } else { Ids::Given };
        if store.mode == "refuse" && request.is("GET", "/shops") {
            return Answer::empty(status);
        }
        request.rest(store, ids)
    });
    server.put("/shops/u7", json!({"id": "u7", "name": "rio"}));
    server.put("/shops/u7/tills/t1", json!({"id": "t1"}));
    let scene = Scene::synced(
        server,
        &[
            ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n"),
            ("shops/rio/resource.json", r#"{"name": "rio"}"#),
            ("shops/rio/tills/t1/resource.json", r#"{"id": "t1"}"#),
        ],
    )
    .await;
    scene.server.mode("refuse");
    scene.git.remove("shops/rio/tills");
    let refused = scene.push().await;
    scene.holds(&["/shops/u7", "/shops/u7/tills/t1"]);
    assert_reports(&refused, "/shops/rio/tills/t1");
    scene.server.mode("");
    scene.converges(2).await;
    scene.holds(&["/shops/u7"]);
}
