"""Variables of the worker's own environment that its jobs get too.

Whoever starts a worker may have keys and passwords in their environment, and jobs are other people's. So a list says
what passes, and not what is held back; `TORCHYARD_JOB_ENV` adds names to it.
"""

from collections.abc import Collection, Mapping
from typing import Final

from torchyard.injob import layout
from torchyard.spec.credentials import named_like_credential

_NAMES: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE"),
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "MPLBACKEND", "MPLCONFIGDIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "TOKENIZERS_PARALLELISM"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", layout.DATA),
    }
)
_PROXIES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"})
#: Settings of libraries and drivers.
_PREFIXES: Final = (
    *("LC_", "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "NUMEXPR_"),
    *("CUDA_", "NVIDIA_", "ROCM_", "HIP_", "HSA_", "NCCL_", "GLOO_", "UCX_", "FI_", "OMPI_"),
    *("TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "HF_", "TRANSFORMERS_", "MLFLOW_", "WANDB_", "TRACKIO_"),
)
#: What belongs to the worker's own process and would mislead a job's.
_OWN: Final = frozenset({"CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHOME", "PYTHONPATH", "PYTHONSAFEPATH"})


def inherited(own: Mapping[str, str], also: Collection[str] = ()) -> dict[str, str]:
    """Return the variables of the worker's environment that pass; `also` names some that an administrator adds."""
    return {name: value for name, value in own.items() if _passes(name) or (name in also and name not in _OWN)}


def _passes(name: str) -> bool:
    if name in _OWN or named_like_credential(name):  # that is nobody else's, whatever library it is for
        return False
    return name in _NAMES or name.upper() in _PROXIES or name.startswith(_PREFIXES)
