//! Definitions that the in-process API cannot serve.

use serde_json::json;

use super::widgets::crd;
use crate::standalone::{Api, ApiError};

#[test]
fn definitions_that_cannot_be_served_are_rejected() {
    let mut several = crd();
    several.spec.versions.push(several.spec.versions[0].clone());
    assert!(matches!(Api::new(vec![several]), Err(ApiError::Versions(_))));

    let mut without = crd();
    without.spec.versions[0].schema = None;
    assert!(matches!(Api::new(vec![without]), Err(ApiError::NoSchema(_))));

    let mut source = serde_json::to_value(crd()).unwrap();
    source["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": "self.spec +"}]);
    let broken = Api::new(vec![serde_json::from_value(source).unwrap()]);
    let Err(error @ ApiError::Rule { .. }) = broken else { panic!("compiled: {broken:?}") };
    assert!(error.to_string().starts_with("rule `self.spec +` of CRD widgets.example.io cannot be compiled"));
}
