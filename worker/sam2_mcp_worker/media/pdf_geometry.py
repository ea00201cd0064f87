"""From a PDF's own coordinates to those of the page as it is displayed. Pure.

A PDF measures from the bottom left of an unrotated sheet, and shows the part within the crop box turned by /Rotate.
Everyone else here measures in points from the top left of what is seen, so that one factor gives pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

BoxPt = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points from the top left of the displayed page."""
Matrix = tuple[float, float, float, float, float, float]
"""a, b, c, d, e, f as in a PDF: x' = a x + c y + e, y' = b x + d y + f."""

IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PageGeometry:
    """The displayed part of a page: its box in PDF coordinates, and how far it is turned clockwise."""

    left: float
    bottom: float
    right: float
    top: float
    rotation_deg: int

    @property
    def size_pt(self) -> tuple[float, float]:
        """Width and height as displayed."""
        width, height = self.right - self.left, self.top - self.bottom
        return (height, width) if self.rotation_deg in (90, 270) else (width, height)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the PDF in displayed points."""
        match self.rotation_deg:
            case 90:
                return y - self.bottom, x - self.left
            case 180:
                return self.right - x, y - self.bottom
            case 270:
                return self.top - y, self.right - x
            case _:
                return x - self.left, self.top - y

    def direction(self, dx: float, dy: float) -> tuple[float, float]:
        """A vector of the PDF as displayed, y pointing down."""
        (x0, y0), (x1, y1) = self.point(0.0, 0.0), self.point(dx, dy)
        return x1 - x0, y1 - y0

    def box(self, left: float, bottom: float, right: float, top: float) -> BoxPt:
        """A rectangle of the PDF as displayed."""
        (x0, y0), (x1, y1) = self.point(left, bottom), self.point(right, top)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def sheet_box(self, box: BoxPt) -> BoxPt:
        """The inverse of `box`: left, bottom, right, top in the PDF's own coordinates of a displayed rectangle."""
        x0, y0, x1, y1 = box
        match self.rotation_deg:
            case 90:
                return self.left + y0, self.bottom + x0, self.left + y1, self.bottom + x1
            case 180:
                return self.right - x1, self.bottom + y0, self.right - x0, self.bottom + y1
            case 270:
                return self.right - y1, self.top - x1, self.right - y0, self.top - x0
            case _:
                return self.left + x0, self.top - y1, self.left + x1, self.top - y0

    def clip(self, box: BoxPt) -> BoxPt:
        """The part of a displayed box that lies on the page; empty boxes keep their place on its edge."""
        width, height = self.size_pt
        x0, y0, x1, y1 = box
        return (
            min(max(x0, 0.0), width),
            min(max(y0, 0.0), height),
            min(max(x1, 0.0), width),
            min(max(y1, 0.0), height),
        )

    def contains(self, x: float, y: float) -> bool:
        """Whether a displayed point lies on the page."""
        width, height = self.size_pt
        return 0.0 <= x <= width and 0.0 <= y <= height


def rendered_size_px(width_pt: float, height_pt: float, px_per_pt: float) -> tuple[int, int]:
    """Pixels of a page at a scale: rounded, so that 1916 pt at 1 px per pt are 1916 px; at least 1 x 1."""
    return max(1, round(width_pt * px_per_pt)), max(1, round(height_pt * px_per_pt))


def multiply(inner: Matrix, outer: Matrix) -> Matrix:
    """The matrix that applies `inner` first and `outer` to its result."""
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def bounds_after(matrix: Matrix, left: float, bottom: float, right: float, top: float) -> BoxPt:
    """The axis-aligned box (left, bottom, right, top) of a transformed rectangle."""
    a, b, c, d, e, f = matrix
    corners = [(a * x + c * y + e, b * x + d * y + f) for x in (left, right) for y in (bottom, top)]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)
