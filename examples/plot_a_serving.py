"""
Serving a certified classifier with ONNX
========================================

A certificate is about labels, so what serves them has to give the same ones. Here a
certified classifier becomes an ONNX file, its threshold included, and a runtime that
knows nothing of Python's estimators labels rows with it.
"""

# %%
# Patients with two measurements, whose illness shows in both at once. Of the well, at
# most 5% may be called ill. Boosted trees take missing values as they are, so the
# certificate is for rows that lose values as these did.

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr


def draw(n, seed):
    """The ill lie on an arc; one value in twenty is missing."""
    rng = np.random.default_rng(seed)
    ill = rng.integers(0, 2, n)
    angle = rng.uniform(0, np.pi, n)
    arc = 3.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = rng.normal(size=(n, 2)) * np.where(ill, 0.6, 1.3)[:, None]
    X += ill[:, None] * arc
    X[rng.random((n, 2)) < 0.05] = np.nan
    return X, ill


X, ill = draw(6000, 0)
classifier = mr.NeymanPearsonClassifier(
    HistGradientBoostingClassifier(max_iter=60, random_state=0),
    alpha=0.05,
    deployment="as-observed",
    random_state=0,
).fit(X, ill)
print(classifier.certificate_)

# %%
# One call writes the file. Its graph takes ``X`` and gives ``label`` and ``score``; the
# certificate is among its metadata: whoever serves it can read what it promises.

folder = Path(tempfile.mkdtemp())
path = mr.export_onnx(classifier, folder / "model.onnx")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options)
told = session.get_modelmeta().custom_metadata_map
print(f"{path.stat().st_size / 1024:.0f} kB; alpha {told['alpha']}")

# %%
# The runtime gives the labels of ``predict``, row for row.

X_new, ill_new = draw(200_000, 1)
label, score = session.run(None, {"X": X_new})
here = classifier.predict(X_new)
print(f"labels that differ: {np.sum(label != here)} of {len(here)}")
print(f"called ill: {label[ill_new == 0].mean():.3f} of the well, "
      f"{label[ill_new == 1].mean():.3f} of the ill")  # fmt: skip

# %%
# How long a call takes, by the number of rows in it. Most of a small call in Python is
# checks of the input, which a server that has made them already needn't repeat.

sizes = 10 ** np.arange(6)


def seconds(call, rows):
    """The best of a few calls."""
    spent = []
    for _ in range(3):
        start = time.perf_counter()
        call(rows)
        spent.append(time.perf_counter() - start)
    return min(spent)


python = [seconds(classifier.predict, X_new[:n]) for n in sizes]
served = [
    seconds(lambda rows: session.run(None, {"X": rows}), X_new[:n]) for n in sizes
]

# %%
# The region that the runtime calls ill, with some of the well and the ill, and the time
# of a call.

figure, (plane, times) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
across, up = np.meshgrid(np.linspace(-5, 5, 400), np.linspace(-4, 5.5, 400))
grid = np.stack([across.ravel(), up.ravel()], axis=1)
region = session.run(["label"], {"X": grid})[0].reshape(across.shape)
plane.contourf(across, up, region, levels=[0.5, 1.5], colors=["C1"], alpha=0.25)
for kind, name, colour in ((0, "well", "C0"), (1, "ill", "C1")):
    some = X_new[ill_new == kind][:600]
    plane.plot(*some.T, ".", color=colour, markersize=3, label=name)
plane.set(xlabel="first measurement", ylabel="second measurement",
          xlim=(-5, 5), ylim=(-4, 5.5), title="called ill by onnxruntime")  # fmt: skip
plane.legend(loc="lower right")
times.loglog(sizes, python, "o-", label="predict")
times.loglog(sizes, served, "s-", label="onnxruntime, one thread")
times.set(xlabel="rows in a call", ylabel="seconds", title="time of a call")
times.legend()
plt.show()
