import pytest

from torchyard.analysis import findings
from torchyard.analysis.scripts import source

VISIBLE, GPU, PORT, RANK = "CUDA_VISIBLE_DEVICES", "fixed GPU", "fixes a port", "by RANK"
IDS = "fixed device_ids"


def found_in(name: str, text: str, *, ranked: bool = True) -> list[str]:
    script = source.parse(name, text)
    return [] if script is None else findings.in_script(script, ranked=ranked)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'", VISIBLE),
        ("os.environ.setdefault('CUDA_VISIBLE_DEVICES', args.gpu)", VISIBLE),
        ("os.environ.update(CUDA_VISIBLE_DEVICES='0')", VISIBLE),
        ("subprocess.run(words, env={'CUDA_VISIBLE_DEVICES': f'{gpu}'})", VISIBLE),
        ("device = 'cuda:0'", GPU),
        ("torch.load(path, map_location='cuda:1')", GPU),
        ("model.cuda(0)", GPU),
        ("torch.cuda.set_device(1)", GPU),
        ("torch.device('cuda', 2)", GPU),
        ("DDP(model, device_ids=[0, 1])", IDS),
        ("os.environ['MASTER_PORT'] = '12345'", PORT),
        ("os.environ.update({'MASTER_PORT': '6000'})", PORT),
        ("init_process_group('nccl', init_method='tcp://127.0.0.1:23456')", PORT),
        ("init_process_group('nccl', init_method='tcp://localhost:6000')", PORT),
        ("parser.add_argument('--master_port', type=int, default=7777)", PORT),
        ("parser.add_argument('--port', default='29500')", PORT),
        ("TCPStore('localhost', 5000, 2, True)", PORT),
        ("def main(rank, dist_port=5000): pass", PORT),
        ("port = 6000", PORT),
        ("torch.cuda.set_device(int(os.environ['RANK']))", RANK),
        ("torch.cuda.set_device(dist.get_rank())", RANK),
        ("args.rank = int(os.getenv('RANK', 0)); model.to(args.rank)", RANK),
        ("rank = dist.get_rank(); device = torch.device(f'cuda:{rank}')", RANK),
        ("rank = dist.get_rank(); model = DDP(model, device_ids=[rank])", RANK),
    ],
)
def test_what_does_not_belong_on_a_shared_box(line: str, says: str) -> None:
    (found,) = found_in("t.py", f"import os\n\n{line}\n")
    assert found.startswith("t.py:3: ")
    assert says in found


@pytest.mark.parametrize(
    "line",
    [
        "visible = os.environ.get('CUDA_VISIBLE_DEVICES')",
        "print({'CUDA_VISIBLE_DEVICES': os.environ['CUDA_VISIBLE_DEVICES']})",
        "# device = 'cuda:1'",
        "'''On one GPU: device = 'cuda:0' '''",
        "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))",
        "rank = dist.get_rank(); torch.cuda.set_device(rank % torch.cuda.device_count())",
        "def worker(rank): torch.cuda.set_device(rank)  # a rank of mp.spawn is local",
        "device = f'cuda:{local_rank}'; model.to(device); model.cuda()",
        "DDP(model, device_ids=[local_rank])",
        "samples = 6000; connect(host, port=5432); open('http://mlflow:5000')",
        "os.environ['MASTER_PORT'] = str(free_port())",
        "print 'Python 2'",
        "\0",
        "(" * 500,
    ],
)
def test_what_is_right_is_left_alone(line: str) -> None:
    assert found_in("t.py", line) == []


def test_one_process_may_name_the_gpus_of_the_job() -> None:
    text = "DataParallel(model.cuda(0), device_ids=[0, 1])\nos.environ['CUDA_VISIBLE_DEVICES'] = '3'\n"
    assert [note.split(":")[1] for note in found_in("t.py", text, ranked=False)] == ["2"]
    assert len(found_in("t.py", text)) == 3


def test_notes_are_in_the_order_of_the_lines() -> None:
    text = "device = 'cuda:0'\n\nos.environ['MASTER_PORT'] = '29500'\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
    assert [note.split(":")[1] for note in found_in("t.py", text)] == ["1", "3", "4"]
