import errno
from pathlib import Path
from typing import IO

import pytest
import torch

from trainer.average import main, mean
from trainer.exceptions import AverageError


def test_weights_are_averaged_and_counters_are_not(tmp_path: Path) -> None:
    for number in (1, 2, 6):
        state = {"weight": torch.full((2,), float(number)), "batches": torch.tensor(number)}
        torch.save(state, tmp_path / f"{number}.pt")
    main(["--out", str(tmp_path / "mean.pt"), *(str(tmp_path / f"{number}.pt") for number in (1, 2, 6))])
    averaged = torch.load(tmp_path / "mean.pt", weights_only=True)
    assert averaged["weight"].tolist() == [3.0, 3.0]
    assert averaged["weight"].dtype is torch.float32
    assert int(averaged["batches"]) == 6


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AverageError, match="Checkpoint 2 has other names or shapes"):
        mean([{"a": torch.zeros(1)}, {"a": torch.zeros(2)}])
    with pytest.raises(AverageError, match="name at least one"):
        mean([])


def test_a_file_of_before_stays_where_the_mean_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "1.pt")
    (tmp_path / "mean.pt").write_bytes(b"of before")

    def torn(_: object, file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", torn)
    with pytest.raises(OSError, match="No space"):
        main(["--out", str(tmp_path / "mean.pt"), str(tmp_path / "1.pt")])
    assert (tmp_path / "mean.pt").read_bytes() == b"of before"
