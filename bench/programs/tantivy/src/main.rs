//! Drives tantivy: makes an index of documents, and searches it.

use std::error::Error;
use std::path::Path;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, Schema, TEXT, Value};
use tantivy::{Index, IndexWriter, TantivyDocument, doc};

const DOCUMENTS: u32 = 600_000;
const WORDS_PER_DOCUMENT: u32 = 60;
const VOCABULARY: u64 = 400_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, way, directory, seed] = &arguments[..] else {
        return Err("usage: bench-tantivy make|search DIRECTORY SEED".into());
    };
    let numbers = Numbers(seed.parse::<u64>()? + 1);
    match way.as_str() {
        "make" => make(Path::new(directory), numbers),
        "search" => search(Path::new(directory), numbers),
        _ => Err(format!("no way {way}").into()),
    }
}

/// xorshift64*.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A word; few words are in many documents and many in few.
    fn word(&mut self) -> String {
        let widest = 1 + self.next() % VOCABULARY;
        format!("w{:06}", self.next() % widest)
    }
}

fn make(directory: &Path, mut numbers: Numbers) -> Result<(), Box<dyn Error>> {
    let mut schema = Schema::builder();
    let body = schema.add_text_field("body", TEXT | STORED);
    let index = Index::create_in_dir(directory, schema.build())?;
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 300 << 20)?;
    for _ in 0..DOCUMENTS {
        let words: Vec<String> = (0..WORDS_PER_DOCUMENT).map(|_| numbers.word()).collect();
        writer.add_document(doc!(body => words.join(" ")))?;
    }
    writer.commit()?;
    let segments = index.searchable_segment_ids()?;
    writer.merge(&segments).wait()?;
    writer.garbage_collect_files().wait()?;
    writer.wait_merging_threads()?;
    Ok(())
}

fn search(directory: &Path, mut numbers: Numbers) -> Result<(), Box<dyn Error>> {
    let index = Index::open_in_dir(directory)?;
    let body = index.schema().get_field("body")?;
    let searcher = index.reader()?.searcher();
    let parser = QueryParser::for_index(&index, vec![body]);
    let (mut found, mut letters) = (0, 0);
    for _ in 0..200 {
        let query = format!("{} {} {}", numbers.word(), numbers.word(), numbers.word());
        let query = parser.parse_query(&query)?;
        let (count, best) = searcher.search(&query, &(Count, TopDocs::with_limit(5)))?;
        found += count;
        for (_, address) in best {
            let document: TantivyDocument = searcher.doc(address)?;
            let text = document.get_first(body).and_then(|value| value.as_str());
            letters += text.ok_or("a document without text")?.len();
        }
    }
    println!("{found} documents, {letters} letters of the best");
    Ok(())
}
