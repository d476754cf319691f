//! Drives fst: an ordered map of strings in one mapped file, looked up and searched in ranges.

use fst::{IntoStreamer, Map, MapBuilder, Streamer};
use memmap2::Mmap;
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

const KEYS: u64 = 16_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, way, directory, seed] = &arguments[..] else {
        return Err("usage: bench-fst make|gets|ranges DIRECTORY SEED".into());
    };
    let path = Path::new(directory).join("map.fst");
    let seed = seed.parse::<u64>()?;
    match way.as_str() {
        "make" => make(&path, seed),
        "gets" => gets(&path, seed),
        "ranges" => ranges(&path, seed),
        _ => Err(format!("no way {way}").into()),
    }
}

/// splitmix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The key with this number: in order, and with an end that no two share.
fn key(index: u64, seed: u64) -> String {
    format!("{index:08}{:016x}", mix(index ^ (seed << 32)))
}

fn make(path: &Path, seed: u64) -> Result<(), Box<dyn Error>> {
    let mut map = MapBuilder::new(BufWriter::new(File::create(path)?))?;
    for index in 0..KEYS {
        map.insert(key(index, seed), mix(index) >> 40)?;
    }
    Ok(map.finish()?)
}

fn open(path: &Path) -> Result<Map<Mmap>, Box<dyn Error>> {
    let file = File::open(path)?;
    // SAFETY: nobody changes the file while the benchmark runs.
    Ok(Map::new(unsafe { Mmap::map(&file)? })?)
}

fn gets(path: &Path, seed: u64) -> Result<(), Box<dyn Error>> {
    let map = open(path)?;
    let mut sum = 0;
    for look_up in 0..2000 {
        let index = mix(look_up) % KEYS;
        sum += map.get(key(index, seed)).ok_or("a key is missing")?;
    }
    println!("{sum}");
    Ok(())
}

fn ranges(path: &Path, seed: u64) -> Result<(), Box<dyn Error>> {
    let map = open(path)?;
    let mut sum = 0;
    for range in 0..150 {
        let first = mix(range) % (KEYS - 10_000);
        let bounds = map.range().ge(key(first, seed)).lt(key(first + 10_000, seed));
        let mut found = bounds.into_stream();
        while let Some((_, value)) = found.next() {
            sum += value;
        }
    }
    println!("{sum}");
    Ok(())
}
