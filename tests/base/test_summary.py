"""Summaries print within a terminal, and hold the figures."""

from missratio._base.summary import WIDTH, Summary


def test_long_tables_and_names_are_cut_where_they_are_seen():
    rows = tuple((f"{'column ' * 20}{i}", "1.5", "2.5") for i in range(100))
    facts = (("a", "1"), ("b", "word " * 30), ("c", "2"), ("d", "3"))
    text = str(Summary("t", facts, ("feature", "a", "b"), rows))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "… and 40 more" in text
    assert sum("…" in line for line in text.splitlines()) == 61
