"""The table of small-order points in src/base/ed25519_point.cpp, held against arithmetic: it has the y of each of the
eight points whose order divides 8, and of no other."""

import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src/base/ed25519_point.cpp"
P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
L = 2**252 + 27742317777372353535851937790883648493  # the order of the base point


def xs_of(y):
    """The x of the points with this y, in ascending order."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    if root * root % P != square:
        root = root * pow(2, (P - 1) // 4, P) % P
    return sorted({root, -root % P}) if root * root % P == square else []


def add(a, b):
    product = D * a[0] * b[0] * a[1] * b[1] % P
    return ((a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, P) % P,
            (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P) % P)


def times(n, point):
    total = (0, 1)
    for digit in bin(n)[2:]:
        total = add(total, total)
        if digit == "1":
            total = add(total, point)
    return total


def table():
    body = SOURCE.read_text().split("small_order_y = {{", 1)[1].split("}};", 1)[0]
    rows = [bytes(int(byte, 16) for byte in re.findall(r"0x([0-9a-fA-F]{2})", row))
            for row in re.findall(r"\{([^}]*)\}", body)]
    return [int.from_bytes(row.ljust(32, b"\0"), "little") for row in rows]


class SmallOrder(unittest.TestCase):
    def test_every_row_is_of_small_order_and_there_are_eight_points(self):
        points = [(x, y) for y in table() for x in xs_of(y)]
        self.assertEqual(len(set(points)), 8)  # as many as the curve has: its order is 8 L
        for point in points:
            self.assertEqual(times(8, point), (0, 1), point)
        self.assertEqual(len(table()), 5)

    def test_a_point_of_another_order_is_told_from_them(self):
        base = (xs_of(4 * pow(5, -1, P) % P)[0], 4 * pow(5, -1, P) % P)
        self.assertEqual(times(L, base), (0, 1))
        self.assertNotEqual(times(8, base), (0, 1))
        self.assertNotIn(base[1], table())

    def test_the_constant_d(self):
        digits = SOURCE.read_text().split("curve_d = {", 1)[1].split("}", 1)[0]
        digits = [int(digit, 16) for digit in re.findall(r"0x([0-9a-fA-F]{8})", digits)]
        self.assertEqual(sum(digit << 32 * at for at, digit in enumerate(digits)), D)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
