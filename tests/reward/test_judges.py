"""Processes that judge: deadlines that hold, deaths that cost one answer at most."""

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children, get_context
from pathlib import Path
from unittest.mock import Mock

import pytest
from pebble import ProcessPool

from full_scale.reward import Judges, compute_score, compute_scores, judges, worker
from full_scale.reward.judges import Question
from full_scale.reward.verdict import Verdict, judge

PLAIN = Question("7", "7")
# Nothing but a kill ends these: sympy is in one long multiplication, or the parser in a maze.
HANGS = [
    "9^{9^{9}}",
    "2^{2024^{2023}}",
    "1000000!",
    r"\binom{10^{9}}{5\cdot 10^8}",
    "(" * 400 + "1" + ")" * 400,
    r"\frac{1}{1+" * 60 + "1" + "}" * 60,
]


@pytest.fixture(scope="module")
def patient():
    with Judges(1, cpu_seconds=60, seconds=120) as each:
        yield each


@pytest.fixture
def hasty():
    with Judges(2, cpu_seconds=0.5, seconds=20) as each:
        yield each


def processes():
    return {child.pid for child in active_children() if child.name == "pebble_pool_worker"}


def test_processes_and_this_process_agree(patient):
    asked = [
        Question(r"\frac12", "0.5"),
        Question("8", "7"),
        Question(r"\{2,1\}", "1,2"),
        Question("so it is 7", "7", in_text=True),
        Question("no idea", "7", in_text=True),
    ]
    assert patient(asked) == [judge(q.answer, q.truth, in_text=q.in_text) for q in asked]


@pytest.mark.slow
def test_answers_that_never_end_are_killed_and_the_others_are_judged(hasty):
    asked = [question for hang in HANGS for question in (Question(hang, "7"), PLAIN)]
    verdicts = hasty(asked)
    assert verdicts[1::2] == [Verdict.RIGHT] * len(HANGS)
    assert all(verdict in (None, Verdict.WRONG) for verdict in verdicts[::2])
    assert verdicts.count(None) >= 4
    assert hasty([PLAIN] * 5) == [Verdict.RIGHT] * 5


def test_a_process_that_only_waits_is_killed_by_the_clock(monkeypatch):
    others = processes()
    with Judges(1, cpu_seconds=60, seconds=1) as each:
        assert each([PLAIN]) == [Verdict.RIGHT]
        (child,) = processes() - others
        threading.Timer(0.2, os.kill, (child, signal.SIGSTOP)).start()
        monkeypatch.setattr(judges, "GRACE", 1.0)
        began = time.monotonic()
        assert each([Question("9^{9^{9}}", "7")]) == [None]
        assert time.monotonic() - began < 30
        assert child not in processes()


def test_an_answer_whose_process_somebody_else_kills_goes_to_the_next_process(patient):
    patient.close()
    others = processes()
    patient([PLAIN])
    (child,) = processes() - others
    verdicts = []
    asked = [Question(rf"\sqrt{{{n}}}+{n}", "7") for n in range(200)]
    thread = threading.Thread(target=lambda: verdicts.extend(patient([*asked, PLAIN])))
    thread.start()
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    thread.join()
    assert verdicts == [Verdict.WRONG] * 200 + [Verdict.RIGHT]
    assert child not in processes()


def test_a_process_may_not_take_all_the_memory():
    with ProcessPool(
        1, initializer=worker.start, initargs=(64 << 20,), context=get_context("spawn")
    ) as pool:
        assert len(pool.schedule(bytearray, args=(16 << 20,)).result()) == 16 << 20
        with pytest.raises(MemoryError):
            pool.schedule(bytearray, args=(256 << 20,)).result()


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_an_answer_that_takes_too_much_memory_is_wrong(monkeypatch, error):
    monkeypatch.setattr(worker, "judge", Mock(side_effect=error))
    assert worker.work("1", "1", False, 60, 60) is Verdict.WRONG
    assert worker.work("1", "1", True, 60, 60) is Verdict.NOTHING


def test_a_process_makes_room_after_its_share_of_answers():
    with Judges(1, cpu_seconds=60, seconds=120, recycle=3) as each:
        others, seen = processes(), set()
        for _ in range(7):
            assert each([PLAIN]) == [Verdict.RIGHT]
            seen |= processes() - others
    assert len(seen) >= 2


def test_closing_ends_the_processes_and_a_later_question_starts_new_ones(patient):
    others = processes()
    patient([PLAIN])
    patient.close()
    assert processes() <= others
    assert patient([PLAIN]) == [Verdict.RIGHT]


def test_threads_share_the_processes():
    judges.shared.close()
    others, scores = processes(), []
    threads = [
        threading.Thread(target=lambda: scores.append(compute_score("", r"\boxed{7}", "7")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [score["score"] for score in scores] == [1.0] * 8
    assert 1 <= len(processes() - others) <= judges.shared.workers
    judges.shared.close()


def ask(queue):
    queue.put(compute_score("", r"\boxed{7}", "7")["score"])


def test_a_fork_gets_processes_of_its_own_and_leaves_those_of_its_parent():
    assert compute_score("", r"\boxed{7}", "7")["score"] == 1.0
    before = processes()
    context = get_context("fork")
    queue = context.Queue()
    child = context.Process(target=ask, args=(queue,))
    child.start()
    assert queue.get(timeout=120) == 1.0
    child.join()
    assert processes() == before
    assert compute_score("", r"\boxed{7}", "7")["score"] == 1.0
    judges.shared.close()


SCRIPT = """
import os, signal, sys
from multiprocessing import active_children
from full_scale.reward import compute_score
if __name__ == "__main__":
    assert compute_score("", r"\\boxed{7}", "7")["score"] == 1.0
    print(*[child.pid for child in active_children()], flush=True)
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_no_process_outlives_the_one_that_asked(tmp_path, end):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, script, end],
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == (0 if end == "exit" else -signal.SIGKILL), done.stderr
    left = {int(pid) for pid in done.stdout.split()}
    assert left
    deadline = time.monotonic() + 20
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if alive(pid)}
        time.sleep(0.1)
    assert not left


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]
    except OSError:
        return False


def test_without_math_verify_the_reward_says_what_to_install(monkeypatch):
    monkeypatch.setattr(judges, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="pip install math-verify"):
        Judges()([PLAIN])


def test_scores_are_one_a_tenth_and_nothing():
    responses = [r"\boxed{7}", r"\boxed{8}", "7", "", r"\boxed{", "so: 7", "so: 8", "no idea"]
    strict = compute_scores([""] * 8, responses, [7] * 8)
    lenient = compute_scores([""] * 8, responses, [7] * 8, box_required=False)
    assert [each["score"] for each in strict] == [1.0, 0.1, 0, 0, 0, 0, 0, 0]
    assert [each["score"] for each in lenient] == [1.0, 0.1, 1.0, 0, 0, 1.0, 0.1, 0]
    assert [each["acc"] for each in lenient] == [1, 0, 1, 0, 0, 1, 0, 0]
    assert [each["answered"] for each in lenient] == [1, 1, 1, 0, 0, 1, 1, 0]
    assert not any(each["cut_off"] for each in strict + lenient)


def test_what_is_cut_off_was_answered_only_if_it_had_a_box(monkeypatch):
    monkeypatch.setattr(judges.shared, "cpu_seconds", 0.3)
    boxed, bare = compute_scores(
        ["", ""], [r"\boxed{9^{9^{9}}}", "$9^{9^{9}}$"], ["7", "7"], box_required=False
    )
    assert boxed == {"score": 0.1, "acc": 0, "answered": 1, "cut_off": 1}
    assert bare == {"score": 0, "acc": 0, "answered": 0, "cut_off": 1}
