"""Reports of runs: a self-contained HTML page, a Markdown table, or CSV."""

from nlsom.bench.report.page import page
from nlsom.bench.report.text import csv, markdown

__all__ = ["csv", "markdown", "page"]
