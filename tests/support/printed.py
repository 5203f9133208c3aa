"""Printed text compared with a page: words as words and numbers as numbers."""

import doctest
import re

NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
PIECE = re.compile(rf"(?P<dots>\.\.\.)|(?P<space>\s+)|(?P<number>(?<![\w.]){NUMBER})")


class NumberChecker(doctest.OutputChecker):
    """Numbers agree to the last digit that the page shows, or one beside it.

    Integers are compared as they are. `...` stands for any text, and white space for
    any other.
    """

    def check_output(self, want, got, optionflags):
        pattern, numbers, end = r"\s*", [], 0
        want = want.replace("<BLANKLINE>", "").strip()
        for piece in PIECE.finditer(want):
            pattern += re.escape(want[end : piece.start()])
            end = piece.end()
            if piece["dots"]:
                pattern += ".*?"
            elif piece["space"]:
                pattern += r"\s+"
            elif re.search(r"[.e]", piece["number"]):
                pattern += f"({NUMBER})"
                numbers.append(piece["number"])
            else:
                pattern += re.escape(piece["number"])
        pattern += re.escape(want[end:]) + r"\s*"
        match = re.fullmatch(pattern, got, re.DOTALL)
        return match is not None and all(map(_agree, numbers, match.groups()))


def _agree(shown, printed):
    digits, _, exponent = shown.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(_value(shown) - _value(printed)) <= 1.001 * unit


def _value(text):
    return float(text.replace("−", "-").replace(",", ""))
