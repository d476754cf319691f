//! The executable window by its own branch, and by the bound of the VMA (exec-unify).

use filemap_core::decision::Decision;
use filemap_core::readahead::Limits;
use filemap_core::readahead::sync;
use filemap_core::rules::{Family, Kernel};
use filemap_core::series::Switch;
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{executable, limits, on, part, with};

const BOUND: &[Switch] = &[Switch::VmaBound];

fn file() -> Limits {
    limits(Kernel::V6_18, PageCount(64))
}

/// For every small executable VMA, fault, readahead size, page size and hole, both ways of bounding
/// the window lay out the same folios and no mark. The resulting readahead state differs if the VMA
/// clips the window.
#[test]
fn unified_executable_window_has_same_layout() {
    let unify = &[Switch::VmaBound, Switch::ExecUnify];
    let (mut cut, mut whole) = (0, 0);
    for (family, page_size) in [
        (Family::X86_64, 4096),
        (Family::Arm64, 4096),
        (Family::Arm64, 16384),
        (Family::Arm64, 65536),
    ] {
        for (ra_pages, from, length, hole) in cases() {
            let limits = on(family, page_size, file());
            let limits = Limits { ra_pages: PageCount(ra_pages), ..limits };
            let vma = executable(part(from, (from + length).min(48)));
            for index in vma.pgoff.0..vma.end().0 {
                let run = |switches| {
                    let before = format!("{hole}. # {}.", 47 - hole);
                    let mut engine = Engine::new(with(switches, limits), Io::Waited, &before);
                    let Engine { limits, ra, cache, log, .. } = &mut engine;
                    let window = sync::on_miss(PageIndex(index), &vma, limits, ra, cache, log);
                    engine.read_window(window.expect("the counter is low"));
                    engine
                };
                let (branch, unified) = (run(BOUND), run(unify));
                let case = format!("{page_size} ra {ra_pages} {vma:?} fault {index} hole {hole}");
                assert_eq!(added(&branch), added(&unified), "{case}");
                assert!(added(&branch).iter().all(|added| added.1.is_none()), "{case}");
                let start = branch.ra.start;
                assert_eq!(start, unified.ra.start, "{case}");
                let order = limits.arch.exec_order;
                if (start + PageCount(ra_pages)).align_up(order) > vma.end() {
                    cut += 1;
                    assert_eq!(branch.ra.size, vma.end() - start, "{case}");
                    assert!(unified.ra.size > branch.ra.size, "{case}");
                } else {
                    whole += 1;
                    assert_eq!(branch.ra, unified.ra, "{case}");
                }
            }
        }
    }
    assert!(cut > 1000 && whole > 1000, "{cut} windows cut, {whole} whole");
}

/// Readahead sizes, first pages and lengths of VMAs, cached pages.
fn cases() -> impl Iterator<Item = (u64, u64, u64, u64)> {
    [1, 4, 13, 16].into_iter().flat_map(|ra_pages| {
        [0, 3, 16, 29].into_iter().flat_map(move |from| {
            [1, 5, 16, 20, 48].into_iter().flat_map(move |length| {
                [0, 18, 33].into_iter().map(move |hole| (ra_pages, from, length, hole))
            })
        })
    })
}

/// The folios added in a log: each run with its mark.
fn added(engine: &Engine) -> Vec<(String, Option<PageIndex>)> {
    let added = |decision: &Decision| match decision {
        Decision::Added { start, order, folios, marked } => {
            Some((format!("{start} {}x{folios}", order.0), *marked))
        }
        _ => None,
    };
    engine.log.iter().filter_map(added).collect()
}

/// The unified rule shows if the page after the VMA has a mark: the size of the last window decides
/// whether that is the mark of its stream.
#[test]
fn unified_executable_window_differs_at_a_later_mark() {
    let after = |switches: &[Switch]| {
        let mut engine = Engine::new(with(switches, file()), Io::Immediate, "20. M 43.");
        engine.vma = executable(part(0, 20));
        engine.touch(16);
        engine.course();
        engine.read(20, 1);
        engine.course()
    };
    assert_eq!(after(BOUND), "async-read:20+8-8@2 base:20+8-8");
    assert_eq!(after(&[Switch::VmaBound, Switch::ExecUnify]), "async-read:21+3-3@2");
}
