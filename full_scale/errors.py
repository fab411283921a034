"""What a user can put right: one line that names the place, the value and the way out."""


class UnusableError(ValueError):
    """Input or settings that cannot be used.

    Args:
        place: file, option or data set.
        problem: what is wrong, with the value.
        remedy: what to do about it.
    """

    def __init__(self, place: str, problem: str, remedy: str = "") -> None:
        """Join the parts."""
        super().__init__(f"{place}: {problem}" + (f"; {remedy}" if remedy else ""))
