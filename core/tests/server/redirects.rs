use http::header::LOCATION;
use http::{HeaderValue, Method};
use rstest::rstest;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::server::Request;

use crate::server::{Server, gate, status};

/// A server that sends everybody to another one, which answers with `code`.
async fn redirecting(code: u16) -> (Server, Server) {
    let elsewhere = Server::start(move |_| async move { status(code) }).await;
    let location = HeaderValue::try_from(format!("http://{}/x", elsewhere.address)).unwrap();
    let server = Server::start(move |_| {
        let location = location.clone();
        async move {
            let mut answer = status(307);
            answer.headers_mut().insert(LOCATION, location);
            answer
        }
    })
    .await;
    (server, elsewhere)
}

#[rstest]
#[case(404)]
#[case(410)]
#[case(401)]
#[case(500)]
#[tokio::test]
async fn what_fails_elsewhere_says_nothing_of_the_server(#[case] code: u16) {
    let (server, elsewhere) = redirecting(code).await;
    let client = server.client(&gate(None));
    let error = client.send(&Request::new(Method::GET, "/x")).await.unwrap_err();
    assert_eq!((error.category(), error.is_gone()), (Category::Transport, false));
    let expected = format!("redirected to http://{}, which answers with status {code}", elsewhere.address);
    assert!(error.to_string().ends_with(&expected), "{error}");
}

#[tokio::test]
async fn a_read_is_answered_from_elsewhere() {
    let (server, _elsewhere) = redirecting(200).await;
    let client = server.client(&gate(None));
    assert_eq!(client.send(&Request::new(Method::GET, "/x")).await.unwrap().status, 200);
}

#[tokio::test]
async fn no_write_goes_elsewhere() {
    let (server, elsewhere) = redirecting(200).await;
    let client = server.client(&gate(None));
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let error = client.send(&Request::new(method, "/x")).await.unwrap_err();
        assert!(error.to_string().ends_with("is not followed for a write"), "{error}");
    }
    assert_eq!(elsewhere.connections(), 0);
}
