//! What the child says to its parent.

use std::io::{self, Read, Write};

use super::super::outcome::{Ended, EndedThread, Left, PhaseCost};
use super::words::{get, get_all, get_bytes, put, put_all, put_bytes};
use crate::residency::PageSet;

/// What the child says.
#[derive(Debug)]
pub(in crate::probe) enum Reply {
    /// The files are mapped.
    Ready {
        /// Where each mapping is, or will be.
        addresses: Vec<u64>,
    },
    /// It cannot go on.
    Failed(String),
    /// It cannot go on, because the system refuses it memory.
    Starved(String),
    /// It got SIGBUS for touching this address.
    Bus(u64),
    /// The steps are taken.
    Done(Ended),
    /// What came out of operations over folios.
    Numbers(Vec<u64>),
}

const READY: u64 = 1;
const FAILED: u64 = 2;
const DONE: u64 = 3;
const STARVED: u64 = 4;
const BUS: u64 = 5;
const NUMBERS: u64 = 6;

/// [`Reply::Bus`] as it is sent: nothing is allocated.
pub(in crate::probe) fn bus_message(address: u64) -> [u8; 16] {
    let mut message = [0; 16];
    let (kind, value) = message.split_at_mut(8);
    kind.copy_from_slice(&BUS.to_ne_bytes());
    value.copy_from_slice(&address.to_ne_bytes());
    message
}

pub(in crate::probe) fn write_reply(output: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let mut out = Vec::new();
    match reply {
        Reply::Ready { addresses } => {
            put(&mut out, READY);
            put_all(&mut out, addresses, |out, &address| put(out, address));
        }
        Reply::Failed(message) => put_message(&mut out, FAILED, message),
        Reply::Starved(message) => put_message(&mut out, STARVED, message),
        Reply::Bus(address) => out.extend_from_slice(&bus_message(*address)),
        Reply::Numbers(numbers) => {
            put(&mut out, NUMBERS);
            put_all(&mut out, numbers, |out, &number| put(out, number));
        }
        Reply::Done(ended) => {
            put(&mut out, DONE);
            put(&mut out, u64::from(ended.locked));
            put_all(&mut out, &ended.threads, |out, thread| {
                put(out, thread.elapsed_ns);
                put_all(out, &thread.steps, put_cost);
            });
            put_all(&mut out, ended.mapped.words(), |out, &word| put(out, word));
            put_all(&mut out, &ended.begun_at_flushes, |out, &begun| put(out, begun));
        }
    }
    output.write_all(&out)?;
    output.flush()
}

fn put_cost(out: &mut Vec<u8>, cost: &PhaseCost) {
    let PhaseCost { minor, major, elapsed_ns, .. } = *cost;
    let read_bytes = cost.read_bytes.unwrap_or(u64::MAX);
    let left = cost.left.unwrap_or(Left { cached: u64::MAX, evicted: 0 });
    let dropped = cost.dropped.unwrap_or(u64::MAX);
    let waits = u64::from(cost.counts_waits);
    let words = [minor, major, read_bytes, elapsed_ns, left.cached, left.evicted, dropped, waits];
    words.iter().for_each(|&word| put(out, word));
}

fn get_cost(input: &mut impl Read) -> io::Result<PhaseCost> {
    Ok(PhaseCost {
        minor: get(input)?,
        major: get(input)?,
        read_bytes: Some(get(input)?).filter(|&bytes| bytes != u64::MAX),
        elapsed_ns: get(input)?,
        left: Some(Left { cached: get(input)?, evicted: get(input)? })
            .filter(|left| left.cached != u64::MAX),
        dropped: Some(get(input)?).filter(|&pages| pages != u64::MAX),
        counts_waits: get(input)? != 0,
    })
}

fn put_message(out: &mut Vec<u8>, kind: u64, message: &str) {
    put(out, kind);
    put_bytes(out, message.as_bytes());
}

fn get_message(input: &mut impl Read) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&get_bytes(input)?).into_owned())
}

pub(in crate::probe) fn read_reply(input: &mut impl Read) -> io::Result<Reply> {
    match get(input)? {
        READY => Ok(Reply::Ready { addresses: get_all(input, get)? }),
        FAILED => Ok(Reply::Failed(get_message(input)?)),
        STARVED => Ok(Reply::Starved(get_message(input)?)),
        BUS => Ok(Reply::Bus(get(input)?)),
        NUMBERS => Ok(Reply::Numbers(get_all(input, get)?)),
        DONE => {
            let locked = get(input)? != 0;
            let threads = get_all(input, |input| {
                Ok(EndedThread { elapsed_ns: get(input)?, steps: get_all(input, get_cost)? })
            })?;
            let mapped = PageSet::from_words(get_all(input, get)?);
            Ok(Reply::Done(Ended::new(locked, threads, mapped, get_all(input, get)?)))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(reply: &Reply) -> Reply {
        let mut bytes = Vec::new();
        write_reply(&mut bytes, reply).unwrap();
        read_reply(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn what_came_out_arrives_as_it_was_sent() {
        let cost = PhaseCost {
            minor: 1,
            major: 2,
            read_bytes: Some(3),
            elapsed_ns: 4,
            left: Some(Left { cached: 5, evicted: 6 }),
            dropped: Some(7),
            counts_waits: true,
        };
        let thread = |steps| EndedThread { elapsed_ns: 7, steps };
        let steps = vec![cost, PhaseCost { read_bytes: None, dropped: None, ..cost }];
        let threads = vec![thread(steps), thread(vec![])];
        let mapped = PageSet::collect([true, false, true].into_iter());
        let ended = Ended::new(true, threads, mapped, vec![8, 9]);
        assert!(matches!(arrived(&Reply::Done(ended.clone())), Reply::Done(same) if same == ended));
        let ready = Reply::Ready { addresses: vec![0x7f00_0000_0000, 5] };
        assert!(matches!(arrived(&ready), Reply::Ready { addresses } if addresses[1] == 5));
        assert!(matches!(arrived(&Reply::Bus(99)), Reply::Bus(99)));
    }
}
