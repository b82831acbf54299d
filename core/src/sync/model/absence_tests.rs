use std::sync::Arc;

use http::StatusCode;
use rstest::rstest;

use super::*;
use crate::memory::Share;
use crate::metadata::Stated;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::sync::SyncError;

const SERVER_IDS: Wanted<'static> = Wanted {
    id: None,
    name: "rio",
    alias: Some("rio"),
    states_alias: true,
    one_name: false,
    by_path: false,
    by_members: false,
    ignores_segment: false,
};
const BOTH_STATED: Wanted<'static> = Wanted { id: Some("u1"), ..SERVER_IDS };
const ONE_NAME: Wanted<'static> = Wanted { id: Some("rio"), one_name: true, ..SERVER_IDS };
const NO_RULES: Wanted<'static> = Wanted {
    id: None,
    name: "rio",
    alias: None,
    states_alias: false,
    one_name: true,
    by_path: false,
    by_members: true,
    ignores_segment: false,
};

fn entry(id: &str, alias: Option<&str>) -> Entry {
    Entry {
        alias: alias.unwrap_or(id).to_owned(),
        remote_id: id.to_owned(),
        payload: Value::Null,
        states: Stated { id: true, alias: alias.is_some(), number: false },
        format: None,
    }
}

fn not_a_list(why: &str) -> Doubt {
    Doubt::NotAList(why.to_owned(), false)
}

fn listed(entries: &[(&str, Option<&str>)], doubt: Option<Doubt>) -> ListAnswer {
    let entries = entries.iter().map(|(id, alias)| entry(id, *alias)).collect();
    ListAnswer::Listed { listing: Listing::new(entries), doubt, held: Share::default() }
}

fn whole(entries: &[(&str, Option<&str>)]) -> ListAnswer {
    listed(entries, None)
}

fn failed() -> ListAnswer {
    let reason = "it was ended".to_owned();
    unknown(Doubt::Failed(Arc::new(SyncError::NotAttempted(LogicalPath::root(), reason))))
}

fn unknown(doubt: Doubt) -> ListAnswer {
    ListAnswer::Unknown(doubt)
}

fn shown(verdict: &Verdict<'_>) -> String {
    match verdict {
        Verdict::Here => "here".to_owned(),
        Verdict::Present(entry) => format!("present {}", entry.remote_id),
        Verdict::Absent(proof) => format!("absent {proof:?}"),
        Verdict::Unknown(doubt) => {
            let name = format!("{doubt:?}");
            format!("unknown {}", name.split([' ', '(', '{']).next().unwrap_or_default())
        }
    }
}

fn verdict(wanted: Wanted<'_>, address: Address<'_>, list: &ListAnswer) -> String {
    shown(&judge(&Question { wanted, ..Question::default() }, address, list))
}

#[rstest]
#[case::whole(whole(&[("u7", Some("ava"))]), "absent List", "absent List")]
#[case::empty(whole(&[]), "absent List", "absent List")]
#[case::cut(listed(&[("u7", Some("ava"))], Some(Doubt::Cut)), "unknown Cut", "unknown Cut")]
#[case::usual_page(listed(&[], Some(Doubt::PageSized(50))), "unknown PageSized", "unknown PageSized")]
#[case::no_alias_shown(whole(&[("u7", None)]), "unknown AliasNotListed", "unknown AliasNotListed")]
#[case::missing(unknown(Doubt::NoList), "unknown NoList", "unknown NoList")]
#[case::not_a_list(unknown(not_a_list("html")), "unknown NotAList", "unknown NotAList")]
#[case::failed(failed(), "unknown Failed", "unknown Failed")]
#[case::forbidden(
    unknown(Doubt::Unlistable(StatusCode::FORBIDDEN)),
    "unknown Unlistable",
    "absent Unlistable"
)]
#[case::no_method(
    unknown(Doubt::Unlistable(StatusCode::METHOD_NOT_ALLOWED)),
    "unknown Unlistable",
    "absent Unlistable"
)]
#[case::not_asked(unknown(Doubt::NotListed), "unknown NotListed", "unknown NotListed")]
#[case::alias(whole(&[("u7", Some("rio"))]), "present u7", "present u7")]
#[case::alias_beyond_doubt(listed(&[("u7", Some("rio"))], Some(Doubt::Cut)), "present u7", "present u7")]
#[case::twice(whole(&[("u7", Some("rio")), ("u8", Some("rio"))]), "unknown Several", "unknown Several")]
fn nothing_at_the_address(
    #[case] list: ListAnswer,
    #[case] of_the_server: &str,
    #[case] of_the_client: &str,
) {
    assert_eq!(verdict(SERVER_IDS, Address::NotFound, &list), of_the_server);
    assert_eq!(verdict(BOTH_STATED, Address::NotFound, &list), of_the_client);
    let by_its_one_name = match of_the_server {
        found if found.starts_with("present") || found.ends_with("Several") => found,
        "unknown NotListed" => "unknown NotListed",
        _ => "absent Address",
    };
    assert_eq!(verdict(ONE_NAME, Address::NotFound, &list), by_its_one_name);
    let question = Question { wanted: SERVER_IDS, put_creates: true, ..Question::default() };
    assert_eq!(shown(&judge(&question, Address::NotFound, &list)), "absent PutCreates");
    assert_eq!(verdict(SERVER_IDS, Address::NoParent, &list), "absent Parent");
}

#[rstest]
#[case::same(SERVER_IDS, Some("rio"), whole(&[("u7", Some("rio"))]), "here")]
#[case::same_by_name(SERVER_IDS, Some("rio"), unknown(Doubt::NotListed), "here")]
#[case::same_by_id(BOTH_STATED, Some("rio"), unknown(Doubt::NotListed), "unknown NotListed")]
#[case::by_path(Wanted { by_path: true, ..SERVER_IDS }, Some("ava"), unknown(Doubt::NotListed), "here")]
#[case::same_without_list(SERVER_IDS, Some("rio"), failed(), "here")]
#[case::one_name(ONE_NAME, Some("rio"), unknown(Doubt::NotListed), "here")]
#[case::one_name_not_shown(ONE_NAME, None, unknown(Doubt::NotListed), "here")]
#[case::one_name_of_another(ONE_NAME, Some("x"), whole(&[("rio", Some("rio"))]), "unknown AnotherAlias")]
#[case::id_elsewhere(BOTH_STATED, Some("rio"), whole(&[("u2", Some("rio"))]), "unknown AnotherId")]
#[case::same_not_listed(BOTH_STATED, Some("rio"), whole(&[]), "here")]
#[case::foreign_id(BOTH_STATED, Some("ava"), whole(&[("u1", Some("ava")), ("u2", Some("rio"))]), "unknown Several")]
#[case::foreign_id_not_listed(BOTH_STATED, Some("ava"), whole(&[("u2", Some("rio"))]), "unknown AnotherAlias")]
#[case::taken_id(BOTH_STATED, Some("old"), whole(&[("u1", Some("old"))]), "unknown AnotherAlias")]
#[case::other_alias_unlisted(BOTH_STATED, Some("ava"), unknown(Doubt::NoList), "unknown NoList")]
#[case::other_alias_failed(BOTH_STATED, Some("ava"), failed(), "unknown Failed")]
#[case::no_alias_failed(BOTH_STATED, None, failed(), "unknown Failed")]
#[case::no_alias_unlisted(BOTH_STATED, None, unknown(Doubt::NoList), "here")]
#[case::no_alias_no_id(SERVER_IDS, None, unknown(Doubt::NoList), "unknown NoList")]
#[case::name_is_an_id(SERVER_IDS, Some("ava"), whole(&[("rio", Some("ava"))]), "unknown AnotherAlias")]
#[case::name_is_an_id_of_another(SERVER_IDS, Some("ava"), whole(&[("u7", Some("rio"))]), "present u7")]
#[case::not_on_the_list(SERVER_IDS, Some("ava"), whole(&[]), "unknown AnotherAlias")]
fn something_at_the_address(
    #[case] wanted: Wanted<'_>,
    #[case] alias: Option<&str>,
    #[case] list: ListAnswer,
    #[case] expected: &str,
) {
    assert_eq!(verdict(wanted, Address::Found(alias), &list), expected);
}

/// The server numbers the resources, and the number of another one is the name of the wanted one.
#[rstest]
#[case::post(true, None, "absent List")]
#[case::post_and_cut(true, Some(Doubt::Cut), "unknown AnotherAlias")]
#[case::put(false, None, "unknown AnotherAlias")]
fn a_number_is_not_a_name(#[case] post_creates: bool, #[case] doubt: Option<Doubt>, #[case] expected: &str) {
    let number =
        Entry { states: Stated { id: true, alias: true, number: true }, ..entry("rio", Some("ava")) };
    let list = ListAnswer::Listed { listing: Listing::new(vec![number]), doubt, held: Share::default() };
    let question = Question { wanted: SERVER_IDS, post_creates, ..Question::default() };
    for address in [Address::Found(Some("ava")), Address::NotFound] {
        assert_eq!(shown(&judge(&question, address, &list)), expected);
    }
}

/// Its address is not below that of its collection.
#[rstest]
#[case::whole(whole(&[]), "unknown NotAMember")]
#[case::cut(listed(&[], Some(Doubt::Cut)), "here")]
#[case::failed(failed(), "here")]
#[case::listed(whole(&[("u1", Some("rio"))]), "here")]
fn an_address_of_any_collection(#[case] list: ListAnswer, #[case] expected: &str) {
    assert_eq!(verdict(BOTH_STATED, Address::Elsewhere(Some("rio")), &list), expected);
}

/// Its name is the id of a resource that may be a member of another collection.
#[rstest]
#[case::of_another_collection(whole(&[]), "absent List", "unknown AnotherAlias")]
#[case::cut(listed(&[], Some(Doubt::Cut)), "unknown AnotherAlias", "unknown AnotherAlias")]
#[case::failed(failed(), "unknown Failed", "unknown Failed")]
#[case::renamed(whole(&[("u1", Some("ava"))]), "unknown AnotherAlias", "unknown AnotherAlias")]
#[case::no_alias_shown(whole(&[("u1", None)]), "unknown AnotherAlias", "unknown AnotherAlias")]
#[case::listed(whole(&[("u1", Some("rio"))]), "present u1", "present u1")]
fn a_name_at_an_address_of_any_collection(
    #[case] list: ListAnswer,
    #[case] by_post: &str,
    #[case] by_put: &str,
) {
    for (post_creates, expected) in [(true, by_post), (false, by_put)] {
        let question = Question { wanted: SERVER_IDS, post_creates, ..Question::default() };
        assert_eq!(shown(&judge(&question, Address::Elsewhere(Some("ava")), &list)), expected);
    }
    let question = Question { wanted: SERVER_IDS, post_creates: true, ..Question::default() };
    assert_ne!(shown(&judge(&question, Address::Found(Some("ava")), &list)), "absent List");
}

/// Only what was applied before under the same id can have been renamed.
#[test]
fn a_name_that_changed() {
    let list = whole(&[("u1", Some("old"))]);
    let question = Question { wanted: BOTH_STATED, is_known: true, ..Question::default() };
    assert_eq!(shown(&judge(&question, Address::Found(Some("old")), &list)), "here");
}

#[rstest]
#[case::by_member(false, "present u7")]
#[case::never_a_deletion(true, "unknown ByMember")]
fn members_that_metadata_does_not_name(#[case] doomed: bool, #[case] expected: &str) {
    let payload = Value::from_json(&serde_json::json!({"id": "u7", "username": "rio"}));
    let list = ListAnswer::Listed {
        listing: Listing::new(vec![Entry { payload, ..entry("u7", None) }]),
        doubt: None,
        held: Share::default(),
    };
    let question = Question { wanted: NO_RULES, doomed, ..Question::default() };
    assert_eq!(shown(&judge(&question, Address::NotFound, &list)), expected);
    let question = Question { wanted: SERVER_IDS, doomed, ..Question::default() };
    assert_ne!(shown(&judge(&question, Address::NotFound, &list)), "present u7");
}

#[rstest]
#[case(Doubt::Cut, "operations.list.pagination")]
#[case(Doubt::PageSized(50), "style: none")]
#[case(Doubt::NoList, "operations.create to a PUT")]
#[case(not_a_list("HTTP 302"), "if a sign-in page or a proxy answers, correct the address")]
#[case(Doubt::NotAList("an object".to_owned(), true), "operations.list.transforms")]
#[case(Doubt::OtherRules(vec!["resource.id", "operations.list"]), "resource.id, operations.list")]
#[case(Doubt::AliasNotListed(3), "resource.alias")]
#[case(Doubt::ByMember("7".to_owned()), "resource.id and resource.alias")]
fn doubts_name_the_metadata_that_would_help(#[case] doubt: Doubt, #[case] named: &str) {
    assert!(doubt.to_string().contains(named), "{doubt}");
}
