"""Makes `import torchvision` work on a CPU-only torch; import this module before torchvision or timm.

torchvision's PyPI wheel registers the C++ operators `nms` and `qnms` only when its CUDA libraries load. Its
Python modules then fail to import because they attach to those missing names. Declaring the two schemas is
enough, since nothing here calls them.
"""

import importlib.util

import torch


def _declare_missing_operators() -> "torch.library.Library | None":
    """Return the library that holds the declarations, or None if torch can load torchvision's own."""
    if torch.version.cuda is not None or importlib.util.find_spec("torchvision") is None:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


# The declarations vanish with the object, so the module keeps it.
_DECLARATIONS = _declare_missing_operators()
