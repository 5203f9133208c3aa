"""Newton's method whose steps are found by products with the Hessian alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from missratio._base.typing import FloatArray
from missratio.solver._newton import ROUNDING, falls
from missratio.solver._result import Evaluate, Evaluation

# A step leaves so large a part of the gradient, about.
LEFT = 0.3
# More products than these for one step would serve it no better in single precision.
MOST_PRODUCTS = 100
HALVINGS = 20

Map = Callable[[FloatArray], FloatArray]
HessianAt = Callable[[FloatArray], Map]


def truncated_newton(
    evaluate: Evaluate,
    hessian_at: HessianAt,
    theta: FloatArray,
    precondition: Map,
    *,
    is_small: Callable[[FloatArray], bool],
    max_iter: int,
    precision: float = float(np.finfo(np.float64).eps),
) -> tuple[FloatArray, Evaluation, int]:
    """Minimise one smooth function by Newton's steps, each solved for in part.

    Gradients are the function's own. The Hessian's products may be in single precision:
    a step is improved by the next, so that its errors don't add up.

    Parameters
    ----------
    evaluate : callable
    hessian_at : callable
        From parameters to a function that multiplies a vector by the Hessian there.
    theta : ndarray of shape (n_parameters,)
        Where to begin.
    precondition : callable
        Multiplies a vector by something like the Hessian's inverse.
    is_small : callable
        Whether a gradient is small enough to end.
    max_iter : int
    precision : float
        Relative rounding error of the function's values.

    Returns
    -------
    theta, evaluation, n_iter
        Where it ended, whether or not the gradient is small there.
    """
    here, n_iter = evaluate(theta[None], second_order=False), 0
    while n_iter < max_iter and not is_small(here.gradient[0]):
        gradient = here.gradient[0]
        step = conjugate_gradients(hessian_at(theta), -gradient, precondition)
        decrement = np.sqrt(np.maximum([-float(gradient @ step)], 0.0))
        noise = ROUNDING * precision * np.maximum(1.0, np.abs(here.value))
        for _ in range(HALVINGS):
            there = evaluate((theta + step)[None], second_order=False)
            if falls(there, here.value, decrement, noise)[0]:
                break
            step, decrement = 0.5 * step, math.sqrt(0.5) * decrement
        else:
            break
        theta, here, n_iter = theta + step, there, n_iter + 1
    return theta, here, n_iter


def conjugate_gradients(
    multiply: Map, target: FloatArray, precondition: Map, left: float = LEFT
) -> FloatArray:
    """Solve Hx = target until so large a part of it is left, in the inverse's norm.

    Where H bends down, what was found by then is returned.
    """
    x, rest = np.zeros_like(target), target
    towards = direction = precondition(rest)
    length = first = float(rest @ towards)
    for _ in range(MOST_PRODUCTS):
        product = multiply(direction)
        bend = float(direction @ product)
        if not bend > 0.0:
            break
        x = x + (length / bend) * direction
        rest = rest - (length / bend) * product
        towards = precondition(rest)
        earlier, length = length, float(rest @ towards)
        if not length > left**2 * first:
            break
        direction = towards + (length / earlier) * direction
    return x if x.any() else precondition(target)
