# The first GPU's counter of energy and its power, by the driver's own library, beside a load.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Sequence

PERIOD_S = 0.005
POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT: no mean over a second


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t of NVIDIA's NVML API reference."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp_us", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("type", ctypes.c_int),
        ("result", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


class Card:
    """Of the first GPU; OSError where there is no driver, or it does not tell."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._device = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self._device))

    def _call(self, name: str, *words: object) -> None:
        result = getattr(self._library, name)(*words)
        if result:
            raise OSError(f"{name}: error {result} of NVML")

    def energy_j(self) -> float:
        """Since the driver was loaded."""
        value = ctypes.c_ulonglong()
        name = "nvmlDeviceGetTotalEnergyConsumption"
        self._call(name, self._device, ctypes.byref(value))
        return value.value / 1e3

    def power_w(self) -> float:
        asked = FieldValue(field=POWER_INSTANT)
        self._call("nvmlDeviceGetFieldValues", self._device, 1, ctypes.byref(asked))
        if asked.result:
            raise OSError(f"this driver tells no power of the moment: error {asked.result}")
        return (asked.value & 0xFFFFFFFF) / 1e3


class Watch:
    """`with Watch() as seen: load()`; then seen.counter_j and seen.integral_j are of that time."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float, float]] = []  # s, J, W
        self._card, self._over = Card(), threading.Event()
        self._thread = threading.Thread(target=self._sample_on)
        self._failure: OSError | None = None

    def _sample(self) -> None:
        self.samples.append((time.monotonic(), self._card.energy_j(), self._card.power_w()))

    def _sample_on(self) -> None:
        try:
            while not self._over.wait(PERIOD_S):
                self._sample()
        except OSError as failure:
            self._failure = failure

    @property
    def counter_j(self) -> float:
        return self.samples[-1][1] - self.samples[0][1]

    @property
    def integral_j(self) -> float:
        return integral_j(self.samples)

    def __enter__(self) -> Watch:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._failure:
            raise self._failure
        self._sample()


def integral_j(samples: Sequence[tuple[float, float, float]]) -> float:
    """Of powers along lines between the samples."""
    pairs = zip(samples, samples[1:])
    return sum((b[0] - a[0]) * (a[2] + b[2]) / 2 for a, b in pairs)
