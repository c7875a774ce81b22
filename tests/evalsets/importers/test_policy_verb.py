"""import policy, as an operator types it."""

import shutil

from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.imported_policies import load_policy, policy_names


def test_a_policy_is_kept_beside_the_set_and_refused_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    shutil.copytree(SAMPLE_DATA / "paper_swebench", tmp_path / "set")
    evalset = load_evalset(tmp_path / "set")
    model = evalset.models[0]
    lines = [f"{query},{model}" for query in evalset.queries["query_id"]]
    file = tmp_path / "decisions.csv"
    file.write_text("\n".join(["query_id,model", *lines]), encoding="utf-8")
    command = ["import", "policy", str(file), "--evalset", str(tmp_path / "set"), "--name", "other"]
    assert main(command) == 0
    assert f"{model} 100.0 %" in capsys.readouterr().out
    assert policy_names(tmp_path / "set") == ("other",)
    assert set(load_policy(evalset, "other")) == {model}
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
