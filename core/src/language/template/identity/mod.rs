//! The kind of template that renders the name of a resource from its payload.

mod error;
mod parse;
mod template;

pub use error::IdentityError;
pub use template::IdentityTemplate;

#[cfg(test)]
mod tests;
