from full_scale.verl_plugin.checkpoints import DropDeadQueues


def saved(folder, step, *parts):
    for part in parts:
        (folder / f"global_step_{step}" / part).mkdir(parents=True)
    return folder / f"global_step_{step}"


def test_a_queue_goes_with_its_weights_and_nothing_else_does(tmp_path):
    saved(tmp_path, 50, "transfer_queue")
    saved(tmp_path, 100, "actor", "transfer_queue")
    saved(tmp_path, 150, "actor")
    saved(tmp_path, 200, "hand_made")
    last = saved(tmp_path, 250, "actor", "transfer_queue")
    DropDeadQueues().on_save(trainer=None, global_step=250, checkpoint_dir=str(last))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "global_step_100",
        "global_step_150",
        "global_step_200",
        "global_step_250",
    ]
    assert (tmp_path / "global_step_100" / "transfer_queue").is_dir()
