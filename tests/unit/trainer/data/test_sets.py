from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch.utils.data import IterableDataset

from torchyard.recipe.data import Digits, Synthetic, SyntheticSegmentation
from trainer.data import DATA, TensorData
from trainer.data.digits import digits
from trainer.data.sets import IGNORED
from trainer.data.synthetic import synthetic, synthetic_segmentation
from trainer.exceptions import RecipeError


def held(dataset: object) -> TensorData:
    assert isinstance(dataset, TensorData)
    return dataset


def test_digits_are_all_there_and_split() -> None:
    data = digits(Digits())
    train, validation = held(data.train), held(data.validation)
    assert (len(train), len(validation)) == (1438, 359)
    assert train.samples.shape[1:] == data.shape.sample == (1, 8, 8)
    assert (float(train.samples.min()), float(train.samples.max())) == (0, 1)
    assert set(train.targets.tolist()) == set(validation.targets.tolist()) == set(range(10))


def test_synthetic_data_has_every_class() -> None:
    """The last one too, which a bound taken for a maximum would leave out."""
    data = synthetic(Synthetic(samples=500, validation_samples=300))
    for part in (held(data.train), held(data.validation)):
        assert set(part.targets.tolist()) == set(range(data.shape.classes))


def test_the_split_depends_on_its_own_seed_only() -> None:
    torch.manual_seed(1)
    first = held(digits(Digits()).validation).targets
    torch.manual_seed(2)
    assert torch.equal(first, held(digits(Digits()).validation).targets)
    assert not torch.equal(first, held(digits(Digits(split_seed=1)).validation).targets)


def test_an_empty_side_is_refused() -> None:
    with pytest.raises(RecipeError, match="leaves one side"):
        digits(Digits(validation=0.0001))


def test_synthetic_data_is_the_same_for_all() -> None:
    options = Synthetic(samples=50, validation_samples=7, shape=(5,), classes=10)
    first, second = synthetic(options), synthetic(options)
    assert torch.equal(held(first.train).samples, held(second.train).samples)
    assert held(first.validation).samples.shape == (7, 5)
    assert set(held(synthetic(Synthetic()).train).targets.tolist()) == set(range(10))


def test_a_batch_is_one_indexing() -> None:
    data = held(DATA["synthetic"](Synthetic(samples=9)).train)
    samples, targets = data.__getitems__([3, 1])
    assert torch.equal(samples[0], data[3][0])
    assert int(targets[1]) == int(data[1][1])


def test_shapes_with_their_masks() -> None:
    options = SyntheticSegmentation(samples=30, validation_samples=5, size=24, classes=3, noise=0)
    data = synthetic_segmentation(options)
    train = held(data.train)
    assert (train.samples.shape, train.targets.shape) == ((30, 3, 24, 24), (30, 24, 24))
    assert (data.shape.sample, data.shape.classes, data.shape.kind) == ((3, 24, 24), 3, "segmentation")
    assert set(train.targets.unique().tolist()) == {0, 1, 2, IGNORED}
    assert torch.equal(train.targets, held(synthetic_segmentation(options).train).targets)
    colours = train.samples.permute(0, 2, 3, 1)
    for kind in range(3):  # without noise a class has one colour
        assert len(colours[train.targets == kind].unique(dim=0)) == 1
    borders = (train.targets == IGNORED).double().mean()
    assert 0.01 < borders < 0.3


def test_a_set_without_validation_samples_is_refused() -> None:
    data = synthetic(Synthetic(samples=2, validation_samples=1))
    with pytest.raises(RecipeError, match="no validation samples: hold some back"):
        replace(data, validation=TensorData(torch.ones(0, 1, 8, 8), torch.ones(0)))


class Stream(IterableDataset[tuple[torch.Tensor, int]]):
    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        return iter(())


def test_samples_without_a_length_are_refused() -> None:
    data = digits(Digits())
    with pytest.raises(RecipeError, match="the train samples are a Stream, which has no length: give a Dataset with"):
        replace(data, train=Stream())
