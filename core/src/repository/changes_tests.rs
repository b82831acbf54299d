//! Tests of the effect of changed files.

use proptest::prelude::*;
use proptest::sample::select;
use rstest::rstest;

use super::super::fixtures::MemoryTree;
use super::super::resources;
use super::*;

type Files<'a> = BTreeMap<&'a str, &'a str>;

/// The example tree of the repository contract.
fn example() -> Files<'static> {
    Files::from([
        ("_/metadata.yaml", ""),
        ("shops/_/metadata.yaml", ""),
        ("shops/_/defaults.yaml", ""),
        ("shops/_/defaults-prod.json", ""),
        ("shops/_/tills/_/metadata.yaml", ""),
        ("shops/r*/_/metadata.yaml", ""),
        ("shops/rio/resource.yaml", ""),
        ("shops/rio/metadata.yaml", ""),
        ("shops/rio/defaults-prod.properties", ""),
        ("shops/rio/scripts/open.sh", ""),
        ("shops/rio/tills/t1/resource.xml", ""),
        ("shops/ava/resource.json", ""),
        ("README.md", ""),
    ])
}

/// Returns the differences between two trees of regular files; `!` marks a change of the mode only.
fn differences(base: &Files<'_>, target: &Files<'_>) -> Vec<FileChange> {
    let names: BTreeSet<&str> = base.keys().chain(target.keys()).copied().collect();
    let change = |name: &str| {
        let (old, new) = (base.get(name), target.get(name));
        let status = match (old, new) {
            (None, _) => ChangeStatus::Added,
            (_, None) => ChangeStatus::Deleted,
            (Some(_), Some(&"!")) => ChangeStatus::ModeOnly,
            (Some(old), Some(new)) if old != new => ChangeStatus::Modified,
            _ => return None,
        };
        let kind = |side: Option<&&str>| side.map(|_| EntryKind::File);
        Some(FileChange { path: name.to_owned(), status, old: kind(old), new: kind(new) })
    };
    names.into_iter().filter_map(change).collect()
}

fn plan_between(base: &Files<'_>, target: &Files<'_>, scope: &str) -> Changes {
    let scope = LogicalPath::parse(scope).unwrap();
    classify(&differences(base, target), &MemoryTree(base), &MemoryTree(target), &scope).unwrap()
}

/// Applies edits such as `M file`, `A file`, `D file`, `D directory/` and `X file` (the executable bit).
fn edit<'a>(files: &mut Files<'a>, edits: &[&'a str]) {
    for edit in edits {
        let (action, name) = edit.split_once(' ').unwrap();
        match action {
            "A" => assert!(files.insert(name, "new").is_none(), "{name} exists"),
            "M" => assert!(files.insert(name, "changed").is_some(), "no {name}"),
            "X" => assert!(files.insert(name, "!").is_some(), "no {name}"),
            "D" if name.ends_with('/') => files.retain(|file, _| !file.starts_with(name)),
            "D" => assert!(files.remove(name).is_some(), "no {name}"),
            _ => panic!("{edit}"),
        }
    }
}

/// `apply /a`, `apply /a recursive`, `prune /a`, in order, or `full: <rule>`.
fn render(changes: Changes) -> Vec<String> {
    match changes {
        Changes::Full { rule, .. } => vec![format!("full: {rule:?}")],
        Changes::Targets { apply, prune } => {
            let apply = apply.iter().map(|target| {
                format!("apply {}{}", target.path, if target.recursive { " recursive" } else { "" })
            });
            apply.chain(prune.iter().map(|path| format!("prune {path}"))).collect()
        }
    }
}

/// The plan for edits of the example tree extended by `extra` files.
fn plan(extra: &[&'static str], edits: &[&'static str], scope: &str) -> Vec<String> {
    let mut base = example();
    base.extend(extra.iter().map(|name| (*name, "")));
    let mut target = base.clone();
    edit(&mut target, edits);
    render(plan_between(&base, &target, scope))
}

#[rstest]
#[case::sidecar(&["M shops/rio/scripts/open.sh"], &["apply /shops/rio"])]
#[case::payload(&["M shops/ava/resource.json"], &["apply /shops/ava"])]
#[case::prune(&["D shops/ava/resource.json"], &["prune /shops/ava"])]
#[case::format(&["D shops/ava/resource.json", "A shops/ava/resource.yml"], &["apply /shops/ava"])]
#[case::wildcard(&["M shops/_/tills/_/metadata.yaml"], &["apply /shops/rio/tills recursive"])]
#[case::collection_defaults(&["M shops/_/defaults-prod.json"], &["apply /shops recursive"])]
#[case::root_metadata(&["M _/metadata.yaml"], &["apply /shops recursive"])]
#[case::own_defaults(&["M shops/rio/defaults-prod.properties"], &["apply /shops/rio recursive"])]
#[case::own_metadata(&["M shops/rio/metadata.yaml"], &["apply /shops/rio recursive"])]
#[case::glob(&["M shops/r*/_/metadata.yaml"], &["apply /shops/rio recursive"])]
#[case::whole_resource(&["D shops/rio/"], &["prune /shops/rio/tills/t1", "prune /shops/rio"])]
#[case::collection_file(&["A shops/_/x.txt"], &["full: CollectionFile"])]
#[case::other_defaults(&["A shops/rio/defaults.ini"], &["full: DefaultsFile"])]
#[case::flat_file(&["A shops/old.json"], &["full: UnknownFile"])]
#[case::git_settings(&["A .gitattributes"], &["full: GitSettings"])]
#[case::git_settings_below(&["A other/.gitmodules"], &["full: GitSettings"])]
#[case::inert(&["M README.md", "A .github/ci.yaml"], &[])]
#[case::inert_in_scope(&["A shops/README.txt", "A shops/Makefile", "A shops/.declarest-x1", "A shops/.idea/x.xml", "A shops/notes.md"], &[])]
#[case::executable_bit(&["X shops/rio/resource.yaml", "X shops/rio/scripts/open.sh"], &[])]
#[case::nothing(&[], &[])]
fn examples_of_the_contract(#[case] edits: &[&'static str], #[case] expected: &[&str]) {
    assert_eq!(plan(&[], edits, "/shops"), expected);
}

#[test]
fn a_child_resource_is_applied_without_its_parent() {
    assert_eq!(plan(&[], &["M shops/rio/tills/t1/resource.xml"], "/shops"), ["apply /shops/rio/tills/t1"]);
}

#[rstest]
#[case::other_payload(&["M shops/ava/resource.json"], "/shops/rio", &[])]
#[case::metadata_above(&["M shops/_/metadata.yaml"], "/shops/rio", &["apply /shops/rio recursive"])]
#[case::root_metadata(&["M _/metadata.yaml"], "/shops/rio", &["apply /shops/rio recursive"])]
#[case::wildcard_through_the_scope(&["M shops/_/tills/_/metadata.yaml"], "/shops/rio/tills/t1", &["apply /shops/rio/tills/t1 recursive"])]
#[case::wildcard_elsewhere(&["M shops/_/tills/_/metadata.yaml"], "/shops/ava", &[])]
#[case::glob_elsewhere(&["M shops/r*/_/metadata.yaml"], "/shops/ava", &[])]
#[case::own_metadata_above(&["M shops/rio/metadata.yaml"], "/shops/rio/tills", &["apply /shops/rio/tills recursive"])]
#[case::payload_above(&["M shops/rio/resource.yaml"], "/shops/rio/tills", &[])]
#[case::payload_above_removed(&["D shops/rio/resource.yaml"], "/shops/rio/tills", &[])]
#[case::sidecar_above(&["M shops/rio/scripts/open.sh"], "/shops/rio/tills", &[])]
#[case::flat_file_elsewhere(&["A other/x.json"], "/shops", &[])]
#[case::flat_file_above(&["A x.json"], "/shops", &[])]
#[case::defaults_elsewhere(&["A other/defaults.ini"], "/shops", &[])]
#[case::collection_file_elsewhere(&["A other/_/x.txt"], "/shops", &[])]
#[case::collection_file_below_wildcard(&["A shops/_/tills/x.txt"], "/shops/ava", &["full: CollectionFile"])]
#[case::name_is_only_a_prefix(&["A shop/_/x.txt", "A shopsx/flat.json"], "/shops", &[])]
#[case::root_scope(&["M shops/_/metadata.yaml", "D shops/ava/resource.json"], "/", &["apply /shops recursive", "prune /shops/ava"])]
#[case::root_scope_flat_file(&["A x.json"], "/", &["full: UnknownFile"])]
#[case::root_payload(&["A resource.yaml"], "/", &["full: RootFile"])]
#[case::root_own_metadata(&["A metadata.yaml"], "/shops", &["full: RootFile"])]
fn scopes(#[case] edits: &[&'static str], #[case] scope: &str, #[case] expected: &[&str]) {
    assert_eq!(plan(&[], edits, scope), expected);
}

/// (a) Payloads of any extension count.
#[rstest]
#[case("xml")]
#[case("hcl")]
#[case("txt")]
#[case("csv")]
#[case("bin")]
#[case("props")]
#[case("who-knows")]
#[case("YAML")]
fn payloads_of_every_extension_are_targets(#[case] extension: &str) {
    let file = format!("shops/x/resource.{extension}");
    let (base, mut target) = (example(), example());
    target.insert(&file, "");
    assert_eq!(render(plan_between(&base, &target, "/shops")), ["apply /shops/x"]);
    assert_eq!(render(plan_between(&target, &base, "/shops")), ["prune /shops/x"]);
}

/// (b) A sidecar is neither ignored nor treated as a payload, regardless of its extension.
#[rstest]
#[case("shops/rio/x.json")]
#[case("shops/rio/x.yaml")]
#[case("shops/rio/scripts/open.sh")]
#[case("shops/rio/notes.txt")]
#[case("shops/rio/README.md")]
#[case("shops/rio/.env")]
#[case("shops/rio/.hidden/x")]
#[case("shops/rio/resources.json")]
fn sidecars_of_any_name(#[case] file: &'static str) {
    let (mut base, mut target) = (example(), example());
    base.remove(file);
    target.insert(file, "new");
    assert_eq!(render(plan_between(&base, &target, "/shops")), ["apply /shops/rio"]);
    assert_eq!(render(plan_between(&target, &base, "/shops")), ["apply /shops/rio"]);
}

#[test]
fn a_file_below_two_resources_may_belong_to_either() {
    let extra = ["shops/rio/tills/t1/run.sh"];
    let both = ["apply /shops/rio", "apply /shops/rio/tills/t1"];
    assert_eq!(plan(&extra, &["M shops/rio/tills/t1/run.sh"], "/shops"), both);
    assert_eq!(
        plan(&extra, &["M shops/rio/tills/t1/run.sh"], "/shops/rio/tills"),
        ["apply /shops/rio/tills/t1"]
    );
}

#[test]
fn a_sidecar_of_a_deleted_resource_is_not_a_target() {
    let edits = ["D shops/rio/resource.yaml", "M shops/rio/scripts/open.sh"];
    assert_eq!(plan(&[], &edits, "/shops"), ["prune /shops/rio"]);
}

/// (c) Wildcards and globs at any depth, in a row, and with several matches.
#[test]
fn wildcards_reach_every_directory_they_match() {
    let extra = [
        "shops/_/_/_/metadata.yaml",
        "shops/rome/tills/t2/resource.json",
        "shops/ava/tills/t3/resource.json",
        "shops/oslo/desks/d1/resource.json",
        "shops/.git/tills/t4/resource.json",
    ];
    let edits = ["M shops/_/tills/_/metadata.yaml"];
    let expected = [
        "apply /shops/ava/tills recursive",
        "apply /shops/rio/tills recursive",
        "apply /shops/rome/tills recursive",
    ];
    assert_eq!(plan(&extra, &edits, "/shops"), expected);
    assert_eq!(plan(&extra, &edits, "/shops/rome"), ["apply /shops/rome/tills recursive"]);
    let globs = plan(&extra, &["M shops/r*/_/metadata.yaml"], "/");
    assert_eq!(globs, ["apply /shops/rio recursive", "apply /shops/rome recursive"]);
    let in_a_row = plan(&extra, &["M shops/_/_/_/metadata.yaml"], "/shops/oslo");
    assert_eq!(in_a_row, ["apply /shops/oslo/desks recursive"]);
}

#[test]
fn removed_and_added_metadata_applies_but_never_prunes() {
    assert_eq!(
        plan(&[], &["D shops/_/tills/_/metadata.yaml"], "/shops"),
        ["apply /shops/rio/tills recursive"]
    );
    assert_eq!(plan(&[], &["D shops/rio/metadata.yaml"], "/shops"), ["apply /shops/rio recursive"]);
    assert_eq!(plan(&[], &["A shops/rio/_/metadata.json"], "/shops"), ["apply /shops/rio recursive"]);
}

#[test]
fn an_invalid_glob_requires_a_full_sync() {
    assert_eq!(plan(&[], &["A shops/[r/_/metadata.yaml"], "/shops"), ["full: BadSelector"]);
}

/// (d) Changing the format never prunes, nor does leaving one of two ambiguous payloads.
#[test]
fn a_payload_beside_the_removed_one_keeps_the_resource() {
    let edits = ["D shops/ava/resource.json", "A shops/ava/resource.yaml"];
    assert_eq!(plan(&[], &edits, "/shops"), ["apply /shops/ava"]);
    let ambiguous = plan(&["shops/ava/resource.bak"], &["D shops/ava/resource.bak"], "/shops");
    assert_eq!(ambiguous, ["apply /shops/ava"]);
}

/// (e) A recursive target that the same commit emptied is dropped.
#[test]
fn an_emptied_target_is_dropped() {
    let edits = ["M shops/rio/metadata.yaml", "D shops/rio/resource.yaml", "D shops/rio/tills/"];
    assert_eq!(plan(&[], &edits, "/shops"), ["prune /shops/rio/tills/t1", "prune /shops/rio"]);
    let below = ["M shops/rio/metadata.yaml", "D shops/rio/resource.yaml"];
    assert_eq!(plan(&[], &below, "/shops"), ["apply /shops/rio recursive", "prune /shops/rio"]);
}

#[test]
fn a_recursive_target_covers_paths_below_but_not_beside_it() {
    let extra = ["shops/rio-b/resource.json", "shops/rio-b/_/metadata.yaml"];
    let edits = [
        "M shops/rio/metadata.yaml",
        "M shops/rio/resource.yaml",
        "M shops/rio/tills/t1/resource.xml",
        "M shops/rio-b/_/metadata.yaml",
        "M shops/ava/resource.json",
    ];
    let expected = ["apply /shops/ava", "apply /shops/rio recursive", "apply /shops/rio-b recursive"];
    assert_eq!(plan(&extra, &edits, "/shops"), expected);
}

#[test]
fn parents_are_applied_first_and_children_pruned_first() {
    let extra = ["a/resource.json", "a/b/resource.json", "a/b/c/resource.json", "a-b/resource.json"];
    let modify = ["M a/resource.json", "M a/b/resource.json", "M a/b/c/resource.json"];
    assert_eq!(plan(&extra, &modify, "/"), ["apply /a", "apply /a/b", "apply /a/b/c"]);
    let remove = ["D a/", "D a-b/"];
    assert_eq!(plan(&extra, &remove, "/"), ["prune /a/b/c", "prune /a/b", "prune /a-b", "prune /a"]);
}

/// (k) Git's own files are never declarations.
#[test]
fn copies_of_git_directories_are_ignored() {
    let edits = ["A .git/refs/heads/resource.x", "A shops/sub/.git/resource.json", "A shops/.git/x"];
    assert_eq!(plan(&[], &edits, "/"), [] as [&str; 0]);
}

#[test]
fn a_file_that_became_a_directory_requires_a_full_sync() {
    let (mut base, mut target) = (example(), example());
    base.insert("shops/new/resource.d", "");
    target.insert("shops/new/resource.d/x", "");
    assert_eq!(render(plan_between(&base, &target, "/shops")), ["full: FileType"]);
    assert_eq!(render(plan_between(&target, &base, "/shops")), ["full: FileType"]);
}

#[rstest]
#[case::link(
    "shops/rio/resource.yaml",
    ChangeStatus::TypeChanged,
    Some(EntryKind::File),
    Some(EntryKind::Other),
    FullRule::FileType
)]
#[case::submodule("vendor", ChangeStatus::Added, None, Some(EntryKind::Other), FullRule::FileType)]
#[case::removed_link("x", ChangeStatus::Deleted, Some(EntryKind::Other), None, FullRule::FileType)]
#[case::not_utf8(
    "shops/caf\u{fffd}/resource.json",
    ChangeStatus::Deleted,
    Some(EntryKind::File),
    None,
    FullRule::Unaddressable
)]
#[case::backslash(
    "shops/a\\b/resource.json",
    ChangeStatus::Deleted,
    Some(EntryKind::File),
    None,
    FullRule::Unaddressable
)]
fn a_file_that_is_not_regular_requires_a_full_sync(
    #[case] path: &str,
    #[case] status: ChangeStatus,
    #[case] old: Option<EntryKind>,
    #[case] new: Option<EntryKind>,
    #[case] rule: FullRule,
) {
    let (files, path_in) = (Files::new(), |text: &str| LogicalPath::parse(text).unwrap());
    let tree = MemoryTree(&files);
    let change = FileChange { path: path.to_owned(), status, old, new };
    let changes = classify(&[change], &tree, &tree, &path_in("/shops")).unwrap();
    assert_eq!(changes, Changes::Full { file: path.to_owned(), rule });
}

const OWN: &[&str] = &["resource.json", "resource.xml", "metadata.yaml", "x.sh"];

/// Files whose changes mostly have a known effect.
fn trees() -> impl Strategy<Value = BTreeMap<String, &'static str>> {
    let own = (select(&["a", "a/b", "a/b/c", "a-b", "d", "d/.x"][..]), select(&OWN[..3]))
        .prop_map(|(directory, name)| join(directory, name));
    let more = ["_/metadata.yaml", "a/_/defaults.yaml", "a/_/c/_/metadata.yaml", "a/x.sh", "d/README.md"];
    let file = prop_oneof![3 => own, 1 => select(more.to_vec()).prop_map(str::to_owned)];
    proptest::collection::btree_map(file, select(&["1", "2"][..]), 0..8)
}

proptest! {
    /// An incremental plan contains everything that a full one would have to do: it applies each new or different
    /// payload, and prunes exactly the deleted ones.
    #[test]
    fn an_incremental_plan_misses_nothing(
        base in trees(),
        target in trees(),
        scope in select(&["/", "/a", "/a/b", "/d"][..]),
    ) {
        let base: Files<'_> = base.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let target: Files<'_> = target.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let Changes::Targets { apply, prune } = plan_between(&base, &target, scope) else { return Ok(()) };
        let scope = LogicalPath::parse(scope).unwrap();
        let declared = |files: &Files<'_>| -> BTreeSet<LogicalPath> {
            let listing = resources(&MemoryTree(files), &scope, true).unwrap();
            let broken = listing.broken.into_iter().map(|(path, _)| path);
            listing.resources.into_iter().map(|file| file.path).chain(broken).collect()
        };
        let (before, after) = (declared(&base), declared(&target));
        let covered = |path: &LogicalPath| {
            apply.iter().any(|t| t.path == *path || (t.recursive && path.is_within(&t.path)))
        };
        for path in &after {
            let files = |files: &Files<'_>| -> Vec<(String, String)> {
                let own = OWN.iter().map(|name| join(path.relative(), name));
                own.filter_map(|file| files.get(&*file).map(|text| (file.clone(), (*text).to_owned()))).collect()
            };
            prop_assert!(covered(path) || files(&base) == files(&target), "{path} is missed");
        }
        let gone: BTreeSet<LogicalPath> = before.difference(&after).cloned().collect();
        prop_assert_eq!(prune.iter().cloned().collect::<BTreeSet<_>>(), gone);
        for target in &apply {
            prop_assert!(target.path.is_within(&scope));
            prop_assert!(after.iter().any(|path| path.is_within(&target.path)));
        }
    }
}
