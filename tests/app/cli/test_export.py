"""missratio export: a model file in, an ONNX file out."""

import json

import numpy as np
import pytest

import missratio as mr

pytestmark = pytest.mark.needs("onnx", "onnxruntime")


def test_the_file_gives_the_labels_of_the_model(run, fit):
    import onnxruntime

    # A cap can't be exported, and this rule needs none.
    model, _ = fit("--rule flipped-betting")
    file = model.with_name("model.onnx")
    told = json.loads(run("export", model, "--onnx", file, "--json").stdout)
    loaded = mr.load_model(model)
    assert told["columns"] == list(loaded.encoder.encoded_names)
    X = np.random.default_rng(0).normal(80, 20, (500, len(told["columns"])))
    X[::7, 0] = np.nan
    label, _ = onnxruntime.InferenceSession(file).run(None, {"X": X})
    controlled = loaded.certificate.controlled_class
    expected = np.where(loaded.decide(X).codes, loaded.other_class, controlled)
    np.testing.assert_array_equal(label.astype(str), expected.astype(str))
    again = run("export", model, "--onnx", file, status=1)
    assert "--force" in again.stderr
