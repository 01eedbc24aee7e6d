"""What the examples share: the command line, and one sentence for a mistake."""
import pathlib
import sys

import collage

MODELS = pathlib.Path(__file__).resolve().parents[2] / ".deps" / "models"


class Mistake(Exception):
    """A mistake of the user: one sentence, and the exit status 2. Missing files of this project have the status 1."""

    def __init__(self, sentence, status=2):
        super().__init__(sentence)
        self.status = status


def words_of(usage, *options):
    """The words of the command line, and the values of `--NAME VALUE` for these options, in their order."""
    words, values, rest = [], dict.fromkeys(options), iter(sys.argv[1:])
    for word in rest:
        if word.startswith("--"):
            value = next(rest, None)
            if word not in values or value is None:
                raise Mistake(f"usage: {usage}")
            values[word] = value
        else:
            words.append(word)
    return (words, *values.values())


def model(folder, name):
    """The path of a trained model, which must exist."""
    path = pathlib.Path(folder or MODELS) / name
    if not path.exists():
        raise Mistake(f"{path}: is not here; tools/setup fetches it, or name its folder with --models", status=1)
    return path


def run(main):
    """Runs a program's body."""
    try:
        main()
    except (Mistake, collage.CollageError) as e:
        print(f"{pathlib.Path(sys.argv[0]).stem}: {e}", file=sys.stderr)
        sys.exit(e.status)
