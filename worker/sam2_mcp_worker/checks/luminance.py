"""Relative luminance and contrast ratio of two colours, as WCAG 2.2 defines them. Pure, and light for children."""

from __future__ import annotations

from collections.abc import Iterable

Rgb = tuple[float, float, float]
"""Red, green, blue as stored in a picture (sRGB), 0-255."""

WEIGHTS = (0.2126, 0.7152, 0.0722)
"""How bright red, green and blue light are to the eye."""


def relative_luminance(rgb: Iterable[float]) -> float:
    """0 (black) to 1 (white)."""
    return sum(weight * linear(float(value)) for weight, value in zip(WEIGHTS, rgb, strict=True))


def contrast_ratio(one: Iterable[float], other: Iterable[float]) -> float:
    """1 (the same luminance) to 21 (black and white), whichever is the text."""
    return luminance_ratio(relative_luminance(one), relative_luminance(other))


def luminance_ratio(one: float, other: float) -> float:
    """The contrast ratio of two luminances; 0.05 is the light that a screen reflects."""
    darker, lighter = sorted((one, other))
    return (lighter + 0.05) / (darker + 0.05)


def linear(stored: float) -> float:
    """Of a stored value of one colour, 0-255, the light that it stands for, 0-1."""
    value = stored / 255
    return float(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
