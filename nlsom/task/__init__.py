"""Tasks: what a society is asked, the form of its answer, and which answers count as the same."""

from nlsom.task.base import Task
from nlsom.task.caption import CaptionTask
from nlsom.task.general import GeneralTask
from nlsom.task.vqa import VqaTask

__all__ = ["CaptionTask", "GeneralTask", "Task", "VqaTask"]
