//! Whether the last owner of a folio is known, in whichever order the others exit.

use crate::anon_cow::shuffle;
use crate::error::Error;
use crate::folio::{Folio, Order};
use crate::mapcount::Mapcount;
use crate::mm_id::MmId;

/// Orders in which all mms but one unmap a folio, against a list of who maps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitOrders {
    /// Orders that were tried.
    pub orders: u64,
    /// Orders after which the last mm was not known to be alone.
    pub lost: u64,
    /// Moments at which a folio of several mms counted as one mm's.
    pub wrong: u64,
}

/// Lets `mms` mms map a folio and all but one of them unmap it: in every order if these are at most
/// `max`, else in `max` pseudorandom ones.
///
/// # Errors
/// When there are not enough ids.
pub fn count_exit_orders<C: Mapcount>(mms: u32, max: u64) -> Result<ExitOrders, Error> {
    let ids = (1..=mms).map(MmId::new).collect::<Result<Vec<_>, _>>()?;
    let mut counts = ExitOrders::default();
    if (1..=u64::from(mms)).try_fold(1, u64::checked_mul).is_some_and(|all| all <= max) {
        let mut order = ids.clone();
        loop {
            counts.add::<C>(&ids, &order)?;
            if !next_permutation(&mut order) {
                return Ok(counts);
            }
        }
    }
    for seed in 1..=max {
        let mut order = ids.clone();
        // Neighbouring seeds would begin alike.
        shuffle(&mut order, seed.wrapping_mul(0xd134_2543_de82_ef95));
        counts.add::<C>(&ids, &order)?;
    }
    Ok(counts)
}

/// The share of exit orders of `mms` mms after which two slots do not know the last one.
///
/// The first two mms have the slots. The last one is any of them with the same probability, and is
/// known if it is one of these two.
pub fn lost_share_of_two_slots(mms: u32) -> f64 {
    1.0 - 2.0 / f64::from(mms.max(2))
}

impl ExitOrders {
    /// Has `ids` map a folio, and unmap it in this order.
    fn add<C: Mapcount>(&mut self, ids: &[MmId], order: &[MmId]) -> Result<(), Error> {
        let folio = Folio::<C>::new(Order::new(1)?)?;
        let mut owners: Vec<MmId> = Vec::new();
        for &mm in ids {
            folio.map(mm, 0..2);
            owners.push(mm);
            self.check(&folio, &owners);
        }
        for &mm in &order[..order.len() - 1] {
            folio.unmap(mm, 0..2);
            owners.retain(|&other| other != mm);
            self.check(&folio, &owners);
        }
        self.orders += 1;
        self.lost += u64::from(folio.counts().owned_by(owners[0]).is_none());
        Ok(())
    }

    /// Counts wrong answers while several mms map the folio.
    fn check<C: Mapcount>(&mut self, folio: &Folio<C>, owners: &[MmId]) {
        let [first, .., last] = owners else { return };
        let counts = folio.counts();
        let has_owner = [first, last].iter().any(|&&mm| counts.owned_by(mm).is_some());
        self.wrong += u64::from(!counts.maybe_shared() || has_owner);
    }
}

/// Advances to the next permutation, in lexical order; `false` after the last.
fn next_permutation(order: &mut [MmId]) -> bool {
    let Some(at) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let larger = order.iter().rposition(|id| *id > order[at]).expect("the next one is larger");
    order.swap(at, larger);
    order[at + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MmOwner, PreciseOwners};

    #[test]
    fn slots_lose_all_but_two_orders_of_k_and_sums_none() {
        for (mms, orders) in [(2, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
            let lost = orders * (u64::from(mms) - 2) / u64::from(mms);
            let slots = count_exit_orders::<MmOwner>(mms, 720);
            let sums = count_exit_orders::<PreciseOwners>(mms, 720);
            let expected = |lost| Ok(ExitOrders { orders, lost, wrong: 0 });
            assert_eq!([slots, sums], [expected(lost), expected(0)]);
            let share = lost as f64 / orders as f64;
            assert!((lost_share_of_two_slots(mms) - share).abs() < 1e-12);
        }
        let many = count_exit_orders::<MmOwner>(64, 1000).unwrap();
        assert!((940..=990).contains(&many.lost) && many.orders == 1000, "{many:?}");
        assert_eq!(count_exit_orders::<MmOwner>(64, 1000).unwrap(), many);
    }
}
