//! The JSON Schema of a catalogue.

use declarest_core::payload::fields::json_schema_of;
use serde_json::Value as Json;

use super::model::Catalogue;
use super::section::{Rule, UNSET, rules, unset};

/// Returns the schema (draft 2020-12), which is derived from the types of the decoder. Only the decoder checks formats
/// of single values and references.
pub fn schema() -> Json {
    let mut schema = json_schema_of::<Catalogue>("Contexts of the declarest command line");
    for (section, definition) in schema["$defs"].as_object_mut().into_iter().flatten() {
        let rules: Vec<_> = rules(section).iter().map(Rule::schema).collect();
        if !rules.is_empty() {
            definition["allOf"] = rules.into();
        }
    }
    schema["$defs"][UNSET] = unset();
    schema
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::{PayloadType, decode};
    use rstest::rstest;

    use super::super::decode_catalogue;
    use super::*;

    fn fits(yaml: &str) -> bool {
        let document = decode(PayloadType::Yaml, yaml.as_bytes()).unwrap().to_json().unwrap();
        jsonschema::validator_for(&schema()).unwrap().is_valid(&document)
    }

    #[test]
    fn a_catalogue_with_every_field_fits() {
        let full = include_str!("../../tests/cli/full.yaml");
        assert!(fits(full));
        decode_catalogue("full.yaml", PayloadType::Yaml, full.as_bytes()).unwrap();
    }

    /// Documents that the schema and the decoder both accept.
    #[rstest]
    #[case("contexts: [{name: a, repository: {}, managedServer: {http: {url: 'https://a.test'}}}]")]
    #[case(
        "contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, metadata: {baseDir: '', bundle: b}}]"
    )]
    #[case("contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, metadata: {}}]")]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: 'https://a.test', requestThrottling: {maxConcurrentRequests: 0, queueSize: 0, requestsPerSecond: 5}}}}]"
    )]
    #[case(
        "contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, secretStore: {file: {path: /s, key: '', keyFile: /k}}}]"
    )]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: 'https://a.test', tls: {clientCertFile: c, clientKeyFile: k}}}}]"
    )]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: 'https://a.test', tls: {clientCertFile: '', caCertFile: c}}}}]"
    )]
    fn schema_and_decoder_accept_the_same(#[case] yaml: &str) {
        decode_catalogue("x", PayloadType::Yaml, yaml.as_bytes()).unwrap();
        assert!(fits(yaml));
    }

    /// Documents that the schema and the decoder both reject.
    #[rstest]
    #[case("contexts: [{name: a, repository: {}}]")]
    #[case("contexts: [{name: a, repository: {filesystem: null}}]")]
    #[case("contexts: [{name: a, managedServer: {}}]")]
    #[case("contexts: [{name: a, repository: {}, managedServer: {}}]")]
    #[case("contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, managedServer: {}}]")]
    #[case("contexts: [{name: a, repository: {filesystem: {}, git: {local: {baseDir: /r}}}}]")]
    #[case(
        "contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, secretStore: {file: {path: /s, key: ' '}}}]"
    )]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: 'https://a.test', requestThrottling: {maxConcurrentRequests: 0}}}}]"
    )]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: 'https://a.test', requestThrottling: {queueSize: 3, requestsPerSecond: 5}}}}]"
    )]
    #[case("contexts: [{name: a, managedServer: {http: {url: 'https://a.test', tls: {clientCertFile: c}}}}]")]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: 'https://a.test', tls: {clientCertFile: c, clientKeyFile: ''}}}}]"
    )]
    #[case("current: dev")]
    #[case("contexts: {}")]
    #[case("contexts: [{name: a}]")]
    #[case("contexts: [{repository: {filesystem: {baseDir: /r}}}]")]
    #[case("contexts: [{name: a, repository: {filesystem: {baseDir: /r}, git: {local: {baseDir: /r}}}}]")]
    #[case(
        "contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, metadata: {baseDir: a, bundle: b}}]"
    )]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: x, auth: {customHeaders: [{header: a, value: b}]}}}}]"
    )]
    #[case("credentials: [{name: a, username: u, password: {prompt: false}}]")]
    #[case("credentials: [{name: a, username: u, password: {prompt: true, other: 1}}]")]
    fn schema_and_decoder_reject_the_same(#[case] yaml: &str) {
        assert!(!fits(yaml));
        assert!(decode_catalogue("x", PayloadType::Yaml, yaml.as_bytes()).is_err());
    }
}
