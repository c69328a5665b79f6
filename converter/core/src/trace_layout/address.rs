//! Kernel addresses in a trace.

/// Returns an address as a trace holds it: without the leading ones of a kernel address (`ffff`, or `ff` with five levels of page tables),
/// because the UI takes numbers from 2^63 on for negative ones. `None` if the number then means another address.
pub(crate) fn short_address(address: u64) -> Option<u64> {
    let short = [address, address & ((1 << 48) - 1), address & ((1 << 56) - 1)];
    short.into_iter().find(|&short| short >> 63 == 0 && whole_address(short) == address)
}

/// Returns the address that a trace holds as `short`.
pub(crate) fn whole_address(short: u64) -> u64 {
    match short {
        0x8000_0000_0000..0x1_0000_0000_0000 => short | 0xffff << 48,
        0x1_0000_0000_0000..0x100_0000_0000_0000 => short | 0xff << 56,
        _ => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_address_is_never_negative_and_means_one_address() {
        let addresses =
            [0, 1, 0xffff_8881_2345_6780, 0xff11_0000_1234_5678, 0x8881_2345_6780, 1 << 47, 1 << 48, 1 << 63];
        for bits in 0..64 {
            for address in addresses.map(|address: u64| address ^ 1 << bits) {
                if let Some(short) = short_address(address) {
                    assert!(short < 1 << 63);
                    assert_eq!(whole_address(short), address);
                }
            }
        }
        assert_eq!(short_address(0xffff_8881_2345_6780), Some(0x8881_2345_6780));
        assert_eq!(short_address(0x7fff_ffff_ffff), Some(0x7fff_ffff_ffff));
        assert_eq!(short_address(0xff11_0000_1234_5678), Some(0x11_0000_1234_5678));
        // These are written as texts: they would mean other addresses, or look negative.
        for address in [0x8881_2345_6780, 0x11_0000_1234_5678, 0x8011_0000_1234_5678] {
            assert_eq!(short_address(address), None);
        }
    }
}
