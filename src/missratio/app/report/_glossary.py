"""The words that a page explains where it uses them."""

GLOSSARY: dict[str, tuple[str, str]] = {
    "phi": (
        "φ, missing probability",
        "The probability that a value is missing, given the value itself. Each class "
        "has its own φ.",
    ),
    "alpha": (
        "α, type I error",
        "The bound on the share of the controlled class that is classified as the "
        "other class. The certificate says that the error is at most α.",
    ),
    "power": (
        "Power",
        "The share of the other class's rows that are recognised, that is, classified "
        "as the other class.",
    ),
    "kish": (
        "Effective sample size",
        "How many equally weighted rows would be as informative as these weighted "
        "ones: (Σw)²/Σw², by Kish.",
    ),
    "gamma": (
        "Γ, odds factor",
        "By what factor the odds φ/(1 − φ) may be wrong, up or down, before the "
        "certificate fails. Γ = 1 means that φ has to be exact.",
    ),
    "calibration": (
        "Calibration rows",
        "Rows of the controlled class that were kept from fitting and choose the "
        "threshold.",
    ),
}
"""By id: the word, and what it means."""

SEVERAL_GLOSSARY: dict[str, tuple[str, str]] = {
    "phi": GLOSSARY["phi"],
    "alpha": (
        "α, bound on an error",
        "The bound on the share of a class that is classified as a class which it must "
        "not be. The certificate says that all bounds hold together.",
    ),
    "kish": GLOSSARY["kish"],
    "gamma": GLOSSARY["gamma"],
    "calibration": (
        "Calibration rows",
        "Rows of a bounded class that were kept from fitting and choose its threshold.",
    ),
}
"""The same for a page about several classes."""

GROUPS_GLOSSARY: dict[str, tuple[str, str]] = {
    "phi": GLOSSARY["phi"],
    "alpha": (
        "α, bound on an error",
        "The bound on the share of a group's rows of the controlled class that are "
        "classified as the other class. The certificate says that all bounds hold "
        "together.",
    ),
    "power": GLOSSARY["power"],
    "kish": GLOSSARY["kish"],
    "gamma": GLOSSARY["gamma"],
    "calibration": (
        "Calibration rows",
        "Rows of the controlled class that were kept from fitting and choose the "
        "threshold of their group.",
    ),
}
"""The same for a page about groups."""
