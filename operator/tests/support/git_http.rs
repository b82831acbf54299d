//! Git over HTTP: the real `git http-backend` (CGI, RFC 3875) behind a small server with basic auth.
#![allow(dead_code, reason = "each test binary that includes this module uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a fixture fails its test")]

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

use super::git_remote::git_command;

const BODY_LIMIT: usize = 64 << 20;

/// What the server does with the next request.
#[derive(Clone, Debug)]
struct Rules {
    /// The accepted password, with any user name. Without it, every client is accepted.
    token: Option<String>,
    /// Answer every request with this status.
    failure: Option<StatusCode>,
}

struct Shared {
    root: PathBuf,
    rules: Mutex<Rules>,
    requests: AtomicUsize,
    users: Mutex<Vec<String>>,
}

/// Serves every repository below a directory for fetch; dropping it stops the server.
pub struct GitHttp {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl GitHttp {
    /// Starts on a port of its own and a thread of its own. Without a token the server is public.
    pub fn start(root: &Path, token: Option<&str>) -> GitHttp {
        let rules = Rules { token: token.map(str::to_owned), failure: None };
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            rules: Mutex::new(rules),
            requests: AtomicUsize::new(0),
            users: Mutex::new(Vec::new()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().unwrap();
        let running = Some(serve(listener, shared.clone()));
        GitHttp { shared, address, running }
    }

    /// The address of a repository below the root, such as `desired.git`.
    pub fn url(&self, repository: &str) -> String {
        format!("http://{}/{repository}", self.address)
    }

    /// Lets only this token in from now on.
    pub fn set_token(&self, token: &str) {
        self.shared.rules.lock().unwrap().token = Some(token.to_owned());
    }

    /// Answers every request with this status until the next call.
    pub fn set_failure(&self, status: Option<u16>) {
        let status = status.map(|status| StatusCode::from_u16(status).expect("a status"));
        self.shared.rules.lock().unwrap().failure = status;
    }

    /// How many requests came in, refused ones included.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Returns the user names of the requests that were accepted with a token, in order.
    pub fn users(&self) -> Vec<String> {
        self.shared.users.lock().unwrap().clone()
    }
}

impl Drop for GitHttp {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            // The thread may have ended by itself, then there is no receiver.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

fn serve(listener: TcpListener, shared: Arc<Shared>) -> (oneshot::Sender<()>, JoinHandle<()>) {
    listener.set_nonblocking(true).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let router = Router::new().fallback(answer).with_state(shared);
            tokio::select! {
                _ = axum::serve(listener, router) => {}
                _ = stopped => {}
            }
        });
    });
    (stop, thread)
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    shared.requests.fetch_add(1, Ordering::SeqCst);
    let rules = shared.rules.lock().unwrap().clone();
    if let Some(status) = rules.failure {
        return plain(status, "injected failure");
    }
    let user = match &rules.token {
        None => None,
        Some(token) => match credentials(&headers) {
            Some((user, password)) if password == *token => Some(user),
            _ => {
                let refusal = Response::builder()
                    .status(StatusCode::UNAUTHORIZED)
                    .header(WWW_AUTHENTICATE, "Basic realm=\"git\"");
                return refusal.body(Body::from("the token is missing or wrong")).unwrap();
            }
        },
    };
    shared.users.lock().unwrap().extend(user.clone());
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    };
    match run_backend(&shared.root, &method, &uri, &headers, user.as_deref(), body).await {
        Ok(output) => from_cgi(&output),
        Err(error) => {
            plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("cannot run git http-backend: {error}"))
        }
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    Response::builder().status(status).body(Body::from(text.to_owned())).unwrap()
}

/// User and password of basic authentication (RFC 7617).
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

async fn run_backend(
    root: &Path,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    user: Option<&str>,
    body: Bytes,
) -> std::io::Result<Vec<u8>> {
    let mut command = tokio::process::Command::from(git_command(root));
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method.as_str())
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("REMOTE_ADDR", "127.0.0.1");
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // The backend unpacks a gzip body itself, and speaks protocol version 2 if this variable states it.
    let passed = [
        ("CONTENT_TYPE", text(CONTENT_TYPE.as_str())),
        ("HTTP_CONTENT_ENCODING", text(CONTENT_ENCODING.as_str())),
        ("HTTP_GIT_PROTOCOL", text("git-protocol")),
        ("REMOTE_USER", user),
    ];
    command.envs(passed.iter().filter_map(|(name, value)| value.map(|value| (name, value))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().expect("a piped stdin");
    // Written beside the read, so that neither side waits for the other with a full pipe. The backend
    // may answer without reading all of it.
    let writer = tokio::spawn(async move {
        let _ = stdin.write_all(&body).await;
    });
    let output = child.wait_with_output().await?;
    writer.await.expect("the writer does not panic");
    Ok(output.stdout)
}

/// A CGI answer: header lines, an empty line, the body. `Status` is a header, 200 when absent.
fn from_cgi(output: &[u8]) -> Response<Body> {
    let (mut response, mut rest) = (Response::builder(), output);
    let mut status = StatusCode::OK;
    loop {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return plain(StatusCode::BAD_GATEWAY, "git http-backend sent no complete header");
        };
        let line = String::from_utf8_lossy(&rest[..end]).trim_end().to_owned();
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').expect("a header line has a colon");
        if name.eq_ignore_ascii_case("status") {
            let code = value.split_whitespace().next().unwrap_or_default();
            status = code.parse().expect("a status code");
        } else {
            response = response.header(name, value.trim());
        }
    }
    response.status(status).body(Body::from(rest.to_vec())).unwrap()
}
