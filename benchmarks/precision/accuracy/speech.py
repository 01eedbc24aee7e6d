"""Silero's detector of speech, on sentences that espeak-ng speaks, between silence and under noise."""
from __future__ import annotations

import dataclasses
import pathlib
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from peers.errors import Failure

from . import paired
from .case import Arrays, Count, Run, file_of

RATE, STEP, MEMORY = 16000, 512, 64  # samples a second, new ones in a run, and old ones before them
LIKELY = 0.5
LEAST_OF_PEAK = 1e-4  # of the loudest frame's energy: what is speech
MOST_GAP = 4  # frames: a pause within words
VOICES = (("en-us", "de", "fr-fr", "es", "it+f3"), ("en-gb+f2", "nl", "pt", "pl+m3", "sv"))  # for tuning, for measuring
WORDS = (("the river runs below the old bridge", "seven people wait at the station", "read the second page again", "we met in the garden",
          "turn left after the market", "this window does not close", "twelve letters arrived in the morning"),
         ("the mountain is covered in snow", "nine bicycles stand in the harbour", "close the door behind you", "they sold the house last year",
          "walk straight to the forest", "the engine starts at once", "twenty guests came late in the evening"))


@dataclasses.dataclass(frozen=True)
class Clip:
    frames: Any  # count x 576
    is_speech: list[bool]


def spoken(text: str, voice: str, speed: int, pitch: int) -> Any:
    """A sentence at the model's rate, with a peak of 1."""
    program = shutil.which("espeak-ng")
    if program is None:
        raise Failure("espeak-ng: is not here; install the package of that name, or leave `speech` out")
    done = subprocess.run([program, "--stdout", "-v", voice, "-s", str(speed), "-p", str(pitch), "--", text], capture_output=True,
                          check=False)
    at = done.stdout.find(b"data")
    if done.returncode != 0 or at < 0:
        raise Failure(f"espeak-ng: could not speak with the voice {voice}: {done.stderr.decode(errors='replace').strip()}")
    rate = int.from_bytes(done.stdout[24:28], "little")
    wave = np.frombuffer(done.stdout[at + 8:len(done.stdout) - (len(done.stdout) - at) % 2], "<i2").astype(np.float64)
    count = int(len(wave) * RATE / rate)
    # A window as wide as a new sample keeps most of what lies above half of the new rate out.
    taps = (np.arange(count * 2) + 0.5) * rate / RATE / 2 - 0.5
    smooth = np.interp(taps, np.arange(len(wave)), wave).reshape(count, 2).mean(axis=1)
    return smooth / max(1.0, float(np.abs(smooth).max()))


def clip(draw: Any, half: int) -> Clip:
    """Silence, a sentence, silence, another, silence, under noise 3 to 25 dB below the speech."""
    parts = [np.zeros(int(draw.integers(RATE // 4, RATE)))]
    for _ in range(2):
        voice = str(draw.choice(VOICES[half]))
        parts.append(spoken(str(draw.choice(WORDS[half])), voice, int(draw.integers(130, 220)), int(draw.integers(20, 80))))
        parts.append(np.zeros(int(draw.integers(RATE // 4, RATE))))
    clean = np.concatenate(parts) * draw.uniform(0.1, 0.8)
    count = len(clean) // STEP
    clean = clean[:count * STEP]
    energy = (clean.reshape(count, STEP) ** 2).sum(axis=1)
    is_speech = energy > LEAST_OF_PEAK * energy.max()
    noise = draw.normal(0, 1, len(clean))
    if draw.random() < 0.5:  # noise that falls with frequency
        noise = np.convolve(noise, np.exp(-np.arange(16) / 4.0), "same")
    level = np.sqrt((clean ** 2).sum() / (is_speech.sum() * STEP) / (noise ** 2).mean())
    heard = clean + noise * level * 10 ** (-draw.uniform(3, 25) / 20)
    with_memory = np.concatenate([np.zeros(MEMORY), heard]).astype(np.float32)
    frames = np.stack([with_memory[i * STEP:i * STEP + MEMORY + STEP] for i in range(count)])
    return Clip(frames, paired.close_gaps(is_speech.tolist(), MOST_GAP))


def clips(count: int, seed: int, half: int) -> Iterator[Clip]:
    draw = np.random.default_rng([seed, half])
    return (clip(draw, half) for _ in range(count))


class Speech:
    name, network = "speech", "Silero VAD 6.2, 1x576 and a state"
    data = "sentences spoken by espeak-ng between silence, under noise 3 to 25 dB below them; frames of 32 ms, labelled by the clean sound"
    unit, measures = "clips", ("frames",)
    shapes = {"input": (1, MEMORY + STEP), "state": (2, 1, 128)}
    values: Arrays = {"sr": np.array(RATE, np.int64)}

    def __init__(self, folder: pathlib.Path) -> None:
        self.metadata: Mapping[str, str] = {}
        self.model = file_of("silero_vad", "data/silero_vad.onnx")

    def samples(self, count: int, seed: int, run: Run) -> list[Arrays]:
        """Single frames with the state in which float32 meets them, a few of each clip."""
        draw = np.random.default_rng([seed, 2])
        result: list[Arrays] = []
        for one in clips(-(-count // 4), seed, 0):
            fed: list[Arrays] = []
            self.outputs(one, lambda feed, fed=fed: (fed.append(dict(feed)), run(feed))[1])
            result += [fed[int(i)] for i in draw.choice(len(fed), 4, replace=False)]
        return result[:count]

    def units(self, count: int, seed: int) -> Iterable[Clip]:
        return clips(count, seed, 1)

    def outputs(self, unit: Clip, run: Run) -> Arrays:
        """Each engine goes on from its own state."""
        state, heard = np.zeros(self.shapes["state"], np.float32), []
        for frame in unit.frames:
            result = run({"input": frame[None], "state": state})
            state = result["stateN"]
            heard.append((result["output"].copy(), state.copy()))
        return {"output": np.stack([one for one, _ in heard]), "stateN": np.stack([one for _, one in heard])}

    def judge(self, unit: Clip, outputs: Arrays, in_float32: Arrays) -> Sequence[Count]:
        heard = outputs["output"].ravel() >= LIKELY
        return ((int((heard == np.array(unit.is_speech)).sum()), len(heard)),)
