//! The program: what it has, and what it does next.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::events;
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::PAGE_BYTES;

/// Files that change, and their length at first.
pub const FILES: u64 = 3;
pub const FILE_BYTES: u64 = 4 << 20;

/// What is done before the program ends.
const STEPS: u64 = 1200;

/// A place of the program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub start: *mut u8,
    pub pages: usize,
    /// It may be written.
    pub is_writable: bool,
    /// It may be read.
    pub is_readable: bool,
}

/// What the program has.
pub struct Program {
    pub draws: Draws,
    pub digest: Digest,
    pub areas: Vec<Area>,
    pub files: Vec<File>,
    pub kept: File,
    pub directory: PathBuf,
    /// How many processes lie between the first and this one.
    pub depth: u64,
    /// What the calls of this step have told.
    told: Vec<i64>,
}

type Step = fn(&mut Program);

/// What it can do next, each as often as its number says.
const CHOICES: [(u64, &str, Step); 26] = [
    (30, "look", Program::look),
    (8, "look along", Program::look_along),
    (12, "map", Program::map),
    (3, "map over", Program::map_over),
    (6, "unmap", Program::unmap),
    (5, "unmap middle", Program::unmap_middle),
    (4, "grow", Program::grow),
    (3, "relocate", Program::relocate),
    (3, "protect", Program::protect),
    (3, "protect for writing", Program::protect_for_writing),
    (4, "write", Program::write),
    (3, "advise", Program::advise),
    (2, "lock", Program::lock),
    (2, "send", Program::send),
    (3, "truncate", Program::truncate),
    (3, "lengthen", Program::lengthen),
    (2, "overwrite", Program::overwrite),
    (4, "raise", Program::raise),
    (3, "block and raise", Program::block_and_raise),
    (2, "set handler", Program::set_handler),
    (2, "alarm", Program::alarm),
    (3, "threads", Program::threads),
    (2, "fork", Program::fork),
    (1, "spawn", Program::spawn),
    (2, "reopen", Program::reopen),
    (1, "descriptors", Program::descriptors),
];

/// Runs the program of a seed: from its beginning, or after an exec with what was kept.
pub fn main(seed: &str, directory: &Path, rest: &[String]) {
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let [mut done, digest, depth] = match rest {
        [] => [0, Digest::NEW.0, 0],
        [done, digest, depth] => [done, digest, depth].map(number),
        _ => panic!("three numbers or none"),
    };
    let seed: u64 = seed.parse().expect("a seed");
    let mut program = Program::new(seed.wrapping_add(done << 20), digest, depth, directory);
    events::install(&program.kept);
    if seed.is_multiple_of(2) {
        events::begin_storm();
    }
    let steps = if depth > 0 { STEPS / 8 } else { STEPS };
    while done < steps {
        program.step();
        done += 1;
        if depth == 0 && done.is_multiple_of(450) {
            events::end_storm();
            program.exec(seed, done);
        }
    }
    events::end_storm();
    println!("{depth}: {:x}, {} areas", program.digest.0, program.areas.len());
}

impl Program {
    pub fn new(seed: u64, digest: u64, depth: u64, directory: &Path) -> Program {
        let file = |number: u64| open(&directory.join(number.to_string()));
        Program {
            draws: Draws::new(seed),
            digest: Digest(digest),
            areas: Vec::new(),
            files: (0..FILES).map(file).collect(),
            kept: File::open(directory.join("kept")).expect("the file is there"),
            directory: directory.to_owned(),
            depth,
            told: Vec::new(),
        }
    }

    /// Does one thing.
    pub fn step(&mut self) {
        let all = CHOICES.iter().map(|(often, ..)| often).sum();
        let mut drawn = self.draws.below(all);
        let chosen = CHOICES.iter().find(|(often, ..)| {
            let is_it = drawn < *often;
            drawn = drawn.wrapping_sub(*often);
            is_it
        });
        let (_, name, step) = chosen.expect("the draw is below the sum");
        step(self);
        self.digest.add(events::seen());
        println!("{name}, told {:?}, {:?}, {:x}", self.told, events::counts(), self.digest.0);
        self.told.clear();
    }

    /// What a call told: 0 or more, or its error.
    pub fn told(&mut self, result: i64) {
        let error = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let told = if result < 0 { -i64::from(error()) } else { result };
        self.told.push(told);
        self.digest.add(told.cast_unsigned());
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.draws.below(end as u64) as usize
    }

    /// The number of an area, if there is one.
    pub fn any_area(&mut self) -> Option<usize> {
        if self.areas.is_empty() { None } else { Some(self.below(self.areas.len())) }
    }

    /// Looks at pages of an area, anywhere.
    fn look(&mut self) {
        let Some(area) = self.any_area().map(|number| self.areas[number]) else { return };
        if area.is_readable {
            for _ in 0..8 {
                let page = self.below(area.pages);
                self.read(area, page);
            }
        }
    }

    /// Looks at pages of an area one by one, or some apart, up or down.
    fn look_along(&mut self) {
        let Some(area) = self.any_area().map(|number| self.areas[number]) else { return };
        let (step, count) = (1 + self.below(7), 8 + self.below(120));
        let (first, is_down) = (self.below(area.pages), self.below(3) == 0);
        for index in 0..count {
            let along = index * step;
            let page = if is_down { first.checked_sub(along) } else { Some(first + along) };
            match page {
                Some(page) if page < area.pages && area.is_readable => self.read(area, page),
                _ => break,
            }
        }
    }

    /// The number at the beginning of a page, which may be behind the end of the file.
    pub fn read(&mut self, area: Area, page: usize) {
        let place = area.start.wrapping_add(page * PAGE_BYTES);
        // SAFETY: the page is mapped, and SIGBUS is handled.
        let word = unsafe { place.cast::<u64>().read_volatile() };
        self.digest.add(word);
    }
}

pub fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("the file is there")
}
