//! Sizes and times for people.

/// Returns a size with its unit, such as `4 KiB` or `20.8 MiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // A value that rounds to 1024 belongs to the next unit.
    let (mut tenths, mut unit) = (tenths_of(bytes, 1 << 10), 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        unit += 1;
        tenths = tenths_of(bytes, 1 << (10 * (unit + 1)));
    }
    let (whole, tenth) = (tenths / 10, tenths % 10);
    if tenth == 0 || whole >= 100 {
        format!("{} {}", (tenths + 5) / 10, UNITS[unit])
    } else {
        format!("{whole}.{tenth} {}", UNITS[unit])
    }
}

fn tenths_of(bytes: u64, unit: u64) -> u64 {
    ((u128::from(bytes) * 10 + u128::from(unit / 2)) / u128::from(unit)) as u64
}

/// Appends a time in ms with one decimal place, or with three if it is short.
pub(super) fn push_ms(text: &mut Vec<u8>, ns: i64) {
    let digits = |text: &mut Vec<u8>, mut value: u64, least: usize| {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while value > 0 || digits.len() - at < least {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
        }
        text.extend_from_slice(&digits[at..]);
    };
    if ns < 0 {
        text.push(b'-');
    }
    let ns = ns.unsigned_abs();
    let (unit, places) = if ns < 1_000_000 { (1000, 3) } else { (100_000, 1) };
    let rounded = ns / unit + u64::from(ns % unit >= unit / 2);
    let scale = 10u64.pow(places);
    digits(text, rounded / scale, 1);
    text.push(b'.');
    digits(text, rounded % scale, places as usize);
    text.extend_from_slice(b" ms");
}

/// Returns a time that a narrow place has room for: three digits, such as `14.2 s` or `845 ms`.
pub(super) fn duration(ns: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)];
    let (unit, scale) = UNITS.into_iter().find(|(_, scale)| ns >= *scale).unwrap_or(("ns", 1));
    let rounded = |parts: i128| (i128::from(ns) * parts + i128::from(scale) / 2) / i128::from(scale);
    match (rounded(100), rounded(10)) {
        _ if unit == "ns" => format!("{ns} ns"),
        (hundredths @ ..1000, _) => format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100),
        (_, tenths @ ..1000) => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        _ => format!("{} {unit}", rounded(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (73_560_000, "73.6 ms"),
            (848_400_000, "848 ms"),
            (999_600_000, "1000 ms"),
            (1_034_000_000, "1.03 s"),
            (14_249_000_000, "14.2 s"),
            (9_999_000_000, "10.0 s"),
            (99_960_000_000, "100 s"),
            (3_600_000_000_000, "3600 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (4096, "4 KiB"),
            (65_536, "64 KiB"),
            (68_000, "66.4 KiB"),
            (1_048_575, "1 MiB"),
            (104_857_600, "100 MiB"),
            (128_870_000, "123 MiB"),
            (21_810_381, "20.8 MiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn times() {
        for (ns, expected) in [
            (0, "0.000 ms"),
            (1_499, "0.001 ms"),
            (999_500, "1.000 ms"),
            (1_000_000, "1.0 ms"),
            (97_049_999, "97.0 ms"),
            (97_050_000, "97.1 ms"),
            (-22_200_000, "-22.2 ms"),
            (i64::MIN, "-9223372036854.8 ms"),
        ] {
            let mut text = Vec::new();
            push_ms(&mut text, ns);
            assert_eq!(String::from_utf8_lossy(&text), expected, "{ns}");
        }
    }
}
