"""A few small images in the formats that the known data sets have on disk."""

import gzip
import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image


def noise(count: int, *shape: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8)


def classes(count: int, of: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return (np.arange(count) % of).astype(np.uint8)


def mnist(root: Path) -> None:
    for name, count in (("train", 12), ("t10k", 5)):
        idx(root / f"MNIST/raw/{name}-images-idx3-ubyte", noise(count, 28, 28))
        idx(root / f"MNIST/raw/{name}-labels-idx1-ubyte", classes(count, 10))


def idx(path: Path, array: np.ndarray[Any, np.dtype[np.uint8]], *, packed: bool = False) -> None:
    """LeCun's format: type, dimensions, sizes, values."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = header + array.tobytes()
    path.write_bytes(gzip.compress(content) if packed else content)


def cifar(root: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, of: int) -> None:
    """CIFAR-10 or CIFAR-100, whichever class of torchvision is given; its checksums are those of these files."""
    key = "labels" if of == 10 else "fine_labels"
    for table in ("train_list", "test_list"):
        entries = []
        for name, _ in getattr(kind, table):
            batch = {"data": noise(4, 3072), key: classes(4, of).tolist()}
            entries.append([name, written(root / kind.base_folder / name, batch)])
        monkeypatch.setattr(kind, table, entries)
    names = {kind.meta["key"]: [str(each) for each in range(of)]}
    digest = written(root / kind.base_folder / kind.meta["filename"], names)
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": digest})


def written(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content))
    return hashlib.md5(path.read_bytes()).hexdigest()


def stl10(root: Path) -> None:
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    for name, count in (("train", 6), ("test", 4)):
        (folder / f"{name}_X.bin").write_bytes(noise(count, 3, 96, 96).tobytes())
        (folder / f"{name}_y.bin").write_bytes((classes(count, 10) + 1).tobytes())


def image_folder(root: Path, *, per_class: int = 3, side: int = 40) -> None:
    """ImageNet's layout, with images of unequal sides."""
    for part in ("train", "val"):
        for number, kind in enumerate(("n01", "n02")):
            folder = root / part / kind
            folder.mkdir(parents=True)
            for index, pixels in enumerate(noise(per_class, side, side + 10 * number, 3)):
                Image.fromarray(pixels).save(folder / f"{index}.jpg")


def voc(root: Path) -> None:
    """One image that is smaller than 64 pixels and one that is larger; class 7 in a corner, borders around it."""
    base = root / "VOCdevkit/VOC2012"
    for folder in ("ImageSets/Segmentation", "JPEGImages", "SegmentationClass"):
        (base / folder).mkdir(parents=True)
    for part in ("train", "val"):
        (base / f"ImageSets/Segmentation/{part}.txt").write_text(f"{part}_small\n{part}_large\n")
        for name, height, width in ((f"{part}_small", 40, 50), (f"{part}_large", 64, 128)):
            Image.fromarray(noise(1, height, width, 3)[0]).save(base / f"JPEGImages/{name}.jpg")
            mask = np.zeros((height, width), dtype=np.uint8)
            mask[: height // 2, : width // 2] = 7
            mask[height // 2, : width // 2] = 255
            palette = Image.fromarray(mask).convert("P")
            palette.putdata(mask.flatten().tolist())
            palette.save(base / f"SegmentationClass/{name}.png")
