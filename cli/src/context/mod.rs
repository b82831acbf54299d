//! Contexts: repositories, servers and credentials. They are stored in a catalogue, a file of the user.

mod catalogue;
mod checks;
mod credential;
mod error;
mod mode;
mod model;
mod new;
mod overrides;
mod reference;
mod resolve;
mod schema;
mod secrets;
mod section;
mod statuses;
mod store;
mod value;
mod warnings;

pub use catalogue::{Stored, decode_catalogue, decode_context, file};
pub use credential::Session;
pub use error::CatalogueError;
pub use model::{Catalogue, Context, CustomHeader, FaultyCredential};
pub use new::{NewContext, NewSecretStore};
pub use reference::is_reference;
pub use resolve::{MetadataSource, ProxiedComponent, RepositoryPlace, ResolvedContext};
pub use schema::schema;
pub use secrets::masked;
pub use section::Setting;
pub use value::{SecretText, Text};
