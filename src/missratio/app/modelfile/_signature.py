"""Detached Ed25519 signatures of model files, as OpenSSL makes and checks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from missratio.app.modelfile._types import ModelFileError

_MOST_BYTES = 2**16
SIGNATURE_BYTES = 64
# A file that is being replaced has its old signatures, too, until the new one is there.
_MOST_KEPT = 8
_MADE = "openssl genpkey -algorithm ed25519 -out key.pem"
_PUBLIC = "openssl pkey -in key.pem -pubout -out public.pem"


def signature_path(model: Path) -> Path:
    """Where the signature of a model file is."""
    return model.with_name(f"{model.name}.sig")


def sign(content: bytes, key: Path) -> bytes:
    """The signature of a file's content.

    Parameters
    ----------
    content : bytes
    key : Path
        A private Ed25519 key in PEM format, without a password.
    """
    return bytes(_load(key, private=True).sign(content))


def verify(content: bytes, signature: Path, key: Path) -> None:
    """Refuse content that the owner of a key didn't sign.

    Parameters
    ----------
    content : bytes
    signature : Path
    key : Path
        The public Ed25519 key in PEM format.
    """
    from cryptography.exceptions import InvalidSignature

    public = _load(key, private=False)
    if not signature.is_file():
        raise ModelFileError(f"It isn't signed: there is no {signature}.")
    for each in signatures(signature):
        try:
            public.verify(each, content)
        except InvalidSignature:
            continue
        return
    raise ModelFileError(
        f"The owner of {key} didn't sign it: {signature} is the signature of "
        "another file, or by another key."
    )


def signatures(path: Path) -> list[bytes]:
    """The signatures in a file: one, or several where a model was being replaced."""
    content, size = _read(path), SIGNATURE_BYTES
    starts = range(0, min(len(content), _MOST_KEPT * size), size)
    return [content[i : i + size] for i in starts]


def check_key(key: Path, *, private: bool) -> None:
    """Refuse a file that holds no key of the kind."""
    _load(key, private=private)


def _load(key: Path, *, private: bool) -> Any:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ModuleNotFoundError(
            "Signatures need cryptography: pip install 'missratio[sign]'."
        ) from error
    if not key.is_file():
        raise FileNotFoundError(f"There is no key file {key}. Make one by {_MADE}")
    try:
        if private:
            found: Any = serialization.load_pem_private_key(_read(key), None)
        else:
            found = serialization.load_pem_public_key(_read(key))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _no_key(key, private) from error
    kind = ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey
    if not isinstance(found, kind):
        raise _no_key(key, private)
    return found


def _no_key(key: Path, private: bool) -> ModelFileError:
    kind, make = ("private", _MADE) if private else ("public", _PUBLIC)
    return ModelFileError(
        f"{key} holds no {kind} Ed25519 key in PEM format without a password. Make one "
        f"by {make}"
    )


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_MOST_BYTES)
