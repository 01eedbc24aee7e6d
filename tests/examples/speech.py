#!/usr/bin/env python3
"""The example speech marks where somebody speaks: usage: speech.py PROGRAM MODELS"""
import array
import math
import random
import shutil
import struct
import subprocess
import unittest
import wave

import program

RATE = 16000


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


class Speech(program.Case):
    def sound(self, name, samples, rate=RATE, channels=1):
        """A WAV file of numbers in [-1, 1]."""
        path = self.folder / name
        with wave.open(str(path), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(array.array("h", [round(32767 * x) for x in samples]).tobytes())
        return path

    def segments(self, path):
        found = [line.split() for line in self.answer(path) if line.startswith("speech")]
        return [(float(words[2]), float(words[4])) for words in found]

    def test_silence_noise_and_a_tone_are_no_speech(self):
        random.seed(1)
        for name, samples in {"silence": [0] * 2 * RATE, "noise": [random.gauss(0, 0.05) for _ in range(2 * RATE)],
                              "tone": [0.3 * math.sin(0.17 * i) for i in range(2 * RATE)], "nothing": []}.items():
            with self.subTest(name):
                self.assertEqual(self.answer(self.sound(name, samples))[-1], "no speech")

    def test_the_bar_has_a_character_per_step(self):
        bar = [line[line.index("|") + 1:-1] for line in self.answer(self.sound("bar", [0] * (512 * 120 + 1)))[:-1]]
        self.assertEqual([len(line) for line in bar], [100, 21])

    @unittest.skipUnless(shutil.which("espeak-ng"), "espeak-ng is not here")
    def test_two_sentences(self):
        spoken = []
        for text in ["The quick brown fox jumps over the lazy dog.", "And then it sleeps under a tree."]:
            path = self.folder / "spoken.wav"
            subprocess.run(["espeak-ng", "-w", str(path), text], check=True)
            with wave.open(str(path)) as file:
                rate = file.getframerate()
                samples = array.array("h", file.readframes(file.getnframes()))
            spoken.append([x / 32768 for x in samples])
        pause = [0.0] * rate
        durations = [len(samples) / rate for samples in spoken]
        mono = pause + spoken[0] + pause + spoken[1] + pause
        for name, samples, channels in [("mono", mono, 1), ("stereo", [x for pair in zip(mono, mono) for x in pair], 2)]:
            with self.subTest(name):
                found = self.segments(self.sound(name, samples, rate, channels))
                self.assertEqual(len(found), 2, found)
                for (begin, end), start, duration in zip(found, [1, 2 + durations[0]], durations):
                    self.assertLess(abs(begin - start), 0.25, found)
                    self.assertLess(abs(end - start - duration), 0.6, found)

    def test_every_form_of_samples(self):
        """Steps of one loud level: what they sound like does not matter, only that all forms are read alike."""
        levels = [0.5 if i // 40 % 2 else -0.5 for i in range(RATE)]
        forms = {(1, 8): lambda x: struct.pack("<B", round(128 + 127 * x)),
                 (1, 24): lambda x: struct.pack("<i", round(8388607 * x))[:3],
                 (1, 32): lambda x: struct.pack("<i", round(2147483647 * x)), (3, 32): lambda x: struct.pack("<f", x)}
        bars = {self.answer(self.sound("16", levels))[0]}
        for (form, bits), pack in forms.items():
            for extensible in (False, True):
                head = struct.pack("<HHIIHH", 0xFFFE if extensible else form, 1, RATE, RATE * bits // 8, bits // 8, bits)
                head += struct.pack("<HHIH", 22, bits, 0, form) + bytes(14) if extensible else b""
                body = b"WAVE" + chunk(b"fmt ", head) + chunk(b"LIST", b"odd") + b"\0" + chunk(b"data", b"".join(map(pack, levels)))
                bars.add(self.answer(self.write("form.wav", chunk(b"RIFF", body)))[0])
        self.assertEqual(len(bars), 1, bars)

    def test_mistakes(self):
        self.refused(says="usage")
        self.refused(self.folder / "none.wav", says="none.wav: cannot be read")
        self.refused(self.write("text.wav", b"no sound"), says="text.wav: is no WAV file")
        self.refused(self.write("cut.wav", b"RIFF\0\0\0\0WAVEfmt "), says="cut.wav: has no format or no samples")
        law = chunk(b"fmt ", struct.pack("<HHIIHH", 6, 1, 8000, 8000, 1, 8)) + chunk(b"data", b"abcd")
        self.refused(self.write("law.wav", chunk(b"RIFF", b"WAVE" + law)), says="samples of format 6 and 8 bits")


program.main("silero-vad/silero_vad_16k_op15.onnx")
