//! Arithmetic of pages, counts and orders.

use filemap_core::units::{Order, PageCount, PageIndex, Vpn};

#[test]
fn orders() {
    for (pages, order) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (511, 8), (512, 9), (513, 9)] {
        assert_eq!(Order::fitting(PageCount(pages)), Order(order), "{pages} pages");
    }
    for (index, order) in [(0, 63), (1, 0), (2, 1), (3, 0), (12, 2), (512, 9), (1 << 62, 62)] {
        assert_eq!(Order::alignment_of(PageIndex(index)), Order(order), "page {index}");
    }
    assert_eq!([Order(0).pages(), Order(4).pages(), Order(9).pages()], [1, 16, 512]);
}

#[test]
fn alignment() {
    for (index, order, down, up) in [(0, 4, 0, 0), (1, 4, 0, 16), (15, 4, 0, 16), (16, 4, 16, 16)] {
        let (index, order) = (PageIndex(index), Order(order));
        assert_eq!(index.align_down(order), PageIndex(down), "{index}");
        assert_eq!(index.align_up(order), PageIndex(up), "{index}");
    }
    assert_eq!(PageIndex(37).align_down(Order(0)), PageIndex(37));
    assert_eq!(PageIndex(37).align_up(Order(0)), PageIndex(37));
}

#[test]
fn differences_and_sums() {
    assert_eq!(PageIndex(5).saturating_sub(PageCount(6)), PageIndex(0));
    assert_eq!(PageIndex(6).saturating_sub(PageCount(5)), PageIndex(1));
    assert_eq!(PageCount(5).saturating_sub(PageCount(6)), PageCount(0));
    assert_eq!(PageCount(6).saturating_sub(PageCount(5)), PageCount(1));
    assert_eq!(PageIndex(5) + PageCount(3), PageIndex(8));
    assert_eq!(PageIndex(5) - PageCount(3), PageIndex(2));
    assert_eq!(PageIndex(5) - PageIndex(3), PageCount(2));
    assert_eq!((Vpn(5) + PageCount(3), Vpn(5) - Vpn(3)), (Vpn(8), PageCount(2)));
    assert_eq!(
        (PageCount(5) + PageCount(3), PageCount(5) - PageCount(3)),
        (PageCount(8), PageCount(2))
    );
    let mut index = PageIndex(5);
    index += PageCount(3);
    let mut count = PageCount(5);
    count += PageCount(3);
    assert_eq!((index, count), (PageIndex(8), PageCount(8)));
    count -= PageCount(6);
    assert_eq!(count, PageCount(2));
}

#[test]
fn bytes_and_text() {
    assert_eq!(PageCount(3).bytes(4096), 12288);
    assert_eq!(PageCount(u64::MAX).bytes(4096), u64::MAX);
    assert_eq!(format!("{} {} {}", PageIndex(7), PageCount(8), Vpn(9)), "7 8 9");
    assert_eq!(format!("[{:>4}]", PageIndex(7)), "[   7]");
}
