//! What is known of the last owner, however the others leave: against a plain count of each mm.

use crate::anon_cow::shuffle;
use crate::error::Error;
use crate::folio::Folio;
use crate::mapcount::Mapcount;
use crate::mm_id::MmId;
use crate::order::Order;

/// Orders in which mms that map a folio leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// How many orders there were.
    pub orders: u64,
    /// Those after which the last mm was not known to be alone.
    pub lost: u64,
    /// How often a folio of several mms was said to be of one.
    pub wrong: u64,
}

/// Lets `mms` mms map a folio and all but one of them leave it: in every order where these are no
/// more than `most`, else in so many that look random.
///
/// # Errors
/// When there are not as many ids.
pub fn leaving<C: Mapcount>(mms: u32, most: u64) -> Result<Leaving, Error> {
    let ids = (1..=mms).map(MmId::new).collect::<Result<Vec<_>, _>>()?;
    let mut found = Leaving::default();
    if (1..=u64::from(mms)).try_fold(1, u64::checked_mul).is_some_and(|all| all <= most) {
        let mut order = ids.clone();
        loop {
            found.add::<C>(&ids, &order)?;
            if !next(&mut order) {
                return Ok(found);
            }
        }
    }
    for seed in 1..=most {
        let mut order = ids.clone();
        // Seeds lie apart, as one and the next would begin alike.
        shuffle(&mut order, seed.wrapping_mul(0xd134_2543_de82_ef95));
        found.add::<C>(&ids, &order)?;
    }
    Ok(found)
}

impl Leaving {
    /// Has `ids` map a folio, and leave it in this order.
    fn add<C: Mapcount>(&mut self, ids: &[MmId], order: &[MmId]) -> Result<(), Error> {
        let folio = Folio::<C>::new(Order::new(1)?)?;
        let mut mapping: Vec<MmId> = Vec::new();
        for &mm in ids {
            folio.map(mm, 0..2);
            mapping.push(mm);
            self.judge(&folio, &mapping);
        }
        for &mm in &order[..order.len() - 1] {
            folio.unmap(mm, 0..2);
            mapping.retain(|&other| other != mm);
            self.judge(&folio, &mapping);
        }
        self.orders += 1;
        self.lost += u64::from(folio.counts().owned_by(mapping[0]).is_none());
        Ok(())
    }

    /// Counts an answer that is no answer to who really maps the folio.
    fn judge<C: Mapcount>(&mut self, folio: &Folio<C>, mapping: &[MmId]) {
        let [first, .., last] = mapping else { return };
        let counts = folio.counts();
        let one_is_named = [first, last].iter().any(|&&mm| counts.owned_by(mm).is_some());
        self.wrong += u64::from(!counts.maybe_shared() || one_is_named);
    }
}

/// The next order of those that begin with the ascending one; `false` after the last.
fn next(order: &mut [MmId]) -> bool {
    let Some(at) = order.windows(2).rposition(|two| two[0] < two[1]) else { return false };
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
    fn slots_lose_all_but_two_and_sums_none() {
        for (mms, orders) in [(2, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
            let lost = orders * (u64::from(mms) - 2) / u64::from(mms);
            let found = [leaving::<MmOwner>(mms, 720), leaving::<PreciseOwners>(mms, 720)];
            let of = |lost| Ok(Leaving { orders, lost, wrong: 0 });
            assert_eq!(found, [of(lost), of(0)]);
        }
        let many = leaving::<MmOwner>(64, 1000).unwrap();
        assert!((940..=990).contains(&many.lost) && many.orders == 1000, "{many:?}");
        assert_eq!(leaving::<MmOwner>(64, 1000).unwrap(), many);
    }
}
