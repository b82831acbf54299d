//! A certificate authority.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

pub struct Authority {
    /// Its own certificate.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub struct Certified {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Result<Self, rcgen::Error> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let pem = parameters.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(parameters, key) })
    }

    /// Signs a new certificate for these names and addresses.
    pub fn certify(&self, names: &[&str]) -> Result<Certified, rcgen::Error> {
        let key = KeyPair::generate()?;
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.issuer)?;
        Ok(Certified { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
