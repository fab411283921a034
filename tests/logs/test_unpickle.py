"""Nothing in a file is ever executed: known gadgets, and what broken pickles do."""

import collections
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2po_lab.logs.errors import UnreadableLogError
from m2po_lab.logs.inert import Inert
from m2po_lab.logs.open import open_log
from m2po_lab.logs.unpickle import load_pickle_bytes, load_torch
from tests.logs.helpers import DATA, read

FRAMEWORKS = DATA / "frameworks"


class Gadget:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def raw_call(module: str, name: str, argument: str) -> bytes:
    """A hand-written pickle that calls module.name(argument)."""
    return f"c{module}\n{name}\n(V{argument}\ntR.".encode()


def touch(tmp_path: Path) -> tuple[str, Path]:
    """A command that leaves a file, and the file."""
    mark = tmp_path / "executed"
    return f"touch {mark}", mark


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "getoutput"),
        ("builtins", "eval"),
        ("__builtin__", "eval"),
        ("builtins", "exec"),
        ("builtins", "getattr"),
        ("builtins", "__import__"),
        ("importlib", "import_module"),
        ("runpy", "_run_code"),
        ("shutil", "rmtree"),
        ("pydoc", "locate"),
        ("operator", "attrgetter"),
        ("code", "interact"),
        ("ctypes", "CDLL"),
        ("pickle", "loads"),
        ("timeit", "timeit"),
        ("webbrowser", "open"),
        ("socket", "create_connection"),
    ],
)
def test_functions_that_could_act_refuse_the_file_by_name(
    tmp_path: Path, module: str, name: str
) -> None:
    command, mark = touch(tmp_path)
    with pytest.raises(UnreadableLogError, match=f"asks for {module}.{name}"):
        load_pickle_bytes(raw_call(module, name, command), "x.pkl")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy.testing._private.utils", "runstring"),
        ("torch.hub", "load"),
        ("torch", "load"),
        ("pandas", "read_pickle"),
        ("pip", "main"),
        ("functools", "partial"),
        ("a_module_that_does_not_exist", "f"),
    ],
)
def test_foreign_functions_become_stand_ins_that_do_nothing(
    tmp_path: Path, module: str, name: str
) -> None:
    command, mark = touch(tmp_path)
    held = load_pickle_bytes(raw_call(module, name, command), "x.pkl")
    assert isinstance(held, Inert)
    assert held.args == (command,)
    assert not mark.exists()


def test_a_gadget_hidden_in_a_numpy_object_array_does_nothing(tmp_path: Path) -> None:
    command, mark = touch(tmp_path)
    data = pickle.dumps(np.array([Gadget(os.system, command)], dtype=object))
    with pytest.raises(UnreadableLogError, match="nothing of it was run"):
        load_pickle_bytes(data, "x.pkl")
    assert not mark.exists()


def test_a_chain_of_stand_ins_reaches_nothing(tmp_path: Path) -> None:
    command, mark = touch(tmp_path)
    data = pickle.dumps(Gadget(collections.Counter, command))
    assert load_pickle_bytes(data, "x.pkl").args == (command,)
    assert not mark.exists()


def test_a_torch_archive_with_a_gadget_does_nothing(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    command, mark = touch(tmp_path)
    path = tmp_path / "0.pt"
    torch.save({"rollout_id": 0, "samples": [Gadget(os.system, command)]}, path)
    with pytest.raises(UnreadableLogError, match=r"asks for posix\.system"):
        list(open_log(path))
    assert not mark.exists()


def test_torchscript_is_refused_before_torch_sees_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("m/data.pkl", pickle.dumps({}))
        archive.writestr("m/constants.pkl", b"")
    with pytest.raises(UnreadableLogError, match="TorchScript"):
        load_torch(packed.getvalue(), "x.pt")


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    for layout in ("slime/train_data/0.pt", "verl/dataproto/step0.dp", "verl/tq/step0_tq_batch.pt"):
        with pytest.raises(UnreadableLogError, match=r"needs torch.*m2po-lab\[torch\]"):
            list(open_log(FRAMEWORKS / layout))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([1.5, -2.0], dtype=">f4"),
        np.array([True, False]),
        np.array([], dtype=np.float32),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_arrays_come_back(array: np.ndarray, protocol: int) -> None:
    back = load_pickle_bytes(pickle.dumps(array, protocol=protocol), "x.pkl")
    assert np.array_equal(back, array)
    assert back.dtype == array.dtype


def test_object_arrays_and_scalars_come_back_as_python_values() -> None:
    held = {"uid": np.array(["a", None, 3], dtype=object), "n": np.float32(0.5), "b": b"\x00"}
    for protocol in (2, 4, 5):
        back = load_pickle_bytes(pickle.dumps(held, protocol=protocol), "x.pkl")
        assert back == {"uid": ["a", None, 3], "n": 0.5, "b": b"\x00"}


def test_every_cut_of_a_pickle_is_one_line_and_never_another_error() -> None:
    data = (FRAMEWORKS / "skyrl/dumped_data/global_step_0_training_input.pkl").read_bytes()
    for cut in range(0, len(data), 211):
        with pytest.raises(UnreadableLogError) as caught:
            load_pickle_bytes(data[:cut], "x.pkl")
        assert "\n" not in str(caught.value)


def test_a_pickle_that_refers_to_itself_a_billion_times_is_looked_at_once() -> None:
    held: list[Any] = []
    for _ in range(60):
        held = [held, held]
    back = load_pickle_bytes(pickle.dumps(held), "x.pkl")
    assert back[0] is back[1]


def test_arrays_whose_parts_do_not_fit_are_refused() -> None:
    from m2po_lab.logs.numpy_pickle import NumpyArray, NumpyDtype, finished

    for shape, name, content in [((10**9,), "f8", b"12345678"), ((2,), "O8", ["one"])]:
        array = NumpyArray()
        array.__setstate__((1, shape, NumpyDtype(name), False, content))
        with pytest.raises(ValueError, match=r"reshape|fit"):
            finished(array)


@pytest.mark.parametrize("layout", ["slime/train_data/0.pt", "verl/tq/step0_tq_batch.pt"])
def test_half_an_archive_is_a_bad_row_beside_whole_ones_and_an_error_alone(
    tmp_path: Path, layout: str
) -> None:
    pytest.importorskip("torch")
    data = (FRAMEWORKS / layout).read_bytes()
    path = tmp_path / "3.pt"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UnreadableLogError, match="no readable row") as caught:
        list(open_log(path))
    assert "\n" not in str(caught.value)
    (tmp_path / "2.pt").write_bytes(data)
    batch, log = read(tmp_path)
    assert (batch.n_rows, log.bad_rows) == (8, 1)
    assert any("3.pt" in remark for remark in log.inputs[0].remarks)


def test_a_tensor_that_claims_more_than_its_storage_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    packed = io.BytesIO()
    torch.save(torch.zeros(1).expand(10**12), packed)
    with pytest.raises(UnreadableLogError, match="1000000000000 entries"):
        load_torch(packed.getvalue(), "x.pt")
