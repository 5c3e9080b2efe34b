"""Counters in single lines, as the packages print them."""

import pytest

from worker.progress.counters import Counter, CounterKind, counters


def loop(place: int, total: int, label: str = "") -> Counter:
    return Counter(CounterKind.LOOP, label, place, total)


def epoch(place: int, total: int | None = None) -> Counter:
    return Counter(CounterKind.EPOCH, "epoch", place, total)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (" 45%|####5     | 45/100 [00:10<00:12,  4.50it/s]", [loop(45, 100)]),
        ("Training:  45%|████▌     | 45/100 [00:10<00:12,  4.50it/s, loss=0.3]", [loop(45, 100, "training")]),
        ("train loss 0.31:   1%|▏ | 1.20k/100k [00:10<1:00:12, 27.4it/s]", [loop(1200, 100_000, "train loss")]),
        ("Epoch 3:  45%|████▌     | 45/100 [00:10<00:12,  4.5it/s]", [epoch(3), loop(45, 100, "epoch")]),
        ("Epoch 3/90:  45%|████▌     | 45/100 [00:10<00:12,  4.5it/s]", [epoch(3, 90), loop(45, 100, "epoch /")]),
        ("Epochs:  30%|███       | 3/10 [01:10<03:12, 12.5s/it]", [loop(3, 10, "epochs")]),
        (
            "\x1b[32mTraining\x1b[0m \x1b[38;5;197m━━━━━━━━━━╸━━━━━━\x1b[0m \x1b[35m 45%\x1b[0m",
            [loop(45, 100, "training")],
        ),
        ("Training ━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━ 45/200 0:00:10", [loop(45, 200, "training")]),
        ("45/100 ━━━━━━━━━━━━━━━━━━━━ 1s 5ms/step - loss: 0.3100", [loop(45, 100)]),
        ("  45/100 [============>.................] - ETA: 1s - loss: 0.31", [loop(45, 100)]),
        ("100/100 - 2s - 20ms/step - loss: 0.3100 - val_loss: 0.4000", [loop(100, 100)]),
        ("Epoch 3/90", [epoch(3, 90)]),
        ("epoch 3 of 90, loss 0.31", [epoch(3, 90)]),
        ("[Epoch: 3/90] val_acc=0.91", [epoch(3, 90)]),
        ("Epoch [1/5], Step [100/600], Loss: 0.2", [epoch(1, 5), loop(100, 600, "step")]),
        ("step 100 of 5000", [loop(100, 5000, "step")]),
        ("step 1,900 of 20,000.", [loop(1900, 20_000, "step")]),
        ("Epoch 2/1,000: step 19 of 2", [epoch(2, 1000), loop(19, 2, "step")]),
        ("epoch 91/90", [epoch(91, 90)]),
        ("iter: 100/5000 loss 3.1", [loop(100, 5000, "iter")]),
        ("Epoch: [0][  10/5005]\tTime  0.300", [epoch(0), loop(10, 5005)]),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.1", [epoch(1), loop(640, 60000)]),
    ],
)
def test_progress_is_found(line: str, found: list[Counter]) -> None:
    assert counters(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "100%|██████████| 9.91M/9.91M [00:00<00:00, 12.1MB/s]",
        "Map: 100%|██████████| 1000/1000 [00:00<00:00, 9000 examples/s]",
        "Loading checkpoint shards:  50%|█████     | 1/2 [00:01<00:01]",
        "{'loss': 0.31, 'grad_norm': 2.1, 'epoch': 0.12}",
        "epoch=0.12 loss=0.3",
        "Accuracy: 9123/10000 (91%)",
        "epoch 1/0",
        "step 1 of 2.5k",
        "loss 0.31 lr 1e-3",
        "no numbers",
        "1/2" * 1000,
        f" 45%|####5     | {'4' * 400}k/{'9' * 400}k [00:10<00:12,  4.50it/s]",
    ],
)
def test_other_numbers_are_no_progress(line: str) -> None:
    assert counters(line) == []
