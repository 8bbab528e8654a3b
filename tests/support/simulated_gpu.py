"""A stand-in for CuPy where Numba simulates a GPU: its arrays are NumPy's."""

import numpy as np

from surestep.kernels import _cuda, devices


class SimulatedArray(np.ndarray):
    """An array that kernels take to be on a GPU."""

    __cuda_array_interface__ = None

    def get(self, out=None):
        """Returns a copy for the processor, in `out` where that is given."""
        if out is None:
            return np.array(self)
        out[...] = self
        return out


class SimulatedMemory:
    """A stand-in for CuPy: the simulator's arrays are NumPy's."""

    @staticmethod
    def empty(shape, dtype=np.float64):
        """Returns an array to be written."""
        return np.empty(shape, dtype).view(SimulatedArray)

    @staticmethod
    def asarray(array):
        """Returns a copy."""
        return array.copy().view(SimulatedArray)

    @staticmethod
    def ascontiguousarray(array):
        """Returns the array, row after row."""
        return np.ascontiguousarray(array).view(SimulatedArray)


def install():
    """Makes the simulator the GPU that is found."""
    simulator = _cuda.Gpu("the CUDA simulator", SimulatedMemory)
    devices.gpu_or_reason = lambda: simulator
