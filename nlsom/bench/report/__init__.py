"""Reports of runs: one self-contained page, a table in Markdown, or CSV."""

from nlsom.bench.report.page import page
from nlsom.bench.report.text import csv, markdown

__all__ = ["csv", "markdown", "page"]
