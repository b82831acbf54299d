//! Decides whether an entry of a list is the wanted resource. No other module makes this decision.
//!
//! A resource has up to three names: the id that its payload states, the alias that metadata takes from its payload,
//! and the last segment of its path, which replaces a missing id or alias. Members that commonly name resources
//! (`/name`, `/username`, …) count only if metadata states neither id nor alias.

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;

use super::resource::{Observed, Resource};
use crate::metadata::{Entry, Identity, Listing};
use crate::secrets::is_placeholder;

/// The names of a wanted resource.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the names")]
pub struct Wanted<'r> {
    /// The id that the payload states.
    pub id: Option<&'r str>,
    /// The name in the last segment of the path.
    pub name: &'r str,
    /// The alias, if metadata states `resource.alias`.
    pub alias: Option<&'r str>,
    /// Whether the payload itself states that alias.
    pub states_alias: bool,
    /// Whether id and alias are the same value, so that an address by id is an address by name.
    pub one_name: bool,
    /// Whether only the path is known. Then the resource at the address of the path is the wanted one.
    pub by_path: bool,
    /// Whether metadata states neither id nor alias, so that the usual members of a payload may name it.
    pub by_members: bool,
    /// Whether the last segment of the path is not an alias of it. An update may rename what has the name of the segment, but
    /// a deletion must not remove it: it may never have been declared.
    pub ignores_segment: bool,
}

/// The entry of a list that is the wanted resource.
#[derive(Debug)]
pub enum Match<'l> {
    /// This entry has its id or its alias.
    Entry(&'l Entry),
    /// This entry has its name in one of the usual members, and metadata states neither id nor alias.
    Member(&'l Entry),
    /// Several entries have one of its names: one has its id and another one its alias, or a name is not unique. Holds
    /// the ids of the entries.
    Several(Vec<String>),
    /// No entry has one of its names.
    Nothing,
}

impl<'r> Wanted<'r> {
    /// Returns the names of `resource`.
    pub fn of(resource: &'r Resource) -> Self {
        let rules = resource.rules.identity();
        let Identity { alias, remote_id } = &resource.identity;
        let states = |is: bool| is && !resource.seeded;
        let id = states(resource.rules.states_id(&resource.payload)).then_some(remote_id.as_str());
        Self {
            id,
            name: resource.name(),
            alias: rules.explicit_alias().then_some(alias.as_str()),
            states_alias: rules.explicit_alias() && states(rules.alias().evaluate(&resource.payload).is_ok()),
            one_name: rules.is_one() || !rules.explicit_alias() || id == Some(alias.as_str()),
            by_path: resource.seeded,
            by_members: !rules.any_explicit(),
            ignores_segment: false,
        }
    }

    /// Returns the names of a resource that is to be deleted.
    pub fn of_doomed(resource: &'r Resource) -> Self {
        let wanted = Self::of(resource);
        let differs = |alias: &str| !is_placeholder(alias) && !is_alike(alias, wanted.name);
        Self { ignores_segment: wanted.states_alias && wanted.alias.is_some_and(differs), ..wanted }
    }

    /// Returns the names of a resource that may be `doomed` to be deleted.
    pub fn sought(resource: &'r Resource, doomed: bool) -> Self {
        if doomed { Self::of_doomed(resource) } else { Self::of(resource) }
    }

    /// Returns the names that are unique in a collection, each with its kind. Equal placeholders of secrets may have
    /// different values.
    pub(crate) fn unique(&self) -> impl Iterator<Item = (&'static str, &'r str)> {
        let alias = self.alias.map(|alias| ("alias", alias));
        let names = std::iter::once(("id", self.id.unwrap_or(self.name))).chain(alias);
        names.filter(|(_, name)| !is_placeholder(name))
    }

    /// Returns these names, and the last segment of the path, if the resource is also found by it because it has no id.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = (&'static str, &'r str)> {
        let segment = self.alias.filter(|alias| self.id.is_none() && *alias != self.name);
        self.unique().chain(segment.map(|_| ("alias", self.name)))
    }

    /// Returns the entry of `listing` that is the resource.
    pub fn find<'l>(&self, listing: &'l Listing) -> Match<'l>
    where
        'r: 'l,
    {
        let segment = self.alias.and_then(|_| self.segment());
        let with_alias = self.alias.into_iter().chain(segment).flat_map(|alias| listing.with_alias(alias));
        let mut found: Vec<&Entry> = Vec::new();
        for entry in listing.with_id(self.id.unwrap_or(self.name)).chain(with_alias) {
            if !found.iter().any(|known| std::ptr::eq(*known, entry)) {
                found.push(entry);
            }
        }
        let by_member = found.is_empty() && self.by_members && self.id.is_none();
        if by_member {
            found.extend(listing.with_member(self.name));
        }
        // A number that the server assigned may happen to be the name of another resource.
        let is_named = |entry: &Entry| !entry.states.alias || self.answers_to(&entry.alias);
        if found.len() > 1 && self.states_alias && self.has_only_its_name() {
            found.retain(|entry| is_named(entry) || !entry.states.number);
        }
        match found[..] {
            [] => Match::Nothing,
            [entry] if by_member => Match::Member(entry),
            [entry] => Match::Entry(entry),
            _ => Match::Several(found.iter().map(|entry| entry.remote_id.clone()).collect()),
        }
    }

    /// Whether the last segment of the path is its alias, and its id is unknown.
    pub(crate) fn has_only_its_name(&self) -> bool {
        self.id.is_none() && self.alias == Some(self.name)
    }

    /// Whether an object with this id and this alias is the resource, or may be.
    pub fn is(&self, remote_id: &str, alias: &str) -> bool {
        self.is_by(remote_id, alias, |name, other| name == other)
    }

    /// Like [`Self::is`], but ignores what some servers ignore in names.
    pub fn is_like(&self, remote_id: &str, alias: &str) -> bool {
        self.is_by(remote_id, alias, is_alike)
    }

    fn is_by(&self, remote_id: &str, alias: &str, same: fn(&str, &str) -> bool) -> bool {
        let ids = same(remote_id, self.id.unwrap_or(self.name));
        let is_segment = || self.segment().is_some_and(|segment| same(alias, segment));
        let aliases = self.alias.is_some_and(|wanted| same(alias, wanted) || is_segment());
        ids || aliases
    }

    /// Whether `shown` is an alias of the resource.
    pub fn answers_to(&self, shown: &str) -> bool {
        self.alias == Some(shown) || self.segment() == Some(shown)
    }

    /// Returns the last segment of the path, if it may be an alias.
    fn segment(&self) -> Option<&'r str> {
        (!self.ignores_segment).then_some(self.name)
    }

    /// Whether `shown` is an alias that only the last segment of the path is, although the payload states another one.
    pub(crate) fn is_only_segment(&self, shown: &str) -> bool {
        self.states_alias && self.alias.is_some_and(|alias| !is_alike(alias, shown)) && self.name == shown
    }
}

/// Whether two names differ at most in the case of letters, in accents, or in the form in which Unicode writes them.
/// Some servers, and the collations of some databases, ignore these differences.
pub(crate) fn is_alike(name: &str, other: &str) -> bool {
    if name.is_ascii() && other.is_ascii() {
        return name.eq_ignore_ascii_case(other);
    }
    folded(name).eq(folded(other))
}

/// Whether an id is that of no resource yet: some servers show the id of its type that means none.
pub(crate) fn is_unset(id: &str) -> bool {
    id.parse::<i64>().is_ok_and(|number| number <= 0)
        || id.contains('-') && id.chars().all(|character| matches!(character, '0' | '-'))
}

fn folded(name: &str) -> impl Iterator<Item = char> {
    const FORM: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfkd();
    const MARKS: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMapBorrowed::new();
    let letters = FORM.normalize_iter(name.chars()).filter(|letter| MARKS.get_u8(*letter) == 0);
    // The upper case of some letters, such as those of the Greek sigma, is the same.
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

impl Resource {
    /// Whether only its name is known, and a POST creates it, so that the server assigns its id.
    pub(crate) fn gets_its_id_by_post(&self) -> bool {
        Wanted::of(self).has_only_its_name() && self.is_created_by_post()
    }
}

impl Observed {
    /// Returns the observed alias. If id and alias of `wanted` are the same value, returns only the alias of another
    /// resource: some servers ignore a part of the name, such as a suffix, and show the resource without it.
    pub(crate) fn alias(&self, wanted: &Wanted<'_>) -> Option<String> {
        let (payload, rules) = (self.payload.as_ref()?, &self.at.rules);
        let alias = rules.identity().alias().evaluate(payload).ok()?;
        if !wanted.one_name {
            return Some(alias);
        }
        let names_others = wanted.alias.is_some() && !rules.resolved().singleton;
        let is_name = || rules.path_names().check(&alias).is_ok();
        let id = rules.identity().id().evaluate(payload);
        let is_other = || !wanted.is_like(id.as_ref().unwrap_or(&alias), &alias);
        (names_others && is_name() && is_other()).then_some(alias)
    }

    /// Returns the observed alias if it is not an alias of `wanted`. Then the resource was renamed, or its id belongs
    /// to another resource.
    pub(crate) fn other_alias(&self, wanted: &Wanted<'_>) -> Option<String> {
        self.alias(wanted).filter(|alias| !wanted.answers_to(alias))
    }

    /// Whether the observed alias is not the one of `wanted`, so that another declared resource may have it. The resource
    /// may have been found by the last segment of its path.
    pub(crate) fn has_unstated_alias(&self, wanted: &Wanted<'_>) -> bool {
        self.alias(wanted).is_some_and(|alias| alias != wanted.alias.unwrap_or(wanted.name))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::metadata::Stated;
    use crate::payload::Value;
    use crate::payload::{PayloadType, decode};

    pub(super) fn listing(entries: &[(&str, &str, &str)]) -> Listing {
        let entries = entries.iter().map(|(id, alias, payload)| Entry {
            alias: (*alias).to_owned(),
            remote_id: (*id).to_owned(),
            payload: if payload.is_empty() {
                Value::Null
            } else {
                decode(PayloadType::Json, payload.as_bytes()).unwrap()
            },
            states: Stated { id: true, alias: true, number: id == &"12" },
            format: None,
        });
        Listing::new(entries.collect())
    }

    const BOTH: Wanted<'static> = Wanted {
        id: None,
        name: "rio",
        alias: Some("rio"),
        states_alias: true,
        one_name: false,
        by_path: false,
        by_members: false,
        ignores_segment: false,
    };

    #[rstest]
    #[case::same("rio", "rio", true)]
    #[case::case("Rio", "rIO", true)]
    #[case::form("caf\u{e9}", "cafe\u{301}", true)]
    #[case::accents("Caf\u{e9}", "cafe", true)]
    #[case::width("\u{ff52}io", "rio", true)]
    #[case::sharp_s("Stra\u{df}e", "STRASSE", true)]
    #[case::sigma("\u{3bf}\u{3b4}\u{3bf}\u{3c2}", "\u{39f}\u{394}\u{39f}\u{3a3}", true)]
    #[case::longer("rio", "rios", false)]
    #[case::longer_without_accents("caf\u{e9}", "cafes", false)]
    #[case::letters("\u{e9}a", "\u{e9}o", false)]
    fn alike(#[case] name: &str, #[case] other: &str, #[case] expected: bool) {
        assert_eq!((is_alike(name, other), is_alike(other, name)), (expected, expected));
    }

    #[rstest]
    #[case::id(Wanted { id: Some("u1"), ..BOTH }, &[("u1", "x", "")], "u1")]
    #[case::alias(BOTH, &[("u1", "rio", "")], "u1")]
    #[case::stale_id(Wanted { id: Some("u9"), ..BOTH }, &[("u1", "rio", "")], "u1")]
    #[case::foreign_id(Wanted { id: Some("u2"), ..BOTH }, &[("u1", "rio", ""), ("u2", "ava", "")], "several u2 u1")]
    #[case::name_of_the_path(Wanted { alias: Some("Rio"), ..BOTH }, &[("u1", "rio", "")], "u1")]
    #[case::alias_and_name(Wanted { alias: Some("Rio"), ..BOTH }, &[("1", "Rio", ""), ("2", "rio", "")], "several 1 2")]
    #[case::name_as_id(BOTH, &[("rio", "x", "")], "rio")]
    #[case::stated_id_hides_the_name(Wanted { id: Some("u1"), alias: None, ..BOTH }, &[("rio", "x", "")], "-")]
    #[case::no_alias_stated(Wanted { alias: None, ..BOTH }, &[("u1", "rio", "")], "-")]
    #[case::display_name(BOTH, &[("7", "bob", r#"{"name":"rio"}"#)], "-")]
    #[case::no_rules(Wanted { alias: None, by_members: true, ..BOTH }, &[("7", "7", r#"{"name":"rio"}"#)], "member 7")]
    #[case::number_of_another(Wanted { name: "12", alias: Some("12"), ..BOTH }, &[("12", "x", ""), ("3", "12", "")], "3")]
    #[case::number_alone(Wanted { name: "12", alias: Some("12"), ..BOTH }, &[("12", "x", "")], "12")]
    #[case::text_of_another(BOTH, &[("rio", "x", ""), ("3", "rio", "")], "several rio 3")]
    #[case::twice(BOTH, &[("1", "rio", ""), ("2", "rio", "")], "several 1 2")]
    fn matches(#[case] wanted: Wanted<'_>, #[case] entries: &[(&str, &str, &str)], #[case] expected: &str) {
        let listing = listing(entries);
        let found = match wanted.find(&listing) {
            Match::Entry(entry) => entry.remote_id.clone(),
            Match::Member(entry) => format!("member {}", entry.remote_id),
            Match::Several(ids) => format!("several {}", ids.join(" ")),
            Match::Nothing => "-".to_owned(),
        };
        assert_eq!(found, expected);
    }
}
