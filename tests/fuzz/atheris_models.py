"""Model files, by a fuzzer that follows which branches of the loader an input reaches.

    python tests/fuzz/atheris_models.py -runs=10000 -rss_limit_mb=1000

Needs atheris. An input is a list of edits of the members of a sound model; the digest
is made to fit, so that what lies behind it is reached.
"""

import io
import json
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import atheris

with atheris.instrument_imports(include=["missratio.app.modelfile"]):
    import test_fuzz as seeds

    import missratio as mr
    from missratio.app.modelfile import ModelFileError
    from missratio.app.modelfile._archive import HEADER, _digest

FOLDER = Path(tempfile.mkdtemp())
PATH = FOLDER / "forged.skops"
with ZipFile(io.BytesIO(seeds.model_bytes(FOLDER))) as sound:
    SOUND = {name: sound.read(name) for name in sound.namelist()}


def edited(data):
    """The members of a model, after the edits that an input tells."""
    given, members = atheris.FuzzedDataProvider(data), dict(SOUND)
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
    members = edited(data)
    try:
        header = json.loads(members[HEADER])
        rest = {name: text for name, text in members.items() if name != HEADER}
        header["content_sha256"] = _digest(rest)
        members[HEADER] = json.dumps(header).encode()
    except (ValueError, TypeError, RecursionError):
        pass
    with ZipFile(PATH, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    try:
        mr.load_model(PATH)
    except ModelFileError:
        return


def main():
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
