#!/usr/bin/env python3
"""Marks speech in a WAV file, with Silero's trained model: speech.py [--models FOLDER] FILE.wav

The model hears 32 ms at a time. Its state goes on from run to run, which the session does itself.
"""
import struct

import numpy as np

import collage
import example

# The model was trained with this rate, this many new samples in each run, and this many old samples before them.
RATE, STEP, MEMORY = 16000, 512, 64
# Speech begins where it is likely, and ends after it has been unlikely for long enough. Durations are in samples.
LIKELY, UNLIKELY = 0.5, 0.35
LEAST_SPEECH, LEAST_SILENCE, MARGIN = (RATE * ms // 1000 for ms in (250, 100, 30))


def read_wav(path):
    """The samples of a file, as numbers in [-1, 1] at the model's rate: channels are mixed, and it interpolates between samples, and averages
    where the rate falls. This is coarse, but enough for models that listen to speech."""
    def wrong(what):
        return example.Mistake(f"{path}: {what}; give a WAV file of PCM or float samples")
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError:
        raise example.Mistake(f"{path}: cannot be read; check the path") from None
    if contents[:4] != b"RIFF" or contents[8:12] != b"WAVE":
        raise wrong("is no WAV file")
    form = samples = None
    at = 12
    while at + 8 <= len(contents) and samples is None:
        name, size = contents[at:at + 4], struct.unpack_from("<I", contents, at + 4)[0]
        part = contents[at + 8:at + 8 + size]
        if name == b"fmt " and len(part) >= 16:
            form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", part)
            if form == 0xFFFE and len(part) >= 26:
                form = struct.unpack_from("<H", part, 24)[0]
        elif name == b"data":
            samples = part
        at += 8 + size + size % 2
    if form is None or samples is None:
        raise wrong("has no format or no samples")
    if (form, bits) not in ((1, 8), (1, 16), (1, 24), (1, 32), (3, 32)) or channels == 0 or not 1000 <= rate <= 1000000:
        raise wrong(f"has samples of format {form} and {bits} bits at {rate} Hz")
    size = bits // 8
    raw = np.frombuffer(samples[:len(samples) // (size * channels) * size * channels], np.uint8).reshape(-1, size)
    if form == 3:
        numbers = raw.view("<f4")[:, 0].astype(np.float64)
    else:
        words = np.zeros((len(raw), 4), np.uint8)  # each sample in the highest bytes of a word
        words[:, 4 - size:] = raw ^ 128 if bits == 8 else raw
        numbers = words.view("<i4")[:, 0] / 2.0**31
    mixed = numbers.reshape(-1, channels).mean(axis=1)
    step = rate / RATE
    count, taps = int(len(mixed) / step), max(1, int(np.ceil(step)))
    if not count:
        return np.zeros(0, np.float32)
    at = (np.arange(count * taps) + 0.5) * step / taps - 0.5
    return np.interp(at, np.arange(len(mixed)), mixed).reshape(count, taps).mean(axis=1).astype(np.float32)


def listen(sound, path):
    """The probability of speech in each step."""
    # The rate decides what the model computes. As a constant it is evaluated while the model is loaded. The state of a run goes
    # on to the next one, because the session carries it.
    session = collage.session(path, values={"sr": np.array(RATE, np.int64)}, carried={"stateN": "state"})
    heard, likely = np.zeros((1, MEMORY + STEP), np.float32), []
    for at in range(0, len(sound), STEP):
        new = sound[at:at + STEP]
        heard[0, :MEMORY] = heard[0, -MEMORY:]
        heard[0, MEMORY:] = 0
        heard[0, MEMORY:MEMORY + len(new)] = new
        likely.append(float(session.run(heard)["output"][0, 0]))
    return likely


def segments_of(likely, length):
    """The segments with speech, in samples. Short ones are dropped; the others grow by a margin, but never into one another."""
    found, begin, pause = [], None, None
    for at, probability in ((i * STEP, p) for i, p in enumerate(likely)):
        if probability >= LIKELY:
            pause = None
            begin = at if begin is None else begin
        elif begin is not None and probability < UNLIKELY:
            pause = at if pause is None else pause
            if at - pause >= LEAST_SILENCE:
                found.append([begin, pause])
                begin = pause = None
    if begin is not None:
        found.append([begin, length])
    found = [one for one in found if one[1] - one[0] > LEAST_SPEECH]
    for one, after in zip(found, found[1:]):
        grows = min(MARGIN, (after[0] - one[1]) // 2)
        one[1] += grows
        after[0] -= grows
    if found:
        found[0][0] = max(0, found[0][0] - MARGIN)
        found[-1][1] = min(length, found[-1][1] + MARGIN)
    return found


def main():
    usage = "speech.py [--models FOLDER] FILE.wav"
    words, folder = example.words_of(usage, "--models")
    if len(words) != 1:
        raise example.Mistake(f"usage: {usage}")
    sound = read_wav(words[0])
    likely = listen(sound, example.model(folder, "silero-vad/silero_vad_16k_op15.onnx"))
    for start in range(0, len(likely), 100):  # a character for each step, higher for more probable speech
        bar = "".join(" .:-=+*#"[min(7, int(8 * p))] for p in likely[start:start + 100])
        print(f"{start * STEP / RATE:7.2f} s |{bar}|")
    found = segments_of(likely, len(sound))
    for begin, end in found:
        print(f"speech from {begin / RATE:.2f} to {end / RATE:.2f} s")
    if not found:
        print("no speech")


example.run(main)
