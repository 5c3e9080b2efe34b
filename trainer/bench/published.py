"""What others have published, to see one's own figures beside it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Published:
    """A speed-up over one device, as its authors give it."""

    what: str
    hardware: str
    strategy: str
    devices: int
    speed_up: float
    remark: str = ""


PUBLISHED = (
    Published(
        what="DeepLabV3-ResNet101, VOC 2012, 20 epochs", hardware="V100", strategy="ddp", devices=4, speed_up=3.0
    ),
    Published(
        what="DeepLabV3-ResNet101, VOC 2012, 20 epochs",
        hardware="V100",
        strategy="ddp",
        devices=8,
        speed_up=3.9,
        remark="about 30 % over four cards; DataParallel comes near it there and is well below on four",
    ),
    Published(what="ResNet-50, TF32", hardware="A100", strategy="ddp", devices=8, speed_up=7.72),
    Published(what="ResNet-50, mixed precision", hardware="A100", strategy="ddp", devices=8, speed_up=6.72),
    Published(what="ResNet-50, FP32", hardware="V100", strategy="ddp", devices=8, speed_up=7.76),
    Published(
        what="VGG16, batch 64", hardware="PCIe cards", strategy="ddp", devices=8, speed_up=1.51, remark="communication"
    ),
    Published(what="VGG16, batch 512", hardware="PCIe cards", strategy="ddp", devices=8, speed_up=4.93),
    Published(
        what="VGG16, ImageNet, 7 h to 1.5 h",
        hardware="two cards",
        strategy="ddp",
        devices=2,
        speed_up=4.7,
        remark="not credible: 235 % efficiency",
    ),
)
