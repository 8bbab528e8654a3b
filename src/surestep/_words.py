"""Writes numbers and labels for readers: few digits, true minus signs, no control characters."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Self

THIN_SPACE = "\u202f"  # narrow, and no line breaks there
UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SMALLEST = 1e-300
TINY, HUGE = 1e-6, 1e15  # numbers between these are written out


def number(value: float, digits: int = 4) -> str:
    """Returns a number of some significant digits: 1,234,568 · 12.35 · 0.0001235 · 1.235 × 10⁻⁹.

    >>> number(-1234567.8), number(12.3456), number(0.5), number(0.0)
    ('−1,234,568', '12.35', '0.5', '0')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    magnitude = abs(value)
    if magnitude >= HUGE or 0 < magnitude < TINY:
        return in_powers(f"{value:.{digits - 1}e}")
    lead = math.floor(math.log10(magnitude)) + 1 if magnitude > 0 else 1
    text = without_zeros(f"{value:,.{max(digits - lead, 0)}f}")
    return ("0" if text == "-0" else text).replace("-", "−")


def without_zeros(text: str) -> str:
    """Returns a written number without the zeros that end its decimals."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_powers(text: str) -> str:
    """Returns '1.5e-09' as 1.5 × 10⁻⁹."""
    mantissa, exponent = text.split("e")
    raised = str(int(exponent)).translate(RAISED)
    return f"{without_zeros(mantissa)} × 10{raised}".replace("-", "−")


def signed(value: float, digits: int = 4) -> str:
    """Returns a change, with its sign.

    >>> signed(12.3), signed(-0.5), signed(0.0)
    ('+12.3', '−0.5', '±0')
    """
    text = number(value, digits)
    if text == "0":
        return "±0"
    return text if value < 0 else f"+{text}"


def floored(value: float, digits: int = 4) -> float:
    """Returns a lower bound as `number` can write it: rounded down, so that it stays one.

    >>> floored(0.123456), floored(-0.123456), floored(-1234567.8), floored(350.0)
    (0.1234, -0.1235, -1234568.0, 350.0)
    """
    if value == 0 or not math.isfinite(value):
        return value
    exact = Decimal(repr(float(value)))
    written = digits if abs(value) >= HUGE else max(digits, exact.adjusted() + 1)
    return float(Context(written, ROUND_FLOOR).create_decimal(exact))


@dataclass(frozen=True, slots=True)
class Scale:
    """One way to write numbers that stand together, so that they can be compared at a glance.

    All have the same decimals and the same unit, a power of ten that is 1 wherever people would
    write numbers out. A number that would round to 0 is shown as less than the last decimal.
    """

    power: int  # numbers are written in units of 10 to this
    decimals: int

    @classmethod
    def of(cls, values: Iterable[float], digits: int = 3) -> Self:
        """Returns the scale on which the largest number has so many digits.

        >>> values = [0.0123, 8.55e-05, 2e-05, -2e-09]
        >>> [Scale.of(values).signed(value).replace(THIN_SPACE, " ") for value in values]
        ['+0.0123', '+0.0001', '< 0.0001', '> −0.0001']
        >>> Scale.of([3.21e-8]).signed(3.21e-8), Scale.of([3.21e-8]).unit
        ('+32.1', ' (in 10⁻⁹)')
        """
        largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        if largest < SMALLEST:
            return cls(0, 0)
        lead = math.floor(math.log10(largest))
        written_out = 100 * TINY <= largest < HUGE
        power = 0 if written_out else max(3 * (lead // 3), -300)
        return cls(power, max(digits - 1 - (lead - power), 0))

    @property
    def unit(self) -> str:
        """Returns the unit to write beside the numbers: empty, or ' (in 10⁻⁶)'."""
        return f" (in 10{str(self.power).translate(RAISED)})" if self.power else ""

    def number(self, value: float) -> str:
        """Returns a number on this scale."""
        if not math.isfinite(value):
            return number(value)
        text = self._digits(value)
        if value != 0 and text == self._digits(0.0):
            least = self._digits(10.0 ** (self.power - self.decimals))
            return f"<{THIN_SPACE}{least}" if value > 0 else f">{THIN_SPACE}−{least}"
        return f"−{text}" if value < 0 else text

    def signed(self, value: float) -> str:
        """Returns a change on this scale, with its sign."""
        text = self.number(value)
        if value == 0:
            return "±0"
        return f"+{text}" if value > 0 and text[0].isdigit() else text

    def _digits(self, value: float) -> str:
        """Returns the digits of a number, without a sign."""
        return f"{abs(value) / 10.0**self.power:,.{self.decimals}f}"


def percent(share: float) -> str:
    """Returns a share of a whole in per cent, with one digit after the point where it is small.

    >>> [percent(share).replace(THIN_SPACE, " ") for share in (0.5, 0.034, 0.0002, 0.0, 0.999)]
    ['50 %', '3.4 %', '< 0.1 %', '0 %', '99.9 %']
    """
    hundredths = 100 * share
    if 0 < hundredths < 0.1:
        return f"<{THIN_SPACE}0.1{THIN_SPACE}%"
    if 99.9 < hundredths < 100:
        return f">{THIN_SPACE}99.9{THIN_SPACE}%"
    near_an_end = hundredths < 10 or 90 < hundredths < 100
    text = f"{hundredths:.1f}".removesuffix(".0") if near_an_end else f"{hundredths:,.0f}"
    return f"{text}{THIN_SPACE}%".replace("-", "−")


def ceiled(share: float) -> float:
    """Returns an upper bound of a share with as many digits as `percent` shows, rounded up.

    >>> ceiled(0.0341), ceiled(0.341), ceiled(0.9341), ceiled(1.2)
    (0.035, 0.35, 0.935, 1.0)
    """
    digits = 100 if 0.1 <= share <= 0.9 else 1000
    return min(math.ceil(share * digits) / digits, 1.0)


def duration(seconds: float) -> str:
    """Returns a time, roughly.

    >>> duration(0.2), duration(40.0), duration(200.0), duration(7300.0)
    ('1 s', '40 s', '3 min', '2 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60):,} min" if seconds < 5400 else f"{round(seconds / 3600):,} h"


def counted(many: int, noun: str, plural: str | None = None) -> str:
    """Returns a number of things.

    >>> counted(1, "pair"), counted(1200, "pair"), counted(2, "policy", "policies")
    ('1 pair', '1,200 pairs', '2 policies')
    """
    return f"{many:,} {noun if many == 1 else plural or noun + 's'}"


def about(many: int) -> str:
    """Returns a number rounded to two digits, after the word "about".

    >>> about(146_779), about(7)
    ('about 150,000', 'about 7')
    """
    return f"about {int(float(f'{many:.2g}')):,}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Returns words in a row.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def short(value: float) -> str:
    """Returns a number for an axis: 20 · 1.5 k · 10 M.

    >>> [short(value).replace(THIN_SPACE, " ") for value in (0.05, 20, 1500, 1e7, -2e12)]
    ['0.05', '20', '1.5 k', '10 M', '−2 × 10¹²']
    """
    if abs(value) >= 1e12 or 0 < abs(value) < 100 * TINY:
        return in_powers(f"{value:e}")
    for size, unit in UNITS:
        if abs(value) >= size:
            return f"{value / size:g}{THIN_SPACE}{unit}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


# ---- texts from the data ------------------------------------------------------------------------

SHORTENED = 120  # letters of a label that is shown

# Control characters get their pictures; what has no place in a text, or turns it around, a mark.
HARMLESS = {code: chr(0x2400 + code) for code in range(32)} | {
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0)), "\ufffd"),
    **dict.fromkeys((0x61C, 0x200E, 0x200F, 0x2028, 0x2029), "\ufffd"),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"),
    **{plane << 16 | code: "\ufffd" for plane in range(17) for code in (0xFFFE, 0xFFFF)},
}


def harmless(text: str, most: int = SHORTENED) -> str:
    r"""Returns a text from the data on one line, shortened, with control characters made visible.

    >>> harmless("a\tb"), harmless(""), harmless("abcdef", 4)
    ('a␉b', '(empty)', 'abc…')
    """
    shown = text.translate(HARMLESS) or "(empty)"
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


FORMULA = re.compile(r"[=+\-@\t\r\n']")
PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def escaped_cell(label: str) -> str:
    """Returns a label that no spreadsheet takes for a formula.

    >>> [escaped_cell(label) for label in ("ward", "-3", "=A1", "'quoted'")]
    ['ward', '-3', "'=A1", "''quoted'"]
    """
    is_plain = not FORMULA.match(label) or PLAIN_NUMBER.fullmatch(label)
    return label if is_plain else f"'{label}"


# C0, DEL and C1, the ends of lines and paragraphs of Unicode, and what turns the direction of text.
OBEYED = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Returns the text with every character that a terminal would obey replaced by its name.

    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    return OBEYED.sub(lambda match: repr(match[0])[1:-1], text)
