"""A signature tells who wrote a model, where the digest only tells damage."""

import subprocess
import sys
from contextlib import suppress
from shutil import which

import pytest

import missratio as mr

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")


def write_keys(folder, key, name):
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    encoding = serialization.Encoding.PEM
    private.write_bytes(
        key.private_bytes(
            encoding,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            encoding, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


@pytest.fixture
def keys(tmp_path):
    return write_keys(tmp_path, ed25519.Ed25519PrivateKey.generate(), "key")


@pytest.fixture
def signed(saved, keys):
    path = saved.with_name("signed.skops")
    mr.save_model(mr.load_model(saved), path, sign_with=keys[0])
    return path


def refused(path, key, match):
    with pytest.raises(mr.app.modelfile.ModelFileError, match=match):
        mr.load_model(path, verify_with=key)


def test_a_signed_model_is_loaded(signed, keys):
    assert len(signed.with_name("signed.skops.sig").read_bytes()) == 64
    mr.load_model(signed, verify_with=keys[1])
    mr.load_model(signed)


def test_a_model_of_another_is_refused(signed, saved, keys, tmp_path):
    refused(saved, keys[1], "isn't signed: there is no .*model.skops.sig")
    _, other = write_keys(tmp_path, ed25519.Ed25519PrivateKey.generate(), "other")
    refused(signed, other, "didn't sign it")
    signed.write_bytes(saved.read_bytes() + b"\0")
    refused(signed, keys[1], "didn't sign it")


def test_what_is_no_key_is_refused(signed, keys, tmp_path):
    private, public = keys
    refused(signed, private, "holds no public Ed25519 key")
    _, other = write_keys(tmp_path, rsa.generate_private_key(65537, 2048), "rsa")
    refused(signed, other, "holds no public Ed25519 key")
    with pytest.raises(FileNotFoundError, match="openssl genpkey"):
        mr.load_model(signed, verify_with=tmp_path / "absent.pem")
    before = signed.read_bytes()
    with pytest.raises(mr.app.modelfile.ModelFileError, match="holds no private"):
        mr.save_model(mr.load_model(signed), signed, force=True, sign_with=public)
    assert signed.read_bytes() == before


def test_the_key_is_not_overwritten(signed, keys):
    with pytest.raises(FileExistsError, match="never overwritten"):
        mr.save_model(mr.load_model(signed), keys[0], force=True, sign_with=keys[0])


@pytest.mark.skipif(which("openssl") is None, reason="openssl isn't here")
@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_replacement_cut_short_leaves_a_model_with_its_signature(
    signed, saved, keys, monkeypatch, writes
):
    model, left = mr.load_model(saved), iter(range(writes))

    def write(path, content, *, force):
        if next(left, None) is None:
            raise KeyboardInterrupt
        path.write_bytes(content)

    monkeypatch.setattr(mr.app.modelfile.files, "_write", write)
    with suppress(KeyboardInterrupt):
        mr.save_model(model, signed, force=True, sign_with=keys[0])
    mr.load_model(signed, verify_with=keys[1])
    monkeypatch.undo()
    mr.save_model(model, signed, force=True, sign_with=keys[0])
    mr.load_model(signed, verify_with=keys[1])
    assert len(signed.with_name("signed.skops.sig").read_bytes()) == 64


def test_openssl_agrees(signed, keys):
    done = subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", keys[1], "-rawin",
         "-in", signed, "-sigfile", signed.with_name("signed.skops.sig")],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_without_cryptography_it_is_said_what_to_install(signed, keys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(ModuleNotFoundError, match=r"missratio\[sign\]"):
        mr.save_model(mr.load_model(signed), signed, force=True, sign_with=keys[0])
