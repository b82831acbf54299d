//! Joins the requests in which libgit2 offers commits over HTTP.
//!
//! libgit2 offers up to 256 commits of the repository, the newest first, so that the server leaves out what the mirror
//! has. Over HTTP it sends them in portions of 20, one request each, and waits for an answer after each portion. Here the
//! portions are collected, and the last request, which ends the offer, contains all of them. So a fetch takes one request
//! after the list of refs, for any number of commits.
//!
//! The format of the requests is that of git-http-protocol(5) and gitprotocol-pack(5).

/// The answer of a server that knows none of the commits that were offered. libgit2 then offers further ones.
pub(super) const NONE_KNOWN: &[u8] = b"0008NAK\n";

/// Packets that begin like this offer one commit each.
const HAVE: &[u8] = b"have ";

/// Packets that begin like this limit the depth of the history. The server answers them before the offer ends.
const SHALLOW: [&[u8]; 2] = [b"shallow ", b"deepen"];

/// Ends the offer.
const DONE: &[u8] = b"done";

/// The commits that were offered, but not yet sent.
#[derive(Debug, Default)]
pub(super) struct Negotiation {
    /// Packets with `have`.
    offered: Vec<u8>,
}

/// What happens to a request of libgit2.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The request is not sent. The answer is [`NONE_KNOWN`].
    Collected,
    /// This request is sent.
    Sent(Vec<u8>),
}

impl Negotiation {
    /// Returns what happens to the body of a request to `git-upload-pack`.
    pub fn step(&mut self, request: Vec<u8>) -> Step {
        let Some(packets) = packets(&request) else { return Step::Sent(request) };
        let is_shallow = |packet: &Packet| SHALLOW.iter().any(|start| packet.content.starts_with(start));
        if packets.iter().any(is_shallow) {
            return Step::Sent(request);
        }
        let first = packets.iter().position(|packet| packet.content.starts_with(HAVE));
        let last = packets.last();
        if last.is_some_and(|packet| packet.content.trim_ascii_end() == DONE) {
            let end_of_wants = first.map_or(last.map_or(0, |done| done.at), |first| packets[first].at);
            let mut joined = request;
            joined.splice(end_of_wants..end_of_wants, std::mem::take(&mut self.offered));
            return Step::Sent(joined);
        }
        match first {
            Some(first) => {
                let haves = packets[first..].iter().filter(|packet| packet.content.starts_with(HAVE));
                haves.for_each(|packet| self.offered.extend_from_slice(packet.bytes));
                Step::Collected
            }
            None => Step::Sent(request),
        }
    }
}

/// A packet of a request.
struct Packet<'a> {
    /// Its position in the request.
    at: usize,
    /// The packet with its length.
    bytes: &'a [u8],
    /// The packet without its length. Empty if it only separates others.
    content: &'a [u8],
}

/// Returns the packets of a request, or `None` if it is not made of packets.
fn packets(request: &[u8]) -> Option<Vec<Packet<'_>>> {
    let (mut packets, mut at) = (Vec::new(), 0);
    while at < request.len() {
        let digits = std::str::from_utf8(request.get(at..at + 4)?).ok()?;
        let length = usize::from_str_radix(digits, 16).ok()?.max(4);
        let bytes = request.get(at..at + length)?;
        packets.push(Packet { at, bytes, content: &bytes[4..] });
        at += length;
    }
    Some(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(content: &str) -> String {
        format!("{:04x}{content}", content.len() + 4)
    }

    fn want() -> String {
        packet("want 1111111111111111111111111111111111111111 multi_ack_detailed\n") + "0000"
    }

    fn haves(numbers: std::ops::Range<usize>) -> String {
        numbers.map(|number| packet(&format!("have {number:040x}\n"))).collect()
    }

    fn step(negotiation: &mut Negotiation, request: &str) -> Option<String> {
        match negotiation.step(request.as_bytes().to_vec()) {
            Step::Collected => None,
            Step::Sent(request) => Some(String::from_utf8(request).unwrap()),
        }
    }

    #[test]
    fn portions_are_sent_with_the_end_of_the_offer() {
        let mut negotiation = Negotiation::default();
        assert_eq!(step(&mut negotiation, &format!("{}{}0000", want(), haves(0..20))), None);
        assert_eq!(step(&mut negotiation, &format!("{}{}0000", want(), haves(20..40))), None);
        let last = format!("{}{}{}", want(), haves(40..45), packet("done\n"));
        let sent = step(&mut negotiation, &last).unwrap();
        assert_eq!(sent, format!("{}{}{}", want(), haves(0..45), packet("done\n")));
    }

    #[test]
    fn the_end_may_offer_nothing_more() {
        let mut negotiation = Negotiation::default();
        assert_eq!(step(&mut negotiation, &format!("{}{}0000", want(), haves(0..20))), None);
        let sent = step(&mut negotiation, &format!("{}{}", want(), packet("done\n"))).unwrap();
        assert_eq!(sent, format!("{}{}{}", want(), haves(0..20), packet("done\n")));
    }

    #[test]
    fn other_requests_are_sent_as_they_are() {
        let clone = format!("{}{}", want(), packet("done\n"));
        let deepen = format!("{}{}0000{}0000", want(), packet("deepen 1"), haves(0..20));
        for request in [clone.as_str(), deepen.as_str(), "0000", "", "00", "zzzz", "00ffhave "] {
            assert_eq!(step(&mut Negotiation::default(), request).as_deref(), Some(request));
        }
    }
}
