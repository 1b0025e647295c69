"""Tasks: what a society is asked to do, how its answers are counted as the same, and in which form they come."""

from nlsom.task.base import Task
from nlsom.task.caption import CaptionTask
from nlsom.task.vqa import VqaTask

__all__ = ["CaptionTask", "Task", "VqaTask"]
