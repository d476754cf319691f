//! Pictures: their texts lie side by side, and inside.

use crate::{Scratch, stdout};

/// Width of a character as a share of the font's size: what the usual sans-serif fonts take.
const CHARACTER: f64 = 0.62;

/// The room of a text: left, upper, right and lower edge.
#[derive(Clone, Debug)]
struct Room {
    text: String,
    edges: [f64; 4],
}

impl Room {
    fn overlaps(&self, other: &Room) -> bool {
        let [left, top, right, bottom] = self.edges;
        let [other_left, other_top, other_right, other_bottom] = other.edges;
        left < other_right && other_left < right && top < other_bottom && other_top < bottom
    }
}

fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let (_, rest) = element.split_once(&format!(" {name}=\"")).expect("the attribute is there");
    rest.split_once('"').expect("it ends").0
}

fn number(element: &str, name: &str) -> f64 {
    attribute(element, name).parse().expect("a number")
}

fn rooms(picture: &str) -> Vec<Room> {
    let room = |line: &str, (right, down): (f64, f64)| {
        let (element, rest) = line.split_once('>').unwrap();
        let (text, _) = rest.split_once("</text>").unwrap();
        let text = text.replace("&lt;", "<").replace("&amp;", "&");
        let (x, y) = (number(element, "x") + right, number(element, "y") + down);
        let size = number(element, "font-size");
        let width = text.chars().count() as f64 * size * CHARACTER;
        let left = match element.split_once(" text-anchor=\"").map(|(_, rest)| rest) {
            None => x,
            Some(rest) if rest.starts_with("start") => x,
            Some(rest) if rest.starts_with("middle") => x - width / 2.0,
            Some(rest) if rest.starts_with("end") => x - width,
            Some(other) => panic!("{other}"),
        };
        Room { text, edges: [left, y - size * 0.8, left + width, y + size * 0.25] }
    };
    // A plot is moved as a whole.
    let mut moved = (0.0, 0.0);
    let mut rooms = Vec::new();
    for line in picture.lines() {
        if let Some((_, rest)) = line.split_once("<g transform=\"translate(")
            && line.starts_with("<g")
        {
            let (right, rest) = rest.split_once(' ').unwrap();
            let (down, _) = rest.split_once(')').unwrap();
            moved = (right.parse().unwrap(), down.parse().unwrap());
        }
        if line.starts_with("</g>") {
            moved = (0.0, 0.0);
        }
        if line.starts_with("<text") {
            rooms.push(room(line, moved));
        }
    }
    rooms
}

/// What overlaps or lies outside.
fn faults(picture: &str) -> Vec<String> {
    let (width, height) = (number(picture, "width"), number(picture, "height"));
    let rooms = rooms(picture);
    let mut faults = Vec::new();
    for (index, room) in rooms.iter().enumerate() {
        let [left, top, right, bottom] = room.edges;
        if left < 0.0 || top < 0.0 || right > width || bottom > height {
            faults.push(format!("'{}' is outside: {:?}", room.text, room.edges));
        }
        for other in rooms[index + 1..].iter().filter(|other| room.overlaps(other)) {
            faults.push(format!("'{}' and '{}'", room.text, other.text));
        }
    }
    faults
}

#[test]
fn texts_do_not_overlap() {
    let scratch = Scratch::new("pictures");
    let path = scratch.path("picture.svg");
    let long = scratch.file(&"a-long-name-".repeat(15), "0\n7\n3\n");
    let phases = "file_size = '32m'\nread_ahead_kb = 512\n\
                  [[phase]]\nworkload = 'read-sequential'\naccesses = 40\n\
                  [[phase]]\nworkload = 'random'\naccesses = 3000\n";
    let phases = scratch.file("phases.toml", phases);
    let mut jobs = vec![
        "--workload random --file-size 4g --read-ahead-kb 8192".to_string(),
        "--workload random --file-size 4g --read-ahead-kb 8192 --with mmap-miss".to_string(),
        "--workload sequential --file-size 1g".to_string(),
        "--workload first --file-size 4k --accesses 1".to_string(),
        "--workload sequential --file-size 64k --accesses 16".to_string(),
        "--workload random --file-size 2t --accesses 20000 --with mmap-miss".to_string(),
        "--workload stride:2053 --file-size 1g --ram 512m --accesses 30000".to_string(),
        "--workload random --file-size 64m --cache-limit 8m --accesses 9000".to_string(),
        "--workload random --file-size 64m --read-ahead-kb 0 --accesses 900".to_string(),
        "--workload first --file-size 1g --map-offset 512m --map-len 4m".to_string(),
        "--workload sequential --file-size 1p --sparse --map-offset 512t --map-len 1m".to_string(),
        format!("--accesses-file {long} --file-size 1m"),
        phases,
    ];
    if std::path::Path::new("/bin/bash").exists() {
        jobs.push("--workload elf --file /bin/bash".to_string());
    }
    for job in jobs {
        stdout(&format!("explain {job} --svg {path}"));
        let picture = std::fs::read_to_string(&path).unwrap();
        assert!(picture.contains("fill=\"#ffffff\""), "{job}: no background");
        assert!(rooms(&picture).len() > 20, "{job}: {} texts", rooms(&picture).len());
        let faults = faults(&picture);
        assert!(faults.is_empty(), "{job}: {faults:#?}");
        for words in ["read", "accesses done", "mmap_miss (count)", "page of the file, of"] {
            assert!(picture.contains(words), "{job}: {words}");
        }
    }
}

#[test]
fn texts_that_overlap_are_found() {
    let text = |x: u32, text: &str| {
        format!("<text x=\"{x}\" y=\"20\" font-size=\"10\" text-anchor=\"start\">{text}</text>")
    };
    let picture = |x: u32| {
        format!("<svg a=\"\" width=\"90\" height=\"30\">\n{}\n{}\n", text(5, "ab"), text(x, "cd"))
    };
    assert!(faults(&picture(18)).is_empty(), "{:?}", faults(&picture(18)));
    assert_eq!(faults(&picture(15)).len(), 1);
    assert_eq!(faults(&picture(80)).len(), 1, "one lies outside");
}
