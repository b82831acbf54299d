//! A Kubernetes cluster, reached with a kubeconfig.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use declarest_core::error::{Category, with_causes};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::environment::parse_boolean;
use crate::error::Failure;

/// The longest wait for a connection, and for an answer.
const TIME: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// Namespace of the objects; default is that of the context of the kubeconfig
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// File with the access to the cluster; default is $KUBECONFIG, ~/.kube/config, or that of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    // The global flag without its short form, which is that of the namespace here, as in kubectl.
    /// Do not print a final line with success or failure
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = parse_boolean, help_heading = "Global Flags")]
    skip_result_message: Option<bool>,
}

/// Access to a cluster.
pub struct Cluster {
    pub client: Client,
    /// The namespace of the objects.
    pub namespace: String,
    /// Host and port of the API server.
    server: String,
}

impl Cluster {
    /// Prepares the access. Sends requests only if the kubeconfig has a plugin for credentials.
    pub async fn connect(arguments: &ClusterArguments) -> Result<Self, Failure> {
        let mut config = configuration(arguments).await?;
        config.connect_timeout = Some(TIME);
        config.read_timeout = Some(TIME);
        let namespace = arguments.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let port = config.cluster_url.port_u16().map_or_else(String::new, |port| format!(":{port}"));
        let server = format!("{}{port}", config.cluster_url.host().unwrap_or_default());
        let client = Client::try_from(config).map_err(|error| failure(&error, &server))?;
        Ok(Self { client, namespace, server })
    }

    /// Returns the failure of a request to the API server.
    pub fn failure(&self, error: &kube::Error) -> Failure {
        failure(error, &self.server)
    }
}

async fn configuration(arguments: &ClusterArguments) -> Result<Config, Failure> {
    let ClusterArguments { kubeconfig, kube_context, .. } = arguments;
    let options = KubeConfigOptions { context: kube_context.clone(), ..KubeConfigOptions::default() };
    match kubeconfig {
        Some(file) if !file.is_file() => {
            let message = format!("there is no kubeconfig {}", file.display());
            Err(Failure::new(Category::NotFound, message))
        }
        Some(file) => {
            let read = Kubeconfig::read_from(file).map_err(invalid)?;
            Config::from_custom_kubeconfig(read, &options).await.map_err(invalid)
        }
        None if kube_context.is_some() => Config::from_kubeconfig(&options).await.map_err(invalid),
        None => Config::infer().await.map_err(invalid),
    }
}

fn invalid<E: std::error::Error + 'static>(error: E) -> Failure {
    Failure::invalid(format!("cannot use the kubeconfig: {}", with_causes(&error)))
}

/// Returns the failure of a request. Its hint names the API server if that cannot be reached or refuses the credentials.
fn failure(error: &kube::Error, server: &str) -> Failure {
    let (category, message) = match error {
        kube::Error::Api(status) => {
            let category = match status.code {
                401 | 403 => Category::Auth,
                404 => Category::NotFound,
                _ => Category::Transport,
            };
            (category, format!("the API server answered {}: {}", status.code, status.message))
        }
        kube::Error::Auth(cause) => {
            (Category::Auth, format!("cannot log in to the cluster: {}", with_causes(cause)))
        }
        kube::Error::Service(cause) => {
            (Category::Transport, format!("cannot reach the API server: {}", with_causes(cause.as_ref())))
        }
        error => (Category::Transport, format!("cannot reach the API server: {}", with_causes(error))),
    };
    Failure::new(category, message).with_hint(|failure| {
        matches!(failure.category(), Category::Auth | Category::Transport).then(|| {
            format!(
                "the kubeconfig names the server {server}; --kubeconfig and --kube-context choose another one"
            )
        })
    })
}
