"""The colour that the Perfetto UI gives a slice, by the rules of its colorizer.ts, and how a colour-blind person sees it.

The UI (v52 to v58) removes digits from the name of a slice, hashes it, and makes a colour of the HSLuv space of it.
"""

from __future__ import annotations

import math
import re

Colour = tuple[float, float, float]

# HSLuv (hsluv.org): CIE LUV with the chroma as a share of what sRGB can show.
TO_SRGB = (
    (3.240969941904521, -1.537383177570093, -0.498610760293),
    (-0.96924363628087, 1.87596750150772, 0.041555057407175),
    (0.055630079696993, -0.20397695888897, 1.056971514242878),
)
WHITE_U, WHITE_V = 0.19783000664283, 0.46831999493879
KAPPA, EPSILON = 903.2962962, 0.0088564516

# Viénot, Brettel and Mollon (1999) and, for tritanopia, Brettel, Viénot and Mollon (1997) as published by
# Machado, Oliveira and Fernandes (2009) for a severity of 1, on linear sRGB.
BLINDNESS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def hash_of(text: str, limit: int) -> int:
    """`hash` of the UI: FNV-1a, as JavaScript calculates it."""
    value = 0x811C9DC5 & 0xFFFFFFF
    for unit in text.encode("utf-16-le")[::2] if text.isascii() else map(ord, text):
        value = _int32(value ^ unit)
        # JavaScript multiplies doubles and takes the lowest 32 bits of the result.
        value = _int32(int(float(value) * 16777619.0))
    return abs(value) % limit


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def of_slice(name: str, *, keeps_digits: bool = False) -> Colour:
    """The colour of a slice with this name, as linear sRGB from 0 to 1. `keeps_digits`: of a correlation id."""
    seed = name if keeps_digits else re.sub(r"( )?\d+", "", name)
    return of_hsluv(hash_of(seed, 360), 80, hash_of(seed + "x", 40) + 40)


def of_hsluv(hue: float, saturation: float, lightness: float) -> Colour:
    angle = math.radians(hue)
    chroma = _greatest_chroma(lightness, angle) * saturation / 100
    u = chroma * math.cos(angle) / (13 * lightness) + WHITE_U
    v = chroma * math.sin(angle) / (13 * lightness) + WHITE_V
    y = ((lightness + 16) / 116) ** 3 if lightness > 8 else lightness / KAPPA
    x = 9 * y * u / (4 * v)
    z = y * (12 - 3 * u - 20 * v) / (4 * v)
    return _clamped(_times(TO_SRGB, (x, y, z)))


def _greatest_chroma(lightness: float, angle: float) -> float:
    """The largest chroma of this lightness and hue in sRGB."""
    cube = (lightness + 16) ** 3 / 1560896
    scaled = cube if cube > EPSILON else lightness / KAPPA
    lengths = []
    for m1, m2, m3 in TO_SRGB:
        for bound in (0, 1):
            top1 = (284517 * m1 - 94839 * m3) * scaled
            top2 = (838422 * m3 + 769860 * m2 + 731718 * m1) * lightness * scaled
            top2 -= 769860 * bound * lightness
            bottom = (632260 * m3 - 126452 * m2) * scaled + 126452 * bound
            length = (top2 / bottom) / (math.sin(angle) - top1 / bottom * math.cos(angle))
            if length >= 0:
                lengths.append(length)
    return min(lengths)


def seen_with(blindness: str, colour: Colour) -> Colour:
    return _clamped(_times(BLINDNESS[blindness], colour))


def distance(one: Colour, other: Colour) -> float:
    """CIE76: the distance in CIELAB. About 2 can just be noticed side by side."""
    return math.dist(_lab(one), _lab(other))


def difference(one: Colour, other: Colour) -> float:
    """CIEDE2000 (Sharma, Wu and Dalal 2005), which follows what people see better than CIE76, above all for saturated colours."""
    return difference_of_lab(_lab(one), _lab(other))


def difference_of_lab(one: Colour, other: Colour) -> float:
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    scale = 1.5 - 0.5 * math.sqrt(mean**7 / (mean**7 + 25**7))
    (c1, h1), (c2, h2) = (
        (math.hypot(scale * a, b), math.degrees(math.atan2(b, scale * a)) % 360)
        for a, b in ((a1, b1), (a2, b2))
    )
    has_hue = c1 * c2 != 0
    turn = (h2 - h1 + 180) % 360 - 180 if has_hue else 0.0
    hue = (h1 + turn / 2) % 360 if has_hue else h1 + h2
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = (
        1
        - 0.17 * math.cos(math.radians(hue - 30))
        + 0.24 * math.cos(math.radians(2 * hue))
        + 0.32 * math.cos(math.radians(3 * hue + 6))
        - 0.2 * math.cos(math.radians(4 * hue - 63))
    )
    square = (lightness - 50) ** 2
    light = (l2 - l1) / (1 + 0.015 * square / math.sqrt(20 + square))
    strong = (c2 - c1) / (1 + 0.045 * chroma)
    hued = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    blue = 60 * math.exp(-(((hue - 275) / 25) ** 2))
    rotation = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(blue))
    return math.sqrt(light**2 + strong**2 + hued**2 + rotation * strong * hued)


def rgb(colour: Colour) -> tuple[int, int, int]:
    """As bytes with the gamma of sRGB."""
    red, green, blue = (
        round(255 * (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055))
        for c in colour
    )
    return red, green, blue


def _lab(colour: Colour) -> Colour:
    to_xyz = (
        (0.4123907993, 0.3575843394, 0.1804807884),
        (0.2126390059, 0.7151686788, 0.0721923154),
        (0.0193308187, 0.1191947798, 0.9505321522),
    )
    white = (0.9504559271, 1.0, 1.0890577508)
    shares = (c / w for c, w in zip(_times(to_xyz, colour), white, strict=True))
    x, y, z = (c ** (1 / 3) if c > 216 / 24389 else (24389 / 27 * c + 16) / 116 for c in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _times(matrix: tuple[Colour, ...], colour: Colour) -> Colour:
    x, y, z = (sum(m * c for m, c in zip(row, colour, strict=True)) for row in matrix)
    return x, y, z


def _clamped(colour: Colour) -> Colour:
    red, green, blue = (min(max(c, 0.0), 1.0) for c in colour)
    return red, green, blue
