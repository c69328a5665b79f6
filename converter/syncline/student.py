"""Student's t distribution."""

from __future__ import annotations

import math

__all__ = ["student_below", "student_quantile"]


def student_quantile(probability: float, freedom: float) -> float:
    """Returns the quantile of Student's t for a probability from 0.5 to 1."""
    if probability <= 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while student_below(high, freedom) < probability and high < 1e12:
        low, high = high, high * 2
    value = (low + high) / 2
    for _ in range(100):
        beyond = student_below(value, freedom) - probability
        low, high = (low, value) if beyond > 0 else (value, high)
        step = value - beyond / _student_density(value, freedom)
        # Before the bounds: the step of a value that is exact is on one, and bisection would leave the value for 40 more steps.
        if abs(step - value) <= 1e-12 * value:
            break
        # Newton's step, or bisection if that leaves the bounds.
        value = step if low < step < high else (low + high) / 2
    return value


def _student_density(t: float, freedom: float) -> float:
    if math.isinf(freedom):
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    tail = (freedom + 1) / 2 * math.log1p(t * t / freedom)
    return math.exp(front - tail) / math.sqrt(freedom * math.pi)


def student_below(t: float, freedom: float) -> float:
    """Returns P(T <= t)."""
    if t < 0:
        return 1 - student_below(-t, freedom)
    if math.isinf(freedom):
        return 0.5 * math.erfc(-t / math.sqrt(2))
    return 1 - 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Computes the regularized incomplete beta function by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for step in range(1, 500):
        up = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        down = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for factor in (up, down):
            d = 1 / (1 + factor * d or tiny)
            c = 1 + factor / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction / a
