//! A REST server with fixed answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::environment::Home;

/// Answers on a port of its own until the tests end.
pub struct Server {
    url: String,
    log: Arc<Mutex<Vec<String>>>,
}

/// A request, such as `GET /shops`, and what is answered: a status and a body. JSON is sent as such. The body of a 201
/// that is a path is sent as its `Location`.
pub type Route = (&'static str, u16, &'static str);

impl Server {
    /// A request that is not among `routes` is answered with 404. If several routes have the request, each of them answers
    /// one, and the last of them all others.
    pub fn new(routes: &'static [Route]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&log);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || answer(routes, &mut connection.unwrap(), &seen));
            }
        });
        Self { url, log }
    }

    /// Without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A home directory whose context is for this server and the repository in `repo`.
    pub fn home(&self) -> Home {
        let home = Home::with_catalogue(&format!(
            "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{filesystem: {{baseDir: '<home>/repo'}}}}\n  \
             managedServer: {{http: {{url: '{}', auth: {{customHeaders: [{{header: K, value: v}}]}}}}}}\n",
            self.url
        ));
        std::fs::create_dir(home.path("repo")).unwrap();
        home
    }

    /// The requests so far, one a line.
    pub fn requests(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }
}

fn answer(routes: &[Route], connection: &mut TcpStream, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
            break;
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
    }
    reader.take(length).read_to_end(&mut Vec::new()).unwrap();
    let request = first.trim_end().trim_end_matches(" HTTP/1.1");
    let before = {
        let mut log = log.lock().unwrap();
        log.push(request.to_owned());
        log.iter().filter(|logged| *logged == request).count() - 1
    };
    // The target of CONNECT is the address of the server.
    let is_asked = |route: &str| route == request || (route == "CONNECT" && request.starts_with("CONNECT "));
    let mut matching = routes.iter().filter(|(route, ..)| is_asked(route));
    let found = matching.clone().nth(before).or_else(|| matching.next_back());
    let (status, body) = found.map_or((404, "nothing here"), |(_, status, body)| (*status, *body));
    let (location, body) = match (status, body.starts_with('/')) {
        (201, true) => (format!("location: {body}\r\n"), ""),
        _ => (String::new(), body),
    };
    let media_type = if body.starts_with(['{', '[']) { "application/json" } else { "text/plain" };
    // A client that has gone away does not want the answer.
    let _ = write!(
        connection,
        "HTTP/1.1 {status} \r\n{location}content-type: {media_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}
