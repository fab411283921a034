"""`torch.save` archives -> numpy, with torch's file format and none of its unpickling."""

import math
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from m2po_lab.logs.errors import DamagedLogError, UnreadableLogError
from m2po_lab.logs.inert import Inert
from m2po_lab.logs.tensors import Array, from_bytes, split_ragged
from m2po_lab.logs.unpickle import PIECES, SafeUnpickler

_SCRIPT_MARK = "constants.pkl"
_REPEATED_ENTRIES = 1 << 24
"""Entries that a tensor may have beyond its storage, by repeating (stride 0)."""


def load_archive(stream: IO[bytes], address: str) -> Any:
    """Load an archive with `torch.load`, every name in it resolved by the allow-list.

    Raises:
        UnreadableLogError: torch is not installed, no archive, or TorchScript, which holds code.
    """
    try:
        import torch
    except ImportError:
        raise UnreadableLogError(
            address, "needs torch to read", "install it with pip install 'm2po-lab[torch]'"
        ) from None
    _check_archive(stream, address)
    tensor_names = ("_rebuild_tensor_v2", "_rebuild_tensor", "_rebuild_tensor_v3")
    dtypes = {n: d for n in dir(torch) if isinstance(d := getattr(torch, n), torch.dtype)}

    class Unpickler(SafeUnpickler):
        """The allow-list with torch's pieces."""

        pieces: Mapping[tuple[str, str], Any] = {
            **PIECES,
            **TORCH_PIECES,
            **{("torch._utils", name): _tensor for name in tensor_names},
            **{("torch", name): dtype for name, dtype in dtypes.items()},
        }

    class Module:
        """What `torch.load` needs of a pickle module."""

        Unpickler: type
        __name__ = "m2po_lab.logs.torch_pickle"

        @staticmethod
        def load(stream: IO[bytes], **_: Any) -> Any:
            """Load one pickle."""
            return Unpickler(stream).load()

    Module.Unpickler = Unpickler
    return torch.load(stream, map_location="cpu", weights_only=False, pickle_module=Module)


def _check_archive(stream: IO[bytes], address: str) -> None:
    """Only zip archives of plain data go to torch."""
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        raise DamagedLogError(
            address, "no complete torch.save archive", "is it still being written?"
        ) from None
    if any(name.endswith(_SCRIPT_MARK) for name in names):
        raise UnreadableLogError(address, "is TorchScript, which holds code", "no log is stored so")
    stream.seek(0)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Array:
    """`torch._utils._rebuild_tensor_v2` and its kin: a view of a storage, checked by torch."""
    import torch

    tensor = torch.empty(0, dtype=storage.dtype)
    stored = storage._untyped_storage.nbytes() // tensor.element_size()
    if math.prod(size) > max(stored, _REPEATED_ENTRIES):
        raise ValueError(f"tensor of {math.prod(size)} entries in a storage of {stored}")
    tensor.set_(storage._untyped_storage, offset, tuple(size), tuple(stride))
    if tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def _parameter(data: Any, *_: Any) -> Any:
    """`torch._utils._rebuild_parameter`."""
    return data


def _from_type(function: Any, cls: Any, args: Any, state: Any = None) -> Any:
    """`torch._tensor._rebuild_from_type_v2`: a tensor subclass, taken for what it holds."""
    return function(*args) if function in (_jagged, _tensor) else Inert(cls, args, state)


def _jagged(parts: Any) -> list[Array]:
    """A jagged nested tensor."""
    return split_ragged(parts["values"], parts["offsets"], parts.get("lengths"))


def _strided_nested(buffer: Any, sizes: Any, strides: Any, offsets: Any, *_: Any) -> list[Array]:
    """A strided nested tensor: rows of one buffer."""
    starts = [int(i) for i in np.asarray(offsets)]
    counts = [int(np.prod(size)) for size in np.asarray(sizes)]
    return [buffer[s : s + n] for s, n in zip(starts, counts, strict=True)]


def _tensor_dict(_: Any, state: Any) -> dict[str, Any]:
    """A TensorDict: its tensors, and what it holds beside them."""
    held = dict(state.get("_tensordict") or {})
    if isinstance(held.get("_tensordict"), dict):
        held = dict(held["_tensordict"])
    return {**held, **(state.get("_non_tensordict") or {})}


def _consolidated(metadata: Any, storage: Array) -> dict[str, Any]:
    """A consolidated TensorDict: one storage of bytes and a table of where each tensor lies."""
    raw = np.ascontiguousarray(storage).view(np.uint8).tobytes()
    held: dict[str, Any] = {}
    parts: dict[str, Array] = {}
    for key, (dtype, shape, start, stop, *_rest) in metadata["leaves"].items():
        count = int(np.prod(shape)) if len(shape) else 1
        values = from_bytes(raw[start:stop], str(dtype))[:count].reshape(tuple(shape))
        mark, _, name = key.rpartition(">")
        if not mark:
            held[key] = values
        else:
            parts[mark.lstrip("<")] = values
            if mark == "<NJT_OFFSETS":
                held[name] = split_ragged(parts["NJT_VALUES"], values, parts.get("NJT_LENGTHS"))
                parts = {}
    for key, entry in (metadata.get("non_tensors") or {}).items():
        held[key] = entry[0]
    return held


TORCH_PIECES: Mapping[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_nested_tensor"): _strided_nested,
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type,
    ("torch.nested._internal.nested_tensor", "_rebuild_njt"): _jagged,
    ("torch", "Size"): tuple,
    ("torch", "device"): Inert,
    ("torch.serialization", "_get_layout"): Inert,
    ("tensordict._reductions", "_make_td"): _tensor_dict,
    ("tensordict._reductions", "_rebuild_tensordict_files_consolidated"): _consolidated,
}
"""Names that torch archives use -> our own pieces."""
