//! `resource request`.

use std::sync::Arc;

use clap::{Args, Subcommand};
use declarest_core::error::{Categorized as _, Category};
use declarest_core::metadata::{Evaluation, Identity, OperationName, Rules, Subject};
use declarest_core::path::{LogicalPath, PathNames};
use declarest_core::payload::{Descriptor, PayloadType, Value, encode};
use declarest_core::repository;
use declarest_core::secrets::{Scope, find_placeholder};
use declarest_core::server::{Body, Request, Response, ServerError};
use declarest_core::sync::{self, Resource, Session, Stop};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};

use super::delete;
use super::envelope::EnvelopeArgument;
use crate::error::Failure;
use crate::input::{Literals, Payload, PayloadArguments, accepts_documents};
use crate::interrupt::{block_on, finish};
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::{PathArguments, Target};
use crate::workspace::Workspace;

#[derive(Debug, Subcommand)]
pub enum RequestCommand {
    /// Send GET, by the metadata of get or, for a path that ends in "/", of list
    Get(RequestArguments),
    /// Send HEAD
    Head(RequestArguments),
    /// Send OPTIONS
    Options(RequestArguments),
    /// Send POST, by the metadata of create
    #[command(mut_arg("payload", accepts_documents))]
    Post(RequestArguments),
    /// Send PUT, by the metadata of update
    #[command(mut_arg("payload", accepts_documents))]
    Put(RequestArguments),
    /// Send PATCH, by the metadata of update
    #[command(mut_arg("payload", accepts_documents))]
    Patch(RequestArguments),
    /// Delete resources on the server, by the metadata of delete
    Delete(DeleteRequestArguments),
    /// Send TRACE
    Trace(RequestArguments),
    /// Send CONNECT
    Connect(RequestArguments),
}

#[derive(Debug, Args)]
pub struct RequestArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    input: PayloadArguments,
    /// Header of the request, which overrides that of metadata; may be repeated
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Media type of the Accept header
    #[arg(long, value_name = "TYPE")]
    accept_type: Option<String>,
    #[command(flatten)]
    envelope: EnvelopeArgument,
}

#[derive(Debug, Args)]
pub struct DeleteRequestArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Confirm the deletion; required
    #[arg(short, long)]
    yes: bool,
    /// Include all resources below the path that the repository declares
    #[arg(short, long)]
    recursive: bool,
}

impl RequestCommand {
    /// Returns whether the last line on standard error reports success or failure.
    pub fn prints_footer(&self) -> bool {
        !matches!(self, Self::Get(_) | Self::Head(_) | Self::Options(_) | Self::Trace(_))
    }
}

/// Sends a request and prints the body of its answer.
pub fn run(command: &RequestCommand, invocation: &Invocation) -> Result<(), Failure> {
    let (method, arguments) = match command {
        RequestCommand::Get(arguments) => (Method::GET, arguments),
        RequestCommand::Head(arguments) => (Method::HEAD, arguments),
        RequestCommand::Options(arguments) => (Method::OPTIONS, arguments),
        RequestCommand::Post(arguments) => (Method::POST, arguments),
        RequestCommand::Put(arguments) => (Method::PUT, arguments),
        RequestCommand::Patch(arguments) => (Method::PATCH, arguments),
        RequestCommand::Trace(arguments) => (Method::TRACE, arguments),
        RequestCommand::Connect(arguments) => (Method::CONNECT, arguments),
        RequestCommand::Delete(arguments) => return delete(arguments, invocation),
    };
    let output = invocation.output(OutputPolicy::Payload)?;
    let target = arguments.path.target(invocation)?;
    let headers = arguments.headers()?;
    let writes = matches!(method, Method::POST | Method::PUT | Method::PATCH);
    let literals = if writes { Literals::Inline } else { Literals::Refused };
    let input = arguments.input.payload(literals)?;
    let (value, descriptor) = block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let call = Call { method, target: &target, headers, workspace: &workspace };
        if writes { finish(&Stop::default(), call.send(input)).await } else { call.send(input).await }
    })?;
    if command.prints_footer() && invocation.settings.verbosity == 0 {
        return Ok(());
    }
    arguments.envelope.show(&output, value, &descriptor)
}

fn delete(arguments: &DeleteRequestArguments, invocation: &Invocation) -> Result<(), Failure> {
    if !arguments.yes {
        return Err(Failure::invalid("resource request delete cannot be undone; confirm it with --yes"));
    }
    let target = arguments.path.target(invocation)?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        delete::on_server(&workspace, &target.path, arguments.recursive, invocation).await
    })
}

impl RequestArguments {
    /// Returns the headers of the flags.
    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
        let mut headers = Vec::new();
        if let Some(accept) = self.accept_type.as_deref().map(str::trim).filter(|accept| !accept.is_empty()) {
            headers.push((ACCEPT, media_type("--accept-type", accept)?));
        }
        if let Some(content_type) = self.input.media_type() {
            headers.push((CONTENT_TYPE, media_type("--content-type", content_type)?));
        }
        for text in &self.header {
            headers.push(header(text)?);
        }
        Ok(headers)
    }
}

fn media_type(flag: &str, text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| Failure::invalid(format!("{flag} {text:?} is not a media type")))
}

/// Parses `Name: value` or `Name=value`. Messages do not contain the value, because it may be a secret.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let invalid = |name: &str| {
        Failure::invalid(format!("--header \"{name}\" is not a header; write it as \"Name: value\""))
    };
    let has_no_value =
        || Failure::invalid("--header has neither \":\" nor \"=\"; write it as \"Name: value\"");
    let (name, value) = text.split_once([':', '=']).ok_or_else(has_no_value)?;
    let name = name.trim();
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(name))?;
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| invalid(name))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// One request.
struct Call<'a> {
    method: Method,
    target: &'a Target,
    headers: Vec<(HeaderName, HeaderValue)>,
    workspace: &'a Workspace<'a>,
}

impl Call<'_> {
    /// Sends the request, and returns the body of the answer. If the address of metadata does not exist, PUT and PATCH
    /// are sent to the path itself.
    async fn send(&self, input: Option<Payload>) -> Result<(Value, Descriptor), Failure> {
        let session = self.workspace.session()?;
        if let Some(at) = input.as_ref().and_then(|input| find_placeholder(&input.value)) {
            return Err(Failure::invalid(format!(
                "the payload has a placeholder at \"{at}\", which would be sent as text; give the value, or no payload: \
                 that of the repository is sent with its secrets"
            )));
        }
        let request = self.request(&session, input).await?;
        let mut sent = self.exchange(&session, &request).await;
        let elsewhere = request.path != self.target.path.as_str()
            && matches!(self.method, Method::PUT | Method::PATCH)
            && sent.as_ref().is_err_and(|error| error.category() == Category::NotFound);
        if elsewhere {
            let literal = Request { path: self.target.path.to_string(), ..request };
            sent = self.exchange(&session, &literal).await;
        }
        let response = sent?;
        // The request was done, so its answer is shown even if it has another format than it states.
        let as_bytes = |_| response.decode(Some(PayloadType::OctetStream));
        let value = response.decode(None).or_else(as_bytes)?;
        let descriptor = response.descriptor_of(&value);
        Ok((value, descriptor.unwrap_or_else(|| Descriptor::of(PayloadType::Json))))
    }

    async fn exchange(&self, session: &Session, request: &Request) -> Result<Response, ServerError> {
        if request.method.is_safe() {
            return session.client.send(request).await;
        }
        session.client.writing(&self.target.path, request).send(request).await
    }

    async fn request(&self, session: &Session, input: Option<Payload>) -> Result<Request, Failure> {
        let path = &self.target.path;
        let rules = self.workspace.metadata.rules(path)?;
        let operation = self.operation();
        let mut payload = input;
        if payload.is_none() && matches!(operation, Some(OperationName::Create | OperationName::Update)) {
            payload = self.declared(session).await?;
        }
        // If neither metadata nor the `OpenAPI` document describes the path, the request is literal.
        let mut request = if let Some(operation) = operation.filter(|_| !rules.stated().is_empty()) {
            self.by_metadata(&rules, operation, payload.as_ref())?
        } else {
            let confidential = sync::confidential(rules.resolved(), &[]);
            let encoded = rules.path_names() == PathNames::PercentEncoded;
            Request { confidential, encoded, ..literal(&self.method, path, payload.as_ref())? }
        };
        request.headers.retain(|(known, _)| self.headers.iter().all(|(name, _)| name != known));
        for (name, value) in &self.headers {
            match (&mut request.body, name) {
                (Some(body), name) if *name == CONTENT_TYPE => {
                    body.media_type = String::from_utf8_lossy(value.as_bytes()).into_owned();
                }
                (_, name) if *name == ACCEPT => {
                    request.accept = Some(String::from_utf8_lossy(value.as_bytes()).into());
                }
                _ => request.headers.push((name.clone(), value.clone())),
            }
        }
        Ok(request)
    }

    /// Returns the operation whose metadata applies.
    fn operation(&self) -> Option<OperationName> {
        match self.method {
            Method::GET if self.target.explicit_collection => Some(OperationName::List),
            Method::GET => Some(OperationName::Get),
            Method::POST => Some(OperationName::Create),
            Method::PUT | Method::PATCH => Some(OperationName::Update),
            _ => None,
        }
    }

    /// Returns the request of `operation` for a resource or, if the path is that of a collection, for the collection.
    fn by_metadata(
        &self,
        rules: &Rules,
        operation: OperationName,
        payload: Option<&Payload>,
    ) -> Result<Request, Failure> {
        let path = &self.target.path;
        if self.is_collection()? {
            return self.rendered(&rules.on_collection(path)?, operation, payload);
        }
        let seed = rules.seed(path);
        let scope = payload.map_or(&seed, |payload| &payload.value);
        let named = rules.identify(path, scope).or_else(|_| rules.identify(path, &seed));
        let identity = named.unwrap_or_else(|_| {
            let name = rules.path_names().decode(path.name()).into_owned();
            Identity { alias: name.clone(), remote_id: name }
        });
        let descriptor = payload.map(|payload| &payload.descriptor);
        let subject = Subject { path, identity: &identity, payload: Some(scope), descriptor };
        self.rendered(&rules.on_resource(subject)?, operation, payload)
    }

    fn rendered(
        &self,
        evaluation: &Evaluation<'_>,
        operation: OperationName,
        payload: Option<&Payload>,
    ) -> Result<Request, Failure> {
        let mut request = match payload {
            Some(payload) => sync::request(evaluation, operation, &payload.value)?,
            None => sync::request_without_payload(evaluation, operation)?,
        };
        // The method of the command counts unless a document states another.
        if evaluation.rules().resolved().operation(operation).method.is_none() {
            request.method = self.method.clone();
        }
        Ok(request)
    }

    /// Returns whether the path is that of a collection: by a slash at its end, by metadata, or by a directory of the
    /// repository that is not a resource.
    fn is_collection(&self) -> Result<bool, Failure> {
        let (path, tree) = (&self.target.path, self.workspace.tree.as_ref());
        if self.target.explicit_collection || path.is_root() {
            return Ok(true);
        }
        if repository::resource_file(tree, path)?.is_some() {
            return Ok(false);
        }
        Ok(self.workspace.metadata.has_wildcard_child(path)? || tree.entries(path.relative())?.is_some())
    }

    /// Returns the payload that the repository declares, with its secrets.
    async fn declared(&self, session: &Session) -> Result<Option<Payload>, Failure> {
        if self.target.path.is_root() {
            return Ok(None);
        }
        let Some(resource) = self.workspace.declared(&self.target.path)? else { return Ok(None) };
        let Resource { path, payload, descriptor, .. } = resource;
        let resolved = session.secrets.resolve(&Scope::Resource(path), descriptor.as_ref(), payload).await?;
        let descriptor = descriptor.unwrap_or_else(|| Descriptor::of(PayloadType::Json));
        Ok(Some(Payload { value: Arc::unwrap_or_clone(resolved.payload), descriptor, stated: false }))
    }
}

fn literal(method: &Method, path: &LogicalPath, payload: Option<&Payload>) -> Result<Request, Failure> {
    let mut request = Request::new(method.clone(), path.as_str());
    if let Some(Payload { value, descriptor, .. }) = payload {
        // YAML is a form in which people write JSON.
        let json = Descriptor::of(PayloadType::Json);
        let descriptor = if descriptor.payload_type == PayloadType::Yaml { &json } else { descriptor };
        let bytes = encode(descriptor.payload_type, value)?.into();
        request.body = Some(Body { media_type: descriptor.media_type.to_owned(), bytes });
    }
    Ok(request)
}
