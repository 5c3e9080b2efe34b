from service.ingest.metrics import in_order
from torchyard.wire import MetricBatch, MetricRecord


def batch(*numbers: int) -> MetricBatch:
    records = [(number, MetricRecord(step=number, time_us=0, values={})) for number in numbers]
    return MetricBatch(node_rank=0, stream="rank-0", rank=0, offset=0, end=9, records=records)


def test_only_a_batch_that_breaks_the_order_is_copied() -> None:
    for whole in (batch(), batch(3), batch(3, 4, 9)):
        assert in_order(whole, 0, 3) is whole
    for broken, left in ((batch(2, 3), [3]), (batch(3, 3, 4), [3, 4]), (batch(5, 4), [5])):
        kept = in_order(broken, 0, 3)
        assert [number for number, _ in kept.records] == left
        assert kept.skipped == len(broken.records) - len(left)
    assert in_order(batch(2, 3), 7, 3).skipped == 0
