"""Speed-ups that others have published, to see one's own figures beside them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Published:
    """A speed-up over one device, as its authors give it."""

    what: str
    hardware: str
    strategy: str
    devices: int
    speed_up: float
    #: The recipe's model that it is about, where there is one.
    model: str = ""
    remark: str = ""

    @property
    def efficiency(self) -> float:
        """Speed-up for each device."""
        return self.speed_up / self.devices

    @property
    def credible(self) -> bool:
        """True unless devices together do more than each of them alone."""
        return self.efficiency <= 1

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, under `HEADINGS`."""
        figures = f"{self.speed_up:.2f}", f"{self.efficiency:.0%}"
        return self.what, self.hardware, self.strategy, str(self.devices), *figures, self.remark


HEADINGS = ("published", "hardware", "strategy", "devices", "speed-up", "efficiency", "")

_DEEPLAB = "DeepLabV3-ResNet101, VOC 2012, 20 epochs, 8 images a GPU"

PUBLISHED = (
    Published(
        what=_DEEPLAB,
        hardware="V100",
        strategy="ddp",
        devices=4,
        speed_up=3.0,
        model="deeplabv3_resnet101",
        remark="round figure of a tutorial, with saving, without download; DataParallel was slower, no figure given",
    ),
    Published(
        what=_DEEPLAB,
        hardware="V100",
        strategy="ddp",
        devices=8,
        speed_up=3.9,
        model="deeplabv3_resnet101",
        remark="given as about 30 % more than on four; DataParallel comes near it",
    ),
    Published(what="ResNet-50, TF32", hardware="A100", strategy="ddp", devices=8, speed_up=7.72, model="resnet"),
    Published(
        what="ResNet-50, mixed precision", hardware="A100", strategy="ddp", devices=8, speed_up=6.72, model="resnet"
    ),
    Published(what="ResNet-50, FP32", hardware="V100", strategy="ddp", devices=8, speed_up=7.76, model="resnet"),
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
