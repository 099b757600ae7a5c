"""Forms of the models' sums and local steps for a device beside the CPU; `runs_on_host` says which form is taken."""

import torch
from torch import Tensor


def runs_on_host(values: Tensor) -> bool:
    """Whether compiled CPU kernels and the CPU's checks apply. Tests replace it, to run the device's forms on a CPU."""
    return values.device.type == "cpu"


def forbid_tf32() -> None:
    """Products in full float32 whatever the environment says: TF32 moves ReLUs, maxima and clips by 1 to 3 %."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def move_without_waiting(values: Tensor, device: torch.device) -> Tensor:
    """A copy on the device that the host does not wait for; the tensor itself where it is there."""
    if values.device == device or device.type == "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
