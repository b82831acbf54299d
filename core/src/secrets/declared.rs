//! Replaces the declared secrets of a resource with placeholders before it is shown.

use super::mask::{has_any, hidden, mask, mask_list};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The secrets in the payloads of one resource, as its metadata declares them.
///
/// It can also learn the values of the declared attributes, so that they stay hidden after a transform has moved
/// them.
///
/// A payload without any of the declared attributes may be a list of resources, so the whole payload is searched. It
/// is better to hide too much than to show a secret.
#[derive(Clone, Default)]
pub struct DeclaredSecrets {
    whole: bool,
    attributes: Vec<Pointer>,
    /// Places that apply only from the root of the payload.
    places: Vec<Pointer>,
    values: Vec<Value>,
    /// Whether a learnt payload had a declared attribute, and so is one resource.
    single: bool,
}

impl DeclaredSecrets {
    /// Returns the secrets of a resource whose payload is secret as a `whole`, or at these `attributes`.
    pub fn new(whole: bool, attributes: &[Pointer]) -> Self {
        Self { whole, attributes: attributes.to_vec(), ..Self::default() }
    }

    /// Adds the places where secrets were filled in, from [`Resolved`](super::Resolved). They are secret whether
    /// declared or not.
    pub fn add(&mut self, places: &[Pointer]) {
        for place in places {
            if place.is_root() {
                self.whole = true;
            } else if !self.attributes.contains(place) && !self.places.contains(place) {
                self.places.push(place.clone());
            }
        }
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        !self.whole && self.attributes.is_empty() && self.places.is_empty()
    }

    /// Learns the values at the declared attributes of `payload`, or of its entries if it is an array.
    pub fn learn(&mut self, payload: &Value) {
        self.single |= has_any(payload, &self.attributes);
        let entries = payload.as_array().into_iter().flatten();
        for resource in std::iter::once(payload).chain(entries) {
            let pointers = self.attributes.iter().chain(&self.places);
            for value in pointers.filter_map(|pointer| pointer.get(resource)) {
                // Short texts and other scalars would hide too many other values.
                if value.as_str().is_some_and(|text| text.len() > 3) && !self.values.contains(value) {
                    self.values.push(value.clone());
                }
            }
        }
    }

    /// Returns `payload` with placeholders in place of secrets. Null stays null.
    pub fn conceal(&self, payload: Value) -> Value {
        if self.whole {
            return hidden(payload);
        }
        let single = self.single || has_any(&payload, &self.attributes);
        let payload = mask(payload, &self.places);
        let masked =
            if single { mask(payload, &self.attributes) } else { mask_list(payload, &self.attributes) };
        self.without_values(masked)
    }

    /// Returns `part`, the part of a payload at `at`, with placeholders in place of secrets.
    pub fn conceal_at(&self, at: &Pointer, part: Value) -> Value {
        let at = at.tokens();
        // In a list, a resource may begin at any level.
        let levels = if self.single { 0..=0 } else { 0..=at.len() };
        let at_levels = || levels.clone().map(|level| &at[level..]);
        let is_secret = self.places.iter().any(|place| at.starts_with(place.tokens()))
            || at_levels().any(|at| self.attributes.iter().any(|secret| at.starts_with(secret.tokens())));
        if self.whole || is_secret {
            return hidden(part);
        }
        let below = |pointers: &[Pointer], at: &[String]| -> Vec<Pointer> {
            let tokens = pointers.iter().filter_map(|pointer| pointer.tokens().strip_prefix(at));
            tokens.map(|tokens| tokens.iter().cloned().collect()).collect()
        };
        let inner = Self {
            whole: false,
            attributes: at_levels().flat_map(|at| below(&self.attributes, at)).collect(),
            places: below(&self.places, at),
            values: self.values.clone(),
            single: self.single,
        };
        inner.conceal(part)
    }

    fn without_values(&self, value: Value) -> Value {
        match value {
            value if self.values.contains(&value) => hidden(value),
            other => other.map_children(|child| self.without_values(child)),
        }
    }
}

impl std::fmt::Debug for DeclaredSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeclaredSecrets(whole: {}, {} attributes)", self.whole, self.attributes.len())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    fn yaml(text: &str) -> Value {
        decode(PayloadType::Yaml, text.as_bytes()).unwrap()
    }

    fn secrets(attributes: &[&str]) -> DeclaredSecrets {
        let attributes: Vec<Pointer> = attributes.iter().map(|text| Pointer::parse(text).unwrap()).collect();
        DeclaredSecrets::new(false, &attributes)
    }

    #[rstest]
    #[case::text("{id: acme, token: s3cret}", "{id: acme, token: '{{secret .}}'}")]
    #[case::number("{id: acme, token: 1}", "{id: acme, token: '{{secret .}}'}")]
    #[case::object("{token: {a: 1}}", "{token: '{{secret .}}'}")]
    #[case::null("{token: null}", "{token: null}")]
    #[case::absent("{id: acme}", "{id: acme}")]
    #[case::placeholder("{token: '{{secret other}}'}", "{token: '{{secret other}}'}")]
    #[case::array("{keys: [a, b]}", "{keys: ['{{secret .}}', b]}")]
    fn declared_attributes(#[case] payload: &str, #[case] expected: &str) {
        assert_eq!(secrets(&["/token", "/keys/0"]).conceal(yaml(payload)), yaml(expected));
    }

    #[test]
    fn a_whole_resource() {
        let secrets = DeclaredSecrets::new(true, &[]);
        assert_eq!(secrets.conceal(yaml("{a: 1}")), yaml("'{{secret .}}'"));
        assert_eq!(secrets.conceal(Value::Null), Value::Null);
    }

    #[rstest]
    #[case("/login/token", "s3cret", "'{{secret .}}'")]
    #[case("/login/token/inner", "s3cret", "'{{secret .}}'")]
    #[case("/login", "{token: x, user: y}", "{token: '{{secret .}}', user: y}")]
    #[case("/log", "{token: x}", "{token: x}")]
    #[case("", "{login: {token: x}}", "{login: {token: '{{secret .}}'}}")]
    fn parts(#[case] at: &str, #[case] part: &str, #[case] expected: &str) {
        let secrets = secrets(&["/login/token"]);
        assert_eq!(secrets.conceal_at(&Pointer::parse(at).unwrap(), yaml(part)), yaml(expected));
    }

    #[test]
    fn places_of_placeholders_are_secret_as_well() {
        let mut secrets = secrets(&[]);
        secrets.add(&[Pointer::parse("/a/0").unwrap()]);
        assert_eq!(secrets.conceal(yaml("{a: [x], b: y}")), yaml("{a: ['{{secret .}}'], b: y}"));
        secrets.add(&[Pointer::default()]);
        assert_eq!(secrets.conceal(yaml("{b: y}")), yaml("'{{secret .}}'"));
    }

    #[test]
    fn learnt_values_are_hidden_at_any_place() {
        let mut secrets = secrets(&["/token", "/on"]);
        secrets.learn(&yaml("{token: s3cret, on: yes}"));
        let moved = yaml("{wrapped: [{value: s3cret}], other: yes}");
        assert_eq!(secrets.conceal(moved), yaml("{wrapped: [{value: '{{secret .}}'}], other: yes}"));
    }

    const LIST: &str = "{page: 1, items: [{id: a, token: x}, {id: b, token: y}]}";

    #[rstest]
    #[case::array("[{token: x}, {id: b}]", "[{token: '{{secret .}}'}, {id: b}]")]
    #[case::list(LIST, "{page: 1, items: [{id: a, token: '{{secret .}}'}, {id: b, token: '{{secret .}}'}]}")]
    #[case::resource("{token: x, parts: [{token: y}]}", "{token: '{{secret .}}', parts: [{token: y}]}")]
    fn lists_of_resources(#[case] payload: &str, #[case] expected: &str) {
        assert_eq!(secrets(&["/token"]).conceal(yaml(payload)), yaml(expected));
    }

    #[rstest]
    #[case::attribute(LIST, "/items/0/token", "x", "'{{secret .}}'")]
    #[case::other_attribute(LIST, "/items/0/id", "a", "a")]
    #[case::entry(LIST, "/items/0", "{id: a, token: x}", "{id: a, token: '{{secret .}}'}")]
    #[case::entries(LIST, "/items", "[{id: a, token: x}]", "[{id: a, token: '{{secret .}}'}]")]
    #[case::array("[{token: x}]", "/0/token", "x", "'{{secret .}}'")]
    #[case::part_of_a_resource("{token: x, parts: [{token: y}]}", "/parts/0/token", "y", "y")]
    fn parts_of_lists(#[case] learnt: &str, #[case] at: &str, #[case] part: &str, #[case] expected: &str) {
        let mut secrets = secrets(&["/token"]);
        secrets.learn(&yaml(learnt));
        assert_eq!(secrets.conceal_at(&Pointer::parse(at).unwrap(), yaml(part)), yaml(expected));
    }
}
