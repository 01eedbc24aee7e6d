"""What can go wrong, each told in one sentence."""


class Mistake(Exception):
    """Something in the call cannot be right: exit status 2."""


class Failure(Exception):
    """Something outside the call did not work: exit status 1."""


def sentence_of(problem: BaseException, most: int = 400) -> str:
    """An exception of whatever library as one line. The reason stands mostly at the start or at the end of a long one."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= most else f"{text[:most // 2].rstrip()} ... {text[-most // 2:].lstrip()}"
