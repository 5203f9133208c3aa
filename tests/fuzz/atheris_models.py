"""Model files, by a fuzzer that follows which branches of the loader an input reaches.

    python tests/fuzz/atheris_models.py -runs=10000 -rss_limit_mb=1000

Needs atheris. An input is a list of edits of the members of a sound model; the digest
is made to fit, so that what lies behind it is reached.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.append(str(Path(__file__).parents[1] / "support"))
with atheris.instrument_imports(include=["missratio.app.modelfile"]):
    import forging

    import missratio as mr
    from missratio.app.modelfile import ModelFileError

FOLDER = Path(tempfile.mkdtemp())
PATH = FOLDER / "forged.skops"
SOUND = [
    forging.members_of(forging.model_bytes(FOLDER, kind)) for kind in forging.FUZZED
]


def edited(data):
    """The members of a model, after the edits that an input tells."""
    given = atheris.FuzzedDataProvider(data)
    members = dict(SOUND[given.ConsumeIntInRange(0, len(SOUND) - 1)])
    names = sorted(members)
    for _ in range(given.ConsumeIntInRange(1, 4)):
        name = names[given.ConsumeIntInRange(0, len(names) - 1)]
        content = bytearray(members[name])
        place = given.ConsumeIntInRange(0, len(content))
        length = given.ConsumeIntInRange(0, 16)
        content[place : place + length] = given.ConsumeBytes(length)
        members[name] = bytes(content)
    return members


def one_input(data):
    """Load a model, or refuse it: any other error is a find."""
    PATH.write_bytes(forging.sealed(edited(data)))
    try:
        mr.load_model(PATH)
    except ModelFileError:
        return


def main():
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
