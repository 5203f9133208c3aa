"""Readers, by the name that they had."""

from missratio._base.reading import *  # noqa: F403
