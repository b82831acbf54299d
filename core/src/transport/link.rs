//! Parses `Link` header fields (RFC 8288) for the next page of a list.

use super::field_text::{FieldText, is_space};

/// The next page according to the `Link` headers of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextLink {
    /// There is no next page.
    Absent,
    /// The next page is at this URI reference (RFC 3986, section 4.1), as the server wrote it.
    At(String),
    /// There may be a next page, because a field cannot be parsed or the link belongs to another URI.
    Unreadable,
}

/// One link of a field value.
#[derive(Debug, Default, PartialEq, Eq)]
struct Link {
    target: String,
    relations: Option<String>,
    /// Whether the link belongs to another resource than the requested one (RFC 8288, section 3.2).
    elsewhere: bool,
}

/// Returns the first link with the relation `next` in the values of all `Link` fields.
pub(crate) fn next_link<'v>(values: impl IntoIterator<Item = &'v str>) -> NextLink {
    let mut unreadable = false;
    for value in values {
        let (links, whole) = parse(value);
        let (elsewhere, own): (Vec<_>, Vec<_>) =
            links.into_iter().filter(Link::is_next).partition(|link| link.elsewhere);
        if let Some(link) = own.into_iter().next() {
            return NextLink::At(link.target);
        }
        unreadable |= !whole || !elsewhere.is_empty();
    }
    if unreadable { NextLink::Unreadable } else { NextLink::Absent }
}

impl Link {
    /// Whether the relation is `next`. Relations are separated by white space and ignore case (RFC 8288, section
    /// 3.3).
    fn is_next(&self) -> bool {
        let mut relations = self.relations.iter().flat_map(|relations| relations.split_ascii_whitespace());
        relations.any(|relation| relation.eq_ignore_ascii_case("next"))
    }
}

/// Returns the links of one field value up to the first fault, and whether there was none (RFC 8288, appendix B.2).
fn parse(value: &str) -> (Vec<Link>, bool) {
    let mut rest = FieldText(value);
    let mut links = Vec::new();
    loop {
        rest.skip(|c| is_space(c) || c == ',');
        if rest.0.is_empty() {
            return (links, true);
        }
        match link(&mut rest) {
            Some(link) => links.push(link),
            None => return (links, false),
        }
    }
}

fn link(rest: &mut FieldText<'_>) -> Option<Link> {
    if !rest.take('<') {
        return None;
    }
    let target = rest.until(|c| c == '>');
    let mut link = Link { target: target.trim().to_owned(), ..Link::default() };
    if !rest.take('>') {
        return None;
    }
    loop {
        rest.skip(is_space);
        if rest.0.is_empty() || rest.take(',') {
            return Some(link);
        }
        if !rest.take(';') {
            return None;
        }
        let (name, value) = rest.parameter()?;
        // The first parameter of a name applies (RFC 8288, section 3.3).
        if name.eq_ignore_ascii_case("rel") {
            link.relations.get_or_insert(value);
        } else if name.eq_ignore_ascii_case("anchor") {
            link.elsewhere = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn at(reference: &str) -> NextLink {
        NextLink::At(reference.to_owned())
    }

    #[rstest]
    #[case::quoted("</orders?page=2>; rel=\"next\"", at("/orders?page=2"))]
    #[case::bare("<?page=2>;rel=next", at("?page=2"))]
    #[case::several("</o?p=0>; rel=prev, </o?p=2>; rel=Next", at("/o?p=2"))]
    #[case::relations("</x>; rel=\"last  NEXT\"", at("/x"))]
    #[case::comma_in_the_target("</x?a=1,2>; rel=next", at("/x?a=1,2"))]
    #[case::semicolon_in_the_target("</x;v=1?rel=\"no\">; rel=next", at("/x;v=1?rel=\"no\""))]
    #[case::quoted_separators("</a>; title=\"a, <b>; rel=next\"; rel=prev, </b>; rel=next", at("/b"))]
    #[case::escaped_quotes("</a>; title=\"\\\"\"; rel=\"ne\\xt\"", at("/a"))]
    #[case::spaces("\t< /a >\t;\trel\t=\t\"next\" , ", at("/a"))]
    #[case::no_value("</a>; crossorigin; rel=next", at("/a"))]
    #[case::empty_parameters("</a>;; rel=next;", at("/a"))]
    #[case::empty_links(",, </a>; rel=next", at("/a"))]
    #[case::upper_case("</a>; REL=next", at("/a"))]
    #[case::first_of_two("</a>; rel=next, </b>; rel=next", at("/a"))]
    #[case::before_garbage("</a>; rel=next, garbage", at("/a"))]
    #[case::absolute("<https://h.test/a?p=2>; rel=\"next\"; type=\"x\"", at("https://h.test/a?p=2"))]
    #[case::another_relation("</next>; rel=\"self\"", NextLink::Absent)]
    #[case::part_of_a_word("</a>; rel=\"next-archive\"", NextLink::Absent)]
    #[case::second_rel("</a>; rel=prev; rel=next", NextLink::Absent)]
    #[case::anchored("</a>; rel=next; anchor=\"/others\"", NextLink::Unreadable)]
    #[case::no_relation("</a>", NextLink::Absent)]
    #[case::empty("", NextLink::Absent)]
    #[case::no_brackets("https://h.test/a; rel=next", NextLink::Unreadable)]
    #[case::open_target("</a; rel=next", NextLink::Unreadable)]
    #[case::open_quotes("</a>; rel=\"next", NextLink::Unreadable)]
    #[case::no_semicolon("</a> rel=next", NextLink::Unreadable)]
    fn links(#[case] value: &str, #[case] expected: NextLink) {
        assert_eq!(next_link([value]), expected);
    }

    #[rstest]
    #[case(&["</a>; rel=prev", "</b>; rel=next"], at("/b"))]
    #[case(&["garbage", "</b>; rel=next"], at("/b"))]
    #[case(&["</a>; rel=prev", "garbage"], NextLink::Unreadable)]
    #[case(&[], NextLink::Absent)]
    fn several_fields(#[case] values: &[&str], #[case] expected: NextLink) {
        assert_eq!(next_link(values.iter().copied()), expected);
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(value in "\\PC{0,40}", parts in "[<>;,=\"\\\\ a-e]{0,40}") {
            for value in [value, parts] {
                let _ = next_link([value.as_str()]);
            }
        }

        /// A link that is written according to the RFC is found, regardless of the text around it.
        #[test]
        fn a_written_link_is_found(
            target in "[!-;=?-~]{1,20}",
            title in "\\PC{0,12}",
            before in "[a-z/?=,;]{0,12}",
        ) {
            let title = title.replace('\\', "\\\\").replace('"', "\\\"");
            let value = format!("<{before}>; title=\"{title}\"; rel=\"self\", <{target}>; title=\"{title}\"; rel=next");
            prop_assert_eq!(next_link([value.as_str()]), NextLink::At(target));
        }
    }
}
