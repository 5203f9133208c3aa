"""Print the oldest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"].values()
words = [*project["dependencies"], *(word for extra in extras for word in extra)]
found = [re.fullmatch(r"([\w.-]+)>=([\w.]+)", word) for word in words]
oldest = {match[1]: match[2] for match in found if match}
# Tools that check the code: new ones know more.
for tool in ("mypy", "pre-commit", "ruff"):
    oldest.pop(tool)
print("\n".join(f"{name}=={version}" for name, version in sorted(oldest.items())))
