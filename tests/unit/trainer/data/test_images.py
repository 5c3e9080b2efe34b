import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch.utils.data import DataLoader

from tests.support import http_files, pictures
from torchyard.recipe import Recipe
from torchyard.recipe.data import DataOptions
from trainer.data import DATA, DataSets
from trainer.data.images import PixelDataset
from trainer.exceptions import DownloadError


def options(name: str, root: Path, **given: Any) -> DataOptions:
    download = {} if name == "image_folder" else {"download": False}
    recipe = {
        "model": {"name": "custom", "target": "a:b"},
        "data": {"name": name, "root": str(root), **download, **given},
    }
    return Recipe.model_validate(recipe).data


def made(name: str, root: Path, **given: Any) -> DataSets:
    return DATA[name](options(name, root, **given))


def sizes(data: DataSets) -> tuple[int, int]:
    return len(data.train), len(data.validation)  # type: ignore[arg-type]


def write(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("cifar"):
        kind = torchvision.datasets.CIFAR10 if name == "cifar10" else torchvision.datasets.CIFAR100
        pictures.cifar(root, monkeypatch, kind, int(name.removeprefix("cifar")))
    else:
        getattr(pictures, name)(root)


@pytest.mark.parametrize(
    ("name", "lengths", "sample", "classes"),
    [
        ("mnist", (12, 5), (1, 28, 28), 10),
        ("cifar10", (20, 4), (3, 32, 32), 10),
        ("cifar100", (4, 4), (3, 32, 32), 100),
        ("stl10", (6, 4), (3, 96, 96), 10),
        ("image_folder", (6, 6), (3, 224, 224), 2),
    ],
)
def test_images_as_they_lie_on_disk(
    name: str,
    lengths: tuple[int, int],
    sample: tuple[int, ...],
    classes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(name, tmp_path, monkeypatch)
    data = made(name, tmp_path)
    assert sizes(data) == lengths
    assert (data.shape.sample, data.shape.classes, data.shape.kind) == (sample, classes, "classification")
    image, target = data.train[1]
    assert image.shape == sample
    assert image.dtype == torch.float32
    assert type(image) is torch.Tensor
    assert int(target) == (0 if name == "image_folder" else 1)


def test_the_quick_way_gives_the_same_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("mnist", 28), ("cifar10", 32), ("stl10", 96)):
        write(name, tmp_path, monkeypatch)
        quick, slow = made(name, tmp_path).validation, made(name, tmp_path, size=size).validation
        assert isinstance(quick, PixelDataset)
        assert not isinstance(slow, PixelDataset)
        together, targets = quick.__getitems__([3, 0])
        torch.testing.assert_close(together[0], slow[3][0])
        torch.testing.assert_close(quick[0][0], slow[0][0])
        assert targets.tolist() == [slow[3][1], slow[0][1]]


def test_normalisation_with_one_half_at_224(tmp_path: Path) -> None:
    pictures.stl10(tmp_path)
    image, _ = made("stl10", tmp_path, size=224).train[0]
    assert image.shape == (3, 224, 224)
    assert -1 <= image.min() < -0.8
    assert 0.8 < image.max() <= 1


def test_validation_takes_the_middle_and_no_chance(tmp_path: Path) -> None:
    pictures.image_folder(tmp_path)
    data = made("image_folder", tmp_path, size=28, crop=True, flip=True)
    first, again = data.validation[5][0], data.validation[5][0]
    assert torch.equal(first, again)
    assert first.shape == (3, 28, 28)
    assert not torch.equal(data.train[5][0], first)


def test_chance_follows_from_seed_epoch_and_index_alone(tmp_path: Path) -> None:
    pictures.image_folder(tmp_path)
    data, other = (made("image_folder", tmp_path, size=24, crop=True, flip=True) for _ in range(2))

    def epoch(of: DataSets, seed: int, number: int, workers: int = 0) -> torch.Tensor:
        of.begin(seed, number)
        batches = list(DataLoader(of.train, batch_size=2, num_workers=workers))
        return torch.cat([images for images, _ in batches])

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    drawn = epoch(data, 0, 1)
    state = torch.default_generator.get_state()
    data.train[2]
    assert torch.equal(torch.default_generator.get_state(), state)  # the rank's own stream is where it was
    torch.manual_seed(5)
    data.train[1]
    assert torch.equal(torch.rand(3), expected)

    torch.manual_seed(99)
    assert torch.equal(epoch(other, 0, 1, workers=1), drawn)  # in a loader process, after another past
    assert not torch.equal(epoch(other, 0, 2), drawn)
    assert not torch.equal(epoch(other, 1, 1), drawn)
    data.begin(0, 1)
    assert torch.equal(data.train[4][0], drawn[4])  # as after a resume in mid-epoch
    assert not torch.equal(drawn[0], drawn[1])


def test_a_data_set_without_chance_needs_no_epoch(tmp_path: Path) -> None:
    pictures.mnist(tmp_path)
    data = made("mnist", tmp_path)
    data.begin(0, 3)
    assert torch.equal(data.train[0][0], data.train[0][0])


def test_classes_that_differ_are_named(tmp_path: Path) -> None:
    pictures.image_folder(tmp_path)
    (tmp_path / "val/n02").rename(tmp_path / "val/n03")
    with pytest.raises(DownloadError, match="not both have n02, n03"):
        made("image_folder", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "stl10", "voc", "image_folder"])
def test_missing_data_are_an_error_with_the_mend(name: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"cannot be used: .* put whole data there"):
        made(name, tmp_path)


def test_masks_stay_with_their_images(tmp_path: Path) -> None:
    pictures.voc(tmp_path)
    data = made("voc", tmp_path, size=64)
    assert sizes(data) == (2, 2)
    assert (data.shape.sample, data.shape.classes, data.shape.kind) == ((3, 64, 64), 21, "segmentation")
    image, mask = data.validation[0]  # 40 by 50: filled up
    assert (image.shape, mask.shape, mask.dtype) == ((3, 64, 64), (64, 64), torch.int64)
    assert set(mask[:40, :50].unique().tolist()) == {0, 7, 255}
    assert (mask[:20, :25] == 7).all()
    assert (mask[20, :25] == 255).all()
    assert (mask[40:] == 255).all()
    assert (mask[:, 50:] == 255).all()
    assert not image[:, 40:].any()
    image, mask = data.validation[1]  # 64 by 128: shrunk by half
    assert (mask[:15, :31] == 7).all()
    assert (mask[32:] == 255).all()
    assert image[:, :32].any()


def test_crops_and_flips_move_image_and_mask_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that is its own mask stays so."""
    import numpy as np
    from PIL import Image

    pictures.voc(tmp_path)
    base = tmp_path / "VOCdevkit/VOC2012"
    mask = np.array(Image.open(base / "SegmentationClass/train_large.png"))
    bright = Image.fromarray(np.stack([(mask == 7) * np.uint8(255)] * 3, axis=-1))
    bright.save(base / "JPEGImages/train_large.jpg", quality=100)
    data = made("voc", tmp_path, size=48, crop=True, flip=True, mean=[0], std=[1])
    shown, at_right = 0, 0
    for epoch in range(8):
        data.begin(0, epoch)
        image, mask = data.train[1]
        assert image.shape == (3, 48, 48)
        agreeing = (image[0] > 0.5) == (mask == 7)
        assert agreeing.double().mean() > 0.93  # but for interpolated edges
        shown += bool((mask == 7).any())
        at_right += bool((mask[:, -1] == 7).any())
    assert shown > 2
    assert at_right > 0  # in the stored image it is at the left


def test_mnist_from_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloaded, checked, unpacked and read; the second run asks for nothing."""
    with http_files.served() as files:
        resources = []
        for name, count in (("train", 12), ("t10k", 5)):
            for kind, content in (
                ("images-idx3", pictures.noise(count, 28, 28)),
                ("labels-idx1", pictures.classes(count, 10)),
            ):
                path = tmp_path / "served" / f"{name}-{kind}-ubyte.gz"
                pictures.idx(path, content, packed=True)
                files.contents[path.name] = path.read_bytes()
                resources.append((path.name, hashlib.md5(path.read_bytes()).hexdigest()))
        monkeypatch.setattr(torchvision.datasets.MNIST, "mirrors", [f"{files.address}/missing/", f"{files.address}/"])
        monkeypatch.setattr(torchvision.datasets.MNIST, "resources", resources)
        for _ in range(2):
            assert sizes(made("mnist", tmp_path / "root", download=True)) == (12, 5)
        asked = [name for name, _ in files.requests if not name.startswith("missing/")]
        assert sorted(asked) == sorted(files.contents)
    assert not list((tmp_path / "root").rglob("*.gz"))
