"""Reports of runs: one self-contained page, a table in Markdown, or CSV."""

from nlsom.bench.report.page import Remake, page
from nlsom.bench.report.text import csv, markdown

__all__ = ["Remake", "csv", "markdown", "page"]
