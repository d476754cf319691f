//! The table of kernels and of architectures, field by field.

use filemap_core::rules::{Arch, Family, Kernel, OrderGrowth, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::{Order, PageCount};

#[test]
fn kernels_differ_in_these_fields() {
    let old = Rules::new(Kernel::V6_12, Series::BASELINE);
    let new = Rules::new(Kernel::V6_18, Series::BASELINE);
    assert_eq!((old.kernel, new.kernel), (Kernel::V6_12, Kernel::V6_18));
    type Flag = fn(Rules) -> bool;
    let flags: [(&str, Flag, [bool; 2]); 7] = [
        ("maps_whole_folio", |rules| rules.maps_whole_folio, [false, true]),
        ("around_spares_file_end", |rules| rules.around_spares_file_end, [true, true]),
        ("executable_readahead", |rules| rules.executable_readahead, [false, true]),
        ("locked_hit_counts", |rules| rules.locked_hit_counts, [true, false]),
        ("trims_async_end", |rules| rules.trims_async_end, [false, true]),
        ("fallback_reads_remainder", |rules| rules.fallback_reads_remainder, [false, true]),
        ("ext4_large_folios", |rules| rules.ext4_large_folios, [false, true]),
    ];
    for (field, flag, expected) in flags {
        assert_eq!([old, new].map(flag), expected, "{field}");
    }
    assert_eq!(old.order_growth, OrderGrowth::EveryWindow);
    assert_eq!(new.order_growth, OrderGrowth::AsyncWindow);
    assert_eq!(old.large_folio_min_window, PageCount(4));
    // Any window has at least one page.
    assert!(new.large_folio_min_window <= PageCount(1));
}

#[test]
fn rules_keep_their_series() {
    let series = Series::BASELINE.with(Switch::MissNoRetry);
    for kernel in Kernel::ALL {
        let rules = Rules::new(kernel, series);
        assert_eq!((rules.kernel, rules.series), (kernel, series));
        let baseline = Rules { series: Series::BASELINE, ..rules };
        assert_eq!(baseline, Rules::new(kernel, Series::BASELINE));
    }
}

#[test]
fn releases_find_their_kernel() {
    let cases = [
        ("6.12", Some(Kernel::V6_12)),
        ("6.12.48+deb13-cloud-amd64", Some(Kernel::V6_12)),
        ("6.17.9", Some(Kernel::V6_12)),
        ("6.11.2", Some(Kernel::V6_6)),
        ("6.6.139", Some(Kernel::V6_6)),
        ("6.2.0-39-generic", Some(Kernel::V6_1)),
        ("6.1.0-18-amd64", Some(Kernel::V6_1)),
        ("5.19.0", Some(Kernel::V6_1)),
        ("6.18", Some(Kernel::V6_18)),
        ("6.18.44-fc-v669", Some(Kernel::V6_18)),
        ("6.18-rc1", Some(Kernel::V6_18)),
        ("6.19.11", Some(Kernel::V6_19)),
        ("7.2.13+deb14-cloud-amd64", Some(Kernel::V7_2)),
        ("7.4.0-rc3", Some(Kernel::V7_3)),
        ("", None),
        ("6", None),
        ("6.", None),
        ("six.18", None),
        ("v6.18", None),
        ("99999999999.1", None),
    ];
    for (release, kernel) in cases {
        assert_eq!(Kernel::nearest(release).map(|found| found.kernel), kernel, "{release}");
    }
}

#[test]
fn a_release_lies_between_two_kernels() {
    let names = |release: &str| {
        let (before, after) = Kernel::around(release).unwrap();
        [before, after].map(|kernel| kernel.map_or("none", Kernel::name))
    };
    assert_eq!(names("6.2"), ["6.1", "6.6"]);
    assert_eq!(names("6.17.9"), ["6.12", "6.18"]);
    assert_eq!(names("6.12.48+deb13"), ["6.12", "6.12"]);
    assert_eq!(names("5.19"), ["none", "6.1"]);
    assert_eq!(names("7.1.13"), ["7.1", "7.1"]);
    assert_eq!(names("7.4"), ["7.3", "none"]);
    assert_eq!(Kernel::around("six"), None);
}

#[test]
fn only_the_modelled_versions_are_exact() {
    let is_exact = |release: &str| Kernel::nearest(release).unwrap().is_exact;
    for release in ["6.1.0-18-amd64", "6.6.3"] {
        assert!(is_exact(release), "{release}");
    }
    for release in ["6.12", "6.12.117+deb12-cloud-amd64", "6.18-rc1", "6.18.44-fc-v669", "7.3.4"] {
        assert!(is_exact(release), "{release}");
    }
    for release in ["5.18.0", "6.2.0", "6.11", "6.13.2", "6.17.9", "6.20", "7.12", "7.18"] {
        assert!(!is_exact(release), "{release}");
    }
}

#[test]
fn kernels_and_families_have_names() {
    assert_eq!([Kernel::V6_1, Kernel::V6_6].map(Kernel::name), ["6.1", "6.6"]);
    assert_eq!(Kernel::V6_12.name(), "6.12");
    assert_eq!(Kernel::V6_18.name(), "6.18");
    assert!(Kernel::ALL.is_sorted());
    assert_eq!(Family::ALL.map(Family::name), ["x86-64", "arm64"]);
}

#[test]
fn architectures() {
    // Family, page size: entries of a page table, PMD order, largest and executable folio orders,
    // young entries.
    let known = [
        (Family::X86_64, 4096, 512, 9, 9, 0, true),
        (Family::Arm64, 4096, 512, 9, 9, 4, false),
        (Family::Arm64, 16384, 2048, 11, 11, 2, false),
        (Family::Arm64, 65536, 8192, 13, 11, 0, false),
    ];
    for (family, page_size, entries, pmd, largest, code, young) in known {
        let arch = Arch::new(family, page_size).expect("a known page size");
        assert_eq!((arch.family, arch.page_size, arch.pte_entries), (family, page_size, entries));
        assert_eq!(arch.pmd_order(), Order(pmd), "{arch:?}");
        assert_eq!(arch.max_cache_order, Order(largest), "{arch:?}");
        assert_eq!(arch.exec_order, Order(code), "{arch:?}");
        assert_eq!(arch.prefaults_young, young, "{arch:?}");
    }
    let unknown = [
        (Family::X86_64, 16384),
        (Family::X86_64, 65536),
        (Family::X86_64, 0),
        (Family::Arm64, 0),
        (Family::Arm64, 8192),
        (Family::Arm64, 32768),
        (Family::Arm64, 4095),
    ];
    for (family, page_size) in unknown {
        assert_eq!(Arch::new(family, page_size), None, "{} {page_size}", family.name());
    }
}
