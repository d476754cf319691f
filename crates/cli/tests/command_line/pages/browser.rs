//! Pages in headless Chromium: no script errors, overflow or overlapping elements.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{page_of, pages};
use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, stderr};

/// Layout facts that a page reports about itself.
const PROBE: &str = include_str!("probe.js");

/// The browser, if there is one.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Time limit for the page of 500,000 windows, in milliseconds.
const LOADED_MS: f64 = 2000.0;

fn browser() -> Option<&'static str> {
    let exists = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = BROWSERS.into_iter().find(exists);
    if found.is_none() {
        skip("no Chromium is installed");
    }
    found
}

/// Opens a page in a window of `width` pixels, and returns its layout facts.
fn opened(scratch: &Scratch, browser: &str, name: &str, width: u32, dark: bool) -> Value {
    let page = fs::read_to_string(page_of(scratch, name)).expect("the page is there");
    let errors = "<script>window.failed=[];\
        addEventListener('error',e=>failed.push(String(e.message)));\
        addEventListener('securitypolicyviolation',e=>failed.push(e.violatedDirective));</script>";
    let page = page.replacen("<head>", &format!("<head>{errors}"), 1);
    let probed = page.replacen("</body>", &format!("<script>{PROBE}</script></body>"), 1);
    let path = scratch.file("probed.html", probed);
    let data = scratch.path("browser");
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--dump-dom",
    ]);
    let scheme = if dark { 0 } else { 1 };
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.args([format!("--user-data-dir={data}"), format!("--window-size={width},900")]);
    let output = Running::start(command.arg(format!("file://{path}"))).output();
    let _ = fs::remove_dir_all(data);
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let probe =
        dom.split_once("<pre id=\"probe\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (probe, _) = probe.unwrap_or_else(|| panic!("{name}: no answer: {}", stderr(&output)));
    let probe = probe.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&probe).expect("the page says JSON")
}

/// Layout errors according to a page's facts.
fn faults(probe: &Value, dark: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for key in ["errors", "overlaps", "outside", "pale", "silent"] {
        let list = probe[key].as_array().expect("a list");
        faults.extend(list.iter().map(|fault| format!("{key}: {fault}")));
    }
    if probe["scroll_width"].as_u64() > probe["width"].as_u64() {
        faults.push(format!("wider than its window: {}", probe["widest"]));
    }
    if probe["dark"] != dark {
        faults.push("the scheme of colours is the other one".to_string());
    }
    faults
}

#[test]
#[ignore = "drives a browser"]
fn every_page_is_whole_in_a_browser() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new("pages-browser");
    for name in pages(&scratch) {
        for (width, dark) in [(1280, false), (1280, true), (500, false), (500, true)] {
            let probe = opened(&scratch, browser, name, width, dark);
            let about = format!("{name}, {width} pixels, dark: {dark}");
            assert_eq!(probe["width"], width, "{about}");
            let faults = faults(&probe, dark);
            assert!(faults.is_empty(), "{about}: {faults:#?}");
            assert!(probe["texts"].as_u64() > Some(10), "{about}: {probe}");
        }
    }
}

#[test]
#[ignore = "drives a browser"]
fn a_page_of_500_000_windows_opens_at_once() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new("pages-large");
    let job = "run --workload random --file-size 100g --accesses 500000 --advice random";
    let page = page_of(&scratch, "large");
    let json = scratch.path("large.json");
    let output = filemap(&format!("{job} --html {page} --json {json}")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let calls = record["history"]["files"][0]["history"]["calls"].as_array().unwrap().iter();
    let calls: u64 = calls.map(|calls| calls.as_u64().unwrap()).sum();
    assert!(calls > 490_000, "{calls} windows");
    assert!(fs::metadata(&page).unwrap().len() < 3_000_000);
    // Other programs may delay one of the attempts.
    let times = (0..3).map(|_| opened(&scratch, browser, "large", 1280, false));
    let times: Vec<f64> = times.map(|probe| probe["loaded_ms"].as_f64().unwrap()).collect();
    println!("loaded in {times:?} ms");
    assert!(times.iter().any(|&ms| ms < LOADED_MS), "{times:?} ms");
}

/// The same for a program with six files, each with the maximum number of cells.
#[test]
#[ignore = "drives a browser"]
fn a_page_of_a_program_of_500_000_windows_opens_at_once() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new("pages-large-program");
    let mut program = "read_ahead_kb = 8192\n".to_string();
    for number in 0..8 {
        program += &format!(
            "[[file]]\nname = 'file {number}'\nsize = '16g'\n[[open]]\nname = 'o{number}'\n\
             file = 'file {number}'\n[[mapping]]\nname = 'm{number}'\nopen = 'o{number}'\n\
             advice = 'random'\n[[thread]]\n[[thread.phase]]\nmapping = 'm{number}'\n\
             workload = 'random'\naccesses = {}\n",
            63_000 + number
        );
    }
    let program = scratch.file("program.toml", program);
    let page = page_of(&scratch, "large-program");
    let json = scratch.path("large.json");
    let output = filemap(&format!("run {program} --html {page} --json {json}")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(record["history"]["files"].as_array().unwrap().len(), 6);
    assert_eq!(record["history"]["other_files"], 2);
    assert!(record["runs"][0]["counters"]["major_faults"].as_u64() > Some(490_000));
    let bytes = [&page, &json].map(|path| fs::metadata(path).unwrap().len());
    println!("page and JSON have {bytes:?} bytes");
    assert!(bytes[0] < 3_000_000 && bytes[1] < 3_000_000, "{bytes:?}");
    let times = (0..3).map(|_| opened(&scratch, browser, "large-program", 1280, false));
    let times: Vec<f64> = times.map(|probe| probe["loaded_ms"].as_f64().unwrap()).collect();
    println!("loaded in {times:?} ms");
    assert!(times.iter().any(|&ms| ms < LOADED_MS), "{times:?} ms");
}

#[test]
#[ignore = "drives a browser"]
fn page_check_finds_errors() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new("pages-wrong");
    let page = |body: &str| {
        format!(
            "<!DOCTYPE html><html><head><style>:root{{background:#fff;color:#000}}</style></head>\
             <body>{body}</body></html>"
        )
    };
    let text = |x: u32, text: &str| format!("<text x=\"{x}\" y=\"20\">{text}</text>");
    let svg = |body: &str| format!("<svg width=\"200\" height=\"40\">{body}</svg>");
    for (body, words) in [
        (svg(&(text(5, "one word") + &text(20, "another"))), "overlaps"),
        (svg(&text(190, "beyond the end")), "outside"),
        ("<script>undefinedName()</script>".to_string(), "errors"),
        ("<div style=\"width:3000px\">wide</div>".to_string(), "wider"),
        ("<p style=\"color:#999\">pale</p>".to_string(), "pale"),
        ("<p data-t=\"\">says nothing</p>".to_string(), "silent"),
    ] {
        scratch.file("wrong.html", page(&body));
        let found = faults(&opened(&scratch, browser, "wrong", 1280, false), false);
        assert!(found.iter().any(|fault| fault.starts_with(words)), "{words}: {found:?}");
    }
}
