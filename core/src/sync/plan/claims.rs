//! The names and addresses of all declared resources. Candidates for deletion are compared with them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::address::{Address, comparable, has_unfilled_address, stated_addresses, states_address};
use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, RepositoryError, ResourceFile};
use crate::sync::model::{SyncError, Wanted};
use crate::sync::observe::{Remote, desired};
use crate::sync::tasks::blocking;

/// Members whose values servers commonly accept in place of an id.
const NAMES: [&str; 7] = ["name", "id", "uid", "uuid", "key", "username", "clientId"];

/// The number of declared resources with one name that are read before and after a deletion.
const TWINS: usize = 3;

/// The declared resources of one collection.
#[derive(Default)]
pub struct Collection {
    members: Vec<ResourceFile>,
    /// Whether metadata states the address of some of them.
    pub addressed: bool,
    /// Whether its path is that of a declared resource, which may have another name on the server.
    pub of_resource: bool,
    /// The reason why a member cannot be compared.
    broken: Option<String>,
    compared: OnceCell<Compared>,
}

/// What candidates are compared with in one collection.
#[derive(Default)]
pub struct Compared {
    pub claims: Vec<Claim>,
    /// The reason why a member cannot be compared. It may be the candidate.
    pub broken: Option<String>,
}

/// The names and the address of a declared resource.
pub struct Claim {
    pub path: LogicalPath,
    /// The name in the last segment of the path.
    pub name: String,
    /// Its collection on the server.
    pub collection: String,
    /// The address of the resource [alone](Address::alone).
    pub address: Option<Address>,
    /// The address of its list, if only that shows it.
    pub listed: Option<Address>,
    /// All of its addresses, if metadata states them.
    pub addresses: Option<[Address; 3]>,
    pub id: Option<String>,
    pub alias: Option<String>,
    pub rules: Arc<Rules>,
}

impl Claim {
    /// Whether its own rules name a resource with this content like it. Metadata may have changed since the content was
    /// declared.
    pub fn names(&self, payload: &Value) -> bool {
        let (id, alias) = (self.rules.identity().id(), self.rules.identity().alias());
        let (id, alias) =
            (id.evaluate(payload).unwrap_or_default(), alias.evaluate(payload).unwrap_or_default());
        !(id.is_empty() && alias.is_empty()) && self.wanted().is(&id, &alias)
    }

    /// Whether the resource states no names, and the last segment of its path is a usual name in this content.
    pub fn has_name_in(&self, payload: &Value) -> bool {
        let is_name = |member: &&str| {
            payload.get(member).and_then(Value::scalar_text).is_some_and(|name| name == self.name)
        };
        self.id.is_none() && self.alias.is_none() && NAMES.iter().any(is_name)
    }

    pub fn wanted(&self) -> Wanted<'_> {
        let (id, name, alias) = (self.id.as_deref(), self.name.as_str(), self.alias.as_deref());
        Wanted { id, name, alias, ..Wanted::default() }
    }
}

/// The claims of all resources that the target revision declares.
pub struct Claims {
    remote: Arc<Remote>,
    collections: OnceCell<BTreeMap<LogicalPath, Collection>>,
    /// For each name of a collection with the name of a member, the declared resources with the fewest parents.
    twins: OnceCell<HashMap<Box<str>, Vec<LogicalPath>>>,
}

impl Claims {
    pub fn new(remote: &Arc<Remote>) -> Self {
        Self { remote: Arc::clone(remote), collections: OnceCell::new(), twins: OnceCell::new() }
    }

    /// All resources that the target revision declares, by their collections. `path` is named in errors.
    pub async fn all(&self, path: &LogicalPath) -> Result<&BTreeMap<LogicalPath, Collection>, SyncError> {
        self.collections.get_or_try_init(|| self.declared(path)).await
    }

    /// Declared resources with the same name as `candidate`, in other collections with the same name, those with the fewest
    /// parents. The server may show one resource in several of them.
    pub async fn twins(&self, candidate: &LogicalPath) -> Result<Vec<LogicalPath>, SyncError> {
        let Some(names) = last_names(candidate) else { return Ok(Vec::new()) };
        let collections = self.all(candidate).await?;
        let twins = async || {
            let mut twins: HashMap<Box<str>, Vec<LogicalPath>> = HashMap::new();
            for path in collections.values().flat_map(|collection| &collection.members).map(|file| &file.path)
            {
                let Some(names) = last_names(path) else { continue };
                let alike = twins.entry(names.into()).or_default();
                let place = alike.partition_point(|it| it.segments().count() <= path.segments().count());
                if place < TWINS {
                    alike.insert(place, path.clone());
                    alike.truncate(TWINS);
                }
            }
            twins
        };
        Ok(self.twins.get_or_init(twins).await.get(names).cloned().unwrap_or_default())
    }

    /// The names and addresses of the members of a collection.
    pub async fn of<'c>(
        &self,
        path: &LogicalPath,
        collection: &'c Collection,
    ) -> Result<&'c Compared, SyncError> {
        let read = async || {
            let Compared { claims, broken } = self.read(path, &collection.members).await?;
            Ok(Compared { claims, broken: broken.or_else(|| collection.broken.clone()) })
        };
        collection.compared.get_or_try_init(read).await
    }

    async fn declared(&self, path: &LogicalPath) -> Result<BTreeMap<LogicalPath, Collection>, SyncError> {
        let session = self.remote.session.clone();
        blocking(path.clone(), move || {
            let listing = repository::resources(session.tree.as_ref(), &LogicalPath::root(), true)?;
            let mut collections: BTreeMap<LogicalPath, Collection> = BTreeMap::new();
            for file in listing.resources {
                let Some(path) = file.path.parent() else { continue };
                let collection = collections.entry(path).or_default();
                // If the rules cannot be read, the member may be anywhere.
                collection.addressed |= match session.metadata.rules(&file.path) {
                    Ok(rules) => states_address(&rules),
                    Err(_) => true,
                };
                collection.members.push(file);
            }
            for (path, error) in listing.broken {
                // A directory without a usable name, or metadata that cannot be read, may address its resources anywhere.
                let is_named = !matches!(
                    error,
                    RepositoryError::DirectoryName { .. } | RepositoryError::NameNotUtf8 { .. }
                );
                let rules = session.metadata.rules(&path).ok().filter(|_| is_named);
                let collection = collections.entry(path.parent().unwrap_or(path)).or_default();
                collection.addressed |= rules.is_none_or(|rules| states_address(&rules));
                collection.broken = Some(error.to_string());
            }
            let paths: HashSet<LogicalPath> =
                collections.values().flat_map(|it| &it.members).map(|file| file.path.clone()).collect();
            for (path, collection) in &mut collections {
                collection.of_resource = paths.contains(path);
            }
            Ok(collections)
        })
        .await
    }

    /// Returns the names and addresses of the members of a collection.
    async fn read(&self, path: &LogicalPath, members: &[ResourceFile]) -> Result<Compared, SyncError> {
        let located = self.remote.located(path).await.map_err(|error| error.to_string());
        let (members, remote) = (members.to_vec(), Arc::clone(&self.remote));
        let runtime = Handle::current();
        blocking(path.clone(), move || {
            let mut compared = Compared::default();
            for file in members {
                let claim = match &located {
                    Ok(located) => claim(&remote, &runtime, located, file).map_err(|error| error.to_string()),
                    Err(why) => Err(why.clone()),
                };
                match claim {
                    Ok(claim) => compared.claims.extend(claim),
                    Err(why) => compared.broken = Some(why),
                }
            }
            Ok(compared)
        })
        .await
    }
}

/// Returns the last two segments of `path`.
fn last_names(path: &LogicalPath) -> Option<&str> {
    let (start, _) = path.as_str().rmatch_indices('/').nth(1)?;
    Some(&path.as_str()[start..])
}

/// Returns the names and the address of the resource in `file`, whose collection is `located` on the server. Returns
/// `None` if its address contains the value of a resource that does not exist: then it does not exist either. Blocks, also
/// in templates that read other resources.
fn claim(
    remote: &Remote,
    runtime: &Handle,
    located: &LogicalPath,
    file: ResourceFile,
) -> Result<Option<Claim>, SyncError> {
    let (session, path) = (&remote.session, file.path.clone());
    let mut declared = desired(session, file)?;
    declared = runtime.block_on(remote.with_known_names(declared))?;
    if let Some(moved) = located.child(path.name()).ok().filter(|moved| *moved != path) {
        declared = declared.moved(moved);
    }
    match runtime.block_on(remote.with_template_values(declared)) {
        Ok((known, None)) => declared = known,
        // Its address contains the value of a resource that does not exist, so it does not exist either.
        Ok((_, Some(_))) => return Ok(None),
        Err(error) if error.lacks_reference() => return Ok(None),
        Err(error) => return Err(error),
    }
    if declared.holds_references && states_address(&declared.rules) && has_unfilled_address(&declared) {
        match runtime.block_on(remote.filled(declared.clone())) {
            Ok((filled, None)) => declared = filled,
            // Its address may contain the value, so only its names are known.
            Ok((_, Some(_))) | Err(SyncError::Reference { .. } | SyncError::MalformedReference(..)) => {}
            Err(error) => return Err(error),
        }
    }
    let evaluation = declared.unobserved()?;
    let address = Address::alone(&evaluation, &declared.rules);
    // An address that metadata states decides whether it is the same resource, unless only a list shows it.
    let decides = states_address(&declared.rules) && !declared.rules.reads_from_list();
    let address = if decides { address? } else { address.ok().flatten() };
    let listed = Address::of_list(&evaluation, &declared.rules);
    let collection = comparable(evaluation.remote_collection(), declared.rules.path_names());
    let wanted = Wanted::of(&declared);
    let (id, alias) = (wanted.id.map(str::to_owned), wanted.alias.map(str::to_owned));
    let name = declared.name().to_owned();
    let rules = Arc::clone(&declared.rules);
    let addresses = stated_addresses(&declared);
    Ok(Some(Claim { path, name, collection, address, listed, addresses, id, alias, rules }))
}

/// Returns the error of a candidate that cannot be compared with a declared resource.
pub fn not_comparable(why: &str) -> SyncError {
    SyncError::NotDeleted(format!("a declared resource that may be the same one cannot be compared: {why}"))
}
