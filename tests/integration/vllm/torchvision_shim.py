"""Lets torchvision's PyPI build, which is linked against CUDA, be imported beside a torch built for CPU only.

Its compiled library cannot be loaded there, so the operators that it would define are missing, and the import
fails where torchvision describes them. Their schemas alone are enough: transforms work, `torchvision.ops.nms`
does not. Installed with a `.pth` file; acts only when torchvision is first imported.
"""

import sys

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


class _BeforeTorchvision:
    """A finder that finds nothing: asked first, it knows when torchvision is about to be imported."""

    kept = None  # a torch.library.Library forgets its definitions when it is collected

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(cls)
            import torch

            cls.kept = torch.library.Library("torchvision", "FRAGMENT")
            for schema in SCHEMAS:
                cls.kept.define(schema)


sys.meta_path.insert(0, _BeforeTorchvision)
