//! Tests of formats, extensions and media types.

use rstest::rstest;

use super::*;
use crate::payload::Class;

fn described(descriptor: &Descriptor) -> (&str, &str, &str) {
    (descriptor.payload_type.name(), descriptor.media_type, &descriptor.extension)
}

#[rstest]
#[case(PayloadType::Json, Class::Structured, "application/json", ".json")]
#[case(PayloadType::Yaml, Class::Structured, "application/yaml", ".yaml")]
#[case(PayloadType::Ini, Class::Structured, "application/ini", ".ini")]
#[case(PayloadType::Properties, Class::Structured, "text/x-java-properties", ".properties")]
#[case(PayloadType::Xml, Class::Text, "application/xml", ".xml")]
#[case(PayloadType::Hcl, Class::Text, "application/hcl", ".hcl")]
#[case(PayloadType::Text, Class::Text, "text/plain", ".txt")]
#[case(PayloadType::OctetStream, Class::Binary, "application/octet-stream", ".bin")]
fn types(#[case] of: PayloadType, #[case] class: Class, #[case] media_type: &str, #[case] extension: &str) {
    assert_eq!((of.class(), of.media_type(), of.extension()), (class, media_type, extension));
    assert_eq!(described(&Descriptor::of(of)), (of.name(), media_type, extension));
    assert_eq!(PayloadType::parse_name(of.name()), Some(of));
    assert_eq!(Descriptor::from_media_type(of.name()), Some(Descriptor::of(of)));
}

#[rstest]
#[case("binary", Some(PayloadType::OctetStream))]
#[case("txt", Some(PayloadType::Text))]
#[case(" YAML ", Some(PayloadType::Yaml))]
#[case("any", None)]
#[case("yml", None)]
#[case("", None)]
fn names(#[case] name: &str, #[case] expected: Option<PayloadType>) {
    assert_eq!(PayloadType::parse_name(name), expected);
}

#[rstest]
#[case(".json", "json", "application/json")]
#[case(".yaml", "yaml", "application/yaml")]
#[case(".yml", "yaml", "application/yaml")]
#[case(".ini", "ini", "application/ini")]
#[case(".properties", "properties", "text/x-java-properties")]
#[case(".props", "properties", "text/x-java-properties")]
#[case(".xml", "xml", "application/xml")]
#[case(".hcl", "hcl", "application/hcl")]
#[case(".txt", "text", "text/plain")]
#[case(".text", "text", "text/plain")]
#[case(".csv", "text", "text/csv")]
#[case(".html", "text", "text/html")]
#[case(".htm", "text", "text/html")]
#[case(".css", "text", "text/css")]
#[case(".js", "text", "text/javascript")]
#[case(".bin", "octet-stream", "application/octet-stream")]
#[case(".YAML", "yaml", "application/yaml")]
#[case(".sh", "octet-stream", "application/octet-stream")]
#[case(".", "octet-stream", "application/octet-stream")]
fn extensions(#[case] extension: &str, #[case] name: &str, #[case] media_type: &str) {
    assert_eq!(described(&Descriptor::from_extension(extension)), (name, media_type, extension));
    assert_eq!(described(&Descriptor::from_extension(&extension[1..])), (name, media_type, extension));
}

#[rstest]
#[case("application/json", Some(("json", "application/json", ".json")))]
#[case("Application/JSON; charset=utf-8", Some(("json", "application/json", ".json")))]
#[case("application/problem+json", Some(("json", "application/json", ".json")))]
#[case("application/vnd.a+b+json", Some(("json", "application/json", ".json")))]
#[case("application/x-yaml", Some(("yaml", "application/yaml", ".yaml")))]
#[case("text/yaml", Some(("yaml", "application/yaml", ".yaml")))]
#[case("text/x-yaml", Some(("yaml", "application/yaml", ".yaml")))]
#[case("application/openapi+yaml", Some(("yaml", "application/yaml", ".yaml")))]
#[case("text/ini", Some(("ini", "application/ini", ".ini")))]
#[case("text/properties", Some(("properties", "text/x-java-properties", ".properties")))]
#[case("application/properties", Some(("properties", "text/x-java-properties", ".properties")))]
#[case("text/xml", Some(("xml", "application/xml", ".xml")))]
#[case("image/svg+xml", Some(("xml", "application/xml", ".xml")))]
#[case("text/hcl", Some(("hcl", "application/hcl", ".hcl")))]
#[case("text/csv", Some(("text", "text/csv", ".csv")))]
#[case("text/html", Some(("text", "text/html", ".html")))]
#[case("text/css", Some(("text", "text/css", ".css")))]
#[case("application/javascript", Some(("text", "text/javascript", ".js")))]
#[case("application/x-javascript", Some(("text", "text/javascript", ".js")))]
#[case("txt", Some(("text", "text/plain", ".txt")))]
#[case("binary", Some(("octet-stream", "application/octet-stream", ".bin")))]
#[case("image/png", None)]
#[case("application/+json", None)]
#[case("+json", None)]
#[case("", None)]
fn media_types(#[case] media_type: &str, #[case] expected: Option<(&str, &str, &str)>) {
    assert_eq!(Descriptor::from_media_type(media_type).as_ref().map(described), expected);
}
