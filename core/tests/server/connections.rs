use http::{Method, Version};

use crate::server::{Server, gate, send, status};

#[tokio::test]
async fn connections_are_kept() {
    let server = Server::start(|_| async { status(200) }).await;
    let client = server.client(&gate(Some(8)));
    for _ in 0..50 {
        assert_eq!(send(&client, &Method::GET, 1).await, 1);
    }
    // A connection may not be idle yet when the next request wants one.
    assert!(server.connections() <= 4, "{} connections, one after the other", server.connections());
    assert_eq!(send(&client, &Method::GET, 400).await, 400);
    assert!(server.connections() <= 24, "{} connections, eight at once", server.connections());
    assert!(server.versions().iter().all(|version| *version == Version::HTTP_11));
}

#[tokio::test]
async fn http2_carries_all_requests_on_one_connection_where_it_is_offered() {
    let server = Server::start_tls(&["h2", "http/1.1"], |_| async { status(200) }).await;
    let client = server.client(&gate(None));
    assert_eq!(send(&client, &Method::GET, 1).await, 1);
    assert_eq!(send(&client, &Method::GET, 200).await, 200);
    assert_eq!(server.connections(), 1);
    assert!(server.versions().iter().all(|version| *version == Version::HTTP_2));
}

#[tokio::test]
async fn http1_is_spoken_over_tls_where_nothing_else_is_offered() {
    for protocols in [&["http/1.1"][..], &[]] {
        let server = Server::start_tls(protocols, |_| async { status(200) }).await;
        let client = server.client(&gate(None));
        assert_eq!(send(&client, &Method::PUT, 20).await, 20);
        assert!(server.versions().iter().all(|version| *version == Version::HTTP_11));
    }
}
