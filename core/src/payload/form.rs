//! Bodies of forms: `application/x-www-form-urlencoded` (WHATWG URL, section 5).

use url::form_urlencoded::Serializer;

use super::Value;

/// Whether bodies of this media type are forms. Parameters and case are ignored.
pub fn is_form(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Encodes the members of an object. An array becomes several values of its member, and null an empty value. Returns the
/// reason if a part has no form, because servers expect different names for nested members.
pub fn encode(value: &Value) -> Result<Vec<u8>, String> {
    let Value::Object(members) = value else {
        return Err(format!("a form is an object and not {}", value.kind()));
    };
    let mut form = Serializer::new(String::new());
    for (name, member) in members {
        for item in member.as_array().unwrap_or(std::slice::from_ref(member)) {
            let text = if item.is_null() { Some(String::new()) } else { item.scalar_text() };
            let Some(text) = text else {
                return Err(format!(
                    "a value of \"{name}\" is {}; a form has texts, numbers and booleans, so change it in the transforms \
                     of the operation",
                    item.kind()
                ));
            };
            form.append_pair(name, &text);
        }
    }
    Ok(form.finish().into_bytes())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case(
        r#"{"name": "a b&c", "size": 3, "open": true, "none": null}"#,
        Ok("name=a+b%26c&none=&open=true&size=3")
    )]
    #[case(r#"{"ip": ["10.0.0.1", "10.0.0.2"], "empty": []}"#, Ok("ip=10.0.0.1&ip=10.0.0.2"))]
    #[case("{}", Ok(""))]
    #[case(r#"{"a": {"b": 1}}"#, Err("a value of \"a\" is an object"))]
    #[case(r#"{"a": [[1]]}"#, Err("a value of \"a\" is an array"))]
    #[case("[1]", Err("a form is an object and not an array"))]
    fn forms(#[case] value: &str, #[case] expected: Result<&str, &str>) {
        let value = decode(PayloadType::Json, value.as_bytes()).unwrap();
        match (encode(&value), expected) {
            (Ok(form), Ok(expected)) => assert_eq!(String::from_utf8(form).unwrap(), expected),
            (Err(reason), Err(expected)) => assert!(reason.starts_with(expected), "{reason}"),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[rstest]
    #[case("application/x-www-form-urlencoded", true)]
    #[case("Application/X-WWW-Form-Urlencoded; charset=utf-8", true)]
    #[case("application/json", false)]
    fn media_types(#[case] media_type: &str, #[case] form: bool) {
        assert_eq!(is_form(media_type), form);
    }
}
