//! HTTP/1.1 messages (RFC 9112) as they go over a connection, as far as client and server here use it: a body
//! has a `Content-Length` or is empty.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// A request or a response.
#[derive(Clone, Debug)]
pub struct Message {
    /// The request line or the status line.
    pub first_line: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    /// A response of our own.
    pub fn response(status: &str, fields: &[(&str, &str)], body: &str) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { first_line: format!("HTTP/1.1 {status}"), fields, body: body.as_bytes().to_vec() }
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.first_line.split(' ').next().unwrap_or_default()
    }

    /// The target of a request.
    pub fn target(&self) -> &str {
        self.first_line.split(' ').nth(1).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Replaces a field.
    pub fn set(&mut self, name: &str, value: &str) {
        self.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    /// The bytes on the wire; a response without content has no length (RFC 9110 §8.6).
    pub fn bytes(&self) -> Vec<u8> {
        let mut message = self.clone();
        if !self.body.is_empty() && self.field("content-length").is_none() {
            message.set("content-length", &self.body.len().to_string());
        }
        let fields = message.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!("{}\r\n{}\r\n", self.first_line, fields.collect::<String>());
        [head.into_bytes(), message.body].concat()
    }
}

/// Reads the next message; `None` where the other side has ended the conversation.
pub async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Message>> {
    let mut first_line = String::new();
    if from.read_line(&mut first_line).await? == 0 {
        return Ok(None);
    }
    let mut message =
        Message { first_line: first_line.trim_end().to_owned(), fields: Vec::new(), body: Vec::new() };
    loop {
        let mut line = String::new();
        from.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        message.fields.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let length = message.field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    message.body = vec![0; length];
    from.read_exact(&mut message.body).await?;
    Ok(Some(message))
}
